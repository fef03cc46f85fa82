//! `ops jobs`, on a NATS server that `tests/peers/install` installs.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::durable::jetstream::{JetStream, JetStreamConfig};
use ops_runtime::durable::{JobStatus, Jobs, RetryPolicy, SubmitOptions, Worker};
use ops_runtime::spec::OperationSpec;
use ops_runtime::{CallError, Context, Registry};
use serde_json::{Value, json};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/peers/.venv/bin/nats-server");
const PASSWORD: &str = "s3cr3t";
/// How long something may take that happens at once.
const SOON: Duration = Duration::from_secs(10);
/// How many handlers of `video.render` run.
static RENDERING: AtomicUsize = AtomicUsize::new(0);

/// A server that wants a name and a password.
struct Nats {
    child: Child,
    url: String,
    folder: PathBuf,
}

impl Nats {
    fn start() -> Self {
        Self::with("cli-jobs", &["--jetstream"])
    }

    /// A server with a folder of this name, and with these arguments.
    fn with(name: &str, arguments: &[&str]) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(arguments).arg("--store_dir").arg(&folder).args(["--user", "ann", "--pass", PASSWORD]);
        // It chooses a port that is free, and writes its address to a file.
        command.args(["--addr", "127.0.0.1", "--port", "-1", "--ports_file_dir"]).arg(&folder);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.expect("a NATS server: run tests/peers/install");
        let file = folder.join(format!("nats-server_{}.ports", child.id()));
        let start = Instant::now();
        let url = loop {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            // Until all of it is written, it is no JSON.
            if let Ok(ports) = serde_json::from_str::<Value>(&text) {
                break ports["nats"][0].as_str().unwrap().to_owned();
            }
            assert!(start.elapsed() < Duration::from_secs(30), "it does not listen");
            std::thread::sleep(Duration::from_millis(20));
        };
        Self { child, url, folder }
    }

    fn url(&self) -> String {
        self.url.clone()
    }

    async fn jobs(&self) -> Jobs {
        // No lease is extended within the time that a test waits.
        let config = JetStreamConfig::new().with_replicas(1).with_user("ann", PASSWORD).with_lease(12 * SOON);
        Jobs::new(JetStream::connect(&self.url(), config).await.unwrap()).with_queue("video.*", "video")
    }

    fn user(&self) -> [(&'static str, String); 3] {
        [("NATS_URL", self.url()), ("NATS_USER", "ann".into()), ("NATS_PASSWORD", PASSWORD.into())]
    }

    /// Runs the command, whose output never has the password.
    fn ops(&self, arguments: &[&str]) -> Ran {
        ops(arguments, &self.user())
    }

    /// Runs the command with a closed standard output, and gives its exit status.
    fn unread(&self, arguments: &[&str]) -> Option<i32> {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
        command.arg("jobs").args(arguments).envs(self.user()).env_remove("NATS_TOKEN").stdout(writer);
        command.status().unwrap().code()
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

struct Ran {
    status: i32,
    stdout: String,
    stderr: String,
}

fn ops(arguments: &[&str], environment: &[(&str, String)]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    for name in ["NATS_URL", "NATS_USER", "NATS_PASSWORD", "NATS_TOKEN"] {
        command.env_remove(name);
    }
    command.arg("jobs").args(arguments).envs(environment.iter().map(|(name, value)| (name, value)));
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let ran = Ran { status: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) };
    assert!(!ran.stderr.contains(PASSWORD) && !ran.stdout.contains(PASSWORD), "no secret shows: {}", ran.stderr);
    ran
}

impl Ran {
    #[track_caller]
    fn good(self) -> String {
        assert_eq!(self.status, 0, "{}", self.stderr);
        self.stdout
    }

    #[track_caller]
    fn json(self) -> Value {
        serde_json::from_str(&self.good()).unwrap()
    }

    #[track_caller]
    fn failed(self, status: i32) -> String {
        assert_eq!(self.status, status, "{}{}", self.stdout, self.stderr);
        self.stderr
    }
}

/// Operations that fail, hang and work.
fn registry() -> Registry {
    let registry = Registry::new();
    let register = |id: &'static str, handler: Handler| {
        registry.register(Registration::new(OperationSpec::mutation(id), handler)).unwrap();
    };
    let pay = |input: Value, context: Context| async move {
        if context.metadata().is_some_and(|metadata| metadata.contains_key("lucky")) {
            return Ok(json!({ "paid": input["cents"] }));
        }
        Err(CallError::execution(format!("the bank is away, attempt {}", context.attempt())))
    };
    register("shop.pay", Handler::dynamic(pay));
    // Its error is not retried by itself; the second run finds the cause gone.
    let runs = Arc::new(AtomicUsize::new(0));
    let refund = move |input: Value, _: Context| {
        let is_first = runs.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            let expired = || CallError::new("TOKEN_EXPIRED", "the token has expired");
            if is_first { Err(expired()) } else { Ok(json!({ "refunded": input["cents"] })) }
        }
    };
    register("shop.refund", Handler::dynamic(refund));
    let hang = |_: Value, _: Context| async {
        let _rendering = Rendering::begin();
        std::future::pending::<Result<Value, CallError>>().await
    };
    register("video.render", Handler::dynamic(hang));
    registry
}

/// A handler that runs, until this is dropped.
struct Rendering;

impl Rendering {
    fn begin() -> Self {
        RENDERING.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Rendering {
    fn drop(&mut self) {
        RENDERING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until so many handlers of `video.render` run.
async fn rendering(many: usize) {
    let start = Instant::now();
    while RENDERING.load(Ordering::Relaxed) != many {
        assert!(start.elapsed() < SOON, "not {many}, but {RENDERING:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn until(job: &ops_runtime::durable::AnyJob, is: impl Fn(&JobStatus) -> bool) {
    for _ in 0..1_500 {
        if is(&job.status().await.unwrap()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("after 30 s still {:?}", job.status().await);
}

/// The column of a table, without its head.
fn column(table: &str, number: usize) -> Vec<String> {
    table.lines().skip(1).map(|line| line.split_whitespace().nth(number).unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_from_a_shell() {
    let nats = Nats::start();
    // Nothing has been kept yet, and nothing is made by looking.
    for list in ["list", "queues", "dead"] {
        let told = nats.ops(&[list]);
        assert!(
            told.stderr.contains("keeps no jobs under the prefix `ops`") && told.stdout.is_empty(),
            "{}",
            told.stderr
        );
        assert_eq!(told.good(), "");
        assert_eq!(nats.ops(&[list, "--json"]).json(), json!([]));
    }
    let error = nats.ops(&["list", "--queue", "video"]).failed(1);
    assert!(error.contains("keeps no jobs under the prefix `ops`"), "{error}");
    let jobs = nats.jobs().await;
    assert_eq!(nats.ops(&["list"]).good().lines().count(), 1);
    let error = nats.ops(&["list", "--prefix", "opps"]).failed(1);
    assert!(error.contains("under the prefix `opps`; there are `ops`"), "{error}");

    let policy = RetryPolicy::new(2).with_backoff(Duration::from_millis(20), Duration::from_millis(20));
    let options = || SubmitOptions::new().with_retry(policy.clone());
    let submit = async |id: &str, cents: u32, options: SubmitOptions| {
        jobs.submit_by_id(id, json!({ "cents": cents }), options).await.unwrap()
    };
    let dead = submit("shop.pay", 5, options().with_key("order-5").with_tenant("acme")).await;
    let done = submit("shop.pay", 7, options().with_metadata("lucky", true)).await;
    let runs = submit("video.render", 1, options()).await;
    let later = submit("shop.pay", 9, options().with_delay(Duration::from_secs(3600))).await;
    let other = submit("other.pay", 9, options()).await;
    let worker = Worker::new(nats.jobs().await, registry()).start();
    until(&dead, |status| matches!(status, JobStatus::Dead(_))).await;
    until(&done, |status| matches!(status, JobStatus::Done)).await;
    until(&runs, |status| matches!(status, JobStatus::Running { .. })).await;
    let id = |job: &ops_runtime::durable::AnyJob| job.id().to_string();

    // Queues.
    let queues = nats.ops(&["queues"]).good();
    assert_eq!(
        (column(&queues, 0), column(&queues, 1)),
        (vec!["jobs".into(), "video".into()], vec!["2".into(), "1".into()])
    );
    let queues = nats.ops(&["queues", "--json"]).json();
    assert_eq!((&queues[0]["dead"], &queues[1]["running"]), (&json!(1), &json!(1)));

    // Lists: what is open, and dead letters; or what is asked for.
    let mut listed = column(&nats.ops(&["list"]).good(), 0);
    let mut expected = [&dead, &runs, &later, &other].map(id).to_vec();
    listed.sort();
    expected.sort();
    assert_eq!(listed, expected);
    assert_eq!(column(&nats.ops(&["list", "--state", "delayed"]).good(), 0), [id(&later)]);
    assert_eq!(column(&nats.ops(&["list", "--state", "ended"]).good(), 0), [id(&done)]);
    // What is named twice is listed once.
    let twice = ["list", "--state", "ended", "--state", "ended", "--queue", "jobs", "--queue", "jobs", "--limit", "1"];
    let twice = nats.ops(&twice);
    assert!(!twice.stderr.contains("there are more"), "{}", twice.stderr);
    assert_eq!(column(&twice.good(), 0), [id(&done)]);
    let listed = nats.ops(&["list", "--queue", "video"]).good();
    assert_eq!((column(&listed, 0), column(&listed, 2)), (vec![id(&runs)], vec!["running".into()]));
    assert_eq!(column(&nats.ops(&["list", "--operation", "other.*"]).good(), 0), [id(&other)]);
    let some = nats.ops(&["list", "--limit", "2"]);
    assert!(some.stderr.contains("there are more than 2: see --limit"), "{}", some.stderr);
    assert_eq!(some.good().lines().count(), 3);
    let letters = nats.ops(&["dead"]).good();
    assert_eq!((column(&letters, 0), column(&letters, 3)), (vec![id(&dead)], vec!["2".into()]));
    assert!(letters.contains("the bank is away, attempt 2"), "{letters}");
    let letters = nats.ops(&["dead", "--json"]).json();
    assert_eq!((&letters[0]["key"], &letters[0]["tenant"]), (&json!("order-5"), &json!("acme")));

    // One in full.
    let shown = nats.ops(&["show", &id(&dead), "--json"]).json();
    assert_eq!(
        (&shown["state"], &shown["input"], &shown["attempts"]),
        (&json!("dead"), &json!({ "cents": 5 }), &json!(2))
    );
    assert_eq!(shown["history"][0]["error"]["message"], "the bank is away, attempt 1");
    assert!(shown["submitted"].as_str().unwrap() <= shown["ended"].as_str().unwrap());
    let shown = nats.ops(&["show", &id(&done), "--json"]).json();
    assert_eq!((&shown["state"], &shown["result"]["data"]), (&json!("done"), &json!({ "paid": 7 })));
    assert!(shown["submitted"].as_str().unwrap() <= shown["ended"].as_str().unwrap());
    assert_eq!(shown.get("input"), None);
    let shown = nats.ops(&["show", &id(&runs)]).good();
    assert!(shown.contains("running") && shown.contains("video.render"), "{shown}");

    // Changes, of which some cannot be.
    let failed = nats.ops(&["retry", &id(&done), &id(&dead)]);
    assert_eq!(failed.stdout, format!("retried {}\n", id(&dead)));
    assert!(failed.failed(1).contains("it has not failed, but is done"));
    until(&dead, |status| matches!(status, JobStatus::Dead(_))).await;
    assert_eq!(nats.ops(&["discard", &id(&dead)]).good(), format!("discarded {}\n", id(&dead)));
    assert!(nats.ops(&["show", &id(&dead)]).failed(1).contains("JOB_NOT_FOUND"));
    // A job whose error is not retried is found by its key, and is retried with its input.
    let refund = submit("shop.refund", 3, options().with_key("order-3")).await;
    until(&refund, |status| matches!(status, JobStatus::Failed(_))).await;
    let found = nats.ops(&["list", "--key", "order-3", "--json"]).json();
    assert_eq!((found.as_array().unwrap().len(), &found[0]["id"]), (1, &json!(id(&refund))));
    assert_eq!((&found[0]["state"], &found[0]["key"]), (&json!("failed"), &json!("order-3")));
    assert_eq!(nats.ops(&["show", &id(&refund), "--json"]).json()["input"], json!({ "cents": 3 }));
    assert_eq!(nats.ops(&["retry", &id(&refund)]).good(), format!("retried {}\n", id(&refund)));
    until(&refund, |status| matches!(status, JobStatus::Done)).await;
    assert_eq!(column(&nats.ops(&["list", "--key", "order-3"]).good(), 2), ["done"]);
    assert_eq!(nats.ops(&["list", "--key", "order-4"]).good().lines().count(), 1);
    let failed = nats.ops(&["discard", &id(&refund)]).failed(1);
    assert!(failed.contains("it has neither failed nor been cancelled, but is done"), "{failed}");
    // All of them, even if nobody reads what is told of the first.
    let two = [submit("other.pay", 1, options()).await, submit("other.pay", 2, options()).await];
    assert_eq!(nats.unread(&["cancel", &id(&two[0]), &id(&two[1])]), Some(0));
    for job in two {
        assert_eq!(job.status().await.unwrap(), JobStatus::Cancelled);
        assert_eq!(nats.ops(&["discard", &id(&job)]).good(), format!("discarded {}\n", id(&job)));
    }
    // One that is given twice is changed once, and that is no failure.
    let twice = submit("other.pay", 3, options()).await;
    for (command, done) in [("cancel", "cancelled"), ("discard", "discarded")] {
        let told = nats.ops(&[command, &id(&twice), &id(&twice)]).good();
        assert_eq!(told, format!("{done} {}\n", id(&twice)));
    }
    let told = nats.ops(&["cancel", &id(&runs), &id(&later), &id(&other), "--json"]).json();
    assert_eq!(told.as_array().unwrap().iter().filter(|told| told["changed"] == true).count(), 3);
    assert_eq!(runs.status().await.unwrap(), JobStatus::Cancelled);
    assert!(nats.ops(&["cancel", &id(&later)]).failed(1).contains("it has ended already: cancelled"));
    assert_eq!(nats.ops(&["list"]).good().lines().count(), 1);

    // The handler of a cancelled job is dropped, though the command ends at once, also if no other job follows.
    rendering(0).await;
    let last = submit("video.render", 2, options()).await;
    rendering(1).await;
    assert_eq!(nats.ops(&["cancel", &id(&last)]).good(), format!("cancelled {}\n", id(&last)));
    rendering(0).await;

    // Mistakes.
    let error = nats.ops(&["list", "--queue", "vidoe"]).failed(2);
    assert!(error.contains("did you mean `video`?"), "{error}");
    let error = nats.ops(&["list", "--queue", "zzzzzz"]).failed(2);
    assert!(error.contains("there is no queue `zzzzzz`: the queues are: `jobs`, `video`"), "{error}");
    assert!(nats.ops(&["show", "jobs.1"]).failed(2).contains("no id of a job"));
    let none = format!("jobs.0.{}", "0".repeat(32));
    assert!(nats.ops(&["cancel", &none]).failed(1).contains("JOB_NOT_FOUND"));
    let with_password = nats.url().replace("//", "//ann:hush@");
    let error = nats.ops(&["list", "--server", &with_password]).failed(2);
    assert!(error.contains("NATS_URL") && !error.contains("hush"), "{error}");
    // There it may be.
    let url = ("NATS_URL", nats.url().replace("//", &format!("//ann:{PASSWORD}@")));
    assert_eq!(ops(&["list"], &[url]).good().lines().count(), 1);
    // A part of a password looks like a server.
    let url = ("NATS_URL", nats.url().replace("//", &format!("//ann:{PASSWORD},{PASSWORD}@")));
    assert!(ops(&["list"], &[url]).failed(1).contains("write `,` in a password or a token as `%2C`"));
    let wrong = [("NATS_URL", nats.url()), ("NATS_USER", "ann".to_owned()), ("NATS_PASSWORD", "wrong".to_owned())];
    assert!(ops(&["list"], &wrong).failed(1).contains("the NATS server can't be used"));
    let token = ops(&["list", "--token-env", "NO_SUCH_TOKEN"], &[("NATS_URL", nats.url())]);
    assert!(token.failed(2).contains("the environment has no `NO_SUCH_TOKEN`"));
    worker.stop().await;

    // A choice that needs many reads says so.
    for cents in 0..1_000 {
        submit("other.pay", cents, options()).await;
    }
    let listed = nats.ops(&["list", "--key", "order-4"]);
    assert!(listed.stderr.contains("note: 1000 jobs are read so far, one by one"), "{}", listed.stderr);
    assert_eq!(listed.good().lines().count(), 1);
}

#[test]
fn a_server_without_jetstream() {
    let nats = Nats::with("cli-jobs-without", &[]);
    let start = Instant::now();
    let error = nats.ops(&["list", "--timeout", "60"]).failed(1);
    assert!(error.contains("this server has no JetStream: start it with `--jetstream`"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_server_that_is_not_there() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let start = Instant::now();
    let error = ops(&["list", "--server", &format!("nats://127.0.0.1:{port}"), "--timeout", "2"], &[]).failed(1);
    assert!(error.contains(&format!("nats://127.0.0.1:{port}: ")), "{error}");
    assert!(start.elapsed() < Duration::from_secs(20));
}
