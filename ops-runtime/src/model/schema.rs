//! JSON Schemas in specs: text that is parsed on first use, a function that is run once, or a value.
//!
//! ```
//! use ops_runtime::spec::{Definition, Definitions, Schema};
//!
//! static DEFINITIONS: &[Definition] = &[Definition::new("Pet", r#"{"type":"object"}"#)];
//! let schema = Schema::text(r##"{"$ref":"#/$defs/Pet"}"##);
//! let whole = schema.self_contained(&Definitions::Static(DEFINITIONS)).unwrap();
//! assert_eq!(whole["$defs"]["Pet"]["type"], "object");
//! ```

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::Text;
use crate::model::keywords::{Holds, holds};
use crate::pointer::{self, percent_decoded};

/// A JSON Schema (draft 2020-12), whose `$ref`s name definitions of its API as `#/$defs/Name`.
///
/// The name stands there as it is, but for `~0` and `~1` in the place of `~` and `/`. Where `schemars` percent-encodes the name
/// of a Rust type, [`make`](Self::make) undoes it.
///
/// It can be written in a const: it is parsed when the value is first needed, and the value is then kept.
#[derive(Clone)]
#[doc(alias = "FromSchema")]
pub struct Schema(Repr);

#[derive(Clone)]
enum Repr {
    Any,
    Text(Text),
    Make(fn() -> Value),
    /// The schema of a Rust type, whose title is the type's name.
    #[cfg_attr(not(all(feature = "macros", feature = "registry")), allow(dead_code, reason = "only macros make it"))]
    Type(fn() -> Value),
    Json(Arc<Value>),
    /// A value that is kept as its text: see [`Schema::compacted`].
    #[cfg_attr(
        not(all(feature = "http", feature = "openapi")),
        allow(dead_code, reason = "only imported documents are kept so")
    )]
    Compact(Arc<str>),
}

impl Schema {
    /// The schema that accepts every value.
    pub const ANY: Self = Self(Repr::Any);

    /// A schema given as JSON text, parsed on first use.
    pub const fn text(json: &'static str) -> Self {
        Self(Repr::Text(Cow::Borrowed(json)))
    }

    /// A schema from a function, such as one derived from a Rust type.
    pub const fn make(make: fn() -> Value) -> Self {
        Self(Repr::Make(make))
    }

    /// True if this schema accepts every value, so that there is nothing to check or repair.
    pub fn is_any(&self) -> bool {
        match &self.0 {
            Repr::Any => true,
            Repr::Json(value) => is_any(value),
            Repr::Text(text) => matches!(text.trim(), "true" | "{}"),
            Repr::Make(_) | Repr::Type(_) | Repr::Compact(_) => false,
        }
    }

    /// True if a Rust type makes the schema, so that the type takes and gives nothing else.
    #[cfg(any(feature = "registry", feature = "typescript"))]
    pub(crate) fn is_made(&self) -> bool {
        matches!(self.0, Repr::Make(_) | Repr::Type(_))
    }

    /// The schema of a Rust type, from a function that gives it with the type's name as its title.
    #[cfg(all(feature = "macros", feature = "registry"))]
    pub(crate) const fn of_type(make: fn() -> Value) -> Self {
        Self(Repr::Type(make))
    }

    /// The name of the Rust type that this is the schema of, if it is known.
    #[cfg(feature = "http-server")]
    pub(crate) fn type_name(&self) -> Option<String> {
        let Repr::Type(make) = &self.0 else { return None };
        Some(make().get("title")?.as_str()?.to_owned())
    }

    /// The same schema, kept as text: a fraction of a tree's memory, but parsed each time that its value is needed.
    ///
    /// A schema that its text would not give back exactly stays as it is.
    #[cfg(all(feature = "http", feature = "openapi"))]
    pub(crate) fn compacted(self) -> Self {
        match &self.0 {
            Repr::Json(value) if reads_back(value) => Self(Repr::Compact(value.to_string().into())),
            _ => self,
        }
    }

    /// The schema as JSON, whose `$ref`s lead to definitions beside it:
    /// [`OperationSpec::input_schema`](crate::spec::OperationSpec::input_schema) has these, too.
    ///
    /// # Errors
    /// If the schema was given as text that is not JSON.
    pub fn to_value(&self) -> Result<Cow<'_, Value>, serde_json::Error> {
        Ok(match &self.0 {
            Repr::Any => Cow::Owned(Value::Object(Map::new())),
            Repr::Text(text) => Cow::Owned(serde_json::from_str(text)?),
            Repr::Compact(text) => Cow::Owned(serde_json::from_str(text)?),
            Repr::Make(make) => {
                let mut schema = make();
                decode_references(&mut schema);
                Cow::Owned(schema)
            }
            Repr::Type(make) => {
                let mut schema = make();
                decode_references(&mut schema);
                // The name of a Rust type says nothing to others.
                if let Some(members) = schema.as_object_mut() {
                    members.retain(|key, _| key != "title");
                }
                Cow::Owned(schema)
            }
            Repr::Json(value) => Cow::Borrowed(value),
        })
    }

    /// The schema as JSON with every definition that it reaches under `$defs`.
    ///
    /// # Errors
    /// If the schema or a definition was given as text that is not JSON.
    pub fn self_contained(&self, definitions: &Definitions) -> Result<Value, serde_json::Error> {
        let mut root = self.to_value()?.into_owned();
        let mut found: Map<String, Value> = Map::new();
        let mut queue = Vec::new();
        references(&root, &mut queue);
        while let Some(name) = queue.pop() {
            if found.contains_key(&name) || own_definition(&root, &name) {
                continue;
            }
            if let Some(definition) = definitions.get(&name) {
                let value = definition.schema.to_value()?.into_owned();
                references(&value, &mut queue);
                found.insert(name, value);
            }
        }
        if !found.is_empty() {
            found.sort_keys();
            if let Value::Bool(true) = root {
                root = Value::Object(Map::new());
            }
            if let Some(object) = root.as_object_mut() {
                match object.entry("$defs").or_insert_with(|| Value::Object(Map::new())) {
                    Value::Object(own) => own.extend(found),
                    other => *other = Value::Object(found),
                }
            }
        }
        Ok(root)
    }
}

fn is_any(value: &Value) -> bool {
    match value {
        Value::Bool(accepts) => *accepts,
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}

/// True if the text of a value is parsed to the same value.
///
/// `serde_json` parses no more than 128 levels, and by default some fractions to their neighbours.
#[cfg(all(feature = "http", feature = "openapi"))]
fn reads_back(value: &Value) -> bool {
    const DEPTH: usize = 100;
    let mut stack = vec![(value, 0)];
    while let Some((value, depth)) = stack.pop() {
        match value {
            Value::Object(_) | Value::Array(_) if depth == DEPTH => return false,
            Value::Object(object) => stack.extend(object.values().map(|value| (value, depth + 1))),
            Value::Array(items) => stack.extend(items.iter().map(|value| (value, depth + 1))),
            Value::Number(number)
                if number.is_f64() && serde_json::from_str(&number.to_string()).ok().as_ref() != Some(number) =>
            {
                return false;
            }
            _ => {}
        }
    }
    true
}

fn own_definition(root: &Value, name: &str) -> bool {
    root.get("$defs").and_then(|defs| defs.get(name)).is_some()
}

/// Collects the names of all definitions that a schema refers to.
fn references(schema: &Value, names: &mut Vec<String>) {
    // An explicit stack: a schema may be nested deeper than the thread's stack allows.
    let mut stack = vec![schema];
    while let Some(value) = stack.pop() {
        match value {
            Value::Object(object) => {
                if let Some(name) = object.get("$ref").and_then(Value::as_str).and_then(pointer::definition) {
                    names.push(name.into_owned());
                }
                stack.extend(object.values());
            }
            Value::Array(items) => stack.extend(items),
            _ => {}
        }
    }
}

/// Writes references to a schema's own definitions with the names as they are, which `schemars` percent-encodes.
fn decode_references(schema: &mut Value) {
    let Some(own) = schema.get("$defs").and_then(Value::as_object) else { return };
    // Nearly all names are the same in either notation.
    let is_plain = |name: &String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
    if own.keys().all(is_plain) {
        return;
    }
    let own: HashSet<String> = own.keys().cloned().collect();
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                for (keyword, value) in members.iter_mut() {
                    match (holds(keyword), value) {
                        (_, Value::String(target)) if keyword == "$ref" => decode_reference(target, &own),
                        (Holds::Schema | Holds::Schemas, value) => open.push(value),
                        (Holds::Named | Holds::Definitions, Value::Object(schemas)) => {
                            open.extend(schemas.values_mut())
                        }
                        _ => {}
                    }
                }
            }
            Value::Array(schemas) => open.extend(schemas),
            _ => {}
        }
    }
}

fn decode_reference(target: &mut String, own: &HashSet<String>) {
    let leads_to_own = |target: &str| pointer::definition(target).is_some_and(|name| own.contains(&*name));
    // A name may look as if it were encoded.
    if target.contains('%') && !leads_to_own(target.as_str()) {
        let decoded = percent_decoded(target).into_owned();
        if leads_to_own(&decoded) {
            *target = decoded;
        }
    }
}

impl From<Value> for Schema {
    fn from(value: Value) -> Self {
        if is_any(&value) { Self::ANY } else { Self(Repr::Json(Arc::new(value))) }
    }
}

impl Default for Schema {
    fn default() -> Self {
        Self::ANY
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        match (self.to_value(), other.to_value()) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_value() {
            Ok(value) => write!(f, "Schema({value})"),
            Err(error) => write!(f, "Schema(not JSON: {error})"),
        }
    }
}

/// A named schema of an API's one table of definitions.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Definition {
    /// The name that `#/$defs/Name` refers to, verbatim.
    pub name: Text,
    /// The schema under that name.
    pub schema: Schema,
}

impl Definition {
    /// A definition given as JSON text.
    pub const fn new(name: &'static str, json: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), schema: Schema::text(json) }
    }

    /// A definition loaded at run time.
    pub fn from_value(name: impl Into<Text>, schema: Value) -> Self {
        Self { name: name.into(), schema: schema.into() }
    }
}

/// The definitions that the schemas of an API share, sorted by name (byte order).
///
/// All operations of one API share one table, so that a schema used by a thousand operations exists once.
#[derive(Debug, Clone)]
pub enum Definitions {
    /// A table in generated code, sorted by name.
    Static(&'static [Definition]),
    /// A table made at run time, sorted by name; see [`Definitions::new`].
    Shared(Arc<[Definition]>),
}

impl Definitions {
    /// The empty table.
    pub const EMPTY: Self = Self::Static(&[]);

    /// A table of the given definitions, which it sorts; of two with the same name, the first counts.
    pub fn new(mut definitions: Vec<Definition>) -> Self {
        definitions.sort_by(|a, b| a.name.cmp(&b.name));
        definitions.dedup_by(|later, first| later.name == first.name);
        if definitions.is_empty() { Self::EMPTY } else { Self::Shared(definitions.into()) }
    }

    /// The definition of that name.
    pub fn get(&self, name: &str) -> Option<&Definition> {
        let table = self.as_slice();
        table.binary_search_by(|d| d.name.as_ref().cmp(name)).ok().and_then(|i| table.get(i))
    }

    /// All definitions, in the order of their names.
    pub fn as_slice(&self) -> &[Definition] {
        match self {
            Self::Static(table) => table,
            Self::Shared(table) => table,
        }
    }

    /// True if both are the same table in memory, so that both can share compiled schemas.
    pub fn same_table(&self, other: &Self) -> bool {
        std::ptr::eq(self.as_slice(), other.as_slice())
    }
}

impl Default for Definitions {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl PartialEq for Definitions {
    fn eq(&self, other: &Self) -> bool {
        self.same_table(other) || self.as_slice() == other.as_slice()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_have_the_names_of_types_as_they_are() {
        let made = Schema::make(|| {
            json!({
                "properties": {
                    "size": { "$ref": "#/$defs/Gr%C3%B6%C3%9Fe" },
                    "default": { "items": { "$ref": "#/$defs/Order%20item/properties/a" } },
                    "of schemars": { "anyOf": [{ "$ref": "#/$defs/a%2541" }, { "$ref": "#/$defs/b~1c%20d" }] },
                    "of ours": { "$ref": "#/$defs/a%41" },
                    "elsewhere": { "$ref": "#/$defs/Not%20there" },
                },
                "default": { "$ref": "#/$defs/Gr%C3%B6%C3%9Fe" },
                "$defs": {
                    "Größe": { "type": "object" },
                    "Order item": { "$ref": "#/$defs/Gr%C3%B6%C3%9Fe" },
                    "a%41": true,
                    "b/c d": true,
                },
            })
        });
        let schema = made.to_value().unwrap();
        let properties = &schema["properties"];
        assert_eq!(properties["size"]["$ref"], "#/$defs/Größe");
        assert_eq!(properties["default"]["items"]["$ref"], "#/$defs/Order item/properties/a");
        assert_eq!(
            properties["of schemars"]["anyOf"],
            json!([{ "$ref": "#/$defs/a%41" }, { "$ref": "#/$defs/b~1c d" }])
        );
        assert_eq!(properties["of ours"]["$ref"], "#/$defs/a%41");
        assert_eq!(properties["elsewhere"]["$ref"], "#/$defs/Not%20there");
        assert_eq!(schema["default"]["$ref"], "#/$defs/Gr%C3%B6%C3%9Fe");
        assert_eq!(schema["$defs"]["Order item"]["$ref"], "#/$defs/Größe");
    }

    #[cfg(all(feature = "http", feature = "openapi"))]
    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!({}), |inner, _| json!({ "items": inner }))
    }

    #[cfg(all(feature = "http", feature = "openapi"))]
    #[test]
    fn compacted_schemas_are_the_same() {
        let numbers =
            json!([u64::MAX, i64::MIN, 1, 1.0, -0.0, 0.1, 1e-300, 5e-324, f64::MAX, 123_456_789_012_345_680.0]);
        let mut seed = 7_u64;
        let random = (0..2_000).map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from_bits(seed)
        });
        let random: Vec<Value> =
            random.filter(|number| number.is_finite()).map(|number| json!({ "const": number })).collect();
        let others = [
            json!({ "enum": numbers, "z": 1, "a": { "y": "\u{0}\u{7f}\u{2028}\"\\/ü😀", "b": null } }),
            json!({ "$ref": "#/$defs/Pet" }),
            json!(false),
            nested(90),
            nested(200),
        ];
        for value in random.into_iter().chain(others) {
            let schema = Schema::from(value.clone());
            let compact = schema.clone().compacted();
            assert_eq!(compact.to_value().unwrap().to_string(), value.to_string());
            assert_eq!(compact, schema);
            assert_eq!(serde_json::to_string(&compact).unwrap(), serde_json::to_string(&schema).unwrap());
            assert_eq!((compact.is_any(), compact.is_made()), (false, false));
        }
        assert!(matches!(Schema::from(nested(90)).compacted().0, Repr::Compact(_)));
        assert!(matches!(Schema::from(nested(200)).compacted().0, Repr::Json(_)));
        assert!(Schema::from(json!({})).compacted().is_any());
    }
}
