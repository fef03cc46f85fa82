//! The servers that a client connects to: set in code, or read from common configuration files.

mod file;
mod interpolate;
mod secrets;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::ask::{Answerer, Asks, Elicitation, ElicitationAnswer};
use crate::mcp::invalid;
use crate::{CallError, OutputPolicy, SpecRef};

/// The servers of a configuration file, by name.
///
/// It reads the `mcpServers` of Claude, Cursor, Windsurf and others, and the `servers` of VS Code:
///
/// ```
/// use ops_runtime::mcp::McpConfig;
///
/// let config = McpConfig::from_json(r#"{ "mcpServers": {
///     "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "${HOME:-/tmp}"] },
///     "issues": { "url": "https://mcp.example.com/mcp", "headers": { "Authorization": "Bearer ${ISSUES_TOKEN_UNSET}" } }
/// } }"#)?;
/// assert_eq!(config.names().collect::<Vec<_>>(), ["files", "issues"]);
/// // One server that cannot be configured does not stop the others.
/// assert!(config.server("files").is_ok());
/// assert!(config.server("issues").unwrap_err().message().contains("`ISSUES_TOKEN_UNSET` is not set"));
/// # Ok::<(), ops_runtime::CallError>(())
/// ```
///
/// It reads these keys of a server: `command`, `args`, `env`, `cwd`; `url` (`serverUrl`, `baseUrl`), `headers`, `auth`;
/// `type` or `transport`, `timeout` (milliseconds) and `disabled`. Others are kept: [`McpServerConfig::extra`]. In
/// every string `${NAME}` and `${env:NAME}` are environment variables, and `${NAME:-default}` need not be set; a default
/// holds no other variable. Errors and `Debug` show the name of a variable, never its value.
#[derive(Debug, Clone, Default)]
pub struct McpConfig {
    pub(super) servers: BTreeMap<String, Result<McpServerConfig, Wrong>>,
}

/// Why a server cannot be configured.
#[derive(Debug, Clone)]
pub(super) struct Wrong {
    pub(super) error: CallError,
    /// True if the configuration disables the server, which then need not be right.
    disabled: bool,
}

impl McpConfig {
    /// A configuration without servers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If the file can't be read, or those of [`from_json`](Self::from_json).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, CallError> {
        let path = path.as_ref();
        let named = |error: &dyn fmt::Display| CallError::execution(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
        Self::from_json(&text).map_err(|error| named(&error.message()))
    }

    /// Reads the text of a file, with the variables of this process's environment.
    ///
    /// # Errors
    /// If it is not a JSON object with `mcpServers` or `servers`. A mistake in one server is the error of [that
    /// server](Self::server).
    pub fn from_json(text: &str) -> Result<Self, CallError> {
        Self::from_json_with(text, |name| std::env::var(name).ok())
    }

    /// Reads the text of a file, with variables from a function.
    ///
    /// # Errors
    /// Those of [`from_json`](Self::from_json).
    pub fn from_json_with(text: &str, look_up: impl Fn(&str) -> Option<String>) -> Result<Self, CallError> {
        file::read(text, &look_up)
    }

    /// The value of the text of a file, for those who have to tell what the file is.
    ///
    /// # Errors
    /// If it is not JSON, with the comments and commas that editors allow.
    #[doc(hidden)]
    pub fn members(text: &str) -> Result<Value, CallError> {
        file::parse(text)
    }

    /// Adds a server, or replaces the one with this name.
    #[must_use]
    pub fn with_server(mut self, name: impl Into<String>, server: McpServerConfig) -> Self {
        self.servers.insert(name.into(), Ok(server));
        self
    }

    /// Puts the reason why a server is not used in its place.
    #[cfg(feature = "gateway")]
    pub(crate) fn with_refused(mut self, name: String, error: CallError) -> Self {
        self.servers.insert(name, Err(Wrong { error, disabled: false }));
        self
    }

    /// Changes every server, to give them handlers or limits that a file can't hold.
    #[must_use]
    pub fn map(mut self, mut change: impl FnMut(&str, McpServerConfig) -> McpServerConfig) -> Self {
        for (name, server) in &mut self.servers {
            if let Ok(server) = server {
                *server = change(name, server.clone());
            }
        }
        self
    }

    /// The names of all servers, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// The server with this name.
    ///
    /// # Errors
    /// If there is none, or if its configuration is invalid.
    pub fn server(&self, name: &str) -> Result<&McpServerConfig, CallError> {
        match self.servers.get(name) {
            Some(server) => server.as_ref().map_err(|wrong| wrong.error.clone()),
            None => Err(invalid(format!("there is no MCP server `{name}` in the configuration"))),
        }
    }

    /// True if the configuration disables the server of that name, whatever else is wrong with it.
    pub fn is_disabled(&self, name: &str) -> bool {
        match self.servers.get(name) {
            Some(Ok(server)) => server.disabled,
            Some(Err(wrong)) => wrong.disabled,
            None => false,
        }
    }
}

/// How to connect to one server, and what it may do.
///
/// ```
/// use std::time::Duration;
///
/// use ops_runtime::mcp::McpServerConfig;
///
/// let files = McpServerConfig::stdio("npx", ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"])
///     .with_namespace("files")
///     .with_timeout(Duration::from_secs(30));
/// let search = McpServerConfig::http("https://mcp.example.com/mcp").with_header("X-Api-Key", "k3y");
/// // What may be secret does not show.
/// assert!(!format!("{search:?}").contains("k3y"));
/// ```
#[derive(Clone)]
pub struct McpServerConfig {
    pub(super) target: Target,
    pub(crate) namespace: Option<String>,
    pub(super) timeout: Option<Duration>,
    pub(super) total_timeout: Option<Duration>,
    pub(super) connect_timeout: Duration,
    pub(super) max_message: usize,
    pub(super) max_list: usize,
    pub(super) max_waiting: usize,
    pub(super) policy: OutputPolicy,
    pub(super) disabled: bool,
    pub(super) operations: Vec<SpecRef>,
    pub(super) asks: Asks,
    pub(super) extra: Map<String, Value>,
    /// The variables that were substituted in the strings of a file, by name.
    pub(super) filled: Vec<(String, String)>,
    #[cfg(feature = "mcp-auth")]
    pub(super) oauth: Option<super::oauth::McpOAuth>,
}

/// The address of a server.
#[derive(Clone)]
pub(super) enum Target {
    Stdio(Stdio),
    Http(Http),
}

/// A server that is a child process.
#[derive(Clone, Default)]
pub(super) struct Stdio {
    pub(super) command: String,
    /// Shown in place of the command, if variables were substituted in it; the next field does the same for the
    /// directory.
    pub(super) shown_command: Option<String>,
    pub(super) shown_cwd: Option<String>,
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) inherit_env: bool,
    pub(super) cwd: Option<PathBuf>,
}

/// A server at a URL.
#[derive(Clone, Default)]
pub(super) struct Http {
    pub(super) url: String,
    /// Shown in place of the URL, if variables were substituted in it.
    pub(super) shown_url: Option<String>,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) bearer: Option<String>,
    /// The file asks for OAuth.
    #[cfg_attr(not(feature = "mcp-http"), expect(dead_code))]
    pub(super) oauth: bool,
}

impl McpServerConfig {
    /// Where its tools lead: its URL, or its command with the arguments, the variables and the folder.
    #[cfg(all(feature = "gateway", feature = "program"))]
    pub(crate) fn leads_to(&self) -> Value {
        match &self.target {
            Target::Http(http) => http.url.as_str().into(),
            Target::Stdio(Stdio { command, args, env, cwd, .. }) => {
                let cwd = cwd.as_ref().map(|cwd| cwd.to_string_lossy());
                serde_json::json!([command, args, env, cwd])
            }
        }
    }

    fn new(target: Target) -> Self {
        Self {
            target,
            namespace: None,
            timeout: Some(Duration::from_secs(300)),
            total_timeout: Some(Duration::from_secs(3600)),
            connect_timeout: Duration::from_secs(60),
            max_message: 64 * 1024 * 1024,
            max_list: 16 * 1024 * 1024,
            max_waiting: 16 * 1024 * 1024,
            policy: OutputPolicy::default(),
            disabled: false,
            operations: Vec::new(),
            asks: Asks::default(),
            extra: Map::new(),
            filled: Vec::new(),
            #[cfg(feature = "mcp-auth")]
            oauth: None,
        }
    }

    /// A server that runs as a child process and communicates over its standard input and output.
    ///
    /// It inherits only the environment variables that programs need to run, such as `PATH` and `HOME`, unless
    /// [`with_inherited_env`](Self::with_inherited_env) is called.
    pub fn stdio<A: Into<String>>(command: impl Into<String>, args: impl IntoIterator<Item = A>) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self::new(Target::Stdio(Stdio { command: command.into(), args, ..Stdio::default() }))
    }

    /// A server at a URL, which speaks streamable HTTP (feature `mcp-http`).
    pub fn http(url: impl Into<String>) -> Self {
        Self::new(Target::Http(Http { url: url.into(), ..Http::default() }))
    }

    /// Sets a variable of the child's environment; a server at a URL has none.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Target::Stdio(stdio) = &mut self.target {
            stdio.env.insert(name.into(), value.into());
        }
        self
    }

    /// Passes all of this process's environment to the child, including secrets.
    #[must_use]
    pub fn with_inherited_env(mut self) -> Self {
        if let Target::Stdio(stdio) = &mut self.target {
            stdio.inherit_env = true;
        }
        self
    }

    /// Sets the directory that the child runs in.
    #[must_use]
    pub fn with_cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        if let Target::Stdio(stdio) = &mut self.target {
            stdio.cwd = Some(directory.into());
        }
        self
    }

    /// Sends a header with every request; a child process gets none.
    ///
    /// Those that the client sets itself, such as `Accept` and `Content-Type`, stay as it sets them. A token of
    /// [`with_bearer`](Self::with_bearer) or OAuth takes the place of an `Authorization` header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Target::Http(http) = &mut self.target {
            http.headers.insert(name.into(), value.into());
        }
        self
    }

    /// Sends a bearer token with every request.
    #[must_use]
    pub fn with_bearer(mut self, token: impl Into<String>) -> Self {
        if let Target::Http(http) = &mut self.target {
            http.bearer = Some(token.into());
        }
        self
    }

    /// Gets tokens by OAuth 2.1.
    #[cfg(feature = "mcp-auth")]
    #[must_use]
    pub fn with_oauth(mut self, oauth: super::oauth::McpOAuth) -> Self {
        self.oauth = Some(oauth);
        self
    }

    /// Sets the namespace of the tools' operations. By default it is the name in the configuration, or else the
    /// server's own name. Dots become underscores, because a namespace has none.
    #[must_use]
    pub fn with_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets how long a call may go without a response or progress from the server: five minutes by default, `None` for
    /// no limit. The user's time to answer the server does not count.
    #[must_use]
    pub fn with_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// Sets how long a call may take in total, even with progress: an hour by default, `None` for no limit.
    #[must_use]
    pub fn with_total_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.total_timeout = timeout.into();
        self
    }

    /// Sets the timeouts for connecting and for each listing of the tools: a minute each by default.
    #[must_use]
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the limit of a message of the server, in bytes; 64 MiB by default.
    #[must_use]
    pub fn with_max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }

    /// Sets the limit of all pages of the list of tools together, in bytes; 16 MiB by default. A JSON value counts for
    /// at least 32 bytes.
    #[must_use]
    pub fn with_max_list(mut self, bytes: usize) -> Self {
        self.max_list = bytes;
        self
    }

    /// Sets how many bytes may wait to be read by a child process; 16 MiB by default. Calls wait while there is no
    /// room. If the child sends pings meanwhile, reading from it pauses; if it then reads nothing for ten seconds, it
    /// is terminated.
    #[must_use]
    pub fn with_max_waiting(mut self, bytes: usize) -> Self {
        self.max_waiting = bytes;
        self
    }

    /// Sets what happens to results that do not match their schema. Operations that are missing or differ at the server
    /// are an error under [`OutputPolicy::Strict`], otherwise a diagnostic.
    #[must_use]
    pub fn with_policy(mut self, policy: OutputPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the operations of generated code that the server must have, which is checked on every connection.
    #[must_use]
    pub fn with_operations<S: Into<SpecRef>>(mut self, specs: impl IntoIterator<Item = S>) -> Self {
        self.operations.extend(specs.into_iter().map(Into::into));
        self
    }

    /// Lets the server ask the user: `answer` fills in the form, or has the page opened. By default the server is told
    /// that it cannot ask, and its questions are declined. The future is dropped when the server withdraws its question, or
    /// forgets the session, so it must not block its thread.
    #[must_use]
    pub fn with_elicitation<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(Elicitation) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ElicitationAnswer> + Send + 'static,
    {
        self.asks.elicitation = Some(Answerer(Arc::new(move |request| Box::pin(answer(request)))));
        self
    }

    /// Lets the server ask a language model: `answer` takes the parameters of `sampling/createMessage` and returns its
    /// result, both as JSON (MCP specification, `CreateMessageRequest`). Refused by default.
    #[must_use]
    pub fn with_sampling<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, CallError>> + Send + 'static,
    {
        self.asks.sampling = Some(Answerer(Arc::new(move |params| Box::pin(answer(params)))));
        self
    }

    /// Sets the directories in which the server should work, as `file://` URIs.
    #[must_use]
    pub fn with_roots<U: Into<String>>(mut self, uris: impl IntoIterator<Item = U>) -> Self {
        self.asks.roots = Some(uris.into_iter().map(Into::into).collect());
        self
    }

    /// True if the configuration disables the server.
    pub fn is_disabled(&self) -> bool {
        self.disabled
    }

    /// True if the configuration asks for OAuth, and [`with_oauth`](Self::with_oauth) has not been called.
    #[cfg(feature = "mcp-auth")]
    pub fn wants_oauth(&self) -> bool {
        matches!(&self.target, Target::Http(http) if http.oauth) && self.oauth.is_none()
    }

    /// True for a server at a URL that gets no token, no user in the URL, and no headers, which could be credentials. Commands
    /// then advise to set some.
    #[doc(hidden)]
    pub fn lacks_credentials(&self) -> bool {
        let Target::Http(http) = &self.target else { return false };
        http.bearer.is_none() && http.headers.is_empty() && !http.url.contains('@')
    }

    /// The keys of the configuration that have no meaning here, such as `description`.
    pub fn extra(&self) -> &Map<String, Value> {
        &self.extra
    }
}

impl fmt::Debug for McpServerConfig {
    /// Arguments, values of variables and headers, and everything after the host of a URL may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("McpServerConfig");
        match &self.target {
            Target::Stdio(stdio) => debug
                .field("command", &stdio.shown())
                .field("args", &stdio.args.len())
                .field("env", &stdio.env.keys().collect::<Vec<_>>())
                .field("cwd", &stdio.shown_cwd.as_ref().map(PathBuf::from).or_else(|| stdio.cwd.clone())),
            Target::Http(http) => {
                debug.field("host", &http.host()).field("headers", &http.headers.keys().collect::<Vec<_>>())
            }
        };
        debug
            .field("namespace", &self.namespace)
            .field("timeout", &self.timeout)
            .field("disabled", &self.disabled)
            .field("extra", &self.extra.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Stdio {
    /// The command in a form without secrets.
    pub(super) fn shown(&self) -> &str {
        self.shown_command.as_deref().unwrap_or(&self.command)
    }
}

impl Http {
    /// The host of the URL with its port, the only part without secrets. Variables are not substituted.
    pub(super) fn host(&self) -> &str {
        let url = self.shown_url.as_deref().unwrap_or(&self.url);
        let after = url.split_once("://").map_or(url, |(_, after)| after);
        let authority = after.split(['/', '?', '#']).next().unwrap_or_default();
        authority.rsplit_once('@').map_or(authority, |(_, host)| host)
    }
}

#[cfg(test)]
mod tests;
