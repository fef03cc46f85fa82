//! A host that remembers what it was asked.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ops_runtime::CallError;
use ops_runtime::access::Decision;
use ops_runtime::adapter::BoxFuture;
use ops_runtime::program::{Functions, Host, Limits, Outcome, Program, Report, Sandbox};
use serde_json::{Value, json};

/// Answers calls of `t.NAME`; `t.set*` are changes, which ask.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) calls: Mutex<Vec<(String, Value)>>,
    pub(crate) most_at_once: AtomicUsize,
    at_once: AtomicUsize,
}

impl Recorder {
    pub(crate) fn ids(&self) -> Vec<String> {
        self.calls.lock().unwrap().iter().map(|(id, _)| id.clone()).collect()
    }
}

impl Host for Recorder {
    fn call<'a>(&'a self, id: &'a str, input: Value) -> BoxFuture<'a, Result<Value, CallError>> {
        self.calls.lock().unwrap().push((id.to_owned(), input.clone()));
        Box::pin(async move {
            let at_once = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_at_once.fetch_max(at_once, Ordering::SeqCst);
            let answer = match id {
                "t.sleep" => {
                    tokio::time::sleep(Duration::from_millis(input["ms"].as_u64().unwrap_or(1000))).await;
                    Ok(input)
                }
                "t.fail" => Err(CallError::new("OUT_OF_STOCK", "no pets left").with_details(json!({ "left": 0 }))),
                "t.hostile" => Ok(serde_json::from_str(HOSTILE).unwrap()),
                "t.ids" => Ok(json!({ "id": 9_007_199_254_740_993_u64, "list": [i64::MIN, 5, 1.5] })),
                "t.big" => Ok(Value::from("x".repeat(4 << 20))),
                _ => Ok(input),
            };
            self.at_once.fetch_sub(1, Ordering::SeqCst);
            answer
        })
    }

    fn decide(&self, id: &str, _: &Value) -> Decision {
        match id {
            id if id.starts_with("t.set") => Decision::Ask,
            "t.denied" => Decision::Deny,
            _ => Decision::Allow,
        }
    }

    fn is_query(&self, id: &str) -> bool {
        !id.starts_with("t.set")
    }
}

/// A result that means to be more than data.
const HOSTILE: &str = r#"{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"then":"now",
    "toJSON":"x","text":"\"});ops.t.set({});//${1}`</script>\u2028"}"#;

pub(crate) fn functions() -> Functions {
    let names = ["echo", "sleep", "fail", "hostile", "ids", "big", "denied", "set", "setOther", "showPet"];
    let mut functions: Functions = names.into_iter().map(|name| ("t", name, format!("t.{name}"))).collect();
    functions.insert("odd", "x'];process.exit();//", "t.echo");
    functions.insert("odd", "__proto__", "t.echo");
    functions.insert("odd", "constructor", "t.echo");
    functions.insert("odd", "then", "t.echo");
    functions
}

pub(crate) fn program(source: &str) -> Program {
    Program::new(source, functions())
}

pub(crate) async fn run(source: &str) -> Report {
    run_in(Limits::new(), source).await
}

pub(crate) async fn run_in(limits: Limits, source: &str) -> Report {
    Sandbox::new(limits).run(&program(source), &Recorder::default()).await
}

pub(crate) async fn value(source: &str) -> Value {
    let report = run(source).await;
    match report.outcome {
        Outcome::Done(value) => value,
        other => panic!("{source}: {other:?}"),
    }
}

pub(crate) async fn failure(source: &str) -> ops_runtime::program::Failure {
    match run(source).await.outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("{source}: {other:?}"),
    }
}
