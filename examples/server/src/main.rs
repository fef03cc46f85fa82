//! Functions and another API as one server, for HTTP clients and MCP hosts on one port: `cargo run -p server [ADDRESS [HOST..]]`.
//!
//! Other machines reach it by the names that follow the address: `cargo run -p server 0.0.0.0:8080 shop.example.com`.

use std::time::Duration;

use axum::Router;
use futures_util::{Stream, StreamExt, stream};
use ops_runtime::mcp::McpServer;
use ops_runtime::serve::HttpServer;
use ops_runtime::{CallError, Context, HttpClient, HttpConfig, Registry, operation};
use rates::{Problem, Rate, ShowRate, ShowRateError, ShowRateInput};
use tokio::net::TcpListener;

ops_runtime::include_operations!(pub mod rates = "rates");

/// The price of a parcel within Europe, in euros.
#[operation(namespace = "post", kind = query)]
async fn postage(
    /// The weight in kilograms.
    kilograms: f64,
) -> f64 {
    4.5 + 0.8 * kilograms
}

/// The price of a parcel in any currency.
#[operation(namespace = "post", kind = query, errors(UnknownCurrency = 404))]
async fn postage_in(context: &Context, kilograms: f64, currency: String) -> Result<f64, CallError> {
    let price = postage(kilograms).await;
    match context.env().execute::<ShowRate>(currency).await {
        Ok(rate) => Ok((price * rate.data.rate * 100.0).round() / 100.0),
        Err(error) => match error.declared::<ShowRate>() {
            Some(ShowRateError::NotFound(problem)) => Err(CallError::new(PostageIn::UNKNOWN_CURRENCY, problem.title)),
            _ => Err(error),
        },
    }
}

/// Where a parcel is, until it is there.
#[operation(namespace = "post")]
async fn track(parcel: u32) -> impl Stream<Item = String> {
    stream::iter(["picked up", "on its way", "delivered"]).then(move |place| async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        format!("parcel {parcel} is {place}")
    })
}

/// The other API; a real one would run elsewhere.
struct Bank;

impl rates::Server for Bank {
    async fn show_rate(&self, _: Context, input: ShowRateInput) -> Result<Rate, CallError> {
        match input.currency.as_str() {
            "CHF" => Ok(Rate::new("CHF", 0.94)),
            "USD" => Ok(Rate::new("USD", 1.17)),
            other => Err(ShowRateError::NotFound(Problem::new(format!("no rate for {other}"))).into()),
        }
    }
}

/// Starts the other API; returns its URL.
async fn bank() -> Result<String, Box<dyn std::error::Error>> {
    let registry = Registry::new();
    rates::register_server(&registry, Bank)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(HttpServer::new(registry).serve_listener(listener));
    Ok(url)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = HttpClient::new(HttpConfig::new().with_base_url(bank().await?))?;
    let registry = Registry::new();
    registry.register(Postage)?;
    registry.register(PostageIn)?;
    registry.register(Track)?;
    registry.register_all(client.bind(rates::operations())?)?;

    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    // Requests for other names are refused, by both.
    let hosts: Vec<String> =
        ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).into_iter().chain(arguments).collect();
    let mcp = McpServer::new(registry.clone()).into_service().with_hosts(hosts.clone());
    let routes = Router::new().route_service("/mcp", mcp);
    let server = HttpServer::new(registry).with_title("Post").with_hosts(hosts).with_docs().with_routes(routes);

    let listener = TcpListener::bind(address).await?;
    println!("http://{0}/docs, its document http://{0}/openapi.json, MCP at http://{0}/mcp", listener.local_addr()?);
    // Not `axum::serve`, which would know no limits of connections and slow clients.
    Ok(server.serve_listener(listener).await?)
}
