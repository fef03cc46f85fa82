//! What a mock says of mistakes in tests.

use futures_util::{FutureExt, StreamExt};
use serde_json::json;

use super::*;
use crate::Operation;

struct Double;
impl Operation for Double {
    type Input = u64;
    type Output = u64;
    const SPEC: &'static OperationSpec = &OperationSpec::query("math.double");
}
impl Call for Double {}

struct Count;
impl Operation for Count {
    type Input = u64;
    type Output = u64;
    const SPEC: &'static OperationSpec = &OperationSpec::subscription("math.count");
}
impl Subscribe for Count {}

#[test]
fn answers_by_type_and_by_id() {
    let mock = MockCaller::new()
        .on::<Double>(|n| n.checked_mul(2).ok_or_else(|| "too much".into()))
        .on_items::<Count>(|n| Ok((0..n).map(Ok).chain([Err("over".into())]).collect()))
        .on_id("any.thing", Ok);
    assert_eq!(mock.execute::<Double>(21_u64).now_or_never().unwrap().unwrap().data, 42);
    assert_eq!(mock.call("math.double", json!(4)).now_or_never().unwrap().unwrap().data, 8);
    assert_eq!(mock.execute::<Double>(u64::MAX).now_or_never().unwrap().unwrap_err().message(), "too much");
    assert_eq!(mock.call("any.thing", json!("x")).now_or_never().unwrap().unwrap().data, "x");
    let items = mock.subscribe::<Count>(2_u64).now_or_never().unwrap().unwrap().collect::<Vec<_>>();
    assert_eq!(items.now_or_never().unwrap().len(), 3);
    assert_eq!(mock.calls_of("math.double"), [json!(21), json!(4), json!(u64::MAX)]);
    assert_eq!(mock.calls().len(), 5);
    // The last answer counts.
    let mock = mock.on::<Double>(|_| Ok(0));
    assert_eq!(mock.execute::<Double>(21_u64).now_or_never().unwrap().unwrap().data, 0);
}

#[test]
fn a_type_of_another_version_is_not_answered_for_the_first() {
    struct Text;
    impl Operation for Text {
        type Input = String;
        type Output = String;
        const SPEC: &'static OperationSpec =
            &OperationSpec::query("math.double").with_input(crate::Schema::text(r#"{"type":"string"}"#));
    }
    impl Call for Text {}
    let mock = MockCaller::new().on::<Double>(Ok);
    let error = mock.execute::<Text>("a".to_owned()).now_or_never().unwrap().unwrap_err();
    assert!(error.message().contains("Double`") && error.message().contains("Text`"), "{error}");
    // By its id, any type is answered.
    let mock = MockCaller::new().on_id("math.double", Ok);
    assert_eq!(mock.execute::<Double>(2_u64).now_or_never().unwrap().unwrap().data, 2);
    assert_eq!(mock.execute::<Text>("a".to_owned()).now_or_never().unwrap().unwrap().data, "a");
}

#[test]
fn what_was_not_expected() {
    let error = MockCaller::new().execute::<Double>(1_u64).now_or_never().unwrap().unwrap_err();
    assert!(error.message().contains("the mock answers nothing"), "{error}");
    let mock = MockCaller::new().on_id("a.b", Ok).on_id("a.c", Ok);
    let error = mock.call("a.d", json!(1)).now_or_never().unwrap().unwrap_err();
    assert!(error.message().contains("`a.b`, `a.c`") && error.message().ends_with("`a.d`"), "{error}");
}

#[test]
fn an_assertion_in_a_function_says_what_it_found() {
    let mock = MockCaller::new()
        .on::<Double>(|n| if n == 2 { Ok(4) } else { panic!("{n} is not 2") })
        .on_items::<Count>(|_| panic!("no items"))
        .on_id("a.b", |_| panic!("no call"))
        .on_items_id("a.c", |_| panic!("no stream"));
    let errors = [
        mock.execute::<Double>(3_u64).now_or_never().unwrap().unwrap_err(),
        mock.call("math.double", json!(3)).now_or_never().unwrap().unwrap_err(),
        mock.subscribe::<Count>(1_u64).now_or_never().unwrap().err().unwrap(),
        mock.call("a.b", json!(1)).now_or_never().unwrap().unwrap_err(),
        mock.stream("a.c", json!(1)).now_or_never().unwrap().err().unwrap(),
    ];
    let said = ["3 is not 2", "3 is not 2", "no items", "no call", "no stream"];
    for (error, said) in errors.iter().zip(said) {
        assert_eq!(*error.code(), ErrorCode::UnknownError);
        assert_eq!(error.message(), format!("the mock's function panicked: {said}"));
    }
    assert_eq!(mock.calls_of(&Double::SPEC.id), [json!(3), json!(3)]);
}

#[test]
fn a_call_counts_when_it_begins() {
    let mock = MockCaller::new().on::<Double>(|n| Ok(2 * n)).on_id("a.b", Ok);
    drop(mock.execute::<Double>(7_u64));
    drop(mock.call("a.b", json!(7)));
    let (first, second) = (mock.execute::<Double>(1_u64), mock.execute::<Double>(2_u64));
    assert!(mock.calls().is_empty());
    assert_eq!(second.now_or_never().unwrap().unwrap().data, 4);
    assert_eq!(first.now_or_never().unwrap().unwrap().data, 2);
    assert_eq!(mock.calls_of("math.double"), [json!(2), json!(1)]);
}
