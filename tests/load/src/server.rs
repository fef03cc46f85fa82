//! The servers: ours, and one written by hand. Each runs on one thread.

use axum::Json;
use axum::extract::{Path, Query};
use axum::routing::{get, post};
use futures_util::{Stream, stream};
use ops_runtime::serve::{HttpServer, HttpServerOptions};
use ops_runtime::{Registry, operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Item {
    sku: String,
    count: u32,
    price: f64,
    note: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Receipt {
    customer: String,
    lines: Vec<Line>,
    total: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Line {
    sku: String,
    total: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Found {
    id: u64,
    tag: String,
    names: Vec<String>,
}

fn receipt(customer: String, items: &[Item]) -> Receipt {
    let line = |item: &Item| Line { sku: item.sku.clone(), total: f64::from(item.count) * item.price };
    let lines: Vec<Line> = items.iter().map(line).collect();
    Receipt { customer, total: lines.iter().map(|line| line.total).sum(), lines }
}

fn found(id: u64, tag: String, limit: u32) -> Found {
    Found { id, tag, names: (0..limit).map(|n| format!("name {n}")).collect() }
}

/// Prices an order.
#[operation(namespace = "shop", http = "POST /orders")]
async fn price(customer: String, items: Vec<Item>) -> Receipt {
    receipt(customer, &items)
}

/// Prices an order for a shop.
#[operation(namespace = "shop", http = "POST /shops/{shop}/orders")]
async fn order_at(shop: u32, customer: String, items: Vec<Item>) -> Receipt {
    let mut receipt = receipt(customer, &items);
    receipt.total += f64::from(shop);
    receipt
}

/// Finds things.
#[operation(namespace = "shop", http = "GET /things/{id}")]
async fn find(id: u64, tag: String, limit: Option<u32>) -> Found {
    found(id, tag, limit.unwrap_or(3))
}

/// Never says anything.
#[operation(namespace = "shop", http = "GET /events")]
async fn silence() -> impl Stream<Item = u32> {
    stream::pending()
}

#[derive(Deserialize)]
struct Order {
    customer: String,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Which {
    tag: String,
    limit: Option<u32>,
}

pub(crate) fn run(kind: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        match kind {
            "ours" => ours(listener).await,
            _ => by_hand(listener).await,
        }
    });
}

async fn ours(listener: TcpListener) {
    let registry = Registry::new();
    registry.register(Price).unwrap();
    registry.register(OrderAt).unwrap();
    registry.register(Find).unwrap();
    registry.register(Silence).unwrap();
    // Idle clients are not to be woken while their memory is counted.
    let options = HttpServerOptions::new().with_keep_alive(std::time::Duration::from_secs(300));
    HttpServer::new(registry).with_options(options).serve_listener(listener).await.unwrap();
}

async fn by_hand(listener: TcpListener) {
    let order_at = async |Path(shop): Path<u32>, Json(order): Json<Order>| {
        let mut receipt = receipt(order.customer, &order.items);
        receipt.total += f64::from(shop);
        Json(receipt)
    };
    let app = axum::Router::new()
        .route("/orders", post(async |Json(order): Json<Order>| Json(receipt(order.customer, &order.items))))
        .route("/shops/{shop}/orders", post(order_at))
        .route(
            "/things/{id}",
            get(async |Path(id): Path<u64>, Query(which): Query<Which>| {
                Json(found(id, which.tag, which.limit.unwrap_or(3)))
            }),
        );
    axum::serve(listener, app).await.unwrap();
}
