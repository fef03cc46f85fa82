//! The MCP servers on the command line.

use std::path::Path;
use std::time::Duration;

use ops_runtime::http::Auth;
use ops_runtime::mcp::{McpClient, McpConfig, McpServerConfig, Snapshot, is_tool_list};
use ops_runtime::{CallError, openapi};
use serde_json::Value;

use crate::arguments::{Credentials, ServerArguments};
use crate::credentials::variable;
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
        McpClient::connect(config).await.map_err(|error| match &self.name {
            Some(name) => Failure::Failed(format!("`{name}`: {}", error.message())),
            None => Failure::Failed(error.message().to_owned()),
        })
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

    /// True if there are credentials to protect.
    pub(crate) fn is_given(&self) -> bool {
        !self.header.is_empty() || self.bearer_env.is_some() || self.bearer_file.is_some()
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
pub(crate) fn is_config(file: &str) -> bool {
    let text = look_into(file);
    // An API's document lists servers, too, and may be large: few begin with anything but the version of OpenAPI.
    let first = text.trim_start().strip_prefix('{').map(str::trim_start).unwrap_or_default();
    let is_document = ["\"openapi\"", "\"swagger\""].iter().any(|key| first.starts_with(key));
    let holds = ["\"mcpServers\"", "\"servers\""].iter().any(|key| text.contains(key));
    holds && !is_document && McpConfig::from_json_with(&text, |_| None).is_ok() && !is_asyncapi(&text)
}

/// True for a document of `AsyncAPI`, whose servers are objects by their names, too. They are not MCP servers, so nothing connects
/// to them.
fn is_asyncapi(text: &str) -> bool {
    text.contains("\"asyncapi\"") && openapi::parse(text).is_ok_and(|value| value.get("asyncapi").is_some())
}

/// True if a file is a list of an MCP server's tools.
pub(crate) fn is_tools(file: &str) -> bool {
    holds_tools(&look_into(file))
}

/// True if a text is a list of an MCP server's tools.
pub(crate) fn holds_tools(text: &str) -> bool {
    text.contains("\"tools\"") && serde_json::from_str::<Value>(text).is_ok_and(|value| is_tool_list(&value))
}
