//! Chapter 1: a function.

use ops_runtime::Registry;
use tutorial::{Postage, PostageInput};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = Registry::new();
    registry.register(Postage)?;

    let price = registry.execute::<Postage>(PostageInput { kilograms: 2.0 }).await?;
    println!("{:.2} euros, from {}", price.data, price.meta.source());

    let error = registry.execute::<Postage>(PostageInput { kilograms: 90.0 }).await.unwrap_err();
    println!("{error}");
    Ok(())
}
