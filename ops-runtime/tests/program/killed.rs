//! Processes that are killed: each change is made once all the same.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use ops_runtime::CallError;
use ops_runtime::access::Decision;
use ops_runtime::adapter::BoxFuture;
use ops_runtime::program::{FolderStore, Host, JournalStore, Outcome, Sandbox, StoredJournal};
use serde_json::{Value, json};

use crate::support::program;

/// Ten calls, of which the second, the fifth and the eighth are changes.
const TEN: &str = "
    const seen = [];
    for (let i = 1; i <= 10; i++) {
        const change = i % 3 === 2;
        try {
            seen.push((change ? await ops.t.set({ i }) : await ops.t.echo({ i })).i);
        } catch (error) { seen.push(error.code); }
    }
    return seen;
";

/// Counts the calls that come by TCP, a line each. Those that are held get no answer.
#[derive(Default)]
struct Upstream {
    seen: Vec<String>,
    held: Vec<String>,
    open: Vec<TcpStream>,
}

fn upstream(held: &[&str]) -> (String, Arc<Mutex<Upstream>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let held = held.iter().map(ToString::to_string).collect();
    let state = Arc::new(Mutex::new(Upstream { held, ..Upstream::default() }));
    let shared = state.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
            let line = line.trim_end().to_owned();
            let mut state = shared.lock().unwrap();
            state.seen.push(line.clone());
            if let Some(at) = state.held.iter().position(|held| *held == line) {
                // Held once; the connection stays open.
                state.held.remove(at);
                state.open.push(stream);
                continue;
            }
            let _ = writeln!(stream, "ok");
        }
    });
    (address, state)
}

/// Calls the upstream.
struct Remote(String);

impl Host for Remote {
    fn call<'a>(&'a self, id: &'a str, input: Value) -> BoxFuture<'a, Result<Value, CallError>> {
        let line = format!("{id} {}", input["i"]);
        let address = self.0.clone();
        Box::pin(async move {
            let asked = tokio::task::spawn_blocking(move || {
                let mut stream = TcpStream::connect(address)?;
                writeln!(stream, "{line}")?;
                let mut answer = String::new();
                BufReader::new(stream).read_line(&mut answer).map(|_| ())
            });
            asked.await.unwrap().map_err(CallError::from_error)?;
            Ok(input)
        })
    }

    fn decide(&self, id: &str, _: &Value) -> Decision {
        if self.is_query(id) { Decision::Allow } else { Decision::Ask }
    }

    fn is_query(&self, id: &str) -> bool {
        id != "t.set"
    }
}

/// The process that is killed: it runs the program, says how it ended, and stays.
#[test]
#[ignore = "the other tests start it"]
fn child() {
    let (address, folder) = (std::env::var("OPS_UPSTREAM").unwrap(), std::env::var("OPS_JOURNALS").unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let ended = runtime.block_on(async {
        let store = FolderStore::new(folder);
        let kept = StoredJournal::new(&store, "ten");
        match Sandbox::default().run_stored(&program(TEN), &kept, &Remote(address)).await.outcome {
            Outcome::Waiting(waiting) => json!({ "waiting": waiting.asks[0].key }),
            Outcome::Done(value) => json!({ "done": value }),
            other => panic!("{other:?}"),
        }
    });
    println!("\nENDED {ended}");
    std::io::stdout().flush().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(60));
}

fn start(address: &str, folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "killed::child", "--nocapture"])
        .env("OPS_UPSTREAM", address)
        .env("OPS_JOURNALS", folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs a process until it says how the program ended, and kills it.
fn until_ended(address: &str, folder: &Path) -> Value {
    let mut child = start(address, folder);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ended = lines.map(Result::unwrap).find_map(|line| line.strip_prefix("ENDED ").map(str::to_owned));
    // SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    serde_json::from_str(&ended.expect("the process says how the program ended")).unwrap()
}

/// Runs a process until the upstream has seen the call, and kills it.
fn until_seen(address: &str, folder: &Path, state: &Mutex<Upstream>, call: &str) {
    let (mut child, began) = (start(address, folder), std::time::Instant::now());
    while !state.lock().unwrap().seen.iter().any(|seen| seen == call) {
        assert_eq!(child.try_wait().unwrap(), None, "the process has ended without `{call}`");
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "after a minute still no `{call}`");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ops-killed-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[tokio::test]
async fn each_of_three_changes_is_made_once() {
    let folder = folder("once");
    let store = FolderStore::new(&folder);
    // The sixth call is in flight when its process is killed, between two changes.
    let (address, state) = upstream(&["t.echo 6"]);
    for change in [2, 5, 8] {
        if change == 8 {
            until_seen(&address, &folder, &state, "t.echo 6");
        }
        let ended = until_ended(&address, &folder);
        let key = ended["waiting"].as_str().unwrap_or_else(|| panic!("{ended}"));
        let mut journal = store.load("ten").await.unwrap().unwrap();
        assert_eq!(journal.asks()[0].input, json!({ "i": change }));
        assert!(!state.lock().unwrap().seen.contains(&format!("t.set {change}")), "it is made before the yes");
        journal.approve(key).unwrap();
        store.save("ten", &journal).await.unwrap();
    }
    assert_eq!(until_ended(&address, &folder)["done"], json!([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]));
    let mut seen = state.lock().unwrap().seen.clone();
    let again = seen.iter().position(|call| call == "t.echo 6").unwrap();
    assert_eq!(seen.remove(again), "t.echo 6", "a query is repeated");
    let wanted: Vec<String> = (1..=10).map(|i| format!("t.{} {i}", if i % 3 == 2 { "set" } else { "echo" })).collect();
    assert_eq!(seen, wanted);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn a_change_in_flight_at_the_kill_is_not_made_again() {
    let folder = folder("in-flight");
    let store = FolderStore::new(&folder);
    let (address, state) = upstream(&["t.set 2"]);
    for change in [2, 5, 8] {
        if change == 5 {
            until_seen(&address, &folder, &state, "t.set 2");
        }
        let ended = until_ended(&address, &folder);
        let mut journal = store.load("ten").await.unwrap().unwrap();
        journal.approve(ended["waiting"].as_str().unwrap()).unwrap();
        store.save("ten", &journal).await.unwrap();
    }
    assert_eq!(until_ended(&address, &folder)["done"], json!([1, "OUTCOME_UNKNOWN", 3, 4, 5, 6, 7, 8, 9, 10]));
    let seen = state.lock().unwrap().seen.clone();
    let changes: Vec<&String> = seen.iter().filter(|call| call.starts_with("t.set")).collect();
    assert_eq!(changes, ["t.set 2", "t.set 5", "t.set 8"]);
    std::fs::remove_dir_all(&folder).unwrap();
}
