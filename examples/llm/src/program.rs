//! A conversation with a model, which calls functions of this program. Its replies arrive piece by piece.

use futures_util::TryStreamExt;
use llm::{AssistantMessage, ImagePart, Methods, ReplyEvent, ReplyRequest, TextPart, Tool, ToolMessage, UserMessage};
use ops_runtime::{HttpClient, HttpConfig, Registry, http::Auth, operation};

ops_runtime::include_operations!(pub mod llm = "llm");

/// The temperature in a city now, in degrees Celsius.
#[operation(namespace = "tools", kind = query)]
async fn temperature(city: String) -> f64 {
    if city == "Oslo" { -4.5 } else { 21.0 }
}

/// Asks about a picture, runs the tools that the model calls, and returns its answer.
pub async fn ask(url: &str, key: &str, question: &str, picture: &str) -> Result<String, Box<dyn std::error::Error>> {
    let client = HttpClient::new(HttpConfig::new().with_base_url(url).with_auth(Auth::bearer(key)))?;
    let question = UserMessage::new(vec![TextPart::new(question).into(), ImagePart::new(picture).into()]);
    let mut request = ReplyRequest::new("small-2", vec![question.into()]);
    let tools = Registry::new();
    tools.register(Temperature)?;
    for op in tools.list() {
        let tool = Tool { description: Some(op.description.to_string()), ..Tool::new(op.name(), op.input_schema()?) };
        request.tools.get_or_insert_default().push(tool);
    }
    // A model may call tools for ever.
    for _ in 0..8 {
        let mut events = client.create_reply_stream(request.clone()).await?;
        let mut reply = AssistantMessage::default();
        while let Some(event) = events.try_next().await? {
            match event.data {
                ReplyEvent::TextDelta(delta) => *reply.content.get_or_insert_default() += &delta.text,
                ReplyEvent::ToolCalled(called) => reply.tool_calls.get_or_insert_default().push(called.call),
                ReplyEvent::ReplyFailed(failed) => return Err(failed.problem.message.into()),
                _ => {}
            }
        }
        let Some(calls) = reply.tool_calls.clone() else { return Ok(reply.content.unwrap_or_default()) };
        request.messages.push(reply.into());
        for call in calls {
            // What is no JSON is a text, which every tool refuses: the model is told so, and can mend its call.
            let arguments = call.arguments.parse().unwrap_or_else(|_| call.arguments.clone().into());
            let result = tools.call(&format!("tools.{}", call.name), arguments).await;
            let content = result.map_or_else(|error| error.to_string(), |found| found.data.to_string());
            request.messages.push(ToolMessage::new(call.id, content).into());
        }
    }
    Err("the model called tools eight times, and gave no answer".into())
}
