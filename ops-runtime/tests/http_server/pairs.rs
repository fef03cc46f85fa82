//! Which property of the input a pair of a query or a form belongs to: that of the template, of a map or of another object.

use ops_runtime::binding::{HttpBinding, HttpBody, HttpField, HttpParameter, ParameterLocation, ParameterStyle};
use ops_runtime::serve::HttpServer;
use ops_runtime::{HttpClient, HttpConfig, Registry};
use serde_json::json;

use crate::fixture::serve;
use crate::readings::{echo, echo_of};

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
