//! The requests after a redirect, and what they reveal.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::BodyExt;
use serde_json::json;
use url::Url;

use super::{Label, Sent, send};
use crate::http::config::Checked;
use crate::http::fake::{Fake, respond};
use crate::http::send::request;
use crate::http::{Auth, HttpClient, HttpConfig, RequestBody};
use crate::{
    CallError, HttpBinding, OperationSpec, ParameterLocation, SecurityKind, SecurityRequirement, SecurityScheme,
};

/// One request as a server saw it: method, URL, header names and body.
type Seen = (Method, String, Vec<String>, String);

fn run(method: Method, redirects: &'static [(u16, &'static str)], limit: usize) -> (Vec<Seen>, Result<u16, CallError>) {
    run_with(method, redirects, HttpConfig::new().with_redirects(limit).with_bodies_to_other_origins())
}

fn run_with(
    method: Method,
    redirects: &'static [(u16, &'static str)],
    config: HttpConfig,
) -> (Vec<Seen>, Result<u16, CallError>) {
    let names = ["accept", "authorization", "content-type", "cookie", "x-api-key"];
    run_from("https://h.test/a?b#c", &names, method, redirects, config)
}

/// A request with headers of these names, by a client whose key is in `X-API-Key`.
fn run_from(
    url: &str,
    names: &[&'static str],
    method: Method,
    redirects: &'static [(u16, &'static str)],
    config: HttpConfig,
) -> (Vec<Seen>, Result<u16, CallError>) {
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
    let Checked { settings, credentials } =
        Checked::new(config.with_auth(Auth::api_key("v")).with_service(service)).unwrap();
    let plan = credentials.plan("t.x", &HttpBinding::new("GET", "/")).unwrap();
    let credentials = plan.apply(&settings, None).now_or_never().unwrap().unwrap();
    let headers = names.iter().map(|name| (HeaderName::from_static(name), HeaderValue::from_static("v")));
    let body = RequestBody::from(bytes::Bytes::from_static(b"body"));
    let first = request(method, &Url::parse(url).unwrap(), headers.collect(), body).unwrap();
    let (label, mut sent) = (Label::default(), Sent::default());
    let result = send(&settings, first, &credentials, &label, &mut sent).now_or_never().unwrap();
    let result = result.map(|answer| answer.status().as_u16()).map_err(|failed| failed.error);
    let seen = seen.lock().unwrap().clone();
    (seen, result)
}

fn names(seen: &Seen) -> Vec<&str> {
    let mut names: Vec<&str> = seen.2.iter().map(String::as_str).collect();
    names.sort_unstable();
    names
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
        // It changes nothing, and has a body.
        let (seen, result) = run(Method::from_bytes(b"QUERY").unwrap(), redirects, 10);
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
fn what_makes_a_change_safe_goes_with_it() {
    let config = || HttpConfig::new().with_bodies_to_other_origins();
    let names_of = ["authorization", "content-encoding", "idempotency-key", "if-match", "last-event-id", "prefer"];
    let (seen, result) = run_from("https://h.test/a", &names_of, Method::POST, &[(307, "https://g.test/b")], config());
    assert_eq!((result.unwrap(), names(&seen[1])), (200, names_of[1..].to_vec()));

    // Without a header that no standard describes, the request may do something else.
    let dry = ["authorization", "traceparent", "x-api-key", "x-dry-run"];
    let run = |url: &str, method: Method, redirects: &'static [(u16, &'static str)]| {
        run_from(url, &dry, method, redirects, config())
    };
    let (seen, result) = run("https://h.test/a", Method::DELETE, &[(307, "https://g.test/b")]);
    let error = result.unwrap_err();
    assert!(error.message().contains("DELETE") && error.message().contains("`x-dry-run`"), "{error}");
    assert!(error.message().contains("`g.test`") && seen.len() == 1, "{error}");
    // What only reads goes on without it, as does a request that was carried out.
    for (method, status) in [(Method::GET, 302), (Method::POST, 303)] {
        let redirects: &'static [(u16, &str)] = Box::leak(Box::new([(status, "https://g.test/b")]));
        let (seen, result) = run("https://h.test/a", method, redirects);
        assert_eq!((result.unwrap(), names(&seen[1]).len()), (200, 0));
    }

    // Headers about the connection to the first host say nothing about the request.
    let (seen, result) =
        run_from("https://h.test/a", &["connection", "prefer"], Method::DELETE, &[(307, "https://g.test/b")], config());
    assert_eq!((result.unwrap(), names(&seen[1])), (200, vec!["prefer"]));

    // The same host, by `https`, gets all but credentials, and the next host does not get them from there.
    let (seen, result) = run("http://h.test/a", Method::DELETE, &[(308, "https://h.test/a")]);
    assert_eq!((result.unwrap(), names(&seen[1])), (200, vec!["traceparent", "x-dry-run"]));
    let (seen, result) =
        run("http://h.test/a", Method::DELETE, &[(308, "https://h.test/a"), (308, "https://g.test/a")]);
    assert!(result.unwrap_err().message().contains("`x-dry-run`") && seen.len() == 2);
}

#[test]
fn a_parameter_of_the_server_stays() {
    let uris_of = |key: &str, location: &'static str| {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = seen.clone();
        let service = Fake(move |request: Request<RequestBody>| {
            let mut log = log.lock().unwrap();
            log.push(request.uri().to_string());
            if log.len() == 1 { respond(302, &[("location", location)], b"") } else { respond(200, &[], b"") }
        });
        let kind = SecurityKind::ApiKey { location: ParameterLocation::Query, name: "token".into() };
        let mut binding = HttpBinding::new("GET", "/a?token=theirs");
        binding.security = vec![SecurityRequirement { schemes: vec![SecurityScheme::new("key", kind)].into() }].into();
        let config = HttpConfig::new().with_base_url("https://h.test").with_auth(Auth::api_key(key));
        let client = HttpClient::new(config.with_service(service)).unwrap();
        client.add([OperationSpec::query("t.x").with_http(binding)]).unwrap();
        client.call("t.x", json!({})).now_or_never().unwrap().unwrap();
        seen.lock().unwrap().clone()
    };
    for (location, expected) in [
        ("/file?token=one-time&x=1", "https://h.test/file?token=one-time&x=1"),
        ("/file?x=1", "https://h.test/file?x=1&token=hush"),
        ("/file?x=1&token=hush", "https://h.test/file?x=1&token=hush"),
        ("https://cdn.test/file?token=signed&x=1", "https://cdn.test/file?token=signed&x=1"),
        // The key, which a server repeats, goes to no other.
        ("https://cdn.test/file?token=hush&x=1", "https://cdn.test/file?x=1"),
        ("https://cdn.test/file?token=hush", "https://cdn.test/file"),
    ] {
        assert_eq!(uris_of("hush", location), ["https://h.test/a?token=hush", expected], "{location}");
    }
    // Nor where the server does not escape what a form would read as a blank.
    for location in ["https://cdn.test/file?token=ab+c=", "https://cdn.test/file?token=ab%2Bc%3D"] {
        let expected = ["https://h.test/a?token=ab%2Bc%3D", "https://cdn.test/file"];
        assert_eq!(uris_of("ab+c=", location), expected, "{location}");
    }
}

#[test]
fn a_cookie_may_make_a_change_safe() {
    let run = |url: &str, method: Method, redirects: &'static [(u16, &'static str)]| {
        run_from(url, &["accept", "cookie"], method, redirects, HttpConfig::new().with_bodies_to_other_origins())
    };
    let upgrade: &[(u16, &str)] = &[(308, "https://h.test/a")];
    for to in [upgrade, &[(307, "https://g.test/a")]] {
        let (seen, result) = run("http://h.test/a", Method::DELETE, to);
        let error = result.unwrap_err();
        assert!(error.message().contains("DELETE") && error.message().contains("`cookie`"), "{error}");
        assert_eq!(seen.len(), 1);
    }
    // What only reads goes on without it.
    let (seen, result) = run("http://h.test/a", Method::GET, upgrade);
    assert_eq!((result.unwrap(), names(&seen[1])), (200, vec!["accept"]));

    // Nothing is lost with a cookie that is the key of the client: the next server asks for its own.
    let mut binding = HttpBinding::new("DELETE", "/");
    let kind = SecurityKind::ApiKey { location: ParameterLocation::Cookie, name: "sid".into() };
    binding.security = vec![SecurityRequirement { schemes: vec![SecurityScheme::new("key", kind)].into() }].into();
    let config = HttpConfig::new().with_auth(Auth::api_key("v")).with_service(Fake(|_| respond(200, &[], b"")));
    let Checked { settings, credentials } = Checked::new(config).unwrap();
    let credentials =
        credentials.plan("t.x", &binding).unwrap().apply(&settings, None).now_or_never().unwrap().unwrap();
    for (cookie, expected) in
        [("sid=v", true), ("sid=v; mode=dry", false), ("mode=dry", false), ("sid2=v", false), ("sid=v;mode=dry", false)]
    {
        let headers = [(http::header::COOKIE, HeaderValue::from_static(cookie))].into_iter().collect();
        assert_eq!(credentials.has_all_cookies(&headers), expected, "{cookie}");
    }
    assert!(credentials.has_all_cookies(&http::HeaderMap::new()));
}

#[test]
fn conditions_are_for_the_change_alone() {
    let names_of = ["if-match", "content-encoding", "prefer"];
    let run = |method| run_from("https://h.test/a", &names_of, method, &[(303, "/b")], HttpConfig::new());
    assert_eq!(names(&run(Method::PUT).0[1]), ["prefer"]);
    assert_eq!(names(&run(Method::GET).0[1]), ["if-match", "prefer"]);
}

#[test]
fn digests_go_with_the_body() {
    let names_of = ["accept", "content-digest", "content-md5", "digest", "last-modified", "repr-digest"];
    let run = |redirects: &'static [(u16, &'static str)]| {
        run_from("https://h.test/a", &names_of, Method::POST, redirects, HttpConfig::new())
    };
    assert_eq!(names(&run(&[(303, "/b")]).0[1]), ["accept"]);
    assert_eq!(names(&run(&[(302, "/b")]).0[1]), ["accept"]);
    assert_eq!(names(&run(&[(307, "/b")]).0[1]), names_of);
}

#[test]
fn bodies_stay_where_they_belong() {
    for (status, to, goes) in [
        (307, "https://other.test/", false),
        (308, "https://h.test:8443/", false),
        (308, "http://h.test/", false),
        (307, "https://h.test/x", true),
        // Nothing of the body is sent.
        (303, "https://other.test/", true),
        (302, "https://other.test/", true),
    ] {
        let redirects: &'static [(u16, &str)] = Box::leak(Box::new([(status, to)]));
        let (seen, result) = run_with(Method::POST, redirects, HttpConfig::new());
        assert_eq!((result.is_ok(), seen.len()), (goes, if goes { 2 } else { 1 }), "{status} {to}");
        assert!(result.err().is_none_or(|error| error.message().contains("with_bodies_to_other_origins")));
    }
    let from = |url: &str| Url::parse(url).unwrap();
    assert!(super::is_upgrade(&from("http://h.test/a"), &from("https://h.test/b")));
    for (a, b) in [
        ("http://h.test", "https://g.test"),
        ("http://h.test:81", "https://h.test"),
        ("https://h.test", "http://h.test"),
    ] {
        assert!(!super::is_upgrade(&from(a), &from(b)), "{a} {b}");
    }
}

#[test]
fn servers_lead_to_no_private_address() {
    let (seen, result) = run_with(Method::GET, &[(302, "http://169.254.169.254/latest")], HttpConfig::new());
    assert_eq!(seen.len(), 1);
    assert!(result.unwrap_err().message().contains("with_destinations"));
    let any = HttpConfig::new().with_destinations(crate::http::Destinations::any()).with_bodies_to_other_origins();
    assert_eq!(run_with(Method::GET, &[(302, "http://10.0.0.1/")], any).0.len(), 2);
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
