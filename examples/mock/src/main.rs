//! A program that is tested without what it calls: `cargo run -p mock`.
//!
//! It takes any `Caller`, so it runs with a registry, with a client, or with a mock that a test has made.

use std::error::Error;

use ops_runtime::mock::MockCaller;
use ops_runtime::{CallError, Caller, ErrorCode, Registry, operation};
use serde_json::json;

/// Says what a pet costs, in cents.
#[operation(namespace = "shop", kind = query, errors(NotFound = 404))]
async fn price(name: String) -> Result<u32, CallError> {
    if name == "Rex" { Ok(2_500) } else { Err(CallError::new(Price::NOT_FOUND, format!("{name} is not for sale"))) }
}

/// Says what so many cents of euros are in another currency.
#[operation(namespace = "bank", kind = query)]
async fn exchange(cents: u32, currency: String) -> String {
    format!("{}.{:02} in {currency}", cents / 100, cents % 100)
}

/// The program: one operation is called by its type, the other by its id.
async fn offer(caller: &impl Caller, name: &str) -> Result<String, CallError> {
    let price = match caller.execute::<Price>(name).await {
        Ok(price) => price.data,
        Err(error) if error.code() == Price::NOT_FOUND => return Ok(format!("there is no {name}")),
        Err(error) => return Err(error),
    };
    let converted = caller.call("bank.exchange", json!({ "cents": price, "currency": "CHF" })).await?.data;
    Ok(format!("{name} costs {}", converted.as_str().unwrap_or("nobody knows what")))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let registry = Registry::new();
    registry.register(Price)?;
    registry.register(Exchange)?;
    let said = offer(&registry, "Rex").await?;
    println!("with a registry: {said}");
    assert_eq!(said, "Rex costs 25.00 in CHF");

    // The mock answers with functions: of the operation's types, or of any JSON where it is only known by its id.
    let mock = MockCaller::new()
        .on::<Price>(|input| match input.name.as_str() {
            "Tom" => Ok(900),
            "Ann" => Err(CallError::new(Price::NOT_FOUND, "not here")),
            _ => Err("the shop is on fire".into()),
        })
        .on_id("bank.exchange", |input| Ok(json!(format!("{} of {}", input["cents"], input["currency"]))));

    let said = offer(&mock, "Tom").await?;
    println!("with a mock: {said}");
    assert_eq!(said, r#"Tom costs 900 of "CHF""#);

    // Errors are answers, too: one that the program knows what to do about, and one that it passes on.
    let said = offer(&mock, "Ann").await?;
    println!("an error that it knows: {said}");
    assert_eq!(said, "there is no Ann");
    let error = offer(&mock, "Rex").await.unwrap_err();
    println!("one that it does not know: {error}");
    assert_eq!((error.code(), error.operation()), (&ErrorCode::ExecutionError, Some("shop.price")));

    // What was called, and with what; after an error nothing was exchanged.
    for call in mock.calls() {
        println!("called: {} with {}", call.id, call.input);
    }
    assert_eq!(mock.calls_of("shop.price"), ["Tom", "Ann", "Rex"].map(|name| json!({ "name": name })));
    assert_eq!(mock.calls_of("bank.exchange"), [json!({ "cents": 900, "currency": "CHF" })]);

    // What it was not told how to answer is an error that says what it can.
    let error = offer(&MockCaller::new().on::<Price>(|_| Ok(1)), "Tom").await.unwrap_err();
    println!("not told: {error}");
    assert_eq!(*error.code(), ErrorCode::OperationNotFound);
    Ok(())
}
