//! `ops serve`: documents and MCP servers behind a few tools, over MCP and HTTP.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use axum::Router;
use axum::http::request::Parts;
use futures_util::future::BoxFuture;
use ops_runtime::access::{CallPolicy, Identity};
use ops_runtime::gateway::{AuditLog, AuditOptions, CallerLimits, Gateway, GatewayBuilder, Rate, ResultLimits, Tools};
use ops_runtime::http::{Auth, HttpConfig, TokenExchange};
use ops_runtime::mcp::{McpConfig, McpServerOptions};
use ops_runtime::program::FolderStore;
use ops_runtime::serve::{Authenticator, BearerTokens, HttpServer, JwtAuthenticator, Unauthorized};
use ops_runtime::spec::Diagnostic;
use tokio::net::TcpListener;

use super::ADDRESS;
use super::config::{Api, CallerToken, Config, Exchange};
use crate::arguments::{ServeArguments, ToolsChoice, Transport};
use crate::failure::Failure;
use crate::modules::{is_url, runtime, shown};
use crate::report::{clean, label};
use crate::server::is_config;

pub(super) fn run(arguments: &ServeArguments) -> Result<(), Failure> {
    let config = match &arguments.config {
        Some(path) => Config::read(path)?,
        None => Config::default(),
    };
    let builder = builder(arguments, &config)?;
    let callers = callers(&config)?;
    runtime()?.block_on(async {
        let gateway = builder.build().await.map_err(|error| Failure::Failed(error.message().to_owned()))?;
        tell(&gateway, arguments)?;
        serve(&gateway, arguments, callers).await
    })
}

/// What the command and the configuration ask for.
fn builder(arguments: &ServeArguments, config: &Config) -> Result<GatewayBuilder, Failure> {
    let mut builder = Gateway::builder()
        .with_options(McpServerOptions::new("ops", env!("CARGO_PKG_VERSION")))
        .with_credentials_from_env();
    for (namespace, api) in &config.apis {
        let (location, client) = (config.location(&api.spec), client(config, namespace, api)?);
        builder =
            if arguments.mock { builder.with_mock(location, client) } else { builder.with_document(location, client) };
    }
    let mut servers = McpConfig::new();
    if let Some(file) = &config.mcp.config {
        servers = merged(servers, &config.path(file))?;
    }
    let (documents, configurations) = sources(&arguments.spec)?;
    for file in &configurations {
        servers = merged(servers, Path::new(file))?;
    }
    for (location, client) in clients(arguments, documents)? {
        builder =
            if arguments.mock { builder.with_mock(location, client) } else { builder.with_document(location, client) };
    }
    if servers.names().next().is_some() {
        builder = builder.with_mcp_servers(servers);
    }
    let (include, exclude) =
        ([&config.include[..], &arguments.include].concat(), [&config.exclude[..], &arguments.exclude].concat());
    if !include.is_empty() || !exclude.is_empty() {
        builder = builder.with_filter(move |spec| {
            let any = |patterns: &[String]| patterns.iter().any(|pattern| spec.matches(pattern));
            (include.is_empty() || any(&include)) && !any(&exclude)
        });
    }
    if config.read_only || arguments.read_only {
        builder = builder.read_only();
    }
    builder = match arguments.tools.or(config.tools.map(ToolsChoice::from)) {
        None => builder,
        Some(ToolsChoice::All) => builder.with_tools(Tools::All),
        Some(ToolsChoice::Search) => builder.with_tools(Tools::Search),
        Some(ToolsChoice::Code) => builder.with_tools(Tools::Code),
    };
    let audit = arguments.audit.clone().or_else(|| config.audit.file.as_ref().map(|file| config.path(file)));
    if let Some(file) = audit {
        let log = AuditLog::to_file(AuditOptions::new(), &file)
            .map_err(|error| Failure::Failed(error.message().to_owned()))?;
        builder = builder.with_audit(log);
    }
    if let Some(folder) = arguments.journal.clone().or_else(|| config.journal.as_ref().map(|it| config.path(it))) {
        builder = builder.with_program_store(FolderStore::new(folder));
    }
    let (limits, results) = limits(config);
    Ok(builder.with_policy(policy(arguments, config)).with_limits(limits).with_results(results))
}

fn policy(arguments: &ServeArguments, config: &Config) -> CallPolicy {
    let both = |a: &[String], b: &[String]| [a, b].concat();
    let mut policy = CallPolicy::new();
    for pattern in both(&config.policy.allow, &arguments.allow) {
        policy = policy.with_allow(pattern);
    }
    for pattern in both(&config.policy.ask, &arguments.ask) {
        policy = policy.with_ask(pattern);
    }
    for pattern in both(&config.policy.deny, &arguments.deny) {
        policy = policy.with_deny(pattern);
    }
    policy
}

fn limits(config: &Config) -> (CallerLimits, ResultLimits) {
    let (mut limits, mut results) = (CallerLimits::new(), ResultLimits::new());
    if let Some(calls) = config.limits.calls_per_second {
        let rate = Rate::new(calls, Duration::from_secs(1));
        limits = limits.with_rate(rate.with_burst(config.limits.burst.unwrap_or(calls)));
    }
    if let Some(calls) = config.limits.in_flight {
        limits = limits.with_max_in_flight(calls);
    }
    if let Some(bytes) = config.limits.result_bytes {
        results = results.with_max_shown(bytes);
    }
    (limits, results)
}

/// The client of an API of the configuration.
fn client(config: &Config, namespace: &str, api: &Api) -> Result<HttpConfig, Failure> {
    let mut client = HttpConfig::new().with_namespace(namespace);
    if let Some(url) = &api.base_url {
        client = client.with_base_url(url);
    }
    if let Some(seconds) = api.timeout {
        client = client.with_timeout(Duration::from_secs(seconds.max(1)));
    }
    if let Some(token) = &api.token {
        client = client.with_auth(Auth::bearer(config.secret(token)?));
    }
    for (scheme, from) in &api.credentials {
        client = client.with_credentials(scheme, Auth::bearer(config.secret(from)?));
    }
    for (name, from) in &api.headers {
        client = client.with_header(name, config.secret(from)?.expose());
    }
    match &api.caller_token {
        Some(_) if api.token.is_some() => Err(Failure::Usage(format!(
            "`{namespace}` has `token` and `caller-token`, but a request has one token: choose one"
        ))),
        Some(CallerToken::PassOn) => Ok(client.with_auth(Auth::pass_on())),
        Some(CallerToken::Exchange(exchange)) => {
            Ok(client.with_auth(Auth::exchange(exchanged(config, namespace, exchange)?)))
        }
        None => Ok(client),
    }
}

/// The exchange of callers' tokens that an API of the configuration asks for.
fn exchanged(config: &Config, namespace: &str, said: &Exchange) -> Result<TokenExchange, Failure> {
    let mut exchange = TokenExchange::new(&said.token_url);
    exchange = match (&said.client_id, &said.client_secret) {
        (Some(id), Some(secret)) => exchange.with_client(id, config.secret(secret)?),
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
fn clients(arguments: &ServeArguments, documents: Vec<String>) -> Result<Vec<(String, HttpConfig)>, Failure> {
    let is_for_one = arguments.credentials.is_given() || arguments.base_url.is_some() || arguments.namespace.is_some();
    if is_for_one && documents.len() > 1 {
        let message = "`--namespace`, `--base-url` and credentials are for one document, and there are several: name them, \
                       each with its own, in a file for `--config`";
        return Err(Failure::Usage(message.to_owned()));
    }
    documents
        .into_iter()
        .map(|location| {
            let mut client = HttpConfig::new();
            if let Some(namespace) = &arguments.namespace {
                client = client.with_namespace(namespace);
            }
            if let Some(url) = &arguments.base_url {
                client = client.with_base_url(url);
            }
            for (name, value) in arguments.credentials.headers()? {
                client = client.with_header(name, value);
            }
            if let Some(auth) = arguments.credentials.auth()? {
                client = client.with_auth(auth);
            }
            Ok((location, client))
        })
        .collect()
}

/// The documents and the configurations of MCP servers among the arguments, those in folders included.
fn sources(specs: &[String]) -> Result<(Vec<String>, Vec<String>), Failure> {
    let mut files = Vec::new();
    for spec in specs {
        if is_url(spec) || !Path::new(spec).is_dir() {
            files.push(spec.clone());
            continue;
        }
        let unreadable = |error: std::io::Error| Failure::Failed(format!("`{spec}` cannot be read: {error}"));
        let mut found = Vec::new();
        for entry in std::fs::read_dir(spec).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|ending| ending == "json" || ending == "yaml" || ending == "yml") {
                found.push(path.to_string_lossy().into_owned());
            }
        }
        // The order of a folder is that of its disk.
        found.sort();
        files.extend(found);
    }
    let is_config = |file: &String| !is_url(file) && is_config(file);
    let (configurations, documents) = files.into_iter().partition(is_config);
    Ok((documents, configurations))
}

/// The servers with those of a file.
fn merged(servers: McpConfig, file: &Path) -> Result<McpConfig, Failure> {
    let more = McpConfig::from_file(file).map_err(|error| Failure::Usage(error.message().to_owned()))?;
    let names: Vec<String> = more.names().map(str::to_owned).collect();
    names.into_iter().try_fold(servers, |servers, name| {
        if servers.names().any(|known| known == name) {
            let message = format!("`{}` names a server `{name}`, and so does another file", file.display());
            return Err(Failure::Usage(message));
        }
        let server = more.server(&name).map_err(|error| Failure::Usage(error.message().to_owned()))?.clone();
        Ok(servers.with_server(name, server))
    })
}

/// Finds who calls over HTTP.
#[derive(Clone)]
enum Callers {
    Tokens(BearerTokens),
    Jwt(JwtAuthenticator),
}

impl Authenticator for Callers {
    fn authenticate(&self, request: &Parts) -> BoxFuture<'static, Result<Option<Identity>, Unauthorized>> {
        match self {
            Self::Tokens(tokens) => tokens.authenticate(request),
            Self::Jwt(issuer) => issuer.authenticate(request),
        }
    }
}

/// Who may call over HTTP; `None` if everybody may.
fn callers(config: &Config) -> Result<Option<Callers>, Failure> {
    if let Some(jwt) = &config.jwt {
        if !config.callers.is_empty() {
            let message = "`[jwt]` and `[callers]` both say who may call: choose one";
            return Err(Failure::Usage(message.to_owned()));
        }
        let issuer = JwtAuthenticator::from_issuer(&jwt.issuer);
        let issuer = issuer.map_err(|error| Failure::Usage(format!("`[jwt]`: {}", error.message())))?;
        return Ok(Some(Callers::Jwt(issuer.with_audience(&jwt.audience))));
    }
    let mut tokens = None;
    for (name, caller) in &config.callers {
        let identity = caller.scopes.iter().fold(Identity::new(name), Identity::with_scope);
        let token = config.secret(&caller.token)?;
        tokens = Some(tokens.unwrap_or_else(BearerTokens::new).with_token(token.expose(), identity));
    }
    Ok(tokens.map(Callers::Tokens))
}

/// Tells on standard error what is served, and what is missing.
fn tell(gateway: &Gateway, arguments: &ServeArguments) -> Result<(), Failure> {
    let operations = gateway.registry().list().len();
    let unread = || gateway.failures().iter().map(|(location, error)| (shown(location), clean(error.message())));
    if operations == 0 {
        let told = unread().map(|(location, error)| Diagnostic::error("", error).with_document(&location));
        return match told.collect::<Vec<_>>() {
            none if none.is_empty() => Err(Failure::Usage("there are no operations to serve".to_owned())),
            unread => Err(Failure::Unreadable(unread)),
        };
    }
    let mut out = anstream::stderr().lock();
    for (location, error) in unread() {
        // If standard error is closed, there is no way to report it.
        let _ = writeln!(out, "{}: {location}: {error}", label("error"));
    }
    let with = if arguments.mock { ", answered with examples" } else { "" };
    let _ = writeln!(out, "{operations} operations{with}; {} diagnostics", gateway.diagnostics().len());
    Ok(())
}

async fn serve(gateway: &Gateway, arguments: &ServeArguments, callers: Option<Callers>) -> Result<(), Failure> {
    let stopped = |error: std::io::Error| Failure::Failed(format!("the server stopped: {error}"));
    let is_stdio = arguments.mcp == Some(Transport::Stdio) || (arguments.mcp.is_none() && arguments.http.is_none());
    let is_http = arguments.http.is_some() || arguments.mcp == Some(Transport::Http);
    let http = async {
        if !is_http {
            return Ok(());
        }
        let address = arguments.http.as_deref().unwrap_or(ADDRESS);
        let unusable = |error| Failure::Failed(format!("`{address}` is no address to listen at: {error}"));
        let listener = TcpListener::bind(address).await.map_err(unusable)?;
        let local = listener.local_addr().map_err(unusable)?;
        if callers.is_none() && !local.ip().is_loopback() {
            let message = format!(
                "`{address}` can be reached by others, who could call everything: name who may, by `[callers]` or `[jwt]` in a file for \
                 `--config`"
            );
            return Err(Failure::Usage(message));
        }
        let _ = writeln!(anstream::stderr().lock(), "http://{local}/docs");
        let mut server = gateway.http_server().with_docs();
        if let Some(callers) = callers.clone() {
            server = server.with_authenticator(callers);
        }
        if arguments.mcp == Some(Transport::Http) {
            let _ = writeln!(anstream::stderr().lock(), "http://{local}/mcp");
            return with_mcp(gateway, server, callers, listener).await.map_err(stopped);
        }
        server.serve_listener(listener).await.map_err(stopped)
    };
    if !is_stdio {
        return http.await;
    }
    // The host ends the command by closing stdin.
    let stdio = async { gateway.serve_stdio().await.map_err(stopped) };
    if !is_http {
        return stdio.await;
    }
    tokio::select! {
        ended = stdio => ended,
        ended = http => ended,
    }
}

/// Serves the operations, and the MCP server at `/mcp`, at one address.
async fn with_mcp(
    gateway: &Gateway,
    server: HttpServer,
    callers: Option<Callers>,
    listener: TcpListener,
) -> std::io::Result<()> {
    let mut service = gateway.mcp_service();
    let mut server = server;
    if let Some(callers) = callers {
        service = service.with_authenticator(move |request| {
            let found = callers.authenticate(request);
            async move { found.await?.ok_or(Unauthorized::bearer()) }
        });
    } else {
        // Nobody is asked who they are, so pages of other sites that a browser shows must not get in.
        server = server.with_hosts(["localhost", "127.0.0.1", "[::1]"]);
    }
    let app = Router::new().route_service("/mcp", service).merge(server.into_router());
    axum::serve(listener, app).await
}
