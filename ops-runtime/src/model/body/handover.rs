//! Bodies in flight: handed to an endpoint beside the JSON of an input.
//!
//! A typed input becomes a `serde_json::Value` on its way to an endpoint, and a stream has no JSON. So while the input
//! is serialised, which happens in one go on one thread, each of its bodies is put aside and replaced by a placeholder,
//! by which the endpoint finds it. The placeholder cannot be guessed, so that no input that is JSON already can refer
//! to the body of another caller. A server that receives a stream does the inverse: while the input is read, each
//! placeholder becomes its body.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Body;
use crate::CallError;
use crate::model::error::violation;
use crate::model::random;
use crate::pointer::escaped;

/// What a placeholder begins with.
const PREFIX: &str = "body:";

thread_local! {
    static ASIDE: RefCell<Option<Bodies>> = const { RefCell::new(None) };
    /// The bodies for an input that is being read, and the placeholders of those that it has asked for.
    static GIVEN: RefCell<Option<(Bodies, HashSet<String>)>> = const { RefCell::new(None) };
}

/// The bodies of a typed call that are not in its JSON: those of its input, and the one that its caller wants.
///
/// It is an [extension](crate::Context::extension) of calls to an endpoint that
/// [streams bodies](crate::adapter::Endpoint::streams_bodies), and absent if the call has no bodies. In the input that
/// the endpoint gets, a text that cannot be guessed stands for each body. Calls that a handler makes do not inherit it.
/// An endpoint that passes its input on gives it by [`CallOptions::with_extension`](crate::CallOptions::with_extension).
///
/// ```
/// use ops_runtime::{Body, Context};
/// use ops_runtime::adapter::Bodies;
/// use serde_json::Value;
///
/// /// The body that a member of the input is.
/// fn body(context: &Context, member: &Value) -> Option<Body> {
///     context.extension::<Bodies>()?.get(member).cloned()
/// }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bodies {
    /// By their placeholders.
    given: HashMap<String, Body>,
    wants_output: bool,
}

impl Bodies {
    /// The body that a value in the input stands for. `None` if the value is plain JSON.
    pub fn get(&self, value: &Value) -> Option<&Body> {
        self.given.get(value.as_str()?)
    }

    /// True if the input has no bodies.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// True if the operation's output is a [`Body`], so that the endpoint may answer with
    /// [`Payload::Body`](crate::adapter::Payload::Body) before it has all bytes.
    pub fn wants_output(&self) -> bool {
        self.wants_output
    }

    /// A part of the input in which each body is JSON, a string of base64, for where a protocol has no place for bytes.
    ///
    /// # Errors
    /// A `VALIDATION_ERROR` if a body is a file or a stream, which cannot be JSON. It has the place of the body in the value.
    pub fn to_json<'v>(&self, value: &'v Value) -> Result<Cow<'v, Value>, CallError> {
        self.resolved(value, || vec![(String::new(), value)])
    }

    /// Like [`to_json`](Self::to_json), with the place of the body in an input with these members.
    #[cfg(feature = "http")]
    pub(crate) fn to_json_of<'v>(
        &self,
        value: &'v Value,
        members: &serde_json::Map<String, Value>,
    ) -> Result<Cow<'v, Value>, CallError> {
        self.resolved(value, || members.iter().map(|(name, value)| (member("", name), value)).collect())
    }

    /// A value in which each body is JSON. An error has the place of the body in `whole`, values with their pointers.
    fn resolved<'v, 'w>(
        &self,
        value: &'v Value,
        whole: impl FnOnce() -> Vec<(String, &'w Value)>,
    ) -> Result<Cow<'v, Value>, CallError> {
        if self.is_empty() {
            return Ok(Cow::Borrowed(value));
        }
        let (mut resolved, mut failed) = (value.clone(), None);
        self.replace(&mut resolved, |placeholder, body| match body.text() {
            Ok(text) => Value::String(text.into_owned()),
            Err(_) => {
                failed = Some((placeholder.clone(), body));
                Value::Null
            }
        });
        match failed {
            Some((placeholder, body)) => Err(no_json(body, &place_of(&placeholder, whole()))),
            None => Ok(Cow::Owned(resolved)),
        }
    }

    /// A value and its bodies, apart: each body in it is `null`.
    #[cfg(feature = "http")]
    pub(crate) fn apart(&self, mut value: Value) -> (Value, Vec<Body>) {
        let mut bodies = Vec::new();
        self.replace(&mut value, |_, body| {
            bodies.push(body.clone());
            Value::Null
        });
        (value, bodies)
    }

    /// Replaces each placeholder in a value.
    fn replace<'b>(&'b self, value: &mut Value, mut by: impl FnMut(&Value, &'b Body) -> Value) {
        let mut stack = vec![value];
        while let Some(value) = stack.pop() {
            if let Some(body) = self.get(value) {
                *value = by(value, body);
                continue;
            }
            match value {
                Value::Array(items) => stack.extend(items),
                Value::Object(members) => stack.extend(members.values_mut()),
                _ => {}
            }
        }
    }

    /// How many bytes the placeholders take in the JSON of the input, and the bodies beside it as far as that is known.
    #[cfg(feature = "gateway")]
    pub(crate) fn sizes(&self) -> (usize, u64) {
        let texts = self.given.keys().map(|placeholder| placeholder.len() + "\"\"".len()).sum();
        (texts, self.given.values().filter_map(Body::known_length).fold(0, u64::saturating_add))
    }

    /// A body and the placeholder that stands for it.
    #[cfg_attr(not(feature = "http-server"), allow(dead_code, reason = "only servers receive bodies"))]
    pub(crate) fn of(placeholder: String, body: Body) -> Self {
        Self { given: HashMap::from([(placeholder, body)]), wants_output: false }
    }

    /// Adds a body; gives the placeholder that stands for it.
    pub(crate) fn put(&mut self, body: Body) -> String {
        let placeholder = placeholder();
        self.given.insert(placeholder.clone(), body);
        placeholder
    }

    /// Says whether the output is a body, too.
    pub(crate) fn with_output(mut self, wants_output: bool) -> Self {
        self.wants_output = wants_output;
        self
    }
}

/// The error of a file or a stream that would have to be JSON.
fn no_json(body: &Body, pointer: &str) -> CallError {
    let (kind, how) = match body.as_path() {
        Some(_) => ("file", "Body::from(std::fs::read(..)?)"),
        None => ("stream", "Body::from(body.bytes(..).await?)"),
    };
    let message = format!("a {kind} has no JSON, in which bytes are base64: read it first, `{how}`");
    let violations = vec![violation(pointer, &message)];
    CallError::invalid(message, violations)
}

/// The pointer to a placeholder in one of the values. Each value comes with its own pointer.
fn place_of(placeholder: &Value, mut values: Vec<(String, &Value)>) -> String {
    while let Some((pointer, value)) = values.pop() {
        match value {
            value if value == placeholder => return pointer,
            Value::Array(items) => {
                values.extend(items.iter().enumerate().map(|(index, item)| (format!("{pointer}/{index}"), item)));
            }
            Value::Object(members) => {
                values.extend(members.iter().map(|(name, value)| (member(&pointer, name), value)));
            }
            _ => {}
        }
    }
    String::new()
}

/// The pointer to a member.
fn member(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", escaped(name))
}

/// Runs a serialisation whose bodies are put aside; returns its result and the bodies.
pub(crate) fn scoped<T>(serialise: impl FnOnce() -> T) -> (T, Bodies) {
    let aside = Aside::new();
    let result = serialise();
    (result, aside.end())
}

/// Collects the bodies that are put aside. When it is dropped, the earlier collection is restored, even after a panic.
///
/// Its functions are not inlined, since [`scoped`] is compiled for each serialisation.
struct Aside(Option<Bodies>);

impl Aside {
    #[inline(never)]
    fn new() -> Self {
        Self(ASIDE.replace(Some(Bodies::default())))
    }

    /// The bodies that were put aside.
    #[inline(never)]
    fn end(self) -> Bodies {
        ASIDE.take().unwrap_or_default()
    }
}

impl Drop for Aside {
    #[inline(never)]
    fn drop(&mut self) {
        ASIDE.set(self.0.take());
    }
}

/// Reads an input in which placeholders stand for bodies; returns what was read, and true if it has all of them.
pub(crate) fn resolving<T>(bodies: &Bodies, read: impl FnOnce() -> T) -> (T, bool) {
    let given = (!bodies.is_empty()).then(|| Given::new(bodies));
    let result = read();
    (result, given.is_none_or(|given| given.end() == bodies.given.len()))
}

/// Provides the bodies for an input that is read. When it is dropped, the earlier bodies are restored, even after a panic.
///
/// Its functions are not inlined, since [`resolving`] is compiled for each reading.
struct Given(Option<(Bodies, HashSet<String>)>);

impl Given {
    #[inline(never)]
    fn new(bodies: &Bodies) -> Self {
        Self(GIVEN.replace(Some((bodies.clone(), HashSet::new()))))
    }

    /// The number of bodies that the input has taken.
    #[inline(never)]
    fn end(self) -> usize {
        GIVEN.take().map_or(0, |(_, asked)| asked.len())
    }
}

impl Drop for Given {
    #[inline(never)]
    fn drop(&mut self) {
        GIVEN.set(self.0.take());
    }
}

/// The body that a text stands for in an input that is being read.
pub(super) fn given(text: &str) -> Option<Body> {
    GIVEN.with_borrow_mut(|given| {
        let (bodies, asked) = given.as_mut()?;
        let body = bodies.given.get(text)?;
        // An untagged union asks once for each variant that it tries.
        if !asked.contains(text) {
            asked.insert(text.to_owned());
        }
        Some(body.clone())
    })
}

/// How many bytes a body has, if that is known.
pub(crate) type Length = Option<u64>;

/// The length of the body that a text stands for in an input that is being checked; `None` if the text is plain.
pub(crate) fn length_of(text: &str) -> Option<Length> {
    // Most texts need no look at what is kept for the thread.
    if !text.starts_with(PREFIX) {
        return None;
    }
    GIVEN.with_borrow(|given| Some(given.as_ref()?.0.given.get(text)?.known_length()))
}

/// Puts a body aside if a serialisation asks for it, and returns its placeholder.
pub(super) fn put_aside(body: &Body) -> Option<String> {
    ASIDE.with_borrow_mut(|aside| Some(aside.as_mut()?.put(body.clone())))
}

/// A new text that cannot be guessed.
pub(crate) fn placeholder() -> String {
    format!("{PREFIX}{}", random::key())
}
