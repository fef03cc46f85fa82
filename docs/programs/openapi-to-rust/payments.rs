//! Payments by a service: asking for money, and whether it has come.

use payments::{Amount, ApiOpError, Card, Details, HttpClient};

/// The client of `payments.yaml`.
pub mod payments;

/// A client of the service.
pub fn connect(url: &str) -> HttpClient {
    HttpClient::new().with_base_url(url)
}

/// Asks for money, and says where to pay.
pub async fn charge(client: &HttpClient, order: &str, value: &str) -> Result<String, Box<dyn std::error::Error>> {
    let amount = Amount { currency: "EUR".into(), value: value.into() };
    let details = Details::Card(Card { holder: "A. Jones".into(), installments: None });
    let url = format!("https://shop.example.com/orders/{order}").parse()?;
    let request = client.create_payment_builder(amount, format!("Order {order}"));
    Ok(request.redirect_url(url).details(details).send().await?.id)
}

/// The status of a payment; `None` if there is no such payment any more.
pub async fn status(client: &HttpClient, id: &str) -> Result<Option<String>, Box<dyn std::error::Error>> {
    match client.get_payment_builder(id).send().await {
        Err(ApiOpError::Api(error)) if matches!(error.status, 404 | 410) => Ok(None),
        payment => Ok(Some(payment?.status.to_string())),
    }
}
