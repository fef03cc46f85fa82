//! Changes of operations that are not called over HTTP.

use serde_json::{Value, json};

use super::changes;
use crate::{Api, Binding, Definitions, ErrorDefinition, HttpBinding, OperationKind, OperationSpec, Schema};

/// A function that adds, with its required inputs, its output and its errors.
fn add(required: Value, output: Value, errors: Vec<ErrorDefinition>) -> OperationSpec {
    let number = json!({ "type": "integer" });
    let mut spec = OperationSpec::new(OperationKind::Mutation, "math", "add").unwrap();
    spec.input =
        Schema::from(json!({ "type": "object", "properties": { "a": number, "b": number }, "required": required }));
    spec.output = Schema::from(output);
    spec.errors = errors.into();
    spec
}

fn told(old: &OperationSpec, new: &OperationSpec) -> Vec<String> {
    let api = |spec: &OperationSpec| Api::new(Definitions::default(), vec![spec.clone()]);
    changes(&api(old), &api(new)).iter().map(ToString::to_string).collect()
}

#[test]
fn the_schemas_of_a_function() {
    let busy = |kind: &str| {
        let schema = json!({ "type": "object", "properties": { "after": { "type": kind } } });
        ErrorDefinition { schema: Schema::from(schema), ..ErrorDefinition::new("BUSY") }
    };
    let integer = json!({ "type": "integer" });
    let old = add(json!(["a"]), integer.clone(), vec![busy("integer"), ErrorDefinition::new("TOO/LARGE")]);
    assert_eq!(told(&old, &old), [""; 0]);
    let new = add(json!(["a", "b"]), json!({ "type": "string" }), vec![busy("string"), ErrorDefinition::new("ODD")]);
    assert_eq!(
        told(&old, &new),
        [
            "breaking: request of `math.add`: /properties/b: it is required now",
            "breaking: response of `math.add`: it was integer and is string now",
            "change: response of `math.add`: error `TOO/LARGE`: the error is not described any more",
            "change: response of `math.add`: error `ODD`: the error is described now",
            "breaking: response of `math.add`: error `BUSY` /properties/after: it was integer and is string now",
        ]
    );
    let api = |spec: OperationSpec| Api::new(Definitions::default(), vec![spec]);
    let pointers: Vec<String> = changes(&api(old), &api(new)).into_iter().map(|change| change.pointer).collect();
    assert_eq!(
        pointers,
        ["/input/properties/b", "/output", "/errors/TOO~1LARGE", "/errors/ODD", "/errors/BUSY/properties/after"]
    );
}

#[test]
fn a_function_may_become_a_request() {
    let local = add(json!(["a"]), json!(true), Vec::new());
    let mut request = local.clone();
    request.binding = Binding::Http(HttpBinding::new("POST", "/add"));
    let message = "breaking: `math.add`: it is reached in another way now";
    assert_eq!(told(&local, &request), [message]);
    assert_eq!(told(&request, &local), [message]);
}
