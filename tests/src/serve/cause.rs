//! The causes why a request can't come in as it was sent although client and server are right.

use ops_runtime::CallError;
use ops_runtime::binding::HttpBinding;
use ops_runtime::spec::OperationSpec;
use serde_json::{Map, Value};

use crate::requests::Made;
use crate::serve::exchange::Fault;

/// Why a request can't be read back as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Outside JSON, nothing is sent for an empty list or object.
    Empty,
    /// The schema accepts a value or a list of such values, and a list of one is written like the value.
    ListOfOne,
    /// Several operations of one kind have the same method and path, and nothing that is sent distinguishes them.
    SamePath,
    /// Parameters stand side by side in the path: nothing tells where one ends.
    SideBySide,
    /// The server refuses every call, because the operation's security requirement can't be read.
    Unreadable,
}

/// The cause why a request did not come in as it was sent. `None` if there is no such cause, so that it is a fault.
pub(super) fn cause(
    made: &Made,
    specs: &[OperationSpec],
    came: Option<&(String, Value)>,
    faults: &[Fault],
    said: &CallError,
) -> Option<Cause> {
    let binding = made.spec.http()?;
    let violations = said.details()["body"]["violations"].as_array().cloned().unwrap_or_default();
    // The operations that a request cannot distinguish from this one. Streams are distinguished by the header `Accept`.
    let mut rivals = specs.iter().filter(|other| other.id != made.spec.id && is_rival(&made.spec, other));
    match came {
        Some((id, _)) if *id != made.spec.id => {
            return rivals.any(|rival| rival.id == *id).then_some(Cause::SamePath);
        }
        None if !violations.is_empty() && rivals.next().is_some() => return Some(Cause::SamePath),
        _ => {}
    }
    let is_missing = |violation: &Value| {
        violation["message"].as_str().is_some_and(|message| message.contains("required") || message.contains("one of"))
    };
    let Some((_, came)) = came else {
        let is_plain = !binding.bodies.iter().any(|body| body.content_type.contains("json"));
        let holds = holds_nothing_inside(&made.input) && is_plain;
        return (holds && !violations.is_empty() && violations.iter().all(is_missing)).then_some(Cause::Empty);
    };
    if without_nothing(&made.input) == without_nothing(came) {
        return Some(Cause::Empty);
    }
    if is_side_by_side(binding, &made.input, came, faults) {
        return Some(Cause::SideBySide);
    }
    faults.iter().all(|fault| fault.sent == format!("[{}]", fault.came)).then_some(Cause::ListOfOne)
}

/// True if two operations are of one kind, and have the same method and path.
fn is_rival(one: &OperationSpec, other: &OperationSpec) -> bool {
    fn place(spec: &OperationSpec) -> Option<(&str, &str)> {
        let http = spec.http()?;
        Some((http.method.as_ref(), http.path.split('#').next().unwrap_or_default()))
    }
    one.kind == other.kind && place(one) == place(other)
}

/// True if all faults are of parameters that stand side by side in the path, and their joined text came in as it was sent.
fn is_side_by_side(binding: &HttpBinding, sent: &Value, came: &Value, faults: &[Fault]) -> bool {
    let mut found = Vec::new();
    for segment in binding.path.split('/').filter(|segment| segment.contains("}{")) {
        let names: Vec<&str> = segment.split(['{', '}']).filter(|name| !name.is_empty()).collect();
        let texts = |input: &Value| -> String {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            names.iter().filter_map(|name| input.get(name)).map(text).collect()
        };
        if texts(sent) != texts(came) {
            return false;
        }
        found.extend(names);
    }
    faults.iter().all(|fault| found.iter().any(|name| fault.place == format!("/{name}")))
}

/// True if a value is or contains an empty list or object.
fn holds_nothing_inside(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() || items.iter().any(holds_nothing_inside),
        Value::Object(members) => members.is_empty() || members.values().any(holds_nothing_inside),
        _ => false,
    }
}

/// A value without empty lists and objects, and without lists and objects that contain nothing else.
fn without_nothing(value: &Value) -> Option<Value> {
    match value {
        Value::Array(items) => {
            let items: Vec<Value> = items.iter().filter_map(without_nothing).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::Object(members) => {
            let members = members.iter().filter_map(|(name, value)| Some((name.clone(), without_nothing(value)?)));
            let members: Map<String, Value> = members.collect();
            (!members.is_empty()).then_some(Value::Object(members))
        }
        value => Some(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use ops_runtime::binding::HttpParameter;
    use serde_json::json;

    use super::*;
    use crate::sample::Extent;
    use crate::serve::exchange::compare;

    const PARAMETERS: &[HttpParameter] = &[HttpParameter::header("names"), HttpParameter::query("q")];
    const BINDING: HttpBinding = HttpBinding::new("POST", "/a").with_parameters(PARAMETERS);

    /// The cause that is found if an operation ran with an input, or was refused.
    fn found(specs: &[OperationSpec], sent: Value, came: Option<(&str, Value)>) -> Option<Cause> {
        let made = Made { spec: specs[0].clone(), extent: Extent::Everything, input: sent, fits: true };
        let came = came.map(|(id, input)| (id.to_owned(), input));
        let body = json!({ "body": { "violations": [{ "pointer": "/q", "message": "is required" }] } });
        let said = CallError::execution("HTTP 422").with_details(body);
        let faults = compare(&made, came.as_slice(), &said);
        assert!(!faults.is_empty(), "nothing differs");
        cause(&made, specs, came.as_ref(), &faults, &said)
    }

    fn specs() -> [OperationSpec; 3] {
        let of = |spec: OperationSpec| spec.with_http(BINDING);
        [
            of(OperationSpec::mutation("t.one")),
            of(OperationSpec::mutation("t.other")),
            of(OperationSpec::subscription("t.events")),
        ]
    }

    #[test]
    fn only_another_operation_of_the_same_kind_has_the_same_path() {
        let specs = specs();
        let input = || json!({ "q": "a" });
        assert_eq!(found(&specs, input(), Some(("t.other", input()))), Some(Cause::SamePath));
        // The operation itself ran, or one of another kind, which is no rival.
        assert_eq!(found(&specs, input(), Some(("t.one", json!({ "q": "b" })))), None);
        assert_eq!(found(&specs, input(), Some(("t.events", input()))), None);
        // The rival refused the input.
        assert_eq!(found(&specs, input(), None), Some(Cause::SamePath));
        let [one, _, events] = specs;
        assert_eq!(found(&[one, events], input(), None), None);
    }

    #[test]
    fn nothing_and_lists_of_one_are_causes() {
        let one = &specs()[..1];
        let found = |sent, came| found(one, sent, Some(("t.one", came)));
        assert_eq!(found(json!({ "q": [], "names": ["a"] }), json!({ "names": ["a"] })), Some(Cause::Empty));
        assert_eq!(found(json!({ "q": ["a"] }), json!({ "q": "a" })), Some(Cause::ListOfOne));
        for (sent, came) in [
            (json!({ "q": ["a"] }), json!({ "q": "b" })),
            (json!({ "names": ["a", "b"] }), json!({ "names": ["b", "a"] })),
            (json!({ "names": ["a", "b"] }), json!({ "names": "a,b" })),
            (json!({ "names": { "x": "1", "y": "2" } }), json!({ "names": { "x": 1, "y": "2" } })),
            // The client refuses what would come in like this.
            (json!({ "names": ["a,b", "c"] }), json!({ "names": ["a", "b", "c"] })),
        ] {
            assert_eq!(found(sent.clone(), came), None, "{sent}");
        }
    }
}
