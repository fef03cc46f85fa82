//! What is recorded, and what is played back of it.

use std::fs;
use std::path::{Path, PathBuf};

use futures_util::{StreamExt, stream};
use ops_runtime::binding::{HttpBinding, HttpResponse, StatusRange};
use ops_runtime::envelope::HttpMeta;
use ops_runtime::mock::{MockCaller, Recorder};
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{Body, Call, CallError, Caller, ErrorCode, Operation, ResponseEnvelope};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Show, Watch, items, pet};

/// A file of this test's own, which goes with it.
struct Scratch(PathBuf);

impl AsRef<Path> for Scratch {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn file(name: &str) -> Scratch {
    Scratch(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mock-{}-{name}", std::process::id())))
}

#[tokio::test]
async fn what_was_recorded_is_played_back() {
    let path = file("recorded.jsonl");
    let real = MockCaller::new()
        .on_envelope::<Show>(|input, _| {
            let id = input["id"]
                .as_u64()
                .ok_or_else(|| CallError::new("NotFound", "no such pet").with_details(json!([1])))?;
            let mut meta = HttpMeta::new(200, "application/json").with_header("etag", "7");
            meta.set_cookie = vec!["sid=hush".to_owned()];
            Ok(ResponseEnvelope::http(pet(id), meta))
        })
        .on_sequence_of_numbers()
        .on_items::<Watch>(|_| Ok(vec![Ok(1), Err("lost".into()), Ok(2)]));
    let recorder = Recorder::create(real, &path).unwrap();
    let shown = recorder.execute::<Show>(json!({ "id": 1, "at": [1, 2] })).await.unwrap();
    let failed = recorder.call("pets.show", json!({ "id": "x" })).await.unwrap_err();
    for expected in [10, 20] {
        assert_eq!(recorder.call("count.next", json!({})).await.unwrap().data, expected);
    }
    assert_eq!(items(&recorder, json!({ "w": 1 })).await.len(), 3);
    // One that is dropped early has the items that were seen.
    drop(recorder.stream("pets.watch", json!({ "w": 2 })).await.unwrap().next().await);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 6, "{text}");
    assert!(!text.contains("hush") && text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");

    let mock = MockCaller::playback(&path).unwrap();
    let played = mock.execute::<Show>(json!({ "at": [1, 2], "id": 1 })).await.unwrap();
    assert_eq!(played.data, shown.data);
    assert_eq!(
        (played.meta.as_http().unwrap().status_code, &*played.meta.as_http().unwrap().headers["etag"]),
        (200, "7")
    );
    let error = mock.execute::<Show>(json!({ "id": "x" })).await.unwrap_err();
    assert_eq!((error.code(), error.message(), error.details()), (failed.code(), failed.message(), failed.details()));
    for expected in [10, 20, 20] {
        assert_eq!(mock.call("count.next", json!({})).await.unwrap().data, expected);
    }
    assert_eq!(items(&mock, json!({ "w": 1 })).await, [Ok(1), Err("lost".to_owned()), Ok(2)]);
    assert_eq!(items(&mock, json!({ "w": 2 })).await, [Ok(1)]);
    assert_eq!(mock.calls_of("count.next").len(), 3);

    // What was not recorded names what was.
    let error = mock.execute::<Show>(json!({ "id": 2, "at": [1, 3], "b": "c" })).await.unwrap_err();
    assert_eq!(
        error.message(),
        "no recorded call of `pets.show` has this input: the nearest has `1` instead of `2` at `/id`, `2` instead of `3` \
         at `/at/1`, nothing instead of `\"c\"` at `/b`"
    );
    let error = mock.call("pets.shwo", json!({})).await.unwrap_err();
    assert!(error.message().contains("`pets.show`") && *error.code() == ErrorCode::OperationNotFound, "{error}");
}

#[tokio::test]
async fn a_subscription_that_was_not_opened_is_played_back_as_such() {
    let path = file("unopened.jsonl");
    let real = MockCaller::new().on_stream::<Watch, _>(|input, _| {
        if input.is_null() { Err(CallError::new("CLOSED", "nothing to watch")) } else { Ok(stream::empty()) }
    });
    let recorder = Recorder::create(real, &path).unwrap();
    let refused = recorder.subscribe::<Watch>(Value::Null).await.err().unwrap();
    assert_eq!(items(&recorder, json!({})).await, []);
    let mock = MockCaller::playback(&path).unwrap();
    let error = mock.subscribe::<Watch>(Value::Null).await.err().unwrap();
    assert_eq!((error.code(), error.message()), (refused.code(), refused.message()));
    assert_eq!(items(&mock, json!({})).await, []);
    // As an earlier version wrote it.
    fs::write(&path, r#"{"id":"pets.watch","input":null,"items":[{"error":{"code":"CLOSED","message":"no"}}]}"#)
        .unwrap();
    assert_eq!(items(&MockCaller::playback(&path).unwrap(), Value::Null).await, [Err("no".to_owned())]);
}

/// A pet that is there, or one that has been made.
#[derive(Debug, Clone, PartialEq)]
enum Saved {
    Found(Named),
    Made(Titled),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Named {
    name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Titled {
    name: Option<String>,
}

ops_runtime::__generated::untagged!(Saved { Object[; "name"] => Found, Object[; "name"] => Made } by [[0], [1]]);

struct Save;

impl Operation for Save {
    type Input = Value;
    type Output = Saved;
    const SPEC: &'static OperationSpec =
        &OperationSpec::mutation("pets.save").with_http(HttpBinding::new("PUT", "/pets").with_responses(
            const {
                &[
                    HttpResponse::new(StatusRange::Exact(200), "application/json").with_variant(0),
                    HttpResponse::new(StatusRange::Exact(201), "application/json").with_variant(1),
                ]
            },
        ));
}

impl Call for Save {}

#[tokio::test]
async fn the_status_of_a_recorded_response_selects_its_success() {
    let path = file("statuses.jsonl");
    let real = MockCaller::new().on_envelope::<Save>(|input, _| {
        let (name, meta) = (Some("Rex".to_owned()), |status| HttpMeta::new(status, "application/json"));
        Ok(match input["made"] == true {
            false => ResponseEnvelope::http(Saved::Found(Named { name }), meta(200)),
            true => ResponseEnvelope::http(Saved::Made(Titled { name }), meta(201)),
        })
    });
    let recorder = Recorder::create(real, &path).unwrap();
    let mut given = Vec::new();
    for made in [false, true] {
        given.push(recorder.execute::<Save>(json!({ "made": made })).await.unwrap());
    }
    let mock = MockCaller::playback(&path).unwrap();
    for (made, given) in [false, true].into_iter().zip(given) {
        assert_eq!(mock.execute::<Save>(json!({ "made": made })).await.unwrap(), given);
    }
}

/// A number of pets that is there, or one that has been made.
#[derive(Debug, Clone, PartialEq)]
enum Tally {
    Found(Counted),
    Made(Counted),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Counted {
    count: i32,
}

ops_runtime::__generated::untagged!(Tally { Object["count"] => Found, Object["count"] => Made } by [[0], [1]]);

struct Recount;

impl Operation for Recount {
    type Input = Value;
    type Output = Tally;
    const SPEC: &'static OperationSpec =
        &OperationSpec::mutation("pets.recount").with_http(HttpBinding::new("PUT", "/count").with_responses(
            const {
                &[
                    HttpResponse::new(StatusRange::Exact(200), "application/json").with_variant(0),
                    HttpResponse::new(StatusRange::Exact(201), "application/json").with_variant(1),
                ]
            },
        ));
}

impl Call for Recount {}

/// A whole number that is written with a fraction is read again, as an integer, and still as the success of the status.
#[tokio::test]
async fn the_status_selects_the_success_of_every_attempt() {
    let path = file("attempts.jsonl");
    let real = MockCaller::new().on_envelope::<Recount>(|_, _| {
        let made = Tally::Made(Counted { count: 2 });
        Ok(ResponseEnvelope::http(made, HttpMeta::new(201, "application/json")))
    });
    let recorder = Recorder::create(real, &path).unwrap();
    let given = recorder.execute::<Recount>(json!({})).await.unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches(r#""count":2"#).count(), 1, "{text}");
    fs::write(&path, text.replace(r#""count":2"#, r#""count":2.0"#)).unwrap();
    let mock = MockCaller::playback(&path).unwrap();
    assert_eq!(mock.execute::<Recount>(json!({})).await.unwrap().data, given.data);
}

trait Numbers {
    fn on_sequence_of_numbers(self) -> Self;
}

impl Numbers for MockCaller {
    fn on_sequence_of_numbers(self) -> Self {
        let next = std::sync::atomic::AtomicU64::new(0);
        self.on_id("count.next", move |_| Ok(json!(next.fetch_add(10, std::sync::atomic::Ordering::Relaxed) + 10)))
    }
}

struct Keep;

impl Operation for Keep {
    type Input = Vec<Body>;
    type Output = u64;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("files.keep");
}

impl Call for Keep {}

#[tokio::test]
async fn bodies_are_played_back() {
    let path = file("bodies.jsonl");
    let count = |bodies: Vec<Body>| Ok(bodies.iter().filter_map(Body::as_bytes).map(|bytes| bytes.len() as u64).sum());
    let recorder = Recorder::create(MockCaller::new().on::<Keep>(count), &path).unwrap();
    let empty = || Body::stream(stream::empty());
    for (bodies, expected) in [(vec!["ab".into(), "c".into()], 3), (vec!["ab".into()], 2), (vec![empty()], 0)] {
        assert_eq!(recorder.execute::<Keep>(bodies).await.unwrap().data, expected);
    }
    let mock = MockCaller::playback(&path).unwrap();
    for (bodies, expected) in [(vec![Body::from("ab")], 2), (vec!["ab".into(), "c".into()], 3)] {
        assert_eq!(mock.execute::<Keep>(bodies).await.unwrap().data, expected);
    }
    assert!(mock.execute::<Keep>(vec![empty()]).await.unwrap_err().message().contains("a stream has no JSON"));
}

struct Halve;

impl Operation for Halve {
    type Input = Vec<f64>;
    type Output = Vec<f64>;
    const SPEC: &'static OperationSpec = &OperationSpec::query("math.halve");
}

impl Call for Halve {}

/// Inputs are compared as JSON: `2` is `2.0`.
#[tokio::test]
async fn a_number_that_is_written_otherwise_is_the_same_input() {
    let path = file("equal.jsonl");
    let halve = |numbers: Vec<f64>| Ok(numbers.into_iter().map(|number| number / 2.0).collect());
    let recorder = Recorder::create(MockCaller::new().on::<Halve>(halve), &path).unwrap();
    recorder.call("math.halve", json!([2, 0.5])).await.unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("[2,0.5]"), "{text}");
    let mock = MockCaller::playback(&path).unwrap();
    assert_eq!(mock.execute::<Halve>(vec![2.0, 0.5]).await.unwrap().data, [1.0, 0.25]);
    let error = mock.execute::<Halve>(vec![2.0, 1.0]).await.unwrap_err();
    assert!(error.message().ends_with(": the nearest has `0.5` instead of `1.0` at `/1`"), "{error}");
}

#[tokio::test]
async fn numbers_that_json_has_not_are_errors() {
    let halve = |numbers: Vec<f64>| Ok(numbers.into_iter().map(|number| 1.0 / number).collect());
    let mock = MockCaller::new().on::<Halve>(halve);
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = mock.execute::<Halve>(vec![1.0, number]).await.unwrap_err();
        let told = format!("JSON has no number for {number}");
        assert!(error.message().contains("recorded") && error.message().ends_with(&told), "{error}");
    }
    assert!(mock.calls().is_empty());

    let path = file("numbers.jsonl");
    let recorder = Recorder::create(mock.clone(), &path).unwrap();
    assert_eq!(recorder.execute::<Halve>(vec![2.0]).await.unwrap().data, [0.5]);
    for numbers in [vec![f64::NAN], vec![0.0]] {
        let error = recorder.execute::<Halve>(numbers).await.unwrap_err();
        assert!(error.message().contains("cannot be recorded") && error.message().contains("JSON has no"), "{error}");
    }
    // The first of the two was not passed on, for it could not be told.
    assert_eq!(mock.calls_of("math.halve"), [json!([2.0]), json!([0.0])]);
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);

    // What runs elsewhere gets JSON.
    let registry = ops_runtime::Registry::new();
    let handler = ops_runtime::adapter::Handler::dynamic(|input: Value, _| async move { Ok(input) });
    registry.register(ops_runtime::adapter::Registration::new(Halve::SPEC, handler)).unwrap();
    let error = registry.execute::<Halve>(vec![1.0, f64::NAN]).await.unwrap_err();
    assert!(error.message().ends_with("JSON has no number for NaN"), "{error}");
    let violations = json!([{ "pointer": "/1", "message": "JSON has no number for NaN" }]);
    assert_eq!((error.code().as_str(), &error.details()["violations"]), ("VALIDATION_ERROR", &violations));
}

#[derive(Serialize, Deserialize)]
struct WeighInput {
    scan: Body,
    weight: f64,
}

struct Weigh;

impl Operation for Weigh {
    type Input = WeighInput;
    type Output = f64;
    const SPEC: &'static OperationSpec = &OperationSpec::query("math.weigh")
        .with_input(Schema::text(r#"{"type":"object","properties":{"weight":{"type":"number","maximum":10}}}"#));
}

impl Call for Weigh {}

#[tokio::test]
async fn numbers_that_json_has_not_are_found_beside_streams() {
    let registry = ops_runtime::Registry::new();
    registry
        .register(ops_runtime::adapter::Registration::call::<Weigh, _, _>(|input, _| async move {
            Ok(ops_runtime::adapter::Reply::Value(input.weight))
        }))
        .unwrap();
    let weigh = |weight| registry.execute::<Weigh>(WeighInput { scan: Body::stream(stream::empty()), weight });
    assert_eq!(weigh(1.5).await.unwrap().data, 1.5);
    let error = weigh(f64::NAN).await.unwrap_err();
    let violations = json!([{ "pointer": "/weight", "message": "JSON has no number for NaN" }]);
    assert_eq!((error.code().as_str(), &error.details()["violations"]), ("VALIDATION_ERROR", &violations));
}

#[tokio::test]
async fn floats_that_were_recorded_are_exact() {
    let path = file("floats.jsonl");
    let third = |numbers: Vec<f64>| Ok(numbers.into_iter().map(|number| number / 3.0).collect());
    let recorder = Recorder::create(MockCaller::new().on::<Halve>(third), &path).unwrap();
    let input: Vec<f64> = (1..2_000).map(|n| 1.0 / f64::from(n) * 1e-5).collect();
    let output = recorder.execute::<Halve>(input.clone()).await.unwrap().data;
    let mock = MockCaller::playback(&path).unwrap();
    assert_eq!(mock.execute::<Halve>(input).await.unwrap().data, output);
}

#[test]
fn recordings_that_cannot_be_read() {
    let good = r#"{"id":"a.b","input":1,"output":{"data":1,"meta":{"source":"http","statusCode":200}}}"#;
    for (text, what) in [
        ("{", "line 1 of"),
        ("[]", "line 1 of"),
        (r#"{"input":1}"#, "it has no `id`"),
        (r#"{"id":"a.b"}"#, "neither an `output` nor an `error`"),
        (r#"{"id":"a.b","output":1,"error":{"code":"A","message":"b"}}"#, "neither an `output` nor an `error`"),
        (r#"{"id":"a.b","error":{"code":1}}"#, "its `error` cannot be read"),
        (r#"{"id":"a.b","items":3}"#, "its `items` are no list"),
        (r#"{"id":"a.b","items":[3]}"#, "an item is no object"),
        (r#"{"id":"a.b","items":[],"error":{"code":1}}"#, "its `error` cannot be read"),
        (r#"{"id":"a.b","items":[{"output":1}],"error":{"code":"A","message":"b"}}"#, "it has `items` and an `error`"),
        (&*format!("{good}\n\n{{\"id\":\"a.b\",\"items\":[]}}"), "line 3 of"),
        (r#"{"id":"no id","output":1}"#, "no id"),
    ] {
        let path = file("bad.jsonl");
        fs::write(&path, text).unwrap();
        let error = MockCaller::playback(&path).unwrap_err();
        assert!(error.message().contains(what), "{text}: {error}");
    }
    assert!(MockCaller::playback(file("not-there.jsonl")).unwrap_err().message().contains("cannot be read"));
}
