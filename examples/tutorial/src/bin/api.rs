//! Chapter 2: another API.

use tutorial::{Quote, QuoteInput, bank, registry};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = registry(&bank::start().await?)?;

    let price = registry.execute::<Quote>(QuoteInput { kilograms: 2.0, currency: "CHF".into() }).await?;
    println!("{} francs", price.data);

    let error = registry.execute::<Quote>(QuoteInput { kilograms: 2.0, currency: "XXX".into() }).await.unwrap_err();
    println!("{error}");
    Ok(())
}
