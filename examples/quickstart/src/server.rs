//! The shop's server: three pets, two of them not as the document says, and a stream of sales.

use std::net::SocketAddr;

use axum::extract::{Path, Query};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

/// Serves the shop at an address; port 0 is any that is free.
pub(crate) async fn start(address: &str) -> std::io::Result<SocketAddr> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let router = Router::new().route("/pets/{id}", get(show_pet)).route("/sales", get(watch_sales));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

async fn show_pet(Path(id): Path<i64>) -> (StatusCode, Json<Value>) {
    match id {
        1 => (StatusCode::OK, Json(json!({ "id": 1, "name": "Rex", "status": "available", "price": 250.0 }))),
        // An id and a price that are text, and a property that nobody declared.
        2 => (
            StatusCode::OK,
            Json(json!({ "id": "2", "name": "Tom", "status": "sold", "price": "12.5", "colour": "red" })),
        ),
        // A pet without a name.
        3 => (StatusCode::OK, Json(json!({ "id": 3, "status": "sold" }))),
        _ => (StatusCode::NOT_FOUND, Json(json!({ "title": "no such pet" }))),
    }
}

async fn watch_sales(Query(query): Query<Value>) -> impl IntoResponse {
    let limit = query["limit"].as_str().and_then(|text| text.parse().ok()).unwrap_or(3);
    let event = |n: i32| {
        let sale = json!({ "petId": n, "price": 9.5 * f64::from(n) });
        format!("id: {n}\nevent: sale\ndata: {sale}\n\n")
    };
    ([(header::CONTENT_TYPE, "text/event-stream")], (1..=limit).map(event).collect::<String>())
}
