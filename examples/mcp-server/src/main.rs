//! Three operations as tools of any MCP host: `cargo run -p mcp-server` speaks the protocol on stdin and stdout.

use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use ops_runtime::mcp::{McpServer, McpServerOptions};
use ops_runtime::{CallError, Registry, operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Pet {
    name: String,
    /// In cents.
    price: u32,
}

/// Lists the pets that are for sale.
#[operation(namespace = "shop", kind = query)]
async fn list_pets(
    /// The highest price, in cents.
    max_price: Option<u32>,
) -> Vec<Pet> {
    let pets = [("Tom", 900), ("Rex", 2_500)].map(|(name, price)| Pet { name: name.into(), price });
    pets.into_iter().filter(|pet| max_price.is_none_or(|max| pet.price <= max)).collect()
}

/// Buys a pet, and says what it cost.
#[operation(namespace = "shop", errors(NotFound = 404))]
async fn buy_pet(name: String) -> Result<Pet, CallError> {
    let found = list_pets(None).await.into_iter().find(|pet| pet.name == name);
    found.ok_or_else(|| CallError::new(BuyPet::NOT_FOUND, format!("{name} is not for sale")))
}

/// Walks a pet around the block, and tells how far it got.
#[operation(namespace = "shop")]
async fn walk(
    /// How many steps.
    #[schemars(range(max = 100))]
    steps: u32,
) -> impl Stream<Item = String> {
    stream::iter(1..=steps).then(|step| async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        format!("step {step}")
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = Registry::new();
    registry.register(ListPets)?;
    registry.register(BuyPet)?;
    registry.register(Walk)?;
    let options = McpServerOptions::new("shop", "1.0.0").with_instructions("List the pets before you buy one.");
    McpServer::new(registry).with_options(options).serve_stdio().await?;
    Ok(())
}
