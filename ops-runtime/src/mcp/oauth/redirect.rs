//! Waits for the browser that the authorization server redirects.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use url::Url;

use crate::CallError;
use crate::mcp::invalid;

/// How many connections are served at a time, and how long one may take. Any program on this machine may connect.
const VISITS: usize = 64;
const VISIT: Duration = Duration::from_secs(10);

/// The longest line that is read, in bytes; every redirect is shorter.
const MAX_LINE: u64 = 64 * 1024;

/// Listens at the redirect URL.
pub(in crate::mcp) async fn listen(redirect: &str) -> Result<TcpListener, CallError> {
    let url = Url::parse(redirect).map_err(|error| invalid(format!("the redirect URL: {error}")))?;
    let address = match (url.host_str(), url.port_or_known_default()) {
        (Some("localhost" | "127.0.0.1"), Some(port)) => ("127.0.0.1", port),
        (Some("[::1]"), Some(port)) => ("::1", port),
        _ => return Err(invalid(format!("the redirect URL `{redirect}` is not of this machine"))),
    };
    TcpListener::bind(address)
        .await
        .map_err(|error| CallError::execution(format!("nobody can be waited for at `{redirect}`: {error}")))
}

/// The parameter `state` of the authorization URL, which comes back with the redirect.
pub(in crate::mcp) fn state(url: &str) -> Option<String> {
    parameter(&Url::parse(url).ok()?, "state")
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// Waits for the browser at the redirect URL with that state, and returns the URL that it requested.
///
/// Several connections are served at once. A request with another state belongs to another question: it gets the status
/// 400 and is ignored.
pub(in crate::mcp) async fn answer(
    listener: &TcpListener,
    redirect: &str,
    state: Option<&str>,
) -> Result<String, CallError> {
    enum Event {
        Connected(std::io::Result<(TcpStream, std::net::SocketAddr)>),
        Left(Option<Url>),
    }
    let expected = Url::parse(redirect).map_err(|error| invalid(format!("the redirect URL: {error}")))?;
    let mut visits = FuturesUnordered::new();
    loop {
        let event = {
            let has_room = visits.len() < VISITS;
            let connected = pin!(async { if has_room { listener.accept().await } else { pending().await } });
            let left = pin!(async {
                match visits.next().await {
                    Some(visited) => visited,
                    None => pending().await,
                }
            });
            match select(left, connected).await {
                Either::Left((visited, _)) => Event::Left(visited),
                Either::Right((connected, _)) => Event::Connected(connected),
            }
        };
        match event {
            Event::Left(Some(url)) => return Ok(url.into()),
            Event::Left(None) => {}
            Event::Connected(Ok((stream, _))) => {
                let expected = &expected;
                visits.push(async move { timeout(VISIT, visit(stream, expected, state)).await.unwrap_or_default() });
            }
            // For example too many open files, which is temporary.
            Event::Connected(Err(error)) => {
                tracing::debug!(%error, "a connection to the redirect URL could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Serves one connection; returns its URL if that is the expected redirect.
async fn visit(mut stream: TcpStream, expected: &Url, state: Option<&str>) -> Option<Url> {
    let mut line = String::new();
    BufReader::new((&mut stream).take(MAX_LINE)).read_line(&mut line).await.ok()?;
    let target = line.split(' ').nth(1).and_then(|target| expected.join(target).ok());
    let target = target.filter(|target| target.path() == expected.path() && target.query().is_some());
    let fits = |target: &Url| state.is_none_or(|state| parameter(target, "state").as_deref() == Some(state));
    let (status, text) = match &target {
        Some(target) if fits(target) => ("200 OK", "You can close this page."),
        Some(_) => ("400 Bad Request", "This is not the answer that is waited for."),
        None => ("404 Not Found", "Nothing is here."),
    };
    let length = text.len();
    let page = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}"
    );
    let visited = target.filter(fits);
    // It does not matter if the page arrives.
    let _ = timeout(Duration::from_secs(1), async {
        let _ = stream.write_all(page.as_bytes()).await;
        let _ = stream.shutdown().await;
    })
    .await;
    visited
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(port: u16, target: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.split("\r\n").next().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn only_the_answer_that_is_waited_for_ends_the_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let redirect = format!("http://127.0.0.1:{port}/callback");
        let wait = tokio::spawn(async move { answer(&listener, &redirect, Some("s 1")).await });
        // Silent connections must not block others.
        let mut silent = Vec::new();
        for _ in 0..20 {
            silent.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
        }
        assert_eq!(ask(port, "/other?code=1&state=s+1").await, "HTTP/1.1 404 Not Found");
        assert_eq!(ask(port, "/callback?code=1&state=wrong").await, "HTTP/1.1 400 Bad Request");
        assert_eq!(ask(port, "/callback?code=1").await, "HTTP/1.1 400 Bad Request");
        assert!(!wait.is_finished());
        assert_eq!(ask(port, "/callback?code=2&state=s%201").await, "HTTP/1.1 200 OK");
        assert!(wait.await.unwrap().unwrap().ends_with("/callback?code=2&state=s%201"));
    }

    #[test]
    fn the_state_is_that_of_the_question() {
        assert_eq!(state("https://a.example/authorize?x=1&state=a%2Bb").as_deref(), Some("a+b"));
        assert_eq!(state("https://a.example/authorize"), None);
    }
}
