//! A conversation with a model that streams its replies and calls functions: `cargo run -p llm`.

use std::error::Error;

pub mod program;
mod server;

use ops_runtime::http::Auth;
use ops_runtime::{CallError, HttpClient, HttpConfig};
use program::ask;
use program::llm::{CreateReply, CreateReplyError, FinishReason, Methods, ReplyRequest, UserMessage};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = server::start().await?;
    let picture = "https://example.com/oslo.png";

    let answer = ask(&server.url, "k-1", "Is it cold there?", picture).await?;
    println!("{answer}");
    assert_eq!(answer, "Yes: it is −4.5 °C in Oslo.");

    // The model saw what was said, and nothing else. It is told why a tool failed.
    let question = r#"{"role":"user","content":[{"type":"text","text":"Is it cold there?"},{"type":"image","url":"https://example.com/oslo.png"}]}"#;
    let called = r#"{"role":"assistant","content":"Let me see.","tool_calls":[{"id":"c-1","name":"temperature","arguments":"{\"city\":\"Oslo\"}"},{"id":"c-2","name":"humidity","arguments":"{}"}]}"#;
    let found = r#"{"role":"tool","tool_call_id":"c-1","content":"-4.5"}"#;
    let failed = r#"{"role":"tool","tool_call_id":"c-2","content":"OPERATION_NOT_FOUND: operation not found: `tools.humidity`"}"#;
    let sent = server.take_requests();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0], streamed(question));
    assert_eq!(sent[1], streamed(&[question, called, found, failed].join(",")));

    // Arguments that are no JSON, of which the model is told, and a model that calls tools for ever.
    ask(&server.url, "k-1", "Is it warm?", picture).await?;
    let told = r#"{"role":"tool","tool_call_id":"c-3","content":"VALIDATION_ERROR: "#;
    assert!(matches!(&server.take_requests()[..], [_, second] if second.contains(told)));
    let error = ask(&server.url, "k-1", "How is it everywhere?", picture).await.unwrap_err();
    assert_eq!(error.to_string(), "the model called tools eight times, and gave no answer");
    assert_eq!(server.take_requests().len(), 8);

    // An error amid the events, and one in their place.
    let error = ask(&server.url, "k-1", "Is it hot?", picture).await.unwrap_err();
    assert_eq!(error.to_string(), "the model is tired");
    let error = ask(&server.url, "k-2", "Is it hot?", picture).await.unwrap_err().downcast::<CallError>()?;
    assert!(matches!(
        error.declared::<CreateReply>(),
        Some(CreateReplyError::ClientError(problem)) if problem.code.as_deref() == Some("no_such_key")
    ));
    assert_eq!(server.take_requests().len(), 2);

    // The same without events.
    let config = HttpConfig::new().with_base_url(&server.url).with_auth(Auth::bearer("k-1"));
    let hello = ReplyRequest::new("small-2", vec![UserMessage::new("Hello").into()]);
    let reply = HttpClient::new(config)?.create_reply(hello).await?.data;
    assert_eq!((reply.message.content.as_deref(), reply.finish_reason), (Some("At once."), FinishReason::Stop));
    let body = r#"{"model":"small-2","messages":[{"role":"user","content":"Hello"}]}"#;
    assert_eq!(server.take_requests(), [request("application/json", body)]);
    Ok(())
}

/// A request for events about these messages, as it arrives.
fn streamed(messages: &str) -> String {
    let tools = r#"[{"name":"temperature","description":"The temperature in a city now, in degrees Celsius.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]"#;
    let body = format!(r#"{{"model":"small-2","messages":[{messages}],"tools":{tools},"stream":true}}"#);
    request("text/event-stream", &body)
}

/// A request, as it arrives.
fn request(accept: &str, body: &str) -> String {
    let (length, version) = (body.len(), env!("CARGO_PKG_VERSION"));
    format!(
        "POST /replies\naccept: {accept}\nauthorization: Bearer k-1\ncontent-length: {length}\n\
         content-type: application/json\nuser-agent: ops-runtime/{version}\n\n{body}"
    )
}
