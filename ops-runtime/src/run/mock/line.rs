//! A recorded call: one line of JSON.
//!
//! `{"id": "shop.showPet", "input": {..}, "output": {"data": .., "meta": ..}}`; a failed call has `error` instead of
//! `output`. A subscription has `items` instead, each with an `output` or an `error`; one that was not opened has an
//! `error` and an empty list.
//!
//! An `error` has the members of a [`CallError`] and what its JSON leaves out: `retryable`, if the rest says otherwise, and
//! `mcp`, the result of the tool that failed.

use serde_core::Serialize;
use serde_json::{Map, Value, json};

use crate::model::body::handover;
use crate::run::payload::to_value;
use crate::{CallError, McpMeta, ResponseEnvelope};

/// The member of an error that says if the call may be repeated.
const RETRYABLE: &str = "retryable";

/// The member of an error with the result of the tool that failed.
const MCP: &str = "mcp";

/// The result of a call, or one item of a subscription.
pub(super) type Outcome = Result<Value, CallError>;

/// The recorded result of a call.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    One(Outcome),
    /// The items of a subscription, or why it was not opened.
    Items(Result<Vec<Outcome>, CallError>),
}

#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) id: String,
    pub(super) input: Value,
    pub(super) answer: Answer,
}

impl Line {
    pub(super) fn to_text(&self) -> String {
        let mut line = json!({ "id": self.id, "input": self.input });
        if let Some(members) = line.as_object_mut() {
            match &self.answer {
                Answer::One(outcome) => members.extend(written(outcome)),
                Answer::Items(Ok(items)) => {
                    let items = items.iter().map(|item| Value::Object(written(item).collect())).collect();
                    members.insert("items".to_owned(), Value::Array(items));
                }
                Answer::Items(Err(error)) => {
                    members.insert("items".to_owned(), Value::Array(Vec::new()));
                    members.extend(written(&Err(error.clone())));
                }
            }
        }
        line.to_string()
    }

    /// # Errors
    /// What is wrong with the line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let line: Map<String, Value> = crate::record::from_str(text).map_err(|error| error.to_string())?;
        let id = line.get("id").and_then(Value::as_str).ok_or("it has no `id`")?.to_owned();
        let input = line.get("input").cloned().unwrap_or_default();
        let answer = match line.get("items") {
            Some(Value::Array(items)) if items.is_empty() && line.contains_key("error") => {
                Answer::Items(Err(error_of(&line)?))
            }
            Some(Value::Array(_)) if line.contains_key("error") => {
                return Err("it has `items` and an `error`".to_owned());
            }
            Some(Value::Array(items)) => {
                let read =
                    |item: &Value| item.as_object().ok_or_else(|| "an item is no object".to_owned()).and_then(outcome);
                Answer::Items(Ok(items.iter().map(read).collect::<Result<_, _>>()?))
            }
            Some(_) => return Err("its `items` are no list".to_owned()),
            None => Answer::One(outcome(&line)?),
        };
        Ok(Self { id, input, answer })
    }
}

fn written(outcome: &Outcome) -> impl Iterator<Item = (String, Value)> + use<> {
    let (name, value) = match outcome {
        Ok(output) => ("output", output.clone()),
        Err(error) => ("error", written_error(error)),
    };
    std::iter::once((name.to_owned(), value))
}

fn written_error(error: &CallError) -> Value {
    let mut value = to_value(error).unwrap_or_default();
    if let Some(members) = value.as_object_mut() {
        let said =
            CallError::new(error.code().clone(), error.message().to_owned()).with_details(error.details().clone());
        if said.is_retryable() != error.is_retryable() {
            members.insert(RETRYABLE.to_owned(), error.is_retryable().into());
        }
        let mcp = error.mcp_meta().and_then(|meta| to_value(meta).ok());
        members.extend(mcp.map(|meta| (MCP.to_owned(), meta)));
    }
    value
}

fn outcome(members: &Map<String, Value>) -> Result<Outcome, String> {
    match (members.get("output"), members.get("error")) {
        (Some(output), None) => Ok(Ok(output.clone())),
        (None, Some(_)) => Ok(Err(error_of(members)?)),
        _ => Err("it has neither an `output` nor an `error`, or both".to_owned()),
    }
}

fn error_of(members: &Map<String, Value>) -> Result<CallError, String> {
    let error = members.get("error").unwrap_or(&Value::Null);
    let unread = |error: crate::record::DecodeError| format!("its `error` cannot be read: {error}");
    let mut read: CallError = crate::record::from_value(error).map_err(unread)?;
    if let Some(is_retryable) = error.get(RETRYABLE).and_then(Value::as_bool) {
        read = read.with_retryable(is_retryable);
    }
    match error.get(MCP) {
        Some(meta) => Ok(read.with_mcp_meta(crate::record::from_value::<McpMeta>(meta).map_err(unread)?)),
        None => Ok(read),
    }
}

/// An input as JSON, without the contents of bodies.
///
/// # Errors
/// If a part of it cannot be JSON: a number that is not finite.
pub(super) fn input_of(input: &impl Serialize) -> Result<Value, CallError> {
    let (input, _) = handover::scoped(|| to_value(input));
    input.map_err(|error| CallError::execution(format!("the input cannot be recorded: {}", error.message())))
}

/// The result of a call as it is recorded: without cookies, which are secrets of the session.
///
/// # Errors
/// If the data cannot be JSON: it is a stream of bytes.
pub(super) fn outcome_of<T: Serialize>(result: &Result<ResponseEnvelope<T>, CallError>) -> Result<Outcome, CallError> {
    match result {
        Ok(envelope) => {
            let mut output = to_value(envelope)?;
            if let Some(meta) = output.get_mut("meta").and_then(Value::as_object_mut) {
                meta.remove("setCookie");
            }
            Ok(Ok(output))
        }
        Err(error) => Ok(Err(error.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error after it was written and read, and as it was written.
    fn through(error: CallError) -> (CallError, Value) {
        let line = Line { id: "a.b".to_owned(), input: Value::Null, answer: Answer::One(Err(error)) };
        let text = line.to_text();
        let Answer::One(Err(read)) = Line::parse(&text).unwrap().answer else { panic!("{text}") };
        (read, serde_json::from_str::<Value>(&text).unwrap()["error"].take())
    }

    #[test]
    fn an_error_keeps_what_its_json_leaves_out() {
        let (late, refused) = (CallError::new("TIMEOUT", "late"), CallError::execution("no connection"));
        for (error, is_retryable, written) in [
            (late.clone(), true, None),
            (late.with_retryable(false), false, Some(json!(false))),
            (refused.clone(), false, None),
            (refused.with_retryable(true), true, Some(json!(true))),
        ] {
            let (read, json) = through(error.clone());
            assert_eq!((&read, read.is_retryable()), (&error, is_retryable), "{json}");
            assert_eq!(json.get("retryable"), written.as_ref(), "{json}");
        }
        let mut meta = McpMeta::new(true, Vec::new());
        meta.structured_content = Some(json!({ "why": 7 }));
        let (read, _) = through(CallError::new("TOOL_ERROR", "no").with_mcp_meta(meta.clone()));
        assert_eq!(read.mcp_meta(), Some(&meta));
    }
}
