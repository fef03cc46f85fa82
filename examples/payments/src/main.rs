//! A payment API: inputs from required properties, methods, typed errors: `cargo run -p payments`.

use std::error::Error;

pub mod program;
mod server;

use program::payments::{CreatePayment, CreatePaymentError, GetPayment, GetPaymentError, Methods};
use program::{charge, connect, status};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = server::start().await?;
    let client = connect(&server.url)?;

    let id = charge(&client, "12", "10.00").await?;
    println!("{id} is {:?}", status(&client, &id).await?);
    assert_eq!(status(&client, &id).await?.as_deref(), Some("open"));
    assert_eq!(status(&client, "tr_none").await?, None);
    assert_eq!(status(&client, "tr_gone").await?, None);

    // What the server refuses is an error with a type; what no document describes has the last variant.
    let error = charge(&client, "13", "free").await.unwrap_err();
    println!("{error}");
    assert!(matches!(
        error.declared::<CreatePayment>(),
        Some(CreatePaymentError::UnprocessableEntity(problem)) if problem.field.as_deref() == Some("amount")
    ));
    let error = status(&client, "tr_odd").await.unwrap_err();
    assert!(
        matches!(error.declared::<GetPayment>(), Some(GetPaymentError::Undeclared(response)) if response.status == 418)
    );
    assert_eq!((error.status(), error.is_retryable(), error.request_id()), (Some(418), false, Some("req-5")));

    // Nothing is required here, so nothing need be said.
    assert_eq!(client.list_payments(()).await?.data.payments.len(), 1);

    // The server saw what was said, and nothing else.
    let sent = r#"{"description":"Order 12","amount":{"currency":"EUR","value":"10.00"},"redirectUrl":"https://shop.example.com/orders/12","details":{"holder":"A. Jones"}}"#;
    assert_eq!(server.requests()[0], format!("POST /payments {sent}"));
    assert_eq!(server.requests()[1], format!("GET /payments/{id} "));
    assert_eq!(server.requests().last().map(String::as_str), Some("GET /payments "));
    Ok(())
}
