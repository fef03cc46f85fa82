//! The bank: another API, which this program serves itself, so that it needs no network.

use ops_runtime::serve::HttpServer;
use ops_runtime::{CallError, Context, Registry};
use tokio::net::TcpListener;

use crate::rates::{self, Problem, Rate, ShowRateError, ShowRateInput};

// ANCHOR: bank
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

/// Starts the bank in this process, and returns its URL.
///
/// # Errors
/// If there is no free port.
pub async fn start() -> Result<String, Box<dyn std::error::Error>> {
    let registry = Registry::new();
    rates::register_server(&registry, Bank)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(HttpServer::new(registry).serve_listener(listener));
    Ok(url)
}
// ANCHOR_END: bank
