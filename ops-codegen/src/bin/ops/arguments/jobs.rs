//! The arguments of `ops jobs`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint, value_parser};

pub(super) const JOBS: &str = "\
Environment:
  NATS_URL                    the server, unless --server names it; it may have a name and a password
  NATS_TOKEN                  a token to log in by, unless --token-env names another variable
  NATS_USER, NATS_PASSWORD    a name and a password to log in by
  NATS_CREDS                  a file of credentials to log in by, unless one of these is set or --creds names another

Exit status:
  0  all went well
  1  the server cannot be used, or a job was not changed
  2  the command was not understood, or there is no such queue";

#[derive(Debug, Args)]
pub(crate) struct JobsArguments {
    #[command(subcommand)]
    pub(crate) command: JobsCommand,
    /// The NATS servers, joined by commas; by default those of `NATS_URL`, or one on this machine
    #[arg(long, global = true, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) server: Option<String>,
    /// Prefix of the stream names
    #[arg(long, global = true, default_value = "ops")]
    pub(crate) prefix: String,
    /// Log in by the token that this environment variable holds
    #[arg(long, global = true, value_name = "VAR")]
    pub(crate) token_env: Option<String>,
    /// Log in by this file of credentials, which names an account
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "token_env")]
    pub(crate) creds: Option<PathBuf>,
    /// Timeout in seconds for the server
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 10, value_parser = value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,
    /// Print JSON instead of a table
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// Show how many jobs each queue has, and how old the oldest is
    Queues,
    /// List jobs, by queue, and by state within a queue: open, delayed, ended, dead
    ///
    /// If `--state` names several states, they are listed in the order in which it names them.
    ///
    /// ATTEMPTS counts the attempts that have ended: not one that runs, nor one whose worker has just died. AGE is the time
    /// since the submit, or since the end of a job that has ended. PARENT is the job of which a job is a step.
    List {
        #[command(flatten)]
        choice: JobsChoice,
        /// Only jobs of these states; by default open, delayed and dead; all with `--key`
        #[arg(long, value_enum, value_name = "STATE")]
        state: Vec<JobsState>,
    },
    /// List dead letters with their last errors
    Dead {
        #[command(flatten)]
        choice: JobsChoice,
    },
    /// Show a job: its attempts, its result, and its input unless it is done or was cancelled
    Show {
        /// The id of the job
        job: String,
    },
    /// Try dead letters and failed jobs again, with all their attempts
    Retry {
        /// The ids of the jobs
        #[arg(required = true)]
        jobs: Vec<String>,
    },
    /// Cancel jobs that wait or run
    Cancel {
        /// The ids of the jobs
        #[arg(required = true)]
        jobs: Vec<String>,
    },
    /// Remove dead letters, and jobs that failed or were cancelled, and free their keys
    Discard {
        /// The ids of the jobs
        #[arg(required = true)]
        jobs: Vec<String>,
    },
}

impl JobsCommand {
    /// True if it shows what there is, which may be nothing.
    pub(crate) fn only_lists(&self) -> bool {
        match self {
            Self::Queues => true,
            // A queue that is named should be there.
            Self::List { choice, .. } | Self::Dead { choice } => choice.queue.is_empty(),
            _ => false,
        }
    }
}

/// The choice of jobs.
#[derive(Debug, Args)]
pub(crate) struct JobsChoice {
    /// Only jobs of this queue; by default of all
    #[arg(long, value_name = "QUEUE")]
    pub(crate) queue: Vec<String>,
    /// Only jobs of operations that match; * is any text, ? any character
    #[arg(long, value_name = "PATTERN")]
    pub(crate) operation: Option<String>,
    /// Only jobs that were submitted with this key
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Maximum number of jobs to show
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
}

/// The states of jobs that can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum JobsState {
    /// Those that wait, run, or are tried again
    Open,
    /// Those that start later
    Delayed,
    /// Those with a result or an error, and those that were cancelled
    Ended,
    /// Dead letters
    Dead,
}
