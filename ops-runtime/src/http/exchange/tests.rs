//! The traces of requests.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::http::fake::{Fake, respond};
use crate::http::{Auth, HttpClient, HttpConfig, RequestBody, Retry};
use crate::{
    Binding, CallOptions, HttpBinding, HttpParameter, OperationSpec, SecurityKind, SecurityRequirement, SecurityScheme,
    ServerVariable,
};

type Fields = BTreeMap<String, String>;

/// Keeps the fields of all spans and events.
#[derive(Clone, Default)]
struct Log {
    spans: Arc<Mutex<Vec<Fields>>>,
    events: Arc<Mutex<Vec<Fields>>>,
    next: Arc<AtomicU64>,
}

struct Into<'a>(&'a mut Fields);

impl Visit for Into<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::new();
        span.record(&mut Into(&mut fields));
        self.spans.lock().unwrap().push(fields);
        Id::from_u64(self.next.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let index = usize::try_from(span.into_u64()).unwrap() - 1;
        values.record(&mut Into(&mut self.spans.lock().unwrap()[index]));
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Into(&mut fields));
        self.events.lock().unwrap().push(fields);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

static SHOW: OperationSpec = OperationSpec::query("t.show").with_http(
    HttpBinding::new("GET", "/pets/{id}")
        .with_parameters(const { &[HttpParameter::path("id"), HttpParameter::query("q")] }),
);

#[test]
fn a_span_for_every_request_without_secrets() {
    let tries = AtomicUsize::new(0);
    let service = Fake(move |_| match tries.fetch_add(1, Ordering::Relaxed) {
        0 => respond(503, &[], b""),
        1 => respond(302, &[("location", "/pets/2?q=hush")], b""),
        _ => respond(200, &[], b"1"),
    });
    let service = Arc::new(service);
    let config = HttpConfig::new()
        .with_base_url("http://ann:hush@h.test:8080/")
        .with_auth(Auth::bearer("hush"))
        .with_header("X-Key", "hush")
        .with_retries(Retry::new().with_first_delay(Duration::ZERO))
        .with_service(Fake(move |request| (service.0)(request)));
    let log = Log::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    tracing::subscriber::with_default(log.clone(), || {
        let client = HttpClient::new(config).unwrap();
        client.add([&SHOW]).unwrap();
        runtime.block_on(client.call("t.show", json!({ "id": "hush", "q": "hush" }))).unwrap();
    });
    let spans = log.spans.lock().unwrap().clone();
    assert_eq!(spans.len(), 3);
    let common = [
        ("operation", "t.show"),
        ("otel.kind", "client"),
        ("otel.name", "GET /pets/{id}"),
        ("http.request.method", "GET"),
        ("url.template", "/pets/{id}"),
        ("url.scheme", "http"),
        ("server.address", "h.test"),
        ("server.port", "8080"),
    ];
    let own: [&[(&str, &str)]; 3] = [
        &[("http.response.status_code", "503"), ("error.type", "503"), ("otel.status_code", "ERROR")],
        &[("http.response.status_code", "302"), ("http.request.resend_count", "1")],
        &[("http.response.status_code", "200"), ("http.request.resend_count", "2")],
    ];
    for (found, own) in spans.iter().zip(own) {
        let expected = common.iter().chain(own).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        assert_eq!(*found, expected);
    }
    let events = format!("{:?}", log.events.lock().unwrap());
    assert!(!events.contains("hush") && events.contains("sent again"), "{events}");
}

#[test]
fn credentials_for_no_scheme_are_logged() {
    let mut binding = HttpBinding::new("GET", "/pets");
    let schemes =
        ["shopAuth", "shop_key"].map(|name| SecurityScheme::owned(name, SecurityKind::Bearer)).to_vec().into();
    let requirement = SecurityRequirement { schemes };
    binding.security = vec![requirement].into();
    let mut spec = OperationSpec::query("t.list");
    spec.binding = Binding::Http(binding);
    let config = |scheme: &str| {
        HttpConfig::new()
            .with_base_url("http://h.test")
            .with_credentials(scheme, Auth::bearer("hush"))
            .with_service(Fake(|_| respond(200, &[], b"1")))
    };
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        for scheme in ["shop_key", "shopKey", "other"] {
            HttpClient::new(config(scheme)).unwrap().bind([spec.clone()]).unwrap();
        }
    });
    let events: Vec<_> = log.events.lock().unwrap().iter().map(|event| event["message"].clone()).collect();
    assert_eq!(
        events,
        [
            "no operation names the security scheme `shopKey`, which has credentials: there is `shop_key`",
            "no operation names the security scheme `other`, which has credentials: there is `shopAuth` or `shop_key`",
        ]
    );
}

#[test]
fn a_variable_that_no_server_has_is_logged() {
    let mut named = OperationSpec::query("t.named");
    let mut binding = HttpBinding::new("GET", "/").with_server("https://{region}.h.test/{stage}");
    binding.server_variables = vec![ServerVariable::new("region", "eu")].into();
    named.binding = Binding::Http(binding);
    let config =
        |name: &str| HttpConfig::new().with_server_variable(name, "us").with_service(Fake(|_| respond(200, &[], b"1")));
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        for name in ["region", "stage", "regoin", "other"] {
            let client = HttpClient::new(config(name)).unwrap();
            client.bind([named.clone()]).unwrap();
        }
        // What one operation has is known for the client.
        let client = HttpClient::new(config("region")).unwrap();
        client.bind([named.clone()]).unwrap();
        client.bind([SHOW.clone()]).unwrap();
    });
    let events: Vec<_> = log.events.lock().unwrap().iter().map(|event| event["message"].clone()).collect();
    assert_eq!(
        events,
        [
            "no server has the variable `regoin`, which is set: there is `region`",
            "no server has the variable `other`, which is set: there is `region` or `stage`",
        ]
    );
}

#[tokio::test]
async fn a_key_goes_along_with_every_try() {
    const KEY: &[HttpParameter] = &[HttpParameter::header("Idempotency-Key")];
    let keys: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = keys.clone();
    // It takes the payment, and fails before it says so.
    let service = Fake(move |request: http::Request<RequestBody>| {
        if request.uri().scheme_str() == Some("http") {
            return respond(308, &[("location", "https://h.test/payments")], b"");
        }
        let mut log = log.lock().unwrap();
        let key = request.headers().get("idempotency-key").map(|key| key.to_str().unwrap());
        log.push(key.unwrap_or("none").to_owned());
        respond(if log.len() == 1 { 503 } else { 200 }, &[], b"1")
    });
    let config = HttpConfig::new()
        .with_base_url("http://h.test")
        .with_retries(Retry::new().with_first_delay(Duration::ZERO))
        .with_service(service);
    let client = HttpClient::new(config).unwrap();
    let pay = OperationSpec::mutation("t.pay").with_http(HttpBinding::new("POST", "/payments").with_parameters(KEY));
    client.add([pay]).unwrap();
    client.call_with("t.pay", json!({}), CallOptions::new().with_idempotency_key("order-12")).await.unwrap();
    assert_eq!(*keys.lock().unwrap(), ["order-12", "order-12"]);
}
