//! The start of a connection: with the server's revision, and with the user's authorization if required.

use std::sync::Arc;

use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::Value;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

#[cfg(feature = "mcp-auth")]
pub(super) use super::auth::Authorization;
use super::host::Host;
use super::interceptor::{Interceptor, RpcError};
use super::secrets::Given;
use super::session::{rpc_failure, transport_failure};
use super::stdio::Stdio;
use crate::CallError;
use crate::mcp::config::{McpServerConfig, Target};

/// Stands in for the authorization without the feature `mcp-auth`.
#[cfg(not(feature = "mcp-auth"))]
pub(super) enum Authorization {}

/// Why a connection could not start.
pub(super) enum StartError {
    Protocol(Box<ClientInitializeError>),
    Other(CallError),
}

impl StartError {
    /// The error for the caller.
    pub(super) fn told(self, interceptor: &Interceptor) -> CallError {
        match self {
            Self::Protocol(error) => protocol_failure(interceptor, &error),
            Self::Other(error) => error,
        }
    }
}

impl From<ClientInitializeError> for StartError {
    fn from(error: ClientInitializeError) -> Self {
        Self::Protocol(Box::new(error))
    }
}

impl From<CallError> for StartError {
    fn from(error: CallError) -> Self {
        Self::Other(error)
    }
}

type Started = Result<RunningService<RoleClient, Host>, StartError>;

/// Connects within the configured time. If the server requires authorization, the user is asked, outside of that time
/// limit.
pub(super) async fn start(
    config: &McpServerConfig,
    interceptor: &Arc<Interceptor>,
    given: &Arc<Given>,
    host: &Host,
    authorization: Option<&Authorization>,
) -> Result<Started, Elapsed> {
    #[cfg(feature = "mcp-auth")]
    if let Some(authorization) = authorization {
        return authorized(config, interceptor, given, host, authorization).await;
    }
    timeout(config.connect_timeout, once(config, interceptor, given, host, authorization)).await
}

#[cfg(feature = "mcp-auth")]
async fn authorized(
    config: &McpServerConfig,
    interceptor: &Arc<Interceptor>,
    given: &Arc<Given>,
    host: &Host,
    authorization: &Authorization,
) -> Result<Started, Elapsed> {
    let mut granted = None;
    for _ in 0..3 {
        authorization.connected(false);
        let sent = std::time::Instant::now();
        let started =
            timeout(config.connect_timeout, once(config, interceptor, given, host, Some(authorization))).await?;
        let challenge = match &started {
            Err(StartError::Protocol(error)) => error.auth_challenge().map(str::to_owned),
            _ => None,
        };
        // The user's last authorization was not enough if the same is required again.
        let Some(challenge) = challenge.filter(|challenge| granted.as_ref() != Some(challenge)) else {
            authorization.connected(true);
            return Ok(started);
        };
        match authorization.authorize(&given.demanded(&challenge), sent).await {
            Ok(asked) => granted = asked.then_some(challenge),
            Err(error) => return Ok(Err(error.into())),
        }
    }
    let started = timeout(config.connect_timeout, once(config, interceptor, given, host, Some(authorization))).await;
    authorization.connected(true);
    started
}

/// Connects, without asking the user.
async fn once(
    config: &McpServerConfig,
    interceptor: &Arc<Interceptor>,
    given: &Arc<Given>,
    host: &Host,
    #[cfg_attr(not(feature = "mcp-auth"), expect(unused))] authorization: Option<&Authorization>,
) -> Started {
    match &config.target {
        Target::Stdio(stdio) => {
            let spawn = || {
                Stdio::spawn(stdio, config.max_message, config.max_waiting, interceptor.clone(), given.clone())
                    .map_err(|error| CallError::execution(format!("`{}` cannot be started: {error}", stdio.shown())))
            };
            let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
            let lifecycle = ClientLifecycleMode::Auto {
                preferred_versions: preferred_versions.clone(),
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            };
            match host.clone().serve_with_lifecycle(spawn()?, lifecycle).await {
                // It started slowly, was taken for an old server, and is not one.
                Err(error) if knows_newest(&error) => {
                    let lifecycle = ClientLifecycleMode::Discover { preferred_versions };
                    Ok(host.clone().serve_with_lifecycle(spawn()?.patient(), lifecycle).await?)
                }
                started => Ok(started?),
            }
        }
        #[cfg(feature = "mcp-http")]
        Target::Http(http) => {
            let client = super::http::Http::new(config.max_message, interceptor.clone(), given.clone())?;
            #[cfg(feature = "mcp-auth")]
            if let Some(authorization) = authorization {
                return serve(config, host, http, client, |client| authorization.client(client)).await;
            }
            if http.oauth {
                let message = "it asks for OAuth: give it `with_oauth(..)` (feature `mcp-auth`)";
                return Err(crate::mcp::invalid(message).into());
            }
            serve(config, host, http, client, |client| client).await
        }
        #[cfg(not(feature = "mcp-http"))]
        Target::Http(_) => {
            let message = "a server at a URL needs the feature `mcp-http` of `ops-runtime`";
            Err(crate::mcp::invalid(message).into())
        }
    }
}

/// Connects to a server at a URL: with the newest revision, or otherwise from the start by `initialize`. `with_tokens` makes
/// the client send tokens, if there are any.
#[cfg(feature = "mcp-http")]
async fn serve<C>(
    config: &McpServerConfig,
    host: &Host,
    http: &crate::mcp::config::Http,
    client: super::http::Http,
    with_tokens: impl Fn(super::http::Http) -> C,
) -> Started
where
    C: rmcp::transport::streamable_http_client::StreamableHttpClient<Error = CallError> + Sync,
{
    let transport = |client: super::http::Http| {
        let interceptor = client.interceptor.clone();
        let client = super::http::Standing::new(with_tokens(client), interceptor, host.changed.clone());
        super::http::transport(http, config.connect_timeout, client)
    };
    let discover = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    match host.clone().serve_with_lifecycle(transport(client.clone())?, discover.clone()).await {
        Err(_) if client.interceptor.is_old() => {}
        started => return Ok(started?),
    }
    match host.clone().serve_with_lifecycle(transport(client.clone())?, ClientLifecycleMode::Initialize).await {
        // It answered slowly, was taken for an old server, and is not one.
        Err(error) if knows_newest(&error) => {
            Ok(host.clone().serve_with_lifecycle(transport(client.patient())?, discover).await?)
        }
        started => Ok(started?),
    }
}

/// True if a server refuses `initialize` and lists the newest revision as one that it knows.
fn knows_newest(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => knows_newest(fallback),
        ClientInitializeError::JsonRpcError(error) => {
            let supported = error.data.as_ref().and_then(|data| data.get("supported")).and_then(Value::as_array);
            supported.is_some_and(|all| all.iter().any(|one| one == ProtocolVersion::V_2026_07_28.as_str()))
        }
        _ => false,
    }
}

fn protocol_failure(interceptor: &Interceptor, error: &ClientInitializeError) -> CallError {
    let server = &*interceptor.server;
    match error {
        ClientInitializeError::JsonRpcError(error) => {
            let error = RpcError {
                code: error.code.0.into(),
                message: Value::String(error.message.to_string()),
                data: error.data.clone().unwrap_or_default(),
            };
            rpc_failure(server, &error)
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => protocol_failure(interceptor, fallback),
        ClientInitializeError::ConnectionClosed(what) => {
            let reason = interceptor.reason().map(str::to_owned);
            CallError::execution(reason.unwrap_or_else(|| format!("no {what} came")))
        }
        ClientInitializeError::TransportError { error, .. } => transport_failure(server, &*error.error),
        error => CallError::of_error(error),
    }
}
