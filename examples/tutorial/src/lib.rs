//! The program of the book's tutorial: a post office. Each chapter has a program of its own in `src/bin`.
//!
//! The chapters add to this file from top to bottom, so `use` lines are where they are first needed.

// ANCHOR: postage
use ops_runtime::operation;

/// The price of a parcel within Europe, in euros.
#[operation(namespace = "post", kind = query)]
pub async fn postage(
    /// The weight in kilograms.
    #[schemars(range(min = 0, max = 30))]
    kilograms: f64,
) -> f64 {
    4.5 + 0.8 * kilograms
}
// ANCHOR_END: postage

// ANCHOR: include
use ops_runtime::{CallError, Context, HttpClient, HttpConfig, Registry};
use rates::ShowRateError;

pub mod bank;

ops_runtime::include_operations!(pub mod rates = "rates");
// ANCHOR_END: include

// ANCHOR: quote
/// The price of a parcel within Europe, in any currency.
#[operation(namespace = "post", kind = query, errors(UnknownCurrency = 404))]
pub async fn quote(context: &Context, kilograms: f64, currency: String) -> Result<f64, CallError> {
    let env = context.env();
    let euros = env.execute::<Postage>(kilograms).await?.data;
    match env.execute::<rates::ShowRate>(currency).await {
        Ok(rate) => Ok((euros * rate.data.rate * 100.0).round() / 100.0),
        Err(error) => match error.declared::<rates::ShowRate>() {
            Some(ShowRateError::NotFound(problem)) => Err(CallError::new(Quote::UNKNOWN_CURRENCY, problem.title)),
            _ => Err(error),
        },
    }
}
// ANCHOR_END: quote

// ANCHOR: registry
/// The prices of the post office, and the operations of the bank at that URL.
///
/// # Errors
/// If the URL is invalid, or if two operations have the same id.
pub fn registry(bank: &str) -> Result<Registry, Box<dyn std::error::Error>> {
    let client = HttpClient::new(HttpConfig::new().with_base_url(bank))?;
    let registry = Registry::new();
    registry.register(Postage)?;
    registry.register(Quote)?;
    registry.register_all(client.bind(rates::operations())?)?;
    Ok(registry)
}
// ANCHOR_END: registry

// ANCHOR: cheapest
use ops_runtime::Caller;

/// The first of some currencies in which a parcel costs the smallest number.
pub async fn cheapest(caller: &impl Caller, kilograms: f64, currencies: &[&str]) -> Result<Option<String>, CallError> {
    let mut best: Option<(f64, &str)> = None;
    for currency in currencies {
        match caller.execute::<Quote>((kilograms, *currency)).await {
            Ok(quote) if best.is_none_or(|(price, _)| quote.data < price) => best = Some((quote.data, currency)),
            Ok(_) => {}
            // A currency that the bank does not know is no reason to stop.
            Err(error) if error.code() == Quote::UNKNOWN_CURRENCY => {}
            Err(error) => return Err(error),
        }
    }
    Ok(best.map(|(_, currency)| currency.to_owned()))
}
// ANCHOR_END: cheapest

// ANCHOR: ship
/// Takes money from a customer.
#[operation(namespace = "post", kind = mutation)]
pub async fn charge(customer: String, euros: f64) -> String {
    format!("{customer} paid {euros:.2} euros")
}

/// Charges the sender of a parcel, and prints a label. A repeated attempt uses the stored receipt and label.
#[operation(namespace = "post", kind = mutation)]
pub async fn ship(context: &Context, customer: String, kilograms: f64) -> Result<String, CallError> {
    let euros = context.env().execute::<Postage>(kilograms).await?.data;
    let receipt = context.once::<Charge>("charge", ChargeInput { customer, euros }).await?.data;
    let label = context.step("label", || async { Ok("label 1".to_owned()) }).await?;
    Ok(format!("{receipt}; {label}"))
}
// ANCHOR_END: ship

// ANCHOR: test
#[cfg(test)]
mod tests {
    use ops_runtime::mock::MockCaller;

    use super::*;

    #[tokio::test]
    async fn unknown_currencies_are_skipped() {
        let mock = MockCaller::new().on::<Quote>(|input| match input.currency.as_str() {
            "CHF" => Ok(5.0),
            "USD" => Ok(6.5),
            _ => Err(CallError::new(Quote::UNKNOWN_CURRENCY, "no rate")),
        });
        let found = cheapest(&mock, 1.0, &["XXX", "USD", "CHF"]).await.unwrap();
        assert_eq!(found.as_deref(), Some("CHF"));
        assert_eq!(mock.calls_of("post.quote").len(), 3);
    }

    #[tokio::test]
    async fn a_quote_is_in_the_currency_that_is_asked_for() {
        let bank =
            MockCaller::new().on::<rates::ShowRate>(|input| Ok(rates::Rate { currency: input.currency, rate: 2.0 }));
        let registry = Registry::new();
        registry.register(Postage).unwrap();
        registry.register(Quote).unwrap();
        registry.register_all(bank.registrations()).unwrap();
        let input = QuoteInput { kilograms: 1.0, currency: "CHF".to_owned() };
        assert_eq!(registry.execute::<Quote>(input).await.unwrap().data, 10.6);
        assert_eq!(bank.calls_of("rates.showRate").len(), 1);
    }
}
// ANCHOR_END: test
