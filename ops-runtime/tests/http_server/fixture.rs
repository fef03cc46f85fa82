//! A server on a port of its own, and a client that sends bytes as they are.

use std::net::SocketAddr;
use std::time::Duration;

use ops_runtime::registry::CancelToken;
use ops_runtime::serve::HttpServer;
use ops_runtime::{CallError, Context, Registry, operation};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Adds two numbers.
#[operation(namespace = "math", kind = query)]
pub(crate) async fn add(a: i64, #[input(default = 1)] b: i64) -> i64 {
    a + b
}

/// Fails as it is told.
#[operation(namespace = "math", errors(TAKEN = 409))]
pub(crate) async fn fail(how: String) -> Result<i64, CallError> {
    match how.as_str() {
        "taken" => Err(CallError::new("TAKEN", "it is taken").with_details(serde_json::json!({ "by": "ann" }))),
        "undeclared" => Err(CallError::new("ODD", "told to the caller")),
        "panic" => panic!("the secret of a panic"),
        "slow" => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(0)
        }
        "text" => Err("TAKEN: it is taken, says the text".into()),
        "validation" => Err(CallError::new("VALIDATION_ERROR", "not so")),
        _ => Err(CallError::execution("the secret of a failure: /etc/passwd")),
    }
}

/// Who calls.
#[operation(namespace = "users", kind = query, scopes("me:read"))]
pub(crate) async fn me(context: &Context) -> String {
    context.identity().map_or("nobody", |identity| &identity.id).to_owned()
}

/// Counts up to a number.
#[operation(namespace = "math")]
pub(crate) async fn count(
    context: &Context,
    to: u64,
) -> impl futures_util::Stream<Item = Result<String, CallError>> + use<> {
    let last = context.metadata().and_then(|metadata| metadata.get("lastEventId")?.as_str().map(str::to_owned));
    let item = move |n| match n {
        13 => Err(CallError::new("UNLUCKY", "no thirteen")),
        n => Ok(last.as_ref().map_or_else(|| format!("{n}\n"), |last| format!("{n} after {last}"))),
    };
    futures_util::stream::iter((1..=to).map(item))
}

/// A registry of the operations above.
pub(crate) fn registry() -> Registry {
    let registry = Registry::new();
    registry.register(Add).unwrap();
    registry.register(Fail).unwrap();
    registry.register(Me).unwrap();
    registry.register(Count).unwrap();
    registry
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) stop: CancelToken,
    pub(crate) running: Option<JoinHandle<std::io::Result<()>>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub(crate) async fn serve(server: HttpServer) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), CancelToken::new());
    let running = Some(tokio::spawn(server.with_cancel(stop.clone()).serve_listener(listener)));
    Server { address, stop, running }
}

/// A response as it came.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The body, which is a problem of this status.
    pub(crate) fn problem(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        assert_eq!(problem["request"], self.header("x-request-id").unwrap());
        problem
    }
}

impl Server {
    /// Sends a request with these headers and a body with its length.
    pub(crate) async fn send(&self, line: &str, headers: &[&str], body: &str) -> Answer {
        let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        self.raw(
            format!("{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{length}{headers}\r\n{body}")
                .as_bytes(),
        )
        .await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path}"), &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, json: &str) -> Answer {
        self.send(&format!("POST {path}"), &["content-type: application/json"], json).await
    }

    /// Sends bytes, and reads the response to the end of the connection.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> Answer {
        parse(self.text(bytes).await.as_bytes())
    }

    /// Sends bytes, and gives all that comes until the end of the connection.
    pub(crate) async fn text(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // A server that refuses a request need not read all of it.
        let _ = stream.write_all(bytes).await;
        let mut read = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut read)).await;
        assert!(ended.is_ok(), "no end after {}", String::from_utf8_lossy(&read));
        String::from_utf8_lossy(&read).into_owned()
    }
}

fn parse(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0);
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let is_chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let body = if is_chunked { unchunked(body) } else { body.to_owned() };
    Answer { status, headers, body }
}

fn unchunked(mut text: &str) -> String {
    let mut body = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        body.push_str(&rest[..size]);
        text = rest[size..].trim_start_matches("\r\n");
        if size == 0 {
            break;
        }
    }
    body
}
