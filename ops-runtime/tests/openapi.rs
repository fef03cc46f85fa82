//! Documents, and the operations that they become.
#![cfg(feature = "openapi")]

use std::collections::BTreeMap;
use std::path::Path;

use ops_runtime::binding::{HttpBinding, ParameterStyle, StatusRange};
use ops_runtime::openapi::FileSource;
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::{Api, Diagnostic, OperationKind, OperationSpec, Severity};
use serde_json::{Value, json};

fn read(document: &Value) -> (Api, Vec<Diagnostic>) {
    openapi::read(document, &ReadOptions::new().with_namespace("api")).unwrap()
}

/// The operation that a document with this one method of a path becomes, and what was said about it.
fn one(path: &str, operation: &Value) -> (OperationSpec, Vec<String>) {
    let document = json!({ "openapi": "3.1.0", "paths": { path: { "post": operation } } });
    let (mut api, diagnostics) = read(&document);
    assert_eq!(api.operations.len(), 1, "{diagnostics:?}");
    let messages = diagnostics.into_iter().map(|d| d.message).filter(|m| !m.contains("no `operationId`"));
    let messages = messages.filter(|m| !m.contains("no successful answer"));
    let messages = messages.filter(|m| !m.contains("second content type")).collect();
    (api.operations.remove(0), messages)
}

fn http(operation: &OperationSpec) -> &HttpBinding {
    operation.http().unwrap()
}

fn ids(api: &Api) -> Vec<&str> {
    api.operations.iter().map(|operation| operation.id.as_ref()).collect()
}

#[test]
fn names() {
    let id = |id: &str| json!({ "operationId": id, "responses": {} });
    let (api, diagnostics) = read(&json!({ "openapi": "3.0.0", "paths": {
        "/a/{id}": { "get": {}, "put": id("x"), "patch": id("") },
        "/b": { "get": id("get_a_by_id"), "put": id("x"), "post": id("pets.list/all things") },
        "/b/": { "get": {}, "put": id("x") },
    } }));
    assert_eq!(
        ids(&api),
        [
            "api.get_a_by_id_2",
            "api.x",
            "api.patch_a_by_id",
            "api.get_a_by_id",
            "api.put_b",
            "api.pets.list/all things",
            "api.get_b",
            "api.put_b_2",
        ]
    );
    let notes: Vec<_> = diagnostics.iter().filter(|d| d.message.contains("operationId")).collect();
    assert_eq!(notes.len(), 5);
    assert_eq!(
        notes[0].to_string(),
        "note: `GET /a/{id}` has no `operationId`\n  at /paths/~1a~1{id}/get\n  = called `get_a_by_id_2`"
    );
    // Who knows an operation by such an id calls another one.
    let again: Vec<_> = notes.iter().filter(|d| d.message.contains("here again")).map(ToString::to_string).collect();
    let told = |path: &str, name: &str| {
        format!("warning: the `operationId` `x` stands here again\n  at /paths/{path}/put\n  = called `{name}`")
    };
    assert_eq!(again, [told("~1b", "put_b"), told("~1b~1", "put_b_2")]);
}

#[test]
fn what_a_misspelt_name_may_mean() {
    let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let properties = json!({ "a": { "type": "interger" }, "b": to("Ordr"), "c": to("Ordr"), "d": to("Pet") });
    let schemas = json!({ "Order": { "type": "object", "properties": properties } });
    let document = json!({ "openapi": "3.1.0", "paths": {}, "components": { "schemas": schemas } });
    let (_, diagnostics) = read(&document);
    let messages: Vec<_> = diagnostics.iter().map(|d| d.message.as_str()).collect();
    let meant = "`#/components/schemas/Ordr` does not exist: did you mean `Order`?";
    assert_eq!(
        messages,
        ["`\"interger\"` is not a type of JSON", meant, meant, "`#/components/schemas/Pet` does not exist"]
    );
    assert!(
        diagnostics[0].to_string().ends_with("= that type was left out: did you mean `integer`?"),
        "{diagnostics:?}"
    );
}

#[test]
fn descriptions() {
    let (api, _) = read(&json!({
        "openapi": "3.0.0",
        "info": { "version": "2.1" },
        "servers": [{ "url": "https://{host}/v{n}", "variables": { "host": { "default": "example.com" }, "n": { "default": 2 } } }],
        "paths": {
            "/a": { "get": { "summary": "S", "description": " D ", "tags": ["t", 1], "deprecated": true } },
            "/b": { "servers": [{ "url": "/relative" }], "get": { "summary": "S" }, "put": { "servers": [{ "url": "https://own" }] } },
        },
    }));
    let [a, b, c] = api.operations.as_slice() else { panic!("{:?}", ids(&api)) };
    assert_eq!((a.title.as_deref(), &*a.description, &*a.version), (Some("S"), "D", "2.1"));
    assert!(a.tags == ["t"] && a.deprecated);
    assert_eq!((b.title.as_deref(), &*b.description, b.deprecated), (Some("S"), "S", false));
    assert_eq!((c.title.as_deref(), &*c.description), (None, "PUT /b"));
    let servers: Vec<_> = api.operations.iter().map(|o| http(o).server.as_deref().unwrap()).collect();
    assert_eq!(servers, ["https://{host}/v{n}", "/relative", "https://own"]);
    let variables = &http(a).server_variables;
    let variables: Vec<_> = variables.iter().map(|v| (v.name.as_ref(), v.default.as_ref())).collect();
    assert_eq!(variables, [("host", "example.com"), ("n", "2")]);
}

#[test]
fn kinds() {
    let answers = |types: &[&str]| {
        let content: serde_json::Map<_, _> =
            types.iter().map(|t| ((*t).to_owned(), json!({ "schema": { "const": t } }))).collect();
        json!({ "operationId": "x", "responses": { "200": { "content": content }, "404": { "content": content } } })
    };
    use OperationKind::{Mutation, Query, Subscription};
    for (method, types, expected) in [
        ("get", vec!["application/json"], vec![("api.x", Query)]),
        ("head", vec![], vec![("api.x", Query)]),
        ("options", vec![], vec![("api.x", Query)]),
        ("trace", vec![], vec![("api.x", Mutation)]),
        ("DELETE", vec![], vec![("api.x", Mutation)]),
        ("post", vec!["text/event-stream"], vec![("api.x", Subscription)]),
        (
            "post",
            vec!["text/event-stream", "application/json"],
            vec![("api.x", Mutation), ("api.x_stream", Subscription)],
        ),
    ] {
        let (api, _) = read(&json!({ "openapi": "3.1.0", "paths": { "/": { method: answers(&types) } } }));
        let found: Vec<_> = api.operations.iter().map(|o| (o.id.as_ref(), o.kind)).collect();
        assert_eq!(found, expected, "{method} {types:?}");
        for operation in &api.operations {
            let is_stream = operation.kind == Subscription;
            let own = if is_stream { "text/event-stream" } else { "application/json" };
            let success: Vec<_> = http(operation).responses.iter().filter(|r| r.status.is_success()).collect();
            if !types.is_empty() {
                assert_eq!(success.iter().map(|r| r.content_type.as_deref().unwrap()).collect::<Vec<_>>(), [own]);
                assert_eq!(operation.output.to_value().unwrap()["const"], own);
            }
        }
    }
}

#[test]
fn which_streams_may_change_something() {
    let content = json!({ "schema": { "type": "string" } });
    let content = json!({ "text/event-stream": content, "application/json": content });
    for (method, kind, said, plain, changes) in [
        ("get", None, None, false, None),
        ("post", None, None, true, None),
        ("delete", Some("subscription"), None, true, None),
        ("post", Some("query"), None, false, Some(false)),
        ("post", Some("mutation"), None, true, None),
        ("get", Some("mutation"), None, true, Some(true)),
        ("post", Some("subscription"), Some(false), true, Some(false)),
        ("get", Some("query"), Some(true), false, Some(true)),
    ] {
        let mut operation = json!({ "operationId": "x", "responses": { "200": { "content": content } } });
        operation["x-ops-kind"] = kind.into();
        operation["x-ops-changes"] = said.into();
        let (api, _) = read(&json!({ "openapi": "3.1.0", "paths": { "/": { method: operation } } }));
        let found: Vec<_> = api.operations.iter().map(|own| (own.id.as_ref(), own.changes, own.may_change())).collect();
        let may_change = changes.unwrap_or(method != "get");
        assert_eq!(
            found,
            [("api.x", None, plain), ("api.x_stream", changes, may_change)],
            "{method} {kind:?} {said:?}"
        );
    }
}

#[test]
fn parameters() {
    let parameter = |name: &str, location: &str, more: Value| {
        let mut parameter = json!({ "name": name, "in": location, "schema": { "type": "integer" } });
        parameter.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        parameter
    };
    let document = json!({
        "openapi": "3.0.0",
        "paths": { "/a/{id}/{other}": {
            "parameters": [parameter("id", "path", json!({ "style": "matrix" })), { "$ref": "#/components/parameters/Page" }],
            "get": { "operationId": "x", "parameters": [
                parameter("page", "query", json!({ "required": true, "description": "own" })),
                parameter("id", "query", json!({ "style": "deepObject" })),
                parameter("id", "header", json!({ "explode": true })),
                parameter("ID", "header", json!({})),
                parameter("Accept", "header", json!({})),
                parameter("list", "query", json!({ "style": "pipeDelimited", "allowReserved": true })),
                parameter("bad", "query", json!({ "style": "matrix" })),
                { "name": "filter", "in": "query", "content": { "application/json": { "schema": { "type": "object" } } } },
                { "name": "plain", "in": "cookie", "deprecated": true },
                parameter("gone", "path", json!({})),
                parameter("x", "body", json!({})),
                { "$ref": "#/components/parameters/Gone" },
                { "in": "query" },
                parameter("bad name", "header", json!({})),
            ] },
        } },
        "components": { "parameters": { "Page": parameter("page", "query", json!({ "description": "shared" })) } },
    });
    let (api, diagnostics) = read(&document);
    let operation = &api.operations[0];
    let parameters: Vec<_> = http(operation).parameters.iter().collect();
    let row = |p: &&ops_runtime::binding::HttpParameter| {
        (p.property.to_string(), p.name.to_string(), p.style, p.explode, p.allow_reserved)
    };
    use ParameterStyle::{DeepObject, Form, Json, Matrix, PipeDelimited, Simple};
    let expected = [
        ("id", "id", Matrix, false, false),
        ("page", "page", Form, true, false),
        ("id_query", "id", DeepObject, true, false),
        ("id_header", "id", Simple, true, false),
        ("list", "list", PipeDelimited, false, true),
        ("bad", "bad", Form, true, false),
        ("filter", "filter", Json, true, false),
        ("plain", "plain", Form, true, false),
        ("other", "other", Simple, false, false),
    ];
    let expected = expected.map(|(property, name, style, e, r)| (property.to_owned(), name.to_owned(), style, e, r));
    assert_eq!(parameters.iter().map(row).collect::<Vec<_>>(), expected);
    let input = operation.input.to_value().unwrap();
    assert_eq!(input["required"], json!(["id", "page", "other"]));
    assert_eq!(input["properties"]["page"], json!({ "type": "integer", "description": "own" }));
    assert_eq!(input["properties"]["plain"], json!({ "type": "string", "deprecated": true }));
    let properties: Vec<_> = input["properties"].as_object().unwrap().keys().collect();
    assert_eq!(properties, parameters.iter().map(|p| p.property.as_ref()).collect::<Vec<_>>());

    let at = "/paths/~1a~1{id}~1{other}/get/parameters";
    let expected = [
        (Severity::Note, 2, "two parameters are called `id`"),
        (Severity::Note, 3, "two parameters are called `id`"),
        (Severity::Warning, 3, "a second parameter `id`"),
        (Severity::Note, 4, "the header `accept` is not a parameter"),
        (Severity::Warning, 6, "`matrix` is not a style of such a parameter"),
        (Severity::Note, 8, "a parameter without a schema"),
        (Severity::Warning, 9, "`/a/{id}/{other}` has no `{gone}`"),
        (Severity::Warning, 10, "the parameter `x` is in `body`"),
        (Severity::Warning, 11, "`#/components/parameters/Gone` does not exist"),
        (Severity::Warning, 12, "a parameter without `name`"),
        (Severity::Warning, 13, "no header can be called `bad name`"),
    ];
    for (severity, index, message) in expected {
        let is_this = |d: &Diagnostic| d.severity == severity && d.message == message;
        let found: Vec<_> = diagnostics.iter().filter(|d| is_this(d)).map(|d| &d.pointer).collect();
        let index = if message.starts_with("two") {
            vec![1, 2]
        } else if message.starts_with("a second") {
            vec![3]
        } else {
            vec![index]
        };
        assert_eq!(
            found,
            index.iter().map(|i| format!("{at}/{i}")).collect::<Vec<_>>().iter().collect::<Vec<_>>(),
            "{message}"
        );
    }
    assert!(diagnostics.iter().any(|d| d.message == "the path parameter `other` is not described"));
}

#[test]
fn parameters_of_versions() {
    let document = |version: &str| {
        json!({ "openapi": version, "info": { "version": "1" }, "paths": { "/a": { "post": {
            "operationId": "x", "responses": { "204": {} },
            "parameters": [
                { "$ref": "#/components/parameters/Page", "description": "Beside." },
                { "name": "own", "in": "cookie", "allowReserved": true, "schema": {} },
            ],
            "requestBody": { "$ref": "#/components/requestBodies/Pet", "description": "Beside, too." },
        } } }, "components": {
            "parameters": { "Page": {
                "name": "page", "in": "query", "description": "There.", "allowReserved": true, "schema": { "type": "integer" },
            } },
            "requestBodies": { "Pet": { "description": "There.", "content": { "application/json": { "schema": {} } } } },
        } })
    };
    for (version, page, body, own) in [
        ("3.0.3", "There.", "There.", false),
        ("3.1.0", "Beside.", "Beside, too.", false),
        ("3.2.0", "Beside.", "Beside, too.", true),
    ] {
        let (api, diagnostics) = read(&document(version));
        assert_eq!(diagnostics, []);
        let input = api.operations[0].input.to_value().unwrap();
        assert_eq!(input["properties"]["page"], json!({ "type": "integer", "description": page }), "{version}");
        assert_eq!(input["properties"]["body"], json!({ "description": body }), "{version}");
        // Before 3.2, reserved characters are a matter of queries.
        let reserved: Vec<_> = http(&api.operations[0]).parameters.iter().map(|p| p.allow_reserved).collect();
        assert_eq!(reserved, [true, own], "{version}");
    }
}

#[test]
fn path_parameters_that_are_written_otherwise() {
    let parameter =
        |name: &str| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "integer" } });
    for (path, names, sent, properties, message) in [
        ("/a/:id/:b", vec!["id"], "/a/{id}/:b", vec!["id"], Some("the path `/a/:id/:b` has parameters without braces")),
        (
            "/a/{pet_id}",
            vec!["petId"],
            "/a/{pet_id}",
            vec!["pet_id"],
            Some("the path parameter `petId` is called `pet_id` in the path"),
        ),
        ("/a/{pet_id}/{petId}", vec!["petId", "pet_id"], "/a/{pet_id}/{petId}", vec!["petId", "pet_id"], None),
        ("/a/{id}#{x}", vec!["id"], "/a/{id}", vec!["id"], Some("the path has a fragment")),
    ] {
        let parameters: Vec<_> = names.into_iter().map(parameter).collect();
        let (operation, messages) = one(path, &json!({ "parameters": parameters }));
        let binding = http(&operation);
        assert_eq!((binding.path.as_ref(), messages.first().map(String::as_str)), (sent, message));
        let found: Vec<_> = binding.parameters.iter().map(|p| p.property.as_ref()).collect();
        assert_eq!(found, properties);
        assert!(binding.parameters.iter().all(|p| p.property == p.name));
    }
}

#[test]
fn path_keys_with_a_query() {
    let parameter = |name: &str, at: &str| json!({ "name": name, "in": at, "required": at == "path", "schema": { "type": "string" } });
    for (path, parameters, properties, told) in [
        ("/a?beta=true", vec![], vec![], None),
        ("/a?beta=true", vec![parameter("q", "query")], vec!["q"], None),
        ("/a?beta=true", vec![parameter("beta", "query")], vec![], Some("the path says what `beta` is")),
        ("/a?b={b}&c={c}", vec![parameter("b", "query"), parameter("c", "path")], vec!["b", "c"], None),
        ("/a?b={b}", vec![], vec!["b"], Some("the path parameter `b` is not described")),
    ] {
        let (operation, messages) = one(path, &json!({ "parameters": parameters }));
        assert_eq!((http(&operation).path.as_ref(), messages.first().map(String::as_str)), (path, told));
        let found: Vec<_> = http(&operation).parameters.iter().map(|p| p.property.as_ref()).collect();
        assert_eq!(found, properties, "{path}");
    }
    let get = json!({ "get": { "responses": { "200": { "description": "" } } } });
    let paths = json!({ "/a": get, "/a?b=1": get, "/a?b=2": get, "/a#x": get, "/a#y": get });
    let document = json!({ "openapi": "3.0.3", "info": { "title": "t", "version": "1" }, "paths": paths });
    let (api, diagnostics) = read(&document);
    let sent: Vec<_> = api.operations.iter().map(|spec| spec.http().unwrap().path.to_string()).collect();
    assert_eq!(sent, ["/a", "/a?b=1", "/a?b=2", "/a", "/a"]);
    let names: std::collections::BTreeSet<_> = ids(&api).into_iter().collect();
    assert_eq!(names.len(), 5, "each key is an operation of its own: {names:?}");
    let told: Vec<_> = diagnostics.iter().filter(|d| d.message.contains("fragment")).collect();
    assert_eq!(
        (told.len(), told[0].pointer.as_str(), told[0].message.as_str()),
        (1, "/paths/~1a#x", "2 paths have a fragment")
    );
}

#[test]
fn a_parameter_that_is_json_may_be_any_value() {
    for (kind, style, schema) in [
        ("application/json", ParameterStyle::Json, json!(true)),
        ("text/plain", ParameterStyle::Form, json!({ "type": "string" })),
    ] {
        let parameter = json!({ "name": "q", "in": "query", "content": { kind: {} } });
        let (operation, messages) = one("/a", &json!({ "parameters": [parameter] }));
        assert_eq!(messages, ["a parameter without a schema"]);
        assert_eq!(http(&operation).parameters[0].style, style);
        assert_eq!(operation.input.to_value().unwrap()["properties"]["q"], schema);
    }
}

#[test]
fn path_parameters_that_are_objects_or_nothing() {
    for (schema, sent, told) in [
        (json!({ "type": "object" }), json!({ "type": "object" }), "the path parameter `v` is an object"),
        (json!(null), json!({ "type": "string" }), "a parameter without a schema"),
    ] {
        let mut parameter = json!({ "name": "v", "in": "path", "required": true, "schema": schema });
        if schema.is_null() {
            parameter.as_object_mut().unwrap().remove("schema");
        }
        let (operation, messages) = one("/a/{v}", &json!({ "parameters": [parameter] }));
        assert_eq!(messages, [told]);
        let written = &http(&operation).parameters[0];
        assert_eq!((written.style, written.explode), (ParameterStyle::Simple, false));
        assert_eq!(operation.input.to_value().unwrap()["properties"]["v"], sent);
    }
}

#[test]
fn bodies() {
    let with = |types: &[&str]| -> Value {
        let types = types.iter().map(|t| ((*t).to_owned(), json!({ "schema": { "type": "object" } })));
        json!({ "content": Value::Object(types.collect()) })
    };
    for (types, order, schema) in [
        (vec!["application/json"], vec!["application/json"], json!({ "type": "object" })),
        (
            vec!["text/plain", "multipart/form-data", "application/vnd.x+json", "application/json; charset=utf-8"],
            vec!["application/json; charset=utf-8", "application/vnd.x+json", "multipart/form-data", "text/plain"],
            json!({ "oneOf": [{ "title": "Json", "type": "object" }, { "title": "Text", "type": "string" }] }),
        ),
        (
            vec!["application/octet-stream", "application/x-www-form-urlencoded"],
            vec!["application/x-www-form-urlencoded", "application/octet-stream"],
            json!({ "oneOf": [
                { "title": "Form", "type": "object" },
                { "title": "Bytes", "type": "string", "format": "binary" },
            ] }),
        ),
        (vec!["text/plain"], vec!["text/plain"], json!({ "type": "string" })),
        (vec!["image/png"], vec!["image/png"], json!({ "type": "string", "format": "binary" })),
    ] {
        let (operation, messages) = one("/", &json!({ "requestBody": with(&types) }));
        let bodies: Vec<_> = http(&operation).bodies.iter().map(|b| b.content_type.as_ref()).collect();
        assert_eq!((bodies, messages), (order, vec![]));
        let is_second = |kind: &str| ["text/plain", "application/octet-stream"].contains(&kind);
        let alternative = |kind: &str| schema.get("oneOf").map(|_| u16::from(is_second(kind)));
        for body in http(&operation).bodies.iter() {
            assert_eq!(body.variant, alternative(&body.content_type), "{}", body.content_type);
        }
        let input = operation.input.to_value().unwrap();
        assert_eq!((&input["properties"]["body"], input.get("required")), (&schema, None));
    }
    let (operation, messages) = one(
        "/",
        &json!({
            "parameters": [{ "name": "body", "in": "query", "schema": {} }],
            "requestBody": { "required": true, "content": { "application/json": {} } },
        }),
    );
    assert_eq!(messages, ["a parameter is called `body`"]);
    assert_eq!(http(&operation).bodies[0].property, "request_body");
    assert_eq!(operation.input.to_value().unwrap()["required"], json!(["request_body"]));
}

#[test]
fn answers() {
    let json_of =
        |schema: Value| json!({ "description": "d", "content": { "application/json": { "schema": schema } } });
    let text = || json!({ "content": { "text/plain": {} } });
    for (responses, output) in [
        (json!({ "200": json_of(json!({ "type": "integer" })) }), json!({ "type": "integer" })),
        (json!({ "200": json_of(json!({})), "201": json_of(json!({})) }), json!({})),
        (
            json!({ "200": json_of(json!({ "const": 1 })), "2XX": text(), "404": json_of(json!({})) }),
            json!({ "oneOf": [{ "title": "Ok", "const": 1 }, { "title": "Success", "type": "string" }] }),
        ),
        (json!({ "204": {} }), json!({ "type": "null" })),
        // These have no body, whatever the document says.
        (json!({ "204": json_of(json!({ "type": "string", "maxLength": 0 })) }), json!({ "type": "null" })),
        (json!({ "205": text() }), json!({ "type": "null" })),
        (json!({ "default": json_of(json!({ "const": 2 })) }), json!({ "const": 2 })),
        (json!({ "200": { "content": { "application/pdf": {} } } }), json!({ "type": "string", "format": "binary" })),
        (
            json!({ "200": { "content": { "text/html": {}, "application/problem+json": { "schema": { "const": 3 } } } } }),
            json!({ "const": 3 }),
        ),
        (
            json!({ "200": { "content": { "multipart/mixed": { "schema": {} } } } }),
            json!({ "type": "string", "format": "binary" }),
        ),
        (json!({ "302": {} }), json!({})),
    ] {
        let (operation, messages) = one("/", &json!({ "responses": responses }));
        assert_eq!((operation.output.to_value().unwrap().as_ref(), messages), (&output, vec![]), "{responses}");
    }
    let (operation, _) = one(
        "/",
        &json!({ "responses": {
            "204": {}, "404": json_of(json!({ "const": 4 })), "409": {}, "5XX": text(), "default": json_of(json!({})),
        } }),
    );
    let errors: Vec<_> =
        operation.errors.iter().map(|e| (e.code.as_ref(), e.http_status, e.description.as_ref())).collect();
    let declared =
        [("HTTP_404", Some(404), "d"), ("HTTP_409", Some(409), ""), ("HTTP_5XX", None, ""), ("HTTP_ERROR", None, "d")];
    assert_eq!(errors, declared);
    let schemas: Vec<_> = operation.errors.iter().map(|error| error.schema.to_value().unwrap().into_owned()).collect();
    assert_eq!(schemas, [json!({ "const": 4 }), json!({ "type": "null" }), json!({ "type": "string" }), json!({})]);
    let responses: Vec<_> = http(&operation).responses.iter().map(|r| (r.status, r.content_type.as_deref())).collect();
    assert_eq!(
        responses,
        [
            (StatusRange::Exact(204), None),
            (StatusRange::Exact(404), Some("application/json")),
            (StatusRange::Exact(409), None),
            (StatusRange::Class(5), Some("text/plain")),
            (StatusRange::Default, Some("application/json")),
        ]
    );
}

#[test]
fn any_part_can_be_a_reference() {
    let documents = BTreeMap::from([
        (
            "specs/api.yaml".to_owned(),
            "openapi: 3.1.0\npaths:\n  /pets/{id}:\n    $ref: 'paths/pets.yaml#/~1pets~1{id}'\n    post: {operationId: own}\ncomponents:\n  schemas:\n    Pet: {$ref: 'schemas/pet.json'}\n".to_owned(),
        ),
        (
            "specs/paths/pets.yaml".to_owned(),
            "/pets/{id}:\n  parameters: [{$ref: '#/id'}]\n  get:\n    operationId: show\n    responses:\n      200: {$ref: '../api.yaml#/paths/~1pets~1{id}/get/responses/default'}\n      default:\n        content: {application/json: {schema: {$ref: ../schemas/pet.json}}}\nid: {name: id, in: path, schema: {type: integer}}\n".to_owned(),
        ),
        ("specs/schemas/pet.json".to_owned(), r##"{ "type": "object", "properties": { "parent": { "$ref": "#" } } }"##.to_owned()),
    ]);
    let (api, diagnostics) =
        openapi::load("specs/api.yaml", &documents, &ReadOptions::new().with_namespace("a.b")).unwrap();
    assert_eq!(ids(&api), ["a_b.own", "a_b.show"]);
    assert!(diagnostics.iter().all(|d| d.severity == Severity::Note), "{diagnostics:?}");
    let show = &api.operations[1];
    assert_eq!(show.output.to_value().unwrap().as_ref(), &json!({ "$ref": "#/$defs/Pet" }));
    assert_eq!(
        api.definitions.get("Pet").unwrap().schema.to_value().unwrap()["properties"]["parent"]["$ref"],
        "#/$defs/Pet"
    );
    assert_eq!(http(show).parameters[0].name, "id");
}

#[test]
fn what_stands_beside_a_reference_to_a_path_item_counts() {
    let item = json!({
        "summary": "Theirs", "description": "What they say",
        "servers": [{ "url": "https://theirs.example" }],
        "parameters": [
            { "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } },
            { "name": "page", "in": "query", "schema": { "type": "integer" } },
        ],
        "get": { "operationId": "show", "responses": { "204": { "description": "x" } } },
    });
    let document = |beside: Value| {
        let mut own = json!({ "$ref": "#/components/pathItems/Item" });
        own.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
        json!({
            "openapi": "3.1.0", "info": { "title": "x", "version": "1" },
            "servers": [{ "url": "https://root.example" }],
            "paths": { "/x/{id}": own }, "components": { "pathItems": { "Item": item } },
        })
    };
    let parameter = |name: &str, kind: &str| json!({ "name": name, "in": "query", "schema": { "type": kind } });
    for (beside, server, summary, properties) in [
        (json!({}), "https://theirs.example", "Theirs", json!({ "id": "integer", "page": "integer" })),
        (
            json!({ "servers": [{ "url": "https://own.example" }], "summary": "Own" }),
            "https://own.example",
            "Own",
            json!({ "id": "integer", "page": "integer" }),
        ),
        (
            json!({ "parameters": [parameter("trace", "string"), parameter("page", "string")] }),
            "https://theirs.example",
            "Theirs",
            json!({ "id": "integer", "page": "string", "trace": "string" }),
        ),
    ] {
        let (api, diagnostics) = read(&document(beside));
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        // A reference on the way may say something, too.
        let mut through = document(json!({}));
        through["paths"]["/x/{id}"] = json!({ "$ref": "#/components/pathItems/Alias" });
        through["components"]["pathItems"]["Alias"] = json!({ "$ref": "#/components/pathItems/Item", "delete": { "operationId": "remove", "responses": { "204": {} } } });
        let (through, diagnostics) = read(&through);
        assert_eq!((ids(&through), diagnostics), (vec!["api.remove", "api.show"], vec![]));
        let show = &api.operations[0];
        assert_eq!((http(show).server.as_deref(), show.title.as_deref()), (Some(server), Some(summary)));
        assert_eq!(show.description, "What they say");
        let input = show.input.to_value().unwrap();
        let types: Value = input["properties"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, schema)| (name.clone(), schema["type"].clone()))
            .collect();
        assert_eq!(types, properties);
    }
}

#[test]
fn a_component_of_another_file_keeps_what_stands_beside_its_reference() {
    let source = BTreeMap::from([
        (
            "api.json".to_owned(),
            json!({ "openapi": "3.1.0", "info": { "version": "1" }, "paths": {}, "components": { "schemas": {
                "Pet": { "$ref": "pet.json", "description": "Beside." },
                "Toy": { "$ref": "toy.json" },
            } } })
            .to_string(),
        ),
        ("pet.json".to_owned(), json!({ "type": "object" }).to_string()),
        ("toy.json".to_owned(), json!({ "type": "string" }).to_string()),
    ]);
    let (api, diagnostics) = openapi::load("api.json", &source, &ReadOptions::new()).unwrap();
    assert_eq!(diagnostics, []);
    let schema = |name: &str| api.definitions.get(name).unwrap().schema.to_value().unwrap().into_owned();
    assert_eq!(schema("Pet"), json!({ "$ref": "#/$defs/pet", "description": "Beside." }));
    assert_eq!((schema("pet"), schema("Toy")), (json!({ "type": "object" }), json!({ "type": "string" })));
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let text = "openapi: 3.0.0\npaths:\n  /a:\n    get:\n      responses:\n        200: {$ref: '#/components/responses/Gone'}\n    put: 1\n    fetch: {}\n  /b: [1]\n";
    let documents = BTreeMap::from([("api.yaml".to_owned(), text.to_owned())]);
    let (api, diagnostics) = openapi::load("api.yaml", &documents, &ReadOptions::new()).unwrap();
    assert_eq!(ids(&api), ["api.get_a"]);
    let mut found: Vec<_> = diagnostics.iter().map(|d| (d.position.unwrap(), d.message.as_str())).collect();
    found.sort();
    assert_eq!(
        found,
        [
            ((4, 5), "`GET /a` has no `operationId`"),
            ((4, 5), "no successful answer is described"),
            ((6, 9), "`#/components/responses/Gone` does not exist"),
            ((7, 5), "`PUT /a` is a number, not an object"),
            ((8, 5), "`fetch` is not a method"),
            ((9, 3), "the path `/b` is a list, not an object"),
        ]
    );
    assert!(diagnostics.iter().all(|d| d.document.as_deref() == Some("api.yaml")));
}

#[test]
fn what_is_no_openapi_document_is_refused() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/openapi/unreadable");
    for (name, message, position) in [
        ("not_json.json", "not JSON: ", Some((3, 5))),
        ("not_yaml.yaml", "not YAML: ", Some((2, 8))),
        ("not_openapi.yaml", "not an OpenAPI document: it has no member `openapi`", None),
        ("no_paths.yaml", "the document has no `paths`", None),
        ("version_4.json", "OpenAPI `4.0.0` is not a version that can be read", None),
        ("list.json", "not an OpenAPI document: it is a list", None),
        ("gone.yaml", "cannot read", None),
    ] {
        let location = fixtures.join(name).display().to_string();
        let error = openapi::load(&location, &FileSource::new(), &ReadOptions::new()).unwrap_err();
        assert_eq!((error.severity, error.document.as_deref()), (Severity::Error, Some(location.as_str())), "{error}");
        assert!(error.message.starts_with(message), "{error}");
        assert!(position.is_none() || error.position == position, "{error}");
    }
}

/// Every part of a document, replaced in turn by what does not belong there.
#[test]
fn no_part_of_a_document_is_trusted() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/openapi");
    for name in ["petshop.yaml", "tracker.json", "keywords.yaml", "swagger.yaml", "latest.yaml"] {
        let mut document = openapi::parse(&std::fs::read_to_string(fixtures.join(name)).unwrap()).unwrap();
        let mut pointers = vec![String::new()];
        let mut next = 0;
        while let Some(pointer) = pointers.get(next).cloned() {
            match document.pointer(&pointer).unwrap() {
                Value::Object(map) => {
                    pointers.extend(
                        map.keys().map(|key| format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))),
                    );
                }
                Value::Array(items) => pointers.extend((0..items.len()).map(|at| format!("{pointer}/{at}"))),
                _ => {}
            }
            next += 1;
        }
        for (number, pointer) in pointers.iter().enumerate() {
            let others = [
                json!(null),
                json!(true),
                json!(-1),
                json!("x"),
                json!([{}, 1]),
                json!({ "": {} }),
                json!({ "$ref": format!("#{pointer}") }),
            ];
            // Not each with each, which would take a minute.
            let other = others[number % others.len()].clone();
            let own = std::mem::replace(document.pointer_mut(pointer).unwrap(), other);
            match openapi::read(&document, &ReadOptions::new()) {
                Ok((api, _)) => api.operations.iter().for_each(|operation| operation.check_id().unwrap()),
                Err(error) => assert_eq!(error.severity, Severity::Error),
            }
            *document.pointer_mut(pointer).unwrap() = own;
        }
    }
}
