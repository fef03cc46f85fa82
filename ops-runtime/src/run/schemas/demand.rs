//! Properties that the sender of a value cannot set: `readOnly` ones of an input, `writeOnly` ones of an output (OpenAPI
//! 3.0, section 4.7.24.2).

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::parts::{Parts, address, each_schema, each_schema_mut};
use crate::{HttpBody, OperationSpec, pointer};

/// Limit of the nesting of lists of parts.
const DEPTH: usize = 64;

/// Names of properties that are not required.
type Names = BTreeSet<String>;

/// Where the properties may be that the sender of a value cannot set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    Nowhere,
    /// Within the value's own properties, which the sender sets.
    Below,
    Anywhere,
}

impl Given {
    /// Those of an input: only the parameters and bodies of requests have them.
    pub(super) fn of_input(spec: &OperationSpec) -> Self {
        match spec.directed_http() {
            None => Self::Nowhere,
            Some(http) if http.bodies.iter().any(HttpBody::is_rest) => Self::Anywhere,
            Some(_) => Self::Below,
        }
    }
}

/// The schema of an operation's inputs for those who do not know its binding, so that they can set all that is required.
///
/// `None` if it is the schema of the spec.
pub(crate) fn published_input(spec: &OperationSpec) -> Option<Value> {
    let given = Given::of_input(spec);
    if given == Given::Nowhere {
        return None;
    }
    let mut schema = spec.input_schema().ok()?;
    demand_less(&mut schema, "readOnly", given).then_some(schema)
}

/// Stops requiring properties that the sender of a value cannot set. Returns true if any are required.
///
/// One part of an `allOf` may declare what another one requires, so a name is taken from the lists of all parts. A part
/// that refers to a definition then refers to a copy that requires less. The definition itself stays unchanged for its
/// other users.
pub(super) fn demand_less(schema: &mut Value, other_side: &str, given_at: Given) -> bool {
    if given_at == Given::Nowhere {
        return false;
    }
    let is_of_other_side = |part: &Value| part.get(other_side) == Some(&Value::Bool(true));
    let Some(mut parts) = Parts::of(schema, is_of_other_side) else { return false };
    // The value's own properties may be described by several parts.
    let own: HashSet<usize> = match given_at {
        Given::Below => parts.all(schema).into_iter().map(address).collect(),
        _ => HashSet::new(),
    };
    // The names that a schema need not require, by the address of the schema.
    let mut gone: HashMap<usize, Names> = HashMap::new();
    each_schema(schema, &mut |schema| {
        if own.contains(&address(schema)) {
            return;
        }
        let given = given(&mut parts, schema, is_of_other_side);
        if !given.is_empty() {
            gone.insert(address(schema), given);
        }
    });
    if gone.is_empty() {
        return false;
    }
    let mut less = Less::of(schema, &mut parts, &gone);
    each_schema_mut(schema, &mut |schema| {
        if let Some(given) = gone.get(&address(schema)) {
            less.whole(schema, given, 0);
        }
    });
    less.copy(schema);
    true
}

/// The properties that a schema requires and its sender cannot set.
fn given<'s>(parts: &mut Parts<'s>, schema: &'s Value, is_of_other_side: impl Fn(&Value) -> bool) -> Names {
    let all = parts.with_room(schema, length);
    let required: HashSet<&str> = all.iter().flat_map(|part| required_of(part)).collect();
    let mut given = Names::new();
    for properties in all.iter().filter_map(|part| part.get("properties")?.as_object()) {
        // By the shorter list.
        let names: Vec<(&str, &Value)> = match required.len() < properties.len() {
            true => required.iter().filter_map(|name| Some((*name, properties.get(*name)?))).collect(),
            false => properties.iter().map(|(name, property)| (name.as_str(), property)).collect(),
        };
        parts.spend(names.len());
        for (name, property) in names.into_iter().filter(|(name, _)| required.contains(name)) {
            if parts.marking(property).into_iter().any(&is_of_other_side) {
                given.insert(name.to_owned());
            }
        }
    }
    given
}

fn required_of(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// How many names a schema requires.
fn length(schema: &Value) -> usize {
    schema.get("required").and_then(Value::as_array).map_or(0, Vec::len)
}

/// Takes names from the lists of schemas and of their parts.
struct Less {
    /// The properties that each definition requires and does not declare itself; and the size of the definition.
    demanded: HashMap<String, (Names, usize)>,
    /// The suffix of the names of copies.
    suffix: String,
    /// The names of copies, by their definitions and what they do not require; and the reverse.
    copies: HashMap<(String, Names), String>,
    origins: HashMap<String, (String, Names)>,
    wanted: Vec<String>,
    /// How much more may be compared and copied.
    left: usize,
}

impl Less {
    fn of<'s>(schema: &'s Value, parts: &mut Parts<'s>, gone: &HashMap<usize, Names>) -> Self {
        let names: HashSet<&str> = gone.values().flatten().map(String::as_str).collect();
        let definitions = schema.get("$defs").and_then(Value::as_object);
        let mut demanded = HashMap::new();
        for (name, definition) in definitions.into_iter().flatten() {
            let own = gone.get(&address(definition));
            let is_demanded = |name: &&str| names.contains(name) && own.is_none_or(|own| !own.contains(*name));
            let all = parts.with_room(definition, length);
            let of_it: Names = all.into_iter().flat_map(required_of).filter(is_demanded).map(str::to_owned).collect();
            if !of_it.is_empty() {
                demanded.insert(name.clone(), (of_it, size(definition)));
            }
        }
        let mut suffix = "_given".to_owned();
        while definitions.is_some_and(|own| own.keys().any(|name| name.contains(&suffix))) {
            suffix.push('_');
        }
        let (copies, origins, left) = (HashMap::new(), HashMap::new(), 4 * size(schema) + 4096);
        Self { demanded, suffix, copies, origins, wanted: Vec::new(), left }
    }

    /// Takes names from the list of a schema and from those of its parts.
    fn whole(&mut self, schema: &mut Value, given: &Names, depth: usize) {
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.retain(|name| name.as_str().is_none_or(|name| !given.contains(name)));
        }
        if let Some(Value::String(reference)) = schema.get_mut("$ref")
            && let Some(copy) = pointer::definition(reference).and_then(|name| self.copy_of(&name, given))
        {
            *reference = pointer::reference(&copy);
        }
        let members = schema.get_mut("allOf").and_then(Value::as_array_mut).filter(|_| depth < DEPTH);
        for member in members.into_iter().flatten() {
            self.whole(member, given, depth + 1);
        }
    }

    /// The name of a copy that requires less than a definition, or than a copy of one; `None` if that requires nothing of it, or
    /// if the copies grow beyond the document's size.
    fn copy_of(&mut self, name: &str, given: &Names) -> Option<String> {
        let (name, mut less) = self.origins.get(name).cloned().unwrap_or_else(|| (name.to_owned(), Names::new()));
        let (demanded, size) = self.demanded.get(&name)?;
        self.left = self.left.checked_sub(demanded.len().min(given.len()))?;
        let before = less.len();
        less.extend(demanded.intersection(given).cloned());
        if less.len() == before {
            return None;
        }
        let origin = (name, less);
        if let Some(copy) = self.copies.get(&origin) {
            return Some(copy.clone());
        }
        self.left = self.left.checked_sub(*size)?;
        let copy = format!("{}{}{}", origin.0, self.suffix, self.copies.len() + 1);
        self.copies.insert(origin.clone(), copy.clone());
        self.origins.insert(copy.clone(), origin);
        self.wanted.push(copy.clone());
        Some(copy)
    }

    /// Adds the copies.
    fn copy(mut self, schema: &mut Value) {
        let Some(definitions) = schema.get_mut("$defs").and_then(Value::as_object_mut) else { return };
        while let Some(name) = self.wanted.pop() {
            let Some((of, given)) = self.origins.get(&name).cloned() else { continue };
            if let Some(mut copy) = definitions.get(&of).cloned() {
                self.whole(&mut copy, &given, 0);
                definitions.insert(name, copy);
            }
        }
    }
}

/// How many values a schema has in it.
fn size(schema: &Value) -> usize {
    let (mut size, mut open) = (0, vec![schema]);
    while let Some(value) = open.pop() {
        size += 1;
        match value {
            Value::Object(object) => open.extend(object.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::*;
    use crate::normalise::Validator;

    #[test]
    fn what_the_other_side_gives_is_not_demanded() {
        let schema = json!({
            "$defs": { "Id": { "type": "integer", "readOnly": true } },
            "allOf": [{
                "required": ["id", "made", "name", "next", "secret"],
                "properties": {
                    "id": { "$ref": "#/$defs/Id" },
                    "next": { "anyOf": [{ "$ref": "#/$defs/Id" }, { "type": "null" }] },
                    "made": { "readOnly": true },
                    "name": {},
                    "secret": { "writeOnly": true },
                },
            }],
        });
        for (other_side, required) in
            [("readOnly", json!(["name", "secret"])), ("writeOnly", json!(["id", "made", "name", "next"]))]
        {
            let mut schema = schema.clone();
            demand_less(&mut schema, other_side, Given::Anywhere);
            assert_eq!(schema["allOf"][0]["required"], required);
        }
    }

    #[test]
    fn one_part_says_what_another_requires() {
        let mut schema = json!({
            "$defs": {
                "a/Base": { "properties": { "id": { "allOf": [{ "$ref": "#/$defs/Id" }] }, "name": {} } },
                "Id": { "$ref": "#/$defs/Given" },
                "Given": { "readOnly": true },
                "Demands": { "required": ["id", "name"] },
                "Whole": { "allOf": [{ "$ref": "#/$defs/a~1Base" }, { "$ref": "#/$defs/Demands" }], "required": ["id"] },
                "Other": { "required": ["id"], "properties": { "id": {} } },
                "Circle": { "$ref": "#/$defs/Circle", "required": ["id"] },
            },
            "properties": {
                "whole": { "$ref": "#/$defs/Whole" },
                "other": { "$ref": "#/$defs/Demands" },
                "both": {
                    "allOf": [{ "$ref": "#/$defs/Demands" }, { "$ref": "#/$defs/Whole" }],
                    "properties": { "name": { "readOnly": true } },
                },
            },
            "default": { "required": ["id"], "properties": { "id": { "readOnly": true } } },
        });
        demand_less(&mut schema, "readOnly", Given::Anywhere);
        let required = |name: &str| schema["$defs"][name]["required"].clone();
        assert_eq!(required("Demands"), json!(["id", "name"]), "elsewhere it means the same");
        assert_eq!(required("Whole"), json!([]));
        assert_eq!(required("Other"), json!(["id"]));
        assert_eq!(required("Circle"), json!(["id"]));
        assert_eq!(schema["default"]["required"], json!(["id"]), "a value is no schema");
        let validator = Validator::new(&schema);
        assert!(validator.problems().is_empty());
        for (name, value, expected) in [
            ("whole", json!({ "name": 1 }), true),
            ("whole", json!({ "id": 1 }), false),
            ("other", json!({ "name": 1, "id": 1 }), true),
            ("other", json!({ "name": 1 }), false),
            ("both", json!({}), true),
        ] {
            assert_eq!(validator.check(&json!({ name: value })), expected, "{name}: {value}");
        }
    }

    #[test]
    fn the_work_is_bounded() {
        let names = |n: usize| format!("D{n}");
        let link = |n: usize| {
            let next = json!({ "$ref": format!("#/$defs/{}", names(n + 1)) });
            (
                names(n),
                json!({ "allOf": [next, next], "required": ["id"], "properties": { "id": { "readOnly": true } } }),
            )
        };
        let mut schema = json!({ "$defs": (0..4000).map(link).collect::<serde_json::Map<_, _>>() });
        demand_less(&mut schema, "readOnly", Given::Anywhere);
        assert_eq!(schema["$defs"]["D0"]["required"], json!([]));
        assert_eq!(schema["$defs"]["D3999"]["required"], json!([]));
    }
    /// A long list in one part is not read anew for each schema that has the part: that took minutes.
    #[test]
    fn a_long_list_may_be_in_many_schemas() {
        const NAMES: usize = 20_000;
        let names: Vec<String> = (0..NAMES).map(|number| format!("n{number}")).collect();
        let user = |name: &String| (name.clone(), json!({ "$ref": "#/$defs/Long" }));
        let mut schema = json!({
            "$defs": { "Long": { "required": names, "properties": { "n0": { "readOnly": true } } } },
            "properties": names.iter().map(user).collect::<serde_json::Map<_, _>>(),
        });
        let start = Instant::now();
        demand_less(&mut schema, "readOnly", Given::Anywhere);
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        assert_eq!(schema["$defs"]["Long"]["required"].as_array().unwrap().len(), NAMES - 1);
    }
}
