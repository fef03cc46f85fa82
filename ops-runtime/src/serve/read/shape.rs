//! The shape of the values at a place, by its schemas: a request is text, and text has no types.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use crate::model::keywords;
use crate::pointer;
use crate::{Definitions, OperationSpec};

/// How deep references and combined schemas are followed.
const DEPTH: usize = 16;

/// Limit of the schemas of one place.
const MAX_PARTS: usize = 64;

/// Limit of the cached shapes of one input.
const MAX_KEPT: usize = 2_000;

/// A set of JSON's types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Types(u8);

impl Types {
    pub(crate) const NOTHING: Self = Self(0);
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOLEAN: Self = Self(2);
    pub(crate) const NUMBER: Self = Self(4);
    pub(crate) const STRING: Self = Self(8);
    pub(crate) const ARRAY: Self = Self(16);
    pub(crate) const OBJECT: Self = Self(32);
    /// The types that a plain text can represent.
    pub(crate) const SCALAR: Self = Self(2 | 4 | 8);

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// All types except the other's.
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// True if they have a type in common.
    pub(crate) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    fn named(name: &Value) -> Self {
        match name.as_str() {
            Some("null") => Self::NULL,
            Some("boolean") => Self::BOOLEAN,
            Some("integer" | "number") => Self::NUMBER,
            Some("string") => Self::STRING,
            Some("array") => Self::ARRAY,
            Some("object") => Self::OBJECT,
            _ => Self::NOTHING,
        }
    }

    /// The types that a schema names or implies.
    fn of_schema(schema: &Map<String, Value>) -> Self {
        let all = |types: &mut dyn Iterator<Item = Self>| types.fold(Self::NOTHING, Self::or);
        if let Some(value) = schema.get("const") {
            return Self::of(value);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return all(&mut values.iter().map(Self::of));
        }
        match schema.get("type") {
            Some(Value::Array(names)) => all(&mut names.iter().map(Self::named)),
            Some(name) => Self::named(name),
            None if schema.contains_key("properties") || schema.contains_key("additionalProperties") => Self::OBJECT,
            None if schema.contains_key("items") || schema.contains_key("prefixItems") => Self::ARRAY,
            None => Self::NOTHING,
        }
    }
}

/// The schemas of a value: the one at its place, and those that it refers to or is composed of.
///
/// Alternatives count as one: a text is read as the first type that any of them allows. Validation, which follows,
/// decides if they allow the value as a whole. Nested shapes are made on first use, and cached.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shape(Arc<Node>);

#[derive(Debug, Default)]
struct Node {
    parts: Vec<Map<String, Value>>,
    types: Types,
    scope: Arc<Scope>,
    properties: OnceLock<BTreeMap<String, OnceLock<Shape>>>,
    others: OnceLock<Shape>,
    item: OnceLock<Shape>,
}

/// State shared by all shapes of an input.
#[derive(Debug, Default)]
struct Scope {
    /// The definitions within the input's own schema, which take precedence over those of its API.
    own: Map<String, Value>,
    definitions: Definitions,
    /// Number of cached shapes.
    kept: AtomicUsize,
}

impl Scope {
    fn definition(&self, name: &str) -> Option<Value> {
        let foreign = || self.definitions.get(name)?.schema.to_value().ok().map(Cow::into_owned);
        self.own.get(name).cloned().or_else(foreign)
    }
}

impl Shape {
    /// The shape of an operation's input.
    pub(crate) fn of_input(spec: &OperationSpec) -> Self {
        Self::of_value(&spec.input.to_value().unwrap_or_default(), &spec.definitions)
    }

    /// The shape of values of a schema that has its definitions in itself or beside it.
    pub(crate) fn of_value(schema: &Value, definitions: &Definitions) -> Self {
        let own = schema.get("$defs").and_then(Value::as_object).cloned().unwrap_or_default();
        let scope = Scope { own, definitions: definitions.clone(), kept: AtomicUsize::new(0) };
        Self::of([schema], &Arc::new(scope))
    }

    fn of<'a>(schemas: impl IntoIterator<Item = &'a Value>, scope: &Arc<Scope>) -> Self {
        let mut node = Node { scope: scope.clone(), ..Node::default() };
        for schema in schemas {
            node.add(schema, DEPTH);
        }
        Self(Arc::new(node))
    }

    /// The types that the value may have; empty if no schema constrains them.
    pub(crate) fn types(&self) -> Types {
        self.0.types
    }

    pub(crate) fn may_be(&self, types: Types) -> bool {
        self.0.types.meets(types)
    }

    /// The shape of a property.
    pub(crate) fn property(&self, name: &str) -> Self {
        let Some(slot) = self.0.properties().get(name) else { return self.others() };
        let declared = || self.0.declared().filter(|(own, _)| *own == name).map(|(_, schema)| schema);
        self.0.kept(slot, || Self::of(declared(), &self.0.scope))
    }

    /// The shape of an alternative of the value, by its position. Without a position, the shape of the whole value.
    pub(crate) fn alternative(&self, at: Option<u16>) -> Self {
        let all = self.0.parts.first().and_then(|whole| whole.get("oneOf"));
        let own = all.zip(at).and_then(|(all, at)| all.get(usize::from(at)));
        own.map_or_else(|| self.clone(), |own| Self::of([own], &self.0.scope))
    }

    /// The shape of the properties that are not declared. If their names may match patterns, which are not evaluated
    /// here, it is never that of bytes: a text must not be taken for them.
    pub(crate) fn others(&self) -> Self {
        self.0.kept(&self.0.others, || {
            let others = Self::of(self.0.undeclared(), &self.0.scope);
            if self.has_patterns() && others.is_binary() {
                return Self::of(std::iter::empty(), &self.0.scope);
            }
            others
        })
    }

    /// The shape of a list's items.
    pub(crate) fn item(&self) -> Self {
        self.0.kept(&self.0.item, || {
            let items = self.0.parts.iter().filter_map(|part| part.get("items"));
            let first = self.0.parts.iter().filter_map(|part| part.get("prefixItems")?.as_array()).flatten();
            Self::of(items.chain(first), &self.0.scope)
        })
    }

    /// The names of the declared properties, each once, in order.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.properties().keys().map(String::as_str).collect()
    }

    /// True if a schema describes further properties beside the declared ones.
    pub(crate) fn has_others(&self) -> bool {
        self.0.undeclared().any(|others| *others != Value::Bool(false))
    }

    /// True if a schema describes properties by patterns of their names.
    pub(crate) fn has_patterns(&self) -> bool {
        self.0.parts.iter().any(keywords::has_patterns)
    }

    /// True if a string stands for bytes, or a list for several byte strings.
    pub(crate) fn is_binary(&self) -> bool {
        let is_binary = |schema: &Map<String, Value>| schema.get("format").is_some_and(|format| format == "binary");
        let item = self.item();
        self.0.parts.iter().chain(&item.0.parts).any(is_binary)
    }

    /// True if the value must have a property.
    pub(crate) fn requires(&self, name: &str) -> bool {
        let required = self.0.parts.iter().filter_map(|part| part.get("required")?.as_array());
        required.flatten().any(|required| required == name)
    }

    /// The empty value of a schema that takes only lists or only objects, if it takes that.
    pub(crate) fn empty(&self) -> Option<Value> {
        let parts = &self.0.parts;
        let asks = |names: &[&str]| {
            let is_nothing = |value: &Value| value.as_u64() == Some(0) || value.as_array().is_some_and(Vec::is_empty);
            parts.iter().any(|part| names.iter().any(|name| part.get(*name).is_some_and(|value| !is_nothing(value))))
        };
        // Of one with more parts, some are unknown.
        if parts.len() >= MAX_PARTS || asks(&["const", "enum", "not"]) {
            return None;
        }
        match self.0.types {
            Types::ARRAY if !asks(&["minItems", "contains"]) => Some(Value::Array(Vec::new())),
            Types::OBJECT if !asks(&["minProperties", "required"]) => Some(Value::Object(Map::new())),
            _ => None,
        }
    }

    /// The value of a text: a boolean or a number if it may be one, JSON if it may be a list or an object, and
    /// otherwise the text itself. If it may be text, too, only the exact form of JSON is read as another type.
    pub(crate) fn scalar(&self, text: String) -> Value {
        if !self.may_be(Types(!Types::STRING.0)) {
            return Value::String(text);
        }
        let written = |value: &Value| serde_json::to_string(value).unwrap_or_default();
        let is_exact = |value: &Value| !self.may_be(Types::STRING) || written(value) == text;
        let Some(value) = self.parsed(&text).filter(is_exact) else { return Value::String(text) };
        // A boolean as text beside a boolean has the same meaning for the author of the schema.
        if value.is_boolean() || !self.may_be(Types::STRING) {
            return value;
        }
        // Listed values decide, if only one of the two is among them.
        let listed = |wanted: &Value| self.listed().any(|value| value == wanted);
        let text = Value::String(text);
        if !listed(&value) && listed(&text) { text } else { value }
    }

    fn listed(&self) -> impl Iterator<Item = &Value> {
        let values = self.0.parts.iter().filter_map(|part| part.get("enum")?.as_array()).flatten();
        values.chain(self.0.parts.iter().filter_map(|part| part.get("const")))
    }

    fn parsed(&self, text: &str) -> Option<Value> {
        match text.as_bytes().first()? {
            b't' | b'f' if self.may_be(Types::BOOLEAN) => text.parse().map(Value::Bool).ok(),
            b'-' | b'0'..=b'9' if self.may_be(Types::NUMBER) => number(text),
            b'[' if self.may_be(Types::ARRAY) => serde_json::from_str(text).ok(),
            b'{' if self.may_be(Types::OBJECT) => serde_json::from_str(text).ok(),
            _ => None,
        }
    }
}

impl Node {
    fn add(&mut self, schema: &Value, depth: usize) {
        let (Some(depth), Value::Object(members)) = (depth.checked_sub(1), schema) else { return };
        if self.parts.len() >= MAX_PARTS {
            return;
        }
        self.types = self.types.or(Types::of_schema(members));
        let mut own = members.clone();
        own.remove("$defs");
        self.parts.push(own);
        if let Some(reference) = members.get("$ref").and_then(Value::as_str)
            && let Some(definition) = pointer::definition(reference).and_then(|name| self.scope.definition(&name))
            && let Some(target) = definition.pointer(pointer::within_definition(reference))
        {
            self.add(target, depth);
        }
        let combined = ["allOf", "anyOf", "oneOf"].iter().filter_map(|keyword| members.get(*keyword)?.as_array());
        combined.flatten().for_each(|part| self.add(part, depth));
    }

    fn declared(&self) -> impl Iterator<Item = (&str, &Value)> {
        let properties = self.parts.iter().filter_map(|part| part.get("properties")?.as_object());
        properties.flatten().map(|(name, schema)| (name.as_str(), schema))
    }

    /// The schemas of the properties that are not declared.
    fn undeclared(&self) -> impl Iterator<Item = &Value> {
        self.parts.iter().flat_map(keywords::undeclared)
    }

    fn properties(&self) -> &BTreeMap<String, OnceLock<Shape>> {
        self.properties.get_or_init(|| self.declared().map(|(name, _)| (name.to_owned(), OnceLock::new())).collect())
    }

    /// The shape in a slot. A new one is cached, unless the input has too many already.
    fn kept(&self, slot: &OnceLock<Shape>, make: impl FnOnce() -> Shape) -> Shape {
        if let Some(shape) = slot.get() {
            return shape.clone();
        }
        let shape = make();
        // Recursive schemas have an unlimited number of shapes.
        if self.scope.kept.fetch_add(1, Ordering::Relaxed) < MAX_KEPT {
            let _ = slot.set(shape.clone());
        }
        shape
    }
}

/// A number in the form of JSON.
fn number(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().map(Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(schema: Value, text: &str) -> Value {
        Shape::of_value(&schema, &Definitions::EMPTY).scalar(text.to_owned())
    }

    #[test]
    fn texts_by_their_schemas() {
        let table = [
            (json!({}), "7", json!("7")),
            (json!({ "type": "string" }), "7", json!("7")),
            (json!({ "type": "string" }), "true", json!("true")),
            (json!({ "type": "integer" }), "7", json!(7)),
            (json!({ "type": "integer" }), "-9223372036854775808", json!(i64::MIN)),
            (json!({ "type": "integer" }), "18446744073709551615", json!(u64::MAX)),
            (json!({ "type": "integer" }), "007", json!("007")),
            (json!({ "type": "integer" }), "", json!("")),
            (json!({ "type": "number" }), "0.1", json!(0.1)),
            (json!({ "type": "number" }), "2.2250738585072014e-308", json!(2.2250738585072014e-308)),
            (json!({ "type": "number" }), "NaN", json!("NaN")),
            (json!({ "type": "number" }), "1e999", json!("1e999")),
            (json!({ "type": "boolean" }), "true", json!(true)),
            (json!({ "type": "boolean" }), "True", json!("True")),
            (json!({ "type": ["string", "integer"] }), "7", json!(7)),
            (json!({ "type": ["string", "integer"] }), "7.0e1", json!("7.0e1")),
            (json!({ "anyOf": [{ "type": "integer" }, { "enum": ["1"] }] }), "1", json!("1")),
            (json!({ "anyOf": [{ "type": "integer" }, { "enum": ["a"] }] }), "1", json!(1)),
            (json!({ "anyOf": [{ "type": "boolean" }, { "enum": ["true", "false"] }] }), "true", json!(true)),
            (json!({ "enum": ["true", "false"] }), "true", json!("true")),
            (json!({ "enum": ["1", "2"] }), "1", json!("1")),
            (json!({ "enum": [1, 2] }), "1", json!(1)),
            (json!({ "type": ["object", "string"] }), "{\"a\":1}", json!({ "a": 1 })),
            (json!({ "type": "array" }), "[1", json!("[1")),
        ];
        for (schema, text, expected) in table {
            assert_eq!(read(schema.clone(), text), expected, "{schema} {text}");
        }
    }

    #[test]
    fn lists_and_objects_that_may_be_empty() {
        let options = json!({ "properties": { "a": { "type": ["string", "null"] } } });
        let table = [
            (json!({ "type": "array", "uniqueItems": true }), Some(json!([]))),
            (json!({ "type": "array", "minItems": 0 }), Some(json!([]))),
            (json!({ "type": "array", "minItems": 1 }), None),
            (json!({ "type": ["array", "null"] }), None),
            (json!({ "$ref": "#/$defs/Options", "$defs": { "Options": options } }), Some(json!({}))),
            (json!({ "type": "object", "additionalProperties": { "type": "integer" } }), Some(json!({}))),
            (json!({ "type": "object", "required": ["a"] }), None),
            (json!({ "oneOf": [{ "type": "object" }, { "type": "object", "required": ["a"] }] }), None),
            (json!({ "oneOf": [{ "type": "object" }, { "type": "array" }] }), None),
            (json!({ "enum": [["a"]] }), None),
            (json!({ "type": "string" }), None),
            (json!(true), None),
        ];
        for (schema, expected) in table {
            assert_eq!(Shape::of_value(&schema, &Definitions::EMPTY).empty(), expected, "{schema}");
        }
    }

    #[test]
    fn properties_that_are_not_declared() {
        for keyword in ["additionalProperties", "unevaluatedProperties"] {
            let shape = |others: Value| {
                let schema = json!({ "properties": { "a": { "type": "string" } }, keyword: others });
                Shape::of_value(&schema, &Definitions::EMPTY)
            };
            let integers = shape(json!({ "type": "integer" }));
            assert!(integers.has_others() && !shape(json!(false)).has_others());
            assert_eq!(integers.property("a").scalar("7".to_owned()), json!("7"));
            assert_eq!(integers.property("b").scalar("7".to_owned()), json!(7));
            let file = json!({ "type": "string", "format": "binary" });
            assert!(shape(file.clone()).property("b").is_binary());
            // The name may match the pattern.
            let beside_patterns = |others: Value| {
                let schema = json!({ "patternProperties": { "^b": { "type": "string" } }, keyword: others });
                Shape::of_value(&schema, &Definitions::EMPTY)
            };
            assert!(!beside_patterns(file).property("b").is_binary());
            assert!(beside_patterns(json!(false)).has_patterns() && !integers.has_patterns());
            assert_eq!(beside_patterns(json!({ "type": "integer" })).property("b").scalar("7".to_owned()), json!(7));
        }
    }

    #[test]
    fn references_into_definitions() {
        let whole = json!({ "type": "object", "properties": { "id": { "type": "integer" } } });
        let shape = |reference: &str| {
            let schema = json!({ "$ref": reference, "$defs": { "Whole": whole } });
            Shape::of_value(&schema, &Definitions::EMPTY)
        };
        assert_eq!(shape("#/$defs/Whole").types(), Types::OBJECT);
        assert_eq!(shape("#/$defs/Whole/properties/id").types(), Types::NUMBER);
        assert_eq!(shape("#/$defs/Whole/properties/missing").types(), Types::NOTHING);
    }

    #[test]
    fn schemas_that_lead_to_themselves_end() {
        let schema = json!({ "$ref": "#/$defs/A", "allOf": [{ "$ref": "#/$defs/A" }, { "$ref": "#/$defs/A" }] });
        let definition = crate::spec::Definition::from_value("A".to_owned(), schema.clone());
        let definitions = Definitions::new(vec![definition]);
        let shape = Shape::of_value(&schema, &definitions);
        assert_eq!(shape.0.parts.len(), MAX_PARTS);
    }

    #[test]
    fn shapes_are_kept_up_to_a_number() {
        let schema = json!({
            "$ref": "#/$defs/Tree",
            "$defs": { "Tree": { "properties": { "a": { "$ref": "#/$defs/Tree" }, "n": { "$ref": "#/$defs/Id" } } }, "Id": { "type": "integer" } },
        });
        let root = Shape::of_value(&schema, &Definitions::EMPTY);
        assert!(Arc::ptr_eq(&root.property("a").0, &root.property("a").0));
        let mut deep = root.clone();
        for _ in 0..2 * MAX_KEPT {
            deep = deep.property("a");
        }
        assert_eq!(deep.property("n").scalar("7".to_owned()), json!(7));
        assert!(!Arc::ptr_eq(&deep.property("a").0, &deep.property("a").0));
    }
}
