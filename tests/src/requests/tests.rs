//! What the comparison must notice: requests written by hand, right and wrong.

use bytes::Bytes;
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::OperationSpec;
use serde_json::{Value, json};

use super::compare::{self, Difference};
use super::document::Document;
use super::expected::{self, Sample};
use super::schema::{self, Leniency};
use super::server::Arrived;
use super::value::ORIGIN;
use crate::sample::{self as made, Extent};

/// The samples of an operation of OpenAPI 3.1.
fn samples(operation: &Value) -> [Sample; 2] {
    samples_of("3.1.0", operation)
}

/// The operation of a document with one, and its samples.
fn samples_of(version: &str, operation: &Value) -> [Sample; 2] {
    let document = json!({
        "openapi": version,
        "info": { "title": "t", "version": "1" },
        "paths": { "/pets/{id}/{tags}": { "post": operation } },
    });
    let (api, _) = openapi::read(&document, &ReadOptions::new()).unwrap();
    let spec: &OperationSpec = &api.operations[0];
    let document = Document::new(&document);
    let operations = document.operations();
    [Extent::Required, Extent::Everything].map(|extent| expected::sample(&document, &operations[0], spec, extent))
}

fn parameters() -> Value {
    json!([
        { "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } },
        { "name": "tags", "in": "path", "required": true, "style": "label", "explode": true,
          "schema": { "type": "array", "minItems": 2, "items": { "enum": ["a", "b"] } } },
        { "name": "q", "in": "query", "schema": { "type": "string" } },
        { "name": "list", "in": "query", "style": "pipeDelimited", "explode": false,
          "schema": { "type": "array", "minItems": 2, "items": { "enum": ["x", "y"] } } },
        { "name": "page", "in": "query", "schema": { "type": "integer", "default": 1 } },
        { "name": "X-Trace", "in": "header", "schema": { "enum": ["t"] } },
        { "name": "session", "in": "cookie", "schema": { "enum": ["s 1"] } },
    ])
}

fn answers() -> Value {
    json!({ "200": { "description": "", "content": { "application/json": {}, "text/csv": {} } } })
}

fn arrived(query: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Arrived {
    let body = body.into();
    let own = [("host", "h"), ("accept", "application/json")];
    let length = body.len().to_string();
    let headers = own.iter().chain(headers).copied().chain([("content-length", length.as_str())]);
    Arrived {
        method: "POST".to_owned(),
        path: "/base/pets/1/.a.b".to_owned(),
        query: Some(query.to_owned()),
        headers: headers.map(|(name, value)| (name.to_owned(), Bytes::copy_from_slice(value.as_bytes()))).collect(),
        body,
    }
}

async fn places(sample: &Sample, arrived: &Arrived) -> Vec<String> {
    let found = compare::differences(&sample.expected, arrived, "/base").await;
    found.into_iter().map(|Difference { place, .. }| place).collect()
}

#[tokio::test]
async fn what_is_not_set_must_not_arrive() {
    let [few, _] = samples(&json!({ "parameters": parameters(), "responses": answers() }));
    assert_eq!(few.input, json!({ "id": 1, "tags": ["a", "b"] }));
    assert!(places(&few, &arrived("", &[], "")).await.is_empty());
    assert_eq!(places(&few, &arrived("page=1", &[], "")).await, ["query `page`"]);
    assert_eq!(places(&few, &arrived("", &[("x-trace", "t")], "")).await, ["header `x-trace`"]);
    assert_eq!(places(&few, &arrived("", &[("traceparent", "0")], "")).await, ["header `traceparent`"]);
    assert_eq!(places(&few, &arrived("", &[("cookie", "session=s%201")], "")).await, ["cookie `session`"]);
    assert_eq!(places(&few, &arrived("", &[("authorization", "x")], "")).await, ["header `authorization`"]);
    let body = arrived("", &[("content-type", "application/json")], "{}");
    assert_eq!(places(&few, &body).await, ["body", "header `content-type`"]);
}

#[test]
fn no_text_of_a_sample_has_what_separates_it() {
    let two = |one: &str, other: &str| json!({ "type": "array", "minItems": 2, "items": { "enum": [one, other] } });
    let delimited = |name: &str, style: &str, schema: Value| -> Value {
        json!({ "name": name, "in": "query", "style": style, "explode": false, "schema": schema })
    };
    let mut all = parameters();
    all.as_array_mut().unwrap().truncate(2);
    let one = json!({ "enum": ["x"] });
    let scope = json!({ "type": "object", "properties": { "a=b": one, "c,d": one, "role": one } });
    all.as_array_mut().unwrap().extend([
        // Without what separates them, the values are not those of the schema.
        delimited("places", "spaceDelimited", two("New York", "Old York")),
        delimited("pipes", "pipeDelimited", two("a b", "c d")),
        json!({ "name": "X-Names", "in": "header", "schema": two("Ann, B.", "Bob, C.") }),
        json!({ "name": "X-Scope", "in": "header", "explode": true, "schema": scope }),
    ]);
    let places = json!({ "style": "spaceDelimited", "explode": false });
    let form = json!({
        "schema": { "type": "object", "properties": { "places": two("New York", "Old York"), "kinds": two("a", "b") } },
        "encoding": { "places": places, "kinds": places },
    });
    let body = json!({ "content": { "application/x-www-form-urlencoded": form } });
    let [_, made] = samples(&json!({ "parameters": all, "requestBody": body, "responses": answers() }));
    let (pipes, kinds) = (json!(["a b", "c d"]), json!({ "kinds": ["a", "b"] }));
    let expected = json!({ "id": 1, "tags": ["a", "b"], "pipes": pipes, "X-Scope": { "role": "x" }, "body": kinds });
    assert_eq!(made.input, expected);
    assert!(made.fits);
}

#[tokio::test]
async fn parameters_must_arrive_as_they_are_written() {
    const QUERY: &str = "q=te%20xt%2F%C3%B6%3F%26%3D%23%2525%2B%2C%3B%7C%5B%5D%3A%40%22%27%5C%3C%3E&list=x%7Cy&page=1";
    const HEADERS: &[(&str, &str)] = &[("x-trace", "t"), ("cookie", "session=s%201")];
    let [_, all] = samples(&json!({ "parameters": parameters(), "responses": answers() }));
    assert_eq!(places(&all, &arrived(QUERY, HEADERS, "")).await, [""; 0]);
    // Other ways to say the same.
    let same = QUERY.replace("%20", "+").replace("%7Cy", "|y").replace("page", "%70age");
    assert_eq!(places(&all, &arrived(&same, HEADERS, "")).await, [""; 0]);
    for (query, place) in [
        (QUERY.replace("%2525", "%25"), "query `q`"),
        (QUERY.replace("%2F", "/"), "query `q`"),
        (QUERY.replace("%2B", "+"), "query `q`"),
        (QUERY.replace("list=x%7Cy", "list=x&list=y"), "query `list`"),
        (QUERY.replace("list=x%7Cy", "list=x,y"), "query `list`"),
        (QUERY.replace("page=1", "page=2"), "query `page`"),
        (QUERY.replace("&page=1", ""), "query `page`"),
        (format!("{QUERY}&page=1"), "query `page`"),
    ] {
        let found = places(&all, &arrived(&query, HEADERS, "")).await;
        assert!(found.iter().any(|found| found == place), "{query}: {found:?}");
    }
    let mut other = arrived(QUERY, HEADERS, "");
    for path in ["/base/pets/1/.a,b", "/base/pets/1/a.b", "/base/pets/2/.a.b", "/pets/1/.a.b", "/base/pets/1/.a.b/"] {
        path.clone_into(&mut other.path);
        assert_eq!(places(&all, &other).await, ["path"], "{path}");
    }
    let cookie = arrived(QUERY, &[("x-trace", "u"), ("cookie", "session=s 1")], "");
    assert_eq!(places(&all, &cookie).await, ["header `x-trace`", "cookie `session`"]);
    let mut method = arrived(QUERY, HEADERS, "");
    method.method = "PUT".to_owned();
    method.headers.retain(|(name, _)| name != "accept");
    assert_eq!(places(&all, &method).await, ["method", "header `accept`"]);
    let accept = |text: &str| {
        let mut request = arrived(QUERY, HEADERS, "");
        request.headers[1].1 = Bytes::copy_from_slice(text.as_bytes());
        request
    };
    for text in ["*/*", "text/csv", "application/json, text/csv", "application/json, text/csv;q=0.5"] {
        assert_eq!(places(&all, &accept(text)).await, ["header `accept`"], "{text}");
    }
}

#[tokio::test]
async fn members_of_json_are_compared() {
    let content = json!({ "application/json": { "schema": { "type": "object", "required": ["name"], "properties": {
        "id": { "type": "integer", "readOnly": true }, "name": { "enum": ["Rex"] },
        "size": { "type": "number", "default": 1.5 }, "tags": { "type": "array", "items": { "enum": ["a"] } } } } } });
    let body = json!({ "required": true, "content": content });
    let [few, all] = samples(&json!({ "parameters": parameters(), "requestBody": body, "responses": answers() }));
    let json = |text: &str| arrived("", &[("content-type", "application/json")], text.to_owned());
    assert!(places(&few, &json(r#"{"name":"Rex"}"#)).await.is_empty());
    assert_eq!(places(&few, &json(r#"{"name":"Rex","size":1.5}"#)).await, ["body/size"]);
    assert_eq!(places(&few, &json(r#"{"name":"Rex","tags":null}"#)).await, ["body/tags"]);
    assert_eq!(places(&few, &json("{}")).await, ["body/name"]);
    assert_eq!(places(&few, &json("")).await, ["body"]);
    assert_eq!(all.input["body"], json!({ "name": "Rex", "size": 1.5, "tags": ["a"] }));
    let mut found = Vec::new();
    compare::values("", &all.input["body"], &json!({ "id": 1, "name": "Tim", "size": 1.5, "tags": [] }), &mut found);
    let found: Vec<&str> = found.iter().map(|difference| difference.place.as_str()).collect();
    assert_eq!(found, ["/name", "/tags", "/id"]);
    let text = arrived("", &[("content-type", "text/plain")], r#"{"name":"Rex"}"#);
    assert_eq!(places(&few, &text).await, ["header `content-type`"]);
}

#[tokio::test]
async fn forms_and_parts_are_compared() {
    let schema = json!({ "type": "object", "required": ["a", "n"], "properties": {
        "a": { "enum": ["x y"] }, "n": { "type": "array", "minItems": 2, "items": { "enum": [1, 2] } } } });
    let form = json!({ "required": true, "content": { "application/x-www-form-urlencoded": { "schema": schema } } });
    let [few, _] = samples(&json!({ "parameters": parameters(), "requestBody": form, "responses": answers() }));
    let fields = |text: &str| arrived("", &[("content-type", "application/x-www-form-urlencoded")], text.to_owned());
    assert!(places(&few, &fields("a=x+y&n=1&n=2")).await.is_empty());
    assert_eq!(places(&few, &fields("a=x%20y&n=1,2")).await.len(), 2);
    assert_eq!(places(&few, &fields("a=x%20y&n=1&n=2&b=")).await, ["field `b`"]);

    let schema = json!({ "type": "object", "required": ["file", "o"], "properties": {
        "file": { "type": "string", "format": "binary" }, "o": { "type": "object", "required": ["p"], "properties": { "p": { "enum": [1] } } } } });
    let parts = json!({ "required": true, "content": { "multipart/form-data": { "schema": schema } } });
    let [few, _] = samples(&json!({ "parameters": parameters(), "requestBody": parts, "responses": answers() }));
    let kind = &[("content-type", "multipart/form-data; boundary=B")];
    let file = "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\nContent-Type: application/octet-stream\r\n\r\nhello\r\n";
    let object =
        "--B\r\nContent-Disposition: form-data; name=\"o\"\r\nContent-Type: application/json\r\n\r\n{ \"p\": 1 }\r\n";
    let sent = |text: String| arrived("", kind, text);
    assert_eq!(places(&few, &sent(format!("{file}{object}--B--\r\n"))).await, [""; 0]);
    for (text, place) in [
        (format!("{file}--B--\r\n"), "part `o`"),
        (format!("{file}{object}{object}--B--\r\n"), "part `o`"),
        (format!("{}{object}--B--\r\n", file.replace("hello", "aGVsbG8=")), "part `file`"),
        (format!("{}{object}--B--\r\n", file.replace("; filename=\"f\"", "")), "part `file`"),
        (format!("{file}{}--B--\r\n", object.replace("/json", "/xml")), "part `o`"),
        ("x".to_owned(), "body"),
    ] {
        assert_eq!(places(&few, &sent(text.clone())).await, [place], "{text}");
    }
}

#[tokio::test]
async fn the_operation_says_whether_it_streams() {
    let schema = json!({ "type": "object", "required": ["model"], "properties": {
        "model": { "enum": ["m"] }, "stream": { "type": "boolean", "default": true } } });
    let document = json!({
        "openapi": "3.1.0",
        "info": { "title": "t", "version": "1" },
        "paths": { "/chat": { "post": {
            "requestBody": { "required": true, "content": { "application/json": { "schema": schema } } },
            "responses": { "200": { "description": "", "content": { "application/json": {}, "text/event-stream": {} } } },
        } } },
    });
    let (api, _) = openapi::read(&document, &ReadOptions::new()).unwrap();
    let document = Document::new(&document);
    let operation = &document.operations()[0];
    for (spec, stream) in api.operations.iter().zip([false, true]) {
        let sample = expected::sample(&document, operation, spec, Extent::Everything);
        assert_eq!(sample.input["body"], json!({ "model": "m" }));
        let body = json!({ "model": "m", "stream": stream }).to_string();
        let accept = if stream { "text/event-stream" } else { "application/json" };
        let mut request = arrived("", &[("content-type", "application/json")], body);
        request.path = "/base/chat".to_owned();
        request.headers[1].1 = Bytes::copy_from_slice(accept.as_bytes());
        assert!(places(&sample, &request).await.is_empty());
        request.body = r#"{"model":"m"}"#.into();
        request.headers.retain(|(name, _)| name != "content-length");
        assert_eq!(places(&sample, &request).await, ["body/stream"]);
    }
}

#[test]
fn requests_are_the_same_but_for_the_boundary() {
    let part = |boundary: &str, value: &str| {
        let kind = format!("multipart/form-data; boundary={boundary}");
        arrived("", &[("content-type", &kind)], format!("--{boundary}\r\n\r\n{value}\r\n--{boundary}--\r\n"))
    };
    let mut found = Vec::new();
    compare::raw(&part("abc", "1"), &part("xyz", "1"), &mut found);
    assert_eq!(found, []);
    compare::raw(&part("abc", "1"), &part("xyz", "2"), &mut found);
    assert_eq!(found.len(), 1);
    compare::raw(&arrived("a=1", &[], "x"), &arrived("a=2", &[("x", "y")], "x"), &mut found);
    assert_eq!(found.len(), 3);
}

#[tokio::test]
async fn a_file_has_no_style_and_may_be_a_variant() {
    let file = json!({ "type": "string", "format": "binary" });
    let either = json!({ "anyOf": [file, { "type": "array", "items": file }] });
    let object = json!({ "type": "object", "required": ["p"], "properties": { "p": { "enum": ["x"] } } });
    let properties = json!({ "a": file, "b": either, "o": object });
    let schema = json!({ "type": "object", "required": ["a", "b", "o"], "properties": properties });
    let style = json!({ "style": "form" });
    let parts = json!({ "schema": schema, "encoding": { "a": style, "o": style } });
    let body = json!({ "required": true, "content": { "multipart/form-data": parts } });
    let operation = json!({ "parameters": parameters(), "requestBody": body, "responses": answers() });
    let part = |head: &str, text: &str| format!("--B\r\nContent-Disposition: form-data; name={head}\r\n\r\n{text}\r\n");
    let file =
        |name: &str| part(&format!("\"{name}\"; filename=\"f\"\r\nContent-Type: application/octet-stream"), "hello");
    let (styled, json) = (part("\"p\"", "x"), part("\"o\"\r\nContent-Type: application/json", r#"{"p":"x"}"#));
    // Before 3.1, the default style is for forms.
    for (version, due, other) in [("3.0.4", &json, &styled), ("3.1.0", &styled, &json)] {
        let [few, _] = samples_of(version, &operation);
        assert_eq!(few.input["body"]["b"], "aGVsbG8=");
        let kind = &[("content-type", "multipart/form-data; boundary=B")];
        let sent = |object: &str| arrived("", kind, format!("{}{}{object}--B--\r\n", file("a"), file("b")));
        assert_eq!(places(&few, &sent(due)).await, [""; 0], "{version}");
        assert_eq!(places(&few, &sent(other)).await.len(), 2, "{version}");
    }
}

#[test]
fn a_form_that_is_not_described_is_any_object() {
    for schema in [json!({}), json!({ "$ref": "x.yaml" }), json!({ "type": "string" }), json!({ "items": {} })] {
        let content = json!({ "application/x-www-form-urlencoded": { "schema": schema } });
        let body = json!({ "required": true, "content": content });
        let [few, all] = samples(&json!({ "parameters": parameters(), "requestBody": body, "responses": answers() }));
        assert_eq!(few.input["body"], json!({}), "{schema}");
        assert_eq!(all.input["body"].as_object().unwrap().len(), 1, "{schema}");
    }
    // Since 3.1, what is beside a reference counts.
    let schema =
        json!({ "$ref": "x.yaml", "type": "object", "required": ["a"], "properties": { "a": { "enum": ["b"] } } });
    let content = json!({ "application/x-www-form-urlencoded": { "schema": schema } });
    let body = json!({ "required": true, "content": content });
    let operation = json!({ "parameters": parameters(), "requestBody": body, "responses": answers() });
    for (version, expected) in [("3.0.3", json!({})), ("3.1.0", json!({ "a": "b" }))] {
        let [few, _] = samples_of(version, &operation);
        assert_eq!(few.input["body"], expected, "{version}");
    }
}

#[test]
fn a_body_of_openapi_3_in_a_document_of_2_0_is_sent() {
    let content = json!({ "application/json": { "schema": { "enum": ["newer"] } } });
    let own = json!([{ "name": "pet", "in": "body", "schema": { "enum": ["own"] } }]);
    for (parameters, expected) in [(json!([]), "newer"), (own, "own")] {
        let put = json!({
            "operationId": "put",
            "parameters": parameters,
            "requestBody": { "required": true, "content": content },
            "responses": { "200": { "description": "", "content": { "text/csv": {} } } },
        });
        let info = json!({ "title": "t", "version": "1" });
        let root = json!({ "swagger": "2.0", "info": info, "paths": { "/pets": { "put": put } } });
        let (api, _) = openapi::read(&root, &ReadOptions::new()).unwrap();
        let document = Document::new(&root);
        let operation = &document.operations()[0];
        let sample = expected::sample(&document, operation, &api.operations[0], Extent::Everything);
        assert_eq!(sample.input, json!({ "body": expected }));
        assert_eq!(operation.plain, ["text/csv"]);
    }
}

#[test]
fn the_header_origin_is_that_of_a_page() {
    let mut all = parameters();
    all.as_array_mut()
        .unwrap()
        .push(json!({ "name": "Origin", "in": "header", "required": true, "schema": { "type": "string" } }));
    for sample in samples(&json!({ "parameters": all, "responses": answers() })) {
        assert_eq!(sample.input["Origin"], ORIGIN);
    }
}

#[test]
fn a_request_body_in_the_place_of_a_schema_is_meant_as_its_own() {
    let of = |kind: &str| json!({ "schema": { "type": kind } });
    let two = json!({ "content": { "text/plain": of("string"), "application/json": of("integer") } });
    let root = json!({ "openapi": "3.1.0", "components": { "requestBodies": { "Two": two } } });
    let reference = json!({ "$ref": "#/components/requestBodies/Two" });
    let closed = schema::closed(&Document::new(&root), &reference, Leniency::Letter);
    assert_eq!([json!(1), json!("a")].map(|value| made::accepts(&closed, &value)), [Some(true), Some(false)]);
}

#[test]
fn a_file_is_text_in_the_older_dialects() {
    let root = json!({ "openapi": "3.0.3" });
    let closed = schema::closed(&Document::new(&root), &json!({ "type": "file" }), Leniency::Letter);
    assert_eq!([json!("a"), json!(1)].map(|value| made::accepts(&closed, &value)), [Some(true), Some(false)]);
}

#[test]
fn a_sample_has_a_value_for_the_path_and_no_header_of_an_impossible_name() {
    let mut all = parameters();
    all[0]["schema"] = json!({ "type": "object" });
    let header = json!({ "name": "bad name", "in": "header", "required": true, "schema": { "type": "string" } });
    all.as_array_mut().unwrap().push(header);
    let [few, _] = samples(&json!({ "parameters": all, "responses": answers() }));
    assert_eq!(few.input, json!({ "id": { "key": "text" }, "tags": ["a", "b"] }));
    assert!(few.problems.is_empty() && few.fits, "{:?}", few.problems);
}
