//! The definitions of all operations in one table, each with a unique name.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::closure::{Closure, Digested};
use crate::{Definitions, OperationSpec, Schema, pointer};

/// Where the document's schemas are.
const SCHEMAS: &str = "#/components/schemas/";

/// Members of a schema that hold one schema.
const SINGLE: [&str; 12] = [
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "additionalItems",
];

/// A definition: the table in which it is, how it is written, and its own name.
type Key = ((usize, bool), String);

/// The schemas under the document's `components`, and the names of those that are still to be written.
#[derive(Default)]
pub(super) struct Components {
    schemas: BTreeMap<String, Value>,
    /// The name that each definition has here. The scope keeps the table alive: another one at its address would have the
    /// same number.
    names: HashMap<Key, (String, Scope)>,
    /// The definitions whose names are taken, alone and with all that they reach: both are made once.
    digested: HashMap<Key, Option<Arc<Digested>>>,
    closures: HashMap<Key, Closure>,
    /// For each name, the scope and the own name of its definition.
    taken: BTreeMap<String, (Scope, String)>,
    queue: VecDeque<(String, Scope, String)>,
}

/// The definitions that a schema may refer to: those inside the schema itself, and those that its API shares.
#[derive(Clone)]
pub(super) struct Scope {
    own: Option<Arc<Map<String, Value>>>,
    shared: Definitions,
    /// True if it is that of an input.
    is_input: bool,
    /// True if callers do not send what is `readOnly`, as OpenAPI means it.
    is_bound: bool,
}

impl Scope {
    /// Identifies the table in which a name is found, and how it is written.
    fn table(&self, name: &str) -> (usize, bool) {
        let table = match &self.own {
            Some(own) if own.contains_key(name) => Arc::as_ptr(own).addr(),
            _ => self.shared.as_slice().as_ptr().addr(),
        };
        (table, self.is_bound)
    }

    fn has_own(&self, name: &str) -> bool {
        self.own.as_ref().is_some_and(|own| own.contains_key(name))
    }

    fn get(&self, name: &str) -> Option<Value> {
        if let Some(found) = self.own.as_ref().and_then(|own| own.get(name)) {
            return Some(found.clone());
        }
        Some(self.shared.get(name)?.schema.to_value().ok()?.into_owned())
    }
}

impl Components {
    /// A schema of an operation, without the definitions inside it, and the scope of its references.
    ///
    /// The schema of a Rust type also becomes a definition with the type's name.
    pub(super) fn scope(&self, of: &Schema, spec: &OperationSpec) -> (Value, Scope) {
        let name = of.type_name();
        let mut schema = of.to_value().map_or(Value::Bool(true), std::borrow::Cow::into_owned);
        let own = schema.as_object_mut().and_then(|schema| {
            schema.shift_remove("$schema");
            schema.shift_remove("$defs")
        });
        let mut own = match own {
            Some(Value::Object(own)) => own,
            _ => Map::new(),
        };
        let has_parts = ["properties", "oneOf", "anyOf", "enum"].iter().any(|key| schema.get(*key).is_some());
        if let Some(name) = name.filter(|name| has_parts && !own.contains_key(name)) {
            let reference = json!({ "$ref": pointer::reference(&name) });
            let mut whole = std::mem::replace(&mut schema, reference);
            refer_to(&name, &mut whole);
            own.values_mut().for_each(|schema| refer_to(&name, schema));
            own.insert(name, whole);
        }
        let own = (!own.is_empty()).then(|| Arc::new(own));
        let is_input = std::ptr::eq(of, &spec.input);
        (schema, Scope { own, shared: spec.definitions.clone(), is_input, is_bound: spec.directed_http().is_some() })
    }

    /// The target of a schema that is only a reference.
    pub(super) fn resolved(schema: Value, scope: &Scope) -> Value {
        let mut schema = schema;
        // A chain of references ends soon, or never.
        for _ in 0..16 {
            let target = schema.get("$ref").and_then(Value::as_str).and_then(pointer::definition);
            match target.and_then(|name| scope.get(&name)) {
                Some(found) => schema = found,
                None => break,
            }
        }
        schema
    }

    /// The schema with its references leading to the document's components, to which the targets are added.
    pub(super) fn schema(&mut self, schema: &Value, scope: &Scope) -> Value {
        let Value::Object(members) = schema else { return schema.clone() };
        let mut out = Map::new();
        for (key, value) in members {
            // Clients would not send such a property.
            if key == "readOnly" && !scope.is_bound {
                continue;
            }
            let value = match (key.as_str(), value) {
                ("$ref", Value::String(target)) => self.reference(target, scope).into(),
                ("properties" | "patternProperties" | "dependentSchemas" | "$defs", Value::Object(members)) => {
                    let each = members.iter().map(|(name, part)| (name.clone(), self.schema(part, scope)));
                    Value::Object(each.collect())
                }
                ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(parts)) => {
                    parts.iter().map(|part| self.schema(part, scope)).collect()
                }
                ("discriminator", Value::Object(members)) => self.discriminator(members, scope),
                (key, value) if SINGLE.contains(&key) => self.schema(value, scope),
                (_, value) => value.clone(),
            };
            out.insert(key.clone(), value);
        }
        Value::Object(out)
    }

    fn discriminator(&mut self, members: &Map<String, Value>, scope: &Scope) -> Value {
        let mut target = |value: &Value| match value {
            Value::String(target) => self.reference(target, scope).into(),
            other => other.clone(),
        };
        let each = members.iter().map(|(key, value)| {
            let value = match (key.as_str(), value) {
                ("mapping", Value::Object(mapping)) => {
                    mapping.iter().map(|(value, schema)| (value.clone(), target(schema))).collect()
                }
                ("defaultMapping", schema) => target(schema),
                (_, value) => value.clone(),
            };
            (key.clone(), value)
        });
        each.collect()
    }

    /// The reference to a component, for a reference to a definition; any other stays unchanged.
    fn reference(&mut self, target: &str, scope: &Scope) -> String {
        let Some(name) = pointer::definition(target) else { return target.to_owned() };
        let rest = target.strip_prefix(pointer::DEFINITIONS).and_then(|rest| rest.split_once('/'));
        let name = self.name(&name, scope);
        match rest {
            Some((_, rest)) => format!("{SCHEMAS}{name}/{rest}"),
            None => format!("{SCHEMAS}{name}"),
        }
    }

    /// The name of a definition among the components.
    fn name(&mut self, own: &str, scope: &Scope) -> String {
        let key = (scope.table(own), own.to_owned());
        if let Some((name, _)) = self.names.get(&key) {
            return name.clone();
        }
        let plain = allowed(own);
        // A Rust type may accept other JSON than it writes: for example, a property that is optional in an input may
        // always be in an output.
        let of_side = scope.has_own(own).then(|| format!("{plain}{}", if scope.is_input { "Input" } else { "Output" }));
        let numbered = (2_u32..).map(|number| format!("{plain}_{number}"));
        let mut name = plain.clone();
        for next in of_side.into_iter().chain(numbered) {
            match self.taken.get(&name) {
                // Definitions of two tables with the same name and description are one component.
                Some((other, other_own)) if other_own == own => {
                    let other = other.clone();
                    let closure = self.closure(own, scope);
                    let is_written_alike = other.is_bound == scope.is_bound || !closure.has_read_only;
                    if is_written_alike && self.closure(own, &other) == closure {
                        self.names.insert(key, (name.clone(), scope.clone()));
                        return name;
                    }
                }
                Some(_) => {}
                None if !self.schemas.contains_key(&name) => break,
                None => {}
            }
            name = next;
        }
        self.taken.insert(name.clone(), (scope.clone(), own.to_owned()));
        self.names.insert(key, (name.clone(), scope.clone()));
        self.queue.push_back((name.clone(), scope.clone(), own.to_owned()));
        name
    }

    /// A definition with all that it reaches.
    fn closure(&mut self, own: &str, scope: &Scope) -> Closure {
        let key = (scope.table(own), own.to_owned());
        if let Some(closure) = self.closures.get(&key) {
            return *closure;
        }
        let (mut found, mut queue) = (BTreeMap::new(), vec![own.to_owned()]);
        while let Some(name) = queue.pop() {
            if found.contains_key(&name) {
                continue;
            }
            let Some(definition) = self.digested(&name, scope) else { continue };
            queue.extend(definition.references.iter().cloned());
            found.insert(name, definition);
        }
        let closure = Closure::of(&found);
        self.closures.insert(key, closure);
        closure
    }

    /// A definition by itself; `None` if there is none of the name.
    fn digested(&mut self, name: &str, scope: &Scope) -> Option<Arc<Digested>> {
        let digested = self.digested.entry((scope.table(name), name.to_owned()));
        digested.or_insert_with(|| scope.get(name).map(|schema| Arc::new(Digested::of(&schema)))).clone()
    }

    /// Adds a schema of the document's own under a name, and returns the reference to it.
    pub(super) fn add(&mut self, name: &str, schema: Value) -> String {
        let mut free = name.to_owned();
        for number in 2_u32.. {
            if !self.taken.contains_key(&free) && !self.schemas.contains_key(&free) {
                break;
            }
            free = format!("{name}_{number}");
        }
        let reference = format!("{SCHEMAS}{free}");
        self.schemas.insert(free, schema);
        reference
    }

    /// Writes the definitions that were named, and those that these name.
    pub(super) fn write(&mut self) {
        while let Some((name, scope, own)) = self.queue.pop_front() {
            // A reference without a target accepts any value.
            let schema = scope.get(&own).map_or(Value::Bool(true), |schema| self.schema(&schema, &scope));
            self.schemas.insert(name, schema);
        }
    }

    /// The target component of a reference.
    pub(super) fn target(&mut self, reference: &str) -> Option<&mut Value> {
        self.schemas.get_mut(reference.strip_prefix(SCHEMAS)?)
    }

    pub(super) fn into_schemas(self) -> Map<String, Value> {
        self.schemas.into_iter().collect()
    }
}

/// Changes references to the schema as a whole into references to its new definition.
fn refer_to(name: &str, schema: &mut Value) {
    match schema {
        Value::Object(members) => members.iter_mut().for_each(|(key, value)| match (key.as_str(), value) {
            ("properties" | "patternProperties", Value::Object(own)) => {
                own.values_mut().for_each(|part| refer_to(name, part));
            }
            ("enum" | "const" | "default" | "example" | "examples", _) => {}
            ("$ref", Value::String(target)) if target == "#" => *target = pointer::reference(name),
            (_, value) => refer_to(name, value),
        }),
        Value::Array(parts) => parts.iter_mut().for_each(|part| refer_to(name, part)),
        _ => {}
    }
}

/// A name with the characters that a component's name may have (OpenAPI 3.1, section 4.8.7).
fn allowed(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    name.chars().map(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operation whose output is a type of that name, with a member of its own.
    fn giving(name: &str, member: &str) -> OperationSpec {
        let item = json!({ "type": "object", "properties": { (member): { "type": "string" } } });
        let output =
            json!({ "type": "array", "items": { "$ref": pointer::reference(name) }, "$defs": { (name): item } });
        OperationSpec::query("shop.list").with_output(Schema::from(output))
    }

    #[test]
    fn a_table_that_is_gone_gives_its_names_to_no_other() {
        let mut components = Components::default();
        let mut refer = |spec: &OperationSpec| {
            let (schema, scope) = components.scope(&spec.output, spec);
            components.schema(&schema, &scope)["items"]["$ref"].clone()
        };
        // Allocators like to give what was freed last.
        for round in 0..50 {
            assert_eq!(refer(&giving("Item", "price")), "#/components/schemas/Item", "{round}");
            assert_eq!(refer(&giving("Item", "size")), "#/components/schemas/ItemOutput", "{round}");
        }
    }

    #[test]
    fn many_versions_of_an_api_cost_no_more_than_their_schemas() {
        const VERSIONS: usize = 20;
        const NAMES: usize = 30;
        // Each definition reaches all, and the last one says its version.
        let spec = |version: usize| {
            let name = |at: usize| format!("Part{}", at % NAMES);
            let part = |at: usize| {
                let next = json!({ "$ref": pointer::reference(&name(at + 1)) });
                let own = if at + 1 == NAMES { json!({ "const": version }) } else { json!({}) };
                (name(at), json!({ "type": "object", "properties": { "next": next, "own": own } }))
            };
            let parts: Map<String, Value> = (0..NAMES).map(part).collect();
            let output = json!({ "type": "array", "items": { "$ref": pointer::reference("Part0") }, "$defs": parts });
            OperationSpec::query("shop.list").with_output(Schema::from(output))
        };
        let mut components = Components::default();
        let mut refer = |version: usize| {
            let spec = spec(version);
            let (schema, scope) = components.scope(&spec.output, &spec);
            let reference = components.schema(&schema, &scope)["items"]["$ref"].clone();
            components.write();
            reference
        };
        for version in 0..VERSIONS {
            let name = match version {
                0 => "Part0".to_owned(),
                1 => "Part0Output".to_owned(),
                version => format!("Part0_{version}"),
            };
            assert_eq!(refer(version), format!("#/components/schemas/{name}"));
        }
        // The same version once more is the same components.
        assert_eq!(refer(1), "#/components/schemas/Part0Output");
        assert_eq!(components.digested.len(), (VERSIONS + 1) * NAMES);
        assert_eq!(components.into_schemas().len(), VERSIONS * NAMES);
    }
}
