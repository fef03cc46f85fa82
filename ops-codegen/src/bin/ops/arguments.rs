//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use ops_runtime::registry::OutputPolicy;

const EXIT: &str = "\
Exit status:
  0  all went well
  1  the work failed: a file could not be written, or is there and was not made by this command; `--check` found a difference; the
     call gave an error
  2  the command was not understood: an argument, an operation, or an input that does not fit
  3  a document could not be read, or is no API document; the other documents of a folder were still taken";

const DIFF_EXIT: &str = "\
A change breaks if the server of the new version may refuse what the old one allows in a request, if a response may not
fit the types generated from the old one, or if something that callers name is gone. New properties and values of enums
break no response: types keep them.

Exit status:
  0  nothing breaks callers
  1  something breaks callers
  2  a version could not be read, or the command was not understood";

const JOBS: &str = "\
Environment:
  NATS_URL                    the server, unless --server names it; it may have a name and a password
  NATS_TOKEN                  a token to log in by, unless --token-env names another variable
  NATS_USER, NATS_PASSWORD    a name and a password to log in by

Exit status:
  0  all went well
  1  the server cannot be used, or a job was not changed
  2  the command was not understood, or there is no such queue";

const RUN: &str = "\
The program is the body of an async function: `return await ops.shop.showPet({ petId: 7 })`. It has
ops.NAMESPACE.OPERATION(input), input and console, and nothing else. In names, each character that is no letter, digit or _
is written as _. What it returns is printed as JSON.

Queries run. All other operations ask on the terminal before they run, unless a pattern says otherwise; of the patterns that
match an id, the most restrictive decides. Without a terminal, a call that asks ends the command.

Exit status:
  0  the program returned
  1  it failed, or it asks and there is no terminal
  2  the command was not understood
  3  a document could not be read, or is no API document";

/// Typed operations from API documents and MCP servers: generate Rust, look inside, call.
#[derive(Debug, Parser)]
#[command(name = "ops", version, after_help = EXIT)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a Rust module for each document, as a build script would, or declarations of TypeScript
    #[command(after_help = EXIT)]
    Generate(GenerateArguments),
    /// Show what would be generated, and all diagnostics of the document; or one operation in full
    #[command(after_help = EXIT)]
    Inspect(InspectArguments),
    /// Call an operation of a document or of an MCP server, without generating code
    #[command(after_help = EXIT)]
    Call(CallArguments),
    /// Run a JavaScript program that calls operations, in a sandbox
    #[command(after_help = RUN)]
    Run(RunArguments),
    /// Put APIs and MCP servers behind one MCP server, or HTTP server, or answer with examples
    #[command(after_help = EXIT)]
    Serve(ServeArguments),
    /// Show what changed between two versions of a document, and what of it breaks callers
    #[command(after_help = DIFF_EXIT)]
    Diff(DiffArguments),
    /// Fetch a document, and keep it beside ops.toml
    #[command(after_help = EXIT)]
    Add(AddArguments),
    /// Fetch the documents of ops.toml again, and show what changed
    #[command(after_help = EXIT)]
    Update(UpdateArguments),
    /// Save the tools of an MCP server, for `ops generate` and for build scripts
    #[command(after_help = EXIT)]
    Snapshot(SnapshotArguments),
    /// Show the jobs of durable calls on a NATS server, try dead letters again, and cancel
    #[command(after_help = JOBS)]
    Jobs(JobsArguments),
    /// Print a script that completes this command in a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// The choice of operations.
#[derive(Debug, Default, Args)]
pub(crate) struct Choice {
    /// The first part of the operations' ids; by default the name of the document's file
    #[arg(long)]
    pub(crate) namespace: Option<String>,
    /// Take only operations that match: an id or name, tag:NAME, a path, or 'METHOD path'; * is any text, ? any character
    #[arg(long, value_name = "PATTERN")]
    pub(crate) include: Vec<String>,
    /// Leave out operations that match, even if an --include matches them
    #[arg(long, value_name = "PATTERN")]
    pub(crate) exclude: Vec<String>,
    /// Generate inputs of operations that match so that they can send null for a property that may be absent, as PATCH can
    #[arg(long, value_name = "PATTERN")]
    pub(crate) explicit_null: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArguments {
    /// OpenAPI documents and snapshots of MCP servers: files, URLs, folders of documents and operation specs, or - for
    /// standard input; or an ops.toml, which names them, by default that of this folder
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) spec: Vec<String>,
    /// The language: modules of Rust, or one file .d.ts of all operations, for scripts and web clients
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    pub(crate) lang: Language,
    /// Where to write: a file that ends in .rs or .ts, a folder for one file of Rust a namespace, or - for standard output;
    /// by default what ops.toml says for Rust
    #[arg(short, long, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) choice: Choice,
    /// Write nothing; fail if a file is out of date (its layout does not count), or if its document is gone
    #[arg(long)]
    pub(crate) check: bool,
    /// Overwrite files that this command did not write
    #[arg(long, conflicts_with = "check")]
    pub(crate) force: bool,
}

/// What `ops generate` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// Modules of Rust
    Rust,
    /// Declarations of TypeScript
    Ts,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The version that callers were written for: an OpenAPI document or a snapshot of an MCP server; a file, a URL, a
    /// folder, or - for standard input
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) old: String,
    /// The version that the server follows
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) new: String,
    /// The first part of the operations' ids; by default the name of the old version's file
    #[arg(long)]
    pub(crate) namespace: Option<String>,
    /// Show the lines of this crate's sources that use what breaks
    #[arg(long = "crate", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) used_in: Option<PathBuf>,
    /// Print JSON instead of a line for each change
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AddArguments {
    /// An OpenAPI document or a snapshot of an MCP server: a URL or a file
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) source: String,
    /// The name in ops.toml, which is also that of the file; by default that of the source
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Overwrite another file of that name
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) credentials: Credentials,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateArguments {
    /// The document, by its name in ops.toml; by default all that have a source
    pub(crate) name: Option<String>,
    /// Write nothing; fail if a file would change
    #[arg(long)]
    pub(crate) check: bool,
    /// Overwrite a file that was changed since it was fetched
    #[arg(long, conflicts_with = "check")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) credentials: Credentials,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// An OpenAPI document, a snapshot of an MCP server, an ops.toml, or a configuration of MCP servers: a file, a URL, a
    /// folder of documents and operation specs, or - for standard input; omit it if a server is named
    #[arg(value_hint = ValueHint::AnyPath, required_unless_present_any = ["url", "config", "program"])]
    pub(crate) spec: Option<String>,
    /// Show this operation in full: its name, its id, or 'METHOD path'
    pub(crate) operation: Option<String>,
    #[command(flatten)]
    pub(crate) choice: Choice,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
    #[command(flatten)]
    pub(crate) credentials: Credentials,
    /// Print JSON instead of a table and messages
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct JobsArguments {
    #[command(subcommand)]
    pub(crate) command: JobsCommand,
    /// The NATS servers, joined by commas; by default those of `NATS_URL`, or one on this machine
    #[arg(long, global = true, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) server: Option<String>,
    /// What the names of the jobs' streams begin with
    #[arg(long, global = true, default_value = "ops")]
    pub(crate) prefix: String,
    /// Log in by the token that this environment variable holds
    #[arg(long, global = true, value_name = "VAR")]
    pub(crate) token_env: Option<String>,
    /// Wait no longer than this many seconds for the server
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) timeout: u64,
    /// Print JSON instead of a table
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// Show how many jobs each queue has, and how old the oldest is
    Queues,
    /// List jobs, those of each queue in the order in which they came
    List {
        #[command(flatten)]
        choice: JobsChoice,
        /// Only jobs of these states; by default those that are open, and dead letters
        #[arg(long, value_enum, value_name = "STATE")]
        state: Vec<JobsState>,
    },
    /// List dead letters with their last errors
    Dead {
        #[command(flatten)]
        choice: JobsChoice,
    },
    /// Show all of a job: its input, its attempts and its result
    Show {
        /// The id of the job
        job: String,
    },
    /// Try dead letters again, with all their attempts
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
    /// Remove dead letters for good
    Discard {
        /// The ids of the jobs
        #[arg(required = true)]
        jobs: Vec<String>,
    },
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
    /// Show at most so many
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
#[derive(Debug, Args)]
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
    /// Wait no longer than this many seconds for a server
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) timeout: u64,
}

#[derive(Debug, Args)]
pub(crate) struct CallArguments {
    /// An OpenAPI document, or a configuration of MCP servers: a file, a URL, or - for standard input; with an MCP server
    /// (--url, --config or a command behind --), its snapshot, or leave it out and begin with the operation
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) spec: String,
    /// The operation: its name, its id, or 'METHOD path'
    pub(crate) operation: Option<String>,
    /// Properties of the input, typed by the operation's schema; body.name=VALUE for a nested property, several times
    /// for a list
    #[arg(value_name = "NAME=VALUE")]
    pub(crate) values: Vec<String>,
    /// The input, to which NAME=VALUE pairs are added
    #[arg(long, value_name = "JSON|@FILE|-")]
    pub(crate) input: Option<String>,
    /// Call below this URL instead of the servers that the document names
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,
    #[command(flatten)]
    pub(crate) credentials: Credentials,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
    /// Wait no longer than this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) timeout: u64,
    /// Print the data alone, without its envelope
    #[arg(long)]
    pub(crate) raw: bool,
    /// Print data that are text as they read: a string, or the blocks of text of an MCP tool; other data as --raw does
    #[arg(long, conflicts_with = "raw")]
    pub(crate) text: bool,
    /// What to do with a result that does not match its schema
    #[arg(long, value_enum, default_value_t = Policy::Repair)]
    pub(crate) policy: Policy,
}

impl CallArguments {
    /// What shows the operation instead of calling it.
    pub(crate) fn into_inspect(self) -> InspectArguments {
        let Self { spec, operation, server, credentials, .. } = self;
        InspectArguments { spec: Some(spec), operation, choice: Choice::default(), server, credentials, json: false }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The program: a file, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) script: String,
    /// An OpenAPI document whose operations it may call: a file or a URL
    #[arg(long, value_name = "SPEC", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) spec: Vec<String>,
    /// Call below this URL instead of the servers that the document names
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,
    #[command(flatten)]
    pub(crate) credentials: Credentials,
    /// Run operations whose ids match without asking; * is any text
    #[arg(long, value_name = "PATTERN")]
    pub(crate) allow: Vec<String>,
    /// Ask before operations whose ids match
    #[arg(long, value_name = "PATTERN")]
    pub(crate) ask: Vec<String>,
    /// Refuse operations whose ids match
    #[arg(long, value_name = "PATTERN")]
    pub(crate) deny: Vec<String>,
    /// Run only queries; print each other call, and answer it with an example of its result
    #[arg(long, conflicts_with = "journal")]
    pub(crate) dry_run: bool,
    /// Keep what has happened in this folder, so that the same command goes on where it was, after a question or a
    /// crash, and makes no call twice
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) journal: Option<PathBuf>,
    /// The value of the variable `input`
    #[arg(long, value_name = "JSON")]
    pub(crate) input: Option<String>,
    /// Wait no longer than this many seconds for the program, and for each call
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) timeout: u64,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// OpenAPI documents, snapshots of MCP servers, configurations of MCP servers (`mcpServers`), and folders of them: files
    /// or URLs; with --mock over HTTP, one document, which may be - for standard input
    #[arg(value_hint = ValueHint::AnyPath, required_unless_present = "config")]
    pub(crate) spec: Vec<String>,
    /// Serve MCP: to the host that starts this command (stdio), or at /mcp of the address of --http (http); the default is
    /// stdio, unless there is --http, or --mock without --tools
    #[arg(long, value_enum, value_name = "TRANSPORT")]
    pub(crate) mcp: Option<Transport>,
    /// Be an HTTP server at this address, with the page /docs; port 0 for any that is free
    #[arg(long, alias = "addr", value_name = "HOST:PORT")]
    pub(crate) http: Option<String>,
    /// What a model sees: a tool for each operation; or tools that find, describe and call them, or that run programs which
    /// call them. By default a tool for each, if there are fewer than 40, and otherwise tools that find them
    #[arg(long, value_enum)]
    pub(crate) tools: Option<ToolsChoice>,
    /// Answer with examples made from the schemas of the document. Over HTTP, a request is held to the document: it needs
    /// credentials of the kind that its operation asks for, and a violation is answered with 422. `Prefer: code=404` asks
    /// for the response that the document describes for a status
    #[arg(long)]
    pub(crate) mock: bool,
    /// The first part of the operations' ids; by default the name of the document's file
    #[arg(long)]
    pub(crate) namespace: Option<String>,
    /// Take only operations that match: an id or name, tag:NAME, a path, or 'METHOD path'; * is any text, ? any character
    #[arg(long, value_name = "PATTERN")]
    pub(crate) include: Vec<String>,
    /// Leave out operations that match, even if an --include matches them
    #[arg(long, value_name = "PATTERN")]
    pub(crate) exclude: Vec<String>,
    /// Leave out operations that change something
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Do not ask before operations that match; by default, every operation that changes something is asked about
    #[arg(long, value_name = "PATTERN")]
    pub(crate) allow: Vec<String>,
    /// Ask before operations that match are called
    #[arg(long, value_name = "PATTERN")]
    pub(crate) ask: Vec<String>,
    /// Refuse calls of operations that match
    #[arg(long, value_name = "PATTERN")]
    pub(crate) deny: Vec<String>,
    /// Log each call to this file, one JSON object a line
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) audit: Option<PathBuf>,
    /// Keep in this folder what programs of models have done, so that one that waits goes on after a restart of the server,
    /// and makes no call twice
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) journal: Option<PathBuf>,
    /// Read documents, servers, credentials and rules from this file (TOML)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Call the document's operations below this URL instead of the servers that it names
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,
    #[command(flatten)]
    pub(crate) credentials: Credentials,
    /// Print the configuration by which an MCP host starts this very command, and do not serve
    #[arg(long)]
    pub(crate) print_config: bool,
}

/// How an MCP server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// By the host that starts the command
    Stdio,
    /// At /mcp over HTTP
    Http,
}

/// What a model sees of the operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolsChoice {
    /// A tool for each
    All,
    /// search, describe and call
    Search,
    /// search, describe and execute, which runs a program
    Code,
}

/// What to do with a result that does not match its schema.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Policy {
    /// Repair it if nothing has to be made up, with a warning for each repair
    Repair,
    /// Make it fit, with a warning for each value that was made up
    Cast,
    /// Fail
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

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use clap::{CommandFactory, Parser};

    use super::Arguments;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
    }

    /// The texts of the README and of all pages of the book, but the page of this command, which this test makes.
    fn pages() -> Vec<String> {
        let (mut texts, mut folders) = (Vec::new(), vec![root().join("docs/src")]);
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|it| it == "md") && !path.ends_with("reference/command.md") {
                    texts.push(std::fs::read_to_string(path).unwrap());
                }
            }
        }
        texts.push(std::fs::read_to_string(root().join("README.md")).unwrap());
        texts
    }

    #[test]
    fn each_command_of_the_pages_is_understood() {
        let mut count = 0;
        for page in pages() {
            // Lines of shell blocks are whole commands; in the text, a command may be only named.
            let lines = page.lines().filter(|line| line.starts_with("ops "));
            let lines: Vec<&str> = lines.map(|line| line.split(" #").next().unwrap()).collect();
            let spans = page.split('`').filter(|span| span.starts_with("ops ") && !span.contains('\n'));
            let spans: Vec<&str> =
                spans.filter(|span| !span.starts_with("ops help") && !lines.contains(span)).collect();
            for command in lines.into_iter().chain(spans) {
                count += 1;
                let words = words(command);
                match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                    ["ops", "--help"] => continue,
                    // Only named, perhaps with an option.
                    ["ops", name] => {
                        let found = Arguments::command().find_subcommand(name).is_some();
                        assert!(found, "`{command}`: no such subcommand");
                        continue;
                    }
                    ["ops", name, option] if option.starts_with("--") => {
                        let all = Arguments::command();
                        let found = all.find_subcommand(name).is_some_and(|command| {
                            command.get_arguments().any(|it| it.get_long() == option.strip_prefix("--"))
                        });
                        assert!(found, "`{command}`: no such option");
                        continue;
                    }
                    _ => {}
                }
                Arguments::try_parse_from(&words).unwrap_or_else(|error| panic!("`{command}`: {error}"));
                let own = words.iter().filter(|word| word.starts_with("examples/"));
                own.for_each(|path| assert!(root().join(path).exists(), "`{command}`: there is no {path}"));
            }
        }
        assert!(count > 40, "{count} commands");
    }

    /// The words of a command, of which some stand in single quotes.
    fn words(command: &str) -> Vec<String> {
        let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
        for c in command.chars() {
            match c {
                '\'' => quoted = !quoted,
                ' ' if !quoted => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
                c => word.push(c),
            }
        }
        words.extend((!word.is_empty()).then_some(word));
        words
    }

    /// The page of the book with all options; `UPDATE_GOLDEN=1` writes it.
    #[test]
    fn the_reference_has_every_option() {
        let mut text = String::from(
            "# The command\n\nMade from the command itself: what `ops --help` and `ops COMMAND --help` print.\n\n```text\n",
        );
        let mut command = Arguments::command().term_width(100);
        command.build();
        text.push_str(&command.render_long_help().to_string());
        text.push_str("```\n");
        let names: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
        for name in names.iter().filter(|name| *name != "help") {
            let sub = command.find_subcommand_mut(name).unwrap();
            text.push_str(&format!("\n## ops {name}\n\n```text\n{}```\n", sub.render_long_help()));
            let nested: Vec<String> = sub.get_subcommands().map(|it| it.get_name().to_owned()).collect();
            for of in nested.iter().filter(|of| *of != "help") {
                let help = sub.find_subcommand_mut(of).unwrap().render_long_help();
                text.push_str(&format!("\n### ops {name} {of}\n\n```text\n{help}```\n"));
            }
        }
        let text: String = text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect();
        let path = root().join("docs/src/reference/command.md");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == text, "{} is not what the command says: run the test with UPDATE_GOLDEN=1", path.display());
    }
}
