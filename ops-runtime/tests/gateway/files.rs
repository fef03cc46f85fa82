//! Files: what the audit log says of them, which is never what is in them, and how long they count.

use std::time::Duration;

use futures_util::stream;
use ops_runtime::adapter::{Bodies, BoxFuture, Endpoint, Handler, Payload, Registration};
use ops_runtime::gateway::{AuditInputs, AuditLog, AuditOptions, CallerLimits, Gateway};
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{Body, Call, CallError, Context, Operation, Registry, ResponseEnvelope};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Serialize, Deserialize)]
struct KeepInput {
    name: String,
    file: Body,
    more: Vec<Body>,
}

struct Keep;

impl Operation for Keep {
    type Input = KeepInput;
    type Output = Body;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("files.keep")
        .with_input(Schema::text(
            r#"{"type":"object","properties":{"name":{"type":"string"},"file":{"type":"string","format":"binary"},
                "more":{"type":"array","items":{"type":"string","format":"binary"}}}}"#,
        ))
        .with_output(Schema::text(r#"{"type":"string","format":"binary"}"#));
}

impl Call for Keep {}

/// Gives the file back.
struct Kept;

impl Endpoint for Kept {
    fn call(
        &self,
        spec: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let given = context.extension::<Bodies>().and_then(|bodies| bodies.get(&input["file"]).cloned());
        let data = given.map_or(Payload::Value(json!("")), Payload::Body);
        let envelope = ResponseEnvelope::local(data, spec.id.clone());
        Box::pin(async move { Ok(envelope) })
    }

    fn streams_bodies(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn files_are_told_by_their_facts() {
    let file = std::env::temp_dir().join(format!("ops-files-{}.jsonl", std::process::id()));
    let options = AuditOptions::new().with_inputs(AuditInputs::new().with_max_bytes(200));
    let registry = Registry::new();
    registry.register(Registration::new(Keep::SPEC, Handler::endpoint(Kept))).unwrap();
    let log = AuditLog::to_file(options, &file).unwrap();
    let gateway = Gateway::builder().with_registry(registry).with_audit(log).build().await.unwrap();

    let own = Body::from("hush!".repeat(1_000)).with_file_name("a.txt").with_content_type("text/plain");
    let more = vec![Body::stream(stream::empty()), Body::file(&file)];
    let input = KeepInput { name: "ann".to_owned(), file: own.clone(), more };
    assert_eq!(gateway.registry().execute::<Keep>(input).await.unwrap().data, own);
    // By id, bytes are base64.
    let text = "aHVzaA==".repeat(100);
    let input = json!({ "name": "bob", "file": "aHVzaA==", "more": [text, "no base64!"] });
    gateway.registry().call("files.keep", input.clone()).await.unwrap();
    gateway.flush().await;

    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!text.contains("hush") && !text.contains("aHV") && !text.contains("body:"), "{text}");
    let name = file.file_name().unwrap().to_str().unwrap();
    let told = json!({
        "name": "ann",
        "file": { "fileName": "a.txt", "contentType": "text/plain", "bytes": 5_000 },
        "more": [{}, { "fileName": name, "bytes": 0 }],
    });
    assert_eq!(lines[0]["input"], told, "{text}");
    let json = r#"{"name":"ann","file":,"more":[,]}"#.len();
    assert_eq!((&lines[0]["inputBytes"], &lines[0]["outputBytes"]), (&json!(json + 5_000), &json!(5_000)));
    // A text that is not base64 stands for its own bytes.
    let told = json!({ "name": "bob", "file": { "bytes": 4 }, "more": [{ "bytes": 800 }, { "bytes": 10 }] });
    assert_eq!((&lines[1]["input"], &lines[1]["inputBytes"]), (&told, &json!(input.to_string().len())), "{text}");
}

#[tokio::test]
async fn a_download_is_in_flight_until_it_has_been_read() {
    let registry = Registry::new();
    registry.register(Registration::new(Keep::SPEC, Handler::endpoint(Kept))).unwrap();
    let limits = CallerLimits::new().with_max_in_flight(1).with_max_waiting(0, Duration::ZERO);
    let gateway = Gateway::builder().with_registry(registry).with_limits(limits).build().await.unwrap();
    let download = || {
        let file = Body::stream(stream::iter([Ok("he".into()), Ok("llo".into())]));
        gateway.registry().execute::<Keep>(KeepInput { name: "ann".to_owned(), file, more: Vec::new() })
    };
    for is_read in [true, false] {
        let body = download().await.unwrap().data;
        assert_eq!(download().await.unwrap_err().code().as_str(), "TOO_MANY_REQUESTS");
        if is_read {
            assert_eq!(body.bytes(1024).await.unwrap(), "hello");
        } else {
            drop(body);
        }
    }
    download().await.unwrap();
}
