//! The causes why a request can't come in as it was sent although client and server are right.

use std::collections::BTreeSet;

use ops_runtime::CallError;
use ops_runtime::binding::{HttpBinding, HttpBody, HttpField, HttpParameter, ParameterLocation, ParameterStyle};
use ops_runtime::spec::OperationSpec;
use serde_json::{Map, Value};

use crate::requests::Made;
use crate::serve::exchange::Fault;

/// Why a request can't be read back as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Outside JSON, nothing is sent for an empty list or object.
    Empty,
    /// Outside JSON, nothing is sent for `null`, in a list either.
    Null,
    /// Exploded objects in the same place have properties of the same name, and nothing distinguishes their pairs.
    SameName,
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
    let says =
        |violation: &Value, text: &str| violation["message"].as_str().is_some_and(|message| message.contains(text));
    let is_missing = |violation: &Value| says(violation, "required") || says(violation, "one of");
    let sent = without_null(&made.input);
    let Some((_, came)) = came else {
        let is_twice = |violation: &Value| says(violation, "more than once");
        // The value whose pairs another parameter has taken is missing.
        let is_of_pairs = violations.iter().all(|violation| is_twice(violation) || is_missing(violation));
        if is_of_pairs && violations.iter().any(is_twice) && has_same_name(binding, &made.input) {
            return Some(Cause::SameName);
        }
        let is_lost = |violation: &Value| {
            let place = violation["pointer"].as_str().unwrap_or_default();
            is_missing(violation) && !is_in_json(binding, &made.input, place)
        };
        let cause = if holds_nothing_inside(&made.input) { Cause::Empty } else { Cause::Null };
        let holds = holds_nothing_inside(&sent) && !violations.is_empty();
        return (holds && violations.iter().all(is_lost)).then_some(cause);
    };
    if is_side_by_side(binding, &made.input, came, faults) {
        return Some(Cause::SideBySide);
    }
    if faults.iter().any(|fault| is_in_json(binding, came, &fault.place)) {
        return None;
    }
    if without_nothing(&made.input) == without_nothing(came) {
        return Some(Cause::Empty);
    }
    if without_nothing(&sent) == without_nothing(&without_null(came)) {
        return Some(Cause::Null);
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

/// True if a body is written as JSON. Client and server also write JSON for a range of types.
fn is_json(body: &HttpBody) -> bool {
    body.content_type.contains("json") || matches!(&*body.content_type, "" | "*" | "*/*" | "application/*")
}

/// True if what stands at a place of the input is written as JSON, in which nothing is lost.
fn is_in_json(binding: &HttpBinding, input: &Value, place: &str) -> bool {
    let mut parameters = binding.parameters.iter();
    if let Some(own) = parameters.find(|own| below(place, &own.property).is_some()) {
        return own.style == ParameterStyle::Json;
    }
    let Some(body) = sent_body(binding, input) else { return false };
    let inner = if body.is_rest() { Some(place) } else { below(place, &body.property) };
    let Some(inner) = inner else { return false };
    // Within a field: its list is written as several fields, but an object or a list in it as JSON.
    let mut names = inner.split('/').skip(1);
    let field = names.next().and_then(|name| body.fields.iter().find(|field| field.name == name));
    let holds_json = match field {
        Some(HttpField { style: Some(_), .. }) => false,
        Some(HttpField { content_type: Some(kind), .. }) => kind.contains("json"),
        _ => body.content_type.starts_with("multipart/"),
    };
    is_json(body) || holds_json && names.next().is_some()
}

/// The rest of a place in a property of the input. `None` if it is in another property.
fn below<'p>(place: &'p str, property: &str) -> Option<&'p str> {
    let rest = place.strip_prefix('/')?.strip_prefix(property)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// The body that was sent: that of the content type in the input, or else the first.
fn sent_body<'b>(binding: &'b HttpBinding, input: &Value) -> Option<&'b HttpBody> {
    let chosen = binding.content_type.as_deref().and_then(|choice| input.get(choice)?.as_str());
    let mut bodies = binding.bodies.iter();
    bodies.find(|body| chosen == Some(&*body.content_type)).or(binding.bodies.first())
}

/// True if two parameters write pairs of the same name into the query or the cookies.
fn has_same_name(binding: &HttpBinding, sent: &Value) -> bool {
    let names = |own: &HttpParameter| -> Vec<String> {
        let Some(value) = sent.get(&*own.property) else { return Vec::new() };
        match value.as_object().filter(|_| own.explode && own.style == ParameterStyle::Form) {
            Some(members) => members.keys().cloned().collect(),
            None => vec![own.name.to_string()],
        }
    };
    [ParameterLocation::Query, ParameterLocation::Cookie].into_iter().any(|location| {
        let mut known = BTreeSet::new();
        let here = binding.parameters.iter().filter(|own| own.location == location);
        !here.flat_map(names).all(|name| known.insert(name))
    })
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

/// A value without the `null` in its lists and objects.
fn without_null(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().filter(|item| !item.is_null()).map(without_null).collect(),
        Value::Object(members) => {
            let defined = members.iter().filter(|(_, value)| !value.is_null());
            defined.map(|(name, value)| (name.clone(), without_null(value))).collect()
        }
        value => value.clone(),
    }
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
    use serde_json::json;

    use super::*;
    use crate::sample::Extent;
    use crate::serve::exchange::compare;

    const PARAMETERS: &[HttpParameter] = &[HttpParameter::header("names"), HttpParameter::query("q")];
    const BINDING: HttpBinding = HttpBinding::new("POST", "/a").with_parameters(PARAMETERS);

    /// The cause that is found if an operation ran with an input, or was refused because a value is missing.
    fn found(specs: &[OperationSpec], sent: Value, came: Option<(&str, Value)>) -> Option<Cause> {
        found_as(&["is required"], specs, sent, came)
    }

    fn found_as(said: &[&str], specs: &[OperationSpec], sent: Value, came: Option<(&str, Value)>) -> Option<Cause> {
        let made = Made { spec: specs[0].clone(), extent: Extent::Everything, input: sent, fits: true };
        let came = came.map(|(id, input)| (id.to_owned(), input));
        let violations = said.iter().map(|message| json!({ "pointer": "/q", "message": message }));
        let body = json!({ "body": { "violations": violations.collect::<Value>() } });
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

    #[test]
    fn null_is_lost_outside_of_json_only() {
        const BODIES: &[HttpBody] = &[HttpBody::new("application/json")];
        let one = &specs()[..1];
        let with_body = [OperationSpec::mutation("t.one").with_http(BINDING.with_bodies(BODIES))];
        let came = |input: Value| Some(("t.one", input));
        assert_eq!(found(one, json!({ "q": ["a", null] }), came(json!({ "q": ["a"] }))), Some(Cause::Null));
        assert_eq!(found(one, json!({ "q": [null], "names": "a" }), came(json!({ "names": "a" }))), Some(Cause::Null));
        assert_eq!(found(one, json!({ "q": ["a", null] }), came(json!({ "q": ["b"] }))), None);
        assert_eq!(found(&with_body, json!({ "q": ["a", null] }), came(json!({ "q": ["a"] }))), Some(Cause::Null));
        let (sent, other) = (json!({ "body": { "a": ["a", null] } }), json!({ "body": { "a": ["a"] } }));
        assert_eq!(found(&with_body, sent, came(other)), None);
        // The server misses a value.
        assert_eq!(found(one, json!({ "q": [null] }), None), Some(Cause::Null));
        assert_eq!(found(one, json!({ "q": [] }), None), Some(Cause::Empty));
        assert_eq!(found(one, json!({ "q": ["a"] }), None), None);
    }

    #[test]
    fn nothing_is_lost_in_json() {
        const JSON: HttpBody = HttpBody::new("application/json");
        const FORM: HttpBody = HttpBody::new("multipart/form-data");
        const FIELDS: &[HttpField] = &[HttpField::new("styled").with_style(ParameterStyle::Form, true)];
        const PARAMETERS: &[HttpParameter] =
            &[HttpParameter::query("q"), HttpParameter::query("text").with_style(ParameterStyle::Json, false)];
        const BINDING: HttpBinding =
            HttpBinding::new("POST", "/a").with_parameters(PARAMETERS).with_content_type("kind");
        let of = |binding: HttpBinding| [OperationSpec::mutation("t.one").with_http(binding)];
        let one = of(BINDING.with_bodies(const { &[JSON, FORM.with_fields(FIELDS)] }));
        let rest = of(BINDING.with_bodies(const { &[JSON.with_rest()] }));
        let range = of(BINDING.with_bodies(const { &[HttpBody::new("*/*")] }));
        for (sent, came, cause) in [
            (json!({ "a": 1, "tags": [] }), json!({ "a": 1 }), Cause::Empty),
            (json!({ "tags": ["x"] }), json!({ "tags": "x" }), Cause::ListOfOne),
            (json!({ "a": 1, "tags": null }), json!({ "a": 1 }), Cause::Null),
        ] {
            let found = |specs: &[OperationSpec], kind: &str, sent: Value, came: Value| {
                let kinds = |mut input: Value| {
                    input["kind"] = json!(kind);
                    input
                };
                found(specs, kinds(sent), Some(("t.one", kinds(came))))
            };
            let body = |value: &Value| json!({ "body": value });
            assert_eq!(found(&one, "application/json", body(&sent), body(&came)), None, "{sent}");
            assert_eq!(found(&rest, "application/json", sent.clone(), came.clone()), None, "{sent}");
            assert_eq!(found(&range, "application/json", body(&sent), body(&came)), None, "{sent}");
            assert_eq!(found(&one, "multipart/form-data", body(&sent), body(&came)), Some(cause), "{sent}");
            // A part that is an object is JSON, unless it has a style of its own.
            for (name, cause) in [("part", None), ("styled", Some(cause))] {
                let [sent, came] = [&sent, &came].map(|value| json!({ "body": { name: value } }));
                assert_eq!(found(&one, "multipart/form-data", sent.clone(), came), cause, "{sent}");
            }
            for (name, cause) in [("text", None), ("q", Some(cause))] {
                let [sent, came] = [&sent, &came].map(|value| json!({ name: value }));
                assert_eq!(found(&one, "application/json", sent.clone(), came), cause, "{sent}");
            }
        }
    }

    #[test]
    fn a_missing_value_is_lost_outside_of_json_only() {
        const BODIES: &[HttpBody] = &[HttpBody::new("*/*")];
        const REST: &[HttpBody] = &[HttpBody::new("*/*").with_rest()];
        const JSON: &[HttpParameter] = &[HttpParameter::query("q").with_style(ParameterStyle::Json, false)];
        let of = |parameters: &'static [HttpParameter]| {
            let binding = HttpBinding::new("POST", "/a").with_parameters(parameters).with_bodies(BODIES);
            [OperationSpec::mutation("t.one").with_http(binding)]
        };
        for (sent, cause) in [(json!({ "q": {} }), Cause::Empty), (json!({ "q": [null] }), Cause::Null)] {
            assert_eq!(found(&of(PARAMETERS), sent.clone(), None), Some(cause), "{sent}");
            assert_eq!(found(&of(JSON), sent.clone(), None), None, "{sent}");
        }
        // The pointer is below the body.
        let rest = HttpBinding::new("POST", "/a").with_bodies(REST);
        let rest = [OperationSpec::mutation("t.one").with_http(rest)];
        assert_eq!(found(&rest, json!({ "q": {} }), None), None);
    }

    #[test]
    fn pairs_of_two_objects_may_have_the_same_name() {
        const TWICE: &str = "has a property that is given more than once";
        const PARAMETERS: &[HttpParameter] =
            &[HttpParameter::query("one"), HttpParameter::query("other"), HttpParameter::header("names")];
        let one = [OperationSpec::query("t.one").with_http(HttpBinding::new("GET", "/a").with_parameters(PARAMETERS))];
        let found = |sent: Value| found_as(&[TWICE], &one, sent, None);
        let (a, b) = (json!({ "a": 1 }), json!({ "b": 1 }));
        assert_eq!(found(json!({ "one": a, "other": a })), Some(Cause::SameName));
        assert_eq!(found(json!({ "one": { "other": 1 }, "other": 1 })), Some(Cause::SameName));
        assert_eq!(found(json!({ "one": a, "other": b })), None);
        assert_eq!(found(json!({ "one": a, "names": a })), None);
        // Another violation of the same request.
        let found = |other: &str| found_as(&[TWICE, other], &one, json!({ "one": a, "other": a }), None);
        assert_eq!(found("is required"), Some(Cause::SameName));
        assert_eq!(found("is no number"), None);
    }
}
