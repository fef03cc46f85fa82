//! The page `/docs`: where it is, its headers, and what it leaves to others. `tests/page` reads it in a browser.

use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{HttpBinding, HttpBody};
use ops_runtime::serve::HttpServer;
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{Registry, operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::fixture::{registry, serve};

static OWN: OperationSpec = OperationSpec::query("own.style").with_http(HttpBinding::new("GET", "/docs/style.css"));

#[tokio::test]
async fn the_page_is_there_if_it_is_asked_for() {
    for (server, status) in [
        (HttpServer::new(registry()), 404),
        (HttpServer::new(registry()).with_docs(), 200),
        // Without a document there is nothing to show.
        (HttpServer::new(registry()).with_docs().without_document(), 404),
    ] {
        let server = serve(server).await;
        for path in ["/docs", "/docs/main.js", "/docs/style.css"] {
            assert_eq!(server.get(path).await.status, status, "{path}");
        }
    }
}

#[tokio::test]
async fn its_files_say_what_they_are_and_what_they_may_do() {
    let server = serve(HttpServer::new(registry()).with_docs()).await;
    let page = server.get("/docs").await;
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.body.starts_with("<!doctype html>"), "{}", page.body);
    let script = server.get("/docs/main.js").await;
    assert_eq!(script.header("content-type"), Some("text/javascript; charset=utf-8"));
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                  base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                  trusted-types 'none'";
    for file in [&page, &script] {
        assert_eq!(file.header("content-security-policy"), Some(policy));
        assert_eq!(file.header("cache-control"), Some("no-cache"));
        assert_eq!(file.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
    }
    let tag = page.header("etag").unwrap();
    for (sent, status) in [(tag, 304), ("*", 304), ("\"other\"", 200), (&format!("\"other\", W/{tag}"), 304)] {
        let again = server.send("GET /docs", &[&format!("if-none-match: {sent}")], "").await;
        assert_eq!((again.status, again.header("etag")), (status, Some(tag)), "{sent}");
        assert_eq!(again.body.is_empty(), status == 304, "{sent}");
    }
    let head = server.send("HEAD /docs", &[], "").await;
    assert_eq!((head.status, head.body.as_str(), head.header("etag")), (200, "", Some(tag)));
    let slash = server.get("/docs/").await;
    assert_eq!((slash.status, slash.header("location")), (308, Some("../docs")));
    assert_eq!(server.send("POST /docs", &[], "").await.status, 405);
    for line in ["GET /docs/page.html", "GET /docs/%2e%2e/serve.rs", "GET /docsx"] {
        assert_eq!(server.send(line, &[], "").await.status, 404, "{line}");
    }
}

/// It is read by tools that run no scripts, and shown while the scripts load.
#[tokio::test]
async fn the_page_has_its_title_without_its_scripts() {
    let mut tags = Vec::new();
    for (server, title) in [
        (HttpServer::new(registry()), "Operations"),
        (HttpServer::new(registry()).with_title("Notes & <more>"), "Notes &amp; &lt;more&gt;"),
    ] {
        let page = serve(server.with_docs()).await.get("/docs").await;
        assert!(page.body.contains(&format!("<title>{title}</title>")), "{}", page.body);
        assert!(page.body.contains(&format!("<h1 id=\"title\">{title}</h1>")), "{}", page.body);
        tags.push(page.header("etag").unwrap().to_owned());
    }
    assert_ne!(tags[0], tags[1]);
}

#[tokio::test]
async fn operations_come_first() {
    let registry = registry();
    let own = Handler::dynamic(|_: Value, _| async { Ok(json!("own")) });
    registry.register(Registration::new(&OWN, own)).unwrap();
    let server = serve(HttpServer::new(registry).with_docs()).await;
    assert_eq!(server.get("/docs/style.css").await.body, "\"own\"");
    assert_eq!(server.get("/docs").await.status, 200);
}

#[tokio::test]
async fn nobody_needs_credentials_for_it() {
    let refuse = |_: &http::request::Parts| async {
        Err::<ops_runtime::access::Identity, _>(ops_runtime::serve::Unauthorized::bearer())
    };
    let server = serve(HttpServer::new(registry()).with_docs().with_authenticator(refuse)).await;
    assert_eq!(server.get("/docs").await.status, 200);
    assert_eq!(server.get("/operations/math/add?input=%7B%22a%22%3A1%7D").await.status, 401);
    // Other hosts, and pages of other origins, are refused as for every request.
    let other = server.send("GET /docs", &["origin: https://evil.example"], "").await;
    assert_eq!(other.status, 403);
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Pet {
    age: u32,
}

#[operation(namespace = "own", http = "PUT /pets/{id}")]
async fn put(id: u64, pet: Pet, #[input(header = "X-Sizes")] sizes: Vec<u8>) -> Value {
    json!([id, pet.age, sizes])
}

#[operation(namespace = "own", http = "POST /pets")]
async fn post(name: String, age: u32) -> Value {
    json!([name, age])
}

/// The page shows violations, which have pointers into the input, at the parts of the request.
#[tokio::test]
async fn the_document_says_which_property_a_part_is() {
    let registry = Registry::new();
    registry.register(Put).unwrap();
    registry.register(Post).unwrap();
    let text = OperationSpec::mutation("own.text")
        .with_input(Schema::from(json!({ "type": "object", "properties": { "body": { "type": "string" } } })))
        .with_http(HttpBinding::new("PUT", "/texts").with_bodies(const { &[HttpBody::new("text/plain")] }));
    registry.register(Registration::new(text, Handler::dynamic(|input: Value, _| async { Ok(input) }))).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    let paths = server.get("/openapi.json").await.json()["paths"].clone();
    let put = &paths["/pets/{id}"]["put"];
    let parameters = put["parameters"].as_array().unwrap().iter();
    let parameters: Vec<_> = parameters.map(|own| (own["name"].as_str().unwrap(), own.get("x-ops-property"))).collect();
    assert_eq!(parameters, [("id", None), ("X-Sizes", Some(&json!("sizes")))]);
    assert_eq!(put["requestBody"]["x-ops-property"], "pet");
    // Of a body that is the rest of the input, each property is one of the input.
    assert_eq!(paths["/pets"]["post"]["requestBody"]["x-ops-property"], "");
    assert_eq!(paths["/texts"]["put"]["requestBody"].get("x-ops-property"), None);

    let json = "content-type: application/json";
    for (line, headers, body, expected) in [
        ("PUT /pets/7", vec![json, "x-sizes: 1,x"], r#"{"age":"old"}"#, vec!["/pet/age", "/sizes/1"]),
        ("POST /pets", vec![json], r#"{"name":"Rex","age":"old"}"#, vec!["/age"]),
    ] {
        let problem = server.send(line, &headers, body).await.problem();
        let violations = problem["violations"].as_array().unwrap().iter();
        let mut pointers: Vec<_> = violations.map(|one| one["pointer"].as_str().unwrap()).collect();
        pointers.sort_unstable();
        assert_eq!(pointers, expected, "{problem}");
    }
}
