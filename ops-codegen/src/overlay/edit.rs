//! A document that is changed, and the changes so far.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use ops_runtime::spec::pointer;
use serde_json::Value;

/// How many bytes overlays may add to a document, with a note for each place: copies of copies grow fast.
const ROOM: usize = 64 << 20;

/// About how many bytes a note of a change takes.
const NOTE: usize = 64;

/// How deep values may be nested; as deep as documents are read.
const MAX_DEPTH: usize = 512;

#[derive(Debug)]
pub(super) struct Draft {
    pub(super) value: Value,
    pub(super) edits: Vec<Edit>,
    room: usize,
}

/// A change, with places as they were after it.
#[derive(Debug)]
pub(super) enum Edit {
    /// What is at this pointer came from there in an overlay; as a whole, if it was copied.
    Set { at: String, overlay: usize, from: String, is_copy: bool },
    /// An item of the list at this pointer was removed.
    Removed { list: String, index: usize },
}

/// The place in the overlay of an action that cannot be applied, and why.
type Wrong = (String, String);

impl Draft {
    pub(super) fn new(value: Value) -> Self {
        Self { value, edits: Vec::new(), room: ROOM }
    }

    /// Merges a value into each target. It comes from that place of the overlay, or, if it was copied from the
    /// document, comes as a whole from there.
    pub(super) fn merge(
        &mut self,
        targets: &[String],
        update: &Value,
        overlay: usize,
        place: &str,
        is_copy: bool,
    ) -> Result<(), Wrong> {
        let size = size(update);
        let Self { value, edits, room } = self;
        for target in targets {
            let mut merge = Merge { edits, room, overlay, is_copy, place };
            merge.reserve(size.bytes, place)?;
            if target.matches('/').count() + 1 + size.depth > MAX_DEPTH {
                return Err((place.to_owned(), format!("the document would be nested deeper than {MAX_DEPTH} levels")));
            }
            let Some(node) = value.pointer_mut(target) else { continue };
            match (node, update) {
                (Value::Array(items), update) if !update.is_array() => {
                    merge.insert(format!("{target}/{}", items.len()), place)?;
                    items.push(update.clone());
                }
                (node, update) => merge.values(node, update, target, place)?,
            }
        }
        Ok(())
    }

    /// Removes the nodes.
    pub(super) fn remove(&mut self, targets: &[String]) -> Result<(), String> {
        // The deepest first: to remove a node changes no pointers but those of later items and of what is below.
        let mut parents: BTreeMap<(Reverse<usize>, &str), BTreeSet<String>> = BTreeMap::new();
        for target in targets {
            let Some((parent, name)) = target.rsplit_once('/') else {
                return Err("the whole document cannot be removed".to_owned());
            };
            let depth = Reverse(parent.matches('/').count());
            parents.entry((depth, parent)).or_default().insert(pointer::unescaped(name).into_owned());
        }
        for ((_, parent), names) in parents {
            match self.value.pointer_mut(parent) {
                Some(Value::Object(members)) => members.retain(|name, _| !names.contains(name)),
                Some(Value::Array(items)) => {
                    let indices: BTreeSet<usize> = names.iter().filter_map(|name| name.parse().ok()).collect();
                    let mut at = 0..;
                    items.retain(|_| at.next().is_none_or(|at| !indices.contains(&at)));
                    for index in indices.into_iter().rev() {
                        let left = self.room.checked_sub(NOTE + parent.len());
                        self.room = left.ok_or("the overlay removes too much")?;
                        self.edits.push(Edit::Removed { list: parent.to_owned(), index });
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// One value that is merged into one target.
struct Merge<'d> {
    edits: &'d mut Vec<Edit>,
    room: &'d mut usize,
    overlay: usize,
    is_copy: bool,
    /// The place of the whole value.
    place: &'d str,
}

impl Merge<'_> {
    fn reserve(&mut self, bytes: usize, place: &str) -> Result<(), Wrong> {
        let left = self.room.checked_sub(bytes);
        *self.room = left.ok_or_else(|| (place.to_owned(), format!("the overlays add more than {ROOM} bytes")))?;
        Ok(())
    }

    /// Notes that a value is put at a pointer.
    fn insert(&mut self, at: String, from: &str) -> Result<(), Wrong> {
        let from = if self.is_copy { self.place } else { from };
        self.reserve(NOTE + at.len() + from.len(), from)?;
        let from = from.to_owned();
        self.edits.push(Edit::Set { at, overlay: self.overlay, from, is_copy: self.is_copy });
        Ok(())
    }

    fn values(&mut self, target: &mut Value, update: &Value, at: &str, from: &str) -> Result<(), Wrong> {
        let is_plain = |value: &Value| kind(value) == "values";
        match (target, update) {
            (Value::Object(target), Value::Object(update)) => {
                for (name, value) in update {
                    let below = |parent: &str| {
                        let mut pointer = parent.to_owned();
                        pointer::push(&mut pointer, name);
                        pointer
                    };
                    let from = if self.is_copy { from.to_owned() } else { below(from) };
                    match target.get_mut(name) {
                        Some(target) => self.values(target, value, &below(at), &from)?,
                        None => {
                            self.insert(below(at), &from)?;
                            target.insert(name.clone(), value.clone());
                        }
                    }
                }
            }
            (Value::Array(target), Value::Array(update)) => {
                for (index, value) in update.iter().enumerate() {
                    let from = if self.is_copy { from.to_owned() } else { format!("{from}/{index}") };
                    self.insert(format!("{at}/{}", target.len()), &from)?;
                    target.push(value.clone());
                }
            }
            (target, update) if is_plain(target) && is_plain(update) => {
                self.insert(at.to_owned(), from)?;
                *target = update.clone();
            }
            (target, update) => {
                let (new, old) = (name(update), name(target));
                let at = if at.is_empty() { "the document".to_owned() } else { format!("`{at}`") };
                return Err((from.to_owned(), format!("{new} cannot be merged into {old}, {at}: remove that first")));
            }
        }
        Ok(())
    }
}

/// The kind of a value by which it can be merged, for several.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "objects",
        Value::Array(_) => "lists",
        _ => "values",
    }
}

fn name(value: &Value) -> &'static str {
    match value {
        Value::Null => "`null`",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

struct Size {
    /// About how many bytes the value takes.
    bytes: usize,
    /// How deep it is nested: 0 for a scalar.
    depth: usize,
}

fn size(value: &Value) -> Size {
    let mut size = Size { bytes: 0, depth: 0 };
    let mut stack = vec![(value, 0)];
    while let Some((value, level)) = stack.pop() {
        size.depth = size.depth.max(level);
        size.bytes += 32 + value.as_str().map_or(0, str::len);
        match value {
            Value::Array(items) => stack.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(members) => {
                size.bytes += members.keys().map(|key| key.len() + 32).sum::<usize>();
                stack.extend(members.values().map(|member| (member, level + 1)));
            }
            _ => {}
        }
    }
    size
}
