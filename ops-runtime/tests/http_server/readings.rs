//! What a request may look like, and what of it is the input: charsets, sequences, whole numbers, keys, uploads with faults.

use ops_runtime::access::Identity;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{
    Binding, HttpBinding, HttpBody, HttpField, HttpParameter, HttpResponse, ParameterLocation, ParameterStyle,
    StatusRange,
};
use ops_runtime::openapi::{ReadOptions, read};
use ops_runtime::serve::{ApiKeys, HttpServer, HttpServerOptions};
use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
use ops_runtime::{Body, CallError, HttpClient, HttpConfig, Registry, operation};
use serde_json::{Value, json};

use crate::fixture::serve;

/// Says how many pages a text has, as its caller counts them.
#[operation(namespace = "read", http = "POST /texts")]
async fn text(pages: u16, title: String) -> Value {
    json!([pages, title])
}

/// Counts what comes.
#[operation(namespace = "read", http = "POST /files")]
async fn keep(
    #[input(query)] owner: String,
    #[input(query)] copies: Option<u8>,
    body: Body,
) -> Result<Value, CallError> {
    let length = body.bytes(1 << 30).await.map_err(|error| CallError::execution(error.to_string()))?.len();
    Ok(json!([owner, copies, length]))
}

/// An operation that gives back its input, whose properties are optional.
pub(crate) fn echo(name: &str, binding: HttpBinding, properties: Value) -> Registration {
    echo_of(name, binding, json!({ "type": "object", "properties": properties, "additionalProperties": false }))
}

/// An operation that gives back its input.
pub(crate) fn echo_of(name: &str, binding: HttpBinding, input: Value) -> Registration {
    let mut spec = OperationSpec::new(OperationKind::Mutation, "read", name).unwrap();
    spec.input = Schema::from(input);
    spec.binding = Binding::Http(binding);
    Registration::new(spec, Handler::dynamic(|input: Value, _| async move { Ok(input) }))
}

fn registry() -> Registry {
    let registry = Registry::new();
    registry.register(Text).unwrap();
    registry.register(Keep).unwrap();
    let mut sequence = HttpBinding::owned("POST", "/sequence");
    sequence.bodies = vec![HttpBody::new("application/json-seq")].into();
    registry.register(echo("sequence", sequence, json!({ "body": { "type": "array" } }))).unwrap();
    let mut search = HttpBinding::owned("GET", "/search");
    let cookies = HttpParameter::owned(ParameterLocation::Cookie, "others");
    search.parameters = vec![HttpParameter::query("filter"), cookies].into();
    let free = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    registry.register(echo("search", search, json!({ "filter": free, "others": free }))).unwrap();
    let mut find = HttpBinding::owned("GET", "/find");
    find.parameters = vec![HttpParameter::owned(ParameterLocation::QueryString, "filter")].into();
    registry.register(echo("find", find, json!({ "filter": free }))).unwrap();
    let mut long = HttpBinding::owned("POST", "/long");
    long.parameters = vec![HttpParameter::query("copies")].into();
    long.bodies = vec![HttpBody::new("application/octet-stream")].into();
    let bytes = json!({ "type": "string", "format": "binary", "minLength": 1000, "pattern": "^A" });
    registry.register(echo("long", long, json!({ "copies": { "type": "integer" }, "body": bytes }))).unwrap();
    registry
}

#[tokio::test]
async fn calls_by_id_have_any_charset() {
    let server = serve(HttpServer::new(registry())).await;
    let utf8: &[u8] = "\u{feff}{\"pages\":2,\"title\":\"é\"}".as_bytes();
    let latin: &[u8] = b"{\"pages\":2,\"title\":\"\xe9\"}";
    for path in ["/operations/read/text", "/texts"] {
        for (kind, body, status) in [
            ("application/json", utf8, 200),
            ("application/json; charset=iso-8859-1", latin, 200),
            ("application/json", latin, 400),
            ("application/json; charset=utf-8", latin, 400),
            ("application/json; charset=klingon", latin, 415),
        ] {
            let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
            let head = format!("{head}content-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
            let answer = server.raw(&[head.as_bytes(), body].concat()).await;
            assert_eq!(answer.status, status, "{path} {kind}: {answer:?}");
            if status == 200 {
                assert_eq!(answer.json(), json!([2, "é"]), "{path} {kind}");
            }
        }
    }
}

#[tokio::test]
async fn whole_numbers_are_integers_however_they_are_written() {
    let server = serve(HttpServer::new(registry())).await;
    for (pages, status) in [("2", 200), ("2.0", 200), ("2e0", 200), ("2.5", 422), ("-2.0", 422), ("70000.0", 422)] {
        for path in ["/operations/read/text", "/texts"] {
            let answer = server.post(path, &format!("{{\"pages\":{pages},\"title\":\"2.0\"}}")).await;
            assert_eq!(answer.status, status, "{path} {pages}: {answer:?}");
            match status {
                200 => assert_eq!(answer.json(), json!([2, "2.0"]), "{path} {pages}"),
                _ => assert_eq!(answer.problem()["violations"][0]["pointer"], "/pages", "{path} {pages}"),
            }
        }
    }
}

#[tokio::test]
async fn cookies_in_their_own_syntax_have_any_name() {
    let names = ["a%20b", "a+b", "c d"];
    let mut binding = HttpBinding::owned("GET", "/named");
    let parameters = names.iter().map(|name| HttpParameter::owned(ParameterLocation::Cookie, *name).with_reserved());
    binding.parameters = parameters.collect::<Vec<_>>().into();
    let text = json!({ "type": "string" });
    let properties = json!({ "a%20b": text, "a+b": text, "c d": text });
    let own = echo("named", binding.clone(), properties.clone());
    let registry = Registry::new();
    registry.register(own).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
    let mut spec = OperationSpec::new(OperationKind::Mutation, "read", "named").unwrap();
    spec.input = Schema::from(json!({ "type": "object", "properties": properties }));
    spec.binding = Binding::Http(binding);
    client.add([spec]).unwrap();
    let input = json!({ "a%20b": "1", "a+b": "2", "c d": "3" });
    assert_eq!(client.call("read.named", input.clone()).await.unwrap().data, input);
}

#[tokio::test]
async fn a_text_of_a_sequence_has_any_number_of_lines() {
    let server = serve(HttpServer::new(registry())).await;
    for body in ["\u{1e}{\n \"id\": 1\n}\n\u{1e}2\n", "{\"id\":1}\n2\n", "\u{1e}{\"id\":1}\n\u{1e}\u{1e}2"] {
        let answer = server.send("POST /sequence", &["content-type: application/json-seq"], body).await;
        assert_eq!((answer.status, answer.json()), (200, json!({ "body": [{ "id": 1 }, 2] })), "{body}");
    }
}

#[tokio::test]
async fn keys_are_no_input() {
    let keys = [ApiKeys::query("api_key"), ApiKeys::cookie("session")];
    let [query, cookie] = keys.map(|keys| keys.with_key("s3cret", Identity::new("ann")));
    let server = serve(HttpServer::new(registry()).with_authenticator(query).with_authenticator(cookie)).await;
    let cookies = "cookie: lang=de; session=s3cret";
    for (path, headers, expected) in [
        ("/search?status=x&api_key=s3cret", [].as_slice(), json!({ "filter": { "status": "x" } })),
        ("/search?api_key=s3cret", &[], json!({})),
        ("/find?status=x&api%5Fkey=s3cret", &[], json!({ "filter": { "status": "x" } })),
        ("/find?api_key=s3cret", &[], json!({})),
        ("/search?session=1", &[cookies], json!({ "filter": { "session": "1" }, "others": { "lang": "de" } })),
    ] {
        let answer = server.send(&format!("GET {path}"), headers, "").await;
        assert_eq!((answer.status, answer.json()), (200, expected), "{path} {headers:?}");
    }
}

#[tokio::test]
async fn a_quoted_text_in_a_header_is_one() {
    let text = json!({ "type": "string" });
    let tags = json!({ "type": "array", "items": text });
    let scope = json!({ "type": "object", "properties": { "age": { "type": "integer" }, "private": text } });
    let mut binding = HttpBinding::owned("GET", "/quoted");
    let exploded = HttpParameter::header("X-Scope").with_style(ParameterStyle::Simple, true);
    binding.parameters = vec![HttpParameter::header("X-Tags"), exploded].into();
    let registry = Registry::new();
    registry.register(echo("quoted", binding, json!({ "X-Tags": tags, "X-Scope": scope }))).unwrap();
    let mut binding = HttpBinding::owned("POST", "/parts");
    let mut parts = HttpBody::new("multipart/form-data");
    parts.fields = vec![HttpField::new("tags").with_style(ParameterStyle::Form, false)].into();
    binding.bodies = vec![parts].into();
    let body = json!({ "type": "object", "properties": { "tags": tags } });
    registry.register(echo("parts", binding, json!({ "body": body }))).unwrap();
    let specs = registry.list();
    let server = serve(HttpServer::new(registry)).await;
    let quoted = json!({ "X-Tags": [r#""a,b""#, r#""c""#] });
    let scoped = json!({ "X-Scope": { "age": 7, "private": r#""x,y""# } });
    for (headers, expected) in [
        (&[r#"x-tags: "a,b", "c""#][..], quoted.clone()),
        (&[r#"x-tags: "a,b""#, r#"x-tags: "c""#], quoted.clone()),
        (&[r#"x-tags: W/"a\",b",c"#], json!({ "X-Tags": [r#"W/"a\",b""#, "c"] })),
        (&[r#"x-tags: c,"a,b"#], json!({ "X-Tags": ["c", r#""a,b"#] })),
        (&[r#"x-scope: private="x,y", age=7"#], scoped.clone()),
    ] {
        let answer = server.send("GET /quoted", headers, "").await;
        assert_eq!((answer.status, answer.json()), (200, expected), "{headers:?}");
    }
    // As our client sends it.
    let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
    let caller = Registry::new();
    caller.register_all(client.bind(specs).unwrap()).unwrap();
    for input in [quoted, scoped] {
        assert_eq!(caller.call("read.quoted", input.clone()).await.unwrap().into_data(), input);
    }
    // A part is no header.
    let part = "--b\r\ncontent-disposition: form-data; name=\"tags\"\r\n\r\n\"a,b\"\r\n--b--\r\n";
    let answer = server.send("POST /parts", &["content-type: multipart/form-data; boundary=b"], part).await;
    assert_eq!((answer.status, answer.json()), (200, json!({ "body": { "tags": ["\"a", "b\""] } })));
}

#[tokio::test]
async fn cookies_of_their_own_syntax_have_no_escapes() {
    let cookie = |name: &'static str| HttpParameter::owned(ParameterLocation::Cookie, name);
    let mut binding = HttpBinding::owned("GET", "/raw");
    binding.parameters = vec![cookie("token").with_reserved(), cookie("other")].into();
    binding.responses = vec![HttpResponse::new(StatusRange::Exact(200), "application/json")].into();
    let text = json!({ "type": "string" });
    let registry = Registry::new();
    registry.register(echo("raw", binding, json!({ "token": text, "other": text }))).unwrap();
    let specs = registry.list();
    let server = serve(HttpServer::new(registry)).await;
    for (value, token, other) in [
        ("abc%3D%3D", "abc%3D%3D", "abc=="),
        ("100%", "100%", "100%"),
        ("%41%2", "%41%2", "A%2"),
        ("%25", "%25", "%"),
        // What no cookie can hold is escaped all the same.
        ("a%20b%2C%22%3b%5C%C3%A9", "a b,\";\\é", "a b,\";\\é"),
    ] {
        let answer = server.send("GET /raw", &[&format!("cookie: token={value}; other={value}")], "").await;
        assert_eq!((answer.status, answer.json()), (200, json!({ "token": token, "other": other })), "{value}");
    }
    // As our client sends it.
    let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
    let caller = Registry::new();
    caller.register_all(client.bind(specs).unwrap()).unwrap();
    for token in ["abc%3D%3D", "50 %, \"é\"; a\\b=c"] {
        let came = caller.call("read.raw", json!({ "token": token, "other": token })).await.unwrap().into_data();
        assert_eq!(came, json!({ "token": token, "other": token }));
    }
    // OpenAPI 3.1 does not have the style.
    let document = server.get("/openapi.json").await.json();
    let parameters = document["paths"]["/raw"]["get"]["parameters"].clone();
    assert_eq!((&document["openapi"], &parameters[0]["style"]), (&json!("3.2.0"), &json!("cookie")), "{parameters}");
}

#[tokio::test]
async fn an_upload_with_a_fault_is_told_of_it() {
    let options = HttpServerOptions::new().with_max_body(5).with_max_upload(Some(20));
    let server = serve(HttpServer::new(registry()).with_options(options)).await;
    let bytes = "content-type: application/octet-stream";
    for (path, body, status, pointers) in [
        ("/files?owner=ann", "0123456789", 200, vec![]),
        ("/files?owner=ann&copies=2", "0123456789", 200, vec![]),
        ("/files", "0123456789", 422, vec!["/owner"]),
        ("/files?copies=x", "0123456789", 422, vec!["/owner", "/copies"]),
        ("/files?owner=a&owner=b&copies=300", "0123456789", 422, vec!["/owner", "/copies"]),
        ("/files?owner=ann", "0123456789012345678901", 413, vec![]),
        // What the schema of the body asks is not asked of what stands in its place.
        ("/long?copies=x", "0123456789", 422, vec!["/copies"]),
    ] {
        let answer = server.send(&format!("POST {path}"), &[bytes], body).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        if status == 422 {
            let violations = answer.problem()["violations"].clone();
            let mut found: Vec<_> =
                violations.as_array().unwrap().iter().map(|told| told["pointer"].as_str().unwrap()).collect();
            found.sort_unstable_by_key(|pointer| std::cmp::Reverse(*pointer));
            assert_eq!(found, pointers, "{path}: {violations}");
        }
    }
}

#[tokio::test]
async fn a_body_is_of_its_content_type() {
    const JSON: &str = "application/json";
    const FORM: &str = "application/x-www-form-urlencoded";
    let of = |kind: &str| {
        let properties = json!({ "id": { "type": "integer", "readOnly": true }, "n": { "$ref": format!("#/components/schemas/{kind}") } });
        json!({ "schema": { "type": "object", "required": ["id", "n"], "properties": properties } })
    };
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "t", "version": "1" },
        "paths": { "/notes": { "post": {
            "operationId": "notes",
            "requestBody": { "required": true, "content": { JSON: of("Number"), FORM: of("Text") } },
            "responses": { "200": { "description": "", "content": { JSON: {} } } },
        } } },
        "components": { "schemas": { "Number": { "type": "integer" }, "Text": { "type": "string" } } },
    });
    let (api, _) = read(&document, &ReadOptions::new().with_namespace("read")).unwrap();
    let registry = Registry::new();
    for spec in api.operations {
        registry
            .register(Registration::new(spec, Handler::dynamic(|input: Value, _| async move { Ok(input) })))
            .unwrap();
    }
    let server = serve(HttpServer::new(registry)).await;
    let post = async |path: &str, kind: &str, body: &str| {
        server.send(&format!("POST {path}"), &[&format!("content-type: {kind}")], body).await
    };
    let by_id = |kind: &str, n: Value| json!({ "body": { "n": n }, "contentType": kind }).to_string();
    // A text in the form stays a text, even if the schema of the other content type would make it a number.
    for (kind, body, n) in [(JSON, r#"{"n":7}"#, json!(7)), (FORM, "n=7", json!("7")), (FORM, "n=x", json!("x"))] {
        let expected = json!({ "body": { "n": n }, "contentType": kind });
        let answer = post("/notes", kind, body).await;
        assert_eq!((answer.status, answer.json()), (200, expected.clone()), "{kind} {body}");
        let answer = post("/operations/read/notes", JSON, &by_id(kind, n)).await;
        assert_eq!((answer.status, answer.json()), (200, expected), "{kind} {body}");
    }
    for (path, body, kind, other) in [
        ("/notes", r#"{"n":"7"}"#.to_owned(), JSON, FORM),
        ("/operations/read/notes", by_id(JSON, json!("7")), JSON, FORM),
        ("/operations/read/notes", by_id(FORM, json!(7)), FORM, JSON),
    ] {
        let answer = post(path, JSON, &body).await;
        assert_eq!(answer.status, 422, "{path} {body}: {answer:?}");
        let violations = answer.problem()["violations"].clone();
        let message = format!(
            "the body does not match the schema of `{kind}`, but that of `{other}`: choose that content type, or change the body"
        );
        assert_eq!(violations[0], json!({ "pointer": "/body", "message": message }), "{path} {body}");
        assert_eq!((&violations[1]["pointer"], violations.as_array().unwrap().len()), (&json!("/body/n"), 2));
    }
    // A body that matches the schema of no content type.
    let body = json!({ "body": { "n": true }, "contentType": JSON }).to_string();
    let answer = post("/operations/read/notes", JSON, &body).await;
    let message = format!(
        "the body does not match the schema of `{JSON}`: change it, or leave the content type out if another one is meant"
    );
    assert_eq!((answer.status, &answer.problem()["violations"][0]["message"]), (422, &json!(message)));
}

#[tokio::test]
async fn a_body_that_its_content_type_allows_is_taken() {
    const JSON: &str = "application/json";
    const FORM: &str = "application/x-www-form-urlencoded";
    const LINES: &str = "application/x-ndjson";
    const FIRST: &str = "application/json;v=1";
    let object = |name: &str| {
        let properties = json!({ name: { "type": "integer" } });
        json!({ "schema": { "type": "object", "required": [name], "properties": properties } })
    };
    let of = |name: &str, content: Value| {
        json!({ "post": {
            "operationId": name,
            "requestBody": { "content": content },
            "responses": { "200": { "description": "", "content": { JSON: {} } } },
        } })
    };
    let base = json!({ "allOf": [{ "$ref": "#/components/schemas/Base" }], "required": ["id", "name"] });
    let more = json!({
        "allOf": [
            { "$ref": "#/components/schemas/Closed" },
            { "type": "object", "properties": { "b": { "type": "string" } } },
        ],
    });
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "t", "version": "1" },
        "paths": {
            "/given": of("given", json!({ JSON: { "schema": base }, FORM: object("n") })),
            "/more": of("more", json!({ JSON: { "schema": more }, FORM: object("n") })),
            "/nothing": of("nothing", json!({ JSON: { "schema": { "type": ["object", "null"] } }, FORM: object("n") })),
            "/versions": of("versions", json!({ FIRST: object("a"), "application/json;v=2": object("b"), "text/xml": {} })),
            "/lines": of("lines", json!({ JSON: { "schema": { "type": "array" } }, LINES: {} })),
        },
        "components": { "schemas": {
            "Base": {
                "type": "object",
                "properties": { "id": { "type": "integer", "readOnly": true }, "name": { "type": "string" } },
            },
            "Closed": { "type": "object", "properties": { "a": { "type": "string" } }, "additionalProperties": false },
        } },
    });
    let (api, _) = read(&document, &ReadOptions::new().with_namespace("read")).unwrap();
    let registry = Registry::new();
    for spec in api.operations {
        registry
            .register(Registration::new(spec, Handler::dynamic(|input: Value, _| async move { Ok(input) })))
            .unwrap();
    }
    let server = serve(HttpServer::new(registry)).await;
    let by_id = async |name: &str, kind: &str, body: &Value| {
        let input = json!({ "body": body, "contentType": kind });
        server.post(&format!("/operations/read/{name}"), &input.to_string()).await
    };
    for (name, kind, body) in [
        // Only responses have the `id`, as another part of the schema says.
        ("given", JSON, json!({ "name": "x" })),
        // Another part of the schema describes `b`.
        ("more", JSON, json!({ "a": "1", "b": "2" })),
        // There is no body.
        ("nothing", FORM, Value::Null),
        // Content types that differ only in parameters are one choice.
        ("versions", FIRST, json!({ "a": 1 })),
        ("versions", FIRST, json!({ "b": 1 })),
        // Lines without a schema are a text or a list.
        ("lines", LINES, json!([{ "a": 1 }, {}])),
        ("lines", LINES, json!("{}")),
    ] {
        let answer = by_id(name, kind, &body).await;
        assert_eq!(answer.status, 200, "{name} {body}: {answer:?}");
        assert_eq!(answer.json()["body"], body, "{name}");
        if kind.starts_with(JSON) {
            let answer = server.post(&format!("/{name}"), &body.to_string()).await;
            assert_eq!((answer.status, &answer.json()["body"]), (200, &body), "{name} {body}");
        }
    }
    // The error suggests a content type only if the input can name it.
    for (body, advice) in [
        (json!({ "a": 1 }), format!(", but that of `{FIRST}`: choose that content type, or change the body")),
        (json!({ "b": 1 }), ": change it, or leave the content type out if another one is meant".to_owned()),
    ] {
        let answer = by_id("versions", "text/xml", &body).await;
        let message = format!("the body does not match the schema of `text/xml`{advice}");
        assert_eq!(answer.status, 422, "{body}: {answer:?}");
        assert_eq!(answer.problem()["violations"][0], json!({ "pointer": "/body", "message": message }));
    }
}

#[tokio::test]
async fn a_part_of_any_value_is_no_file_in_the_document() {
    let binary = json!({ "type": "string", "format": "binary" });
    let parts = json!({ "type": "object", "properties": { "any": { "description": "d" }, "file": binary } });
    let reference = json!({ "$ref": "#/components/schemas/Parts" });
    let post = |name: &str, schema: &Value| {
        let content = json!({ "multipart/form-data": { "schema": schema } });
        let responses = json!({ "204": { "description": "" } });
        json!({ "post": { "operationId": name, "requestBody": { "content": content }, "responses": responses } })
    };
    let document = json!({
        "openapi": "3.0.3",
        "paths": { "/inside": post("inside", &parts), "/named": post("named", &reference) },
        "components": { "schemas": { "Parts": parts } },
    });
    let options = ReadOptions::new().with_namespace("read");
    let (api, _) = read(&document, &options).unwrap();
    let echo =
        |spec: OperationSpec| Registration::new(spec, Handler::dynamic(|input: Value, _| async move { Ok(input) }));
    let registry = Registry::new();
    registry.register_all(api.operations.into_iter().map(echo).collect::<Vec<_>>()).unwrap();
    // Since 3.1, a part without a type is a file.
    let document = serve(HttpServer::new(registry)).await.get("/openapi.json").await.json();
    let schema = |path: &str| {
        let body = &document["paths"][path]["post"]["requestBody"];
        body["content"]["multipart/form-data"]["schema"].clone()
    };
    let any = json!({ "description": "d", "type": ["array", "boolean", "null", "number", "object", "string"] });
    let parts = json!({ "type": "object", "properties": { "any": any, "file": binary } });
    assert_eq!((schema("/inside"), schema("/named")), (parts.clone(), reference));
    assert_eq!(document["components"]["schemas"]["Parts"], parts);
    let (again, _) = read(&document, &options).unwrap();
    let bodies = again.operations.iter().map(|spec| {
        let input = spec.input.to_value().unwrap();
        (spec.id.to_string(), input["properties"]["body"].clone())
    });
    let expected = [("read.inside", parts.clone()), ("read.named", json!({ "$ref": "#/$defs/Parts" }))];
    assert_eq!(bodies.collect::<Vec<_>>(), expected.map(|(id, body)| (id.to_owned(), body)));
    assert_eq!(*again.definitions.get("Parts").unwrap().schema.to_value().unwrap(), parts);
}
