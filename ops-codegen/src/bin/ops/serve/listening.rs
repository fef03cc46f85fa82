//! Where `ops serve` accepts calls: standard input, an address, or both; and its shutdown.

use std::io::{self, Write};

use axum::Router;
use ops_runtime::Registry;
use ops_runtime::access::Identity;
use ops_runtime::adapter::Registration;
use ops_runtime::gateway::Gateway;
use ops_runtime::registry::CancelToken;
use ops_runtime::serve::{HttpServer, local_hosts};
use ops_runtime::spec::{OperationSpec, SpecRef};
use tokio::net::TcpListener;

use super::ADDRESS;
use super::callers::{Callers, named};
use super::config::Config;
use super::credentials::Credentials;
use super::gateway::warn;
use super::warnings;
use crate::arguments::{ServeArguments, Transport};
use crate::failure::Failure;

/// Where calls are accepted, and from whom.
pub(super) struct Listening {
    is_stdio: bool,
    /// The address of HTTP.
    http: Option<String>,
    /// True if the MCP server is at that address, too.
    has_mcp: bool,
    /// True if results are examples.
    is_mock: bool,
    /// Who may call over HTTP; `None` if everyone may.
    callers: Option<Callers>,
    /// The callers in the configuration.
    named: Vec<Identity>,
    /// The hosts of the server over HTTP; empty if the configuration has none.
    hosts: Vec<String>,
    /// The origins whose pages may send requests, beside its own.
    origins: Vec<String>,
}

impl Listening {
    /// The settings of the command and the configuration.
    pub(super) fn of(arguments: &ServeArguments, config: &Config) -> Result<Self, Failure> {
        let has_mcp = arguments.mcp == Some(Transport::Http);
        let http = arguments.http.clone().or_else(|| has_mcp.then(|| ADDRESS.to_owned()));
        if let Some(address) = http.as_ref().filter(|address| !address.contains(':')) {
            let told =
                format!("`{address}` cannot be listened at: it has no port: write HOST:PORT, such as `{ADDRESS}`");
            return Err(Failure::Failed(told));
        }
        let is_stdio = arguments.mcp == Some(Transport::Stdio) || (arguments.mcp.is_none() && http.is_none());
        let (hosts, origins) = (config.hosts.clone(), config.origins.clone());
        // A host starts the command with few variables: those of secrets that are not used may be missing.
        let callers = if http.is_some() { Callers::of(config)? } else { None };
        let is_mock = arguments.mock;
        Ok(Self { is_stdio, http, has_mcp, is_mock, callers, named: named(config), hosts, origins })
    }

    /// Serves until the host closes standard input, or the process is asked to end: then HTTP calls in flight are
    /// completed, unless it is asked once more.
    pub(super) async fn serve(&self, gateway: &Gateway) -> Result<(), Failure> {
        let stop = CancelToken::new();
        let http = self.http(gateway, &stop);
        // The host ends the command by closing stdin.
        let stdio = async { gateway.serve_stdio().await.map_err(stopped) };
        let mut http = std::pin::pin!(http);
        let asked = async {
            tokio::select! {
                ended = stdio, if self.is_stdio => ended?,
                ended = &mut http, if self.http.is_some() => return ended,
                () = asked_to_end() => {}
            }
            stop.cancel();
            if self.http.is_none() {
                return Ok(());
            }
            tokio::select! {
                ended = http => ended,
                () = asked_to_end() => Ok(()),
            }
        };
        asked.await
    }

    async fn http(&self, gateway: &Gateway, stop: &CancelToken) -> Result<(), Failure> {
        let address = self.http.as_deref().unwrap_or(ADDRESS);
        let unusable = |error| Failure::Failed(format!("`{address}` cannot be listened at: {error}"));
        let listener = TcpListener::bind(address).await.map_err(unusable)?;
        let local = listener.local_addr().map_err(unusable)?;
        let is_local = local.ip().is_loopback();
        if self.callers.is_none() && !is_local {
            let message = format!(
                "`{address}` can be reached by others, who could call everything: name who may, by `[callers]` or `[jwt]` in a file for \
                 `--config`"
            );
            return Err(Failure::Usage(message));
        }
        let server = match &self.callers {
            Some(callers) => {
                warnings::of_callers(gateway.registry(), &self.named).iter().for_each(|told| warn(told));
                gateway.http_server().with_authenticator(callers.clone())
            }
            None if self.is_mock => mocked(gateway)?,
            None => {
                warn_of_credentials(gateway);
                gateway.http_server()
            }
        };
        let _ = writeln!(anstream::stderr().lock(), "http://{local}/docs");
        let mut server = server.with_docs().with_origins(&self.origins).with_cancel(stop.clone());
        let hosts = if self.hosts.is_empty() && is_local { local_hosts(local.ip()) } else { self.hosts.clone() };
        if !hosts.is_empty() {
            server = server.with_hosts(hosts.iter().map(String::as_str));
        }
        if self.has_mcp {
            let _ = writeln!(anstream::stderr().lock(), "http://{local}/mcp");
            server = self.with_mcp(gateway, server, &hosts, stop);
        }
        server.serve_listener(listener).await.map_err(stopped)
    }

    /// The server with the MCP server at `/mcp`.
    fn with_mcp(&self, gateway: &Gateway, server: HttpServer, hosts: &[String], stop: &CancelToken) -> HttpServer {
        let mut service = gateway.mcp_service().with_origins(&self.origins).with_cancel(stop.clone());
        // The names of the server are unknown; but all callers have to authenticate.
        service = match hosts {
            [] => service.with_any_host(),
            hosts => service.with_hosts(hosts.iter().map(String::as_str)),
        };
        if let Some(callers) = self.callers.clone() {
            service = service.with_authenticator(callers);
        }
        server.with_routes(Router::new().route_service("/mcp", service))
    }
}

/// The operations of a mock over HTTP, behind the rules of its gateway. Each requires credentials of the kind that its document
/// describes, with any value.
fn mocked(gateway: &Gateway) -> Result<HttpServer, Failure> {
    let (gated, registry) = (gateway.registry(), Registry::new());
    let specs = gated.list();
    let credentials = Credentials::of(specs.iter().map(|spec| &**spec));
    let asking = |spec: &SpecRef| Some(Registration::new(credentials.asked_for(spec), gated.handler(&spec.id)?));
    let registered = registry.register_all(specs.iter().filter_map(asking));
    registered.map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(HttpServer::new(registry).with_authenticator(credentials))
}

fn stopped(error: io::Error) -> Failure {
    Failure::Failed(format!("the server stopped: {error}"))
}

/// Warns that operations which need credentials are refused over HTTP, because no callers are configured.
fn warn_of_credentials(gateway: &Gateway) {
    let asking = gateway.registry().list().iter().filter(|spec| asks(spec)).count();
    if asking > 0 {
        let what = if asking == 1 { "1 operation asks".to_owned() } else { format!("{asking} operations ask") };
        let told = format!(
            "{what} for credentials, and nobody who calls over HTTP has any, other than by MCP: name who may, by `[callers]` or \
             `[jwt]` in a file for `--config`"
        );
        warn(&told);
    }
}

/// True if an operation needs credentials over HTTP.
fn asks(spec: &OperationSpec) -> bool {
    let ways = spec.http().map_or(&[][..], |binding| &binding.security);
    !ways.is_empty() && !ways.iter().any(|way| way.schemes.is_empty()) || !spec.access.is_open()
}

/// Waits for a signal to end: Ctrl-C, or `SIGTERM`.
pub(super) async fn asked_to_end() {
    // If signals cannot be handled, they end the process as usual.
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let ended = async {
            match signal(SignalKind::terminate()) {
                Ok(mut signal) => drop(signal.recv().await),
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            () = interrupted => {}
            () = ended => {}
        }
    }
    #[cfg(not(unix))]
    interrupted.await;
}
