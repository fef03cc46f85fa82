//! What another library sees in a document, we see too: `openapiv3`, which reads OpenAPI 3.0.
//!
//! Operations by method and path, as many as there are; their parameters by name, place and whether they are required;
//! the content types of their bodies, and whether a body is required; the statuses of their answers. Where the two differ
//! on purpose, [`EXPECTED`] says why; `openapiv3/differences.yaml` has one of each kind. Documents that the other library cannot
//! read are printed. They must be fewer than a tenth of the known documents.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use openapiv3::{OpenAPI, Operation, Parameter, ReferenceOr, RequestBody};
use ops_runtime::binding::{ParameterLocation, StatusRange};
use ops_runtime::openapi::FileSource;
use ops_runtime::openapi::{ReadOptions, load};
use ops_runtime::spec::{Api, OperationKind, OperationSpec};
use ops_tests::corpus;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Where the two differ: what it looks like, and the reason.
const EXPECTED: &[(Difference, &str)] = &[
    (
        Difference::ReservedHeader,
        "the standard says to ignore parameters for `Accept`, `Content-Type`, `Authorization`; others the connection sets",
    ),
    (Difference::PathParameterOptional, "a path parameter is required, whether or not the document says so"),
    (Difference::NotInPath, "a parameter that the path has no place for cannot be sent"),
    (Difference::Undeclared, "a place in the path that no parameter fills becomes one, so that the path can be made"),
    (Difference::NoContentType, "a key such as `examples` beside the content types of a body is none of them"),
    (Difference::Twin, "answers in JSON or in events are two operations here, which have the same parameters"),
    (Difference::LostReference, "the other library does not say where a reference in the document leads"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Difference {
    ReservedHeader,
    PathParameterOptional,
    NotInPath,
    Undeclared,
    NoContentType,
    Twin,
    LostReference,
}

/// How often the two differ on purpose.
type Found = BTreeMap<Difference, usize>;

fn count(found: &mut Found, difference: Difference) {
    *found.entry(difference).or_default() += 1;
}

/// An operation, in the words that the two have in common.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    /// Name and place, and whether it is required.
    parameters: BTreeMap<(String, &'static str), bool>,
    /// The content types, and whether there must be a body.
    body: Option<(BTreeSet<String>, bool)>,
    statuses: BTreeSet<String>,
}

/// By method and path; several, if only a fragment tells their paths apart.
type Operations = BTreeMap<(String, String), Vec<Seen>>;

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

fn theirs(api: &OpenAPI, document: &Value, found: &mut Found) -> Operations {
    let mut operations = Operations::new();
    for (path, item) in &api.paths.paths {
        let Some(item) = resolved(item, document) else {
            count(found, Difference::LostReference);
            continue;
        };
        for (method, operation) in item.iter() {
            // A fragment tells operations apart in the document, and is no part of a request.
            let sent = path.split('#').next().unwrap().to_owned();
            let mut seen = Seen::default();
            for parameter in item.parameters.iter().chain(&operation.parameters) {
                match resolved::<Parameter>(parameter, document) {
                    Some(parameter) => add(&mut seen, &parameter, &sent, found),
                    None => count(found, Difference::LostReference),
                }
            }
            let body = operation.request_body.as_ref().map(|body| resolved::<RequestBody>(body, document));
            match body {
                Some(Some(body)) => {
                    let types: BTreeSet<_> = body.content.keys().map(|kind| kind.to_ascii_lowercase()).collect();
                    let all = types.len();
                    let types: BTreeSet<_> = types.into_iter().filter(|kind| kind.contains('/')).collect();
                    (types.len()..all).for_each(|_| count(found, Difference::NoContentType));
                    seen.body = Some((types, body.required));
                }
                Some(None) => count(found, Difference::LostReference),
                None => {}
            }
            statuses(&mut seen, operation, document, found);
            operations.entry((method.to_uppercase(), sent)).or_default().push(seen);
        }
    }
    operations
}

fn add(seen: &mut Seen, parameter: &Parameter, path: &str, found: &mut Found) {
    let data = parameter.parameter_data_ref();
    let (place, required) = match parameter {
        Parameter::Query { .. } => ("query", data.required),
        Parameter::Cookie { .. } => ("cookie", data.required),
        Parameter::Header { .. } => {
            if RESERVED_HEADERS.contains(&data.name.to_ascii_lowercase().as_str()) {
                count(found, Difference::ReservedHeader);
                return;
            }
            ("header", data.required)
        }
        Parameter::Path { .. } => {
            if !path.contains(&format!("{{{}}}", data.name)) {
                count(found, Difference::NotInPath);
                return;
            }
            if !data.required {
                count(found, Difference::PathParameterOptional);
            }
            ("path", true)
        }
    };
    seen.parameters.insert((data.name.clone(), place), required);
}

fn statuses(seen: &mut Seen, operation: &Operation, document: &Value, found: &mut Found) {
    let answers = &operation.responses;
    let others = answers.responses.iter().map(|(status, answer)| (status.to_string(), answer));
    for (name, answer) in answers.default.iter().map(|answer| ("default".to_owned(), answer)).chain(others) {
        if resolved(answer, document).is_some() {
            seen.statuses.insert(name);
        } else {
            count(found, Difference::LostReference);
        }
    }
}

fn ours(api: &Api, theirs: &Operations, found: &mut Found) -> Operations {
    let mut operations = Operations::new();
    let key = |operation: &OperationSpec| {
        let http = operation.http().unwrap();
        (http.method.to_string(), http.path.to_string())
    };
    let is_stream = |operation: &OperationSpec| operation.kind == OperationKind::Subscription;
    let plain: BTreeSet<_> = api.operations.iter().filter(|one| !is_stream(one)).map(key).collect();
    for operation in &api.operations {
        let key = key(operation);
        let seen = seen(operation, theirs.get(&key).and_then(|theirs| theirs.first()), found);
        // Answers in JSON or in events make two of one operation.
        if is_stream(operation) && plain.contains(&key) {
            count(found, Difference::Twin);
            continue;
        }
        operations.entry(key).or_default().push(seen);
    }
    operations
}

fn seen(operation: &OperationSpec, other: Option<&Seen>, found: &mut Found) -> Seen {
    let http = operation.http().unwrap();
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
        let is_undeclared = other.is_some_and(|other| !other.parameters.contains_key(&key));
        if place == "path" && is_undeclared && http.path.contains(&format!("{{{}}}", parameter.name)) {
            count(found, Difference::Undeclared);
            continue;
        }
        let twice = seen.parameters.insert(key, is_required(&parameter.property));
        assert_eq!(twice, None, "{} has a parameter twice", operation.id);
    }
    if let Some(first) = http.bodies.first() {
        let types = http.bodies.iter().map(|body| body.content_type.to_ascii_lowercase()).collect();
        seen.body = Some((types, is_required(&first.property)));
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

/// Headers that are no parameters: the standard says so (OpenAPI 3.1, section 4.8.12.2), or the connection sets them.
const RESERVED_HEADERS: [&str; 14] = [
    "accept",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// How many parameters and answers of our own documents are left out on one side.
const LOST: usize = 10;

/// What was compared.
#[derive(Default)]
struct Compared {
    documents: usize,
    operations: usize,
    parameters: usize,
    bodies: usize,
    statuses: usize,
}

impl Compared {
    fn add(&mut self, operations: &Operations) {
        self.documents += 1;
        for seen in operations.values().flatten() {
            self.operations += 1;
            self.parameters += seen.parameters.len();
            self.bodies += usize::from(seen.body.is_some());
            self.statuses += seen.statuses.len();
        }
    }
}

fn compare() {
    // Our own, which have more of what is rare, besides those of the directory.
    let own = corpus::root().join("tests/fixtures/openapi");
    let directories = BTreeSet::from([corpus::directory("OPS_SPECS", "openapi"), own]);
    let mut files: Vec<_> =
        directories.iter().flat_map(|folder| corpus::files(folder, &["json", "yaml", "yml"])).collect();
    files.push(corpus::root().join("tests/tests/openapiv3/differences.yaml"));
    let mut compared = Compared::default();
    let (mut found, mut wrong, mut unread) = (Found::new(), Vec::new(), Vec::new());
    for file in &files {
        let document = match corpus::try_parse(file) {
            Ok(document) => document,
            Err(error) => {
                unread.push((corpus::is_known(file), format!("{}: {error}", file.display())));
                continue;
            }
        };
        if !document["openapi"].as_str().is_some_and(|version| version.starts_with("3.0"))
            || !corpus::is_document(&document)
        {
            continue;
        }
        let name = file.file_name().unwrap().to_string_lossy();
        let reference: OpenAPI = match serde_json::from_value(document.clone()) {
            Ok(reference) => reference,
            Err(error) => {
                unread.push((corpus::is_known(file), format!("{name}: {error}")));
                continue;
            }
        };
        let (api, _) = load(&file.display().to_string(), &FileSource::new(), &ReadOptions::new()).unwrap();
        let mut theirs = theirs(&reference, &document, &mut found);
        let mut ours = ours(&api, &theirs, &mut found);
        compared.add(&theirs);
        for key in theirs.keys().chain(ours.keys()).cloned().collect::<BTreeSet<_>>() {
            let (mut theirs, mut ours) = (theirs.remove(&key), ours.remove(&key));
            [&mut theirs, &mut ours].into_iter().flatten().for_each(|list| list.sort());
            if theirs != ours {
                wrong.push(format!("{name}: {} {}\n  theirs {theirs:?}\n  ours   {ours:?}", key.0, key.1));
            }
        }
    }
    let Compared { documents, operations, parameters, bodies, statuses } = compared;
    println!(
        "{documents} documents: {operations} operations, {parameters} parameters, {bodies} bodies, {statuses} statuses"
    );
    println!("{} not read by the other library:", unread.len());
    unread.iter().for_each(|(_, why)| println!("{why}"));
    let times = |difference: Difference| found.get(&difference).copied().unwrap_or_default();
    for (difference, reason) in EXPECTED {
        println!("{difference:?}: {} ({reason})", times(*difference));
    }
    let idle: Vec<_> = EXPECTED.iter().filter(|(difference, _)| times(*difference) == 0).collect();
    assert!(idle.is_empty(), "these are no differences any more: {idle:?}");
    // These leave a parameter out on one side, and few documents have one.
    let left_out = times(Difference::NotInPath) + times(Difference::Undeclared) + times(Difference::LostReference);
    assert!(left_out <= parameters / 50 + LOST, "{left_out} of {parameters} parameters were not compared");
    assert!([operations, parameters, bodies, statuses].iter().all(|count| *count > 0), "something was not compared");
    let unread = unread.iter().filter(|(is_known, _)| *is_known).count();
    assert!(unread * 10 < documents, "too much was not compared");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
