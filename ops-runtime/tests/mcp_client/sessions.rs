//! Servers at a URL that have forgotten the session, and begin no other.

use axum::http::StatusCode;
use ops_runtime::mcp::McpServerConfig;
use serde_json::Value;

use crate::http::{Fault, Server, connect, work};

#[tokio::test]
async fn a_call_that_was_refused_with_its_session_is_not_called_unsure() {
    const HTML: &[(&str, &str)] = &[("content-type", "text/html")];
    let (server, url) = Server::start().await;
    let client = connect(McpServerConfig::http(url)).await;
    let page = Fault::Status(StatusCode::OK, HTML, "<html>");
    for (fault, why) in [
        (Fault::Reset, "the request failed"),
        (page, "text/html"),
        (Fault::Status(StatusCode::OK, &[], ""), "expect initialized"),
        (Fault::Drop(""), "empty sse stream"),
        (Fault::Drop("data: {\"id\":ID,\"result\":{}}\n\n"), "Deserialize error"),
    ] {
        server.then(Fault::Status(StatusCode::NOT_FOUND, &[], ""));
        *server.beginning.lock().unwrap() = Some(fault);
        let error = work(&client).await.unwrap_err();
        assert_eq!(*error.details(), Value::Null, "{error}");
        assert!(error.message().contains(why) && !error.message().contains("carried out"), "{error}");
    }
    assert_eq!((server.count("tools/call"), server.count("initialize")), (5, 6));
    assert_eq!((work(&client).await.unwrap().as_str(), client.in_flight()), ("worked", 0));
    client.close().await;
}
