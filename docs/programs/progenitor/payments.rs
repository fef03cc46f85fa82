//! Payments by a service: asking for money, and whether it has come.

use payments::types::{Amount, Card, Details, PaymentRequest};
use payments::{Client, Error};

/// The client of `payments.yaml`.
pub mod payments {
    progenitor::generate_api!(spec = "payments.yaml", interface = Builder);
}

/// A client of the service.
pub fn connect(url: &str) -> Client {
    Client::new(url)
}

/// Asks for money, and says where to pay.
pub async fn charge(client: &Client, order: &str, value: &str) -> Result<String, Box<dyn std::error::Error>> {
    let details = Details::from(Card { holder: "A. Jones".into(), installments: None });
    let amount = Amount { currency: "EUR".parse()?, value: value.parse()? };
    let request = PaymentRequest::builder()
        .redirect_url(format!("https://shop.example.com/orders/{order}"))
        .details(details)
        .description(format!("Order {order}"))
        .amount(amount);
    Ok(client.create_payment().body(request).send().await?.into_inner().id)
}

/// The status of a payment; `None` if there is no such payment any more.
pub async fn status(client: &Client, id: &str) -> Result<Option<String>, Box<dyn std::error::Error>> {
    match client.get_payment().id(id).send().await {
        Err(Error::ErrorResponse(problem)) if problem.status() == 404 => Ok(None),
        Err(Error::UnexpectedResponse(response)) if response.status() == 410 => Ok(None),
        payment => Ok(Some(payment?.status.to_string())),
    }
}
