//! Mutations of documents that know what they break.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::Random;
use crate::reach::{Operation, Reach, Reached, below, escaped};

/// What the kinds of mutation are called, in the order of their numbers.
pub(crate) const KINDS: &[&str] = &[
    "an optional property is new",
    "a required property is new",
    "a property is gone",
    "a property is required",
    "a property is not required",
    "text becomes a number",
    "an integer becomes a number",
    "null comes in",
    "a value is new",
    "a value is gone",
    "a limit is new",
    "a format is new",
    "words change",
    "an operation is gone",
    "an operation is new",
    "an operation is renamed",
    "an operation is deprecated",
    "a path changes",
    "an optional parameter is new",
    "a required parameter is new",
    "a parameter is gone",
    "a parameter is required",
    "a parameter moves",
    "a body is required",
    "a content type of a body is new",
    "a content type of a body is gone",
    "an error is new",
    "a content type of a response is new",
    "a success is another",
    "credentials are needed",
    "no credentials are needed",
    "a parameter becomes another kind",
];

/// The operations that a change should be told of, and those that it breaks.
#[derive(Default, Debug, Clone)]
pub(crate) struct Expected {
    pub(crate) breaking: BTreeSet<String>,
    pub(crate) all: BTreeSet<String>,
}

impl Expected {
    pub(crate) fn and(&self, other: &Self) -> Self {
        let both = |a: &BTreeSet<String>, b: &BTreeSet<String>| a.union(b).cloned().collect();
        Self { breaking: both(&self.breaking, &other.breaking), all: both(&self.all, &other.all) }
    }

    fn of(reached: &Reached, request_breaks: bool, response_breaks: bool) -> Self {
        let mut expected = Self::default();
        for (ids, breaks) in [(&reached.requests, request_breaks), (&reached.responses, response_breaks)] {
            expected.all.extend(ids.iter().cloned());
            if breaks {
                expected.breaking.extend(ids.iter().cloned());
            }
        }
        expected
    }

    fn operation(id: &str, breaks: bool) -> Self {
        let ids = BTreeSet::from([id.to_owned()]);
        Self { breaking: if breaks { ids.clone() } else { BTreeSet::new() }, all: ids }
    }
}

/// A step of a mutation: the value at a place; `None` removes it.
type Step = (String, Option<Value>);

pub(crate) struct Mutation {
    pub(crate) at: String,
    steps: Vec<Step>,
    pub(crate) expected: Expected,
}

impl Mutation {
    pub(crate) fn apply(&self, document: &mut Value) {
        for (at, value) in &self.steps {
            set(document, at, value.clone());
        }
    }

    /// True if neither mutation is at a place of the other.
    pub(crate) fn is_apart(&self, other: &Self) -> bool {
        let meets = |a: &str, b: &str| a.starts_with(b) || b.starts_with(a);
        !self.steps.iter().any(|(a, _)| other.steps.iter().any(|(b, _)| meets(a, b)))
    }
}

fn set(document: &mut Value, at: &str, value: Option<Value>) {
    let (parent, name) = at.rsplit_once('/').unwrap();
    let name = name.replace("~1", "/").replace("~0", "~");
    if document.pointer(parent).is_none() {
        set(document, parent, Some(json!({})));
    }
    match (document.pointer_mut(parent).unwrap(), value) {
        (Value::Object(node), Some(value)) => drop(node.insert(name, value)),
        (Value::Object(node), None) => drop(node.shift_remove(&name)),
        (Value::Array(items), Some(value)) => match name.parse::<usize>() {
            Ok(at) if at < items.len() => items[at] = value,
            _ => items.push(value),
        },
        (Value::Array(items), None) => drop(items.remove(name.parse().unwrap())),
        _ => {}
    }
}

/// A mutation of a kind, at a place that is chosen by chance; `None` if the document has no place for it.
pub(crate) fn find(kind: usize, document: &Value, reach: &Reach, random: &mut Random) -> Option<Mutation> {
    let mut found = match KINDS[kind] {
        name if kind <= 12 => of_schemas(name, document, reach),
        name => of_operations(name, document, reach),
    };
    found.retain(|mutation| !mutation.expected.all.contains("stream"));
    if found.is_empty() { None } else { Some(found.swap_remove(random.below(found.len()))) }
}

fn of_schemas(kind: &str, document: &Value, reach: &Reach) -> Vec<Mutation> {
    let found = RefCell::new(Vec::new());
    for (at, reached) in &reach.schemas {
        let Some(schema) = document.pointer(at).filter(|schema| schema.get("$ref").is_none()) else { continue };
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { continue };
        let names = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let required = |name: &str| names.iter().any(|known| known == name);
        let with = |name: &str| names.iter().cloned().chain([name.into()]).collect::<Value>();
        let without = |name: &str| names.iter().filter(|known| *known != name).cloned().collect::<Value>();
        let add = |steps: Vec<Step>, breaks: (bool, bool)| {
            let expected = Expected::of(reached, breaks.0, breaks.1);
            found.borrow_mut().push(Mutation { at: at.clone(), steps, expected });
        };
        let new = |name: &str| format!("{at}/properties/{name}");
        match kind {
            // A type that keeps other properties of a kind takes it as one of them.
            "an optional property is new" if !schema.get("additionalProperties").is_some_and(Value::is_object) => {
                add(vec![(new("zzNew"), Some(json!({ "type": "string" })))], (false, false));
                continue;
            }
            "a required property is new" if !schema.get("additionalProperties").is_some_and(Value::is_object) => {
                let steps = vec![
                    (new("zzNew"), Some(json!({ "type": "string" }))),
                    (format!("{at}/required"), Some(with("zzNew"))),
                ];
                add(steps, (true, false));
                continue;
            }
            _ => {}
        }
        // What is combined may be said by others as well; what is read or written only is told apart by the reader.
        let is_combined = reach.combined.contains(at) || schema.get("discriminator").is_some();
        for (name, property) in properties {
            let here = format!("{at}/properties/{}", escaped(name));
            let has = |key: &str| property.get(key).is_some();
            if has("$ref")
                || has("readOnly")
                || has("writeOnly")
                || has("allOf")
                || name == "stream"
                || name == "event"
                || name == "data"
            {
                continue;
            }
            let typed = property.get("type").and_then(Value::as_str).unwrap_or_default();
            let is_plain =
                !["enum", "const", "format", "anyOf", "oneOf", "x-nullable", "nullable"].iter().any(|key| has(key));
            let is_scalar = ["string", "integer", "number", "boolean"].contains(&typed) && is_plain;
            let values = property.get("enum").and_then(Value::as_array);
            let of_texts =
                values.filter(|values| typed == "string" && values.len() > 2 && values.iter().all(Value::is_string));
            let steps = |key: &str, value: Value| vec![(format!("{here}/{key}"), Some(value))];
            match kind {
                "a property is gone" if is_scalar && !is_combined => {
                    let mut steps = vec![(here.clone(), None)];
                    if required(name) {
                        steps.push((format!("{at}/required"), Some(without(name))));
                    }
                    add(steps, (true, required(name)));
                }
                "a property is required" if !required(name) && !is_combined => {
                    add(vec![(format!("{at}/required"), Some(with(name)))], (true, false));
                }
                "a property is not required" if required(name) && !is_combined => {
                    add(vec![(format!("{at}/required"), Some(without(name)))], (false, true));
                }
                "text becomes a number"
                    if is_scalar
                        && typed == "string"
                        && !is_combined
                        && !has("contentEncoding")
                        && !has("contentMediaType") =>
                {
                    add(steps("type", "integer".into()), (true, true));
                }
                "an integer becomes a number" if is_scalar && typed == "integer" && !is_combined => {
                    add(steps("type", "number".into()), (false, true));
                }
                "null comes in" if is_scalar && !is_combined => {
                    let old = document["openapi"].as_str().is_some_and(|version| version.starts_with("3.0"));
                    let steps = match document.get("swagger") {
                        Some(_) => steps("x-nullable", true.into()),
                        None if old => steps("nullable", true.into()),
                        None => steps("type", json!([typed, "null"])),
                    };
                    add(steps, (false, true));
                }
                "a value is new" if of_texts.is_some() && !is_combined => {
                    let values = of_texts.unwrap().iter().cloned().chain(["zz new".into()]).collect();
                    add(steps("enum", values), (false, false));
                }
                "a value is gone" if of_texts.is_some() && !is_combined && !has("nullable") => {
                    let mut values = of_texts.unwrap().clone();
                    values.remove(0);
                    // The same value may stand there twice.
                    if !values.contains(&of_texts.unwrap()[0]) {
                        add(steps("enum", values.into()), (true, false));
                    }
                }
                "a limit is new" if is_scalar && typed == "string" && !has("maxLength") && !is_combined => {
                    add(steps("maxLength", 7.into()), (true, false));
                }
                "a limit is new" if is_scalar && typed == "integer" && !has("maximum") && !is_combined => {
                    add(steps("maximum", 7.into()), (true, false));
                }
                "a format is new" if is_scalar && typed == "string" && !is_combined && !has("contentEncoding") => {
                    add(steps("format", "date".into()), (true, false));
                }
                "words change" => {
                    found.borrow_mut().push(Mutation {
                        at: here.clone(),
                        steps: steps("description", "Other words".into()),
                        expected: Expected::default(),
                    });
                }
                _ => {}
            }
        }
    }
    found.into_inner()
}

fn of_operations(kind: &str, document: &Value, reach: &Reach) -> Vec<Mutation> {
    let is_swagger = document.get("swagger").is_some();
    let found = RefCell::new(Vec::new());
    for operation in reach.operations.iter().filter(|operation| !operation.has_stream) {
        let Operation { id, at, parameters, .. } = operation;
        let node = document.pointer(at).unwrap();
        let add = |steps: Vec<Step>, breaks: bool| {
            found.borrow_mut().push(Mutation { at: at.clone(), steps, expected: Expected::operation(id, breaks) });
        };
        let at_of = |name: &str| format!("{at}/{name}");
        let own = node.get("operationId").and_then(Value::as_str);
        // The name of another could depend on it.
        let is_named = own.is_some_and(|own| *id == format!("x.{own}"));
        let typed = |name: &str, location: &str, required: bool| {
            let mut parameter = json!({ "name": name, "in": location, "required": required });
            let kind = json!({ "type": "string" });
            parameter.as_object_mut().unwrap().extend(if is_swagger {
                kind.as_object().unwrap().clone()
            } else {
                json!({ "schema": kind }).as_object().unwrap().clone()
            });
            Some(parameter)
        };
        let listed =
            || if node.get("parameters").is_some() { Vec::new() } else { vec![(at_of("parameters"), Some(json!([])))] };
        let success = below(document, &at_of("responses")).into_iter().find(|at| at.ends_with("/200"));
        // One that several operations share would change for all of them.
        let owned = |place: &str| document.pointer(place).is_none_or(|node| node.get("$ref").is_none());
        match kind {
            "an operation is gone" if is_named => add(vec![(at.clone(), None)], true),
            "an operation is new" if found.borrow().is_empty() => {
                let new = json!({ "operationId": "zzNew", "responses": { "204": { "description": "" } } });
                found.borrow_mut().push(Mutation {
                    at: "/paths/~1zz-new".to_owned(),
                    steps: vec![("/paths/~1zz-new".to_owned(), Some(json!({ "get": new })))],
                    expected: Expected::operation("x.zzNew", false),
                });
            }
            "an operation is renamed" if is_named => add(vec![(at_of("operationId"), Some("zzRenamed".into()))], true),
            "an operation is deprecated" if node.get("deprecated").is_none() => {
                add(vec![(at_of("deprecated"), Some(true.into()))], false);
            }
            "a path changes" if is_named => {
                let (path, method) = at.rsplit_once('/').unwrap();
                let mut item = json!({ method: node });
                if let Some(shared) = document.pointer(path).unwrap().get("parameters") {
                    item["parameters"] = shared.clone();
                }
                if let Some(servers) = document.pointer(path).unwrap().get("servers") {
                    item["servers"] = servers.clone();
                }
                for key in ["summary", "description"] {
                    if let Some(text) = document.pointer(path).unwrap().get(key) {
                        item[key] = text.clone();
                    }
                }
                add(vec![(at.clone(), None), (format!("{path}~1zz-moved"), Some(item))], true);
            }
            "an optional parameter is new" | "a required parameter is new" => {
                let required = kind == "a required parameter is new";
                let mut steps = listed();
                steps.push((at_of("parameters/-"), typed("zzNew", "query", required)));
                add(steps, required);
            }
            "a parameter is gone"
            | "a parameter is required"
            | "a parameter moves"
            | "a parameter becomes another kind" => {
                for place in parameters.iter().filter(|place| place.starts_with(at.as_str())) {
                    let parameter = document.pointer(place).unwrap();
                    let name = parameter["name"].as_str().unwrap_or_default();
                    // A parameter of that name may take its place.
                    let names = parameters.iter().filter(|other| document.pointer(other).unwrap()["name"] == name);
                    if parameter["in"] != "query" || names.count() > 1 || name.is_empty() || name == "stream" {
                        continue;
                    }
                    let schema = if is_swagger { parameter } else { &parameter["schema"] };
                    let plain =
                        schema["type"] == "string" && schema.get("enum").is_none() && schema.get("format").is_none();
                    match kind {
                        "a parameter is gone" => add(vec![(place.clone(), None)], true),
                        "a parameter is required" if parameter["required"] != true => {
                            add(vec![(format!("{place}/required"), Some(true.into()))], true);
                        }
                        "a parameter moves" if plain => {
                            let (name, required) = (name.to_owned(), parameter["required"] == true);
                            if !["accept", "authorization", "content-type"].contains(&name.to_lowercase().as_str())
                                && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
                            {
                                add(vec![(place.clone(), typed(&name, "header", required))], true);
                            }
                        }
                        "a parameter becomes another kind" if plain && schema.get("nullable").is_none() => {
                            let inside = if is_swagger { "type" } else { "schema/type" };
                            add(vec![(format!("{place}/{inside}"), Some("boolean".into()))], true);
                        }
                        _ => {}
                    }
                }
            }
            "a body is required" | "a content type of a body is new" | "a content type of a body is gone"
                if !is_swagger =>
            {
                let place = at_of("requestBody");
                let (Some(body), true) = (node.get("requestBody"), owned(&place)) else { continue };
                let contents = below(document, &format!("{place}/content"));
                match kind {
                    "a body is required" if body["required"] != true && !contents.is_empty() => {
                        add(vec![(format!("{place}/required"), Some(true.into()))], true);
                    }
                    "a content type of a body is new" if !contents.is_empty() => {
                        let new = contents.first().and_then(|at| document.pointer(at)).cloned();
                        add(vec![(format!("{place}/content/application~1zz+json"), new)], false);
                    }
                    "a content type of a body is gone" if contents.len() > 1 => {
                        add(vec![(contents.last().unwrap().clone(), None)], true);
                    }
                    _ => {}
                }
            }
            "an error is new" if node["responses"].get("418").is_none() && success.is_some() => {
                add(vec![(at_of("responses/418"), Some(json!({ "description": "A teapot" })))], false);
            }
            "a content type of a response is new" | "a success is another" if !is_swagger => {
                let Some(place) = success.filter(|place| owned(place)) else { continue };
                let statuses = below(document, &at_of("responses"));
                let others = statuses.iter().filter(|at| at.rsplit('/').next().unwrap().starts_with('2')).count();
                let contents = below(document, &format!("{place}/content"));
                if kind == "a success is another" && others == 1 {
                    let answer = document.pointer(&place).cloned();
                    add(vec![(place, None), (at_of("responses/202"), answer)], true);
                } else if kind != "a success is another" && contents.len() == 1 {
                    let new = json!({ "schema": { "type": "string" } });
                    add(vec![(format!("{place}/content/text~1zz"), Some(new))], false);
                }
            }
            "credentials are needed" => {
                let schemes = if is_swagger { "/securityDefinitions" } else { "/components/securitySchemes" };
                let scheme = json!({ "type": "apiKey", "in": "header", "name": "X-Zz" });
                let steps = vec![
                    (format!("{schemes}/zzKey"), Some(scheme)),
                    (at_of("security"), Some(json!([{ "zzKey": [] }]))),
                ];
                add(steps, true);
            }
            "no credentials are needed" => {
                let schemes = if is_swagger { "/securityDefinitions" } else { "/components/securitySchemes" };
                let needed = node.get("security").or(document.get("security")).and_then(Value::as_array);
                let is_known = |way: &Value| {
                    let names = way.as_object().unwrap();
                    !names.is_empty()
                        && names.keys().all(|name| document.pointer(&format!("{schemes}/{}", escaped(name))).is_some())
                };
                if needed.is_some_and(|ways| !ways.is_empty() && ways.iter().all(is_known)) {
                    add(vec![(at_of("security"), Some(json!([])))], false);
                }
            }
            _ => {}
        }
    }
    found.into_inner()
}
