//! The document that comes out of a server, compared with the one that went in.

use std::collections::{BTreeMap, BTreeSet};

use ops_runtime::binding::Binding;
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::{Definitions, OperationSpec, Schema, pointer};
use serde_json::Value;

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
    for before in specs {
        let found = after.remove(before.id.as_ref());
        let faults = match found {
            Some(found) => differences(before, found),
            None => vec![fault(before, "the operation", "there", "not there")],
        };
        if faults.is_empty() {
            continue;
        }
        report.differing += 1;
        report.faults.extend(faults);
    }
    report.faults.extend(definitions(specs, &api.definitions));
    report.faults.extend(after.into_values().map(|spec| fault(spec, "the operation", "not there", "there")));
    Ok(report)
}

fn fault(spec: &OperationSpec, place: &str, before: impl ToString, after: impl ToString) -> Fault {
    let operation = spec.name().to_owned();
    Fault { operation, place: place.to_owned(), before: before.to_string(), after: after.to_string() }
}

/// What differs between two operations, apart from where their servers are.
fn differences(before: &OperationSpec, after: &OperationSpec) -> Vec<Fault> {
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
        if let Some((place, one, other)) = difference(&value(one), &value(other)) {
            faults.push(fault(before, &format!("a schema at {place}"), one, other));
        }
    }
    faults
}

/// The definitions that operations reach and that differ, or are not there.
fn definitions(specs: &[OperationSpec], after: &Definitions) -> Vec<Fault> {
    let Some(before) = specs.first().map(|spec| &spec.definitions) else { return Vec::new() };
    let mut queue = Vec::new();
    for spec in specs {
        [&spec.input, &spec.output].iter().for_each(|schema| references(&value(schema), &mut queue));
        spec.errors.iter().for_each(|error| references(&value(&error.schema), &mut queue));
    }
    let (mut seen, mut faults) = (BTreeSet::new(), Vec::new());
    while let Some(name) = queue.pop() {
        let Some(one) = before.get(&name).filter(|_| seen.insert(name.clone())).map(|found| value(&found.schema))
        else {
            continue;
        };
        references(&one, &mut queue);
        let other = after.get(&name).map_or(Value::String("nothing".to_owned()), |found| value(&found.schema));
        if let Some((place, before, after)) = difference(&one, &other) {
            faults.push(Fault { operation: format!("definition {name}"), place, before, after });
        }
    }
    faults
}

fn value(schema: &Schema) -> Value {
    schema.to_value().map_or(Value::Null, std::borrow::Cow::into_owned)
}

/// The names of the definitions that a schema refers to.
fn references(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(members) => members.iter().for_each(|(key, value)| match value {
            Value::String(target) if key == "$ref" => {
                names.extend(pointer::definition(target).map(std::borrow::Cow::into_owned))
            }
            value => references(value, names),
        }),
        Value::Array(items) => items.iter().for_each(|item| references(item, names)),
        _ => {}
    }
}

/// The first place where two values differ, and what is there.
fn difference(before: &Value, after: &Value) -> Option<(String, String, String)> {
    if before == after {
        return None;
    }
    let at = |name: &str, found: Option<(String, String, String)>| {
        found.map(|(place, before, after)| (format!("/{}{place}", pointer::escaped(name)), before, after))
    };
    match (before, after) {
        (Value::Object(one), Value::Object(other))
            if one.len() == other.len() && one.keys().all(|key| other.contains_key(key)) =>
        {
            one.iter().find_map(|(key, value)| at(key, difference(value, other.get(key)?)))
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            one.iter().zip(other).enumerate().find_map(|(n, (one, other))| at(&n.to_string(), difference(one, other)))
        }
        _ => Some((String::new(), before.to_string(), after.to_string())),
    }
}

/// A binding as text, without the server.
fn binding(spec: &OperationSpec) -> String {
    let Binding::Http(http) = &spec.binding else { return format!("{:?}", spec.binding) };
    let mut http = http.clone();
    (http.server, http.server_variables) = (None, Vec::new().into());
    format!("{http:?}")
}
