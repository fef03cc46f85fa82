//! The document that comes out of a server, compared with the one that went in.

use std::collections::{BTreeMap, BTreeSet};

use ops_runtime::binding::Binding;
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::{Definitions, OperationSpec, Schema, pointer};
use serde_json::{Value, json};

/// What became of a document on its way through a server.
#[derive(Debug, Default)]
pub struct Report {
    /// How many operations there are.
    pub operations: usize,
    /// How many of them differ.
    pub differing: usize,
    /// What differs.
    pub faults: Vec<Fault>,
}

/// A difference between an operation that went in and what came out.
#[derive(Debug)]
pub struct Fault {
    /// The name of the operation.
    pub operation: String,
    /// What differs.
    pub place: String,
    /// What went in.
    pub before: String,
    /// What came out.
    pub after: String,
}

/// Compares the operations of a document with those of the document that a server of them gives.
///
/// # Errors
/// If the document that came out is none.
pub fn compare(specs: &[OperationSpec], given: &Value, namespace: &str) -> Result<Report, String> {
    let (api, _) =
        openapi::read(given, &ReadOptions::new().with_namespace(namespace)).map_err(|error| error.to_string())?;
    let mut report = Report { operations: specs.len(), ..Report::default() };
    let mut after: BTreeMap<&str, &OperationSpec> = BTreeMap::new();
    for spec in &api.operations {
        after.insert(spec.id.as_ref(), spec);
    }
    let mut pairs = Pairs::new(specs.first().map(|spec| spec.definitions.clone()).unwrap_or_default());
    for before in specs {
        let found = after.remove(before.id.as_ref());
        let faults = match found {
            Some(found) => differences(before, found, &mut pairs),
            None => vec![fault(before, "the operation", "there", "not there")],
        };
        if faults.is_empty() {
            continue;
        }
        report.differing += 1;
        report.faults.extend(faults);
    }
    report.faults.extend(definitions(&mut pairs, &api.definitions));
    report.faults.extend(after.into_values().map(|spec| fault(spec, "the operation", "not there", "there")));
    Ok(report)
}

fn fault(spec: &OperationSpec, place: &str, before: impl ToString, after: impl ToString) -> Fault {
    let operation = spec.name().to_owned();
    Fault { operation, place: place.to_owned(), before: before.to_string(), after: after.to_string() }
}

/// What differs between two operations, apart from where their servers are.
fn differences(before: &OperationSpec, after: &OperationSpec, pairs: &mut Pairs) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut tell = |place: &str, one: String, other: String| {
        if one != other {
            faults.push(fault(before, place, one, other));
        }
    };
    tell("the kind", format!("{:?}", before.kind), format!("{:?}", after.kind));
    tell("what it may change", before.may_change().to_string(), after.may_change().to_string());
    tell("the version", before.version.to_string(), after.version.to_string());
    // Without a title, the summary is made of the description.
    let title = after.title.as_ref().filter(|_| before.title.is_some());
    tell("the title", format!("{:?}", before.title.as_ref()), format!("{title:?}"));
    tell("the description", before.description.to_string(), after.description.to_string());
    tell("the tags", format!("{:?}", before.tags), format!("{:?}", after.tags));
    tell("deprecated", before.deprecated.to_string(), after.deprecated.to_string());
    let errors = |spec: &OperationSpec| {
        let all =
            spec.errors.iter().map(|error| format!("{} {:?} {:?}", error.code, error.http_status, error.description));
        all.collect::<Vec<_>>().join("\n")
    };
    tell("the errors", errors(before), errors(after));
    tell("the binding", binding(before), binding(after));
    let errors = |spec: &OperationSpec| spec.errors.iter().map(|error| error.schema.clone()).collect::<Vec<_>>();
    let all = |spec: &OperationSpec| [vec![spec.input.clone(), spec.output.clone()], errors(spec)].concat();
    for (one, other) in all(before).iter().zip(&all(after)) {
        if let Some((place, one, other)) = difference(&published(&value(one)), &published(&value(other)), pairs) {
            faults.push(fault(before, &format!("a schema at {place}"), one, other));
        }
    }
    faults
}

/// The definitions that differ, or are not there, of those that references lead to.
fn definitions(pairs: &mut Pairs, after: &Definitions) -> Vec<Fault> {
    let mut faults = Vec::new();
    while let Some((name, there)) = pairs.open.pop() {
        let Some(one) = pairs.before.get(&name).map(|found| published(&value(&found.schema))) else { continue };
        let other = after.get(&there);
        let other = other.map_or(Value::String("nothing".to_owned()), |found| published(&value(&found.schema)));
        if let Some((place, before, after)) = difference(&one, &other, pairs) {
            faults.push(Fault { operation: format!("definition {name}"), place, before, after });
        }
    }
    faults
}

/// Definitions with their names before and after: references to them are in the same places.
struct Pairs {
    before: Definitions,
    known: BTreeSet<(String, String)>,
    /// Those that are still to be compared.
    open: Vec<(String, String)>,
}

impl Pairs {
    fn new(before: Definitions) -> Self {
        Self { before, known: BTreeSet::new(), open: Vec::new() }
    }

    /// Notes the definitions that two references lead to. Gives false if one of them is no such reference, or if the definition
    /// cannot have the other name.
    fn meet(&mut self, one: &str, other: &str) -> bool {
        let (Some(own), Some(there)) = (pointer::definition(one), pointer::definition(other)) else { return false };
        let tail = |text: &str| text.splitn(4, '/').nth(3).map(str::to_owned);
        if tail(one) != tail(other) || !self.may_be(&own, &there) {
            return false;
        }
        let pair = (own.into_owned(), there.into_owned());
        if self.known.insert(pair.clone()) {
            self.open.push(pair);
        }
        true
    }

    /// True if a component may have this name for a definition: a number is at its end only if others have the same name.
    fn may_be(&self, own: &str, there: &str) -> bool {
        let plain = allowed(own);
        let is_shared = || self.before.as_slice().iter().filter(|other| allowed(&other.name) == plain).count() > 1;
        let is_number = |rest: &str| rest.strip_prefix('_').is_some_and(|number| number.parse::<u32>().is_ok());
        there.strip_prefix(&*plain).is_some_and(|rest| rest.is_empty() || is_number(rest) && is_shared())
    }
}

fn value(schema: &Schema) -> Value {
    schema.to_value().map_or(Value::Null, std::borrow::Cow::into_owned)
}

/// A schema as a document says it: a part of a multipart body of which any value is accepted says so by a list of all types,
/// without which it would be a file.
fn published(schema: &Value) -> Value {
    let types = json!(["array", "boolean", "null", "number", "object", "string"]);
    match schema {
        Value::Object(members) => {
            let members = members.iter().filter(|(key, value)| *key != "type" || **value != types);
            members.map(|(key, value)| (key.clone(), published(value))).collect()
        }
        Value::Array(items) => items.iter().map(published).collect(),
        _ => schema.clone(),
    }
}

/// The name of a component for that of a definition (OpenAPI 3.1, section 4.8.7).
fn allowed(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect()
}

/// The first place where two values differ, and what is there. References are the same if what they lead to is.
fn difference(before: &Value, after: &Value, pairs: &mut Pairs) -> Option<(String, String, String)> {
    let at = |name: &str, found: Option<(String, String, String)>| {
        found.map(|(place, before, after)| (format!("/{}{place}", pointer::escaped(name)), before, after))
    };
    let is_same = match (before, after) {
        (Value::Object(one), Value::Object(other))
            if one.len() == other.len() && one.keys().all(|key| other.contains_key(key)) =>
        {
            return one.iter().find_map(|(key, value)| at(key, difference(value, other.get(key)?, pairs)));
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut both = one.iter().zip(other).enumerate();
            return both.find_map(|(n, (one, other))| at(&n.to_string(), difference(one, other, pairs)));
        }
        (Value::String(one), Value::String(other)) if pointer::definition(one).is_some() => pairs.meet(one, other),
        (one, other) => one == other,
    };
    if is_same { None } else { Some((String::new(), before.to_string(), after.to_string())) }
}

/// A binding as text, without the server.
fn binding(spec: &OperationSpec) -> String {
    let Binding::Http(http) = &spec.binding else { return format!("{:?}", spec.binding) };
    let mut http = http.clone();
    (http.server, http.server_variables) = (None, Vec::new().into());
    format!("{http:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_document_cannot_say_is_said_otherwise() {
        let all = ["array", "boolean", "null", "number", "object", "string"];
        let schema = json!({ "anyOf": [{ "type": all }, { "type": &all[1..] }] });
        let said = json!({ "anyOf": [{}, { "type": &all[1..] }] });
        assert_eq!(published(&schema), said);
        assert_eq!(published(&said), said);
    }

    /// The faults between a document with two definitions and one where they have other names.
    fn faults(after: [&str; 2]) -> Vec<(String, String)> {
        let document = |names: [&str; 2]| {
            let [text, number] = names.map(|name| json!({ "$ref": format!("#/components/schemas/{name}") }));
            let number = json!({ "type": "array", "items": number });
            let output = json!({ "type": "object", "properties": { "text": text, "number": number } });
            let content = json!({ "application/json": { "schema": output } });
            let mut schemas = serde_json::Map::new();
            for (name, kind) in names.into_iter().zip(["string", "integer"]) {
                schemas.entry(name).or_insert_with(|| json!({ "type": kind }));
            }
            let get =
                json!({ "operationId": "get", "responses": { "200": { "description": "", "content": content } } });
            json!({
                "openapi": "3.1.0",
                "info": { "title": "t", "version": "1" },
                "paths": { "/": { "get": get } },
                "components": { "schemas": schemas },
            })
        };
        let (api, _) = openapi::read(&document(["Größe", "Gr__e"]), &ReadOptions::new().with_namespace("t")).unwrap();
        let report = compare(&api.operations, &document(after), "t").unwrap();
        report.faults.into_iter().map(|fault| (fault.operation, fault.place)).collect()
    }

    #[test]
    fn definitions_are_those_that_references_lead_to() {
        assert_eq!(faults(["Gr__e", "Gr__e_2"]), []);
        assert_eq!(faults(["Gr__e_2", "Gr__e"]), []);
        let number = ("definition Gr__e".to_owned(), "/type".to_owned());
        assert_eq!(faults(["Gr__e", "Gr__e"]), [number]);
        let text = ("get".to_owned(), "a schema at /properties/text/$ref".to_owned());
        assert_eq!(faults(["Size", "Gr__e"]), [text]);
    }
}
