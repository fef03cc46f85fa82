//! Waiting for the browser that comes back from the authorization server.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use crate::CallError;
use crate::mcp::config::invalid;

/// Listens at the redirect URL.
pub(super) async fn listen(redirect: &str) -> Result<TcpListener, CallError> {
    let url = url::Url::parse(redirect).map_err(|error| invalid(format!("the redirect URL: {error}")))?;
    let address = match (url.host_str(), url.port_or_known_default()) {
        (Some("localhost" | "127.0.0.1"), Some(port)) => ("127.0.0.1", port),
        (Some("[::1]"), Some(port)) => ("::1", port),
        _ => return Err(invalid(format!("the redirect URL `{redirect}` is not of this machine"))),
    };
    TcpListener::bind(address)
        .await
        .map_err(|error| CallError::execution(format!("nobody can be waited for at `{redirect}`: {error}")))
}

/// Waits for the browser to come to the redirect URL, and gives the URL that it came to.
pub(super) async fn answer(listener: &TcpListener, redirect: &str) -> Result<String, CallError> {
    let expected = url::Url::parse(redirect).map_err(|error| invalid(format!("the redirect URL: {error}")))?;
    loop {
        let (mut stream, _) = listener.accept().await?;
        let mut line = String::new();
        // More than any redirect is long.
        let mut reader = BufReader::new(tokio::io::AsyncReadExt::take(&mut stream, 64 * 1024));
        if reader.read_line(&mut line).await.is_err() {
            continue;
        }
        let target = line.split(' ').nth(1).and_then(|target| expected.join(target).ok());
        let visited = target.filter(|target| target.path() == expected.path() && target.query().is_some());
        let (status, text) = match visited {
            Some(_) => ("200 OK", "You can close this page."),
            None => ("404 Not Found", "Nothing is here."),
        };
        let length = text.len();
        let page = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}"
        );
        let _ = stream.write_all(page.as_bytes()).await;
        let _ = stream.shutdown().await;
        if let Some(url) = visited {
            return Ok(url.into());
        }
    }
}
