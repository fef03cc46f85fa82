//! Fetching documents.

use futures_util::FutureExt;
use http::Request;

use crate::http::fake::{Fake, respond};
use crate::http::{Auth, HttpClient, HttpConfig, RequestBody};

fn client() -> HttpClient {
    let service = Fake(|request: Request<RequestBody>| {
        let (headers, uri) = (request.headers(), request.uri());
        let key = headers.get("authorization").is_some();
        match (uri.host().unwrap_or_default(), uri.path()) {
            ("api.test", "/doc") if key => respond(200, &[("content-type", "application/json")], b"{}"),
            ("api.test", "/moved") if key => respond(302, &[("location", "http://docs.test/v2/doc")], b""),
            ("docs.test", "/v2/doc") if !key => respond(200, &[], b"\xEF\xBB\xBFopenapi: 3.1.0"),
            ("docs.test", "/big") => respond(200, &[], &[b'x'; 101]),
            _ => respond(404, &[], b"nothing here"),
        }
    });
    let config = HttpConfig::new().with_base_url("http://api.test/v1").with_auth(Auth::bearer("t"));
    HttpClient::new(config.with_service(service).with_max_response(100)).unwrap()
}

#[test]
fn documents() {
    let fetch = |url| client().fetch(url).now_or_never().unwrap();
    let document = fetch("http://api.test/doc").unwrap();
    assert_eq!(document.text, "{}");
    for url in ["http://api.test/moved", "http://docs.test/v2/doc"] {
        let document = fetch(url).unwrap();
        assert_eq!((document.text.as_str(), document.url.as_str()), ("openapi: 3.1.0", "http://docs.test/v2/doc"));
    }
    assert_eq!(fetch("http://docs.test/none").unwrap_err().message(), "HTTP 404: Not Found");
    assert!(fetch("http://docs.test/big").unwrap_err().message().contains("larger than 100 bytes"));
    assert!(fetch("file:///etc/passwd").is_err());
    assert!(fetch("doc.json").is_err());
}
