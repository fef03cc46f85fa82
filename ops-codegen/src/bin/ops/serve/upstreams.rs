//! The upstreams of `ops serve`: documents, each with its client, and MCP servers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ops_codegen::folder::check_namespace;
use ops_runtime::gateway::GatewayBuilder;
use ops_runtime::http::{Auth, HttpClient, HttpConfig, TokenExchange};
use ops_runtime::mcp::McpConfig;
use ops_runtime::spec::Diagnostic;

use super::config::{Api, CallerToken, Config, Exchange};
use super::folder::{self, Document};
use crate::arguments::ServeArguments;
use crate::failure::Failure;
use crate::modules::is_url;
use crate::report::Reporter;
use crate::server::{is_config, namespace};
use crate::stream::is_stream;

/// Tells the servers that this command starts which files of servers have led to them: one of these files may start
/// this command again, which would start its servers again, without end.
const LED_BY: &str = "OPS_SERVERS_OF";

/// What is behind a gateway.
pub(super) struct Upstreams {
    pub(super) documents: Vec<Served>,
    pub(super) servers: McpConfig,
}

/// A document behind a gateway.
pub(super) struct Served {
    /// A file or a URL.
    pub(super) location: String,
    /// The folder within which its references are followed; `None` for its own folder.
    within: Option<PathBuf>,
    client: HttpConfig,
}

impl Served {
    /// Adds the document to a gateway. The operations of a mock return examples.
    pub(super) fn add_to(self, builder: GatewayBuilder, is_mock: bool) -> GatewayBuilder {
        let Self { location, within, client } = self;
        let builder =
            if is_mock { builder.with_mock(location, client) } else { builder.with_document(location, client) };
        within.into_iter().fold(builder, GatewayBuilder::within)
    }
}

impl Upstreams {
    /// True if all operations are known when the documents are read, and do not change.
    pub(super) fn is_all(&self) -> bool {
        self.servers.names().next().is_none() && !self.documents.iter().any(|document| is_url(&document.location))
    }

    /// The namespaces of the MCP servers, in lower case.
    pub(super) fn connected(&self) -> BTreeSet<String> {
        self.servers.names().map(|name| namespace(name).to_lowercase()).collect()
    }

    /// The upstreams of the command and the configuration; without secrets if nothing is to be called.
    pub(super) fn of(arguments: &ServeArguments, config: &Config, has_secrets: bool) -> Result<Self, Failure> {
        let mut documents = Vec::new();
        for (namespace, api) in &config.apis {
            let refused = |told: String| config.refused(&format!("apis.{namespace}"), &told);
            check_namespace(namespace).map_err(|error| refused(error.to_string()))?;
            let client = client(config, namespace, api, has_secrets)?;
            check(&client).map_err(refused)?;
            documents.push(Served { location: config.location(&api.spec), within: None, client });
        }
        let (mut named, configurations) = sources(&arguments.spec)?;
        let own = config.mcp.config.as_ref().map(|file| config.path(file));
        let files: Vec<PathBuf> = own.into_iter().chain(configurations.into_iter().map(PathBuf::from)).collect();
        let servers = files.iter().try_fold(McpConfig::new(), |servers, file| merged(servers, file))?;
        let taken = config.apis.keys().cloned().chain(servers.names().map(namespace));
        tell_apart(&mut named, taken.map(|name| name.to_lowercase()).collect());
        documents.extend(clients(arguments, named, has_secrets)?);
        Ok(Self { documents, servers: led_by(servers, &files)? })
    }
}

/// The servers, which are told the files that name them.
///
/// # Errors
/// If one of the files has led to this command itself.
fn led_by(servers: McpConfig, files: &[PathBuf]) -> Result<McpConfig, Failure> {
    let mut all: Vec<PathBuf> =
        std::env::var_os(LED_BY).iter().flat_map(|paths| std::env::split_paths(paths).collect::<Vec<_>>()).collect();
    for file in files {
        let whole = file.canonicalize().unwrap_or_else(|_| file.clone());
        if all.contains(&whole) {
            let message = format!(
                "`{}` names a server that is this very command, which reads that file: it would start itself without end. \
                 Leave it out of the file, or name the other servers in a file of their own",
                // Without its folder: the whole path is in the environment, so the parent process would redact it as a
                // secret.
                file.file_name().unwrap_or(file.as_os_str()).display()
            );
            return Err(Failure::Usage(message));
        }
        all.push(whole);
    }
    // A path that contains the separator of paths cannot be passed.
    let tellable = all.iter().filter(|path| std::env::join_paths([path]).is_ok());
    let told = std::env::join_paths(tellable).ok().and_then(|told| told.into_string().ok()).unwrap_or_default();
    Ok(servers.map(|_, server| server.with_env(LED_BY, told.clone())))
}

/// Refuses settings that cannot be used, before a document is read: it is not the document that is wrong.
fn check(client: &HttpConfig) -> Result<(), String> {
    HttpClient::new(client.clone()).map(drop).map_err(|error| error.message().to_owned())
}

/// The client of an API of the configuration, perhaps without its secrets.
fn client(config: &Config, namespace: &str, api: &Api, has_secrets: bool) -> Result<HttpConfig, Failure> {
    let mut client = HttpConfig::new().with_namespace(namespace);
    if let Some(url) = &api.base_url {
        client = client.with_base_url(url);
    }
    if let Some(seconds) = api.timeout {
        client = client.with_timeout(Duration::from_secs(seconds.get()));
    }
    if api.token.is_some() && api.caller_token.is_some() {
        let message = format!("`{namespace}` has `token` and `caller-token`, but a request has one token: choose one");
        return Err(Failure::Usage(message));
    }
    if !has_secrets {
        return Ok(client);
    }
    let secret = |at: &str, from| config.secret(&format!("apis.{namespace}.{at}"), from);
    if let Some(token) = &api.token {
        client = client.with_auth(Auth::bearer(secret("token", token)?));
    }
    for (scheme, from) in &api.credentials {
        client = client.with_credentials(scheme, Auth::secret(secret(&format!("credentials.{scheme}"), from)?));
    }
    for (name, from) in &api.headers {
        client = client.with_header(name, secret(&format!("headers.{name}"), from)?.expose());
    }
    match &api.caller_token {
        Some(CallerToken::PassOn) => Ok(client.with_auth(Auth::pass_on())),
        Some(CallerToken::Exchange(exchange)) => {
            Ok(client.with_auth(Auth::exchange(exchanged(config, namespace, exchange)?)))
        }
        None => Ok(client),
    }
}

/// The exchange of callers' tokens that an API of the configuration asks for.
fn exchanged(config: &Config, namespace: &str, said: &Exchange) -> Result<TokenExchange, Failure> {
    let place = format!("apis.{namespace}.caller-token.exchange.client-secret");
    let mut exchange = TokenExchange::new(&said.token_url);
    exchange = match (&said.client_id, &said.client_secret) {
        (Some(id), Some(secret)) => exchange.with_client(id, config.secret(&place, secret)?),
        (Some(id), None) => exchange.with_parameter("client_id", id),
        (None, None) => exchange,
        (None, Some(_)) => {
            let message = format!("the exchange of `{namespace}` has `client-secret`, but no `client-id`");
            return Err(Failure::Usage(message));
        }
    };
    if let Some(audience) = &said.audience {
        exchange = exchange.with_audience(audience);
    }
    if let Some(resource) = &said.resource {
        exchange = exchange.with_resource(resource);
    }
    Ok(match &said.scopes {
        Some(scopes) => exchange.with_scopes(scopes),
        None => exchange,
    })
}

/// The documents on the command line, each with its client.
///
/// Credentials of the command line are for one document. Otherwise they come from the environment: those of the document
/// `github` from `GITHUB_TOKEN` and the like.
fn clients(arguments: &ServeArguments, documents: Vec<Document>, has_secrets: bool) -> Result<Vec<Served>, Failure> {
    let is_for_one = arguments.credentials.is_given() || arguments.base_url.is_some() || arguments.namespace.is_some();
    if is_for_one && documents.len() != 1 {
        let hint = match documents.len() {
            0 => {
                "the command line names none: a file for `--config` has those of its APIs, and an MCP server has its own"
            }
            _ => "there are several: name them, each with its own, in a file for `--config`",
        };
        return Err(Failure::Usage(format!(
            "`--namespace`, `--base-url` and credentials are for one document, and {hint}"
        )));
    }
    documents
        .into_iter()
        .map(|Document { location, namespace, within }| {
            let mut client = HttpConfig::new();
            if let Some(namespace) = arguments.namespace.as_ref().or(namespace.as_ref().map(|own| &own.name)) {
                client = client.with_namespace(namespace);
            }
            if let Some(url) = &arguments.base_url {
                client = client.with_base_url(url);
            }
            for (name, value) in arguments.credentials.headers()? {
                client = client.with_header(name, value);
            }
            if has_secrets && let Some(auth) = arguments.credentials.auth()? {
                client = client.with_auth(auth);
            }
            check(&client).map_err(Failure::Usage)?;
            Ok(Served { location, within, client })
        })
        .collect()
}

/// The documents and the configurations of MCP servers among the arguments, those in folders included.
///
/// Reports the files of folders that are neither.
fn sources(specs: &[String]) -> Result<(Vec<Document>, Vec<String>), Failure> {
    let (mut documents, mut configurations, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for spec in specs {
        if is_stream(spec) {
            let message = "can be read only once, and a gateway reads its documents itself: name a file or a URL";
            return Err(Failure::Usage(format!("`{spec}` {message}")));
        }
        if !is_url(spec) && Path::new(spec).is_dir() {
            let found = folder::read(spec)?;
            documents.extend(found.documents);
            configurations.extend(found.configurations);
            others.extend(found.others);
        } else if !is_url(spec) && is_config(spec)? {
            configurations.push(spec.clone());
        } else {
            documents.push(Document::new(spec.clone()));
        }
    }
    Reporter::default().print_list(&others);
    Ok((documents, configurations))
}

/// Gives each document in a subfolder a unique namespace. The others are named when they are read.
fn tell_apart(documents: &mut [Document], mut taken: BTreeSet<String>) {
    let mut longer = Vec::new();
    for Document { location, namespace, .. } in documents {
        let Some(namespace) = namespace else { continue };
        let wanted = namespace.name.clone();
        let mut number = 2;
        while !taken.insert(namespace.name.to_lowercase()) {
            namespace.name = format!("{wanted}_{number}");
            number += 1;
        }
        if namespace.name != namespace.short {
            // Patterns and credentials for the short name would not apply to it.
            let message = format!("`{}` would be the namespace of this document and of another", namespace.short);
            let told = format!("this one has the namespace `{}`", namespace.name);
            longer.push(Diagnostic::warning("", message).with_help(told).with_document(location.as_str()));
        }
    }
    Reporter::default().print_list(&longer);
}

/// The servers with those of a file.
fn merged(servers: McpConfig, file: &Path) -> Result<McpConfig, Failure> {
    let shown = file.display();
    let refused = |error: ops_runtime::CallError| Failure::Usage(in_file(file, error.message()));
    let more = McpConfig::from_file(file).map_err(refused)?;
    let names: Vec<String> = more.names().map(str::to_owned).collect();
    if names.is_empty() {
        return Err(Failure::Usage(format!("`{shown}` names no server")));
    }
    names.into_iter().try_fold(servers, |servers, name| {
        if servers.names().any(|known| known == name) {
            return Err(Failure::Usage(format!("`{shown}` names a server `{name}`, and so does another file")));
        }
        match more.server(&name) {
            Ok(server) => Ok(servers.with_server(name, server.clone())),
            Err(_) if more.is_disabled(&name) => Ok(servers),
            Err(error) => Err(refused(error)),
        }
    })
}

/// A message of the reader, with the file if it does not name it.
fn in_file(file: &Path, message: &str) -> String {
    let shown = file.display().to_string();
    if message.contains(&shown) { message.to_owned() } else { format!("`{shown}`: {message}") }
}
