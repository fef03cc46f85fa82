//! The operations, and our server and client.

use ops_runtime::call::websocket::{Hub, WebSocketClient, WebSocketConfig};
use ops_runtime::call::{CallHandler, Remote};
use ops_runtime::{Registry, operation};
use serde::{Deserialize, Serialize};

/// Adds two numbers.
#[operation(namespace = "bench", kind = query)]
pub async fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// A record of about 1 KB.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Order {
    pub id: u64,
    pub customer: String,
    pub lines: Vec<Line>,
}

/// A line of an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Line {
    pub product: String,
    pub count: u32,
    pub price: f64,
}

impl Order {
    pub fn sample() -> Self {
        let line = |n: u32| Line { product: format!("a product of number {n}"), count: n, price: 1.5 * f64::from(n) };
        Self { id: 7, customer: "Ann Example".to_owned(), lines: (0..16).map(line).collect() }
    }
}

/// Gives an order back.
#[operation(namespace = "bench", kind = query)]
pub async fn send_back(order: Order) -> Order {
    order
}

pub fn registry() -> Registry {
    let registry = Registry::new();
    registry.register(Add).unwrap();
    registry.register(SendBack).unwrap();
    registry
}

pub async fn serve() {
    let server = Hub::new(CallHandler::new(registry())).listen("127.0.0.1:0").await.unwrap();
    crate::listening(&server.url()).await;
}

pub async fn connect(url: &str) -> Remote {
    WebSocketClient::connect(url, WebSocketConfig::new()).await.unwrap().remote()
}
