//! What another library sees in a document, we see too: `openapiv3`, which reads OpenAPI 3.0.
//!
//! Operations by method and path, their parameters by name, place and whether they are required, and the statuses of
//! their answers. Where the two differ on purpose, [`EXPECTED`] says why.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use openapiv3::{OpenAPI, Operation, Parameter, ReferenceOr};
use ops_runtime::openapi::{ReadOptions, load};
use ops_runtime::source::FileSource;
use ops_runtime::{Api, HttpBinding, OperationSpec, ParameterLocation, StatusRange};
use ops_tests::corpus;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Where the two differ: what it looks like, and the reason.
const EXPECTED: &[(Difference, &str)] = &[
    (
        Difference::ReservedHeader,
        "the standard says to ignore parameters for `Accept`, `Content-Type`, `Authorization`",
    ),
    (Difference::PathParameterOptional, "a path parameter is required, whether or not the document says so"),
    (Difference::NotInPath, "a parameter that the path has no place for cannot be sent"),
    (Difference::Undeclared, "a place in the path that no parameter fills becomes one, so that the path can be made"),
    (Difference::LostReference, "the other library does not say where a reference in the document leads"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Difference {
    ReservedHeader,
    PathParameterOptional,
    NotInPath,
    Undeclared,
    LostReference,
}

/// An operation, in the words that the two have in common.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// Name and place, and whether it is required.
    parameters: BTreeMap<(String, &'static str), bool>,
    statuses: BTreeSet<String>,
}

type Operations = BTreeMap<(String, String), Seen>;

/// The target of a reference within the document, as long as it is of this kind.
fn resolved<T: DeserializeOwned + Clone>(item: &ReferenceOr<T>, document: &Value) -> Option<T> {
    let mut item = item.clone();
    for _ in 0..16 {
        match item {
            ReferenceOr::Item(item) => return Some(item),
            ReferenceOr::Reference { reference } => {
                let target = document.pointer(reference.strip_prefix('#')?)?;
                item = serde_json::from_value(target.clone()).ok()?;
            }
        }
    }
    None
}

fn theirs(api: &OpenAPI, document: &Value, found: &mut BTreeSet<Difference>) -> Operations {
    let mut operations = Operations::new();
    for (path, item) in &api.paths.paths {
        let Some(item) = resolved(item, document) else {
            found.insert(Difference::LostReference);
            continue;
        };
        for (method, operation) in item.iter() {
            // A fragment tells operations apart in the document, and is no part of a request.
            let sent = path.split('#').next().unwrap().to_owned();
            let mut seen = Seen::default();
            for parameter in item.parameters.iter().chain(&operation.parameters) {
                match resolved::<Parameter>(parameter, document) {
                    Some(parameter) => add(&mut seen, &parameter, &sent, found),
                    None => _ = found.insert(Difference::LostReference),
                }
            }
            statuses(&mut seen, operation, document, found);
            operations.insert((method.to_uppercase(), sent), seen);
        }
    }
    operations
}

fn add(seen: &mut Seen, parameter: &Parameter, path: &str, found: &mut BTreeSet<Difference>) {
    let data = parameter.parameter_data_ref();
    let (place, required) = match parameter {
        Parameter::Query { .. } => ("query", data.required),
        Parameter::Cookie { .. } => ("cookie", data.required),
        Parameter::Header { .. } => {
            if ["accept", "content-type", "authorization"].contains(&data.name.to_ascii_lowercase().as_str()) {
                found.insert(Difference::ReservedHeader);
                return;
            }
            ("header", data.required)
        }
        Parameter::Path { .. } => {
            if !path.contains(&format!("{{{}}}", data.name)) {
                found.insert(Difference::NotInPath);
                return;
            }
            if !data.required {
                found.insert(Difference::PathParameterOptional);
            }
            ("path", true)
        }
    };
    seen.parameters.insert((data.name.clone(), place), required);
}

fn statuses(seen: &mut Seen, operation: &Operation, document: &Value, found: &mut BTreeSet<Difference>) {
    let answers = &operation.responses;
    let others = answers.responses.iter().map(|(status, answer)| (status.to_string(), answer));
    for (name, answer) in answers.default.iter().map(|answer| ("default".to_owned(), answer)).chain(others) {
        if resolved(answer, document).is_some() {
            seen.statuses.insert(name);
        } else {
            found.insert(Difference::LostReference);
        }
    }
}

fn ours(api: &Api, theirs: &Operations, found: &mut BTreeSet<Difference>) -> Operations {
    let mut operations = Operations::new();
    for operation in &api.operations {
        let http = operation.http().unwrap();
        let key = (http.method.to_string(), http.path.to_string());
        let seen = seen(operation, http, theirs.get(&key), found);
        operations.insert(key, seen);
    }
    operations
}

fn seen(operation: &OperationSpec, http: &HttpBinding, other: Option<&Seen>, found: &mut BTreeSet<Difference>) -> Seen {
    let input = serde_json::to_value(&operation.input).unwrap();
    let is_required = |name: &str| input["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let mut seen = Seen::default();
    for parameter in http.parameters.as_ref() {
        let place = match parameter.location {
            ParameterLocation::Path => "path",
            ParameterLocation::Query => "query",
            ParameterLocation::Header => "header",
            ParameterLocation::Cookie => "cookie",
            other => panic!("{other:?} is not of 3.0"),
        };
        let key = (parameter.name.to_string(), place);
        if place == "path" && other.is_some_and(|other| !other.parameters.contains_key(&key)) {
            found.insert(Difference::Undeclared);
            continue;
        }
        seen.parameters.insert(key, is_required(&parameter.property));
    }
    seen.statuses = http
        .responses
        .iter()
        .map(|answer| match answer.status {
            StatusRange::Exact(status) => status.to_string(),
            StatusRange::Class(class) => format!("{class}XX"),
            _ => "default".to_owned(),
        })
        .collect();
    seen
}

#[test]
fn both_see_the_same() {
    // The other library needs more than a test's stack in a debug build.
    std::thread::Builder::new().stack_size(256 << 20).spawn(compare).unwrap().join().unwrap();
}

fn compare() {
    let files = corpus::files(&corpus::directory("OPS_SPECS", "openapi"), &["json", "yaml", "yml"]);
    let (mut read, mut operations, mut parameters, mut statuses) = (0, 0, 0, 0);
    let mut found = BTreeSet::new();
    let mut wrong = Vec::new();
    for file in &files {
        let Ok(document) = corpus::try_parse(file) else { continue };
        if !document["openapi"].as_str().is_some_and(|version| version.starts_with("3.0")) {
            continue;
        }
        let name = file.file_name().unwrap().to_string_lossy();
        let reference: OpenAPI = match serde_json::from_value(document.clone()) {
            Ok(reference) => reference,
            Err(error) => {
                println!("{name}: not read by the other library: {error}");
                continue;
            }
        };
        let (api, _) = load(&file.display().to_string(), &FileSource::new(), &ReadOptions::new()).unwrap();
        let theirs = theirs(&reference, &document, &mut found);
        let ours = ours(&api, &theirs, &mut found);
        read += 1;
        operations += theirs.len();
        parameters += theirs.values().map(|seen| seen.parameters.len()).sum::<usize>();
        statuses += theirs.values().map(|seen| seen.statuses.len()).sum::<usize>();
        for key in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
            let (theirs, ours) = (theirs.get(key), ours.get(key));
            if theirs != ours {
                wrong.push(format!("{name}: {} {}\n  theirs {theirs:?}\n  ours   {ours:?}", key.0, key.1));
            }
        }
    }
    println!("{read} documents: {operations} operations, {parameters} parameters, {statuses} statuses");
    for difference in found {
        let (_, reason) = EXPECTED.iter().find(|(expected, _)| *expected == difference).unwrap();
        println!("{difference:?}: {reason}");
    }
    assert!(read > 0 && operations > 0, "nothing was compared");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
