//! Files in inputs, as they are logged: names, types and sizes, but no contents.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::adapter::Bodies;
use crate::gateway::size::size_of;
use crate::run::registry::Entry;
use crate::run::schemas::WhichFiles;
use crate::{Body, Context};

/// The size of an input: that of its JSON, and of the bodies beside it if known.
pub(in crate::gateway) fn size(input: &Value, context: Option<&Context>) -> Option<usize> {
    let size = size_of(input, usize::MAX)?;
    let Some(bodies) = bodies(context) else { return Some(size) };
    let (placeholders, beside) = bodies.sizes();
    Some(size.saturating_sub(placeholders).saturating_add(usize::try_from(beside).unwrap_or(usize::MAX)))
}

/// An input for the log: each file is replaced by its description, and so is each text that may be a file. A file is a
/// body beside the input, or a string that is described as bytes.
pub(in crate::gateway) fn told<'v>(entry: &Entry, input: &'v Value, context: Option<&Context>) -> Cow<'v, Value> {
    described(entry, input, context, WhichFiles::Possible)
}

/// An input for a user who is asked about the call: each file is replaced by its description, but no text that may be a
/// plain one. It could say anything, and the user would not see it.
pub(in crate::gateway) fn asked<'v>(entry: &Entry, input: &'v Value, context: Option<&Context>) -> Cow<'v, Value> {
    described(entry, input, context, WhichFiles::Certain)
}

fn described<'v>(entry: &Entry, input: &'v Value, context: Option<&Context>, which: WhichFiles) -> Cow<'v, Value> {
    let (bodies, files) = (bodies(context), entry.schemas.files(&entry.spec));
    if bodies.is_none() && files.is_none() {
        return Cow::Borrowed(input);
    }
    let mut told = input.clone();
    if let Some(bodies) = bodies {
        let mut pending = vec![&mut told];
        while let Some(value) = pending.pop() {
            if let Some(body) = bodies.get(value) {
                *value = facts(body);
                continue;
            }
            match value {
                Value::Array(items) => pending.extend(items),
                Value::Object(members) => pending.extend(members.values_mut()),
                _ => {}
            }
        }
    }
    if let Some(files) = files {
        files.each(&mut told, which, |file| {
            *file = json!({ "bytes": Body::length_of_text(file.as_str().unwrap_or_default()) })
        });
    }
    Cow::Owned(told)
}

/// True if bodies are passed beside the JSON of an input.
pub(in crate::gateway) fn are_beside(context: &Context) -> bool {
    bodies(Some(context)).is_some()
}

fn bodies(context: Option<&Context>) -> Option<&Bodies> {
    context?.extension::<Bodies>().filter(|bodies| !bodies.is_empty())
}

/// The description of a body.
fn facts(body: &Body) -> Value {
    let facts = [
        ("fileName", body.file_name().map(Value::from)),
        ("contentType", body.content_type().map(Value::from)),
        ("bytes", body.known_length().map(Value::from)),
    ];
    let known = facts.into_iter().filter_map(|(name, fact)| Some((name.to_owned(), fact?)));
    Value::Object(known.collect::<Map<_, _>>())
}
