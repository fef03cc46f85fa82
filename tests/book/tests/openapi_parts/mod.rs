//! Parts of OpenAPI, each in a document of every version that has it.

use ops_runtime::spec::Severity;
use serde_json::{Value, json};

/// What is no warning.
pub(crate) const NOTE: Severity = Severity::Note;

/// A part of OpenAPI.
pub(crate) struct Part {
    pub(crate) section: &'static str,
    pub(crate) name: &'static str,
    /// Documents of 2.0, 3.0, 3.1 and 3.2.
    pub(crate) documents: [Option<Value>; 4],
    /// Texts that stand in what was read.
    pub(crate) expected: Vec<&'static str>,
}

/// Since when a part is there.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Since {
    V30,
    V31,
    V32,
}
use Since::{V30, V31, V32};

/// A document of each version since one: the members of `value` beside the usual ones.
fn three(since: Since, value: &Value) -> [Option<Value>; 4] {
    let document = |version: &str| {
        let mut document = json!({ "openapi": version, "info": { "title": "t", "version": "1" } });
        document.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        document
    };
    let from = |at: Since, version: &str| (since <= at).then(|| document(version));
    [None, from(V30, "3.0.4"), from(V31, "3.1.1"), from(V32, "3.2.0")]
}

/// Documents with one operation `GET /p`, and the same in 2.0.
fn operation(since: Since, operation: Value, two: Option<Value>) -> [Option<Value>; 4] {
    let at = |operation: &Value| {
        let mut operation = operation.clone();
        let members = operation.as_object_mut().unwrap();
        members.entry("operationId").or_insert(json!("op"));
        members.entry("responses").or_insert(json!({ "200": { "description": "d" } }));
        let verb = if members.contains_key("requestBody") || members.contains_key("consumes") { "post" } else { "get" };
        json!({ "/p/{id}": { verb: operation } })
    };
    let id = json!({ "name": "id", "in": "path", "required": true });
    let with_id = |mut operation: Value, schema: Value| {
        let mut id = id.clone();
        id.as_object_mut().unwrap().extend(schema.as_object().unwrap().clone());
        let list = operation.as_object_mut().unwrap().entry("parameters").or_insert(json!([]));
        list.as_array_mut().unwrap().push(id);
        operation
    };
    let mut documents =
        three(since, &json!({ "paths": at(&with_id(operation, json!({ "schema": { "type": "string" } }))) }));
    documents[0] = two.map(|two| {
        let paths = at(&with_id(two, json!({ "type": "string" })));
        json!({ "swagger": "2.0", "info": { "title": "t", "version": "1" }, "paths": paths })
    });
    documents
}

/// Documents whose one response has a schema, and the same in 2.0.
fn schema(since: Since, schema: Value, two: bool) -> [Option<Value>; 4] {
    let responses = json!({ "200": { "description": "d", "content": { "application/json": { "schema": schema } } } });
    let in_two = json!({ "200": { "description": "d", "schema": schema } });
    operation(since, json!({ "responses": responses }), two.then(|| json!({ "responses": in_two })))
}

/// Documents with a schema in which 2.0 and 3.0 differ from 3.1 and 3.2.
fn schemas(old: Value, new: Value, two: bool) -> [Option<Value>; 4] {
    let [v2, v30, ..] = schema(V30, old, two);
    let [.., v31, v32] = schema(V30, new, false);
    [v2, v30, v31, v32]
}

pub(crate) fn parts() -> Vec<Part> {
    let mut parts = Vec::new();
    let mut section = "";
    let mut add = |own: &'static str, name, documents, expected: &[&'static str]| {
        if !own.is_empty() {
            section = own;
        }
        parts.push(Part { section, name, documents, expected: expected.to_vec() });
    };
    let parameter =
        |place: &str| json!({ "parameters": [{ "name": "q", "in": place, "schema": { "type": "integer" } }] });
    let parameter_two = |place: &str| Some(json!({ "parameters": [{ "name": "q", "in": place, "type": "integer" }] }));
    let body = |content: Value| json!({ "requestBody": { "content": content } });
    let object = json!({ "type": "object", "properties": { "a": { "type": "string" } } });

    add("Operations", "parameters in the path", operation(V30, json!({}), Some(json!({}))), &["/p/{id}"]);
    add("", "in the query", operation(V30, parameter("query"), parameter_two("query")), &["\"q\""]);
    add("", "in headers", operation(V30, parameter("header"), parameter_two("header")), &["\"q\""]);
    add("", "in cookies", operation(V30, parameter("cookie"), None), &["cookie"]);
    let whole = json!({ "parameters": [{ "name": "q", "in": "querystring", "content": { "application/x-www-form-urlencoded": { "schema": object } } }] });
    add("", "`in: querystring`", operation(V32, whole, None), &["\"q\""]);
    let content = json!({ "parameters": [{ "name": "q", "in": "query", "content": { "application/json": { "schema": object } } }] });
    add("", "`content` in a parameter", operation(V30, content, None), &["\"q\""]);
    let path = |verb: &str, more: Value| {
        let mut operation = json!({ "operationId": "op", "responses": { "200": { "description": "d" } } });
        operation.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "paths": { "/p": { verb: operation } } })
    };
    add("", "the method `query`", three(V32, &path("query", json!({}))), &["QUERY"]);
    let other = json!({ "paths": { "/p": { "additionalOperations": { "COPY": { "operationId": "op", "responses": { "200": { "description": "d" } } } } } } });
    add("", "`additionalOperations`", three(V32, &other), &["COPY"]);
    let deprecated = json!({ "deprecated": true, "tags": ["a"], "description": "Words." });
    add(
        "",
        "`deprecated`, `tags`, `description`",
        operation(V30, deprecated.clone(), Some(deprecated)),
        &["\"deprecated\":true", "Words."],
    );
    let shared = json!({
        "paths": { "/p": { "parameters": [{ "$ref": "#/components/parameters/Q" }], "get": { "operationId": "op", "responses": { "200": { "$ref": "#/components/responses/R" } } } } },
        "components": {
            "parameters": { "Q": { "name": "q", "in": "query", "schema": { "$ref": "#/components/schemas/S" } } },
            "responses": { "R": { "description": "d", "content": { "application/json": { "schema": { "$ref": "#/components/schemas/S" } } } } },
            "schemas": { "S": { "type": "string", "minLength": 4 } },
        },
    });
    let mut documents = three(V30, &shared);
    documents[0] = Some(json!({
        "swagger": "2.0", "info": { "title": "t", "version": "1" },
        "paths": { "/p": { "get": { "operationId": "op", "responses": { "200": { "$ref": "#/responses/R" } } } } },
        "responses": { "R": { "description": "d", "schema": { "$ref": "#/definitions/S" } } },
        "definitions": { "S": { "type": "string", "minLength": 4 } },
    }));
    add("", "`$ref` to shared parts", documents, &["#/$defs/S"]);
    let item = json!({
        "paths": { "/p": { "$ref": "#/components/pathItems/P" } },
        "components": { "pathItems": { "P": { "get": { "operationId": "op", "responses": { "200": { "description": "d" } } } } } },
    });
    add("", "`$ref` to path items", three(V31, &item), &["\"op\""]);

    add(
        "Bodies",
        "JSON",
        operation(
            V30,
            body(json!({ "application/json": { "schema": object } })),
            Some(
                json!({ "consumes": ["application/json"], "parameters": [{ "name": "b", "in": "body", "schema": object }] }),
            ),
        ),
        &["application/json"],
    );
    add(
        "",
        "forms",
        operation(
            V30,
            body(json!({ "application/x-www-form-urlencoded": { "schema": object } })),
            Some(
                json!({ "consumes": ["application/x-www-form-urlencoded"], "parameters": [{ "name": "a", "in": "formData", "type": "string" }] }),
            ),
        ),
        &["application/x-www-form-urlencoded"],
    );
    let file = json!({ "type": "object", "properties": { "f": { "type": "string", "format": "binary" } } });
    add(
        "",
        "`multipart/form-data` with files",
        operation(
            V30,
            body(json!({ "multipart/form-data": { "schema": file } })),
            Some(
                json!({ "consumes": ["multipart/form-data"], "parameters": [{ "name": "f", "in": "formData", "type": "file" }] }),
            ),
        ),
        &["multipart/form-data"],
    );
    add(
        "",
        "bytes",
        operation(
            V30,
            body(json!({ "application/octet-stream": { "schema": { "type": "string", "format": "binary" } } })),
            None,
        ),
        &["application/octet-stream"],
    );
    add(
        "",
        "several content types",
        operation(
            V30,
            body(json!({ "application/json": { "schema": object }, "text/plain": { "schema": { "type": "string" } } })),
            None,
        ),
        &["application/json", "text/plain"],
    );
    add(
        "",
        "`encoding` of parts",
        operation(
            V30,
            body(
                json!({ "multipart/form-data": { "schema": file, "encoding": { "f": { "contentType": "image/png" } } } }),
            ),
            None,
        ),
        &["image/png"],
    );

    let json_of =
        |schema: Value| json!({ "description": "d", "content": { "application/json": { "schema": schema } } });
    let two_of = |schema: Value| json!({ "description": "d", "schema": schema });
    add(
        "Responses",
        "typed errors by status",
        operation(
            V30,
            json!({ "responses": { "200": { "description": "d" }, "404": json_of(object.clone()) } }),
            Some(json!({ "responses": { "200": { "description": "d" }, "404": two_of(object.clone()) } })),
        ),
        &["HTTP_404"],
    );
    add(
        "",
        "`4XX`, `default`",
        operation(
            V30,
            json!({ "responses": { "200": { "description": "d" }, "4XX": json_of(object.clone()), "default": json_of(object.clone()) } }),
            None,
        ),
        &["HTTP_4XX"],
    );
    add(
        "",
        "several successes",
        operation(
            V30,
            json!({ "responses": { "200": json_of(object.clone()), "202": json_of(json!({ "type": "integer" })) } }),
            Some(
                json!({ "responses": { "200": two_of(object.clone()), "202": two_of(json!({ "type": "integer" })) } }),
            ),
        ),
        &["202"],
    );
    add(
        "",
        "server-sent events",
        operation(
            V30,
            json!({ "responses": { "200": { "description": "d", "content": { "text/event-stream": { "schema": object } } } } }),
            None,
        ),
        &["\"subscription\""],
    );
    add(
        "",
        "lines of JSON",
        operation(
            V30,
            json!({ "responses": { "200": { "description": "d", "content": { "application/x-ndjson": { "schema": object } } } } }),
            None,
        ),
        &["\"subscription\""],
    );
    add(
        "",
        "`itemSchema`",
        operation(
            V32,
            json!({ "responses": { "200": { "description": "d", "content": { "application/jsonl": { "itemSchema": object } } } } }),
            None,
        ),
        &["\"subscription\""],
    );
    add(
        "",
        "`links`",
        operation(
            V30,
            json!({ "responses": { "200": { "description": "d", "links": { "next": { "operationId": "op" } } } } }),
            None,
        ),
        &[],
    );

    add(
        "Schemas",
        "`nullable`, `type: [.., \"null\"]`",
        schemas(json!({ "type": "string", "nullable": true }), json!({ "type": ["string", "null"] }), false),
        &["null"],
    );
    add(
        "",
        "`exclusiveMinimum`",
        schemas(
            json!({ "type": "integer", "minimum": 3, "exclusiveMinimum": true }),
            json!({ "type": "integer", "exclusiveMinimum": 3 }),
            true,
        ),
        &["\"exclusiveMinimum\":3"],
    );
    add(
        "",
        "`allOf`",
        schema(
            V30,
            json!({ "allOf": [object, { "type": "object", "properties": { "b": { "type": "integer" } } }] }),
            true,
        ),
        &["\"b\""],
    );
    add(
        "",
        "`oneOf`, `anyOf`, `not`",
        schema(V30, json!({ "oneOf": [{ "type": "string" }, { "anyOf": [{ "type": "integer" }] }] }), false),
        &["oneOf"],
    );
    add(
        "",
        "`readOnly`, `writeOnly`",
        schema(V30, json!({ "type": "object", "properties": { "a": { "type": "string", "readOnly": true } } }), true),
        &["readOnly"],
    );
    add(
        "",
        "`const`, `prefixItems`, `if`",
        schema(
            V31,
            json!({ "prefixItems": [{ "const": 1 }], "if": { "minItems": 2 }, "then": { "maxItems": 3 } }),
            false,
        ),
        &["prefixItems", "\"const\":1", "\"if\""],
    );
    let tagged = json!({
        "paths": { "/p": { "get": { "operationId": "op", "responses": { "200": json_of(json!({ "$ref": "#/components/schemas/U" })) } } } },
        "components": { "schemas": {
            "U": { "oneOf": [{ "$ref": "#/components/schemas/A" }], "discriminator": { "propertyName": "kind", "mapping": { "a": "#/components/schemas/A" } } },
            "A": { "type": "object", "required": ["kind"], "properties": { "kind": { "type": "string" } } },
        } },
    });
    add("", "`discriminator` with `mapping`", three(V30, &tagged), &["kind"]);
    let recursive = |pointer: &str| json!({ "type": "object", "properties": { "next": { "$ref": pointer } } });
    let own = json!({
        "paths": { "/p": { "get": { "operationId": "op", "responses": { "200": json_of(json!({ "$ref": "#/components/schemas/N" })) } } } },
        "components": { "schemas": { "N": recursive("#/components/schemas/N") } },
    });
    let mut documents = three(V30, &own);
    documents[0] = Some(json!({
        "swagger": "2.0", "info": { "title": "t", "version": "1" },
        "paths": { "/p": { "get": { "operationId": "op", "responses": { "200": two_of(json!({ "$ref": "#/definitions/N" })) } } } },
        "definitions": { "N": recursive("#/definitions/N") },
    }));
    add("", "recursion", documents, &["#/$defs/N"]);

    let secured = |scheme: Value| {
        let mut document = path("get", json!({ "security": [{ "s": [] }] }));
        document["components"] = json!({ "securitySchemes": { "s": scheme } });
        document
    };
    let secured_two = |scheme: Value| {
        let mut document = path("get", json!({ "security": [{ "s": [] }] }));
        document["swagger"] = json!("2.0");
        document["info"] = json!({ "title": "t", "version": "1" });
        document["securityDefinitions"] = json!({ "s": scheme });
        Some(document)
    };
    for (name, since, three_form, two_form, expected) in [
        (
            "API keys",
            V30,
            json!({ "type": "apiKey", "in": "header", "name": "X-Key" }),
            Some(json!({ "type": "apiKey", "in": "header", "name": "X-Key" })),
            "X-Key",
        ),
        (
            "`http`: `basic`",
            V30,
            json!({ "type": "http", "scheme": "basic" }),
            Some(json!({ "type": "basic" })),
            "basic",
        ),
        ("`http`: `bearer`", V30, json!({ "type": "http", "scheme": "bearer" }), None, "bearer"),
        (
            "OAuth 2: client credentials",
            V30,
            json!({ "type": "oauth2", "flows": { "clientCredentials": { "tokenUrl": "https://a.example.com/t", "scopes": {} } } }),
            Some(
                json!({ "type": "oauth2", "flow": "application", "tokenUrl": "https://a.example.com/t", "scopes": {} }),
            ),
            "https://a.example.com/t",
        ),
        (
            "OpenID Connect",
            V30,
            json!({ "type": "openIdConnect", "openIdConnectUrl": "https://a.example.com" }),
            None,
            "\"s\"",
        ),
        ("mutual TLS", V31, json!({ "type": "mutualTLS" }), None, "\"s\""),
        (
            "OAuth 2: device flow",
            V32,
            json!({ "type": "oauth2", "flows": { "deviceAuthorization": { "deviceAuthorizationUrl": "https://a.example.com/d", "tokenUrl": "https://a.example.com/t", "scopes": {} } } }),
            None,
            "\"s\"",
        ),
    ] {
        let mut documents = three(since, &secured(three_form));
        documents[0] = two_form.and_then(secured_two);
        add(if name == "API keys" { "Security" } else { "" }, name, documents, &[expected]);
    }

    let mut server = path("get", json!({}));
    server["servers"] =
        json!([{ "url": "https://{region}.example.com/v1", "variables": { "region": { "default": "eu" } } }]);
    let mut documents = three(V30, &server);
    let mut host = path("get", json!({}));
    host["swagger"] = json!("2.0");
    host["info"] = json!({ "title": "t", "version": "1" });
    host["host"] = json!("eu.example.com");
    host["basePath"] = json!("/v1");
    host["schemes"] = json!(["https"]);
    documents[0] = Some(host);
    add(
        "Servers and events",
        "servers, with variables (2.0: `host`, `basePath`, `schemes`)",
        documents,
        &["example.com/v1"],
    );
    add(
        "",
        "servers of an operation",
        operation(V30, json!({ "servers": [{ "url": "https://own.example.com" }] }), None),
        &["own.example.com"],
    );
    let mut document = path("get", json!({}));
    document["webhooks"] = json!({ "paid": { "post": { "requestBody": { "content": { "application/json": { "schema": object } } }, "responses": { "204": { "description": "d" } } } } });
    add("", "webhooks", three(V31, &document), &["paid"]);
    let callback = json!({ "callbacks": { "done": { "{$request.query.q}": { "post": { "requestBody": { "content": { "application/json": { "schema": object } } }, "responses": { "204": { "description": "d" } } } } } } });
    add("", "callbacks", operation(V30, callback, None), &["done"]);
    parts
}
