//! Responses of a server at a URL that hold no answer: redirects, and results of `null`.

use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{StatusCode, Uri};
use axum::routing::get;
use futures_util::{StreamExt, stream};
use ops_runtime::mcp::{McpClient, McpServerConfig};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::http::{Fault, Server, connect, response, serve, work};
use crate::peers::LONG;

/// To the URL with a slash behind it.
const SLASH: &[(&str, &str)] = &[("location", "/mcp/?key=s3cret")];

#[tokio::test]
async fn a_redirect_that_would_lose_the_message_is_not_followed() {
    let (server, url) = Server::start().await;
    let client = connect(McpServerConfig::http(&url)).await;
    assert_eq!(work(&client).await.unwrap(), "worked");
    let streams = server.count("GET");
    let to = |status: u16| {
        format!("it redirects to `{url}/` with the status {status}, by which a message would be lost: set that URL")
    };
    for status in [301, 302, 303] {
        server.then(Fault::Status(StatusCode::from_u16(status).unwrap(), SLASH, ""));
        let error = work(&client).await.unwrap_err();
        assert_eq!(error.message(), format!("the MCP server `far`: {}", to(status)));
        assert_eq!((error.details(), server.count("GET")), (&Value::Null, streams));
    }
    assert_eq!(work(&client).await.unwrap(), "worked");
    client.close().await;
    // Whoever connects to such a URL reads it, too.
    *server.beginning.lock().unwrap() = Some(Fault::Status(StatusCode::MOVED_PERMANENTLY, SLASH, ""));
    let error = McpClient::connect(McpServerConfig::http(&url).with_namespace("far")).await.unwrap_err();
    assert!(error.message().contains(&to(301)), "{error}");
}

/// The stream of the server's own messages is requested without a message, so no redirect loses one.
#[tokio::test]
async fn a_stream_is_opened_where_a_redirect_leads() {
    const CHANGED: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
    let events = "text/event-stream";
    for (status, place, kind, lists) in
        [(302, "/docs", "text/html", 1), (301, "/mcp/", events, 2), (303, "/events", events, 2)]
    {
        let (server, seen) = (Server::default(), Arc::new(Mutex::new(Vec::new())));
        let asked = seen.clone();
        let answers = move |uri: Uri| {
            asked.lock().unwrap().push(uri.path().to_owned());
            let open = stream::once(ready(Ok::<_, std::io::Error>(CHANGED))).chain(stream::pending());
            ready(match uri.path() {
                "/mcp" => response(StatusCode::from_u16(status).unwrap(), &[("location", place)], ""),
                _ => response(StatusCode::OK, &[("content-type", kind)], Body::from_stream(open)),
            })
        };
        let router = Router::new().route("/{*path}", get(answers).fallback(serve)).with_state(server.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let client = connect(McpServerConfig::http(url)).await;
        assert_eq!(work(&client).await.unwrap(), "worked");
        let listed = async {
            while server.count("tools/list") < lists {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(LONG, listed).await.expect("the tools are listed in time");
        // Longer than until a stream is opened again.
        sleep(Duration::from_millis(500)).await;
        assert_eq!(
            (&seen.lock().unwrap()[..], server.count("tools/list")),
            (&["/mcp", place].map(str::to_owned)[..], lists)
        );
        client.close().await;
    }
}

#[tokio::test]
async fn redirects_are_followed_to_the_same_host_only() {
    let (server, url) = Server::start().await;
    let (elsewhere, other) = Server::start().await;
    let client = connect(McpServerConfig::http(&url).with_bearer("s3cret")).await;
    server.then(Fault::Redirect(format!("{url}/")));
    assert_eq!(work(&client).await.unwrap(), "worked");
    server.then(Fault::Redirect(other.clone()));
    let error = work(&client).await.unwrap_err();
    let origin = other.strip_suffix("/mcp").unwrap();
    let expected = format!("it redirects to another origin, `{origin}`, to which nothing is sent");
    assert!(error.message().ends_with(&expected), "{error}");
    assert_eq!(elsewhere.count(""), 0);
    client.close().await;
}

#[tokio::test]
async fn a_result_of_null_is_no_error_of_the_server() {
    const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
    let (server, url) = Server::start().await;
    let client = connect(McpServerConfig::http(&url)).await;
    server.then(Fault::Status(StatusCode::OK, JSON, r#"{"jsonrpc":"2.0","id":ID,"result":null}"#));
    let error = work(&client).await.unwrap_err();
    assert_eq!(error.message(), "the answer to `far.work` is not the result of a tool: it is no object");
    assert_eq!(error.details(), &json!({ "raw": null }));
    // Beside an error, it is none.
    let refused = r#"{"jsonrpc":"2.0","id":ID,"result":null,"error":{"code":-32001,"message":"no"}}"#;
    server.then(Fault::Status(StatusCode::OK, JSON, refused));
    let error = work(&client).await.unwrap_err();
    assert_eq!(error.details(), &json!({ "server": "far", "code": -32001, "message": "no" }));
    client.close().await;
}
