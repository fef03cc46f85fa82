//! Forty operations that differ in all that an operation over HTTP may: schemas, places of parameters, bodies, responses.
//!
//! Each gives back what it got, so that who calls it sees whether anything was lost on the way: by a client that was
//! generated from the server's document, ours or another.

mod bodies;
mod places;
mod schemas;

use ops_runtime::access::AccessControl;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{Binding, HttpBinding, HttpBody, HttpParameter, HttpResponse, StatusRange};
use ops_runtime::spec::{Definition, Definitions, OperationKind, OperationSpec, Schema};
use ops_runtime::{CallError, Registry};
use serde_json::{Value, json};

/// The token of the caller who may call all.
pub const TOKEN: &str = "open sesame";

/// An operation, and an input of it.
#[derive(Debug, Clone)]
pub struct Case {
    /// What is served.
    pub spec: OperationSpec,
    /// An input with everything that the operation takes.
    pub sample: Value,
    /// What it gives back for the sample.
    pub given: Value,
}

/// All operations.
pub fn cases() -> Vec<Case> {
    let definitions = Definitions::new(schemas::definitions());
    let mut all = [schemas::cases(), places::cases(), bodies::cases()].concat();
    for case in &mut all {
        case.spec.definitions = definitions.clone();
        case.spec.access = AccessControl::NONE.with_scopes(&["varied"]);
    }
    all
}

/// A registry of all operations.
///
/// # Errors
/// If one of them cannot be registered.
pub fn registry() -> Result<Registry, ops_runtime::registry::RegistryError> {
    let registry = Registry::new();
    registry.register_all(cases().into_iter().map(|case| Registration::new(case.spec.clone(), handler(&case.spec))))?;
    Ok(registry)
}

/// Gives back what it got: the value that an operation by id takes, the body if there is nothing else, or the input.
fn handler(spec: &OperationSpec) -> Handler {
    let gives_nothing =
        spec.output.to_value().is_ok_and(|output| output.get("type").is_some_and(|kind| kind == "null"));
    if spec.kind == OperationKind::Subscription {
        return Handler::dynamic_stream(|input: Value, _| async move {
            let items = input.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
            Ok(futures_util::stream::iter(items.into_iter().map(Ok::<_, CallError>)))
        });
    }
    let is_by_id = spec.http().is_none();
    Handler::dynamic(move |input: Value, _| async move {
        Ok(match gives_nothing {
            true => Value::Null,
            false if is_by_id => input.get("value").cloned().unwrap_or_default(),
            false => echo(&input),
        })
    })
}

fn echo(input: &Value) -> Value {
    input.get("body").filter(|_| is_single(input)).unwrap_or(input).clone()
}

fn is_single(input: &Value) -> bool {
    input.as_object().is_some_and(|members| members.len() == 1)
}

/// An operation that is called by its id: its input is one value of a schema, which it gives back.
fn by_id(name: &str, description: &str, schema: Value, sample: Value) -> Case {
    let mut spec = spec(OperationKind::Query, name, description);
    spec.input = object([("value", schema.clone())]);
    spec.output = schema.into();
    Case { spec, given: sample.clone(), sample: json!({ "value": sample }) }
}

/// An operation at a path: it gives back its input.
fn bound<const N: usize>(
    name: &str,
    description: &str,
    place: (&str, &str),
    parameters: Vec<HttpParameter>,
    properties: [(&str, Value); N],
    sample: Value,
) -> Case {
    let kind = if place.0 == "GET" { OperationKind::Query } else { OperationKind::Mutation };
    let mut spec = spec(kind, name, description);
    let mut http = HttpBinding::owned(place.0.to_owned(), place.1.to_owned());
    http.parameters = parameters.into();
    http.responses = vec![HttpResponse::new(StatusRange::Exact(200), "application/json")].into();
    spec.input = object(properties.clone());
    spec.output = if N == 1 {
        properties.into_iter().map(|(_, schema)| schema).collect::<Vec<_>>().remove(0).into()
    } else {
        spec.input.clone()
    };
    spec.binding = Binding::Http(http);
    let given = echo(&sample);
    // Only a value or a body is given back without the name around it.
    if N == 1 && given == sample {
        spec.output = spec.input.clone();
    }
    Case { spec, sample, given }
}

/// The case with bodies of these kinds.
fn with_bodies(mut case: Case, bodies: Vec<HttpBody>) -> Case {
    if let Binding::Http(http) = &mut case.spec.binding {
        http.bodies = bodies.into();
    }
    case
}

/// The case with these responses, an output of a schema, and what it gives.
fn giving(mut case: Case, responses: Vec<HttpResponse>, output: Value, given: Value) -> Case {
    if let Binding::Http(http) = &mut case.spec.binding {
        http.responses = responses.into();
    }
    case.spec.output = output.into();
    Case { given, ..case }
}

fn spec(kind: OperationKind, name: &str, description: &str) -> OperationSpec {
    let mut spec = OperationSpec::query("varied.none");
    spec.kind = kind;
    spec.id = format!("varied.{name}").into();
    spec.description = description.to_owned().into();
    spec
}

/// The schema of an object that has to have these properties.
fn object<const N: usize>(properties: [(&str, Value); N]) -> Schema {
    let required: Vec<&str> = properties.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<String, Value> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({ "type": "object", "properties": properties, "required": required }).into()
}

fn define(name: &str, schema: Value) -> Definition {
    Definition::from_value(name.to_owned(), schema)
}
