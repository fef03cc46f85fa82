//! `varied ADDRESS`: serves the forty operations of `ops_tests::varied` to who knows the token, until it is ended. It prints
//! the address, of which the port may be 0 for any.

use std::process::ExitCode;

use ops_runtime::access::Identity;
use ops_runtime::serve::{BearerTokens, HttpServer};
use ops_tests::varied;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(address) = std::env::args().nth(1) else {
        eprintln!("usage: varied ADDRESS");
        return ExitCode::from(2);
    };
    match run(&address).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(address: &str) -> Result<(), Box<dyn std::error::Error>> {
    let tokens = BearerTokens::new().with_token(varied::TOKEN, Identity::new("tester").with_scope("varied"));
    let server = HttpServer::new(varied::registry()?).with_title("Varied").with_authenticator(tokens);
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("{}", listener.local_addr()?);
    Ok(server.serve_listener(listener).await?)
}
