//! `readOnly` properties, which only the server sets: no request contains them (OpenAPI 3.0, section 4.7.24.2).

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::parts::address;
use crate::pointer;
use crate::{Definitions, OperationSpec};

/// How deep references and combined schemas are followed for one value.
const PARTS: usize = 64;

/// How deep a value is searched.
const DEPTH: usize = 256;

/// The parts of an operation's input schema that lead to `readOnly` properties.
pub(super) struct ReadOnly {
    /// The properties of the input that are bodies, with their schemas; one without a name is the input itself.
    bodies: Vec<(String, Value)>,
    definitions: BTreeMap<String, Value>,
}

impl ReadOnly {
    /// The `readOnly` properties of the request body. `None` if the schema reaches none.
    pub(super) fn of(spec: &OperationSpec) -> Option<Self> {
        let mut bodies: Vec<(String, Value)> = Vec::new();
        for (name, schema) in spec.request_bodies() {
            if bodies.iter().all(|(known, _)| known != name) {
                bodies.push((name.to_owned(), schema));
            }
        }
        let mut definitions = BTreeMap::new();
        let mut names = Vec::new();
        let mut found = false;
        for (_, schema) in &bodies {
            found |= scan(schema, &mut names);
        }
        while let Some(name) = names.pop() {
            if definitions.contains_key(&name) {
                continue;
            }
            if let Some(schema) = definition(&spec.definitions, &name) {
                found |= scan(&schema, &mut names);
                definitions.insert(name, schema);
            }
        }
        found.then_some(Self { bodies, definitions })
    }

    /// Removes the properties from an input.
    pub(super) fn remove(&self, input: &mut Value) {
        for (property, schema) in &self.bodies {
            let body = if property.is_empty() { Some(&mut *input) } else { input.get_mut(property) };
            if let Some(body) = body {
                self.walk(body, &[schema], DEPTH);
            }
        }
    }

    fn walk<'s>(&'s self, value: &mut Value, schemas: &[&'s Value], depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        if !(value.is_object() || value.is_array()) || schemas.is_empty() {
            return;
        }
        let (parts, gone) = Look::new(self, value).at(schemas);
        match value {
            Value::Object(members) => {
                members.retain(|name, _| !gone.contains(name));
                for (name, member) in members {
                    let inner: Vec<&Value> = parts.iter().filter_map(|part| property(part, name)).collect();
                    self.walk(member, &inner, depth);
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    let inner: Vec<&Value> = parts.iter().filter_map(|part| item_of(part, at)).collect();
                    self.walk(item, &inner, depth);
                }
            }
            _ => {}
        }
    }

    fn target(&self, schema: &Value) -> Option<&Value> {
        self.definitions.get(&name_of(schema.get("$ref")?)?)
    }
}

/// The results for one value. Composed schemas are visited once, however many lead to them: the number of paths to them
/// doubles with each schema in between, and schemas that extend each other have no end.
struct Look<'s, 'v> {
    read_only: &'s ReadOnly,
    value: &'v Value,
    /// True if the value may match a schema, by its address.
    fits: HashMap<usize, bool>,
    /// True if a schema is `readOnly`.
    marked: HashMap<usize, bool>,
}

/// The results of schemas for one property, by their addresses.
type Verdicts = HashMap<usize, Option<bool>>;

impl<'s, 'v> Look<'s, 'v> {
    fn new(read_only: &'s ReadOnly, value: &'v Value) -> Self {
        Self { read_only, value, fits: HashMap::new(), marked: HashMap::new() }
    }

    /// The schemas that apply to the value if these do, each once, and the names of its members that no request
    /// contains.
    fn at(mut self, schemas: &[&'s Value]) -> (Vec<&'s Value>, HashSet<String>) {
        let parts = self.parts(schemas);
        let mut gone = HashSet::new();
        for name in self.value.as_object().into_iter().flat_map(|members| members.keys()) {
            // Most are not declared as such by any.
            if parts.iter().any(|part| declared(part, name).is_some_and(|own| self.is_read_only(own, PARTS))) {
                let mut known = Verdicts::new();
                let says =
                    schemas.iter().fold(None, |says, schema| or(says, self.verdict(schema, name, &mut known, PARTS)));
                if says == Some(true) {
                    gone.insert(name.clone());
                }
            }
        }
        (parts, gone)
    }

    fn parts(&mut self, schemas: &[&'s Value]) -> Vec<&'s Value> {
        let (mut parts, mut seen) = (Vec::new(), HashSet::new());
        let mut open: Vec<&Value> = schemas.iter().rev().copied().collect();
        while let Some(schema) = open.pop() {
            if !seen.insert(address(schema)) {
                continue;
            }
            parts.push(schema);
            open.extend(["oneOf", "anyOf"].iter().flat_map(|key| self.variants(schema, key, PARTS)));
            open.extend(list(schema, "allOf"));
            open.extend(self.read_only.target(schema));
        }
        parts
    }

    /// True if a property is `readOnly` in a schema; `None` if the schema does not declare it.
    ///
    /// Of combined schemas, one suffices. Of the variants of a union that the value may match, all must declare it so.
    fn verdict(&mut self, schema: &'s Value, name: &str, known: &mut Verdicts, depth: usize) -> Option<bool> {
        let depth = depth.checked_sub(1)?;
        let mut found = declared(schema, name).map(|property| self.is_read_only(property, depth));
        if !is_composed(schema) {
            return found;
        }
        if let Some(known) = known.get(&address(schema)) {
            return *known;
        }
        // A schema adds nothing new within itself.
        known.insert(address(schema), None);
        for part in self.read_only.target(schema).into_iter().chain(list(schema, "allOf")) {
            found = or(found, self.verdict(part, name, known, depth));
        }
        for key in ["anyOf", "oneOf"] {
            let variants = self.variants(schema, key, depth);
            let says: Vec<bool> = variants.into_iter().filter_map(|v| self.verdict(v, name, known, depth)).collect();
            if !says.is_empty() {
                found = or(found, Some(says.iter().all(|says| *says)));
            }
        }
        known.insert(address(schema), found);
        found
    }

    /// The variants of a union that the value may match, or all if it seems to match none.
    fn variants(&mut self, schema: &'s Value, key: &str, depth: usize) -> Vec<&'s Value> {
        let all: Vec<&Value> = list(schema, key).collect();
        let fitting: Vec<&Value> = all.iter().copied().filter(|variant| self.may_be(variant, depth)).collect();
        if fitting.is_empty() { all } else { fitting }
    }

    fn may_be(&mut self, schema: &'s Value, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return true };
        if !is_composed(schema) {
            return self.may_be_itself(schema, depth);
        }
        if let Some(fits) = self.fits.get(&address(schema)) {
            return *fits;
        }
        self.fits.insert(address(schema), true);
        let fits = self.may_be_itself(schema, depth)
            && self.read_only.target(schema).is_none_or(|target| self.may_be(target, depth))
            && list(schema, "allOf").all(|part| self.may_be(part, depth));
        self.fits.insert(address(schema), fits);
        fits
    }

    /// The result of the schema itself, without those that it is composed of.
    fn may_be_itself(&mut self, schema: &'s Value, depth: usize) -> bool {
        let value = self.value;
        let is_of = |kind: &str| match value {
            Value::Object(_) => kind == "object",
            Value::Array(_) => kind == "array",
            Value::Null => kind == "null",
            _ => true,
        };
        let fits = match schema.get("type") {
            Some(Value::String(kind)) => is_of(kind),
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).any(is_of),
            _ => true,
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let differs = properties.into_iter().flatten().any(|(name, property)| {
            let Some(value) = value.get(name) else { return false };
            property.get("const").is_some_and(|only| only != value)
                || property.get("enum").and_then(Value::as_array).is_some_and(|all| !all.contains(value))
        });
        let mut lacks = list(schema, "required").filter_map(Value::as_str).filter(|name| {
            let own = properties.and_then(|properties| properties.get(*name));
            value.is_object() && value.get(name).is_none() && !own.is_some_and(|own| self.is_read_only(own, depth))
        });
        fits && !differs && lacks.next().is_none()
    }

    fn is_read_only(&mut self, schema: &'s Value, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        if schema.get("readOnly") == Some(&Value::Bool(true)) || !is_composed(schema) {
            return schema.get("readOnly") == Some(&Value::Bool(true));
        }
        if let Some(marked) = self.marked.get(&address(schema)) {
            return *marked;
        }
        self.marked.insert(address(schema), false);
        let marked = self.read_only.target(schema).is_some_and(|target| self.is_read_only(target, depth))
            || list(schema, "allOf").any(|part| self.is_read_only(part, depth));
        self.marked.insert(address(schema), marked);
        marked
    }
}

/// True if a schema is composed of others.
fn is_composed(schema: &Value) -> bool {
    ["$ref", "allOf", "anyOf", "oneOf"].iter().any(|key| schema.get(key).is_some())
}

/// The schema of a property that a schema declares by its name.
fn declared<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    schema.get("properties").and_then(|properties| properties.get(name))
}

/// Of two combined schemas, the result of either.
fn or(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a || b),
        (a, b) => a.or(b),
    }
}

fn list<'s>(schema: &'s Value, key: &str) -> impl Iterator<Item = &'s Value> + use<'s> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// The schema of a property.
fn property<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    declared(schema, name).or_else(|| schema.get("additionalProperties"))
}

/// The schema of an item.
fn item_of(schema: &Value, at: usize) -> Option<&Value> {
    schema.get("prefixItems").and_then(|list| list.get(at)).or_else(|| schema.get("items"))
}

fn definition(definitions: &Definitions, name: &str) -> Option<Value> {
    Some(definitions.get(name)?.schema.to_value().ok()?.into_owned())
}

fn name_of(reference: &Value) -> Option<String> {
    pointer::definition(reference.as_str()?).map(Cow::into_owned)
}

/// Collects the definitions that a schema refers to; true if it has `readOnly` anywhere.
fn scan(schema: &Value, names: &mut Vec<String>) -> bool {
    let mut found = false;
    let mut stack = vec![schema];
    while let Some(value) = stack.pop() {
        match value {
            Value::Object(object) => {
                names.extend(object.get("$ref").and_then(name_of));
                found |= object.get("readOnly") == Some(&Value::Bool(true));
                stack.extend(object.values());
            }
            Value::Array(items) => stack.extend(items),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Definition, HttpBinding, HttpBody, Schema};

    fn spec(body: Value, definitions: &[(&'static str, Value)]) -> OperationSpec {
        let http = HttpBinding::new("POST", "/").with_bodies(const { &[HttpBody::new("application/json")] });
        let mut spec = OperationSpec::mutation("t.t").with_http(http);
        let properties = json!({ "id": { "readOnly": true }, "body": body });
        spec.input = Schema::from(json!({ "type": "object", "properties": properties }));
        spec.definitions = Definitions::new(
            definitions.iter().map(|(name, schema)| Definition::from_value(*name, schema.clone())).collect(),
        );
        spec
    }

    fn left(body: Value, definitions: &[(&'static str, Value)], value: Value) -> Value {
        let mut input = json!({ "id": 1, "body": value });
        ReadOnly::of(&spec(body, definitions)).unwrap().remove(&mut input);
        assert_eq!(input["id"], 1, "a parameter stays");
        input["body"].take()
    }

    #[test]
    fn properties_are_removed_at_any_depth() {
        let pet = json!({ "type": "object", "properties": {
            "id": { "readOnly": true, "type": "integer" },
            "made": { "$ref": "#/$defs/When" },
            "by": { "allOf": [{ "$ref": "#/$defs/When" }] },
            "name": { "type": "string" },
            "young": { "type": "array", "items": { "$ref": "#/$defs/a~1Pet" } },
            "by_name": { "additionalProperties": { "$ref": "#/$defs/a~1Pet" } },
            "pair": { "prefixItems": [{ "$ref": "#/$defs/a~1Pet" }], "items": {} },
        } });
        let definitions = [("a/Pet", pet), ("When", json!({ "type": "string", "readOnly": true }))];
        let value = json!({
            "name": "Rex", "id": 1, "made": "m", "by": "b", "other": { "id": 2 },
            "young": [{ "id": 3, "name": "Max", "young": [{ "id": 4 }] }],
            "by_name": { "id": { "id": 5, "name": "n" } },
            "pair": [{ "id": 6 }, { "id": 7 }],
        });
        let expected = json!({
            "name": "Rex", "other": { "id": 2 }, "young": [{ "name": "Max", "young": [{}] }],
            "by_name": { "id": { "name": "n" } }, "pair": [{}, { "id": 7 }],
        });
        let left = left(json!({ "$ref": "#/$defs/a~1Pet" }), &definitions, value);
        assert_eq!(left.to_string(), expected.to_string(), "in the order in which it came");
    }

    #[test]
    fn what_may_be_sent_stays() {
        let variant = |kind: &str, read_only: bool| {
            json!({ "type": "object", "required": ["kind"], "properties": {
            "kind": { "const": kind }, "id": { "readOnly": read_only },
        } })
        };
        let union = json!({ "oneOf": [variant("a", true), variant("b", false), { "type": "null" }] });
        let table = [
            (union.clone(), json!({ "kind": "a", "id": 1 }), json!({ "kind": "a" })),
            (union.clone(), json!({ "kind": "b", "id": 1 }), json!({ "kind": "b", "id": 1 })),
            (union.clone(), json!({ "kind": "c", "id": 1 }), json!({ "kind": "c", "id": 1 })),
            (union, json!(null), json!(null)),
            // One part that says so is enough where all parts hold.
            (
                json!({ "allOf": [{ "properties": { "id": { "readOnly": true } } }, { "properties": { "id": {} } }] }),
                json!({ "id": 1, "a": 2 }),
                json!({ "a": 2 }),
            ),
            (json!({ "properties": { "a": { "readOnly": true } } }), json!("text"), json!("text")),
            (json!({ "properties": { "a": { "readOnly": true } } }), json!([{ "a": 1 }]), json!([{ "a": 1 }])),
        ];
        for (schema, value, expected) in table {
            assert_eq!(left(schema.clone(), &[], value.clone()), expected, "{value} by {schema}");
        }
    }

    #[test]
    fn schemas_that_extend_each_other_say_what_they_say() {
        // A family in a circle: a pet is one of its children, each of which is a pet.
        let names: Vec<&'static str> =
            (b'a'..=b't').map(|at| &*Box::leak(format!("Child-{}", char::from(at)).into_boxed_str())).collect();
        let reference = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
        let variants: Vec<Value> = names.iter().map(|name| reference(name)).collect();
        let mut definitions: Vec<(&'static str, Value)> = names
            .iter()
            .map(|name| {
                let own =
                    json!({ "properties": { "kind": { "const": name }, "age": { "readOnly": name.ends_with('b') } } });
                (*name, json!({ "allOf": [reference("Pet"), own], "required": ["kind"] }))
            })
            .collect();
        definitions.push((
            "Pet",
            json!({ "oneOf": variants, "properties": { "id": { "readOnly": true }, "mother": reference("Pet") } }),
        ));
        let value = |kind: &str, mother: Value| json!({ "kind": kind, "id": 1, "age": 2, "mother": mother });
        let left = left(reference("Pet"), &definitions, value("Child-a", value("Child-b", json!(null))));
        assert_eq!(left, json!({ "kind": "Child-a", "age": 2, "mother": { "kind": "Child-b", "mother": null } }));
    }

    #[test]
    fn an_operation_without_any_pays_nothing() {
        let circle = [("Circle", json!({ "properties": { "next": { "$ref": "#/$defs/Circle" } } }))];
        assert!(ReadOnly::of(&spec(json!({ "$ref": "#/$defs/Circle" }), &circle)).is_none());
        assert!(ReadOnly::of(&OperationSpec::query("t.local")).is_none());
        let circle = [(
            "Circle",
            json!({ "allOf": [{ "$ref": "#/$defs/Circle" }], "readOnly": true, "properties": { "a": { "$ref": "#/$defs/Circle" }, "b": {} } }),
        )];
        assert_eq!(
            left(json!({ "$ref": "#/$defs/Circle" }), &circle, json!({ "a": { "b": 1 }, "b": 1 })),
            json!({ "b": 1 })
        );
    }
}
