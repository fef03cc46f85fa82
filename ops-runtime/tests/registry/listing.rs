//! What is registered: refused twice, replaced, not found, told of.

use super::*;

#[tokio::test]
async fn an_id_that_is_not_found_names_those_that_are_near() {
    let registry = registry();
    registry.register(Registration::call::<Guarded, _, _>(|_, _| async { Ok(Reply::Value(1)) })).unwrap();
    let nested = |_: Value, context: Context| async move {
        Ok(json!(context.env().call("math.dubble", json!(1)).await.unwrap_err().message()))
    };
    registry.register(Registration::new(OperationSpec::query("demo.nested"), Handler::dynamic(nested))).unwrap();
    let (nobody, writer) = (Identity::new("nobody"), Identity::new("ann").with_scope("math:write"));
    let (owner, of_nobody, of_writer) = (registry.clone(), registry.scoped(nobody), registry.scoped(writer));
    let near = "operation not found: `math.guardet`: did you mean `math.guarded`?";
    for (message, wanted) in [
        (
            owner.call("math.dubble", json!(1)).await.unwrap_err(),
            "operation not found: `math.dubble`: did you mean `math.double`?",
        ),
        (
            owner.stream("Math.Double", json!(1)).await.map(drop).unwrap_err(),
            "operation not found: `Math.Double`: did you mean `math.double`?",
        ),
        (
            owner.call("guarded", json!(1)).await.unwrap_err(),
            "operation not found: `guarded`: did you mean `math.guarded`?",
        ),
        (owner.call("math.guardet", json!(1)).await.unwrap_err(), near),
        (of_writer.call("math.guardet", json!(1)).await.unwrap_err(), near),
        // Nobody learns of operations that they may not run.
        (of_nobody.call("math.guardet", json!(1)).await.unwrap_err(), "operation not found: `math.guardet`"),
        (owner.call("weather.today", json!(1)).await.unwrap_err(), "operation not found: `weather.today`"),
    ] {
        assert_eq!((message.message(), message.code()), (wanted, &ErrorCode::OperationNotFound));
    }
    // The error of a handler's own call may reach a caller elsewhere.
    let said = owner.call("demo.nested", json!(null)).await.unwrap().data;
    assert_eq!(said, "operation not found: `math.dubble`");
}

#[tokio::test]
async fn violations_read_alike() {
    let registry = Registry::new();
    registry.register(Registration::call::<Bounded, _, _>(|n, _| async move { Ok(Reply::Value(n)) })).unwrap();
    for (input, wanted) in [(json!(11), "expected integer to be less or equal to 10"), (json!("x"), "expected integer")]
    {
        let error = registry.call("math.bounded", input).await.unwrap_err();
        assert_eq!(error.message(), format!("the input of `math.bounded` is invalid: {wanted}"));
        assert_eq!(error.details(), &json!({ "violations": [{ "pointer": "", "message": wanted }] }));
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let registry = Registry::new();
    let error = registry.execute::<Double>(1).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::OperationNotFound);
    assert_eq!(error.details(), &json!({ "operationId": "math.double" }));
    assert_eq!(registry.call("no.such", json!(1)).await.unwrap_err().code(), &ErrorCode::OperationNotFound);
    assert_eq!(registry.call("nodot", json!(1)).await.unwrap_err().code(), &ErrorCode::OperationNotFound);
    // A remote caller may send any text as an id. Its beginning is repeated, without what controls a terminal.
    let error = registry.call(&format!("a.\u{1b}[2J\n{}", "x".repeat(2_000_000)), json!(1)).await.unwrap_err();
    let shown = format!("a.\\u{{1b}}[2J {}...", "x".repeat(193));
    assert_eq!(error.message(), format!("operation not found: `{shown}`"));
    assert_eq!(error.details(), &json!({ "operationId": shown }));

    registry.register_spec(Double::SPEC).unwrap();
    let error = registry.execute::<Double>(1).await.unwrap_err();
    assert!(error.message().contains("no handler"), "{error}");
    registry
        .register_handler("math.double", Handler::typed::<Double, _, _>(|n, _| async move { Ok(Reply::Value(n)) }))
        .unwrap();
    assert_eq!(registry.execute::<Double>(1).await.unwrap().data, 1);
}

#[test]
fn registering_twice_is_an_error_unless_meant() {
    let registry = registry();
    assert_eq!(registry.register(double()), Err(RegistryError::Duplicate { id: "math.double".into() }));
    registry.replace(double()).unwrap();
    assert_eq!(registry.list().len(), 1);
    assert_eq!(registry.remove("math.double").unwrap().id, "math.double");
    assert!(registry.remove("math.double").is_none());
    assert!(registry.spec("math.double").is_none());
    let missing = registry.register_handler("math.double", Handler::dynamic(|v, _| async { Ok(v) }));
    assert_eq!(missing, Err(RegistryError::NotFound { id: "math.double".into() }));
}

#[test]
fn registering_all_is_all_or_nothing() {
    let registry = Registry::new();
    assert!(registry.register_all([double(), double()]).is_err());
    assert!(registry.list().is_empty());
}

#[test]
fn a_handler_must_fit_its_operation() {
    let registry = Registry::new();
    let stream = Handler::dynamic_stream(|v, _| async { Ok(futures_util::stream::iter([Ok(v)])) });
    let error = registry.register(Registration::new(Double::SPEC, stream)).unwrap_err();
    assert_eq!(error, RegistryError::KindMismatch { id: "math.double".into() });
    static BAD: OperationSpec = OperationSpec::query("no-dot");
    assert!(matches!(registry.register_spec(&BAD), Err(RegistryError::InvalidId(_))));
    let error = registry.register(double().requires::<String>()).unwrap_err();
    assert!(error.to_string().contains("String"), "{error}");
    Registry::builder().with_state(String::new()).build().register(double().requires::<String>()).unwrap();
}

#[tokio::test]
async fn an_alias_is_another_operation() {
    let registry = Registry::new();
    static OPEN: OperationSpec = OperationSpec::mutation("math.open");
    let run = || Handler::typed::<Guarded, _, _>(|_, _| async { Ok(Reply::Value(1)) });
    registry.register(Registration::new(Guarded::SPEC, run())).unwrap();
    registry.register(Registration::new(&OPEN, run())).unwrap();
    // By its type the operation is the one with its own id and rules, whatever else runs the same code.
    let bob = registry.scoped(Identity::new("bob"));
    assert_eq!(bob.execute::<Guarded>(json!({})).await.unwrap_err().code(), &ErrorCode::AccessDenied);
    assert_eq!(bob.call("math.open", json!({})).await.unwrap().data, json!(1));
    registry.remove("math.open").unwrap();
    registry.execute::<Guarded>(json!({})).await.unwrap();
}

#[tokio::test]
async fn whoever_waits_is_told_of_a_change() {
    let registry = registry();
    let version = registry.version();
    // What fails changes nothing.
    registry.register(double()).unwrap_err();
    assert!(registry.remove("math.no_such").is_none());
    assert_eq!(registry.version(), version);
    let waiting = tokio::spawn({
        let registry = registry.clone();
        async move { registry.changed(version).await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    registry.remove("math.double").unwrap();
    assert_eq!(waiting.await.unwrap(), registry.version());
    // A change that was before is not missed.
    assert!(registry.changed(version).await > version);
}
