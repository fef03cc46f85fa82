//! A client of an MCP server over HTTP, which runs in the same process here: `cargo run -p mcp-client`.

use std::error::Error;

use ops_runtime::access::Identity;
use ops_runtime::mcp::{McpClient, McpServer, McpServerConfig, McpServerOptions};
use ops_runtime::serve::BearerTokens;
use ops_runtime::{CallError, ErrorCode, Registry, operation};
use serde_json::json;
use tokio::net::TcpListener;

/// The token of Ann, for this process alone. A real server and its clients have theirs from their environment.
const TOKEN: &str = "t0k3n";

/// Says what a pet costs, in cents.
#[operation(namespace = "shop", kind = query, errors(NotFound = 404))]
async fn price(name: String) -> Result<u32, CallError> {
    match name.as_str() {
        "Rex" => Ok(2_500),
        _ => Err(CallError::new(Price::NOT_FOUND, format!("{name} is not for sale"))),
    }
}

/// Buys a pet.
#[operation(namespace = "shop", scopes("shop:buy"))]
async fn buy(name: String) -> String {
    format!("{name} is yours")
}

/// The server: two operations as tools, for those who show the token.
async fn start() -> Result<String, Box<dyn Error>> {
    let registry = Registry::new();
    registry.register(Price)?;
    registry.register(Buy)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let server = McpServer::new(registry).with_options(McpServerOptions::new("shop", "1.0.0"));
    // Its time to find a token does not tell how much of it was right, which a comparison by `==` would.
    let tokens = BearerTokens::new().with_token(TOKEN, Identity::new("ann"));
    tokio::spawn(server.into_service().with_authenticator(tokens).serve_listener(listener));
    Ok(url)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = start().await?;
    let config = McpServerConfig::http(url).with_bearer(TOKEN).with_namespace("pets");
    let client = McpClient::connect(config).await?;
    let server = client.server_info();
    println!("connected to {} {}, protocol {}", server.name, server.version, server.protocol_version);

    // The tools are operations: the namespace is the client's, the name that of the tool.
    for spec in client.operations() {
        println!("there is {}: {}", spec.id, spec.description);
    }
    let ids: Vec<_> = client.operations().iter().map(|spec| spec.id.clone()).collect();
    // `shop.buy` asks for a scope that the holder of this token lacks: it is not listed for her.
    assert_eq!(ids, ["pets.shop_price"]);

    let price = client.call("pets.shop_price", json!({ "name": "Rex" })).await?;
    println!("Rex costs {} cents (from {})", price.data, price.meta.source());
    assert_eq!(price.data, 2_500);

    // A call by id gives what a tool says that fails, and marks it; a typed call makes an error of it.
    let failed = client.call("pets.shop_price", json!({ "name": "Tom" })).await?;
    let answer = failed.meta.as_mcp().ok_or("not an answer of a tool")?;
    println!("Tom: {}", answer.content.iter().filter_map(|block| block.as_text()).collect::<String>());
    assert!(answer.is_error);

    // In a registry the tools stand beside all other operations, and follow the server when it has others.
    let registry = Registry::new();
    client.register_all(&registry)?;
    let error = registry.call("pets.shop_price", json!({ "name": 7 })).await.unwrap_err();
    println!("refused before it was sent: {error}");
    assert_eq!(*error.code(), ErrorCode::ValidationError);
    client.close().await;
    Ok(())
}
