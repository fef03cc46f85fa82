//! A payment service. It takes the money once for each idempotency key.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

/// How long a response takes after the money was taken.
const SLOW: Duration = Duration::from_millis(100);

/// A running service.
#[derive(Clone, Default)]
pub struct Bank(Arc<Mutex<Ledger>>);

#[derive(Default)]
struct Ledger {
    /// The payments by their idempotency keys.
    payments: BTreeMap<String, Value>,
    requests: usize,
}

impl Bank {
    /// Starts the service. Returns it with its URL.
    pub async fn start() -> std::io::Result<(Self, String)> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let bank = Self::default();
        let router = Router::new().route("/payments", post(pay)).with_state(bank.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok((bank, url))
    }

    /// How often the money for an order was taken.
    pub fn payments(&self, order: u64) -> usize {
        let description = format!("Order {order}");
        self.read(|ledger| ledger.payments.values().filter(|payment| payment["description"] == description).count())
    }

    /// The number of requests so far.
    pub fn requests(&self) -> usize {
        self.read(|ledger| ledger.requests)
    }

    fn read<T>(&self, read: impl FnOnce(&mut Ledger) -> T) -> T {
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn pay(State(bank): State<Bank>, headers: HeaderMap, body: Bytes) -> (StatusCode, Json<Value>) {
    let refused = |title: &str| (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({ "title": title })));
    let Some(key) = headers.get("idempotency-key").and_then(|key| key.to_str().ok()) else {
        return refused("a payment needs an idempotency key");
    };
    let Ok(request) = serde_json::from_slice::<Value>(&body) else { return refused("the body is not JSON") };
    let payment = bank.read(|ledger| {
        ledger.requests += 1;
        let id = format!("tr_{}", ledger.payments.len() + 1);
        let payment = ledger.payments.entry(key.to_owned()).or_insert_with(|| {
            let mut payment = request.clone();
            payment["id"] = id.into();
            payment["status"] = "paid".into();
            payment
        });
        payment.clone()
    });
    if payment["amount"] != request["amount"] || payment["description"] != request["description"] {
        return refused("the idempotency key belongs to another payment");
    }
    tokio::time::sleep(SLOW).await;
    (StatusCode::CREATED, Json(payment))
}
