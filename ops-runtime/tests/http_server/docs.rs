//! The page `/docs`: where it is, its headers, and what it leaves to others. `tests/page` reads it in a browser.

use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::HttpBinding;
use ops_runtime::serve::HttpServer;
use ops_runtime::spec::OperationSpec;
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
