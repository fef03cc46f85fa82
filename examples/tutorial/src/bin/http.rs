//! Chapter 4: an HTTP server.

use ops_runtime::serve::HttpServer;
use tokio::net::TcpListener;
use tutorial::{bank, registry};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = registry(&bank::start().await?)?;
    let listener = TcpListener::bind(std::env::args().nth(1).as_deref().unwrap_or("127.0.0.1:8080")).await?;
    println!("http://{}/docs", listener.local_addr()?);
    HttpServer::new(registry).with_title("Post").with_docs().serve_listener(listener).await?;
    Ok(())
}
