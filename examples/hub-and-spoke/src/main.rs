//! A hub and three spokes, each a process of its own: `cargo run -p hub-and-spoke`.
//!
//! Two spokes draw and count words; the third calls them through the hub, as it calls the hub itself. The first process is
//! the hub, and starts the others.

use std::error::Error;
use std::process::Stdio;
use std::time::Duration;

use axum::http::StatusCode;
use futures_util::{Stream, StreamExt, stream};
use ops_runtime::access::Identity;
use ops_runtime::call::websocket::{Hub, WebSocketClient, WebSocketConfig};
use ops_runtime::call::{CallHandler, PeerAuth};
use ops_runtime::{CallError, CallOptions, Context, Registry, operation};
use tokio::process::{Child, Command};

/// Says who is who; a real hub would look into its tokens.
const TOKENS: [(&str, &str); 3] = [("t-artist", "artist"), ("t-clerk", "clerk"), ("t-visitor", "visitor")];

/// Greets the caller.
#[operation(namespace = "hub", kind = query)]
async fn greet(context: &Context) -> String {
    format!("welcome, {}", context.identity().map_or("stranger", |identity| &identity.id))
}

/// Draws a line of that length, stroke by stroke.
#[operation(namespace = "art")]
async fn draw(length: usize) -> impl Stream<Item = String> {
    stream::iter(1..=length).map(|n| "~".repeat(n))
}

/// Counts the words of a text; only those who may read are told.
#[operation(namespace = "desk", kind = query, scopes("texts:read"))]
async fn words(text: String) -> usize {
    text.split_whitespace().count()
}

/// Takes its time.
#[operation(namespace = "desk")]
async fn ponder(seconds: u64) -> Result<String, CallError> {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Ok("42".to_owned())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => hub().await,
        [url, "artist"] => serve(url, "t-artist", |registry| registry.register(Draw)).await,
        [url, "clerk"] => {
            serve(url, "t-clerk", |registry| {
                registry.register_all([ops_runtime::adapter::Registration::from(Words), Ponder.into()])
            })
            .await
        }
        [url, "visitor"] => visit(url).await,
        _ => Err("usage: hub-and-spoke [URL artist|clerk|visitor]".into()),
    }
}

/// The hub: serves operations of its own, and passes on what spokes serve.
async fn hub() -> Result<(), Box<dyn Error>> {
    let registry = Registry::new();
    registry.register(Greet)?;
    let hub = Hub::new(CallHandler::new(registry)).with_forwarding().with_authenticator(|request| async move {
        let token = request.headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let known = TOKENS.iter().find(|(known, _)| Some(*known) == token);
        let (_, name) = known.ok_or(StatusCode::UNAUTHORIZED)?;
        Ok(PeerAuth::authenticated(Identity::new(*name).with_scope("texts:read")))
    });
    let server = hub.listen("127.0.0.1:0").await?;
    let url = server.url();
    println!("hub: listening on {url}");
    let _workers = [start(&url, "artist")?, start(&url, "clerk")?];
    // A spoke is there when it has said what it serves.
    while hub.remote().list().len() < 3 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The hub calls its spokes, too.
    let strokes = hub.remote().subscribe::<Draw>(3).await?;
    println!("hub: {} strokes", strokes.count().await);
    let status = start(&url, "visitor")?.wait().await?;
    server.stop().await;
    if status.success() { Ok(()) } else { Err("the visitor failed".into()) }
}

/// Starts another process of this program; it ends with this one.
fn start(url: &str, role: &str) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?).args([url, role]).stdin(Stdio::null()).kill_on_drop(true).spawn()
}

/// A spoke that serves, and believes the hub who calls.
async fn serve<E: Error + 'static>(
    url: &str,
    token: &str,
    register: impl FnOnce(&Registry) -> Result<(), E>,
) -> Result<(), Box<dyn Error>> {
    let registry = Registry::new();
    register(&registry)?;
    let config = WebSocketConfig::new().with_bearer(token).with_handler(CallHandler::new(registry)).trusting_hub();
    let _client = WebSocketClient::connect(url, config).await?;
    std::future::pending().await
}

/// A spoke that calls: what the hub serves and what others do look alike.
async fn visit(url: &str) -> Result<(), Box<dyn Error>> {
    let client = WebSocketClient::connect(url, WebSocketConfig::new().with_bearer("t-visitor")).await?;
    let remote = client.remote();
    for spec in remote.list() {
        println!("visitor: there is {}", spec.id);
    }
    println!("visitor: {}", remote.execute::<Greet>(()).await?.data);
    let text = "one two three".to_owned();
    println!("visitor: {} words", remote.execute::<Words>(text).await?.data);
    let mut strokes = remote.subscribe::<Draw>(4).await?;
    while let Some(stroke) = strokes.next().await {
        println!("visitor: {}", stroke?.data);
    }
    // The deadline travels: the clerk's handler is dropped, not only forgotten.
    let options = CallOptions::new().with_timeout(Duration::from_millis(200));
    let error = remote.execute_with::<Ponder>(60, options).await.map(|_| ()).unwrap_err();
    println!("visitor: {error}");
    client.stop().await;
    Ok(())
}
