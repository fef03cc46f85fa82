//! Who gets in, and what is told to whom.

use ops_runtime::adapter::{BoxFuture, Endpoint, Handler, Payload, Registration};
use ops_runtime::call::websocket::{Hub, WebSocketClient, WebSocketConfig};
use ops_runtime::call::{CallHandler, Remote};
use ops_runtime::envelope::HttpMeta;
use ops_runtime::spec::OperationSpec;
use ops_runtime::{CallError, Context, Registry, ResponseEnvelope};
use serde_json::{Value, json};

use super::serving::{Served, registry};
use crate::raw::{Raw, announcement};
use crate::{Case, Outcome, block_on};

pub(super) const CASES: &[Case] = &[
    Case::new("hub-pages-of-other-origins", 0, origins),
    Case::new("hub-anonymous-spokes-announce", 0, anonymous),
    Case::new("hub-answers-of-other-servers", 0, upstream),
];

/// Connects as a page of another origin would, and under another host's name.
fn origins(_: usize) -> Outcome {
    block_on(async {
        let served = Served::of(Hub::new(CallHandler::new(registry()))).await?;
        for wrong in [
            "origin: https://evil.example\r\n",
            "origin: null\r\n",
            "origin: http://127.0.0.1.evil.example\r\n",
            "host: evil.example\r\n",
            "host: evil.example\r\norigin: http://evil.example\r\n",
            "host: 127.0.0.1\r\nhost: evil.example\r\n",
            "origin: http://localhost\r\norigin: https://evil.example\r\n",
        ] {
            if Raw::connect(served.address(), wrong).await.is_ok() {
                return Err(format!("`{}` was let in", wrong.trim()));
            }
        }
        for right in ["", "origin: http://localhost:3000\r\n", "host: localhost:80\r\norigin: http://[::1]:9\r\n"] {
            Raw::connect(served.address(), right).await.map_err(|error| format!("`{}`: {error}", right.trim()))?;
        }
        Ok("only pages of this host were let in".to_owned())
    })
}

/// Announces an operation without saying who one is.
fn anonymous(_: usize) -> Outcome {
    block_on(async {
        let served = Served::of(Hub::new(CallHandler::new(registry())).with_forwarding()).await?;
        let mut raw = Raw::connect(served.address(), "").await.map_err(|error| error.to_string())?;
        raw.say(&announcement("op", 10)).await.map_err(|error| error.to_string())?;
        raw.request(1, "flood.add", r#"{"a":1,"b":1}"#).await.map_err(|error| error.to_string())?;
        let answer = raw.answer("1").await.map_err(|error| error.to_string())?;
        if answer["payload"]["output"]["data"] != 2 {
            return Err(format!("an anonymous call got {answer}"));
        }
        match served.hub.remote().list().len() {
            0 => Ok("what it announced does not count, and its call was answered".to_owned()),
            more => Err(format!("{more} operations of an anonymous spoke are called")),
        }
    })
}

/// Another server, which says more than its callers may know.
struct Upstream;

impl Endpoint for Upstream {
    fn call(
        &self,
        spec: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let fails = spec.id == "up.bad";
        Box::pin(async move {
            if fails {
                return Err(CallError::execution("HTTP 500: secret-words").with_details(json!({
                    "statusCode": 500, "headers": { "x": "secret-header" }, "contentType": "text/plain",
                    "body": "secret-body",
                })));
            }
            let mut meta = HttpMeta::new(200, "application/json");
            meta.headers.insert("x-internal".to_owned(), "secret-host".to_owned());
            meta.set_cookie.push("session=secret-cookie".to_owned());
            Ok(ResponseEnvelope::http(Payload::Value(json!(7)), meta))
        })
    }
}

/// Calls operations whose answers and errors came from elsewhere.
fn upstream(_: usize) -> Outcome {
    static GOOD: OperationSpec = OperationSpec::query("up.good");
    static BAD: OperationSpec = OperationSpec::query("up.bad");
    let registry = Registry::new();
    let all =
        [Registration::new(&GOOD, Handler::endpoint(Upstream)), Registration::new(&BAD, Handler::endpoint(Upstream))];
    let _ = registry.register_all(all);
    block_on(async {
        let hub = Hub::new(CallHandler::new(registry));
        let served = Served::of(hub).await?;
        let client = WebSocketClient::connect(&served.server.url(), WebSocketConfig::new())
            .await
            .map_err(|error| error.to_string())?;
        let remote: Remote = client.remote();
        let good = remote.call("up.good", json!({})).await.map_err(|error| error.to_string())?;
        let good = serde_json::to_string(&good).unwrap_or_default();
        let bad = match remote.call("up.bad", json!({})).await {
            Err(error) => format!("{error} {}", error.details()),
            Ok(_) => return Err("an error became an answer".to_owned()),
        };
        if good.contains("secret") || bad.contains("secret") || !bad.contains("500") {
            return Err(format!("a remote caller is told {good} and {bad}"));
        }
        Ok(format!("a remote caller is told {good} and {bad}"))
    })
}
