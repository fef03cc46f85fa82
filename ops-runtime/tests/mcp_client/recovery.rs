//! Connections that end, and what becomes of the client meanwhile.

use std::time::{Duration, Instant};

use ops_runtime::ErrorCode;
use ops_runtime::mcp::McpServerConfig;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::faults::{call, faulty};
use crate::peers::{LONG, connect};

/// The server that misbehaves, started by a script that does something else first.
fn after(first: &str) -> McpServerConfig {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/mcp/faulty.py");
    McpServerConfig::stdio("sh", ["-c", &format!("{first}; exec python3 -S '{script}'")]).with_namespace("faulty")
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

#[test]
fn a_recovery_that_ends_with_its_runtime_is_begun_again() {
    let (first, second, third) = (runtime(), runtime(), runtime());
    let [starts, held] =
        ["starts", "held"].map(|name| std::env::temp_dir().join(format!("ops-mcp-{name}-{}", std::process::id())));
    let script = format!("touch '{}'; while test -e '{}'; do sleep 0.1; done", starts.display(), held.display());
    let client = first.block_on(connect(after(&script)));
    std::fs::remove_file(&starts).unwrap();
    std::fs::write(&held, "").unwrap();
    // The connection ends with its runtime.
    drop(first);
    let called = second.spawn({
        let client = client.clone();
        async move { call(&client, "pid", json!({})).await }
    });
    // The recovery starts the server, which is held up.
    let end = Instant::now() + LONG;
    while !starts.exists() {
        assert!(Instant::now() < end, "no recovery has begun");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!called.is_finished());
    drop(second);
    std::fs::remove_file(&held).unwrap();
    third.block_on(async {
        call(&client, "pid", json!({})).await.unwrap();
        client.close().await;
    });
    std::fs::remove_file(&starts).unwrap();
}

#[tokio::test]
async fn the_limit_of_the_whole_call_holds_while_the_server_is_restarted() {
    let hangs = std::env::temp_dir().join(format!("ops-mcp-hangs-{}", std::process::id()));
    let config = after(&format!("test -e '{}' && sleep 30", hangs.display()));
    let client = connect(config.with_total_timeout(Duration::from_secs(2))).await;
    std::fs::write(&hangs, "").unwrap();
    call(&client, "exit", json!({})).await.unwrap_err();
    let called = timeout(Duration::from_secs(10), call(&client, "pid", json!({}))).await;
    std::fs::remove_file(&hangs).unwrap();
    let error = called.expect("an end in time").unwrap_err();
    assert_eq!((error.code(), &error.details()["timeout"]), (&ErrorCode::Timeout, &json!(2000)), "{error}");
    let message = "`faulty` could not be connected to again within 2s: raise `with_total_timeout`";
    assert!(error.message().contains(message), "{error}");
    client.close().await;
}

#[tokio::test]
async fn what_the_server_has_said_of_itself_stays_known() {
    let client = connect(faulty("")).await;
    let (info, snapshot) = (client.server_info(), client.snapshot().to_string());
    assert_eq!(info.name, "faulty.py");
    client.close().await;
    assert_eq!((client.server_info(), client.snapshot().to_string()), (info, snapshot));
}

/// Waits until a process has ended. It may stay as a zombie, if its new parent does not wait for it.
async fn ended(pid: &str) {
    let runs = || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    let end = Instant::now() + LONG;
    while runs() {
        assert!(Instant::now() < end, "{pid} still runs");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn what_a_server_has_started_ends_with_it() {
    let file = std::env::temp_dir().join(format!("ops-mcp-helper-{}", std::process::id()));
    let helper = || std::fs::read_to_string(&file).unwrap().trim().to_owned();
    let client = connect(after(&format!("sleep 1000 >/dev/null 2>&1 & echo $! > '{}'", file.display()))).await;
    // The server exits by itself, and the next call starts another.
    let first = helper();
    call(&client, "exit", json!({})).await.unwrap_err();
    ended(&first).await;
    call(&client, "pid", json!({})).await.unwrap();
    let second = helper();
    assert_ne!(first, second);
    client.close().await;
    ended(&second).await;
    std::fs::remove_file(&file).unwrap();
}
