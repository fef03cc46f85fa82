//! Trying the variants of a union on a buffered value.

use std::cell::Cell;
use std::fmt::Display;

use serde::de::{DeserializeSeed, Deserializer};
use serde_json::Value;

use super::decode;
use super::reader::short;
use super::untagged::{Kind, Untagged, candidates};

/// The least work that one value may cost, in visited nodes.
const WORK: usize = 100_000;

/// The work that one value may cost for each of its nodes.
const WORK_PER_NODE: usize = 64;

thread_local! {
    /// The work that is left to the outermost union that is being tried, if any.
    ///
    /// A union in a union is tried again for each variant of the outer one: a hostile value would take time exponential
    /// in its depth. Decoding runs on one thread, which is what lets the levels share their account here.
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Opens the account for the outermost union and closes it however the attempts end.
struct Account {
    outermost: bool,
}

impl Account {
    fn open(nodes: usize) -> Self {
        let outermost = LEFT.get().is_none();
        if outermost {
            LEFT.set(Some(nodes.saturating_mul(WORK_PER_NODE).saturating_add(WORK)));
        }
        Self { outermost }
    }

    fn charge(&self, nodes: usize) -> bool {
        let left = LEFT.get().and_then(|left| left.checked_sub(nodes));
        LEFT.set(Some(left.unwrap_or(0)));
        left.is_some()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if self.outermost {
            LEFT.set(None);
        }
    }
}

/// Reads `value` as the first variant that takes it.
///
/// # Errors
///
/// When none does; the message says how the likeliest one failed, and where in the value.
pub(super) fn read<U: Untagged>(kind: Kind, value: &Value) -> Result<U, String> {
    let nodes = count(value);
    let account = Account::open(nodes);
    let candidates = candidates::<U>(kind, value);
    let mut failure = None;
    for variant in &candidates {
        if !account.charge(nodes) {
            return Err(format!("too many ways to read a {}", short(U::NAME)));
        }
        match U::read(*variant, value) {
            Ok(read) => return Ok(read),
            Err(error) => failure = failure.or(Some((*variant, error))),
        }
    }
    Err(match failure {
        None => format!("no variant of {} has these properties", short(U::NAME)),
        Some((variant, error)) => locate::<U>(&account, variant, value, &error),
    })
}

/// Finds where in `value` the variant failed.
fn locate<U: Untagged>(account: &Account, variant: usize, value: &Value, error: &dyn Display) -> String {
    // Only once: a failure that is located at every level would double the work with each.
    if !account.outermost {
        return error.to_string();
    }
    let text = serde_json::to_vec(value).unwrap_or_default();
    match decode::from_slice_seed(&text, Variant::<U>(variant, std::marker::PhantomData)) {
        Err(located) => decode::below(&located.pointer, &located.message),
        Ok(_) => error.to_string(),
    }
}

struct Variant<U>(usize, std::marker::PhantomData<fn() -> U>);

impl<'de, U: Untagged> DeserializeSeed<'de> for Variant<U> {
    type Value = U;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<U, D::Error> {
        U::read(self.0, d)
    }
}

/// Counts the values in `value`, itself included.
fn count(value: &Value) -> usize {
    let mut nodes = 0;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        nodes += 1;
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(map) => open.extend(map.values()),
            _ => {}
        }
    }
    nodes
}
