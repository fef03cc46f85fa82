//! Values as somebody would write them in Rust: by `new` with what is required, conversions, and nothing else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::code::{Code, Operation, Record, Shape, Type};

/// What stands for a body, whose bytes are not in the JSON of a recorded input.
const BODY: &str = "\u{0}a body";

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Written {
    pub(super) source: String,
    /// What it must be in JSON.
    pub(super) json: Value,
    /// The properties that it sets although `new` does not ask for them, each with the type that has it.
    pub(super) extra: Vec<String>,
}

impl Written {
    fn new(source: impl Into<String>, json: Value) -> Self {
        Self { source: source.into(), json, extra: Vec::new() }
    }
}

/// True if a value in JSON is what was to be written.
pub(super) fn is_same(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::String(body), found) if body == BODY => found.is_string(),
        (Value::Object(wanted), Value::Object(found)) => {
            wanted.len() == found.len()
                && wanted.iter().all(|(name, value)| found.get(name).is_some_and(|found| is_same(value, found)))
        }
        (Value::Array(wanted), Value::Array(found)) => {
            wanted.len() == found.len() && wanted.iter().zip(found).all(|(wanted, found)| is_same(wanted, found))
        }
        // `1` and `1.0` are one number.
        (Value::Number(wanted), Value::Number(found)) => wanted == found || wanted.as_f64() == found.as_f64(),
        _ => wanted == found,
    }
}

/// The case of a call, for the package that runs it.
pub(super) fn case(operation: &Operation, call: &str) -> String {
    let (id, is_subscription) = (&operation.id, operation.is_subscription);
    format!("Case::Call({id:?}, {is_subscription}, |mock| Box::pin(async move {{ {call}.await.err() }}))")
}

/// Writes values of a module's types.
pub(super) struct Writer<'c> {
    pub(super) code: &'c Code,
    /// The path of the module.
    pub(super) module: &'static str,
}

impl Writer<'_> {
    /// The call of a method with an input, and the input.
    pub(super) fn call(&self, operation: &Operation, input: &Value) -> Result<Written, String> {
        let whole = self.value(&operation.input, input)?;
        let argument = match self.code.record(&operation.input) {
            _ if !operation.takes_input => String::new(),
            Some((name, record)) if whole.extra.is_empty() => {
                let from = self.code.conversions.iter().find(|(to, _)| to == name).map(|(_, from)| from);
                match (from, record.new.as_deref()) {
                    (Some(Type::Unit), _) => "()".to_owned(),
                    (Some(from), Some([(field, _)])) => {
                        let value = record.property(field).and_then(|property| input.get(property));
                        self.value(from, value.unwrap_or(&Value::Null))?.source
                    }
                    _ => whole.source,
                }
            }
            _ => whole.source,
        };
        let source = format!("mock.{}({argument})", operation.method);
        Ok(Written { source, ..whole })
    }

    /// A value of a type.
    pub(super) fn value(&self, type_: &Type, value: &Value) -> Result<Written, String> {
        let (type_, becomes) = match type_ {
            Type::Into(inner) => (&**inner, true),
            type_ => (type_, false),
        };
        let is_none = || format!("{} is no `{type_:?}`", shortened(value));
        Ok(match (type_, value) {
            (Type::Unit, Value::Null) => Written::new("()", Value::Null),
            (Type::Bool, Value::Bool(bool)) => Written::new(bool.to_string(), value.clone()),
            (Type::Integer, Value::Number(number)) => {
                let text = number.as_i64().map(|number| number.to_string());
                let text = text.or_else(|| number.as_u64().map(|number| number.to_string()));
                // A document may write an integer as `1.0`.
                let whole =
                    || number.as_f64().filter(|number| number.fract() == 0.0).map(|number| format!("{number:.0}"));
                Written::new(text.or_else(whole).ok_or_else(is_none)?, value.clone())
            }
            (Type::Float, Value::Number(number)) => {
                Written::new(format!("{:?}", number.as_f64().ok_or_else(is_none)?), value.clone())
            }
            (Type::String, Value::String(text)) if becomes => Written::new(format!("{text:?}"), value.clone()),
            (Type::String, Value::String(text)) => Written::new(format!("{text:?}.to_owned()"), value.clone()),
            (Type::Value, value) => {
                let text = value.to_string();
                Written::new(format!("hand_kit::json({text:?})"), value.clone())
            }
            (Type::Body, Value::String(text)) => {
                let bytes = STANDARD.decode(text).unwrap_or_else(|_| text.clone().into_bytes());
                let source = if becomes { format!("vec!{bytes:?}") } else { format!("Body::from(vec!{bytes:?})") };
                Written::new(source.replace("vec![]", "Vec::<u8>::new()"), json!(BODY))
            }
            (Type::List(inner), Value::Array(items)) => {
                let items = self.all(items.iter().map(|item| (&**inner, item)))?;
                let sources: Vec<&str> = items.iter().map(|item| item.source.as_str()).collect();
                joined(format!("vec![{}]", sources.join(", ")), items)
            }
            (Type::Tuple(types), Value::Array(items)) if types.len() == items.len() => {
                let items = self.all(types.iter().zip(items))?;
                let sources: String = items.iter().map(|item| format!("{}, ", item.source)).collect();
                joined(format!("({sources})"), items)
            }
            (Type::Map(inner), Value::Object(members)) => {
                let items = self.all(members.values().map(|item| (&**inner, item)))?;
                let pairs =
                    members.keys().zip(&items).map(|(key, item)| format!("({key:?}.to_owned(), {})", item.source));
                let source = format!("BTreeMap::from([{}])", pairs.collect::<Vec<_>>().join(", "));
                let json: Map<String, Value> =
                    members.keys().cloned().zip(items.iter().map(|item| item.json.clone())).collect();
                Written { json: Value::Object(json), ..joined(source, items) }
            }
            (Type::Option(_), Value::Null) => Written::new("None", Value::Null),
            (Type::Option(inner), value) => {
                let inner = self.value(inner, value)?;
                Written { source: format!("Some({})", inner.source), ..inner }
            }
            (Type::Boxed(inner), value) => {
                let inner = self.value(inner, value)?;
                Written { source: format!("Box::new({})", inner.source), ..inner }
            }
            (Type::Named(name), value) => self.named(name, value, becomes)?,
            _ => return Err(is_none()),
        })
    }

    fn all<'v>(&self, items: impl Iterator<Item = (&'v Type, &'v Value)>) -> Result<Vec<Written>, String> {
        items.map(|(type_, value)| self.value(type_, value)).collect()
    }

    fn named(&self, name: &str, value: &Value, becomes: bool) -> Result<Written, String> {
        let path = format!("{}::{name}", self.module);
        match self.code.types.get(name) {
            None => Err(format!("there is no type `{name}`")),
            Some(Shape::Alias(inner)) => {
                let inner = if becomes { Type::Into(Box::new(inner.clone())) } else { inner.clone() };
                self.value(&inner, value)
            }
            Some(Shape::Newtype(inner)) => {
                let inner = self.value(inner, value)?;
                Ok(Written { source: format!("{path}({})", inner.source), ..inner })
            }
            Some(Shape::Constants(constants, rest)) => {
                let known = constants.iter().find(|(constant, _)| is_same(constant, value));
                let texts = constants.iter().all(|(constant, _)| constant.is_string());
                let source = match (known, value) {
                    (Some(_), Value::String(text)) if becomes && texts => format!("{text:?}"),
                    (Some((_, variant)), _) => format!("{path}::{variant}"),
                    (None, Value::String(text)) if texts => format!("{path}::{rest}({text:?}.to_owned())"),
                    (None, value) if texts => return Err(format!("{} is no `{name}`", shortened(value))),
                    (None, Value::Object(_) | Value::Array(_) | Value::Null) => {
                        return Err(format!("{} is no `{name}`", shortened(value)));
                    }
                    (None, value) => format!("{path}::{rest}(hand_kit::json({:?}))", value.to_string()),
                };
                Ok(Written::new(source, value.clone()))
            }
            Some(Shape::Record(record)) => self.record(name, record, value),
            Some(Shape::Union(variants, tags)) => {
                let tag = tags.as_ref().and_then(|tags| Some((tags, value.get(&tags.property)?)));
                let is_possible = |variant: &str| {
                    tag.is_none_or(|(tags, tag)| {
                        let mut of_tag = tags.variants.iter().filter(|(value, _)| value == tag).peekable();
                        match of_tag.peek() {
                            Some(_) => of_tag.any(|(_, own)| own == variant),
                            // The variant for all other tags.
                            None => tags.variants.iter().all(|(_, own)| own != variant),
                        }
                    })
                };
                let mut why = format!("{} is no `{name}`", shortened(value));
                let mut best: Option<Written> = None;
                for (variant, type_) in variants.iter().filter(|(variant, _)| is_possible(variant)) {
                    match self.value(type_, value) {
                        Err(error) => why = format!("{why}; {error}"),
                        Ok(inner) if best.as_ref().is_none_or(|best| inner.extra.len() < best.extra.len()) => {
                            let is_made = |(to, from): &(String, Type)| to == name && from == unboxed(type_);
                            let source = match becomes && self.code.conversions.iter().any(is_made) {
                                true => self.value(&Type::Into(Box::new(unboxed(type_).clone())), value)?.source,
                                false => format!("{path}::{variant}({})", inner.source),
                            };
                            best = Some(Written { source, ..inner });
                        }
                        Ok(_) => {}
                    }
                }
                best.ok_or(why)
            }
        }
    }

    /// `Pet::new(7, "Rex")`, or `Pet { tag: Some(..), ..Pet::new(7, "Rex") }` where the value holds more than `new` asks for.
    fn record(&self, name: &str, record: &Record, value: &Value) -> Result<Written, String> {
        let Value::Object(members) = value else { return Err(format!("{} is no `{name}`", shortened(value))) };
        let path = format!("{}::{name}", self.module);
        let (mut json, mut extra, mut taken) = (Map::new(), Vec::new(), Vec::new());
        let mut arguments = Vec::new();
        for (field, type_) in record.new.iter().flatten() {
            let property =
                record.property(field).ok_or_else(|| format!("`{name}::new` asks for `{field}`, no property"))?;
            let Some(member) = members.get(property) else {
                return Err(format!("`{name}::new` asks for `{property}`, which is not required"));
            };
            let written = self.value(type_, member)?;
            arguments.push(written.source);
            extra.extend(written.extra);
            json.insert(property.to_owned(), written.json);
            taken.push(property);
        }
        let mut sets = Vec::new();
        let mut others = Map::new();
        for (property, member) in members.iter().filter(|(name, _)| !taken.contains(&name.as_str())) {
            if record.constants().contains(property) {
                json.insert(property.clone(), member.clone());
            } else if let Some((field, type_)) = record.field(property) {
                let written = self.value(type_, member)?;
                sets.push(format!("{field}: {}", written.source));
                extra.extend(written.extra);
                extra.push(format!("{name}.{property}"));
                json.insert(property.clone(), written.json);
            } else {
                others.insert(property.clone(), member.clone());
            }
        }
        let missing = record.constants().iter().find(|constant| !members.contains_key(*constant));
        if let Some(missing) = missing {
            return Err(format!("`{name}` always has `{missing}`, which is not required"));
        }
        if let Some((property, _)) = others.iter().next() {
            let rest = record.fields.last().filter(|_| record.keeps_others);
            let (field, type_) = rest.ok_or_else(|| format!("`{name}` has no place for `{property}`"))?;
            extra.extend(others.keys().map(|property| format!("{name}.{property}")));
            let written = self.value(type_, &Value::Object(others))?;
            sets.push(format!("{field}: {}", written.source));
            json.extend(written.json.as_object().cloned().unwrap_or_default());
        }
        let made = match &record.new {
            Some(_) => format!("{path}::new({})", arguments.join(", ")),
            None if record.has_default && !record.fields.is_empty() => format!("{path}::default()"),
            None if record.fields.is_empty() => format!("{path} {{}}"),
            None => return Err(format!("`{name}` has neither `new` nor a default")),
        };
        let source = match sets.as_slice() {
            [] => made,
            sets if sets.len() == record.fields.len() => format!("{path} {{ {} }}", sets.join(", ")),
            sets => format!("{path} {{ {}, ..{made} }}", sets.join(", ")),
        };
        Ok(Written { source, json: Value::Object(json), extra })
    }
}

fn joined(source: String, items: Vec<Written>) -> Written {
    let mut whole = Written::new(source, Value::Null);
    let mut json = Vec::new();
    for item in items {
        whole.extra.extend(item.extra);
        json.push(item.json);
    }
    whole.json = Value::Array(json);
    whole
}

fn unboxed(type_: &Type) -> &Type {
    if let Type::Boxed(inner) = type_ { inner } else { type_ }
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
