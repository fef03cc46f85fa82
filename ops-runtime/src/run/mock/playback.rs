//! Results from a recording.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::line::{Answer, Line};
use crate::model::lock::lock;
use crate::model::text::readable;
use crate::normalise::equal;
use crate::{CallError, pointer};

/// How many differences to the nearest call are listed.
const MOST: usize = 3;

/// The recorded calls of an operation, in their order.
#[derive(Debug, Default)]
pub(super) struct Tape(Mutex<Vec<Recorded>>);

#[derive(Debug)]
struct Recorded {
    input: Value,
    answer: Answer,
    was_played: bool,
}

/// The tapes of all operations of a recording, and whether they are subscriptions.
pub(super) type Tapes = BTreeMap<String, (bool, Tape)>;

/// # Errors
/// If the file cannot be read, or a line is no recorded call.
pub(super) fn read(path: &Path) -> Result<Tapes, CallError> {
    let shown = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| CallError::execution(format!("the recording `{shown}` cannot be read: {error}")))?;
    let mut tapes = Tapes::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong =
            |what: &str| CallError::execution(format!("line {} of `{shown}` is not a recorded call: {what}", at + 1));
        let Line { id, input, answer } = Line::parse(line).map_err(|what| wrong(&what))?;
        let streams = matches!(answer, Answer::Items(_));
        let (known, tape) = tapes.entry(id).or_insert_with(|| (streams, Tape::default()));
        if *known != streams {
            return Err(wrong("another line has the operation with one result, or this one has"));
        }
        let calls = tape.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        calls.push(Recorded { input, answer, was_played: false });
    }
    Ok(tapes)
}

impl Tape {
    /// The result of the first recorded call with this input that was not played yet; the last again if all were.
    ///
    /// # Errors
    /// If there is none; the error has the differences to the nearest call.
    pub(super) fn answer(&self, id: &str, input: &Value) -> Result<Answer, CallError> {
        let mut calls = lock(&self.0);
        let fits = |call: &Recorded| equal(&call.input, input);
        let next = calls.iter().position(|call| fits(call) && !call.was_played);
        let at = next.or_else(|| calls.iter().rposition(fits));
        if let Some(call) = at.and_then(|at| calls.get_mut(at)) {
            call.was_played = true;
            return Ok(call.answer.clone());
        }
        let differences = calls.iter().map(|call| differences(&call.input, input));
        let nearest = differences.min_by_key(Vec::len).unwrap_or_default();
        let mut message = format!("no recorded call of `{id}` has this input");
        let more = nearest.len().saturating_sub(MOST);
        for (at, (pointer, recorded, found)) in nearest.iter().take(MOST).enumerate() {
            let start = if at == 0 { ": the nearest has" } else { "," };
            let place = if pointer.is_empty() { String::new() } else { format!(" at `{}`", readable(pointer, 200)) };
            let _ = write!(message, "{start} {recorded} instead of {found}{place}");
        }
        if more > 0 {
            let _ = write!(message, ", and {more} more differences");
        }
        Err(CallError::execution(message))
    }
}

/// The places in which two values differ, each with both values.
fn differences(recorded: &Value, found: &Value) -> Vec<(String, String, String)> {
    let mut all = Vec::new();
    compare(Some(recorded), Some(found), &mut String::new(), &mut all);
    all
}

fn compare(
    recorded: Option<&Value>,
    found: Option<&Value>,
    place: &mut String,
    all: &mut Vec<(String, String, String)>,
) {
    let mut each = |name: &str, recorded: Option<&Value>, found: Option<&Value>| {
        let length = place.len();
        let _ = write!(place, "/{}", pointer::escaped(name));
        compare(recorded, found, place, all);
        place.truncate(length);
    };
    match (recorded, found) {
        (Some(Value::Object(recorded)), Some(Value::Object(found))) => {
            for (name, value) in recorded {
                each(name, Some(value), found.get(name));
            }
            for (name, value) in found.iter().filter(|(name, _)| !recorded.contains_key(*name)) {
                each(name, None, Some(value));
            }
        }
        (Some(Value::Array(recorded)), Some(Value::Array(found))) => {
            for at in 0..recorded.len().max(found.len()) {
                each(&at.to_string(), recorded.get(at), found.get(at));
            }
        }
        (Some(recorded), Some(found)) if equal(recorded, found) => {}
        (recorded, found) => {
            let shown = |value: Option<&Value>| {
                value.map_or_else(|| "nothing".to_owned(), |value| format!("`{}`", readable(&value.to_string(), 60)))
            };
            all.push((place.clone(), shown(recorded), shown(found)));
        }
    }
}
