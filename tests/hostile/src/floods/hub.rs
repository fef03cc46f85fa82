//! A hub, with operations that answer at once, much, or never.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use ops_runtime::call::websocket::{Hub, WebSocketClient, WebSocketConfig};
use ops_runtime::call::{CallHandler, PeerAuth};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Attack, Target};
use crate::cases::registry;
use crate::raw::{Raw, announcement, request};

/// How long an attack goes on that waits for something.
const WAIT: Duration = Duration::from_secs(30);

/// A hub.
pub struct FloodedHub;

impl Target for FloodedHub {
    const NAME: &'static str = "hub";

    type Honest = WebSocketClient;

    async fn serve() -> Result<SocketAddr, String> {
        let hub = Hub::new(CallHandler::new(registry())).with_authenticator(|request| async move {
            Ok(PeerAuth::anonymous().serving(request.headers.contains_key("x-serves")))
        });
        let server = hub.listen("127.0.0.1:0").await.map_err(|error| error.to_string())?;
        let address = server.address();
        // Until the process ends.
        tokio::spawn(async move {
            let _server = server;
            std::future::pending::<()>().await;
        });
        Ok(address)
    }

    async fn connect(address: SocketAddr) -> Result<WebSocketClient, String> {
        let url = format!("ws://{address}/");
        WebSocketClient::connect(&url, WebSocketConfig::new()).await.map_err(|error| error.to_string())
    }

    async fn call(client: &WebSocketClient) -> Result<(), String> {
        let answer = client.remote().call("flood.add", json!({ "a": 40, "b": 2 })).await;
        match answer.map_err(|error| error.to_string())?.data {
            sum if sum == 42 => Ok(()),
            other => Err(format!("the sum is {other}")),
        }
    }

    fn attacks() -> &'static [Attack] {
        &[
            Attack { name: "reads nothing", run: |address| reads_nothing(address).boxed() },
            Attack { name: "announces megabytes", run: |address| announces(address).boxed() },
            Attack { name: "half of a handshake", run: |address| half_open(address).boxed() },
            Attack { name: "requests without end", run: |address| requests(address).boxed() },
            Attack { name: "requests that never end", run: |address| endless(address).boxed() },
            Attack { name: "messages that are none", run: |address| junk(address).boxed() },
            Attack { name: "messages that are too large", run: |address| huge(address).boxed() },
            Attack { name: "messages that never end", run: |address| partial(address).boxed() },
        ]
    }
}

/// Waits until the hub closes the connection, and reads nothing of what it says.
async fn held(raw: Raw) {
    tokio::time::sleep(WAIT).await;
    drop(raw);
}

async fn reads_nothing(address: SocketAddr) {
    let Ok(mut raw) = Raw::connect(address, "").await else { return };
    let asking = async {
        for n in 0..250 {
            raw.request(n, "flood.big", r#"{"bytes":3000000}"#).await?;
        }
        std::io::Result::Ok(())
    };
    if tokio::time::timeout(WAIT, asking).await.is_ok() {
        held(raw).await;
    }
}

async fn announces(address: SocketAddr) {
    let Ok(mut raw) = Raw::connect(address, "x-serves: 1\r\n").await else { return };
    let saying = async {
        for n in 0..1_000 {
            raw.say(&announcement(&format!("op{n}"), 1_000_000)).await?;
            // As much as a fast line carries.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        std::io::Result::Ok(())
    };
    let _ = tokio::time::timeout(WAIT, saying).await;
}

async fn half_open(address: SocketAddr) {
    let Ok(mut stream) = tokio::net::TcpStream::connect(address).await else { return };
    let _ = stream.write_all(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n").await;
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(WAIT, stream.read_to_end(&mut rest)).await;
}

/// Requests that are answered at once, as fast as the hub takes them, with the answers read.
async fn requests(address: SocketAddr) {
    let Ok(raw) = Raw::connect(address, "").await else { return };
    let (mut reading, mut writing) = raw.stream.into_split();
    let read: BoxFuture<'_, ()> = async move {
        let mut buffer = vec![0; 64 << 10];
        while reading.read(&mut buffer).await.is_ok_and(|bytes| bytes > 0) {}
    }
    .boxed();
    let write = async move {
        let mut n = 0;
        loop {
            let text = request(n, "flood.add", r#"{"a":1,"b":2}"#);
            let mut frame = vec![0x81, 0xff];
            frame.extend((text.len() as u64).to_be_bytes());
            frame.extend([0; 4]);
            frame.extend(text.as_bytes());
            if writing.write_all(&frame).await.is_err() {
                return;
            }
            n += 1;
        }
    };
    let both = futures_util::future::select(read, Box::pin(write));
    let _ = tokio::time::timeout(WAIT, both).await;
}

async fn endless(address: SocketAddr) {
    let Ok(mut raw) = Raw::connect(address, "").await else { return };
    let input = format!("[{}0]", "0,".repeat(10_000));
    let asking = async {
        for n in 0..100_000 {
            raw.request(n, "flood.slow", &input).await?;
        }
        std::io::Result::Ok(())
    };
    let _ = tokio::time::timeout(WAIT, asking).await;
}

async fn junk(address: SocketAddr) {
    let Ok(mut raw) = Raw::connect(address, "").await else { return };
    while raw.say(r#"{"type":"call.requested","id":"1","payload":"#).await.is_ok() {}
}

async fn huge(address: SocketAddr) {
    let Ok(mut raw) = Raw::connect(address, "").await else { return };
    if raw.begin(64 << 20).await.is_ok() {
        let bytes = vec![b' '; 1 << 16];
        let write = async { while raw.stream.write_all(&bytes).await.is_ok() {} };
        let _ = tokio::time::timeout(WAIT, write).await;
    }
}

async fn partial(address: SocketAddr) {
    let Ok(mut raw) = Raw::connect(address, "").await else { return };
    if raw.begin(4 << 20).await.is_ok() {
        let bytes = vec![b' '; (4 << 20) - 1];
        let _ = tokio::time::timeout(WAIT, raw.stream.write_all(&bytes)).await;
        held(raw).await;
    }
}
