//! What our client writes, our server reads back: every style in every place, and every kind of body, for random values.

use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{
    Binding, HttpBinding, HttpBody, HttpField, HttpParameter, HttpResponse, ParameterLocation, ParameterStyle,
    StatusRange,
};
use ops_runtime::http::Reconnect;
use ops_runtime::serve::HttpServer;
use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
use ops_runtime::{CallError, HttpClient, HttpConfig, Registry, operation};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

use crate::fixture::serve;

use ParameterLocation::{Cookie, Header, Path, Query, QueryString};
use ParameterStyle::{DeepObject, Form, Json, Label, Matrix, PipeDelimited, Simple, SpaceDelimited};

const STYLES: [(ParameterLocation, ParameterStyle, bool); 22] = [
    (Path, Simple, false),
    (Path, Simple, true),
    (Path, Label, false),
    (Path, Label, true),
    (Path, Matrix, false),
    (Path, Matrix, true),
    (Path, Json, false),
    (Query, Form, false),
    (Query, Form, true),
    (Query, SpaceDelimited, false),
    (Query, SpaceDelimited, true),
    (Query, PipeDelimited, false),
    (Query, PipeDelimited, true),
    (Query, DeepObject, true),
    (Query, Json, false),
    (QueryString, Form, true),
    (QueryString, Json, false),
    (Header, Simple, false),
    (Header, Simple, true),
    (Header, Json, false),
    (Cookie, Form, false),
    (Cookie, Form, true),
];

/// How a value looks: its schema, and how one is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    Texts,
    Integers,
    Record,
    Map,
    Nested,
}

const KINDS: [Kind; 9] = [
    Kind::Text,
    Kind::Integer,
    Kind::Number,
    Kind::Boolean,
    Kind::Texts,
    Kind::Integers,
    Kind::Record,
    Kind::Map,
    Kind::Nested,
];

fn schema(kind: Kind) -> Value {
    let record = json!({
        "type": "object",
        "properties": { "a": { "type": "string" }, "b b": { "type": "integer" }, "c": { "type": "boolean" } },
    });
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Integer => json!({ "type": "integer" }),
        Kind::Number => json!({ "type": ["number", "null"] }),
        Kind::Boolean => json!({ "anyOf": [{ "type": "boolean" }] }),
        Kind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Integers => json!({ "type": "array", "items": { "type": "integer" } }),
        Kind::Record => record,
        Kind::Map => json!({ "type": "object", "additionalProperties": { "type": "number" } }),
        Kind::Nested => json!({
            "type": "object",
            "properties": { "list": { "type": "array", "items": record }, "inner": { "allOf": [record] }, "text": { "type": "string" } },
        }),
    }
}

/// Any text of a place; what a place cannot hold is not in it.
fn text(location: ParameterLocation, style: ParameterStyle) -> BoxedStrategy<String> {
    match (location, style) {
        // A header has no control characters, and no space around it. A comma is in quotation marks, which have an end.
        (Header, _) => {
            prop_oneof!["[!#-+\\--~äß€][ !#-+\\--~äß€]{0,8}[!#-+\\--~]", r#"(W/)?"([ !#-\[\]-~äß€]|\\["\\,]){0,8}""#]
                .boxed()
        }
        (Path, Label) => "[^.]{1,8}".boxed(),
        (_, SpaceDelimited) => "[^ ]{1,8}".boxed(),
        (_, PipeDelimited) => "[^|]{1,8}".boxed(),
        // Not the dots that lead to another path, nor a segment that is empty.
        (Path, _) => "[^.]{1,10}".boxed(),
        _ => prop_oneof![any::<String>(), "[ -~]{0,10}", "%[0-9]{2}", "(true|null|1.5|\\[1\\]|\\{\\})"].boxed(),
    }
}

fn value(kind: Kind, text: BoxedStrategy<String>) -> BoxedStrategy<Value> {
    let texts = text.clone();
    let record =
        (text.clone(), any::<i64>(), any::<bool>()).prop_map(|(a, b, c)| json!({ "a": a, "b b": b, "c": c })).boxed();
    let number = prop_oneof![
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Value::from),
        any::<u64>().prop_map(Value::from)
    ];
    match kind {
        Kind::Text => text.prop_map(Value::from).boxed(),
        Kind::Integer => any::<i64>().prop_map(Value::from).boxed(),
        Kind::Number => number.boxed(),
        Kind::Boolean => any::<bool>().prop_map(Value::from).boxed(),
        Kind::Texts => proptest::collection::vec(texts, 1..4).prop_map(Value::from).boxed(),
        Kind::Integers => proptest::collection::vec(any::<u64>(), 1..4).prop_map(Value::from).boxed(),
        Kind::Record => record,
        Kind::Map => proptest::collection::btree_map("[a-z ä&=]{1,4}", number, 1..4)
            .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>()))
            .boxed(),
        Kind::Nested => (proptest::collection::vec(record.clone(), 1..3), record, text)
            .prop_map(|(list, inner, text)| json!({ "list": list, "inner": inner, "text": text }))
            .boxed(),
    }
}

/// True if the style has a form for such values.
fn has_form(location: ParameterLocation, style: ParameterStyle, explode: bool, kind: Kind) -> bool {
    match (location, style, kind) {
        (_, Json, _) => true,
        (QueryString, _, kind) => matches!(kind, Kind::Record | Kind::Map | Kind::Nested),
        (_, DeepObject, _) => true,
        // A dot is in numbers, too.
        (Path, Label, Kind::Map | Kind::Number) if explode => kind == Kind::Number,
        // A space is in a name, and in JSON.
        (_, SpaceDelimited, Kind::Map | Kind::Record | Kind::Nested) => explode,
        // The space around a name in a header is not part of it, and JSON has commas.
        (Header, _, Kind::Map | Kind::Nested) => false,
        _ => true,
    }
}

fn spec(name: &str, binding: HttpBinding, input: Value) -> OperationSpec {
    let mut spec = OperationSpec::new(OperationKind::Mutation, "t", name).unwrap();
    spec.input = Schema::from(input);
    spec.binding = Binding::Http(binding);
    spec
}

/// Serves operations that give back what came in, and calls each with values made for it.
async fn all_come_back(cases: Vec<(OperationSpec, String, BoxedStrategy<Value>)>, rounds: u32) {
    let registry = Registry::new();
    for (spec, ..) in &cases {
        let echo = Handler::dynamic(|input: Value, _| async move { Ok(json!({ "input": input })) });
        registry.register(Registration::new(spec.clone(), echo)).unwrap();
    }
    let server = serve(HttpServer::new(registry)).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
    let caller = Registry::new();
    caller.register_all(client.bind(cases.iter().map(|(spec, ..)| spec.clone())).unwrap()).unwrap();
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let mut faults = Vec::new();
    for (spec, told, strategy) in &cases {
        for _ in 0..rounds {
            let input = strategy.new_tree(&mut runner).unwrap().current();
            match caller.call(&spec.id, input.clone()).await {
                Ok(envelope) if is_same(&envelope.data["input"], &input) => {}
                Ok(envelope) => faults.push(format!("{told}: sent {input}, came {}", envelope.data["input"])),
                Err(error) => faults.push(format!("{told}: sent {input}: {error} {}", error.details()["body"])),
            }
        }
    }
    let count = faults.len();
    faults.truncate(30);
    assert!(faults.is_empty(), "{count} faults:\n{}", faults.join("\n"));
}

/// True for the same value. A whole number has no fraction as text: `0` is `0.0`.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) if one.is_f64() || other.is_f64() => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| other.get(name).is_some_and(|other| is_same(one, other)))
        }
        _ => one == other,
    }
}

fn answers() -> Vec<HttpResponse> {
    vec![HttpResponse::new(StatusRange::Exact(200), "application/json")]
}

#[tokio::test]
async fn parameters() {
    let mut cases = Vec::new();
    for (location, style, explode) in STYLES {
        for kind in KINDS {
            if !has_form(location, style, explode, kind) {
                continue;
            }
            let told = format!("{location:?} {style:?} explode={explode} {kind:?}");
            let name = told.replace([' ', '='], "_");
            let path = if location == Path { format!("/{name}/{{v}}/end") } else { format!("/{name}") };
            let mut binding = HttpBinding::owned("POST", path);
            binding.parameters = vec![HttpParameter::owned(location, "v").with_style(style, explode)].into();
            binding.responses = answers().into();
            let input = json!({ "type": "object", "properties": { "v": schema(kind) }, "required": ["v"] });
            let values = value(kind, text(location, style)).prop_map(|value| json!({ "v": value })).boxed();
            cases.push((spec(&name, binding, input), told, values));
        }
    }
    assert!(cases.len() > 150, "{}", cases.len());
    all_come_back(cases, 24).await;
}

#[tokio::test]
async fn several_parameters_do_not_mix() {
    let mut binding = HttpBinding::owned("GET", "/a/{p}.{q}/{r}:go?fixed=1&given={g}");
    binding.parameters = vec![
        HttpParameter::owned(Path, "p"),
        HttpParameter::owned(Path, "q"),
        HttpParameter::owned(Path, "r").with_style(Matrix, true),
        HttpParameter::owned(Query, "g"),
        HttpParameter::owned(Query, "plain"),
        HttpParameter::owned(Query, "spread"),
        HttpParameter::owned(Query, "deep").with_style(DeepObject, true),
        HttpParameter::owned(Header, "X-One"),
        HttpParameter::owned(Cookie, "one"),
        HttpParameter::owned(Cookie, "two").with_style(Json, false),
        HttpParameter::header("plain").with_property("plain_header"),
    ]
    .into();
    binding.responses = answers().into();
    let record = schema(Kind::Record);
    let properties = json!({
        "p": { "type": "integer" }, "q": { "type": "string" }, "r": schema(Kind::Integers), "g": schema(Kind::Texts),
        "plain": { "type": "string" }, "spread": record, "deep": record, "X-One": schema(Kind::Integers),
        "one": { "type": "integer" }, "two": record, "plain_header": { "type": "boolean" },
    });
    let text = || text(Query, Form);
    let values = (
        (any::<i64>(), "[^.]{1,5}", value(Kind::Integers, text()), value(Kind::Texts, "[a-z&=+%]{1,5}".boxed())),
        (text(), value(Kind::Record, text()), value(Kind::Record, text()), value(Kind::Integers, text())),
        (any::<i64>(), value(Kind::Record, text()), any::<bool>()),
    );
    let values = values.prop_map(|((p, q, r, g), (plain, spread, deep, one_header), (one, two, header))| {
        json!({
            "p": p, "q": q, "r": r, "g": g, "plain": plain, "spread": spread, "deep": deep, "X-One": one_header,
            "one": one, "two": two, "plain_header": header,
        })
    });
    let input = json!({ "type": "object", "properties": properties });
    let spec = spec("several", binding, input);
    all_come_back(vec![(spec, "several".to_owned(), values.boxed())], 100).await;
}

#[tokio::test]
async fn bodies() {
    let text = || text(Query, Form);
    let form = HttpBody::new("application/x-www-form-urlencoded");
    let parts = HttpBody::new("multipart/form-data");
    let styled: Vec<HttpField> = vec![
        HttpField::new("list").with_content_type("application/json"),
        HttpField::new("inner").with_style(DeepObject, true),
    ];
    let with_fields = |body: &HttpBody| {
        let mut body = body.clone();
        body.fields = styled.clone().into();
        body
    };
    let bytes = json!({ "type": "string", "format": "binary" });
    let base64 = || {
        proptest::collection::vec(any::<u8>(), 0..40)
            .prop_map(|bytes| serde_json::to_value(ops_runtime::Body::from(bytes::Bytes::from(bytes))).unwrap())
    };
    let files = json!({ "type": "object", "properties": { "file": bytes, "files": { "type": "array", "items": bytes }, "note": { "type": "string" } } });
    let several = (base64(), proptest::collection::vec(base64(), 1..3), text())
        .prop_map(|(file, files, note)| json!({ "file": file, "files": files, "note": note }));
    // A file is the bytes of its part, whatever style its field has.
    let mut styled_files = parts.clone();
    styled_files.fields =
        ["file", "files", "maybe"].map(|name| HttpField::new(name).with_style(Form, true)).to_vec().into();
    let mut more_files = files.clone();
    more_files["properties"]["maybe"] = json!({ "anyOf": [bytes, { "type": "null" }] });
    let ascii = "[ -~]{1,20}".prop_map(|text| serde_json::to_value(ops_runtime::Body::from(text)).unwrap());
    let any_files = (several.clone(), ascii).prop_map(|(mut value, maybe)| {
        value["maybe"] = maybe;
        value
    });
    let any_names = proptest::collection::btree_map("[a-z.]{1,5}", base64(), 1..4).prop_map(|files| json!(files));
    let any_number = proptest::collection::vec(base64(), 1..4).prop_map(Value::from);
    let any_json = any::<bool>().prop_flat_map(move |_| value(Kind::Nested, any::<String>().boxed()));
    let lines = proptest::collection::vec(value(Kind::Record, any::<String>().boxed()), 1..4).prop_map(Value::from);
    let list = json!({ "type": "array", "items": schema(Kind::Record) });
    let cases: Vec<(&str, HttpBody, Value, BoxedStrategy<Value>)> = vec![
        ("json", HttpBody::new("application/json"), schema(Kind::Nested), any_json.boxed()),
        (
            "vendor",
            HttpBody::new("application/vnd.api+json; version=1"),
            json!({}),
            text().prop_map(Value::from).boxed(),
        ),
        ("range", HttpBody::new("*/*"), json!({}), value(Kind::Record, text())),
        ("text", HttpBody::new("text/plain"), json!({ "type": "string" }), text().prop_map(Value::from).boxed()),
        ("number", HttpBody::new("text/plain"), json!({ "type": "integer" }), value(Kind::Integer, text())),
        ("bytes", HttpBody::new("image/png"), bytes.clone(), base64().boxed()),
        ("images", HttpBody::new("image/*"), bytes.clone(), base64().boxed()),
        ("lines", HttpBody::new("application/x-ndjson"), list.clone(), lines.clone().boxed()),
        ("sequence", HttpBody::new("application/json-seq"), list, lines.boxed()),
        ("form", form.clone(), schema(Kind::Record), value(Kind::Record, text())),
        ("form_map", form.clone(), schema(Kind::Map), value(Kind::Map, text())),
        ("form_deep", form.clone(), schema(Kind::Nested), value(Kind::Nested, text())),
        ("form_styled", with_fields(&form), schema(Kind::Nested), value(Kind::Nested, text())),
        ("parts", parts.clone(), schema(Kind::Record), value(Kind::Record, text())),
        ("parts_deep", parts.clone(), schema(Kind::Nested), value(Kind::Nested, text())),
        ("parts_styled", with_fields(&parts), schema(Kind::Nested), value(Kind::Nested, text())),
        ("files", parts.clone(), files, several.boxed()),
        ("files_map", parts, json!({ "type": "object", "additionalProperties": bytes }), any_names.boxed()),
        (
            "files_list",
            HttpBody::new("multipart/mixed"),
            json!({ "type": "array", "items": bytes }),
            any_number.boxed(),
        ),
        ("files_styled", styled_files, more_files, any_files.boxed()),
    ];
    // Objects that are the rest of the input, beside a parameter.
    let objects = ["form", "form_deep", "form_styled", "parts", "parts_deep", "parts_styled", "files", "files_styled"];
    let rest = cases.iter().filter(|(name, ..)| objects.contains(name)).map(|(name, body, schema, values)| {
        let name = format!("rest_{name}");
        let mut binding = HttpBinding::owned("POST", format!("/{name}/{{at}}"));
        binding.parameters = vec![HttpParameter::path("at")].into();
        binding.bodies = vec![body.clone().with_rest()].into();
        binding.responses = answers().into();
        let mut input = schema.clone();
        input["properties"]["at"] = json!({ "type": "integer" });
        let values = (values.clone(), any::<u32>()).prop_map(|(mut value, at)| {
            value["at"] = at.into();
            value
        });
        (spec(&name, binding, input), name, values.boxed())
    });
    let rest: Vec<_> = rest.collect();
    let cases = cases.into_iter().map(|(name, body, schema, values)| {
        let mut binding = HttpBinding::owned("POST", format!("/{name}"));
        binding.bodies = vec![body].into();
        binding.responses = answers().into();
        let input = json!({ "type": "object", "properties": { "body": schema }, "required": ["body"] });
        (spec(name, binding, input), name.to_owned(), values.prop_map(|value| json!({ "body": value })).boxed())
    });
    all_come_back(cases.chain(rest).collect(), 60).await;
}

/// Counts up, and fails at the end if it is asked to.
#[operation(namespace = "t", http = "GET /counted/{to}")]
async fn counted(to: u32, fails: bool) -> impl Stream<Item = Result<u32, CallError>> {
    let end = fails.then(|| Err(CallError::execution("no more")));
    stream::iter((1..=to).map(Ok).chain(end))
}

/// An end that is no loss of the connection is the end, also for a client that reconnects.
#[tokio::test]
async fn a_stream_that_is_over_is_not_opened_again() {
    let registry = Registry::new();
    registry.register(Counted).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    let delay = Duration::from_millis(1);
    let reconnect = Reconnect::new().with_min_delay(delay).with_first_delay(delay);
    let config = HttpConfig::new().with_base_url(format!("http://{}", server.address)).with_reconnect(reconnect);
    let client = HttpClient::new(config).unwrap();
    for (to, fails, expected) in [(2, false, "12"), (2, true, "12!"), (0, false, ""), (0, true, "!")] {
        let items = client.subscribe::<Counted>(CountedInput { to, fails }).await.unwrap();
        // What would never end ends here.
        let items: Vec<_> = items.take(9).collect().await;
        let seen: String =
            items.iter().map(|item| item.as_ref().map_or("!".to_owned(), |item| item.data.to_string())).collect();
        assert_eq!(seen, expected, "{to} {fails}");
    }
}
