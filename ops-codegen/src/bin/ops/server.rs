//! The MCP servers on the command line.

use std::path::Path;
use std::time::Duration;

use ops_runtime::http::Auth;
use ops_runtime::mcp::{McpClient, McpConfig, McpServerConfig, Snapshot, is_tool_list};
use ops_runtime::{CallError, openapi};
use serde_json::Value;

use crate::arguments::{Credentials, ServerArguments};
use crate::credentials::{Lack, variable};
use crate::failure::Failure;
use crate::modules::{is_url, shown};
use crate::stream::{is_stream, label, look_into, read_stream};

/// Why a file of servers uses no credentials from the command line.
pub(crate) const OF_FILE: &str = "the file has those of its servers";

/// A server, and its name in a configuration file.
pub(crate) struct Server {
    pub(crate) name: Option<String>,
    /// What is wrong with it in the file stops only who connects to it.
    config: Result<McpServerConfig, CallError>,
}

impl Server {
    /// Connects, within that many seconds.
    pub(crate) async fn connect(&self, timeout: u64) -> Result<McpClient, Failure> {
        let timeout = Duration::from_secs(timeout);
        let config = self.config.clone().map_err(misconfigured)?;
        let mut config = config.with_connect_timeout(timeout).with_total_timeout(timeout);
        if let Some(namespace) = self.namespace() {
            config = config.with_namespace(namespace);
        }
        McpClient::connect(config).await.map_err(|error| {
            let message = match &self.name {
                Some(name) => format!("`{name}`: {}", error.message()),
                None => error.message().to_owned(),
            };
            self.lack().beside(&error, Failure::Failed(message))
        })
    }

    /// The advice if the server refuses a request for want of credentials.
    pub(crate) fn lack(&self) -> Lack {
        match &self.name {
            _ if !self.config.as_ref().is_ok_and(McpServerConfig::lacks_credentials) => Lack::default(),
            Some(_) => Lack::of_server_in_file(),
            None => Lack::of_request(),
        }
    }

    /// Asks for the tools, within that many seconds.
    pub(crate) async fn snapshot(&self, timeout: u64) -> Result<Snapshot, Failure> {
        let client = self.connect(timeout).await?;
        let snapshot = client.snapshot();
        client.close().await;
        Ok(snapshot)
    }

    /// The name as a namespace, which names files as well.
    pub(crate) fn namespace(&self) -> Option<String> {
        self.name.as_deref().map(namespace)
    }

    /// Its name in messages.
    pub(crate) fn label(&self) -> &str {
        self.name.as_deref().unwrap_or("the server")
    }
}

impl ServerArguments {
    /// True if a server is named.
    pub(crate) fn is_given(&self) -> bool {
        self.url.is_some() || self.config.is_some() || !self.program.is_empty()
    }

    /// Refuses the name of a server where a document is read, which has none.
    pub(crate) fn refuse_name(&self, document: &str) -> Result<(), Failure> {
        match &self.server {
            Some(_) => {
                let document = shown(document);
                let message = format!("`--server` names a server of a configuration file, and `{document}` is none");
                Err(Failure::Usage(message))
            }
            None => Ok(()),
        }
    }

    /// The named servers; for a file, those that are enabled.
    pub(crate) fn servers(&self, credentials: &Credentials) -> Result<Vec<Server>, Failure> {
        let ways = [self.url.is_some(), self.config.is_some(), !self.program.is_empty()];
        if ways.iter().filter(|way| **way).count() != 1 {
            let message = "name one server: by `--url URL`, `--config FILE`, or its command behind `--`";
            return Err(Failure::Usage(message.to_owned()));
        }
        if let Some(file) = &self.config {
            credentials.refuse(OF_FILE)?;
            return from_file(file, self.server.as_deref());
        }
        if !self.program.is_empty() {
            credentials.refuse("a program takes its own, from its environment say")?;
        }
        if self.server.is_some() {
            return Err(Failure::Usage("`--server` names a server of the file that `--config` names".to_owned()));
        }
        let config = match (&self.url, self.program.split_first()) {
            (Some(url), _) if !is_url(url) => {
                return Err(Failure::Usage(format!("`{url}` is no URL: write `https://...`")));
            }
            (Some(url), _) => credentials.on(McpServerConfig::http(url))?,
            // A command on the command line should run as it does in the shell.
            (None, Some((program, arguments))) => McpServerConfig::stdio(program, arguments).with_inherited_env(),
            (None, None) => return Ok(Vec::new()),
        };
        Ok(vec![Server { name: None, config: Ok(config) }])
    }
}

impl Credentials {
    /// The headers, by name.
    pub(crate) fn headers(&self) -> Result<Vec<(&str, &str)>, Failure> {
        let headers = self.header.iter().map(|header| {
            // The message does not show the header: its value may be a secret.
            let parts = header.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
            parts.ok_or_else(|| Failure::Usage("a `--header` has no colon: write `--header 'Name: value'`".to_owned()))
        });
        headers.collect()
    }

    /// The bearer token.
    pub(crate) fn bearer(&self) -> Result<Option<String>, Failure> {
        let token = match (&self.bearer_env, &self.bearer_file) {
            (Some(name), _) => Some(variable(name).map_err(Failure::Usage)?.ok_or_else(|| {
                Failure::Usage(format!("the environment variable `{name}` is not set: set it to the token"))
            })?),
            (_, Some(path)) => Some(std::fs::read_to_string(path).map_err(|error| {
                Failure::Usage(format!("the token cannot be read from `{}`: {error}", path.display()))
            })?),
            _ => None,
        };
        let Some(token) = token else { return Ok(None) };
        match token.trim() {
            "" => Err(Failure::Usage(format!("{} is empty: it should hold the token", self.place()))),
            token => Ok(Some(token.to_owned())),
        }
    }

    /// Where the token is, in messages.
    fn place(&self) -> String {
        match (&self.bearer_env, &self.bearer_file) {
            (Some(name), _) => format!("the environment variable `{name}`"),
            (_, Some(path)) => format!("`{}`", path.display()),
            _ => "the token".to_owned(),
        }
    }

    /// The token for HTTP clients.
    pub(crate) fn auth(&self) -> Result<Option<Auth>, Failure> {
        Ok(self.bearer()?.map(Auth::bearer))
    }

    /// Refuses credentials that would be sent nowhere.
    pub(crate) fn refuse(&self, why: &str) -> Result<(), Failure> {
        match self.is_given() {
            true => {
                Err(Failure::Usage(format!("`--header`, `--bearer-env` and `--bearer-file` have no use here: {why}")))
            }
            false => Ok(()),
        }
    }

    /// The advice if a server refuses a request for want of credentials.
    pub(crate) fn lack(&self) -> Lack {
        if self.is_given() { Lack::default() } else { Lack::of_request() }
    }

    /// True if there are credentials to protect.
    pub(crate) fn is_given(&self) -> bool {
        !self.header.is_empty() || self.has_bearer()
    }

    /// True if there is a token.
    pub(crate) fn has_bearer(&self) -> bool {
        self.bearer_env.is_some() || self.bearer_file.is_some()
    }

    fn on(&self, mut config: McpServerConfig) -> Result<McpServerConfig, Failure> {
        for (name, value) in self.headers()? {
            config = config.with_header(name, value);
        }
        Ok(match self.bearer()? {
            Some(token) => config.with_bearer(token),
            None => config,
        })
    }
}

/// The namespace of a server by its name.
pub(crate) fn namespace(name: &str) -> String {
    let clean = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
    name.chars().map(clean).collect()
}

/// The enabled servers of a file, or the one of that name.
pub(crate) fn from_file(file: &Path, wanted: Option<&str>) -> Result<Vec<Server>, Failure> {
    let file = match file.to_str().filter(|file| is_stream(file)) {
        Some(stream) => McpConfig::from_json(&read_stream(stream)?)
            .map_err(|error| Failure::Usage(format!("{}: {}", label(stream), error.message())))?,
        None => McpConfig::from_file(file).map_err(misconfigured)?,
    };
    let names: Vec<&str> = match wanted {
        Some(name) => vec![name],
        None => file.names().filter(|name| !file.is_disabled(name)).collect(),
    };
    let server = |name: &str| Server { name: Some(name.to_owned()), config: file.server(name).cloned() };
    let servers: Vec<Server> = names.into_iter().map(server).collect();
    match servers.as_slice() {
        [] => Err(Failure::Usage("the file names no server that is in use".to_owned())),
        [Server { config: Err(error), .. }] => Err(misconfigured(error.clone())),
        _ => Ok(servers),
    }
}

/// The failure of a wrong configuration.
fn misconfigured(error: CallError) -> Failure {
    Failure::Usage(error.message().to_owned())
}

/// True if a file is a configuration of MCP servers.
///
/// # Errors
/// Those of [`holds_config`]. And if it is a configuration that comes by a pipe: its commands run only if the user has
/// called it one, by `--config`.
pub(crate) fn is_config(file: &str) -> Result<bool, Failure> {
    match holds_config(&look_into(file)) {
        Ok(true) if is_stream(file) => {
            let told = "names MCP servers, and nothing that comes by a pipe is started unasked";
            Err(Failure::Usage(format!("`{}` {told}: pass it by `--config {file}`", label(file))))
        }
        Ok(is_config) => Ok(is_config),
        Err(told) => Err(Failure::Usage(format!("`{}` {told}", label(file)))),
    }
}

/// What lists servers in a configuration.
const SERVERS: [&str; 2] = ["mcpServers", "servers"];

/// What says at the top of a document of an API in which version it is written.
const VERSIONS: [&str; 3] = ["openapi", "swagger", "asyncapi"];

/// The objects at the top of documents, and of specs of operations, that no configuration has.
const PARTS: [&str; 4] = ["info", "paths", "webhooks", "inputSchema"];

/// True if a text is a configuration of MCP servers: an object that lists them in an object, and has nothing of a document.
/// Its commands are run, so only this decides it.
///
/// # Errors
/// If the text has members of a configuration and of a document. It may be a stranger's document, so no server is started.
pub(crate) fn holds_config(text: &str) -> Result<bool, String> {
    // The servers of most documents are a list: those are not parsed once more.
    let is_elsewhere = |key: &str| starts(text, key).iter().all(|start| *start == Some('['));
    if SERVERS.into_iter().all(is_elsewhere) {
        return Ok(false);
    }
    let members = McpConfig::members(text).unwrap_or_default();
    let servers = SERVERS.into_iter().find(|key| members.get(*key).is_some());
    let Some(servers) = servers.filter(|key| members.get(*key).is_some_and(Value::is_object)) else {
        return Ok(false);
    };
    // The reader of documents takes a text with comments for YAML, and may find other members in it.
    let values = [openapi::parse(text).unwrap_or_default(), members];
    let has = |key: &str| values.iter().any(|value| value.get(key).is_some());
    let is_object = |key: &str| values.iter().any(|value| value.get(key).is_some_and(Value::is_object));
    let part = || PARTS.into_iter().find(|key| is_object(key));
    let tools = || values.iter().any(is_tool_list).then_some("tools");
    match VERSIONS.into_iter().find(|key| has(key)).or_else(part).or_else(tools) {
        None => Ok(true),
        // The servers of these documents are in an object, too.
        Some("asyncapi") if !has("mcpServers") => Ok(false),
        Some(key) => Err(format!(
            "may be a document, by its `{key}`, and a configuration of MCP servers, by its `{servers}`, whose commands would \
             run: remove the one that is not meant"
        )),
    }
}

/// The first characters of what stands behind a name in a text of JSON; `None` where that is no value.
fn starts(text: &str, name: &str) -> Vec<Option<char>> {
    let start = |rest: &str| rest.trim_start().strip_prefix(':')?.trim_start().chars().next();
    text.split(&format!("\"{name}\"")).skip(1).map(start).collect()
}

/// True if a file is a list of an MCP server's tools.
pub(crate) fn is_tools(file: &str) -> bool {
    holds_tools(&look_into(file))
}

/// True if a text is a list of an MCP server's tools.
pub(crate) fn holds_tools(text: &str) -> bool {
    text.contains("\"tools\"") && serde_json::from_str::<Value>(text).is_ok_and(|value| is_tool_list(&value))
}
