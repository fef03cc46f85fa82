//! What a redirect asks for and what it gets to see.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::BodyExt;
use url::Url;

use super::{Applied, Label, Sent, send};
use crate::CallError;
use crate::http::config::Settings;
use crate::http::fake::{Fake, respond};
use crate::http::request::request;
use crate::http::{HttpConfig, RequestBody};

/// One request as a server saw it: method, URL, header names and body.
type Seen = (Method, String, Vec<String>, String);

fn run(method: Method, redirects: &'static [(u16, &'static str)], limit: usize) -> (Vec<Seen>, Result<u16, CallError>) {
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let log = seen.clone();
    let service = Fake(move |request: Request<RequestBody>| {
        let (parts, body) = request.into_parts();
        let body = body.collect().now_or_never().unwrap().unwrap().to_bytes();
        let names = parts.headers.keys().map(ToString::to_string).collect();
        let body = String::from_utf8(body.to_vec()).unwrap();
        let mut log = log.lock().unwrap();
        log.push((parts.method, parts.uri.to_string(), names, body));
        match redirects.get(log.len() - 1) {
            Some((status, location)) => respond(*status, &[("location", *location)], b"ignored"),
            None => respond(200, &[], b""),
        }
    });
    let settings = Settings::new(HttpConfig::new().with_service(service).with_redirects(limit)).unwrap();
    let headers = ["accept", "authorization", "content-type", "cookie", "x-api-key"]
        .map(|name| (HeaderName::from_static(name), HeaderValue::from_static("v")));
    let url = Url::parse("https://h.test/a?b#c").unwrap();
    let body = RequestBody::from(bytes::Bytes::from_static(b"body"));
    let first = request(method, &url, headers.into_iter().collect(), body).unwrap();
    let (nobody, label, mut sent) = (Applied::default(), Label::default(), Sent::default());
    let result = send(&settings, first, &nobody, &label, &mut sent).now_or_never().unwrap();
    let result = result.map(|answer| answer.status().as_u16()).map_err(|failed| failed.error);
    let seen = seen.lock().unwrap().clone();
    (seen, result)
}

fn names(seen: &Seen) -> Vec<&str> {
    seen.2.iter().map(String::as_str).collect()
}

#[test]
fn methods_and_bodies() {
    let table = [
        (Method::POST, 301, Method::GET),
        (Method::POST, 302, Method::GET),
        (Method::PUT, 302, Method::PUT),
        (Method::PUT, 303, Method::GET),
        (Method::HEAD, 303, Method::HEAD),
        (Method::GET, 301, Method::GET),
        (Method::POST, 307, Method::POST),
        (Method::DELETE, 308, Method::DELETE),
    ];
    for (method, status, expected) in table {
        let redirects: &'static [(u16, &str)] = Box::leak(Box::new([(status, "/new?x=1")]));
        let (seen, result) = run(method.clone(), redirects, 10);
        assert_eq!(result.unwrap(), 200);
        let [_, (found, url, _, body)] = seen.as_slice() else { unreachable!() };
        assert_eq!((found, url.as_str()), (&expected, "https://h.test/new?x=1"), "{method} after {status}");
        let changed = method != expected;
        assert_eq!(body, if changed { "" } else { "body" });
        assert_eq!(names(&seen[1]).contains(&"content-type"), !changed);
        assert!(names(&seen[1]).contains(&"authorization"), "the host is the same");
    }
}

#[test]
fn strangers_see_no_credentials() {
    for stranger in [
        "https://other.test/",
        "//other.test/",
        "http://h.test/",
        "https://h.test:8443/",
        "https://h.test.evil.test/",
        "https://h.test@evil.test/",
        "\\\\evil.test",
    ] {
        let redirects: &'static [(u16, &str)] = Box::leak(Box::new([(307, stranger), (307, "https://h.test/home")]));
        let (seen, result) = run(Method::POST, redirects, 10);
        assert_eq!(result.unwrap(), 200);
        assert_eq!(names(&seen[1]), ["accept", "content-type"], "{stranger}");
        assert!(!seen[1].1.contains('@'));
        assert_eq!(names(&seen[2]), ["accept", "content-type"], "nor are they given back");
    }
    for same in ["https://h.test:443/x", "https://H.TEST/x", "x", "?y", "https://u:p@h.test/x"] {
        let redirects: &'static [(u16, &str)] = Box::leak(Box::new([(307, same)]));
        let (seen, _) = run(Method::POST, redirects, 10);
        assert_eq!(names(&seen[1]).len(), 5, "{same}");
    }
}

#[test]
fn ends() {
    const LOOP: &[(u16, &str)] = &[(302, "/a"); 50];
    let (seen, result) = run(Method::GET, LOOP, 10);
    assert_eq!(seen.len(), 11);
    assert_eq!(result.unwrap_err().message(), "the server redirected more than 10 times");
    assert_eq!(run(Method::GET, LOOP, 0).1.unwrap(), 302);
    assert_eq!(run(Method::GET, &[(304, "/b")], 10).1.unwrap(), 304);
    for nowhere in ["file:///etc/passwd", "ftp://h.test/", "http://", "https://[::1", "data:,x", "javascript:0"] {
        let redirects: &'static [(u16, &str)] = Box::leak(Box::new([(302, nowhere)]));
        let (seen, result) = run(Method::GET, redirects, 10);
        assert_eq!(seen.len(), 1);
        assert!(result.unwrap_err().message().starts_with("the server redirected to"), "{nowhere}");
    }
}
