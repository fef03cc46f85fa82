//! The request for a binding and an input.

use futures_util::FutureExt;
use http::Request;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::encode;
use crate::adapter::Bodies;
use crate::http::config::Checked;
use crate::http::fake::{Fake, respond};
use crate::http::per_call::PerCall;
use crate::http::{Auth, HttpConfig, RequestBody};
use crate::{
    Binding, CallError, HttpBinding, HttpBody, HttpParameter, HttpResponse, Literal, OperationSpec, ParameterLocation,
    ParameterStyle, SecurityKind, SecurityRequirement, SecurityScheme, ServerVariable, StatusRange,
};

/// No request is sent, so the service that would send it does not matter.
fn offline(config: HttpConfig) -> HttpConfig {
    config.with_service(Fake(|_| respond(200, &[], b"")))
}

fn config() -> HttpConfig {
    offline(HttpConfig::new()).with_base_url("http://h.test/base/")
}

fn send(binding: &HttpBinding, config: HttpConfig, input: &Value) -> Result<Request<RequestBody>, CallError> {
    let Checked { settings, credentials } = Checked::new(config)?;
    let mut spec = OperationSpec::query("t.t");
    spec.binding = Binding::Http(binding.clone());
    let mut request = encode(&spec, binding, &settings, input, &Bodies::default(), &PerCall::default())?;
    let plan = credentials.plan("t.t", binding)?;
    plan.apply(&settings, None).now_or_never().unwrap()?.put(&mut request, &http::HeaderMap::new())?;
    Ok(request)
}

fn path(template: &'static str) -> HttpBinding {
    HttpBinding::new("GET", template)
}

fn uri(binding: &HttpBinding, input: &Value) -> Result<String, CallError> {
    Ok(send(binding, config(), input)?.uri().to_string())
}

#[test]
fn paths_and_queries() {
    let table = [
        ("/a", json!({}), "http://h.test/base/a"),
        ("a", json!(null), "http://h.test/base/a"),
        ("", json!({}), "http://h.test/base/"),
        ("/", json!({}), "http://h.test/base/"),
        ("/a/{b}/c", json!({ "b": "x/y?z#w%2e" }), "http://h.test/base/a/x%2Fy%3Fz%23w%252e/c"),
        ("/a/{b}", json!({ "b": "..\\é\n" }), "http://h.test/base/a/..%5C%C3%A9%0A"),
        ("/a/{b}.json", json!({ "b": ".." }), "http://h.test/base/a/...json"),
        ("/a/{b}{c}", json!({ "b": 1, "c": false }), "http://h.test/base/a/1false"),
        ("/a b/%20%zz/ü", json!({}), "http://h.test/base/a%20b/%20%zz/%C3%BC"),
        ("/a?b=1&c=x y#frag", json!({}), "http://h.test/base/a?b=1&c=x%20y"),
        ("/a?b={b}#{b}", json!({ "b": "1&2" }), "http://h.test/base/a?b=1%262"),
        ("/a#x?y", json!({}), "http://h.test/base/a"),
        ("/a?b=%2F%zz&c", json!({}), "http://h.test/base/a?b=%2F%zz&c"),
        ("/a?b={q}&c=1", json!({ "q": "x y&z=/?" }), "http://h.test/base/a?b=x%20y%26z%3D%2F%3F&c=1"),
        ("/a?b={o}&c=1", json!({}), "http://h.test/base/a?c=1"),
        ("/a?c=1&b={o}&d={o}", json!({}), "http://h.test/base/a?c=1"),
        ("/a?c=1&b=x{o}&d=2", json!({ "o": [1, 2] }), "http://h.test/base/a?c=1&b=x1,2&d=2"),
        ("/a?b={o}&x", json!({ "o": null, "p": 1 }), "http://h.test/base/a?x&p=1"),
        ("/a&b/{q}?b={o}", json!({ "q": 1 }), "http://h.test/base/a&b/1"),
        ("/a/{b#c?d}", json!({ "b#c?d": 1 }), "http://h.test/base/a/1"),
        ("/a/{b", json!({}), "http://h.test/base/a/%7Bb"),
        ("//evil.test/{b}", json!({ "b": 1 }), "http://h.test/base//evil.test/1"),
    ];
    for (template, input, expected) in table {
        let queries = const { &[HttpParameter::query("o"), HttpParameter::query("p")] };
        let binding = path(template).with_parameters(queries);
        assert_eq!(uri(&binding, &input).unwrap(), expected, "{template} with {input}");
    }
}

#[test]
fn a_pair_of_the_query_has_all_its_values_or_none() {
    const QUERIES: &[HttpParameter] = &[
        HttpParameter::query("from"),
        HttpParameter::query("to"),
        HttpParameter::query("stream").with_fixed(Literal::Bool(true)),
    ];
    let binding = |template| path(template).with_parameters(QUERIES);
    for (template, input, expected) in [
        ("/r?range={from}-{to}", json!({ "from": "a", "to": "b" }), "/r?range=a-b&stream=true"),
        ("/r?range={from}-{to}", json!({}), "/r?stream=true"),
        ("/r/{id}?range={from}-{to}&x", json!({ "id": 1, "to": null }), "/r/1?x&stream=true"),
        ("/r?a={from}&b={to}", json!({ "to": "b" }), "/r?b=b&stream=true"),
        // What the operation sets stands where the template says, and once.
        ("/r?s={stream}&x", json!({ "from": "a" }), "/r?s=true&x&from=a"),
    ] {
        let expected = format!("http://h.test/base{expected}");
        assert_eq!(uri(&binding(template), &input).unwrap(), expected, "{template} with {input}");
    }
    for (template, input, absent) in [
        ("/r?range={from}-{to}", json!({ "from": "a" }), "to"),
        ("/r?range={from}-{to}", json!({ "to": "b", "from": null }), "from"),
        ("/r?range={from}-{to}&x", json!({ "from": "a" }), "to"),
        ("/r?range={id}-{to}", json!({ "id": 1 }), "to"),
    ] {
        let error = uri(&binding(template), &input).unwrap_err();
        let told = format!("the query needs a value for `{absent}`, because the same pair has another value");
        assert_eq!(error.message(), told, "{template} with {input}");
        assert_eq!(error.details()["violations"][0]["pointer"], format!("/{absent}"));
    }
}

#[test]
fn what_only_the_path_names_stands_beside_a_stream() {
    let binding = HttpBinding::new("PUT", "/files/{id}/{q}?at={at}")
        .with_parameters(const { &[HttpParameter::path("id"), HttpParameter::query("q")] })
        .with_bodies(const { &[HttpBody::new("application/octet-stream")] });
    let mut bodies = Bodies::default();
    let body = bodies.put(crate::Body::stream(futures_util::stream::empty()));
    let input = json!({ "id": 7, "q": "x", "at": [1, 2], "body": body });
    let (spec, settings) = (OperationSpec::mutation("t.t"), Checked::new(config()).unwrap().settings);
    let request = encode(&spec, &binding, &settings, &input, &bodies, &PerCall::default()).unwrap();
    assert_eq!(request.uri(), "http://h.test/base/files/7/x?at=1,2&q=x");
    assert!(!request.body().is_repeatable());
}

#[test]
fn what_has_no_place_in_the_request_is_refused() {
    let binding = path("/a/{b}")
        .with_parameters(
            const { &[HttpParameter::query("q"), HttpParameter::query("on").with_fixed(Literal::Bool(true))] },
        )
        .with_bodies(const { &[HttpBody::new("application/json").with_property("body")] });
    assert_eq!(uri(&binding, &json!({ "b": 1, "q": 2 })).unwrap(), "http://h.test/base/a/1?q=2&on=true");
    for (other, meant) in [("Q", ": did you mean `q`?"), ("on", ""), ("b}", ""), ("x/y", "")] {
        let error = uri(&binding, &json!({ "b": 1, "q": 2, other: null })).unwrap_err();
        let message = format!("`{other}` is not in the input of `t.t`{meant}");
        assert_eq!(error.details()["violations"][0]["message"], message);
        assert_eq!(error.details()["violations"][0]["pointer"], format!("/{}", other.replace('/', "~1")));
    }
    // Each of several is told.
    let error = uri(&binding, &json!({ "b": 1, "x": 2, "y": 3 })).unwrap_err();
    let places = error.details()["violations"].as_array().unwrap().iter().map(|told| told["pointer"].clone());
    assert_eq!(places.collect::<Vec<_>>(), ["/x", "/y"]);
}

#[test]
fn a_value_cannot_leave_its_segment() {
    let table = [
        ("/a/{b}", json!({ "b": ".." }), "/b"),
        ("/a/{b}/c", json!({ "b": "." }), "/b"),
        ("/a/{b}/c", json!({ "b": "" }), "/b"),
        ("/a/{b}{c}", json!({ "b": ".", "c": "." }), "/b"),
        ("/a/.{b}", json!({ "b": "." }), "/b"),
        ("/a/%2E{b}", json!({ "b": "." }), "/b"),
        ("/a/{b}", json!({ "b": null }), "/b"),
        ("/a/{b}", json!({}), "/b"),
        ("/a/{b}", json!({ "b": [] }), "/b"),
        ("/a/{x/y}", json!({}), "/x~1y"),
    ];
    for (template, input, pointer) in table {
        let error = uri(&path(template), &input).unwrap_err();
        assert_eq!(error.code().as_str(), "VALIDATION_ERROR", "{template} with {input}");
        assert_eq!(error.details()["violations"][0]["pointer"], pointer, "{template} with {input}");
    }
    for template in ["/a/../b", "/a/%2e%2E", "/./a"] {
        assert_eq!(uri(&path(template), &json!({})).unwrap_err().code().as_str(), "EXECUTION_ERROR", "{template}");
    }
    assert!(uri(&path("/a"), &json!([1])).is_err());
}

#[test]
fn servers() {
    let binding = path("/a").with_server("https://doc:pw@doc.test:8443/v2?k=1#f");
    let to = |binding: &HttpBinding, config: HttpConfig| send(binding, offline(config), &json!({}));
    let request = to(&binding, HttpConfig::new()).unwrap();
    assert_eq!(request.uri(), "https://doc.test:8443/v2/a?k=1");
    assert!(request.headers().get("authorization").is_none());

    let request = to(&binding, HttpConfig::new().with_base_url("http://ann:p%40w@h.test///")).unwrap();
    assert_eq!(request.uri(), "http://h.test/a");
    assert_eq!(request.headers()["authorization"], "Basic YW5uOnBAdw==");

    let variables = || {
        let mut binding = path("/a").with_server("https://{region}.h.test/{base}");
        let mut region = ServerVariable::new("region", "eu");
        region.values = crate::spec::TextList::new(&["eu", "us"]);
        binding.server_variables = vec![region, ServerVariable::new("base", "v1")].into();
        binding
    };
    assert_eq!(to(&variables(), HttpConfig::new()).unwrap().uri(), "https://eu.h.test/v1/a");
    let set =
        |region: &str| HttpConfig::new().with_server_variable("region", region).with_server_variable("base", "x/y");
    assert_eq!(to(&variables(), set("us")).unwrap().uri(), "https://us.h.test/x/y/a");
    assert_eq!(to(&variables(), set("mars")).unwrap_err().code().as_str(), "VALIDATION_ERROR");
    assert_eq!(to(&variables(), set("mars").with_base_url("http://h.test")).unwrap().uri(), "http://h.test/a");

    for (server, reason) in
        [("/v1", "is relative"), ("ftp://h.test", "no http"), ("http://", "no http"), ("data:,x", "no")]
    {
        let error = to(&path("/a").with_server(server), HttpConfig::new()).unwrap_err();
        assert!(error.message().contains(reason), "{error}");
    }
    assert!(to(&path("/a"), HttpConfig::new()).unwrap_err().message().contains("no base URL"));
    for bad in ["h.test", "/v1", "file:///etc", "mailto:a@b.test", "http://u:s3cret@h:x/"] {
        let error = Checked::new(HttpConfig::new().with_base_url(bad)).err().unwrap();
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}

#[test]
fn headers_cookies_and_the_order_of_authority() {
    let binding = HttpBinding::new("POST", "/a")
        .with_parameters(
            const {
                &[
                    HttpParameter::header("X-Trace"),
                    HttpParameter::header("X-API-Key"),
                    HttpParameter::header("Authorization"),
                    HttpParameter::header("Content-Length"),
                    HttpParameter::header("Transfer-Encoding"),
                    HttpParameter::header("X-Other"),
                    HttpParameter::cookie("sid"),
                    HttpParameter::query("q").with_property("q_2"),
                ]
            },
        )
        .with_bodies(const { &[HttpBody::new("application/json")] })
        .with_responses(const { &[HttpResponse::new(StatusRange::Class(2), "application/json")] });
    let input = json!({
        "X-Trace": [1, 2], "X-API-Key": "theirs", "Authorization": "theirs", "Content-Length": 5,
        "Transfer-Encoding": "chunked", "sid": "a;b", "q_2": 1, "body": null,
    });
    let custom = config()
        .with_auth(Auth::api_key("ours"))
        .with_header("X-Trace", "0")
        .with_header("x-other", "kept")
        .with_header("Cookie", "lang=en")
        .with_header("Content-Type", "text/plain");
    let request = send(&binding, custom, &input).unwrap();
    assert_eq!(request.uri(), "http://h.test/base/a?q=1");
    let mut found: Vec<_> = request.headers().iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap())).collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("accept", "application/json"),
            ("content-type", "application/json"),
            ("cookie", "lang=en; sid=a%3Bb"),
            ("x-api-key", "ours"),
            ("x-other", "kept"),
            ("x-trace", "1,2"),
        ]
    );
    assert!(request.headers()["x-api-key"].is_sensitive());
    assert!(request.headers()["x-other"].is_sensitive());

    for evil in ["a\r\nX-Evil: 1", "a\nb", "a\0b", "\u{7f}"] {
        let error = send(&binding, config(), &json!({ "X-Trace": evil })).unwrap_err();
        assert_eq!(error.details()["violations"][0]["pointer"], "/X-Trace");
        assert!(!error.to_string().contains("Evil"), "the value stays out of the message");
    }
    // The server would get another value.
    for altered in [" a", "a ", "\ta", " "] {
        let error = send(&binding, config(), &json!({ "X-Trace": altered })).unwrap_err();
        assert_eq!(error.message(), "the header `x-trace` cannot carry blanks at the ends of its value");
        assert_eq!(error.details()["violations"][0]["pointer"], "/X-Trace");
    }
    let request = send(&binding, config(), &json!({ "X-Trace": "a b" })).unwrap();
    assert_eq!(request.headers()["x-trace"], "a b");
}

#[test]
fn no_text_is_read_as_two() {
    use ParameterStyle::{Form, PipeDelimited, Simple, SpaceDelimited};
    let binding = path("/a").with_parameters(
        const {
            &[
                HttpParameter::header("X-Tags"),
                HttpParameter::header("X-Scope").with_style(Simple, true),
                HttpParameter::query("spaces").with_style(SpaceDelimited, false),
                HttpParameter::query("pipes").with_style(PipeDelimited, false),
                HttpParameter::query("pairs").with_style(PipeDelimited, true),
                HttpParameter::query("commas").with_style(Form, false),
                HttpParameter::query("open").with_style(Form, false).with_reserved(),
                HttpParameter::query("open_spaces").with_style(SpaceDelimited, false).with_reserved(),
                HttpParameter::query("open_pipes").with_style(PipeDelimited, false).with_reserved(),
            ]
        },
    );
    for (input, pointer) in [
        (json!({ "X-Tags": ["a", "b,c"] }), "/X-Tags/1"),
        (json!({ "X-Tags": ["a "] }), "/X-Tags/0"),
        // The comma is outside of quotation marks, or the quotation does not end.
        (json!({ "X-Tags": [r#""a","b""#] }), "/X-Tags/0"),
        (json!({ "X-Tags": [r#""a,b"#] }), "/X-Tags/0"),
        (json!({ "X-Tags": [r#""a\",b"#] }), "/X-Tags/0"),
        (json!({ "X-Tags": ["c", r#""a"#, r#"b""#] }), "/X-Tags/1"),
        (json!({ "X-Tags": ["5\""] }), "/X-Tags/0"),
        (json!({ "X-Tags": { "5\"": 1 } }), "/X-Tags/5\""),
        (json!({ "X-Tags": { "a,b": 1 } }), "/X-Tags/a,b"),
        (json!({ "X-Scope": { "role": "guest,admin=1" } }), "/X-Scope/role"),
        (json!({ "X-Scope": { "role": "\tguest" } }), "/X-Scope/role"),
        (json!({ "X-Scope": { "role=guest": 1 } }), "/X-Scope/role=guest"),
        (json!({ "spaces": ["new york"] }), "/spaces/0"),
        (json!({ "spaces": { "new york": 1 } }), "/spaces/new york"),
        (json!({ "pipes": ["a", "b|c"] }), "/pipes/1"),
        (json!({ "open": ["a,b"] }), "/open/0"),
        // Escapes in these parameters are sent unchanged, and an escaped delimiter is a delimiter.
        (json!({ "open_spaces": ["new%20york"] }), "/open_spaces/0"),
        (json!({ "open_pipes": ["x", "a%7cb"] }), "/open_pipes/1"),
    ] {
        let error = send(&binding, config(), &input).unwrap_err();
        let told = (error.code().as_str(), &error.details()["violations"][0]["pointer"]);
        assert_eq!(told, ("VALIDATION_ERROR", &json!(pointer)), "{input}");
    }
    for (input, told) in [
        (
            json!({ "X-Tags": ["hush,hush"] }),
            "`X-Tags` has \",\" between its texts, so none of them can contain it outside of quotation marks",
        ),
        (
            json!({ "X-Scope": { "size": "5\"" } }),
            "`X-Scope` has a quoted string without an end, so the next text would be part of it",
        ),
        (json!({ "pipes": ["hush|hush"] }), "`pipes` has \"|\" between its texts, so none of them can contain it"),
        (
            json!({ "open": ["hush,hush"] }),
            "`open` has \",\" between its texts, so none of them can contain it: write `%2C` instead",
        ),
    ] {
        assert_eq!(send(&binding, config(), &input).unwrap_err().message(), told);
    }

    let header = |input: Value| {
        let request = send(&binding, config(), &input).unwrap();
        let text = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        text("x-tags").or(text("x-scope")).unwrap()
    };
    assert_eq!(header(json!({ "X-Tags": "a,b" })), "a,b");
    assert_eq!(header(json!({ "X-Tags": "5\"" })), "5\"");
    assert_eq!(header(json!({ "X-Tags": ["a b", null, "c=d", 1.5] })), "a b,c=d,1.5");
    assert_eq!(header(json!({ "X-Tags": { "a=b": "c" } })), "a=b,c");
    assert_eq!(header(json!({ "X-Tags": [r#"W/"a,b""#, r#""\",""#] })), r#"W/"a,b","\",""#);
    assert_eq!(header(json!({ "X-Scope": { "private": r#""x,y""# } })), r#"private="x,y""#);
    // Nested values are JSON.
    assert_eq!(header(json!({ "X-Tags": [null, ["a", "b"], { "c": 1, "d": 2 }] })), r#"["a","b"],{"c":1,"d":2}"#);
    assert_eq!(header(json!({ "X-Scope": { "role": "a=b", "left": null } })), "role=a=b");
    for (input, query) in [
        (json!({ "spaces": "new york" }), "spaces=new%20york"),
        (json!({ "spaces": ["a,b", "c|d"] }), "spaces=a%2Cb%20c%7Cd"),
        (json!({ "pipes": ["a b", "c,d"] }), "pipes=a%20b%7Cc%2Cd"),
        (json!({ "pairs": ["a|b", "c"] }), "pairs=a%7Cb&pairs=c"),
        (json!({ "commas": ["a,b", "c"] }), "commas=a%2Cb,c"),
        (json!({ "open": "a,b" }), "open=a,b"),
        (json!({ "open": ["a%2Cb", "c"] }), "open=a%2Cb,c"),
        (json!({ "open": [[1, 2], 3] }), "open=[1,2],3"),
        (json!({ "open_pipes": ["a%2Cb", "c"] }), "open_pipes=a%2Cb%7Cc"),
    ] {
        assert_eq!(uri(&binding, &input).unwrap(), format!("http://h.test/base/a?{query}"), "{input}");
    }
}

#[test]
fn no_text_in_the_path_is_read_as_two() {
    use ParameterStyle::{Form, Label, PipeDelimited, SpaceDelimited};
    let binding = path("/a/{at}?s={s}&p={p}&c={c}").with_parameters(
        const {
            &[
                HttpParameter::path("at").with_style(Label, true).with_reserved(),
                HttpParameter::query("s").with_style(SpaceDelimited, false),
                HttpParameter::query("p").with_style(PipeDelimited, false).with_reserved(),
                HttpParameter::query("c").with_style(Form, false).with_reserved(),
            ]
        },
    );
    for (input, pointer) in [
        (json!({ "at": ["1.5", "2"] }), "/at/0"),
        (json!({ "at": { "a": 1.5 } }), "/at/a"),
        (json!({ "at": { "a.b": 1 } }), "/at/a.b"),
        (json!({ "at": 1, "s": ["new york"] }), "/s/0"),
        (json!({ "at": 1, "p": ["a", "b|c"] }), "/p/1"),
    ] {
        let error = uri(&binding, &input).unwrap_err();
        let told = (error.code().as_str(), &error.details()["violations"][0]["pointer"]);
        assert_eq!(told, ("VALIDATION_ERROR", &json!(pointer)), "{input}");
    }
    for (input, expected) in [
        (json!({ "at": 1.5 }), "/a/.1.5"),
        (json!({ "at": ["1,5", 2] }), "/a/.1%2C5.2"),
        (json!({ "at": { "a=b": "c" } }), "/a/.a%3Db=c"),
        // No reserved character stays as it is in a path.
        (json!({ "at": 1, "p": ["a b", "%7C"], "c": ["a,b", "c"] }), "/a/.1?p=a%20b%7C%257C&c=a%2Cb,c"),
    ] {
        assert_eq!(uri(&binding, &input).unwrap(), format!("http://h.test/base{expected}"), "{input}");
    }
}

#[test]
fn credentials_in_the_header_of_cookies_leave_the_others() {
    let binding = path("/a").with_parameters(const { &[HttpParameter::cookie("sid"), HttpParameter::cookie("lang")] });
    let kind = SecurityKind::ApiKey { location: ParameterLocation::Header, name: "Cookie".into() };
    let mut guarded = binding.clone();
    guarded.security = vec![SecurityRequirement { schemes: vec![SecurityScheme::new("key", kind)].into() }].into();
    let by_itself = Auth::api_key("sid=1;b=2").with_header("Cookie");
    for (binding, auth) in [(&binding, by_itself), (&guarded, Auth::api_key("sid=1; b=2"))] {
        let custom = config().with_auth(auth).with_header("Cookie", "tenant=7");
        let request = send(binding, custom, &json!({ "sid": "theirs", "lang": "en" })).unwrap();
        let found: Vec<_> = request.headers().get_all("cookie").iter().collect();
        assert_eq!(found, ["tenant=7; lang=en; sid=1; b=2"]);
        assert!(found[0].is_sensitive());
    }
}

#[test]
fn bindings_that_no_request_can_be_made_of() {
    let header = path("/a").with_parameters(const { &[HttpParameter::header("bad name")] });
    assert!(send(&header, config(), &json!({ "bad name": 1 })).is_err());
    assert!(send(&HttpBinding::new("G T", "/"), config(), &json!({})).is_err());
    // It is the input that makes the URL too long, so no retry helps. The longest of all is sent.
    let of_length =
        |length: usize| uri(&path("/{a}"), &json!({ "a": "x".repeat(length - "http://h.test/base/".len()) }));
    assert_eq!(of_length(65_534).unwrap().len(), 65_534);
    let error = of_length(65_535).unwrap_err();
    let told = "the input makes a URL of more than 65534 bytes, which cannot be requested";
    assert_eq!((error.code().as_str(), error.message()), ("VALIDATION_ERROR", told));
}

#[test]
fn configurations_that_cannot_be() {
    for bad in
        [config().with_header("a b", "c"), config().with_header("a", "b\nc"), config().with_auth(Auth::bearer("a\rb"))]
    {
        assert_eq!(Checked::new(bad).err().unwrap().code().as_str(), "VALIDATION_ERROR");
    }
    // The server would wait for a body that does not come.
    for name in ["Content-Length", "Transfer-Encoding", "TE", "Expect", "Upgrade"] {
        let error = Checked::new(config().with_header(name, "5")).err().unwrap();
        let told = format!("the header `{}` frames the message, and cannot be set for a client", name.to_lowercase());
        assert_eq!((error.code().as_str(), error.message()), ("VALIDATION_ERROR", &*told));
    }
    assert!(Checked::new(config().with_header("Connection", "close")).is_ok());
    let secret = config().with_header("X-Key", "hush").with_base_url("https://ann:hush@h.test/?key=hush");
    assert!(!format!("{secret:?}").contains("hush"));
}

fn any_style() -> impl Strategy<Value = (ParameterStyle, bool)> {
    let styles = vec![ParameterStyle::Simple, ParameterStyle::Label, ParameterStyle::Matrix, ParameterStyle::Json];
    (prop::sample::select(styles), any::<bool>())
}

proptest! {
    #![proptest_config(crate::seeded::config(256))]

    /// For any value, the path has the segments of the template, and a plain string can be read back.
    #[test]
    fn one_segment_stays_one(text in any::<String>(), (style, explode) in any_style()) {
        let mut binding = path("/a/{b}/c");
        binding.parameters = vec![HttpParameter::path("b").with_style(style, explode)].into();
        match uri(&binding, &json!({ "b": text.as_str() })) {
            Ok(found) => {
                let url = url::Url::parse(&found).unwrap();
                let segments: Vec<_> = url.path_segments().unwrap().collect();
                prop_assert_eq!(segments.len(), 4);
                prop_assert_eq!((segments[0], segments[1], segments[3]), ("base", "a", "c"));
                prop_assert_eq!((url.host_str(), url.query(), url.fragment()), (Some("h.test"), None, None));
                if style == ParameterStyle::Simple {
                    let decoded = percent_encoding::percent_decode_str(segments[2]).decode_utf8().unwrap();
                    prop_assert_eq!(decoded, text);
                }
            }
            Err(error) => {
                prop_assert!(matches!(text.as_str(), "" | "." | ".."), "{:?}: {}", text, error);
            }
        }
    }

    /// For any names and values, the server reads the same pairs.
    #[test]
    fn queries_are_read_as_they_were_meant(name in "[^\u{0}]{1,8}", text in any::<String>(), more in any::<String>()) {
        let mut binding = path("/a?fixed=1");
        let mut first = HttpParameter::query("");
        first.name = name.clone().into();
        first.property = "v".into();
        let second = HttpParameter::query("w").with_reserved();
        binding.parameters = vec![first, second].into();
        let found = uri(&binding, &json!({ "v": [text.as_str(), "x"], "w": more.as_str() })).unwrap();
        let url = url::Url::parse(&found).unwrap();
        let pairs: Vec<_> = url.query_pairs().into_owned().collect();
        let mut expected = vec![("fixed", "1"), (&name, &text), (&name, "x")];
        // Escapes in a reserved value are the caller's.
        if more.contains('%') {
            prop_assert_eq!(pairs.len(), 4);
        } else {
            expected.push(("w", &more));
            prop_assert_eq!(pairs, expected.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect::<Vec<_>>());
        }
    }
}
