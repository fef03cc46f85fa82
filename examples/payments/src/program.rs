//! Payments by a service: asking for money, and whether it has come.

use ops_runtime::{CallError, HttpClient, HttpConfig};
use payments::{Amount, Card, Methods, PaymentRequest};

ops_runtime::include_operations!(pub mod payments = "payments");

/// A client of the service.
pub fn connect(url: &str) -> Result<HttpClient, CallError> {
    HttpClient::new(HttpConfig::new().with_base_url(url))
}

/// Asks for money, and says where to pay.
pub async fn charge(client: &HttpClient, order: &str, value: &str) -> Result<String, CallError> {
    let mut request = PaymentRequest::new(format!("Order {order}"), Amount::new("EUR", value));
    request.redirect_url = Some(format!("https://shop.example.com/orders/{order}"));
    request.details = Some(Card::new("A. Jones").into());
    Ok(client.create_payment(request).await?.data.id)
}

/// The status of a payment; `None` if there is no such payment any more.
pub async fn status(client: &HttpClient, id: &str) -> Result<Option<String>, CallError> {
    match client.get_payment(id).await {
        Err(error) if matches!(error.status(), Some(404 | 410)) => Ok(None),
        payment => Ok(Some(payment?.data.status.to_string())),
    }
}
