use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::OperationKind;
use crate::gateway::CallerId;

fn entry(request: impl ToString) -> AuditEntry {
    AuditEntry::new(request.to_string(), "shop.buyPet", OperationKind::Mutation).with_caller(&CallerId::connection("c"))
}

/// A file that no other test uses.
fn path() -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("ops-audit-{}-{}.jsonl", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    std::env::temp_dir().join(name)
}

fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A sink that keeps what it gets, after a failure for each that is due.
#[derive(Clone, Default)]
struct Kept {
    entries: Arc<Mutex<Vec<Value>>>,
    failures: Arc<AtomicUsize>,
    /// Held to keep the sink busy.
    gate: Arc<Mutex<()>>,
}

impl Kept {
    fn log(&self, options: AuditOptions) -> AuditLog {
        let kept = self.clone();
        AuditLog::to_sink(options, move |entry: &AuditEntry| {
            let _open = kept.gate.lock();
            let due = kept.failures.load(Ordering::SeqCst);
            match due {
                0 => kept.entries.lock().unwrap().push(entry.to_json()),
                1 => {
                    kept.failures.store(0, Ordering::SeqCst);
                    panic!("a sink that panics");
                }
                _ => {
                    kept.failures.store(due - 1, Ordering::SeqCst);
                    return Err(io::ErrorKind::StorageFull.into());
                }
            }
            Ok(())
        })
        .unwrap()
    }

    fn requests(&self) -> Vec<String> {
        self.entries.lock().unwrap().iter().map(|entry| entry["request"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test]
async fn a_file_of_its_owner_alone_that_is_appended_to() {
    let path = path();
    for round in 0..2 {
        let log = AuditLog::to_file(AuditOptions::new(), &path).unwrap();
        let mut record = log.begin(entry(round), &json!({ "password": "hush" })).unwrap();
        record.set_approval(Approval::Asked);
        record.set_approval(Approval::Denied { by: "policy".to_owned() });
        record.finish(Err(&CallError::new("DENIED", "hush")));
        drop(log.begin(entry("dropped"), &json!("hush")).unwrap());
        log.begin(entry("done"), &json!(7)).unwrap().finish(Ok(&json!(["hush"])));
        log.flush().await;
    }
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions()) & 0o777, 0o600);
    let (text, lines) = (fs::read_to_string(&path).unwrap(), lines(&path));
    fs::remove_file(&path).unwrap();
    assert!(!text.contains("hush"), "{text}");
    let told = |line: &Value| {
        let names = ["request", "outcome", "inputBytes", "outputBytes"];
        names.map(|name| line.get(name).cloned().unwrap_or_default())
    };
    let expected = |round: &str| {
        [
            [json!(round), json!("DENIED"), json!(19), Value::Null],
            [json!("dropped"), json!("ABORTED"), json!(6), Value::Null],
            [json!("done"), json!("ok"), json!(1), json!(8)],
        ]
    };
    assert_eq!(lines.iter().map(told).collect::<Vec<_>>(), [expected("0"), expected("1")].concat());
    assert_eq!(lines[0]["approval"], json!({ "state": "denied", "by": "policy" }));
    let error = AuditLog::to_file(AuditOptions::new(), "/no/such/place").unwrap_err();
    assert!(error.message().starts_with("the audit log `/no/such/place` cannot be opened: "), "{error}");
}

#[tokio::test]
async fn inputs_are_written_without_secrets_if_that_is_asked_for() {
    let kept = Kept::default();
    let log = kept.log(AuditOptions::new().with_inputs(AuditInputs::new().with_max_bytes(40)));
    log.begin(entry(1), &json!({ "petId": 7, "token": "hush" })).unwrap().finish(Ok(&Value::Null));
    log.begin(entry(2), &json!("x".repeat(38))).unwrap().finish(Ok(&Value::Null));
    log.begin(entry(3), &json!("x".repeat(39))).unwrap().finish(Ok(&Value::Null));
    log.flush().await;
    let entries = kept.entries.lock().unwrap().clone();
    assert_eq!(entries[0]["input"], json!({ "petId": 7, "token": "[redacted]" }));
    assert_eq!((&entries[1]["input"], entries[1].get("inputOmitted")), (&json!("x".repeat(38)), None));
    let told = (entries[2].get("input"), &entries[2]["inputOmitted"], &entries[2]["inputBytes"]);
    assert_eq!(told, (None, &json!(true), &json!(41)));
}

#[tokio::test]
async fn a_failure_is_tried_again_and_nothing_is_lost() {
    let kept = Kept::default();
    // Errors, and then a panic.
    kept.failures.store(3, Ordering::SeqCst);
    let log = kept.log(AuditOptions::new());
    for request in 0..5 {
        log.begin(entry(request), &Value::Null).unwrap().finish(Ok(&Value::Null));
    }
    log.flush().await;
    assert_eq!(kept.requests(), ["0", "1", "2", "3", "4"]);
    assert_eq!(log.state.failure(), None);
}

#[tokio::test]
async fn a_slow_sink_holds_no_call_up_and_what_is_lost_is_counted() {
    let kept = Kept::default();
    let log = kept.log(AuditOptions::new().with_max_queued(10));
    let closed = kept.gate.lock().unwrap();
    let begun = Instant::now();
    // One may be with the sink, ten are in the queue.
    for request in 0..100 {
        log.begin(entry(request), &Value::Null).unwrap().finish(Ok(&Value::Null));
    }
    assert!(begun.elapsed() < Duration::from_secs(5));
    drop(closed);
    log.flush().await;
    let entries = kept.entries.lock().unwrap().clone();
    let dropped: u64 = entries.iter().filter_map(|entry| entry["dropped"].as_u64()).sum();
    assert!((10..=11).contains(&entries.len()), "{}", entries.len());
    assert_eq!(dropped + entries.len() as u64, 100);
    // Told once.
    log.begin(entry("after"), &Value::Null).unwrap().finish(Ok(&Value::Null));
    log.flush().await;
    assert_eq!(kept.entries.lock().unwrap().last().unwrap().get("dropped"), None);
}

#[tokio::test]
async fn a_required_log_refuses_calls_that_it_cannot_write() {
    let kept = Kept::default();
    let log = kept.log(AuditOptions::new().with_required().with_max_queued(3));
    // The calls in flight take the places.
    let records: Vec<_> = (0..3).map(|request| log.begin(entry(request), &Value::Null).unwrap()).collect();
    let refused = |why: &str| format!("the audit log cannot be written ({why}): without it no call is made");
    let error = log.begin(entry("slow"), &Value::Null).unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ExecutionError);
    assert_eq!(error.message(), refused("calls, open subscriptions and unwritten entries take all of its places"));
    // It fails, while all of its places are taken: the failure is what is told.
    kept.failures.store(4, Ordering::SeqCst);
    drop(records);
    while log.state.failure().is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let error = log.begin(entry("failing"), &Value::Null).unwrap_err();
    assert_eq!(error.message(), refused(&io::Error::from(io::ErrorKind::StorageFull).to_string()));
    // And calls are made again when it is written again.
    log.flush().await;
    log.begin(entry("again"), &Value::Null).unwrap().finish(Ok(&Value::Null));
    log.flush().await;
    let mut requests = kept.requests();
    assert_eq!(requests.pop().unwrap(), "again");
    requests.sort();
    assert_eq!(requests, ["0", "1", "2"]);
    assert!(kept.entries.lock().unwrap().iter().all(|entry| entry.get("dropped").is_none()));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk() {
    let log = AuditLog::to_file(AuditOptions::new().with_required(), "/dev/full").unwrap();
    log.begin(entry(1), &Value::Null).unwrap().finish(Ok(&Value::Null));
    while log.state.failure().is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let error = log.begin(entry(2), &Value::Null).unwrap_err();
    assert!(error.message().contains("No space left on device"), "{error}");
    let optional = AuditLog::to_file(AuditOptions::new(), "/dev/full").unwrap();
    for request in 0..10_000 {
        optional.begin(entry(request), &Value::Null).unwrap().finish(Ok(&Value::Null));
    }
}

#[tokio::test]
async fn a_process_ends_though_its_log_fails() {
    let kept = Kept::default();
    kept.failures.store(usize::MAX, Ordering::SeqCst);
    let log = kept.log(AuditOptions::new().with_max_queued(3));
    for request in 0..10 {
        log.begin(entry(request), &Value::Null).unwrap().finish(Ok(&Value::Null));
    }
    let ending = tokio::time::timeout(Duration::from_secs(4), log.flush_for_end());
    ending.await.expect("the log that fails was waited for");
    assert_eq!(log.state.unwritten(), 10);
    // What can be written is.
    {
        let _closed = kept.gate.lock();
        kept.failures.store(0, Ordering::SeqCst);
    }
    log.flush().await;
    log.flush_for_end().await;
    assert_eq!((log.state.unwritten(), kept.requests().is_empty()), (0, false));
}

#[tokio::test(start_paused = true)]
async fn a_process_waits_longer_for_a_log_that_is_required() {
    let kept = Kept::default();
    kept.failures.store(usize::MAX, Ordering::SeqCst);
    let log = kept.log(AuditOptions::new().with_required());
    log.begin(entry(1), &Value::Null).unwrap().finish(Ok(&Value::Null));
    let begun = tokio::time::Instant::now();
    log.flush_for_end().await;
    assert!(begun.elapsed() >= MAX_FLUSH && begun.elapsed() < 2 * MAX_FLUSH, "{:?}", begun.elapsed());
}

/// A disk that takes some bytes of a line, and is then full until there is room again.
struct Disk {
    text: Arc<Mutex<Vec<u8>>>,
    room: Arc<AtomicUsize>,
}

impl io::Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.room.load(Ordering::SeqCst)).min(50);
        if count == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room.fetch_sub(count, Ordering::SeqCst);
        self.text.lock().unwrap().extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_line_that_was_torn_harms_no_other() {
    let (text, room) = (Arc::default(), Arc::new(AtomicUsize::new(70)));
    let disk = Disk { text: Arc::clone(&text), room: room.clone() };
    let log = AuditLog::to_sink(AuditOptions::new(), Lines::new(disk)).unwrap();
    for request in 0..3 {
        log.begin(entry(request), &Value::Null).unwrap().finish(Ok(&Value::Null));
    }
    while log.state.failure().is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    room.store(100_000, Ordering::SeqCst);
    log.flush().await;
    let text = String::from_utf8(text.lock().unwrap().clone()).unwrap();
    let lines: Vec<_> = text.lines().map(serde_json::from_str::<Value>).collect();
    assert!(text.ends_with('\n') && lines.len() == 4 && lines[0].is_err(), "{text}");
    let requests: Vec<_> = lines[1..].iter().map(|line| line.as_ref().unwrap()["request"].clone()).collect();
    assert_eq!(requests, ["0", "1", "2"]);
}

#[tokio::test]
async fn the_thread_ends_with_the_log() {
    let (kept, alive) = (Kept::default(), Arc::new(()));
    let held = Arc::clone(&alive);
    kept.failures.store(usize::MAX, Ordering::SeqCst);
    let inner = kept.clone();
    let log = AuditLog::to_sink(AuditOptions::new(), move |_: &AuditEntry| {
        let _held = &held;
        if inner.failures.load(Ordering::SeqCst) > 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    })
    .unwrap();
    log.begin(entry(1), &Value::Null).unwrap().finish(Ok(&Value::Null));
    drop(log);
    // Even if the sink never works again.
    for _ in 0..500 {
        if Arc::strong_count(&alive) == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the thread is still there");
}
