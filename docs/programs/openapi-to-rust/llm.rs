//! A conversation with a model, which calls functions of this program. Its replies arrive piece by piece.

use std::error::Error;

use futures_util::TryStreamExt;
use llm::{
    AssistantMessage, AssistantMessageRole, Content, HttpClient, ImagePart, ImagePartType, Message, Part, ReplyEvent,
    ReplyRequest, TextPart, TextPartType, Tool, ToolCall, ToolMessage, ToolMessageRole, UserMessage, UserMessageRole,
};
use serde_json::{Value, json};

/// The client of `llm.yaml`.
pub mod llm;

/// The temperature in a city now, in degrees Celsius.
fn temperature(city: &str) -> f64 {
    if city == "Oslo" { -4.5 } else { 21.0 }
}

/// Runs a tool.
fn run(call: &ToolCall) -> Result<String, Box<dyn Error>> {
    let arguments: Value = call.arguments.parse()?;
    match (call.name.as_str(), arguments["city"].as_str()) {
        ("temperature", Some(city)) => Ok(temperature(city).to_string()),
        _ => Err(format!("there is no tool {} for these arguments", call.name).into()),
    }
}

/// Asks about a picture, runs the tools that the model calls, and returns its answer.
pub async fn ask(url: &str, key: &str, question: &str, picture: &str) -> Result<String, Box<dyn Error>> {
    let client = HttpClient::new().with_base_url(url).with_api_key(key);
    let text = Part::TextPart(TextPart { text: question.into(), r#type: TextPartType::Text });
    let image = Part::ImagePart(ImagePart { url: picture.into(), detail: None, r#type: ImagePartType::Image });
    let content = Content::PartArray(vec![text, image]);
    let question = Message::UserMessage(UserMessage { content, name: None, role: UserMessageRole::User });
    let tool = Tool {
        name: "temperature".into(),
        description: Some("The temperature in a city now, in degrees Celsius.".into()),
        parameters: json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] }),
    };
    let request = ReplyRequest::builder(vec![question], "small-2".into()).tools(vec![tool]).stream(true);
    let mut request = request.build();
    // A model may call tools for ever.
    for _ in 0..8 {
        let mut events = client.create_reply_sse(request.clone()).await?;
        let (mut text, mut calls) = (String::new(), Vec::new());
        while let Some(event) = events.try_next().await? {
            // An event that is not described is an error of its own.
            match serde_json::from_str(&event.data) {
                Ok(ReplyEvent::TextDelta(delta)) => text += &delta.text,
                Ok(ReplyEvent::ToolCalled(called)) => calls.push(called.call),
                Ok(ReplyEvent::ReplyFailed(failed)) => return Err(failed.problem.message.into()),
                _ => {}
            }
        }
        if calls.is_empty() {
            return Ok(text);
        }
        let (role, tool_calls) = (AssistantMessageRole::Assistant, Some(calls.clone()));
        let reply = AssistantMessage { content: Some(Some(text)), role, tool_calls };
        request.messages.push(Message::AssistantMessage(reply));
        for call in calls {
            let content = Content::String(run(&call).unwrap_or_else(|error| error.to_string()));
            let result = ToolMessage { content, role: ToolMessageRole::Tool, tool_call_id: call.id };
            request.messages.push(Message::ToolMessage(result));
        }
    }
    Err("the model called tools eight times, and gave no answer".into())
}
