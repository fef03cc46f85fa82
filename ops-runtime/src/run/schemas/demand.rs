//! What the sender of a value cannot give: of an input what is `readOnly`, of an output what is `writeOnly` (OpenAPI 3.0,
//! section 4.7.24.2).

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::parts::{Parts, address, each_schema, each_schema_mut};

/// Demands no property of a value that its sender cannot give.
///
/// One part of an `allOf` may say what another one requires, so a name is taken from the lists of all parts.
pub(super) fn demand_less(schema: &mut Value, other_side: &str) {
    let is_of_other_side = |part: &Value| part.get(other_side) == Some(&Value::Bool(true));
    let Some(mut parts) = Parts::of(schema, is_of_other_side) else { return };
    // The names that a schema need not require, by the address of the schema.
    let mut gone: HashMap<usize, HashSet<String>> = HashMap::new();
    each_schema(schema, &mut |schema| {
        let all = parts.all(schema);
        let required: HashSet<&str> = all.iter().flat_map(|part| required_of(part)).collect();
        let mut given: HashSet<&str> = HashSet::new();
        for properties in all.iter().filter_map(|part| part.get("properties")?.as_object()) {
            // By the shorter list.
            let names: Vec<(&str, &Value)> = match required.len() < properties.len() {
                true => required.iter().filter_map(|name| Some((*name, properties.get(*name)?))).collect(),
                false => properties.iter().map(|(name, property)| (name.as_str(), property)).collect(),
            };
            parts.spend(names.len());
            for (name, property) in names.into_iter().filter(|(name, _)| required.contains(name)) {
                if parts.all(property).into_iter().any(is_of_other_side) {
                    given.insert(name);
                }
            }
        }
        for part in all.iter().filter(|_| !given.is_empty()) {
            for name in required_of(part).filter(|name| given.contains(name)) {
                gone.entry(address(part)).or_default().insert(name.to_owned());
            }
        }
    });
    each_schema_mut(schema, &mut |schema| {
        let names = gone.get(&address(schema));
        if let (Some(names), Some(Value::Array(required))) = (names, schema.get_mut("required")) {
            required.retain(|name| name.as_str().is_none_or(|name| !names.contains(name)));
        }
    });
}

fn required_of(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_other_side_gives_is_not_demanded() {
        let schema = json!({
            "$defs": { "Id": { "type": "integer", "readOnly": true } },
            "allOf": [{
                "required": ["id", "made", "name", "secret"],
                "properties": {
                    "id": { "$ref": "#/$defs/Id" },
                    "made": { "readOnly": true },
                    "name": {},
                    "secret": { "writeOnly": true },
                },
            }],
        });
        for (other_side, required) in
            [("readOnly", json!(["name", "secret"])), ("writeOnly", json!(["id", "made", "name"]))]
        {
            let mut schema = schema.clone();
            demand_less(&mut schema, other_side);
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
            "properties": { "whole": { "$ref": "#/$defs/Whole" } },
            "default": { "required": ["id"], "properties": { "id": { "readOnly": true } } },
        });
        demand_less(&mut schema, "readOnly");
        let required = |name: &str| schema["$defs"][name]["required"].clone();
        assert_eq!(required("Demands"), json!(["name"]));
        assert_eq!(required("Whole"), json!([]));
        assert_eq!(required("Other"), json!(["id"]));
        assert_eq!(required("Circle"), json!(["id"]));
        assert_eq!(schema["default"]["required"], json!(["id"]), "a value is no schema");
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
        demand_less(&mut schema, "readOnly");
        assert_eq!(schema["$defs"]["D0"]["required"], json!([]));
        assert_eq!(schema["$defs"]["D3999"]["required"], json!([]));
    }
}
