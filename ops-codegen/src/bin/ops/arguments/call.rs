//! The arguments of what calls operations, `ops call` and `ops run`, and those that name servers and credentials.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint, value_parser};
use ops_runtime::registry::OutputPolicy;

use super::{Choice, InspectArguments, Rules};
use crate::server::{is_config, is_tools};

pub(super) const RUN: &str = "\
The program is the body of an async function: `return await ops.shop.showPet({ petId: 7 })`. It has
ops.NAMESPACE.OPERATION(input), input and console, and nothing else. In names, each run of characters other than ASCII
letters, digits and _ is written as one _, and left out at the ends; `ops generate --lang ts` writes all names. What the
program returns is printed as JSON.

An operation that changes something asks on the terminal before it runs, and any other runs, unless a pattern says otherwise;
of the patterns that match, the most restrictive decides. Without a terminal, a call that asks ends the command.

Exit status:
  0  the program returned
  1  it failed, or it asks and there is no terminal
  2  the command was not understood
  3  a document could not be read, or is not an API document";

/// An MCP server.
#[derive(Debug, Args)]
pub(crate) struct ServerArguments {
    /// The MCP server at this URL
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: Option<String>,
    /// The MCP servers of this configuration file: `mcpServers` or `servers`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// The server of that name in the file
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// The program that is the MCP server, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) program: Vec<String>,
}

/// Credentials that are sent with every request.
#[derive(Debug, Default, Args)]
pub(crate) struct Credentials {
    /// Send this header
    #[arg(long, value_name = "K: V")]
    pub(crate) header: Vec<String>,
    /// Send the bearer token that this environment variable holds
    #[arg(long, value_name = "VAR", conflicts_with = "bearer_file")]
    pub(crate) bearer_env: Option<String>,
    /// Send the bearer token that this file holds
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) bearer_file: Option<PathBuf>,
}

/// Credentials of the calls of an HTTP API.
#[derive(Debug, Default, Args)]
pub(crate) struct CallCredentials {
    #[command(flatten)]
    pub(crate) given: Credentials,
    /// Send what each operation asks for, be it a key, a password or a token, from environment variables: `PREFIX_API_KEY`,
    /// `PREFIX_USER` with `PREFIX_PASSWORD`, `PREFIX_TOKEN`, or `PREFIX_` and the name of a security scheme
    #[arg(long, value_name = "PREFIX")]
    pub(crate) credentials_env: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SnapshotArguments {
    #[command(flatten)]
    pub(crate) server: ServerArguments,
    #[command(flatten)]
    pub(crate) credentials: Credentials,
    /// Where to write: a file, a folder for one file a server, or - for standard output
    #[arg(short, long, value_name = "FILE|DIR", default_value = "-", value_hint = ValueHint::AnyPath)]
    pub(crate) output: PathBuf,
    /// Write nothing; show how the server differs from the snapshot, and fail if it does
    #[arg(long)]
    pub(crate) check: bool,
    /// Overwrite a file that is no snapshot
    #[arg(long, conflicts_with = "check")]
    pub(crate) force: bool,
    /// Timeout in seconds for each server
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,
}

#[derive(Debug, Args)]
pub(crate) struct CallArguments {
    /// An OpenAPI document: a file, a URL, or - for standard input. Or an ops.toml, a folder of documents, or the file of a
    /// configuration of MCP servers. With an MCP server (--url, --config or a command behind --), the file of its snapshot;
    /// without one, begin with the operation
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) spec: String,
    /// The operation: its name, its id, or 'METHOD path'
    pub(crate) operation: Option<String>,
    /// Properties of the input, typed by the operation's schema; body.name=VALUE for a nested property, several times
    /// for a list; NAME=@FILE for the bytes of a file, where the schema asks for bytes
    #[arg(value_name = "NAME=VALUE")]
    pub(crate) values: Vec<String>,
    /// The input, to which NAME=VALUE pairs are added
    #[arg(long, value_name = "JSON|@FILE|-")]
    pub(crate) input: Option<String>,
    /// Call below this URL instead of the servers that the document names
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,
    #[command(flatten)]
    pub(crate) credentials: CallCredentials,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
    /// Timeout in seconds. For a stream: timeout of its start and of each item
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,
    /// Print the data alone, without its envelope
    #[arg(long)]
    pub(crate) raw: bool,
    /// Print data that are text as they read: a string, or the blocks of text of an MCP tool; other data as --raw does
    #[arg(long, conflicts_with = "raw")]
    pub(crate) text: bool,
    /// Write the data alone to this file, or to standard output for -: bytes as they are, text as it reads, other data as
    /// JSON
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["raw", "text"])]
    pub(crate) output: Option<PathBuf>,
    /// What to do with a result that does not match its schema
    #[arg(long, value_enum, default_value_t = Policy::Repair)]
    pub(crate) policy: Policy,
}

impl CallArguments {
    /// What shows the operation instead of calling it.
    pub(crate) fn into_inspect(self) -> InspectArguments {
        let Self { spec, operation, server, credentials, .. } = self;
        // Else they are of a call, not of what is read to show the operation.
        let credentials = if server.is_given() { credentials.given } else { Credentials::default() };
        // What follows the tool of a server is its input; only a snapshot of the server stands before the tool.
        // A file that may be a configuration is no name of a tool, either.
        let is_file = is_config(&spec).unwrap_or(true);
        let is_tool = server.is_given() && !is_file && (operation.is_none() || !is_tools(&spec));
        let (spec, operation) = if is_tool { (None, Some(spec)) } else { (Some(spec), operation) };
        InspectArguments { spec, operation, choice: Choice::default(), server, credentials, json: false }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The program: a file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) script: String,
    /// An OpenAPI document whose operations it may call: a file or a URL; or an ops.toml, or a folder of documents
    #[arg(long, value_name = "SPEC", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) spec: Vec<String>,
    /// Call below this URL instead of the servers that the document names
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,
    #[command(flatten)]
    pub(crate) credentials: CallCredentials,
    #[command(flatten)]
    pub(crate) rules: Rules,
    /// Run only what changes nothing; print each other call, and answer it with an example of its result
    #[arg(long, conflicts_with = "journal")]
    pub(crate) dry_run: bool,
    /// Keep what has happened in this folder, so that the same command goes on where it was, after a question, a failed
    /// query or a crash, and makes no call twice; with other documents or another --base-url, it fails
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) journal: Option<PathBuf>,
    /// The value of the variable `input`
    #[arg(long, value_name = "JSON")]
    pub(crate) input: Option<String>,
    /// Time limit in seconds: for the program, for its processor time, and for each call
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,
}

/// What to do with a result that does not match its schema.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Policy {
    /// Convert values whose meaning is clear, and keep all others as they are, with warnings; the exit status is 0
    Repair,
    /// Make it fit, with a warning for each value that was made up
    Cast,
    /// Fail. What the schema does not declare is no mismatch: it is left out
    Strict,
}

impl From<Policy> for OutputPolicy {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Repair => Self::Repair,
            Policy::Cast => Self::Cast,
            Policy::Strict => Self::Strict,
        }
    }
}
