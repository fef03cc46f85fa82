//! Chapter 1: a function.

use ops_runtime::Registry;
use tutorial::Postage;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = Registry::new();
    registry.register(Postage)?;

    let price = registry.execute::<Postage>(2.0).await?;
    println!("{:.2} euros, from {}", price.data, price.meta.source());

    let error = registry.execute::<Postage>(90.0).await.unwrap_err();
    println!("{error}");
    Ok(())
}
