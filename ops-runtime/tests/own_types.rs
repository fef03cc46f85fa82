//! Where an operation's own types stand for its schemas, and where the schemas are asked.
#![cfg(all(feature = "macros", feature = "registry"))]

use futures_util::{Stream, StreamExt, stream};
use ops_runtime::adapter::{Registration, Reply};
use ops_runtime::call::{CallHandler, InProcess};
use ops_runtime::registry::OutputPolicy;
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{Body, Call, CallError, ErrorCode, Operation, Registry, operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Sets a level.
#[operation(namespace = "lamp")]
async fn set(#[schemars(extend("enum" = ["low", "high"]))] level: String) -> String {
    level
}

/// By an address or by a number.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("anyOf" = [{ "required": ["mail"] }, { "required": ["phone"] }]))]
struct Contact {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phone: Option<String>,
}

/// Says how somebody is reached.
#[operation(namespace = "lamp")]
async fn reach(contact: Contact) -> bool {
    contact.mail.is_some() || contact.phone.is_some()
}

/// An operation whose schemas are written beside its types.
struct Named;

impl Operation for Named {
    type Input = Value;
    type Output = Value;
    const SPEC: &'static OperationSpec = &OperationSpec::query("lamp.named")
        .with_input(Schema::text(
            r#"{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"reply":{}}}"#,
        ))
        .with_output(Schema::text(r#"{"type":"object","properties":{"n":{"type":"integer","default":1}}}"#));
}

impl Call for Named {}

/// An operation whose type holds more than its schema allows, as types do that are made from a document.
struct Sell<const BOUND: bool>;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Sale {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    a: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<String>,
}

impl Operation for Sell<false> {
    type Input = Sale;
    type Output = Value;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("lamp.sell").with_input(Schema::text(
        r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{},"status":{"enum":["new","sold"]}},"anyOf":[{"required":["a"]},{"required":["b"]}]}"#,
    ));
}

/// The same with a bound.
impl Operation for Sell<true> {
    type Input = Sale;
    type Output = Value;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("lamp.sell_bound").with_input(Schema::text(
        r#"{"type":"object","properties":{"a":{"type":"integer","minimum":0},"b":{},"status":{"enum":["new","sold"]}},"anyOf":[{"required":["a"]},{"required":["b"]}]}"#,
    ));
}

impl Call for Sell<false> {}
impl Call for Sell<true> {}

fn registry() -> Registry {
    let registry = Registry::new();
    registry.register(Set).unwrap();
    registry.register(Reach).unwrap();
    let named = |input: Value, _| async move { Ok(Reply::Value(input["reply"].clone())) };
    registry.register(Registration::call::<Named, _, _>(named)).unwrap();
    registry
}

#[tokio::test]
async fn what_is_added_to_the_schema_of_a_type_is_checked_for_every_caller() {
    let registry = registry();
    let transport = InProcess::new();
    let worker = transport.serve(CallHandler::new(registry.clone()));
    let remote = transport.remote();
    for (id, input, is_right) in [
        ("lamp.set", json!({ "level": "low" }), true),
        ("lamp.set", json!({ "level": "foo" }), false),
        ("lamp.reach", json!({ "contact": { "phone": "1" } }), true),
        ("lamp.reach", json!({ "contact": {} }), false),
    ] {
        let answers = [registry.call(id, input.clone()).await, remote.call(id, input.clone()).await];
        for answer in answers {
            let code = answer.as_ref().err().map(CallError::code);
            assert_eq!(code, (!is_right).then_some(&ErrorCode::ValidationError), "{input}: {answer:?}");
        }
    }
    registry.execute::<Set>(SetInput { level: "high".into() }).await.unwrap();
    let error = registry.execute::<Set>(SetInput { level: "foo".into() }).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ValidationError);
    let error = registry.execute::<Reach>(ReachInput { contact: Contact::default() }).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ValidationError);
    worker.stop().await;
}

#[tokio::test]
async fn a_local_call_by_type_checks_what_the_type_holds_beyond_its_schema() {
    let registry = Registry::new();
    let done = |_: Sale, _| async { Ok(Reply::Value(Value::Null)) };
    registry.register(Registration::call::<Sell<false>, _, _>(done)).unwrap();
    registry.register(Registration::call::<Sell<true>, _, _>(done)).unwrap();
    let sale = |a: Option<i64>, status: &str| Sale { a, status: Some(status.into()) };
    let refused = ErrorCode::ValidationError;
    for (input, is_right) in [
        (sale(Some(1), "new"), true),
        (sale(Some(1), "zz"), false),
        (sale(None, "new"), false),
        (Sale::default(), false),
    ] {
        let expected = (!is_right).then_some(&refused);
        let plain = registry.execute::<Sell<false>>(input.clone()).await;
        assert_eq!(plain.as_ref().err().map(CallError::code), expected, "{input:?}");
        let bound = registry.execute::<Sell<true>>(input.clone()).await;
        assert_eq!(bound.as_ref().err().map(CallError::code), expected, "{input:?}");
        let by_id = registry.call("lamp.sell", serde_json::to_value(&input).unwrap()).await;
        assert_eq!(by_id.as_ref().err().map(CallError::code), expected, "{input:?}");
    }
}

#[tokio::test]
async fn schemas_that_are_written_beside_types_are_asked_by_callers_elsewhere() {
    let transport = InProcess::new();
    let worker = transport.serve(CallHandler::new(registry()));
    let remote = transport.remote();
    for wrong in [json!([]), json!({}), json!({ "name": 1 })] {
        let error = remote.call("lamp.named", wrong).await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::ValidationError, "{error}");
    }
    let answer = remote.call("lamp.named", json!({ "name": "a", "reply": { "n": "2" } })).await.unwrap();
    assert_eq!((answer.data, answer.warnings.len()), (json!({ "n": 2 }), 1));
    worker.stop().await;
}

/// Gives a file or a stream.
#[operation(namespace = "files", kind = query)]
async fn download(file: bool) -> Body {
    if file { Body::file("report.pdf") } else { Body::stream(stream::iter([Ok("streamed".into())])) }
}

/// Gives parts of a file.
#[operation(namespace = "files")]
async fn parts() -> impl Stream<Item = Result<Body, CallError>> {
    stream::iter([Ok(Body::stream(stream::iter([Ok("one".into())]))), Ok("two".into())])
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Report {
    #[schemars(range(max = 1))]
    pages: u32,
    body: Body,
}

/// Gives a file with more pages than there may be.
#[operation(namespace = "files", kind = query)]
async fn print_report(pages: u32) -> Report {
    Report { pages, body: "text".into() }
}

/// Passes a download on.
#[operation(namespace = "files", kind = query)]
async fn forward(context: &ops_runtime::Context) -> Result<Body, CallError> {
    Ok(context.env().execute::<Download>(false).await?.data)
}

#[tokio::test]
async fn a_strict_policy_passes_bodies_as_they_are() {
    let registry = Registry::builder().with_policy(OutputPolicy::Strict).build();
    registry.register(Download).unwrap();
    registry.register(Parts).unwrap();
    registry.register(PrintReport).unwrap();
    registry.register(Forward).unwrap();
    let file = registry.execute::<Download>(true).await.unwrap().data;
    assert_eq!(file.as_path(), Some("report.pdf".as_ref()));
    for streamed in
        [registry.execute::<Download>(false).await.unwrap().data, registry.execute::<Forward>(()).await.unwrap().data]
    {
        assert_eq!(streamed.bytes(100).await.unwrap(), "streamed");
    }
    let mut items = registry.subscribe::<Parts>(()).await.unwrap();
    for wanted in ["one", "two"] {
        assert_eq!(items.next().await.unwrap().unwrap().data.bytes(100).await.unwrap(), wanted);
    }
    // What is beside a body is checked, and told with the body.
    assert_eq!(registry.execute::<PrintReport>(1_u32).await.unwrap().data.body.as_bytes(), Some(&b"text"[..]));
    let error = registry.execute::<PrintReport>(2_u32).await.unwrap_err();
    assert_eq!(error.details()["raw"], json!({ "pages": 2, "body": "dGV4dA==" }));
}
