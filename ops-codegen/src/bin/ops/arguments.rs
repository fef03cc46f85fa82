//! The command-line arguments of `ops`.

mod call;
mod jobs;
mod rules;
mod serve;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

pub(crate) use self::call::{
    CallArguments, CallCredentials, Credentials, RunArguments, ServerArguments, SnapshotArguments,
};
pub(crate) use self::jobs::{JobsArguments, JobsChoice, JobsCommand, JobsState};
pub(crate) use self::rules::Rules;
pub(crate) use self::serve::{ServeArguments, ToolsChoice, Transport};

const EXIT: &str = "\
Exit status:
  0  all went well
  1  the work failed: a file could not be written, or this command would overwrite a file that it did not write; `--check` found
     a difference; the call gave an error
  2  the command was not understood: an argument, an operation, or an input that does not fit
  3  a document could not be read, or is not an API document; the other documents of the folder were processed";

const DIFF_EXIT: &str = "\
A change breaks if the server of the new version may refuse what the old one allows in a request, if a response may not
fit the types generated from the old one, or if something that a call needs is gone: an operation, a parameter, a
property of a request, a status or content type of a success, a security scheme. New properties and values of enums break
no response: types keep them. A constructor that takes its values in another order breaks callers, too: they swap values,
and still compile if the values have one type.

No call fails if a declared error, an optional property of a response or the name of a schema is gone, so these changes
do not break. Code that names them does not compile with the new version: `--crate` shows its lines. A changed default
does not break either, but the server may use another value.

Exit status:
  0  nothing breaks callers
  1  something breaks callers
  2  a version could not be read, or the command was not understood";

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
    #[command(after_help = call::RUN)]
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
    #[command(after_help = jobs::JOBS)]
    Jobs(JobsArguments),
    /// Print a script that completes this command in a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

impl Command {
    /// Its name on the command line.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Generate(_) => "generate",
            Self::Inspect(_) => "inspect",
            Self::Call(_) => "call",
            Self::Run(_) => "run",
            Self::Serve(_) => "serve",
            Self::Diff(_) => "diff",
            Self::Add(_) => "add",
            Self::Update(_) => "update",
            Self::Snapshot(_) => "snapshot",
            Self::Jobs(_) => "jobs",
            Self::Completions { .. } => "completions",
        }
    }
}

/// The choice of operations.
#[derive(Debug, Default, Args)]
pub(crate) struct Choice {
    /// First part of the operations' ids. By default the name of the file, or the document's title for standard input and for
    /// a URL that ends in a usual name, such as openapi.json
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
    /// folder, an ops.toml, or - for standard input
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) old: String,
    /// The version that the server follows
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) new: String,
    /// First part of the operations' ids. By default the name of the old version's file, or its title, as for `ops generate`
    #[arg(long)]
    pub(crate) namespace: Option<String>,
    /// Show the lines of this crate's sources that name something that breaks or was removed
    #[arg(long = "crate", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) used_in: Option<PathBuf>,
    /// Print JSON instead of a line for each change
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AddArguments {
    /// An OpenAPI document or a snapshot of an MCP server: a URL or a file, which `ops update` fetches again
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
    /// An OpenAPI document or a snapshot of an MCP server: a file, a URL, or - for standard input. Or a folder of documents
    /// and operation specs, an ops.toml, or the file of a configuration of MCP servers. Leave it out if a server is named
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

#[cfg(test)]
mod tests;
