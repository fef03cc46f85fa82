//! A conversation with a model, which calls functions of this program. Its replies arrive piece by piece.

use std::error::Error;

use eventsource_stream::Eventsource;
use futures::TryStreamExt;
use llm::types::{
    AssistantMessage, AssistantMessageRole, Content, ImagePart, ImagePartType, ReplyEvent, ReplyRequest, TextPart,
    TextPartType, Tool, ToolCall, ToolMessage, ToolMessageRole, UserMessage, UserMessageRole,
};
use serde_json::{Value, json};

/// The client of `llm.yaml`.
pub mod llm {
    progenitor::generate_api!(spec = "llm.yaml", interface = Builder);
}

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
    let client = reqwest::Client::new();
    let text = TextPart { text: question.into(), type_: TextPartType::Text };
    let image = ImagePart { url: picture.into(), detail: None, type_: ImagePartType::Image };
    let content = Content::Array(vec![text.into(), image.into()]);
    let question = UserMessage { content, name: None, role: UserMessageRole::User };
    let tool = Tool {
        name: "temperature".into(),
        description: Some("The temperature in a city now, in degrees Celsius.".into()),
        parameters: json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] }),
    };
    let request =
        ReplyRequest::builder().model("small-2").messages(vec![question.into()]).tools(vec![tool]).stream(true);
    let mut request = ReplyRequest::try_from(request)?;
    // A model may call tools for ever.
    for _ in 0..8 {
        // `Client::create_reply` reads a whole reply. A stream has no method.
        let response = client.post(format!("{url}/replies")).bearer_auth(key).json(&request).send().await?;
        let mut events = response.error_for_status()?.bytes_stream().eventsource();
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
        let (role, tool_calls) = (AssistantMessageRole::Assistant, calls.clone());
        request.messages.push(AssistantMessage { content: Some(text), role, tool_calls }.into());
        for call in calls {
            let content = Content::String(run(&call).unwrap_or_else(|error| error.to_string()));
            let result = ToolMessage { content, role: ToolMessageRole::Tool, tool_call_id: call.id };
            request.messages.push(result.into());
        }
    }
    Err("the model called tools eight times, and gave no answer".into())
}
