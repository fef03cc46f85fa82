//! Large results: the part that fits is shown, and the rest is kept for a while, to be read on.

mod fit;
mod options;
mod part;
mod store;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use self::fit::{Parts, fit};
use self::part::thousands;
use self::store::Store;
use super::CallerId;
use super::size::size_of;
use crate::model::json::weight_of;
use crate::model::lock::lock;
use crate::model::nearest::{nearest, question};
use crate::model::text::readable;
use crate::{CallError, ErrorCode};

pub use self::options::ResultLimits;
pub use self::part::{Part, Unit};

/// The least to which a result may be shortened, so that any number and a part of any text fit.
const MIN_SHOWN: usize = 256;

/// How many names a message suggests.
const PROPOSED: usize = 3;

/// Shortens results, and keeps the rest for their callers. A clone is the same store.
///
/// What is shown is JSON of the same form: lists and objects with fewer items, texts with fewer characters. An object
/// shows all its members if possible, and shortens large ones; a list shows whole items from its start. A result is
/// kept in memory, for the caller that got it; for others its cursor does not exist. When there is no more room, the
/// least recently read results are dropped, first those of the caller itself, then those of the caller that has most.
///
/// ```
/// use ops_runtime::gateway::{CallerId, ReadAt, ResultLimits, Results};
/// use serde_json::json;
///
/// let results = Results::new(ResultLimits::new().with_max_shown(256));
/// let caller = CallerId::connection("1");
/// let items: Vec<u32> = (1000..2000).collect();
/// let fitted = results.fit(&caller, json!({ "total": 1000, "items": items }));
/// assert_eq!((&fitted.shown["total"], &fitted.shown["items"][0]), (&json!(1000), &json!(1000)));
/// assert_eq!(fitted.parts[0].to_string(), "/items: 46 of 1,000 items are shown, 954 more");
///
/// // On from there, and at another place.
/// let cursor = fitted.cursor.unwrap();
/// assert_eq!(results.read(&caller, &cursor, &ReadAt::default())?.shown[0], 1046);
/// let last = results.read(&caller, &cursor, &ReadAt::new().with_pointer("/items").with_from(999))?;
/// assert_eq!((last.shown, last.cursor), (json!([1999]), None));
/// # Ok::<(), ops_runtime::CallError>(())
/// ```
#[derive(Clone)]
pub struct Results(Arc<Inner>);

struct Inner {
    limits: ResultLimits,
    store: Mutex<Store>,
}

/// A result, or as much of it as fits.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Fitted {
    /// The result, or a part of it.
    pub shown: Value,
    /// The shortened places; empty if the result is whole. Only the first 20 are listed.
    pub parts: Vec<Part>,
    /// The cursor to read on; `None` if nothing is missing, or if the rest was not kept.
    pub cursor: Option<String>,
    /// A text for a model about what is missing and how to get it; `None` if the result is whole.
    pub note: Option<String>,
}

impl Fitted {
    /// The result itself if it is whole, otherwise `{ "result", "note", "cursor" }`.
    pub fn into_value(self) -> Value {
        let Some(note) = self.note else { return self.shown };
        let mut members = Map::from_iter([("result".to_owned(), self.shown), ("note".to_owned(), note.into())]);
        members.extend(self.cursor.map(|cursor| ("cursor".to_owned(), cursor.into())));
        Value::Object(members)
    }
}

/// Where to read in a kept result; by default at the position of its cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadAt {
    /// The JSON pointer of a value in the result (RFC 6901); `""` is the whole result.
    pub pointer: Option<String>,
    /// How many items, members or characters of that value to skip.
    pub from: Option<usize>,
}

impl ReadAt {
    /// Reads on at the position of the cursor.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the JSON pointer of the value to read, from its start.
    #[must_use]
    pub fn with_pointer(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// Sets how many items, members or characters to skip.
    #[must_use]
    pub fn with_from(mut self, from: usize) -> Self {
        self.from = Some(from);
        self
    }
}

impl Results {
    /// A store with these limits.
    pub fn new(limits: ResultLimits) -> Self {
        Self(Arc::new(Inner { limits, store: Mutex::default() }))
    }

    /// True if a result is shown whole.
    pub(super) fn fits(&self, result: &Value) -> bool {
        size_of(result, self.shown()).is_some()
    }

    /// Shortens a result if necessary, and then keeps it for the caller.
    pub fn fit(&self, caller: &CallerId, result: Value) -> Fitted {
        if self.fits(&result) {
            return Fitted { shown: result, parts: Vec::new(), cursor: None, note: None };
        }
        let result = Arc::new(result);
        let id = self.store().keep(caller, &result, weight_of(&result), Instant::now(), &self.0.limits);
        self.part(&result, "", 0, id.as_deref())
    }

    /// Reads a kept result on, or at another place.
    ///
    /// # Errors
    /// A `VALIDATION_ERROR` that names the wrong member: `/cursor` if the caller has no such result (any more);
    /// `/pointer` if the result has no such value; `/from` if that is beyond its end.
    pub fn read(&self, caller: &CallerId, cursor: &str, at: &ReadAt) -> Result<Fitted, CallError> {
        let (id, from, pointer) = parse(cursor).ok_or_else(|| self.unknown())?;
        let result = self.store().get(caller, id, Instant::now(), &self.0.limits).ok_or_else(|| self.unknown())?;
        let (pointer, from) = match &at.pointer {
            Some(pointer) => (pointer.as_str(), at.from.unwrap_or(0)),
            None => (pointer, at.from.unwrap_or(from)),
        };
        let value = result.pointer(pointer).ok_or_else(|| nothing_at(&result, pointer))?;
        if from > 0 && from >= count(value) {
            let message = format!("the value has {} parts: nothing is left from {from}", thousands(count(value)));
            return Err(invalid("/from", message));
        }
        Ok(self.part(value, pointer, from, Some(id)))
    }

    /// True if a result is kept for the caller under this cursor.
    pub(super) fn has(&self, caller: &CallerId, cursor: &str) -> bool {
        let kept = |(id, ..): (&str, usize, &str)| self.store().get(caller, id, Instant::now(), &self.0.limits);
        parse(cursor).and_then(kept).is_some()
    }

    /// The part that fits of a value at a place, beginning at an offset.
    fn part(&self, value: &Value, pointer: &str, from: usize, id: Option<&str>) -> Fitted {
        let mut parts = Parts::default();
        let shown = fit(value, pointer, from, self.shown(), &mut parts);
        let Parts { list: parts, more } = parts;
        if parts.is_empty() {
            return Fitted { shown, parts, cursor: None, note: None };
        }
        // A part inside of the value of which nothing is shown has more room when it is read by itself.
        let next = |part: &Part| if part.shown == 0 && part.pointer != pointer { Some(0) } else { part.next() };
        let unread = || parts.iter().filter_map(|part| Some((part, next(part)?)));
        // Usually lists are read on; of the unlisted parts, the last part is the nearest.
        let next = unread().find(|(part, _)| part.unit == Unit::Items).or_else(|| unread().next());
        let next = next.or_else(|| Some((parts.last()?, 0)).filter(|_| more > 0));
        let cursor = id.zip(next).map(|(id, (part, from))| format!("{id}.{from}{}", part.pointer));
        let note = self.note(&parts, more, cursor.is_some(), id.is_some());
        Fitted { shown, parts, cursor, note: Some(note) }
    }

    fn note(&self, parts: &[Part], more: usize, has_cursor: bool, is_kept: bool) -> String {
        let mut note = String::new();
        for part in parts {
            note.push_str(&format!("{part}. "));
        }
        if more > 0 {
            note.push_str(&format!("{} other values are cut, too. ", thousands(more)));
        }
        if !is_kept {
            note.push_str("The rest is not kept: ask for less at a time.");
        } else if has_cursor {
            note.push_str("Read on with the cursor; with a JSON pointer as `pointer`, and `from`, at another place.");
        } else {
            note.push_str("That is the end.");
        }
        note
    }

    /// Limit of the shown part of a result, in bytes.
    pub(super) fn shown(&self) -> usize {
        self.0.limits.max_shown.max(MIN_SHOWN)
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        lock(&self.0.store)
    }

    /// The same text for foreign, expired and invented cursors.
    fn unknown(&self) -> CallError {
        let keep = self.0.limits.keep;
        invalid(
            "/cursor",
            format!(
                "no result has this cursor: take it from the result as it is. One is kept for {keep:?} after it was read, or \
                 until there are too many; then make the call again, unless it changes something"
            ),
        )
    }
}

impl fmt::Debug for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Results").field("limits", &self.0.limits).finish_non_exhaustive()
    }
}

/// As much of a value as fits into so many bytes of JSON, the shortened places, and how many more of these there are.
pub(super) fn excerpt(value: &Value, room: usize) -> (Value, Vec<Part>, usize) {
    let mut parts = Parts::default();
    let shown = fit(value, "", 0, room, &mut parts);
    (shown, parts.list, parts.more)
}

/// The id of a result, the number of parts to skip, and the pointer: `ID.50/items`.
fn parse(cursor: &str) -> Option<(&str, usize, &str)> {
    let (id, place) = cursor.split_once('.')?;
    let (from, pointer) = place.split_at(place.find('/').unwrap_or(place.len()));
    Some((id, from.parse().ok()?, pointer))
}

/// The number of parts at which a value can be read on.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        Value::String(text) => text.chars().count(),
        _ => 1,
    }
}

fn nothing_at(result: &Value, pointer: &str) -> CallError {
    let shown = readable(pointer, 200);
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return invalid("/pointer", format!("`{shown}` is no JSON pointer: it begins with `/`"));
    }
    // The last existing place on the path.
    let mut there = result;
    for token in crate::pointer::tokens(pointer) {
        match there.pointer(&format!("/{}", crate::pointer::escaped(&token))) {
            Some(value) => there = value,
            None => {
                let hint = match there {
                    Value::Object(members) => question(&nearest(&token, members.keys().map(String::as_str), PROPOSED)),
                    Value::Array(items) => format!(": the list has {} items, counted from 0", thousands(items.len())),
                    _ => String::new(),
                };
                return invalid("/pointer", format!("the result has nothing at `{shown}`{hint}"));
            }
        }
    }
    invalid("/pointer", format!("the result has nothing at `{shown}`"))
}

fn invalid(pointer: &str, message: String) -> CallError {
    let violations = json!([{ "pointer": pointer, "message": message }]);
    CallError::new(ErrorCode::ValidationError, message).with_details(json!({ "violations": violations }))
}

#[cfg(test)]
mod tests;
