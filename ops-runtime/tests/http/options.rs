//! What one call says about its request: headers, a base URL, an idempotency key, a trace.

use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{
    HttpBinding, HttpParameter, ParameterLocation, SecurityKind, SecurityRequirement, SecurityScheme,
};
use ops_runtime::call::{CallHandler, InProcess};
use ops_runtime::http::{Auth, HttpClient, HttpConfig, Retry};
use ops_runtime::registry::{Execute, RegistryError};
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{Call, CallError, CallOptions, Context, Operation, Registry, ResponseEnvelope};
use serde_json::{Value, json};
use std::time::Duration;

use crate::script::{Script, ok, unavailable};
use crate::server::{Server, get_of, spec};

/// What the server saw of a call with these options.
async fn seen(
    config: HttpConfig,
    binding: HttpBinding,
    input: Value,
    options: CallOptions,
) -> Result<Value, CallError> {
    let client = HttpClient::new(config)?;
    client.add([spec(OperationKind::Mutation, "x", binding)]).unwrap();
    client.call_with("t.x", input, options).await.map(ResponseEnvelope::into_data)
}

fn with(path: &'static str, parameters: Vec<HttpParameter>) -> HttpBinding {
    let mut binding = HttpBinding::new("POST", path);
    binding.parameters = parameters.into();
    binding
}

#[tokio::test]
async fn a_header_of_the_call_wins() {
    let server = Server::start().await;
    let mut binding = with(
        "/echo/x",
        vec![HttpParameter::header("X-Trace"), HttpParameter::cookie("theme"), HttpParameter::header("X-Other")],
    );
    let scheme = SecurityScheme::new("a", SecurityKind::Bearer);
    let mut requirement = SecurityRequirement::default();
    requirement.schemes = vec![scheme].into();
    binding.security = vec![requirement].into();
    let config = HttpConfig::new()
        .with_base_url(server.url())
        .with_header("X-Tenant", "config")
        .with_header("Cookie", "a=1")
        .with_header("X-Kept", "config")
        .with_credentials("a", Auth::bearer("config"));
    let options = CallOptions::new()
        .with_header("x-tenant", "call")
        .with_header("X-Trace", "call")
        .with_header("Cookie", "b=2")
        .with_header("Accept", "application/x-own")
        .with_header("Authorization", "Bearer call");
    let input = json!({ "X-Trace": "input", "X-Other": "input", "theme": "dark" });
    let headers =
        seen(config.clone(), binding.clone(), input.clone(), options.clone()).await.unwrap()["headers"].clone();
    for (name, value) in [
        ("x-tenant", "call"),
        ("x-trace", "call"),
        ("x-other", "input"),
        ("x-kept", "config"),
        ("cookie", "a=1; b=2; theme=dark"),
        ("accept", "application/x-own"),
        ("authorization", "Bearer call"),
        ("content-length", "0"),
    ] {
        assert_eq!(headers[name], value, "{name}");
    }
    // The next call has none of them.
    let headers = seen(config, binding, input, CallOptions::new()).await.unwrap()["headers"].clone();
    assert_eq!((&headers["x-tenant"], &headers["authorization"]), (&json!("config"), &json!("Bearer config")));
    assert!(!format!("{options:?}").contains("call"), "{options:?}");
}

#[tokio::test]
async fn a_call_with_a_token_of_its_own_needs_no_other() {
    let server = Server::start().await;
    let key = SecurityKind::ApiKey { location: ParameterLocation::Header, name: "X-Key".into() };
    let mut requirement = SecurityRequirement::default();
    requirement.schemes = vec![SecurityScheme::new("a", SecurityKind::Bearer), SecurityScheme::new("b", key)].into();
    let mut binding = get_of("/echo/x");
    binding.security = vec![requirement].into();
    let config = HttpConfig::new()
        .with_base_url(server.url())
        .with_credentials("a", Auth::token_source(|_| async { Err("the token server is down".into()) }))
        .with_credentials("b", Auth::api_key("k"));
    let own = CallOptions::new().with_header("Authorization", "Bearer own");
    let headers = seen(config.clone(), binding.clone(), json!({}), own).await.unwrap()["headers"].clone();
    assert_eq!((&headers["authorization"], &headers["x-key"]), (&json!("Bearer own"), &json!("k")));
    let error = seen(config, binding, json!({}), CallOptions::new()).await.unwrap_err();
    assert_eq!(error.message(), "the token server is down");
}

#[tokio::test]
async fn a_cookie_of_the_call_is_sent_and_not_that_of_the_client() {
    let server = Server::start().await;
    let mut binding = with("/echo/x", vec![]);
    let kind = SecurityKind::ApiKey { location: ParameterLocation::Cookie, name: "sid".into() };
    let mut requirement = SecurityRequirement::default();
    requirement.schemes = vec![SecurityScheme::new("key", kind)].into();
    binding.security = vec![requirement].into();
    for (configured, own, expected) in [
        (None, None, "sid=service"),
        (None, Some("sid=user"), "sid=user"),
        (None, Some("sid=user;lang=de"), "sid=user; lang=de"),
        (None, Some("lang=de"), "lang=de; sid=service"),
        // One of the configuration gives way, and the others stay, however they are written.
        (Some("sid=config;theme=dark"), None, "theme=dark; sid=service"),
        (Some("sid=config; theme=dark"), Some("sid=user"), "theme=dark; sid=user"),
    ] {
        let config = HttpConfig::new().with_base_url(server.url()).with_auth(Auth::api_key("service"));
        let config = configured.into_iter().fold(config, |config, cookie| config.with_header("Cookie", cookie));
        let options = CallOptions::new();
        let options = own.into_iter().fold(options, |options, cookie| options.with_header("Cookie", cookie));
        let found = seen(config, binding.clone(), json!({}), options).await.unwrap();
        assert_eq!(found["headers"]["cookie"], expected, "{configured:?} and {own:?}");
    }
}

#[tokio::test]
async fn of_two_cookies_of_one_name_one_is_sent() {
    let (script, url) = Script::start(&[ok]).await;
    let table = [
        // That of the configuration, of the call, and of the input.
        ("sid=service", Some("sid=ann"), json!({}), "sid=ann"),
        ("sid=service;a=1", Some("b=2;sid=ann"), json!({}), "a=1; b=2; sid=ann"),
        ("lang=en; a=1", None, json!({ "lang": "de" }), "a=1; lang=de"),
        ("lang=en", Some("lang=fr; b=2"), json!({ "lang": "de" }), "lang=fr; b=2"),
        ("lang=en", None, json!({ "lang": null }), "lang=en"),
        // A list is one cookie for each item, by its description.
        ("lang=en; a=1", None, json!({ "lang": ["de", "fr"] }), "a=1; lang=de; lang=fr"),
        ("language=en", Some("slang=1"), json!({ "lang": "de" }), "language=en; slang=1; lang=de"),
    ];
    for (at, (configured, own, input, expected)) in table.into_iter().enumerate() {
        let config = HttpConfig::new().with_base_url(&*url).with_header("Cookie", configured);
        let options = own.into_iter().fold(CallOptions::new(), |options, own| options.with_header("Cookie", own));
        seen(config, with("/x", vec![HttpParameter::cookie("lang")]), input, options).await.unwrap();
        assert_eq!(script.headers(at, "cookie"), [expected]);
    }
}

#[tokio::test]
async fn all_cookies_are_in_one_header() {
    let (script, url) = Script::start(&[ok, ok]).await;
    let config = HttpConfig::new().with_base_url(&*url).with_header("Cookie", "a=1").with_header("cookie", "b=2");
    let own = CallOptions::new().with_header("Cookie", "d=4").with_header("Cookie", "e=5");
    seen(config.clone(), with("/x", vec![]), json!({}), CallOptions::new()).await.unwrap();
    seen(config, with("/x", vec![HttpParameter::cookie("c")]), json!({ "c": 3 }), own).await.unwrap();
    for (at, expected) in ["a=1; b=2", "a=1; b=2; d=4; e=5; c=3"].into_iter().enumerate() {
        assert_eq!(script.headers(at, "cookie"), [expected]);
    }
}

#[tokio::test]
async fn options_that_cannot_be_sent() {
    let server = Server::start().await;
    let none = CallOptions::new;
    for (options, pointer, message) in [
        (none().with_header("a b", "hush"), "/headers", "the header `a b` has no valid name"),
        (none().with_header("X-A", "hush\r\nX-B: 1"), "/headers", "the header `X-A` has no valid value"),
        (none().with_header("Content-Length", "9"), "/headers", "the header `content-length` frames the message"),
        (none().with_header("Transfer-Encoding", "chunked"), "/headers", "`transfer-encoding` frames"),
        (none().with_base_url("/hush"), "/baseUrl", "not an absolute URL"),
        (none().with_base_url("ftp://hush"), "/baseUrl", "the scheme `ftp`"),
        (
            none().with_idempotency_key("hush"),
            "/idempotencyKey",
            "if repeating does no harm, say so by `Retry::with_idempotent`",
        ),
        (none().with_idempotency_key(" "), "/idempotencyKey", "the idempotency key has no characters"),
        // Of two faults, the first is named.
        (none().with_header("a b", "hush").with_base_url("/hush"), "/headers", "no valid name"),
    ] {
        let config = HttpConfig::new().with_base_url(server.url());
        let error = seen(config, with("/echo/x", vec![]), json!({}), options).await.unwrap_err();
        assert_eq!(error.code().as_str(), "VALIDATION_ERROR");
        assert_eq!(error.details()["violations"][0]["pointer"], pointer, "{error}");
        assert!(error.message().contains(message) && !format!("{error:?}").contains("hush"), "{error:?}");
    }
}

#[tokio::test]
async fn a_client_of_one_api_runs_no_operation_of_another() {
    let server = Server::start().await;
    let operation = || spec(OperationKind::Mutation, "x", with("/echo/x", vec![]));
    // A dot is an underscore, as where documents are read.
    for (namespace, refused) in [("", false), ("t", false), ("bank", true), ("my.bank", true)] {
        let config = HttpConfig::new().with_base_url(server.url()).with_namespace(namespace);
        let client = HttpClient::new(config.with_auth(Auth::bearer("t0k3n"))).unwrap();
        assert_eq!(client.bind([operation()]).is_err(), refused, "{namespace}");
        client.add([operation()]).unwrap();
        let error = match client.call("t.x", json!({})).await {
            Ok(_) => {
                assert!(!refused);
                continue;
            }
            Err(error) => error,
        };
        assert!(refused && error.code() == "VALIDATION_ERROR", "{error}");
        let own = namespace.replace('.', "_");
        assert!(error.message().starts_with(&format!("`t.x` is an operation of `t`, and the client is for `{own}`")));
    }
}

/// A key that does not get to who would honour it is refused; a function of this process can read it.
#[tokio::test]
async fn keys_of_calls_that_are_no_requests() {
    let key = |_: Value, context: Context| async move { Ok(json!(context.idempotency_key())) };
    let registry = Registry::new();
    registry.register(Registration::new(OperationSpec::query("here.key"), Handler::dynamic(key))).unwrap();
    let options = || CallOptions::new().with_idempotency_key("k-1");
    assert_eq!(registry.call_with("here.key", json!({}), options()).await.unwrap().data, "k-1");
    let empty = CallOptions::new().with_idempotency_key("");
    assert_eq!(registry.call_with("here.key", json!({}), empty).await.unwrap().data, Value::Null);
    let transport = InProcess::new();
    let worker = transport.serve(CallHandler::new(registry));
    let error = transport.remote().call_with("here.key", json!({}), options()).await.unwrap_err();
    assert_eq!(error.code(), "VALIDATION_ERROR");
    assert!(error.message().contains("in another process, which an idempotency key does not reach"), "{error}");
    worker.stop().await;
}

#[tokio::test]
async fn another_base_url_for_a_call() {
    let (one, other) = (Server::start().await, Server::start().await);
    let config = HttpConfig::new().with_base_url(one.url()).with_auth(Auth::bearer("t"));
    let to = |url: String| CallOptions::new().with_base_url(url);
    let url = format!("{}/echo/v2", other.url());
    let found = seen(config.clone(), with("/x", vec![]), json!({}), to(url)).await.unwrap();
    assert_eq!((&found["uri"], &found["headers"]["host"]), (&json!("/echo/v2/x"), &json!(other.address.to_string())));
    assert_eq!(found["headers"]["authorization"], "Bearer t");
    // A user and password in it are those of the call.
    let url = format!("http://ann:p%40w@{}/echo", other.address);
    let found = seen(config, with("/x", vec![]), json!({}), to(url)).await.unwrap();
    assert_eq!(found["headers"]["authorization"], "Basic YW5uOnBAdw==");
    // It is enough without any other.
    let found = seen(HttpConfig::new(), with("/echo/x", vec![]), json!({}), to(other.url())).await.unwrap();
    assert_eq!(found["uri"], "/echo/x");
}

#[tokio::test]
async fn a_redirect_to_another_origin_does_not_get_the_headers() {
    let (one, other) = (Server::start().await, Server::start().await);
    for (to, kept) in [(format!("{}/echo/y", other.url()), false), ("/echo/y".to_owned(), true)] {
        let config = HttpConfig::new().with_base_url(one.url()).with_trace_context();
        let options = CallOptions::new()
            .with_header("X-Key", "hush")
            .with_header("Authorization", "Bearer hush")
            .with_header("Cookie", "sid=hush");
        let binding = get_of(format!("/to?302,{to}"));
        let found = seen(config, binding, json!({}), options).await.unwrap();
        assert_eq!(found["uri"], "/echo/y");
        for name in ["x-key", "authorization", "cookie", "traceparent"] {
            assert_eq!(found["headers"].get(name).is_some(), kept, "{name} of {found}");
        }
    }
}

fn retries() -> Retry {
    Retry::new().with_first_delay(Duration::from_millis(1))
}

#[tokio::test]
async fn an_idempotency_key_is_kept_over_retries() {
    for name in ["Idempotency-Key", "X-IDEMPOTENCY-KEY", "PayPal-Request-Id"] {
        let parameter = || {
            let mut parameter = HttpParameter::header("key");
            parameter.name = name.into();
            parameter
        };
        let header = name.to_ascii_lowercase();
        let keys = |script: &Script| (0..script.count()).map(|at| script.header(at, &header)).collect::<Vec<_>>();
        let given = CallOptions::new().with_idempotency_key("k-1");

        let (script, url) = Script::start(&[unavailable, unavailable, ok]).await;
        let config = HttpConfig::new().with_base_url(&*url).with_retries(retries());
        seen(config, with("/x", vec![parameter()]), json!({}), given.clone()).await.unwrap();
        assert_eq!(keys(&script), vec![Some("k-1".to_owned()); 3]);

        // One is made up for each call that sets none, if the configuration says so.
        let (script, url) = Script::start(&[unavailable, ok]).await;
        let config = HttpConfig::new().with_base_url(&*url).with_retries(retries()).with_idempotency_keys();
        seen(config.clone(), with("/x", vec![parameter()]), json!({}), CallOptions::new()).await.unwrap();
        seen(config.clone(), with("/x", vec![parameter()]), json!({}), CallOptions::new()).await.unwrap();
        let made = keys(&script);
        assert!(made[0] == made[1] && made[1] != made[2] && made[2].is_some(), "{made:?}");
        assert_eq!(made[0].as_ref().unwrap().len(), 36);
        seen(config.clone(), with("/x", vec![parameter()]), json!({ "key": "mine" }), CallOptions::new())
            .await
            .unwrap();
        seen(config.clone(), with("/x", vec![parameter()]), json!({}), given.clone()).await.unwrap();
        seen(config.clone(), with("/x", vec![parameter()]), json!({ "key": "k-1" }), given.clone()).await.unwrap();
        // What has no parameter for it gets none.
        seen(config.clone(), with("/x", vec![]), json!({}), CallOptions::new()).await.unwrap();
        let mine = |key: &str| Some(key.to_owned());
        assert_eq!(keys(&script)[3..], [mine("mine"), mine("k-1"), mine("k-1"), None]);
        let error = seen(config.clone(), with("/x", vec![parameter()]), json!({ "key": "a" }), given.clone())
            .await
            .unwrap_err();
        assert!(error.message().contains("different keys") && script.count() == 7, "{error}");
        // Nor does a header of the call win without a word; the same key twice is one.
        let twice = given.clone().with_header(name, "k-2");
        let error = seen(config.clone(), with("/x", vec![parameter()]), json!({}), twice).await.unwrap_err();
        assert!(error.message().contains("different keys") && script.count() == 7, "{error}");
        seen(config, with("/x", vec![parameter()]), json!({}), given.with_header(name, "k-1")).await.unwrap();
        assert_eq!(script.header(7, &header), Some("k-1".to_owned()));
    }
    // By default none is sent, and nothing is repeated.
    let (script, url) = Script::start(&[unavailable, ok]).await;
    let config = HttpConfig::new().with_base_url(&*url).with_retries(retries());
    let binding = with("/x", vec![HttpParameter::header("Idempotency-Key")]);
    assert!(seen(config, binding, json!({}), CallOptions::new()).await.is_err());
    assert_eq!((script.count(), script.header(0, "idempotency-key")), (1, None));
}

#[tokio::test]
async fn an_empty_idempotency_key_is_none() {
    let binding = || with("/x", vec![HttpParameter::header("Idempotency-Key")]);
    let empty = || json!({ "Idempotency-Key": "" });
    let (script, url) = Script::start(&[unavailable, ok]).await;
    let config = HttpConfig::new().with_base_url(&*url).with_retries(retries());
    // The server would carry out each repetition.
    assert!(seen(config.clone(), binding(), empty(), CallOptions::new()).await.is_err());
    assert_eq!((script.count(), script.header(0, "idempotency-key")), (1, Some(String::new())));
    seen(config.clone(), binding(), empty(), CallOptions::new().with_idempotency_key("k-1")).await.unwrap();
    assert_eq!(script.header(1, "idempotency-key"), Some("k-1".to_owned()));
    seen(config.with_idempotency_keys(), binding(), empty(), CallOptions::new()).await.unwrap();
    assert_eq!(script.header(2, "idempotency-key").unwrap().len(), 36);
}

/// A `POST` as a method of generated code.
struct Search;

impl Operation for Search {
    type Input = Value;
    type Output = Value;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("t.search").with_http(HttpBinding::new("POST", "/s"));
}

impl Call for Search {}

#[tokio::test]
async fn a_call_and_an_operation_have_retries_of_their_own() {
    let idempotent = || retries().with_idempotent("t.sea*");
    // What the client and the call say, and how often the request is sent.
    let table: [(Option<Retry>, Option<Option<Retry>>, usize); 8] = [
        (None, None, 1),
        (Some(retries()), None, 1),
        (Some(retries().with_idempotent("t.show").with_idempotent("GET /s")), None, 1),
        (Some(retries().with_idempotent("POST /s")), None, 4),
        (Some(idempotent().with_max_retries(1)), None, 2),
        (Some(idempotent().with_statuses([429])), None, 1),
        (Some(idempotent()), Some(None), 1),
        (None, Some(Some(idempotent().with_statuses([503]).with_max_retries(2))), 3),
    ];
    for (of_client, of_call, expected) in table {
        let (script, url) = Script::start(&[unavailable]).await;
        let shown = format!("{of_client:?} {of_call:?}");
        let config = HttpConfig::new().with_base_url(&*url);
        let config = of_client.into_iter().fold(config, HttpConfig::with_retries);
        let client = HttpClient::new(config).unwrap();
        // The steps add to each other.
        let mut call = Execute::<_, Search>::new(&client, json!({})).with_header("X-A", "1");
        if let Some(of_call) = of_call {
            call = call.with_retries(of_call);
        }
        let error = call.with_header("X-B", "2").await.unwrap_err();
        assert_eq!((error.status(), script.count()), (Some(503), expected), "{shown}");
        let sent = ["x-a", "x-b"].map(|name| script.header(0, name));
        assert_eq!(sent, [Some("1".to_owned()), Some("2".to_owned())]);
    }
}

#[tokio::test]
async fn the_trace_goes_on() {
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let (script, url) = Script::start(&[unavailable, ok]).await;
    let config = || HttpConfig::new().with_base_url(&*url).with_retries(retries()).with_trace_context();
    let given = CallOptions::new().with_metadata("traceparent", PARENT).with_metadata("tracestate", "a=1");
    let get = || get_of("/x");
    seen(config(), get(), json!({}), given.clone()).await.unwrap();
    seen(config(), get(), json!({}), CallOptions::new()).await.unwrap();
    seen(config(), get(), json!({}), CallOptions::new().with_metadata("traceparent", "nonsense")).await.unwrap();
    seen(config(), get(), json!({}), given.clone().with_header("traceparent", "own")).await.unwrap();
    seen(HttpConfig::new().with_base_url(&*url), get(), json!({}), given).await.unwrap();
    let sent: Vec<Option<String>> = (0..script.count()).map(|at| script.header(at, "traceparent")).collect();
    assert_eq!(sent.len(), 6);
    let parts = |at: usize| -> Vec<String> { sent[at].as_ref().unwrap().split('-').map(str::to_owned).collect() };
    // Each try has its own span in the trace that was given.
    for at in [0, 1] {
        assert_eq!((&*parts(at)[0], &*parts(at)[1], &*parts(at)[3]), ("00", "4bf92f3577b34da6a3ce929d0e0e4736", "01"));
        assert_ne!(parts(at)[2], "00f067aa0ba902b7");
        assert_eq!(script.header(at, "tracestate").as_deref(), Some("a=1"));
    }
    assert_ne!(parts(0)[2], parts(1)[2]);
    // Without one, each call begins a trace.
    assert!(parts(2)[1] != parts(3)[1] && parts(3)[1].len() == 32 && parts(3)[2].len() == 16, "{sent:?}");
    assert_eq!(script.header(2, "tracestate"), None);
    assert_eq!((sent[4].as_deref(), sent[5].as_deref()), (Some("own"), None));
}

#[tokio::test]
async fn calls_that_a_handler_makes_do_not_inherit_them() {
    let server = Server::start().await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(server.url())).unwrap();
    let registry = Registry::new();
    registry.register_all(client.bind([spec(OperationKind::Query, "x", get_of("/echo/x"))]).unwrap()).unwrap();
    let nested = |_: Value, context: Context| async move { Ok(context.env().call("t.x", json!({})).await?.data) };
    registry.register(Registration::new(OperationSpec::query("own.op"), Handler::dynamic(nested))).unwrap();
    let options = || CallOptions::new().with_header("X-Key", "k").with_extension(7_u8);
    let direct = registry.call_with("t.x", json!({}), options()).await.unwrap().data;
    assert_eq!(direct["headers"]["x-key"], "k");
    let nested = registry.call_with("own.op", json!({}), options()).await.unwrap().data;
    assert_eq!((&nested["uri"], nested["headers"].get("x-key")), (&json!("/echo/x"), None));
}

#[tokio::test]
async fn what_a_client_registers_twice_is_its_own() {
    const GET: OperationSpec = OperationSpec::query("pets.get").with_http(HttpBinding::new("GET", "/pets"));
    let client = || HttpClient::new(HttpConfig::new().with_base_url("https://pets.test")).unwrap();
    let (one, other, id) = (client(), client(), "pets.get".to_owned());
    let registry = Registry::new();
    let register = |client: &HttpClient| registry.register_all(client.bind([GET]).unwrap());
    register(&one).unwrap();
    for again in [&one, &one.clone()] {
        assert_eq!(register(again), Err(RegistryError::Duplicate { id: id.clone() }));
    }
    assert_eq!(register(&other), Err(RegistryError::DuplicateClient { id: id.clone() }));
    one.add([GET]).unwrap();
    assert_eq!(one.add([GET]), Err(RegistryError::Duplicate { id }));
    // Another process is one client, too.
    let remote = InProcess::new().remote();
    let registry = Registry::new();
    registry.register_all(remote.bind([GET]).unwrap()).unwrap();
    let again = registry.register_all(remote.bind([GET]).unwrap());
    assert_eq!(again, Err(RegistryError::Duplicate { id: "pets.get".to_owned() }));
}
