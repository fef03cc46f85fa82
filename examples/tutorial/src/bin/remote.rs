//! Chapter 6: workers. `remote hub ADDRESS`, `remote worker URL`, `remote call URL`.

// ANCHOR: main
use ops_runtime::Registry;
use ops_runtime::call::CallHandler;
use ops_runtime::call::websocket::{Hub, WebSocketClient, WebSocketConfig};
use tutorial::{Quote, bank, registry};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["hub", address] => hub(address).await,
        ["worker", url] => worker(url).await,
        ["call", url] => call(url).await,
        _ => Err("usage: remote hub ADDRESS | worker URL | call URL".into()),
    }
}
// ANCHOR_END: main

// ANCHOR: hub
/// The hub serves nothing itself. It forwards calls to the workers that have connected.
async fn hub(address: &str) -> Result<(), Box<dyn std::error::Error>> {
    let hub = Hub::new(CallHandler::new(Registry::new())).with_forwarding().with_anonymous_serving();
    let server = hub.listen(address).await?;
    println!("{}", server.url());
    std::future::pending().await
}
// ANCHOR_END: hub

// ANCHOR: worker
/// A worker serves the operations of a registry to callers of the hub.
async fn worker(url: &str) -> Result<(), Box<dyn std::error::Error>> {
    let handler = CallHandler::new(registry(&bank::start().await?)?);
    let _worker = WebSocketClient::connect(url, WebSocketConfig::new().with_handler(handler)).await?;
    std::future::pending().await
}
// ANCHOR_END: worker

// ANCHOR: call
/// A caller has the same types, and no registry.
async fn call(url: &str) -> Result<(), Box<dyn std::error::Error>> {
    let client = WebSocketClient::connect(url, WebSocketConfig::new()).await?;
    let remote = client.remote();
    let price = remote.execute::<Quote>((2.0, "CHF")).await?;
    println!("{} francs", price.data);
    client.stop().await;
    Ok(())
}
// ANCHOR_END: call
