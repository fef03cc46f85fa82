//! Pages of the reference that say what is supported: each cell is what happened when it was tried.

use std::fmt::Write;
use std::path::Path;

use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
use ops_runtime::{ErrorCode, HttpConfig, Registry, openapi};
use serde_json::{Value, json};

mod golden;
mod openapi_parts;

use openapi_parts::{Part, parts};

fn page(name: &str, text: &str) {
    golden::check(&Path::new("docs/src/reference").join(name), text);
}

/// What the reader makes of a document: everything of it as text, and its warnings.
fn read(document: &Value) -> (String, Vec<String>) {
    let mut options = openapi::ReadOptions::default();
    options.namespace = Some("api".to_owned());
    let (api, diagnostics) = match openapi::read(document, &options) {
        Ok(read) => read,
        Err(error) => return (String::new(), vec![error.to_string()]),
    };
    let mut text = String::new();
    for spec in api.operations.iter().chain(&api.webhooks) {
        writeln!(text, "{}", serde_json::to_string(spec).unwrap()).unwrap();
        writeln!(text, "{} {}", spec.input_schema().unwrap(), spec.output_schema().unwrap()).unwrap();
        writeln!(text, "output={}", spec.output.to_value().unwrap()).unwrap();
    }
    let warnings = diagnostics.iter().filter(|told| told.severity > openapi_parts::NOTE);
    (text, warnings.map(ToString::to_string).collect())
}

#[test]
fn openapi_versions() {
    let mut text = String::from(
        "# OpenAPI\n\nMade by `tests/book/tests/support.rs`: for each cell, the test reads a document of that version with that \
         part, and checks the result. **yes**: it was read, without a warning. **read**: it is accepted, and has no effect. A \
         dash: the version does not have it, or it was not tried.\n\n| part | 2.0 | 3.0 | 3.1 | 3.2 |\n|---|---|---|---|---|\n",
    );
    let mut section = "";
    for Part { section: own, name, documents, expected } in parts() {
        if own != section {
            writeln!(text, "| **{own}** | | | | |").unwrap();
            section = own;
        }
        let mut row = format!("| {name} |");
        for document in documents {
            let Some(document) = document else {
                row.push_str(" — |");
                continue;
            };
            let (found, warnings) = read(&document);
            assert!(warnings.is_empty(), "{name}: {warnings:?}\n{document}");
            if expected.is_empty() {
                row.push_str(" read |");
                continue;
            }
            for expected in &expected {
                assert!(found.contains(expected), "{name}: `{expected}` is not in\n{found}\nof {document}");
            }
            row.push_str(" yes |");
        }
        writeln!(text, "{row}").unwrap();
    }
    text.push_str(
        "\nBeyond these parts, whole documents are the test: `tests/corpus` generates and compiles each of a directory, \
         `tests/requests` compares the requests of every operation with the document, member by member, and `tests/wire` sends them \
         to a mock server. [requests.txt](../../../tests/requests.txt) and [wire.txt](../../../tests/wire.txt) list what cannot \
         be sent, with the reasons.\n",
    );
    page("openapi.md", &text);
}

/// A keyword, its schema, a value that fits and one that does not.
type Keyword = (&'static str, Value, Value, Value);

fn keywords() -> Vec<Keyword> {
    vec![
        ("type", json!({ "type": "integer" }), json!(7), json!("7")),
        ("type: [..]", json!({ "type": ["string", "null"] }), json!(null), json!(7)),
        ("enum", json!({ "enum": ["a", 1] }), json!(1), json!("b")),
        ("const", json!({ "const": "a" }), json!("a"), json!("b")),
        ("minimum", json!({ "minimum": 3 }), json!(3), json!(2)),
        ("maximum", json!({ "maximum": 3 }), json!(3), json!(4)),
        ("exclusiveMinimum", json!({ "exclusiveMinimum": 3 }), json!(4), json!(3)),
        ("exclusiveMaximum", json!({ "exclusiveMaximum": 3 }), json!(2), json!(3)),
        ("multipleOf", json!({ "multipleOf": 0.1 }), json!(0.3), json!(0.35)),
        ("minLength", json!({ "minLength": 2 }), json!("äö"), json!("a")),
        ("maxLength", json!({ "maxLength": 2 }), json!("äö"), json!("abc")),
        ("pattern", json!({ "pattern": "^a+$" }), json!("aa"), json!("b")),
        ("minItems", json!({ "minItems": 1 }), json!([1]), json!([])),
        ("maxItems", json!({ "maxItems": 1 }), json!([1]), json!([1, 2])),
        ("uniqueItems", json!({ "uniqueItems": true }), json!([1, 2]), json!([1, 1.0])),
        ("items", json!({ "items": { "type": "string" } }), json!(["a"]), json!([1])),
        ("prefixItems", json!({ "prefixItems": [{ "type": "string" }] }), json!(["a", 1]), json!([1])),
        ("contains", json!({ "contains": { "const": 1 } }), json!([2, 1]), json!([2])),
        (
            "minContains, maxContains",
            json!({ "contains": { "const": 1 }, "maxContains": 1 }),
            json!([1]),
            json!([1, 1]),
        ),
        ("unevaluatedItems", json!({ "prefixItems": [{}], "unevaluatedItems": false }), json!([1]), json!([1, 2])),
        ("properties", json!({ "properties": { "a": { "type": "string" } } }), json!({ "a": "b" }), json!({ "a": 1 })),
        ("required", json!({ "required": ["a"] }), json!({ "a": 1 }), json!({})),
        (
            "additionalProperties",
            json!({ "properties": { "a": {} }, "additionalProperties": false }),
            json!({ "a": 1 }),
            json!({ "b": 1 }),
        ),
        (
            "patternProperties",
            json!({ "patternProperties": { "^x-": { "type": "string" } } }),
            json!({ "x-a": "b" }),
            json!({ "x-a": 1 }),
        ),
        ("propertyNames", json!({ "propertyNames": { "maxLength": 1 } }), json!({ "a": 1 }), json!({ "ab": 1 })),
        ("minProperties", json!({ "minProperties": 1 }), json!({ "a": 1 }), json!({})),
        ("maxProperties", json!({ "maxProperties": 1 }), json!({ "a": 1 }), json!({ "a": 1, "b": 2 })),
        (
            "dependentRequired",
            json!({ "dependentRequired": { "a": ["b"] } }),
            json!({ "a": 1, "b": 2 }),
            json!({ "a": 1 }),
        ),
        (
            "dependentSchemas",
            json!({ "dependentSchemas": { "a": { "required": ["b"] } } }),
            json!({ "b": 1 }),
            json!({ "a": 1 }),
        ),
        (
            "unevaluatedProperties",
            json!({ "allOf": [{ "properties": { "a": {} } }], "unevaluatedProperties": false }),
            json!({ "a": 1 }),
            json!({ "b": 1 }),
        ),
        ("allOf", json!({ "allOf": [{ "minimum": 1 }, { "maximum": 2 }] }), json!(1), json!(3)),
        ("anyOf", json!({ "anyOf": [{ "type": "string" }, { "minimum": 1, "type": "number" }] }), json!("a"), json!(0)),
        ("oneOf", json!({ "oneOf": [{ "multipleOf": 2 }, { "multipleOf": 3 }] }), json!(4), json!(5)),
        ("not", json!({ "not": { "type": "string" } }), json!(1), json!("a")),
        (
            "if, then, else",
            json!({ "if": { "type": "string" }, "then": { "minLength": 1 }, "else": { "minimum": 1 } }),
            json!(1),
            json!(""),
        ),
        ("$ref, $defs", json!({ "$ref": "#/$defs/A", "$defs": { "A": { "type": "string" } } }), json!("a"), json!(1)),
        ("true, false", json!({ "properties": { "a": false } }), json!({ "b": 1 }), json!({ "a": 1 })),
    ]
}

#[tokio::test]
async fn json_schema() {
    let mut text = String::from(
        "# JSON Schema\n\nMade by `tests/book/tests/support.rs`. Schemas are those of draft 2020-12. Readers convert other dialects to it \
         (OpenAPI 3.0, Swagger 2.0, drafts 4 to 7 in MCP tools). For each keyword, the test calls an operation with a value that fits \
         and with one that does not. The second is refused before the handler runs.\n\n| keyword | schema | fits | is refused |\n|---|---|---|---|\n",
    );
    for (name, schema, fits, breaks) in keywords() {
        let registry = Registry::new();
        let mut spec = OperationSpec::new(OperationKind::Query, "demo", "check").unwrap();
        spec.input = Schema::from(schema.clone());
        let handler = Handler::dynamic(|input: Value, _| async move { Ok(input) });
        registry.register(Registration::new(spec, handler)).unwrap();
        let taken = registry.call("demo.check", fits.clone()).await;
        assert!(taken.is_ok(), "{name}: {taken:?}");
        let refused = registry.call("demo.check", breaks.clone()).await;
        let refused = refused.map(|_| ()).expect_err(name);
        assert_eq!(*refused.code(), ErrorCode::ValidationError, "{name}: {refused}");
        let code = |value: &Value| format!("`{}`", value.to_string().replace('|', "\\|"));
        writeln!(text, "| `{name}` | {} | {} | {} |", code(&schema), code(&fits), code(&breaks)).unwrap();
    }
    text.push_str(
        "\n`format` is an annotation, as the standard has it: it is not checked. `default` fills in what a response leaves out, and is \
         documentation in requests. `deprecated`, `readOnly` and `writeOnly` change the types. The last two change one check: \
         a request body need not have required properties that are `readOnly`, and a response need not have those that are `writeOnly`. \
         `$dynamicRef` is read as `$ref`. A value that fits several variants of a `oneOf` is accepted, because the variants in documents often overlap by mistake. The page [Schemas as types](../concepts/lowering.md) shows the Rust types of schemas.\n\n`ops-runtime/tests/validator.rs` \
         runs the official test suite, and compares with another validator.\n",
    );
    page("json-schema.md", &text);
}

#[tokio::test]
async fn parameter_styles() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = axum::Router::new().fallback(|request: axum::extract::Request| async move {
        let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let sent = header("x-p")
            .map(|value| format!("X-P: {value}"))
            .or_else(|| header("cookie").map(|c| format!("Cookie: {c}")));
        ([("content-type", "application/json")], json!(sent.unwrap_or_else(|| request.uri().to_string())).to_string())
    });
    tokio::spawn(async move { axum::serve(listener, router).await });

    let mut text = String::from(
        "# Parameter styles\n\nMade by `tests/book/tests/support.rs`: what a server gets of the value `\"a b\"`, the list \
         `[\"a\",\"b\"]` and the object `{\"x\":1,\"y\":2}`, with each style of OpenAPI 3.\n\n| in | style | explode | text | list | object \
         |\n|---|---|---|---|---|---|\n",
    );
    let styles = [
        ("path", "simple"),
        ("path", "label"),
        ("path", "matrix"),
        ("query", "form"),
        ("query", "spaceDelimited"),
        ("query", "pipeDelimited"),
        ("query", "deepObject"),
        ("header", "simple"),
        ("cookie", "form"),
    ];
    for (place, style) in styles {
        for explode in [false, true] {
            let mut row = format!("| {place} | `{style}` | {explode} |");
            for (schema, value) in [
                (json!({ "type": "string" }), json!("a b")),
                (json!({ "type": "array", "items": { "type": "string" } }), json!(["a", "b"])),
                (json!({ "type": "object", "additionalProperties": { "type": "integer" } }), json!({ "x": 1, "y": 2 })),
            ] {
                // Styles that the standard does not define for this value.
                let undefined = match style {
                    "spaceDelimited" | "pipeDelimited" => value.is_string() || explode,
                    "deepObject" => !value.is_object() || !explode,
                    _ => false,
                };
                if undefined {
                    row.push_str(" — |");
                    continue;
                }
                let (name, path) = match place {
                    "path" => ("p", "/{p}"),
                    "header" => ("X-P", "/"),
                    _ => ("p", "/"),
                };
                let document = json!({
                    "openapi": "3.1.0", "info": { "title": "t", "version": "1" },
                    "paths": { path: { "get": {
                        "operationId": "send",
                        "parameters": [{
                            "name": name, "in": place, "required": true, "style": style, "explode": explode, "schema": schema,
                        }],
                        "responses": { "200": { "description": "d", "content": { "application/json": { "schema": {} } } } },
                    } } },
                });
                let config = HttpConfig::new().with_namespace("api").with_base_url(&url);
                let registry = Registry::new();
                registry.register_all(openapi::from_openapi_value(&document, config).unwrap()).unwrap();
                let sent = registry.call("api.send", json!({ name: value })).await.unwrap().data;
                write!(row, " `{}` |", sent.as_str().unwrap().replace('|', "\\|")).unwrap();
            }
            writeln!(text, "{row}").unwrap();
        }
    }
    text.push_str(
        "\n`content` in a parameter is written as JSON. Swagger's `collectionFormat` is one of these styles (`multi` is `form`, \
         exploded), but for `tsv`, which is read as `csv`, with a warning. `allowReserved` leaves reserved characters as they are. A dash: OpenAPI \
         does not define the case.\n\nA field of a URL-encoded form without an `encoding` is `form`, exploded; an object, and a list of \
         objects, are written with brackets (`p%5Bx%5D=1`, `p%5B0%5D%5Bx%5D=1`), as most servers read them. A server that reads OpenAPI's \
         default, JSON, should say `contentType: application/json` in the `encoding`. In a multipart body, objects are JSON.\n\n`null` is left out of queries, headers, cookies, forms and multipart \
         bodies, and of lists and objects there and in paths: none of them has a text for it. Only JSON has. So a server reads `[1,null,2]` as \
         `[1,2]`, as RFC 6570 (Appendix A) has it. An empty list or object \
         is left out of queries, headers and cookies, too, unless it is JSON: a filter by an empty list is no filter. It is refused if its schema has another default, \
         because the server would use that. So is `null` in a multipart body of a function.\n\nWhere nothing escapes what \
         separates the texts of a list or an object, a text that contains it is refused with a `VALIDATION_ERROR`, because the server would read \
         another value: a comma in a header, in a part of a multipart body, or where reserved characters are allowed; a space in \
         `spaceDelimited`; `|` in `pipeDelimited`; `=` in a name of an exploded object in a header. In a header, so is a text with blanks at its ends. In a segment \
         of a path with two parameters, such as `/{from}-{to}`, so is a text of the first that contains what is between them, if the operation \
         is a function: our server ends the text there. Other servers may end it at the last place, so a client of a document sends it.\n\nIn a query and in cookies, each property of an exploded object is a pair of its own. So a key that the object does not declare is refused if it is \
         the name of another parameter, or of a property of another such object. Our server gives a pair to the parameter with that name, then to structs, and \
         then to maps, each in their order. So for a function, a key is also refused if another parameter comes first. So is a name that two parameters write with different \
         values. The server would give the value to the wrong one.\n\nOur HTTP server reads all of \
         these styles: `tests/serve` sends every operation of many documents from our client to our server. The unit tests are beside `ops-runtime/src/http/style.rs`.\n",
    );
    page("styles.md", &text);
}

#[tokio::test]
async fn mcp_revisions() {
    use rmcp::model::ProtocolVersion;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(ops_runtime::mcp::McpServer::new(Registry::new()).into_service().serve_listener(listener));
    let post = |version: String, body: Value| async move {
        let (method, body) = (body["method"].as_str().unwrap().to_owned(), body.to_string());
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nMCP-Protocol-Version: {version}\r\nMCP-Method: {method}\r\nContent-Length: {}\r\n\r\n\
             {body}",
            body.len()
        );
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let mut text = String::from(
        "# MCP\n\n## Revisions\n\nMade by `tests/book/tests/support.rs`: a server of ours is asked for each revision that rmcp knows.\n\n\
         | revision | how a connection begins | served |\n|---|---|---|\n",
    );
    for version in ProtocolVersion::KNOWN_VERSIONS {
        let (name, begins) = (version.to_string(), version.has_initialize());
        let info = json!({ "name": "book", "version": "1" });
        let answer = if begins {
            let params = json!({ "protocolVersion": name, "capabilities": {}, "clientInfo": info });
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
            post(name.clone(), body).await
        } else {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": name,
                "io.modelcontextprotocol/clientInfo": info,
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
            post(name.clone(), body).await
        };
        let served = if begins {
            answer.contains(&format!("\"protocolVersion\":\"{name}\""))
        } else {
            answer.contains("\"tools\":[")
        };
        assert!(served, "{name}: {answer}");
        let how = if begins { "`initialize`" } else { "none: each request names the revision" };
        writeln!(text, "| {name} | {how} | yes |").unwrap();
    }
    text.push_str(
        "\nA server takes no batches, which 2025-03-26 had: each message has to come by itself.\n\
         \n## Parts\n\n| part | client | server | test |\n|---|---|---|---|\n\
         | stdio | yes | yes | `ops-runtime/tests/mcp_client`, `ops-runtime/tests/mcp_server` |\n\
         | streamable HTTP | yes | yes | `ops-runtime/tests/mcp_client`, `ops-runtime/tests/mcp_server` |\n\
         | OAuth 2.1 | yes | tokens are checked by your authenticator | `ops-runtime/tests/mcp_conformance.rs` |\n\
         | tools, `tools/list_changed` | yes | yes | `ops-runtime/tests/mcp_client`, `ops-runtime/tests/mcp_server` |\n\
         | structured content, output schemas | yes | yes | `tests/recorded` |\n\
         | progress, cancellation | yes | yes | `ops-runtime/tests/mcp_client`, `ops-runtime/tests/mcp_server` |\n\
         | elicitation, sampling, roots | your functions answer | `McpPeer` asks | `ops-runtime/tests/mcp_client`, `ops-runtime/tests/mcp_server` |\n\
         | tasks of 2025-11-25 | tools that require one | `McpServer::with_tasks` | `ops-runtime/tests/mcp_server/tasks` |\n\
         | tasks, the extension of 2026-07-28 | yes | `McpServer::with_tasks`, without notifications | `ops-runtime/tests/mcp_server/tasks` |\n\
         | resources, prompts, completion, logging | no | no | |\n",
    );
    page("mcp.md", &text);
}
