//! Shortens a value.

use serde_json::{Map, Value};

use super::part::{Part, Unit};
use crate::gateway::size::{size_of, size_of_byte, size_of_text};
use crate::pointer;

/// Limit of listed parts.
const MAX_PARTS: usize = 20;

/// The longest pointer of a part that is listed after two others, in bytes. Two are always listed, so that one of them
/// leads deeper than the place that is read.
const MAX_POINTER: usize = 512;

/// How many members of an object are shortened, so that all of them are shown.
const MAX_CUT: usize = 16;

/// The least room for a shortened member, in bytes. With less, fewer members are shown.
const MIN_ROOM: usize = 128;

/// How deep a value is shortened inside shortened values.
const MAX_DEPTH: usize = 64;

/// The shortened places.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) list: Vec<Part>,
    /// The number of unlisted ones.
    pub(super) more: usize,
}

impl Parts {
    /// Adds a part, before those inside it; its number of shown elements is set later.
    fn begin(&mut self, pointer: &str, unit: Unit, from: usize, total: usize) -> Option<usize> {
        if self.list.len() >= MAX_PARTS || (pointer.len() > MAX_POINTER && self.list.len() >= 2) {
            self.more = self.more.saturating_add(1);
            return None;
        }
        self.list.push(Part { pointer: pointer.to_owned(), unit, from, shown: 0, total });
        Some(self.list.len() - 1)
    }

    fn end(&mut self, part: Option<usize>, shown: usize) {
        if let Some(part) = part.and_then(|index| self.list.get_mut(index)) {
            part.shown = shown;
        }
    }
}

/// As much of a value as fits into so many bytes of JSON, beginning at an offset.
pub(super) fn fit(value: &Value, pointer: &str, from: usize, room: usize, parts: &mut Parts) -> Value {
    let mut fitting = Fitting { pointer: pointer.to_owned(), parts };
    if from == 0 { fitting.value(value, room, MAX_DEPTH) } else { fitting.cut(value, from, room, MAX_DEPTH) }
}

struct Fitting<'a> {
    /// The pointer of the current value.
    pointer: String,
    parts: &'a mut Parts,
}

impl Fitting<'_> {
    /// The value, whole if it fits.
    fn value(&mut self, value: &Value, room: usize, depth: usize) -> Value {
        if size_of(value, room).is_some() { value.clone() } else { self.cut(value, 0, room, depth) }
    }

    fn cut(&mut self, value: &Value, from: usize, room: usize, depth: usize) -> Value {
        match value {
            Value::String(text) => self.text(text, from, room),
            Value::Array(items) => self.items(items, from, room, depth).into(),
            Value::Object(members) => {
                let shared = if from == 0 { self.shared(members, room, depth) } else { None };
                shared.unwrap_or_else(|| self.members(members, from, room, depth)).into()
            }
            // No longer than the least room.
            scalar => scalar.clone(),
        }
    }

    /// The value of a member or an item.
    fn inner(&mut self, name: &str, value: &Value, room: usize, depth: usize) -> Value {
        let length = self.pointer.len();
        pointer::push(&mut self.pointer, name);
        let value = self.value(value, room, depth.saturating_sub(1));
        self.pointer.truncate(length);
        value
    }

    /// As many characters as fit.
    fn text(&mut self, text: &str, from: usize, room: usize) -> Value {
        let part = self.parts.begin(&self.pointer, Unit::Characters, from, text.chars().count());
        let (mut room, mut shown, mut count) = (room.saturating_sub(2), String::new(), 0);
        for char in text.chars().skip(from) {
            let size: usize = char.encode_utf8(&mut [0; 4]).bytes().map(size_of_byte).sum();
            let Some(rest) = room.checked_sub(size) else { break };
            (room, count) = (rest, count + 1);
            shown.push(char);
        }
        self.parts.end(part, count);
        shown.into()
    }

    /// As many whole items as fit, or a part of the first.
    fn items(&mut self, items: &[Value], from: usize, room: usize, depth: usize) -> Vec<Value> {
        let part = self.parts.begin(&self.pointer, Unit::Items, from, items.len());
        let (mut room, mut shown) = (room.saturating_sub(2), Vec::new());
        for item in items.iter().skip(from) {
            let comma = usize::from(!shown.is_empty());
            let Some(size) = room.checked_sub(comma).and_then(|room| size_of(item, room)) else { break };
            room -= size + comma;
            shown.push(item.clone());
        }
        if let (true, Some(first)) = (shown.is_empty() && room >= MIN_ROOM && depth > 0, items.get(from)) {
            shown.push(self.inner(&from.to_string(), first, room, depth));
        }
        self.parts.end(part, shown.len());
        shown
    }

    /// As many whole members as fit, or a part of the first.
    fn members(&mut self, members: &Map<String, Value>, from: usize, room: usize, depth: usize) -> Map<String, Value> {
        let part = self.parts.begin(&self.pointer, Unit::Members, from, members.len());
        let (mut room, mut shown) = (room.saturating_sub(2), Map::new());
        for (name, value) in members.iter().skip(from) {
            let around = around(name, usize::from(!shown.is_empty()), room);
            let Some(size) = room.checked_sub(around).and_then(|room| size_of(value, room)) else { break };
            room -= size + around;
            shown.insert(name.clone(), value.clone());
        }
        if let (true, Some((name, value))) = (shown.is_empty() && depth > 0, members.iter().nth(from))
            && let Some(room) = room.checked_sub(around(name, 0, room)).filter(|room| *room >= MIN_ROOM)
        {
            let value = self.inner(name, value, room, depth);
            shown.insert(name.clone(), value);
        }
        self.parts.end(part, shown.len());
        shown
    }

    /// All members, the large ones shortened; `None` if there is too little room for that.
    fn shared(&mut self, members: &Map<String, Value>, room: usize, depth: usize) -> Option<Map<String, Value>> {
        let mut room = room.checked_sub(2)?;
        // Every member is measured up to that, so that the work is limited by the room.
        let small = room / MAX_CUT;
        let mut large = Vec::new();
        for (index, (name, value)) in members.iter().enumerate() {
            room = room.checked_sub(around(name, usize::from(index > 0), room))?;
            match size_of(value, small) {
                Some(size) => room = room.checked_sub(size)?,
                None => large.push((index, value)),
            }
            if large.len() > MAX_CUT || depth == 0 {
                return None;
            }
        }
        // The smallest first, so that the room that they leave is for the others.
        let mut large: Vec<_> =
            large.into_iter().map(|(index, value)| (size_of(value, room).unwrap_or(usize::MAX), index)).collect();
        large.sort_unstable();
        let (mut rooms, mut left) = (vec![small; members.len()], large.len());
        for (size, index) in large {
            let own = size.min(room / left.max(1));
            if own < size && own < MIN_ROOM {
                return None;
            }
            (room, left) = (room.saturating_sub(own), left.saturating_sub(1));
            *rooms.get_mut(index)? = own;
        }
        let shown = members.iter().zip(rooms);
        Some(shown.map(|((name, value), room)| (name.clone(), self.inner(name, value, room, depth))).collect())
    }
}

/// The size of a member without its value.
fn around(name: &str, comma: usize, room: usize) -> usize {
    size_of_text(name, room).saturating_add(1).saturating_add(comma)
}
