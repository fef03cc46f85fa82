//! Results with faults, of unions whose variants are told apart by constants: a call by type and a call by id must choose the
//! same variant.

use ops_runtime::envelope::Warning;
use serde::{Deserialize, Serialize};

use super::*;

#[derive(Debug, PartialEq)]
pub(crate) enum Early {
    Queued,
    Running,
    Other(Value),
}

ops_runtime::__generated::values!(Early { "queued" => Queued, "running" => Running, _ => Other });

#[derive(Debug, PartialEq)]
pub(crate) enum Late {
    Done,
    Failed,
    Other(Value),
}

ops_runtime::__generated::values!(Late { "done" => Done, "failed" => Failed, _ => Other });

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Started {
    state: Early,
    at: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ended {
    state: Late,
    at: Option<i64>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Job {
    Started(Started),
    Ended(Ended),
}

ops_runtime::__generated::untagged!(Job { Object["state"; "at"] => Started, Object["state"; "at"] => Ended });

operation!(Show: Value => Job, Call, OperationSpec::query("jobs.show").with_output(Schema::text(
    r#"{"oneOf":[
        {"type":"object","properties":{"state":{"enum":["queued","running"]},"at":{"type":"string"}},"required":["state"]},
        {"type":"object","properties":{"state":{"enum":["done","failed"]},"at":{"type":"integer"}},"required":["state"]}
    ]}"#,
)));

fn started(state: Early, at: Option<&str>) -> Job {
    Job::Started(Started { state, at: at.map(str::to_owned) })
}

fn ended(state: Late, at: Option<i64>) -> Job {
    Job::Ended(Ended { state, at })
}

/// The data of a call by type and of a call by id, each with the pointers of its warnings.
async fn both(policy: OutputPolicy, result: &Value) -> ((Job, Vec<String>), (Value, Vec<String>)) {
    let registry = Registry::builder().with_policy(policy).build();
    registry.register(Registration::new(Show::SPEC, Handler::dynamic(|value, _| async { Ok(value) }))).unwrap();
    let typed = registry.execute::<Show>(result.clone()).await.unwrap();
    let by_id = registry.call("jobs.show", result.clone()).await.unwrap();
    let pointers = |warnings: Vec<Warning>| warnings.into_iter().map(|told| told.pointer).collect();
    ((typed.data, pointers(typed.warnings)), (by_id.data, pointers(by_id.warnings)))
}

#[tokio::test]
async fn a_variant_that_knows_the_constants_is_meant_if_its_fault_is_repaired() {
    for (result, job, repaired) in [
        (json!({ "state": "failed", "at": "5" }), ended(Late::Failed, Some(5)), json!({ "state": "failed", "at": 5 })),
        (
            json!({ "state": "queued", "at": 5 }),
            started(Early::Queued, Some("5")),
            json!({ "state": "queued", "at": "5" }),
        ),
    ] {
        let told = || vec!["/at".to_owned()];
        assert_eq!(both(OutputPolicy::Repair, &result).await, ((job, told()), (repaired, told())), "{result}");
    }
}

/// If the fault cannot be repaired, the variant that accepts the result stays, and there is no error.
#[tokio::test]
async fn what_is_not_repaired_stays_as_it_was_read() {
    for (result, job, pointer) in [
        (json!({ "state": "failed", "at": "x" }), started(Early::Other(json!("failed")), Some("x")), "/at"),
        (json!({ "state": "lost", "at": 5 }), ended(Late::Other(json!("lost")), Some(5)), "/state"),
    ] {
        let told = || vec![pointer.to_owned()];
        assert_eq!(both(OutputPolicy::Repair, &result).await, ((job, told()), (result.clone(), told())), "{result}");
    }
    // Without a fault, there is nothing to repair.
    let ((job, told), _) = both(OutputPolicy::Repair, &json!({ "state": "done", "at": 5 })).await;
    assert_eq!((job, told), (ended(Late::Done, Some(5)), vec![]));
}

/// The policy `Cast` makes up values, which would replace the values that were sent.
#[tokio::test]
async fn nothing_is_made_up_for_another_variant() {
    let ((job, told), _) = both(OutputPolicy::Cast, &json!({ "state": "failed", "at": "5" })).await;
    assert_eq!((job, told), (started(Early::Other(json!("failed")), Some("5")), vec![]));
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Begun {
    state: Early,
    at: Option<String>,
    note: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Over {
    state: Late,
    at: Option<i64>,
    note: Option<i64>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Paused {
    state: Late,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Task {
    Begun(Begun),
    Over(Over),
    Paused(Paused),
}

ops_runtime::__generated::untagged!(Task {
    Object["state"; "at", "note"] => Begun,
    Object["state"; "at", "note"] => Over,
    Object["state"] => Paused,
});

operation!(Look: Value => Task, Call, OperationSpec::query("tasks.look").with_output(Schema::text(
    r#"{"oneOf":[
        {"type":"object","properties":{
            "state":{"enum":["queued","running"]},"at":{"type":"string"},"note":{"type":"string"}
        },"required":["state"]},
        {"type":"object","properties":{
            "state":{"enum":["done","failed"]},"at":{"type":"integer"},"note":{"type":"integer"}
        },"required":["state"]},
        {"type":"object","properties":{"state":{"enum":["paused"]}},"required":["state"]}
    ]}"#,
)));

/// If a repair mends one of two faults, only a variant that declares less accepts the value. The first reading stays then.
#[tokio::test]
async fn half_a_repair_drops_nothing_that_was_read() {
    let registry = Registry::builder().with_policy(OutputPolicy::Repair).build();
    registry.register(Registration::new(Look::SPEC, Handler::dynamic(|value, _| async { Ok(value) }))).unwrap();
    let typed = registry.execute::<Look>(json!({ "state": "failed", "at": "5", "note": "x" })).await.unwrap();
    let begun = Begun { state: Early::Other(json!("failed")), at: Some("5".to_owned()), note: Some("x".to_owned()) };
    assert_eq!(typed.data, Task::Begun(begun));
}
