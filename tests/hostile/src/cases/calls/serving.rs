//! A hub with operations that answer much, slowly or not at all.

use std::net::SocketAddr;
use std::time::Duration;

use ops_runtime::Registry;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::call::websocket::{Hub, Listening, WebSocketClient, WebSocketConfig};
use ops_runtime::call::{CallHandler, PeerAuth};
use ops_runtime::spec::OperationSpec;
use serde_json::{Value, json};

use crate::Outcome;

/// Operations to be misused.
pub(crate) fn registry() -> Registry {
    static BIG: OperationSpec = OperationSpec::query("flood.big");
    static SLOW: OperationSpec = OperationSpec::query("flood.slow");
    static ADD: OperationSpec = OperationSpec::query("flood.add");
    let registry = Registry::new();
    let big = |input: Value, _| async move {
        // Not at once: all of them begin before the first ends.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let bytes = input["bytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
        Ok(Value::String("x".repeat(bytes)))
    };
    let slow = |input: Value, _| async move {
        tokio::time::sleep(Duration::from_secs(600)).await;
        Ok(input)
    };
    let add =
        |input: Value, _| async move { Ok(json!(input["a"].as_i64().unwrap_or(0) + input["b"].as_i64().unwrap_or(0))) };
    let all = [
        Registration::new(&BIG, Handler::dynamic(big)),
        Registration::new(&SLOW, Handler::dynamic(slow)),
        Registration::new(&ADD, Handler::dynamic(add)),
    ];
    let _ = registry.register_all(all);
    registry
}

/// A hub under attack.
pub(super) struct Served {
    pub(super) hub: Hub,
    pub(super) server: Listening,
}

impl Served {
    /// Serves as a hub does unless it is told otherwise, but for spokes of which it knows that they may serve: those with
    /// the header `x-serves`.
    pub(super) async fn start() -> Result<Self, String> {
        let hub = Hub::new(CallHandler::new(registry())).with_authenticator(|request| async move {
            Ok(PeerAuth::anonymous().serving(request.headers.contains_key("x-serves")))
        });
        Self::of(hub).await
    }

    pub(super) async fn of(hub: Hub) -> Result<Self, String> {
        let server = hub.listen("127.0.0.1:0").await.map_err(|error| error.to_string())?;
        Ok(Self { hub, server })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// An honest client, which calls an operation of the hub's; an error if that takes more than 30 s.
    pub(super) async fn honest(&self) -> Outcome {
        let call = async {
            let client = WebSocketClient::connect(&self.server.url(), WebSocketConfig::new()).await?;
            let sum = client.remote().call("flood.add", json!({ "a": 40, "b": 2 })).await?.data;
            client.stop().await;
            Ok(sum)
        };
        match tokio::time::timeout(Duration::from_secs(30), call).await {
            Ok(Ok(sum)) if sum == 42 => Ok("an honest call went on".to_owned()),
            Ok(Ok(sum)) => Err(format!("an honest call gave {sum}")),
            Ok(Err(error)) => Err(format!("an honest call failed: {}", ops_runtime::CallError::to_string(&error))),
            Err(_) => Err("an honest call waits for more than 30 s".to_owned()),
        }
    }
}

/// The memory that this process holds now, in MB.
pub(super) fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|field| field.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}
