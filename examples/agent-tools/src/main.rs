//! Own functions and an API behind the few tools of an MCP server.
//!
//! `cargo run -p agent-tools` shows what a model would read. With `serve`, it is the server for a host.

use ops_runtime::access::CallPolicy;
use ops_runtime::gateway::{Gateway, Tools};
use ops_runtime::{HttpConfig, Registry, operation};
use serde_json::{Value, json};

/// The document of the API. Here its operations are answered with examples; `with_document` would call the API.
const SHOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../quickstart/shop.yaml");

/// Converts an amount of euros to dollars.
#[operation(namespace = "money", kind = query)]
async fn to_dollars(euros: f64) -> f64 {
    euros * 1.17
}

/// Reserves a pet for a customer.
#[operation(namespace = "money", kind = mutation)]
async fn reserve(pet_id: i64, customer: String) -> String {
    format!("pet {pet_id} is reserved for {customer}")
}

/// The text that a model reads.
async fn tool(gateway: &Gateway, name: &str, input: Value) -> Result<String, Box<dyn std::error::Error>> {
    let answer = gateway.tools().call(name, input).await?;
    let blocks = answer.meta.as_mcp().map(|meta| meta.content.as_slice()).unwrap_or_default();
    Ok(blocks.iter().filter_map(|block| block.as_text()).collect::<Vec<_>>().join("\n"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = Registry::new();
    registry.register(ToDollars)?;
    registry.register(Reserve)?;
    let gateway = Gateway::builder()
        .with_registry(registry)
        .with_mock(SHOP, HttpConfig::new().with_namespace("shop"))
        .with_tools(Tools::Code)
        .with_policy(CallPolicy::new().with_ask("money.reserve"))
        .build()
        .await?;
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return Ok(gateway.serve_stdio().await?);
    }

    println!("{}\n", tool(&gateway, "gateway.search", json!({ "query": "what does a pet cost", "limit": 2 })).await?);
    println!("{}\n", tool(&gateway, "gateway.describe", json!({ "id": "shop.showPet" })).await?);
    let code = "
        const pets = await Promise.all([1, 2, 3].map(petId => ops.shop.showPet({ petId })));
        const prices = pets.map(pet => pet.price ?? 0);
        return { pets: pets.length, dollars: await ops.money.to_dollars({ euros: Math.max(...prices) }) };
    ";
    println!("{}\n", tool(&gateway, "gateway.execute", json!({ "code": code })).await?);
    // A call that changes something waits for the user.
    let code = "return await ops.money.reserve({ pet_id: 7, customer: 'Ann' })";
    println!("{}", tool(&gateway, "gateway.execute", json!({ "code": code })).await?);
    Ok(())
}
