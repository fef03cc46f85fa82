//! Chapter 2: another API.

use tutorial::{Quote, bank, registry};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = registry(&bank::start().await?)?;

    let price = registry.execute::<Quote>((2.0, "CHF")).await?;
    println!("{} francs", price.data);

    let error = registry.execute::<Quote>((2.0, "XXX")).await.unwrap_err();
    println!("{error}");
    Ok(())
}
