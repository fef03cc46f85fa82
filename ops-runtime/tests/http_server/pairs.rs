//! Which property of the input a pair of a query or a form belongs to: that of the template, of a map or of another object.

use std::collections::BTreeMap;

use ops_runtime::binding::{HttpBinding, HttpBody, HttpField, HttpParameter, ParameterLocation, ParameterStyle};
use ops_runtime::serve::HttpServer;
use ops_runtime::{HttpClient, HttpConfig, Operation, Registry, operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::fixture::serve;
use crate::readings::{echo, echo_of};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Filter {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    age: Option<u8>,
}

#[operation(namespace = "pairs", http = "GET /two")]
async fn two(owner: Filter, pet: Filter) -> Value {
    json!({ "owner": owner, "pet": pet })
}

type Labels = BTreeMap<String, String>;

#[operation(namespace = "pairs", http = "GET /labels")]
async fn label(
    owner: Option<String>,
    labels: Labels,
    size: Filter,
    #[input(cookie)] seen: Option<u8>,
    #[input(cookie)] flags: Labels,
) -> Value {
    json!({ "owner": owner, "labels": labels, "size": size, "seen": seen, "flags": flags })
}

#[operation(namespace = "pairs", http = "GET /maps")]
async fn maps(first: Labels, second: Labels) -> Value {
    json!({ "first": first, "second": second })
}

#[operation(namespace = "pairs", http = "GET /seen")]
async fn seen(#[input(cookie)] seen: Filter, #[input(cookie)] name: Option<String>) -> Value {
    json!({ "seen": seen, "name": name })
}

#[operation(namespace = "pairs", http = "GET /range/{from}-{to}")]
async fn range(from: String, to: String) -> Value {
    json!({ "from": from, "to": to })
}

#[operation(namespace = "pairs", http = "GET /version/{major}.{minor}")]
async fn version(major: f64, minor: f64) -> Value {
    json!({ "major": major, "minor": minor })
}

/// What our server would read as another input, our client refuses.
#[tokio::test]
async fn no_value_arrives_at_another_parameter() {
    let registry = Registry::new();
    registry.register(Two).unwrap();
    registry.register(Label).unwrap();
    registry.register(Maps).unwrap();
    registry.register(Seen).unwrap();
    registry.register(Range).unwrap();
    registry.register(Version).unwrap();
    let mut binding = HttpBinding::owned("GET", "/deep");
    let filter = HttpParameter::query("filter").with_style(ParameterStyle::DeepObject, true);
    binding.parameters = vec![filter, HttpParameter::query("labels")].into();
    let free = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    registry.register(echo("deep", binding, json!({ "filter": free, "labels": free }))).unwrap();
    let mut binding = HttpBinding::owned("GET", "/between?range={from}-{to}");
    binding.parameters = ["from", "to", "labels"].map(HttpParameter::query).to_vec().into();
    let text = json!({ "type": "string" });
    registry.register(echo("between", binding, json!({ "from": text, "to": text, "labels": free }))).unwrap();
    let described = registry.list().into_iter().filter(|spec| spec.namespace() == "read").collect::<Vec<_>>();
    let server = serve(HttpServer::new(registry)).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
    client.add([Two::SPEC, Label::SPEC, Maps::SPEC, Seen::SPEC, Range::SPEC, Version::SPEC]).unwrap();
    client.add(described).unwrap();

    for (id, input) in [
        ("two", json!({ "owner": { "name": "Ann" }, "pet": {} })),
        ("maps", json!({ "first": { "x": "1" }, "second": {} })),
        // No pair has the name of an object whose properties are pairs.
        (
            "label",
            json!({
                "owner": "Ann", "labels": { "size": "L", "labels": "x", "seen": "y" }, "size": { "name": "z" }, "seen": 7,
                "flags": { "owner": "x" },
            }),
        ),
        ("range", json!({ "from": "2024", "to": "2024-02-01" })),
        ("version", json!({ "major": 1.0, "minor": 2.5 })),
    ] {
        let data = client.call(&format!("pairs.{id}"), input.clone()).await.unwrap().data;
        assert_eq!(data, input, "{id}");
    }
    for (id, input) in [
        ("deep", json!({ "filter": { "a": "1" }, "labels": { "b": "2" } })),
        // No pair has the name of a parameter that is a part of another pair.
        ("between", json!({ "from": "1", "to": "2", "labels": { "from": "a" } })),
    ] {
        assert_eq!(client.call(&format!("read.{id}"), input.clone()).await.unwrap().data, input, "{id}");
    }

    let label = |labels: Value, flags: Value| json!({ "labels": labels, "size": {}, "flags": flags });
    let parameter = |key: &str, name: &str| format!("a server would read `{key}` as a value of the parameter `{name}`");
    let cut = |name: &str, separator: &str| {
        format!(
            "a server would end the text of `{name}` at the first {separator:?} behind its first character, which is not its end"
        )
    };
    for (id, input, pointer, message) in [
        (
            "pairs.two",
            json!({ "owner": { "name": "Ann" }, "pet": { "name": "Rex" } }),
            "/pet/name",
            "`owner` writes `name`, too, with another value".to_owned(),
        ),
        // A name of both belongs to the first, even if that has no value.
        ("pairs.two", json!({ "owner": {}, "pet": { "name": "Rex" } }), "/pet/name", parameter("name", "owner")),
        ("pairs.maps", json!({ "first": {}, "second": { "x": "1" } }), "/second/x", parameter("x", "first")),
        ("pairs.seen", json!({ "seen": { "name": "x", "age": 1 } }), "/seen/name", parameter("name", "name")),
        ("pairs.label", label(json!({ "owner": "mallory" }), json!({})), "/labels/owner", parameter("owner", "owner")),
        ("pairs.label", label(json!({ "age": "7" }), json!({})), "/labels/age", parameter("age", "size")),
        ("pairs.label", label(json!({}), json!({ "seen": "7" })), "/flags/seen", parameter("seen", "seen")),
        ("read.deep", json!({ "labels": { "filter[a]": "1" } }), "/labels/filter[a]", parameter("filter[a]", "filter")),
        ("read.between", json!({ "labels": { "range": "1-2" } }), "/labels/range", parameter("range", "from")),
        ("read.between", json!({ "labels": { "to": "a" } }), "/labels/to", parameter("to", "to")),
        ("pairs.range", json!({ "from": "2024-01-01", "to": "2024-02-01" }), "/from", cut("from", "-")),
        (
            "pairs.range",
            json!({ "from": "", "to": "2024" }),
            "/from",
            "the text of `from` cannot be empty before \"-\"".to_owned(),
        ),
        ("pairs.version", json!({ "major": 1.5, "minor": 2.0 }), "/major", cut("major", ".")),
    ] {
        let error = client.call(id, input).await.unwrap_err();
        assert_eq!((error.code().as_str(), error.message()), ("VALIDATION_ERROR", &*message));
        assert_eq!(error.details()["violations"][0]["pointer"], pointer);
    }
}

#[tokio::test]
async fn what_the_path_says_is_no_input() {
    let text = json!({ "type": "string" });
    let free = json!({ "type": "object", "additionalProperties": text });
    let registry = Registry::new();
    for (name, parameter, schema) in [
        ("list", HttpParameter::query("filter"), &free),
        ("find", HttpParameter::owned(ParameterLocation::QueryString, "filter"), &free),
        ("name", HttpParameter::query("action"), &text),
    ] {
        let mut binding = HttpBinding::owned("GET", format!("/do?action={name}"));
        let property = parameter.name.clone().into_owned();
        binding.parameters = vec![parameter].into();
        registry.register(echo(name, binding, json!({ property: schema }))).unwrap();
    }
    let mut needed = HttpBinding::owned("GET", "/do?action=need");
    needed.parameters = vec![HttpParameter::query("action")].into();
    let input = json!({ "type": "object", "properties": { "action": text }, "required": ["action"] });
    registry.register(echo_of("need", needed, input)).unwrap();
    let specs = registry.list();
    let server = serve(HttpServer::new(registry)).await;
    for (query, expected) in [
        ("action=list", json!({})),
        ("action=list&color=red", json!({ "filter": { "color": "red" } })),
        ("color=red&%61ction=list&action=list", json!({ "filter": { "color": "red", "action": "list" } })),
        ("action=find", json!({})),
        ("action=find&color=red", json!({ "filter": { "color": "red" } })),
        ("action=name", json!({})),
        ("action=name&action=x", json!({ "action": "x" })),
        // A value that no request may lack is in the pair, if there is no other one.
        ("%61ction=need", json!({ "action": "need" })),
        ("action=x&action=need", json!({ "action": "x" })),
    ] {
        let answer = server.get(&format!("/do?{query}")).await;
        assert_eq!((answer.status, answer.json()), (200, expected), "{query}");
    }
    // As our client sends it.
    let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
    let caller = Registry::new();
    caller.register_all(client.bind(specs).unwrap()).unwrap();
    for (id, input) in [
        ("read.list", json!({ "filter": { "color": "red" } })),
        ("read.find", json!({ "filter": { "color": "red" } })),
        ("read.name", json!({ "action": "name" })),
        ("read.need", json!({ "action": "x" })),
    ] {
        assert_eq!(caller.call(id, input.clone()).await.unwrap().into_data(), input, "{id}");
    }
}

#[tokio::test]
async fn a_map_in_a_query_leaves_the_properties_of_other_objects() {
    let mut binding = HttpBinding::owned("GET", "/boxes");
    binding.parameters = vec![HttpParameter::query("labels"), HttpParameter::query("size")].into();
    let labels = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let size = json!({ "type": "object", "properties": { "width": { "type": "integer" } } });
    let registry = Registry::new();
    registry.register(echo("boxes", binding, json!({ "labels": labels, "size": size }))).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    let answer = server.get("/boxes?color=red&width=7").await;
    let expected = json!({ "labels": { "color": "red" }, "size": { "width": 7 } });
    assert_eq!((answer.status, answer.json()), (200, expected));
}

/// A map, whose properties are fields of the form themselves, is not all of the form.
#[tokio::test]
async fn a_map_in_a_form_leaves_the_other_fields() {
    const FORM: &str = "application/x-www-form-urlencoded";
    const PARTS: &str = "multipart/form-data";
    let text = json!({ "type": "string" });
    let size = json!({ "type": "object", "properties": { "width": { "type": "integer" } } });
    let body = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "frame": size,
            "labels": { "type": "object", "additionalProperties": text },
            "name": text,
            "note": text,
            "place": size,
            "size": size,
            "tags": { "type": "array", "items": text },
        },
    });
    let registry = Registry::new();
    for (name, kind) in [("form", FORM), ("parts", PARTS)] {
        let mut binding = HttpBinding::owned("POST", format!("/{name}"));
        let mut described = HttpBody::new(kind);
        let exploded = |name| HttpField::new(name).with_style(ParameterStyle::Form, true);
        let mut fields = ["labels", "frame", "note", "tags"].map(exploded).to_vec();
        fields.push(HttpField::new("place").with_style(ParameterStyle::DeepObject, true));
        described.fields = fields.into();
        binding.bodies = vec![described].into();
        registry.register(echo(name, binding, json!({ "body": body }))).unwrap();
    }
    let specs = registry.list();
    let server = serve(HttpServer::new(registry)).await;
    let form = async |text: &str| server.send("POST /form", &[&format!("content-type: {FORM}")], text).await;
    let parts = async |all: &[(&str, &str)]| {
        let part = |(name, value): &(&str, &str)| {
            format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let body = format!("{}--b--\r\n", all.iter().map(part).collect::<String>());
        server.send("POST /parts", &[&format!("content-type: {PARTS}; boundary=b")], &body).await
    };
    for (pairs, expected) in [
        (&[("name", "x"), ("color", "red")][..], json!({ "name": "x", "labels": { "color": "red" } })),
        (&[("labels", "1"), ("name", "x")], json!({ "name": "x", "labels": { "labels": "1" } })),
        (
            &[("color", "red"), ("tags", "a"), ("tags", "b"), ("name", "x")],
            json!({ "name": "x", "labels": { "color": "red" }, "tags": ["a", "b"] }),
        ),
        (&[("name", "x")], json!({ "name": "x" })),
        (
            &[("color", "red"), ("width", "7"), ("name", "x")],
            json!({ "name": "x", "labels": { "color": "red" }, "frame": { "width": 7 } }),
        ),
        // No pair has the name of an object whose properties are fields, so it is a key of the map.
        (
            &[("width", "7"), ("frame", "L"), ("name", "x")],
            json!({ "name": "x", "labels": { "frame": "L" }, "frame": { "width": 7 } }),
        ),
        (&[("frame", "L"), ("name", "x")], json!({ "name": "x", "labels": { "frame": "L" } })),
        // A text has no parts.
        (&[("name[de]", "y"), ("name", "x")], json!({ "name": "x", "labels": { "name[de]": "y" } })),
    ] {
        let text: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        for answer in [form(&text.join("&")).await, parts(pairs).await] {
            assert_eq!((answer.status, answer.json()), (200, json!({ "body": expected })), "{pairs:?}");
        }
    }
    let answer = form("name=x&size%5Bwidth%5D=7&color=red").await;
    let expected = json!({ "body": { "name": "x", "size": { "width": 7 }, "labels": { "color": "red" } } });
    assert_eq!((answer.status, answer.json()), (200, expected));
    // Only a style makes several parts one value.
    let answer = parts(&[("name", "x"), ("size[width]", "7"), ("place[width]", "7")]).await;
    let expected = json!({ "body": { "name": "x", "labels": { "size[width]": "7" }, "place": { "width": 7 } } });
    assert_eq!((answer.status, answer.json()), (200, expected));
    // As our client sends it.
    let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
    let caller = Registry::new();
    caller.register_all(client.bind(specs).unwrap()).unwrap();
    for id in ["read.form", "read.parts"] {
        let labels = json!({ "color": "red", "frame": "L", "name[de]": "y" });
        let body = json!({ "name": "x", "frame": { "width": 7 }, "labels": labels, "tags": ["a", "b"] });
        let input = json!({ "body": body });
        assert_eq!(caller.call(id, input.clone()).await.unwrap().into_data(), input, "{id}");
    }
    // Of a field with a text and a file, both are read.
    let answer = parts(&[("name", "x"), ("tags", "a"), ("tags\"; filename=\"a.txt", "b")]).await;
    assert_eq!((answer.status, answer.json()), (200, json!({ "body": { "name": "x", "tags": ["a", "b"] } })));
    for (text, field) in [("note", "note"), ("color", "labels"), ("width", "frame"), ("place[width]", "place")] {
        let file = format!("{field}\"; filename=\"a.txt");
        let answer = parts(&[("name", "x"), (text, "7"), (file.as_str(), "b")]).await;
        let expected = json!([{ "pointer": format!("/body/{field}"), "message": "is given more than once" }]);
        assert_eq!((answer.status, &answer.problem()["violations"]), (422, &expected), "{field}");
    }
}
