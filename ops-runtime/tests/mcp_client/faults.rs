//! A server over stdio that misbehaves in every way.

use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::join_all;
use ops_runtime::binding::{McpBinding, McpOutput};
use ops_runtime::mcp::{ElicitationAnswer, ElicitationMode, McpClient, McpServerConfig};
use ops_runtime::registry::{CancelToken, OutputPolicy, Progress};
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{CallError, CallOptions, ErrorCode, Registry};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::peers::{LONG, connect};

/// The server that misbehaves.
pub(crate) fn faulty(faults: &str) -> McpServerConfig {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/mcp/faulty.py");
    McpServerConfig::stdio("python3", ["-S", script]).with_env("FAULTY", faults).with_namespace("faulty")
}

pub(crate) async fn call(client: &McpClient, tool: &str, input: Value) -> Result<Value, CallError> {
    let id = format!("faulty.{tool}");
    timeout(LONG, client.call(&id, input)).await.expect("an end in time").map(|envelope| envelope.data)
}

pub(crate) fn text(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

/// The text of a tool that says one number.
async fn number(client: &McpClient, tool: &str) -> u32 {
    let answer = call(client, tool, json!({})).await.unwrap();
    answer[0]["text"].as_str().unwrap().parse().unwrap()
}

/// Waits until something is so.
async fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let end = tokio::time::Instant::now() + LONG;
    while !is() {
        assert!(tokio::time::Instant::now() < end, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until the server was told of so many calls that nobody waits for.
pub(crate) async fn cancelled(client: &McpClient, calls: u32) {
    let end = tokio::time::Instant::now() + LONG;
    loop {
        let seen = number(client, "seen").await;
        if seen == calls {
            return;
        }
        assert!(seen < calls && tokio::time::Instant::now() < end, "{seen} of {calls}");
    }
}

/// Waits until a process is gone. A zombie is not: somebody has to wait for it.
async fn gone(pid: u32) {
    eventually("the child is gone", || !Path::new(&format!("/proc/{pid}")).exists()).await;
}

#[tokio::test]
async fn a_child_that_exits_fails_the_call_and_is_started_again() {
    let client = connect(faulty("")).await;
    let (first, waiting) = (number(&client, "pid").await, client.clone());
    // A call that is under way when the child dies fails, too.
    let other = tokio::spawn(async move { call(&waiting, "silent", json!({})).await });
    eventually("both are under way", || client.in_flight() == 1).await;
    let error = call(&client, "exit", json!({})).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ExecutionError);
    assert_eq!(error.details()["interrupted"], true);
    assert!(error.message().contains("`faulty` exited (exit status: 3)"), "{error}");
    assert!(error.message().contains("not repeated"), "{error}");
    assert_eq!(other.await.unwrap().unwrap_err(), error);
    assert_eq!(client.in_flight(), 0);

    // All calls after that share one new child.
    let pids = join_all((0..20).map(|_| number(&client, "pid"))).await;
    assert!(pids.iter().all(|pid| *pid == pids[0] && *pid != first), "{pids:?} after {first}");
    gone(first).await;
    client.close().await;
    gone(pids[0]).await;
    let error = call(&client, "pid", json!({})).await.unwrap_err();
    assert!(error.message().contains("closed"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_server_that_stays_down_fails_calls_at_once() {
    let switch = std::env::temp_dir().join(format!("ops-mcp-down-{}", std::process::id()));
    std::fs::write(&switch, "").unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/mcp/faulty.py");
    let start =
        format!("test -e '{}' || {{ echo no licence >&2; exit 9; }}; exec python3 -S '{script}'", switch.display());
    let client = connect(McpServerConfig::stdio("sh", ["-c", &start]).with_namespace("faulty")).await;
    std::fs::remove_file(&switch).unwrap();
    call(&client, "exit", json!({})).await.unwrap_err();
    // The first calls after that wait for some attempts, and the next ones do not wait for more. On a machine that is busy
    // a call may come so late that it waits for another attempt: it fails, and the next one is twice as far away.
    let (mut begun, mut attempts, mut wait) = (Instant::now(), 0, 0.0);
    let mut refused = 0;
    while refused < 20 {
        let error = call(&client, "pid", json!({})).await.unwrap_err();
        let message = error.message();
        if message.starts_with("cannot connect to the MCP server") {
            assert!(error.details().is_null(), "{error}");
            (begun, attempts, refused) = (Instant::now(), attempts + 1, 0);
            continue;
        }
        assert!(message.starts_with("the MCP server `faulty` is down, and is tried again in "), "{error}");
        assert!(message.contains("no licence"), "{error}");
        wait = error.details()["retryAfter"].as_f64().unwrap();
        assert!(wait > 1.0 && wait < 30.0, "{error}");
        refused += 1;
    }
    assert!(attempts > 0, "no call waited for an attempt");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    // It is back, and so are calls once the delay has passed.
    std::fs::write(&switch, "").unwrap();
    tokio::time::sleep(Duration::from_secs_f64(wait)).await;
    number(&client, "pid").await;
    client.close().await;
    std::fs::remove_file(&switch).unwrap();
}

#[tokio::test]
async fn no_child_is_left_behind() {
    // It goes on when its input ends, and must be killed.
    let client = connect(faulty("stubborn")).await;
    let pid = number(&client, "pid").await;
    client.close().await;
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "closing waits for the child");

    // A client that is dropped, and a registry that has its operations.
    let client = connect(faulty("")).await;
    let pid = number(&client, "pid").await;
    let registry = Registry::new();
    client.register_all(&registry).unwrap();
    drop(client);
    registry.call("faulty.pid", json!({})).await.expect("the registry keeps the connection");
    drop(registry);
    gone(pid).await;
}

/// What a script of a shell says, that is a server which exits at once.
#[cfg(unix)]
async fn last_words(script: &str) -> String {
    let started = std::time::Instant::now();
    let error = McpClient::connect(McpServerConfig::stdio("sh", ["-c", script])).await.unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(20), "it does not wait for its end: {script}: {error}");
    error.message().to_owned()
}

#[cfg(unix)]
#[tokio::test]
async fn a_server_that_exits_at_once_says_why() {
    // Often: what it writes, its exit and our first message come in any order.
    for _ in 0..20 {
        assert_eq!(
            last_words("echo boom >&2; exit 3").await,
            "cannot connect to the MCP server `sh`: it exited (exit status: 3); the last lines that it wrote to standard \
             error are:\nboom"
        );
    }
    for (script, parts) in [
        ("echo bye >&2; kill -9 $$", &["(signal: 9", "\nbye"][..]),
        // It reads nothing, and goes on for a while.
        ("exec <&-; echo deaf >&2; sleep 30", &["it reads no more", "\ndeaf"]),
        // A process that it leaves behind holds its standard error.
        ("echo last >&2; sleep 30 >&2 & exit 4", &["exit status: 4", "\nlast"]),
        ("printf 'a\\033[31mb\\n' >&2; exit 1", &["\na\\u{1b}[31mb"]),
        ("head -c 3000 /dev/zero | tr '\\0' x >&2; exit 1", &["\nxxx", "x..."]),
    ] {
        let message = last_words(script).await;
        assert!(parts.iter().all(|part| message.contains(part)), "{script}: {message}");
        assert!(message.len() < 1000, "{message}");
    }
    let many = last_words("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $i >&2; done; exit 1").await;
    assert!(many.contains("are:\nline 3\n") && many.ends_with("line 12"), "the last ten: {many}");
}

#[tokio::test]
async fn a_server_that_does_not_start_says_why() {
    let error = McpClient::connect(faulty("dead")).await.unwrap_err();
    for part in ["cannot connect to the MCP server `faulty`", "exited (exit status: 7)", "cannot open the shop"] {
        assert!(error.message().contains(part), "{error}");
    }
    let error = McpClient::connect(McpServerConfig::stdio("no-such-command", ["s3cret"])).await.unwrap_err();
    assert!(error.message().contains("`no-such-command` cannot be started"), "{error}");
    assert!(!error.message().contains("s3cret"), "{error}");
    let config = McpServerConfig::http("http://127.0.0.1:9/mcp").with_header("X Own", "s3cret");
    let error = McpClient::connect(config).await.unwrap_err();
    assert!(error.message().contains("the header `X Own` is invalid: its name or its value"), "{error}");
    let quick = faulty("mute").with_connect_timeout(Duration::from_millis(300));
    let error = McpClient::connect(quick).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::Timeout, "{error}");
}

#[tokio::test]
async fn servers_of_all_ages_are_understood() {
    for (faults, protocol) in [
        ("", "2025-11-25"),
        ("chatty", "2025-11-25"),
        ("odd", "2025-11-25"),
        ("old", "2025-11-25"),
        ("new", "2026-07-28"),
        // It is taken for an old one first, as it says nothing for long.
        ("new late", "2026-07-28"),
    ] {
        let client = connect(faulty(faults)).await;
        assert_eq!(client.server_info().protocol_version, protocol, "{faults}");
        assert_eq!(client.server_info().name, "faulty.py", "{faults}");
        assert_eq!(call(&client, "echo", json!({ "value": 7 })).await, Ok(json!({ "value": 7 })), "{faults}");
        client.close().await;
    }
}

#[tokio::test]
async fn what_is_no_message_is_skipped() {
    let client = connect(faulty("chatty")).await;
    assert_eq!(call(&client, "garbage", json!({ "value": 5 })).await, Ok(text("5")));
    assert_eq!(call(&client, "batch", json!({})).await, Ok(text("in a batch")));
    assert_eq!(call(&client, "echo", json!({ "value": 6 })).await, Ok(json!({ "value": 6 })));
    client.close().await;
}

#[tokio::test]
async fn answers_that_nobody_waits_for_are_dropped() {
    let client = connect(faulty("").with_timeout(Duration::from_secs(3))).await;
    assert_eq!(call(&client, "twice", json!({})).await, Ok(text("1")));
    // Only answers with other ids come.
    let error = call(&client, "stray", json!({})).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::Timeout);
    assert_eq!(call(&client, "echo", json!({ "value": 6 })).await, Ok(json!({ "value": 6 })));
    assert_eq!(client.in_flight(), 0);
    client.close().await;
}

#[tokio::test]
async fn a_call_without_an_answer_ends_in_time_and_is_cancelled() {
    let client = connect(faulty("").with_timeout(Duration::from_secs(3))).await;
    let error = call(&client, "silent", json!({})).await.unwrap_err();
    assert_eq!((error.code(), &error.details()["timeout"]), (&ErrorCode::Timeout, &json!(3000)));
    assert!(error.message().contains("neither answered nor reported progress within 3s"), "{error}");
    cancelled(&client, 1).await;
    client.close().await;

    // The caller's own deadline, and its cancellation.
    let client = connect(faulty("")).await;
    let options = CallOptions::new().with_timeout(Duration::from_millis(500));
    let error = client.call_with("faulty.silent", json!({}), options).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::Timeout);
    let token = CancelToken::new();
    let options = CallOptions::new().with_cancel(token.clone());
    let (ended, ()) = tokio::join!(client.call_with("faulty.silent", json!({}), options), async {
        eventually("it is under way", || client.in_flight() == 1).await;
        token.cancel();
    });
    assert_eq!(ended.unwrap_err().code(), &ErrorCode::Aborted);
    cancelled(&client, 2).await;
    assert_eq!(client.in_flight(), 0);
    client.close().await;
}

#[tokio::test]
async fn progress_is_a_stream_and_a_sign_of_life() {
    // The steps take longer than the timeout together, but not each.
    let client = connect(faulty("").with_timeout(Duration::from_secs(2))).await;
    let (sink, progress) = Progress::channel();
    let options = CallOptions::new().with_progress(sink);
    let called = client.call_with("faulty.steps", json!({ "value": 6, "ms": 500 }), options);
    let (answer, progress) = tokio::join!(called, progress.collect::<Vec<_>>());
    assert_eq!(answer.unwrap().data, text("done"));
    let expected: Vec<_> =
        (1..=6).map(|n| Progress::new(f64::from(n)).with_total(6.0).with_message(format!("step {n}"))).collect();
    assert_eq!(progress, expected);
    client.close().await;

    // A task reports under the number of its call, until it has ended.
    let client = connect(faulty("tasks")).await;
    let (sink, progress) = Progress::channel();
    let called = client.call_with("faulty.job", json!({}), CallOptions::new().with_progress(sink));
    let (answer, progress) = tokio::join!(called, progress.collect::<Vec<_>>());
    assert_eq!(answer.unwrap().data, text("done"));
    assert_eq!(progress.iter().map(|report| report.progress).collect::<Vec<_>>(), [1.0, 2.0, 3.0]);
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!((client.in_flight(), call(&client, "echo", json!({ "value": 7 })).await.is_ok()), (0, true));
    client.close().await;

    // It does not help against the limit of the whole call.
    let limits = faulty("").with_timeout(LONG).with_total_timeout(Duration::from_millis(500));
    let client = connect(limits).await;
    let error = call(&client, "steps", json!({ "value": 1000, "ms": 50 })).await.unwrap_err();
    assert!(error.message().contains("did not answer within 500ms"), "{error}");
    client.close().await;
}

#[tokio::test]
async fn a_line_that_is_too_long_is_an_error() {
    let client = connect(faulty("")).await;
    let error = call(&client, "huge", json!({})).await.unwrap_err();
    assert!(error.message().contains("a line of more than 67108864 bytes"), "{error}");
    assert_eq!(call(&client, "echo", json!({ "value": 1 })).await, Ok(json!({ "value": 1 })), "it is started again");
    client.close().await;
}

#[tokio::test]
async fn errors_of_tools_and_of_the_protocol_are_told_apart() {
    let client = connect(faulty("")).await;
    let envelope = client.call("faulty.fail", json!({})).await.unwrap();
    assert!(envelope.meta.as_mcp().unwrap().is_error);
    assert_eq!(envelope.data, text("it did not work"));
    let error = call(&client, "refuse", json!({})).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ExecutionError);
    assert!(error.message().contains("answered with error -32050: not today"), "{error}");
    let details = json!({ "server": "faulty", "code": -32050, "message": "not today", "data": { "why": "holiday" } });
    assert_eq!(error.details(), &details);
    assert_eq!(call(&client, "echo", json!({ "value": "x" })).await.unwrap_err().code(), &ErrorCode::ValidationError);
    assert_eq!(call(&client, "nothing", json!({})).await.unwrap_err().code(), &ErrorCode::OperationNotFound);
    client.close().await;
}

#[tokio::test]
async fn nothing_that_a_server_says_is_lost() {
    let client = connect(faulty("")).await;
    let envelope = client.call("faulty.strange", json!({})).await.unwrap();
    let blocks = json!([{ "type": "text", "text": "{\"type\":\"hologram\",\"depth\":3}" }, { "type": "text", "text": "t", "x-more": 1 }]);
    assert_eq!(envelope.data, blocks);
    let echo = &client.tools()[0];
    assert_eq!((&echo["execution"], &echo["x-note"]), (&json!({ "taskSupport": "forbidden" }), &json!("kept")));
    client.close().await;
}

#[tokio::test]
async fn lists_come_in_pages_and_end() {
    let all = connect(faulty("")).await;
    let pages = connect(faulty("pages")).await;
    assert_eq!(pages.tools(), all.tools());
    assert_eq!(pages.operations().len(), 20);
    for client in [all, pages] {
        client.close().await;
    }
    for (faults, message) in [("endless", "more than 1000 pages"), ("circular", "sent a cursor twice")] {
        let error = timeout(LONG, McpClient::connect(faulty(faults))).await.unwrap().unwrap_err();
        assert!(error.message().contains(message), "{error}");
    }
}

#[tokio::test]
async fn references_to_the_network_are_never_followed() {
    let trap = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/schema.json", trap.local_addr().unwrap());
    let client = connect(faulty("remote").with_env("REMOTE", &url)).await;
    // A schema that cannot be had allows anything.
    assert_eq!(call(&client, "slow", json!({ "value": "anything" })).await, Ok(text("anything")));
    assert!(
        client.diagnostics().iter().any(|diagnostic| diagnostic.message.contains(&url)),
        "{:?}",
        client.diagnostics()
    );
    client.close().await;
    let visit = timeout(Duration::from_millis(200), trap.accept()).await;
    assert!(visit.is_err(), "somebody came for the schema");
}

#[tokio::test]
async fn tools_follow_the_server() {
    let client = connect(faulty("")).await;
    let registry = Registry::new();
    client.register_all(&registry).unwrap();
    assert_eq!(call(&client, "grow", json!({})).await, Ok(text("grown")));
    eventually("the new tool is there", || registry.spec("faulty.new-tool").is_some()).await;
    eventually("the old tool is gone", || registry.spec("faulty.batch").is_none()).await;
    assert_eq!(registry.call("faulty.new-tool", json!({})).await.unwrap().data, text("I am new"));
    assert_eq!(call(&client, "new-tool", json!({})).await, Ok(text("I am new")));
    assert_eq!(call(&client, "batch", json!({})).await.unwrap_err().code(), &ErrorCode::OperationNotFound);
    client.close().await;
}

#[tokio::test]
async fn what_a_server_asks_goes_to_the_user_or_is_declined() {
    for age in ["", "new"] {
        let client = connect(faulty(age)).await;
        assert_eq!(call(&client, "ask", json!({})).await, Ok(text(r#"{"action": "decline"}"#)), "{age}");
        client.close().await;
        let config = faulty(age).with_elicitation(|request| async move {
            assert_eq!(request.message, "Which?");
            assert!(
                matches!(&request.mode, ElicitationMode::Form(schema) if schema["properties"]["n"]["type"] == "integer")
            );
            ElicitationAnswer::Accept(json!({ "n": 7 }))
        });
        let client = connect(config).await;
        let expected = r#"{"action": "accept", "content": {"n": 7}}"#;
        assert_eq!(call(&client, "ask", json!({})).await, Ok(text(expected)), "{age}");
        client.close().await;
    }
}

#[tokio::test]
async fn pings_are_answered_by_their_ids() {
    let client = connect(faulty("")).await;
    let answer = call(&client, "ping", json!({})).await.unwrap();
    let pongs: Value = serde_json::from_str(answer[0]["text"].as_str().unwrap()).unwrap();
    let pong = |id: Value| json!({ "jsonrpc": "2.0", "id": id, "result": {} });
    assert_eq!(pongs, json!([pong(json!(7)), pong(json!("seven")), pong(json!(8))]));
    client.close().await;
}

#[tokio::test]
async fn time_stands_still_while_the_user_thinks() {
    let thinking = faulty("").with_timeout(Duration::from_secs(3)).with_elicitation(|_| async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        ElicitationAnswer::Cancel
    });
    let client = connect(thinking).await;
    assert_eq!(call(&client, "ask", json!({})).await, Ok(text(r#"{"action": "cancel"}"#)));
    client.close().await;
}

static ECHO: OperationSpec =
    OperationSpec::query("faulty.echo").with_mcp(McpBinding::new("echo", McpOutput::Structured));
static OTHERWISE: OperationSpec = OperationSpec::query("faulty.other")
    .with_mcp(McpBinding::new("echo", McpOutput::Structured))
    .with_input(Schema::text(r#"{"type":"object","properties":{"value":{"type":"string"}}}"#));
static QUOTE: OperationSpec = OperationSpec::query("till.quote");
static LOST: OperationSpec = OperationSpec::query("faulty.lost").with_mcp(McpBinding::new("lost", McpOutput::Content));

#[tokio::test]
async fn operations_that_the_server_lacks_or_has_otherwise_are_named() {
    let client = connect(faulty("").with_operations([&ECHO, &LOST, &OTHERWISE])).await;
    let message = "`faulty.lost`: the MCP server `faulty` has no tool `lost`";
    let diagnostics = client.diagnostics();
    assert_eq!((diagnostics.len(), diagnostics[0].message.as_str()), (2, message));
    let otherwise = "`faulty.other` is not as the MCP server `faulty` has it: /inputSchema/properties/value: ";
    assert!(diagnostics[1].message.starts_with(otherwise), "{}", diagnostics[1]);
    client.close().await;
    let strict = faulty("").with_policy(OutputPolicy::Strict);
    let error = McpClient::connect(strict.clone().with_operations([&LOST])).await.unwrap_err();
    assert!(error.message().contains(message), "{error}");
    let client = connect(strict).await;
    assert!(client.bind([&LOST]).is_err_and(|error| error.message() == message));
    assert!(client.bind([&ECHO]).is_ok());
    let registry = Registry::new();
    registry.register_all(client.bind([&QUOTE]).unwrap()).unwrap();
    let error = registry.call("till.quote", json!({})).await.unwrap_err();
    assert!(error.message().starts_with("`till.quote` is not a tool of an MCP server: call it on a "), "{error}");
    client.close().await;
}

#[tokio::test]
async fn a_child_gets_no_secrets_of_this_process() {
    // Set by cargo for every test, and nothing that a server needs.
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok());
    let client = connect(faulty("")).await;
    assert_eq!(call(&client, "shout", json!({})).await, Ok(text("no secret")));
    client.close().await;
    let client = connect(faulty("").with_env("SECRET", "s3cret")).await;
    assert_eq!(call(&client, "shout", json!({})).await, Ok(text("s3cret")));
    client.close().await;
    // Unless it is to get all.
    let client = connect(faulty("").with_inherited_env()).await;
    assert_eq!(call(&client, "shout", json!({})).await, Ok(text(env!("CARGO_MANIFEST_DIR"))));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_calls_none_is_lost_and_none_mixed_up() {
    let client = connect(faulty("")).await;
    let pid = number(&client, "pid").await;
    // Half of them, at random, are dropped at a random time; the same in every run.
    let mut random = fastrand::Rng::with_seed(7);
    let calls = (0..1000).map(|n| {
        let (client, ms, drop) = (client.clone(), random.u64(0..400), random.bool().then(|| random.u64(0..400)));
        tokio::spawn(async move {
            let called = call(&client, "slow", json!({ "value": n, "ms": ms }));
            match drop {
                None => Some(called.await),
                Some(after) => timeout(Duration::from_millis(after), called).await.ok(),
            }
            .map(|answer| assert_eq!(answer, Ok(text(&n.to_string()))))
            .is_some()
        })
    });
    let calls: Vec<_> = calls.collect();
    let answered = join_all(calls).await.into_iter().filter(|answered| *answered.as_ref().unwrap()).count();
    assert!((400..1000).contains(&answered), "{answered}");
    assert_eq!(client.in_flight(), 0);
    cancelled(&client, 1000 - u32::try_from(answered).unwrap()).await;
    client.close().await;
    gone(pid).await;
}
