//! The arguments of `ops serve`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::{Credentials, Rules};

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// OpenAPI documents: files or URLs; files of snapshots and of configurations of MCP servers (`mcpServers`); and folders
    /// of all these; with --mock over HTTP, one document or snapshot: a file, a URL, or - for standard input
    #[arg(value_hint = ValueHint::AnyPath, required_unless_present = "config")]
    pub(crate) spec: Vec<String>,
    /// Serve MCP: to the host that starts this command (stdio), or at /mcp of the address of --http (http); the default is
    /// stdio, unless there is --http, or --mock with neither --tools nor --config
    #[arg(long, value_enum, value_name = "TRANSPORT")]
    pub(crate) mcp: Option<Transport>,
    /// Serve HTTP at this address, with the page /docs. Port 0 selects a free port
    #[arg(long, alias = "addr", value_name = "HOST:PORT")]
    pub(crate) http: Option<String>,
    /// What a model sees: a tool for each operation; or tools that find, describe and call them, or that run programs which
    /// call them. By default a tool for each, if there are fewer than 40, and otherwise tools that find them
    #[arg(long, value_enum)]
    pub(crate) tools: Option<ToolsChoice>,
    /// Respond with examples made from the schemas of the document. Over HTTP, the server validates each request against the
    /// document: credentials of the required kind must be present, and an invalid request gets status 422. `Prefer: code=404`
    /// asks for the response that the document describes for a status
    #[arg(long)]
    pub(crate) mock: bool,
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
    /// Leave out operations that change something
    #[arg(long)]
    pub(crate) read_only: bool,
    #[command(flatten)]
    pub(crate) rules: Rules,
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
    /// Print the MCP host configuration that starts this command, and exit
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
