//! Values made up from a schema alone, to replace a value that does not conform.

use serde_json::{Map, Value};

use super::check::Checker;
use super::equal::{MAX_VALUE_DEPTH, copy, weight};
use super::node::{
    ARRAY, ArrayRules, At, BOOLEAN, FRACTION, INTEGER, Kind, NULL, NUMBER, OBJECT, ObjectRules, Property, Rest, STRING,
    Target, Typed, Types,
};
use super::number::Num;
use super::text::MAX_CREATED;

impl<'a> Checker<'a> {
    /// The default of a node. The default reading ignores one that does not fit its own schema.
    pub(super) fn default_of(&self, at: At<'a>) -> Option<&'a Value> {
        let mut at = at;
        if at.node.default.is_none() {
            at = self.follow(at)?;
        }
        let default = at.node.default.as_deref()?;
        let usable =
            self.compat || *default.fits.get_or_init(|| Checker::new(self.definitions).check(at, &default.value, 0));
        usable.then_some(&default.value)
    }

    /// The default that is filled in where a property of an object is absent; `at` is the object's schema.
    ///
    /// A result need not have what is `writeOnly`, so nothing stands for it.
    pub(super) fn default_of_absent(&self, at: At<'a>, property: &'a Property) -> Option<&'a Value> {
        let default = self.default_of(at.to(&property.node)).filter(|_| !property.is_write_only)?;
        let is_write_only = match &property.node.kind {
            Kind::Ref(Target::Shared(id)) => !self.compat && self.definitions.is_write_only_of(*id),
            _ => false,
        };
        (!is_write_only).then_some(default)
    }

    /// A default value for a node, preferring the types `like`; `None` where the original throws.
    pub(super) fn create(&self, at: At<'a>, like: Types, depth: u32) -> Option<Value> {
        self.afford(1)?;
        if !self.enter(depth) {
            return None;
        }
        if let Some(default) = self.default_of(at) {
            self.afford(weight(default))?;
            return copy(default);
        }
        match &at.node.kind {
            Kind::Any => Some(Value::Object(Map::new())),
            Kind::Never => None,
            Kind::Plain(types) => Some(zero(made(*types, like))),
            Kind::Typed(typed) => self.create_typed(at, typed, made(typed.types, like), depth),
            Kind::Literals(values) => copy(values.first()?),
            Kind::Union(union) => self.create(at.to(self.possible(at, union).next()?), Types::NONE, depth + 1),
            Kind::Intersect(all) => {
                let mut created = Value::Object(Map::new());
                for member in &all.members {
                    created = assign(created, self.create(at.to(member), Types::NONE, depth + 1)?);
                }
                self.check(at, &created, depth).then_some(created)
            }
            Kind::Ref(_) => self.create(self.follow(at)?, like, depth + 1),
        }
    }

    fn create_typed(&self, at: At<'a>, typed: &'a Typed, made: u8, depth: u32) -> Option<Value> {
        Some(match made {
            STRING => match &typed.string {
                Some(rules) => {
                    let text = rules.create()?;
                    self.afford(text.len() / 32)?;
                    Value::String(text)
                }
                None => zero(STRING),
            },
            INTEGER | FRACTION | NUMBER => match &typed.number {
                Some(rules) if self.compat => rules.minimum.map_or(zero(NUMBER), Num::to_value),
                Some(rules) => rules.create(typed.types.wants_integer())?,
                None => zero(NUMBER),
            },
            ARRAY => match &typed.array {
                Some(rules) => self.create_array(at, rules, depth)?,
                None => zero(ARRAY),
            },
            OBJECT => match &typed.object {
                Some(rules) => self.create_object(at, rules, depth)?,
                None => zero(OBJECT),
            },
            other => zero(other),
        })
    }

    fn create_array(&self, at: At<'a>, rules: &'a ArrayRules, depth: u32) -> Option<Value> {
        if rules.unique {
            return None;
        }
        let mut items = Vec::new();
        let count = if rules.exact { rules.prefix.len() } else { usize::try_from(rules.min.unwrap_or(0)).ok()? };
        if count > MAX_CREATED {
            return None;
        }
        self.afford(count)?;
        for index in 0..count {
            items.push(match (rules.item(index), &rules.rest) {
                (Some(node), _) => self.create(at.to(node), Types::NONE, depth + 1)?,
                (None, Rest::Never) => return None,
                (None, _) => Value::Null,
            });
        }
        Some(Value::Array(items))
    }

    fn create_object(&self, at: At<'a>, rules: &'a ObjectRules, depth: u32) -> Option<Value> {
        let mut map = Map::new();
        for property in rules.properties.iter().filter(|property| property.required) {
            map.insert(property.name.to_string(), self.create(at.to(&property.node), Types::NONE, depth + 1)?);
        }
        Some(Value::Object(map))
    }
}

/// The type to create: a preferred one if the schema has it.
fn made(types: Types, like: Types) -> u8 {
    let both = types.and(like);
    if both.is_none() { types.made() } else { both.made() }
}

fn zero(made: u8) -> Value {
    match made {
        NULL => Value::Null,
        BOOLEAN => Value::Bool(false),
        STRING => Value::String(String::new()),
        ARRAY => Value::Array(Vec::new()),
        OBJECT => Value::Object(Map::new()),
        _ => Value::from(0),
    }
}

/// The combined creation of an intersection's members: objects are merged, other values replace the earlier one.
fn assign(sum: Value, next: Value) -> Value {
    match next {
        Value::Object(_) | Value::Array(_) | Value::Null => {
            let mut sum = as_object(sum);
            sum.extend(as_object(next));
            Value::Object(sum)
        }
        scalar => scalar,
    }
}

/// The shape of `created` with the values of `value`, as long as both are objects or neither is.
pub(super) fn merge(created: Value, value: Value, depth: u32) -> Value {
    let nested = |value: &Value| value.is_object() || value.is_array();
    match (nested(&created), nested(&value)) {
        (false, false) => value,
        (true, true) if depth < MAX_VALUE_DEPTH => {
            let mut given = keyed(value);
            let merged = keyed(created).into_iter().map(|(key, created)| match given.remove(&key) {
                Some(value) => (key, merge(created, value, depth + 1)),
                None => (key, created),
            });
            Value::Object(merged.collect())
        }
        _ => created,
    }
}

/// An array is an object with its indices and its length.
fn keyed(value: Value) -> Map<String, Value> {
    let length = value.as_array().map(Vec::len);
    let mut map = as_object(value);
    if let Some(length) = length {
        map.insert("length".to_owned(), length.into());
    }
    map
}

/// The properties of a value as JavaScript spreads them: items and characters under their indices.
pub(super) fn as_object(value: Value) -> Map<String, Value> {
    let indexed =
        |values: Vec<Value>| values.into_iter().enumerate().map(|(at, item)| (at.to_string(), item)).collect();
    match value {
        Value::Object(map) => map,
        Value::Array(items) => indexed(items),
        Value::String(text) => indexed(text.chars().map(|c| Value::String(c.into())).collect()),
        _ => Map::new(),
    }
}
