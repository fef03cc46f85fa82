//! Objects and arrays.

use std::collections::HashSet;

use ops_runtime::keywords::certain;
use serde_json::Value;

use super::condition::CONDITIONAL;
use super::{Lowered, Lowering, Object, Site, text};
use crate::names::snake_case;
use crate::types::{Default, Field, Record, Shape, Type};

/// Longer tuples have no `Debug`.
const LONGEST_TUPLE: usize = 12;

/// How many schemas are looked at for what a property is marked with.
const MOST_PARTS: usize = 32;

impl Lowering<'_> {
    /// Lowers an object: a record if it has properties, else a map.
    pub(crate) fn object(&mut self, view: &Object, site: &Site) -> Lowered {
        let (declares, has_patterns) = (has_members(view, "properties"), has_members(view, "patternProperties"));
        if declares || view.get("additionalProperties") == Some(&Value::Bool(false)) && !has_patterns {
            return Lowered::Shape(self.record(view, site));
        }
        let values = self.extra(view, site).unwrap_or(Type::Value);
        Lowered::Type(Type::Map(Box::new(values)))
    }

    /// Lowers an object to a record.
    pub(crate) fn record(&mut self, view: &Object, site: &Site) -> Shape {
        let names = view.get("required").and_then(Value::as_array);
        let required: HashSet<&str> = names.into_iter().flatten().filter_map(Value::as_str).collect();
        let mut record = Record::default();
        let empty = Object::new();
        let properties = view.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        for (name, schema) in properties {
            let inside = site.inside(name, &["properties", name]);
            let field = self.field(name, schema, required.contains(name.as_str()), &inside);
            record.fields.push(field);
        }
        if let Some(values) = self.extra(view, site) {
            record.extra = Some(("extra".to_owned(), values));
        }
        let conditional = view.get(CONDITIONAL).and_then(Value::as_object).unwrap_or(&empty);
        // `additionalProperties` is said of all that `properties` does not have.
        if !view.contains_key("additionalProperties") {
            for (name, schema) in conditional.iter().filter(|(name, _)| !properties.contains_key(*name)) {
                let inside = site.inside(name, &["properties", name]);
                let mut field = self.field(name, schema, required.contains(name.as_str()), &inside);
                // It is that of a branch, which may not hold.
                field.default = match field.default {
                    Default::Raw(value) => Default::Told(value),
                    other => other,
                };
                record.fields.push(field);
            }
        }
        let known = |name: &str| properties.contains_key(name) || conditional.contains_key(name);
        let mut seen = HashSet::new();
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        let unknown: Vec<&str> = names.filter(|name| !known(name) && seen.insert(*name)).collect();
        if !unknown.is_empty() {
            let named: Vec<&str> = unknown.iter().copied().take(20).collect();
            let more = if named.len() < unknown.len() { ", and more," } else { "" };
            let message = format!("`{}`{more} required but not described", named.join("`, `"));
            self.note(&site.pointer, message, "any JSON, and not demanded by the type");
        }
        // If other properties are kept, these are among them.
        if record.extra.is_none() {
            for name in unknown {
                let inside = site.inside(name, &["properties", name]);
                record.fields.push(self.field(name, &Value::Bool(true), false, &inside));
            }
        }
        Shape::Record(record)
    }

    /// True if a property says it, or what it refers to and is part of, null aside.
    fn is_marked(&self, schema: &Value, key: &str) -> bool {
        let mut open = vec![schema];
        for _ in 0..MOST_PARTS {
            let Some(schema) = open.pop() else { return false };
            if schema.get(key) == Some(&Value::Bool(true)) {
                return true;
            }
            let reference = schema.get("$ref").and_then(Value::as_str);
            open.extend(reference.and_then(|reference| self.source.get(self.source.name(reference)?)));
            open.extend(certain(schema).take(MOST_PARTS));
        }
        false
    }

    fn field(&mut self, name: &str, schema: &Value, required: bool, site: &Site) -> Field {
        let type_ = self.lower(schema, site);
        let view = self.view_of_schema(schema);
        // Beside a reference, it is said of this place alone.
        let says = |key: &str| {
            let is_said = |value: Option<&Value>| value == Some(&Value::Bool(true));
            is_said(schema.get(key)) || view.as_ref().is_some_and(|view| is_said(view.get(key)))
        };
        let own = schema.get("default");
        let default = own.or_else(|| view.as_ref().and_then(|view| view.get("default"))).cloned();
        Field {
            json: name.to_owned(),
            ident: snake_case(name),
            docs: text(schema.as_object()),
            says: view.as_deref().map(said).unwrap_or_default(),
            type_,
            required,
            given: false,
            default: default.map_or(Default::None, Default::Raw),
            read_only: self.is_marked(schema, "readOnly"),
            write_only: self.is_marked(schema, "writeOnly"),
            deprecated: says("deprecated"),
        }
    }

    /// The type of undeclared properties, if the schema mentions them.
    fn extra(&mut self, view: &Object, site: &Site) -> Option<Type> {
        let patterns = view.get("patternProperties").and_then(Value::as_object);
        let mut patterns = patterns.into_iter().flatten();
        let pattern = match (patterns.next(), patterns.next()) {
            (Some((pattern, schema)), None) => {
                Some(self.lower(schema, &site.inside("value", &["patternProperties", pattern])))
            }
            (Some(_), Some(_)) => return Some(Type::Value),
            _ => None,
        };
        let additional = ["additionalProperties", "unevaluatedProperties"];
        let additional = match additional.iter().find_map(|key| Some((*key, view.get(*key)?))) {
            Some((_, Value::Bool(true))) => Some(Type::Value),
            Some((key, schema @ Value::Object(_))) => Some(self.lower(schema, &site.inside("value", &[key]))),
            // Properties whose names do not match the pattern may have any value. But a schema with nothing but a pattern is meant
            // as a map of that pattern's values.
            None if pattern.is_some() && names_members(view) => Some(Type::Value),
            _ => None,
        };
        match (pattern, additional) {
            // Which of the schemas a property has depends on its name, which the type of a map does not tell.
            (Some(pattern), Some(additional)) => Some(if pattern == additional { pattern } else { Type::Value }),
            (pattern, additional) => pattern.or(additional),
        }
    }

    /// Lowers an array: to a tuple if each place has its own type, else to a list.
    pub(crate) fn array(&mut self, view: &Object, site: &Site) -> Type {
        // Before draft 2020-12, a list in `items` had the meaning of `prefixItems`.
        let old = view.get("items").and_then(Value::as_array);
        let Some(places) = old.or_else(|| view.get("prefixItems").and_then(Value::as_array)) else {
            let items = match view.get("items") {
                Some(schema @ Value::Object(_)) => self.lower(schema, &site.inside("item", &["items"])),
                _ => Type::Value,
            };
            return Type::List(Box::new(items));
        };
        let key = if old.is_some() { "items" } else { "prefixItems" };
        let rest = if old.is_some() { view.get("additionalItems") } else { view.get("items") };
        let count = |key: &str| view.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let exact = count("minItems").is_none_or(|least| least >= places.len())
            && count("maxItems").is_none_or(|most| most <= places.len())
            && matches!(rest, None | Some(Value::Bool(false)));
        if !exact || places.is_empty() || places.len() > LONGEST_TUPLE {
            self.warn(&site.pointer, "a list whose items differ by place".to_owned(), "typed as a list of any JSON");
            return Type::List(Box::new(Type::Value));
        }
        let mut types = Vec::new();
        for (i, place) in places.iter().enumerate() {
            let number = i.to_string();
            types.push(self.lower(place, &site.inside(&format!("part {}", i + 1), &[key, &number])));
        }
        Type::Tuple(types)
    }
}

/// What a schema says of a value that a type does not, and that is short enough to be told.
fn said(view: &Object) -> Vec<(&'static str, Value)> {
    const KEYWORDS: [&str; 13] = [
        "minimum",
        "exclusiveMinimum",
        "maximum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "uniqueItems",
        "format",
        "examples",
    ];
    let all = KEYWORDS.iter().filter_map(|key| Some((*key, view.get(*key)?.clone())));
    all.filter(|(_, value)| super::size_of(value) <= 16).collect()
}

/// True if the schema names properties, as declared or required.
fn names_members(view: &Object) -> bool {
    let required = view.get("required").and_then(Value::as_array);
    has_members(view, "properties") || required.is_some_and(|names| !names.is_empty())
}

fn has_members(view: &Object, key: &str) -> bool {
    view.get(key).and_then(Value::as_object).is_some_and(|members| !members.is_empty())
}
