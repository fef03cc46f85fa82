//! What calls cost: calls a second and the time of one call, in process and over WebSocket, beside jsonrpsee, tarpc and
//! tonic.
//!
//! ```text
//! calls compare             a table; every server is a process of its own
//! calls only ROW CALLERS    one row of it
//! calls scale               what many pending calls, idle subscriptions and connections cost
//! calls serve ours|jsonrpsee|tarpc|tonic
//! ```

mod compare;
mod ours;
mod peers;
mod scale;

use std::time::Duration;

#[tokio::main(worker_threads = 2)]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["compare"] => compare::run(None).await,
        ["only", row, callers] => compare::run(Some((row, callers.parse().expect("a number")))).await,
        ["scale"] => scale::run().await,
        ["scale", part] => scale::part(part).await,
        ["serve", "ours"] => ours::serve().await,
        ["serve", "jsonrpsee"] => peers::jsonrpsee::serve().await,
        ["serve", "tarpc"] => peers::tarpc::serve().await,
        ["serve", "tonic"] => peers::tonic::serve().await,
        _ => panic!("usage: calls compare | only ROW CALLERS | scale | serve ours|jsonrpsee|tarpc|tonic"),
    }
}

/// Prints where a server listens, and waits until whoever started it goes away.
async fn listening(url: &str) {
    println!("{url}");
    let _ = tokio::io::copy(&mut tokio::io::stdin(), &mut tokio::io::sink()).await;
    tokio::time::sleep(Duration::ZERO).await;
}
