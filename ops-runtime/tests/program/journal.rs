//! Journals that are kept, and what is wrong with them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ops_runtime::CallError;
use ops_runtime::access::Decision;
use ops_runtime::adapter::BoxFuture;
use ops_runtime::program::{
    FolderStore, Hold, Host, Journal, JournalStore, MemoryStore, Outcome, Reason, Sandbox, StoredJournal,
};
use serde_json::{Value, json};

use crate::support::{Recorder, program};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ops-journals-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[tokio::test]
async fn names_do_not_leave_the_folder() {
    let root = folder("names");
    let store = FolderStore::new(root.join("in"));
    let program = program("return ops.t.set(1)");
    let Outcome::Waiting(waiting) = Sandbox::default().run(&program, &Recorder::default()).await.outcome else {
        panic!()
    };
    let names = ["a", "../a", "/etc/passwd", "", ".", "..", "a/b", "A", "a\0b", "con", "h-1", &"x".repeat(5000), "ü"];
    for name in names {
        assert_eq!(store.load(name).await.unwrap(), None, "{name:?}");
        store.save(name, &waiting.journal).await.unwrap();
        assert_eq!(store.load(name).await.unwrap().as_ref(), Some(&waiting.journal), "{name:?}");
    }
    let inside = |folder: &PathBuf| std::fs::read_dir(folder).unwrap().count();
    assert_eq!((inside(&root), inside(&root.join("in"))), (1, names.len()));
    for name in names {
        store.remove(name).await.unwrap();
        store.remove(name).await.unwrap();
    }
    assert_eq!(inside(&root.join("in")), 0);
    std::fs::remove_dir_all(&root).unwrap();
}

#[tokio::test]
async fn a_journal_is_one_of_the_place_where_its_operations_lead() {
    let (sandbox, host, store) = (Sandbox::default(), Recorder::default(), MemoryStore::new());
    let nowhere = program("return ops.t.echo(1)");
    let [staging, production] = ["staging", "production"].map(|place| nowhere.clone().with_place(place));
    for (name, own, others) in [("a", &staging, [&production, &nowhere]), ("b", &nowhere, [&production, &staging])] {
        sandbox.run_stored(own, &StoredJournal::new(&store, name), &host).await;
        for other in others {
            let outcome = sandbox.run_stored(other, &StoredJournal::new(&store, name), &host).await.outcome;
            assert!(matches!(outcome, Outcome::Failed(ref failed) if failed.reason == Reason::Differs), "{outcome:?}");
        }
        let outcome = sandbox.run_stored(own, &StoredJournal::new(&store, name), &host).await.outcome;
        assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    }
    assert_eq!(host.ids().len(), 2);
}

#[cfg(unix)]
#[tokio::test]
async fn of_a_journal_that_is_removed_no_file_is_left() {
    let root = folder("removed");
    let store = FolderStore::new(&root);
    let (sandbox, host) = (Sandbox::default(), Recorder::default());
    for name in ["one", "a/b"] {
        sandbox.run_stored(&program("return ops.t.echo(1)"), &StoredJournal::new(&store, name), &host).await;
        assert!(store.load(name).await.unwrap().is_some());
        // While another runs the program, it stays the other's.
        let hold = store.hold(name).await.unwrap();
        store.remove(name).await.unwrap();
        assert_eq!(store.hold(name).await.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        drop(hold);
        store.remove(name).await.unwrap();
        assert_eq!(std::fs::read_dir(&root).unwrap().count(), 0, "{name}");
    }
    std::fs::remove_dir_all(&root).unwrap();
}

/// Removing a journal lets no two hold it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_journal_that_is_removed_over_and_over_has_one_holder() {
    let root = folder("holders");
    let inside = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let (store, inside) = (FolderStore::new(&root), inside.clone());
            tokio::spawn(async move {
                let (mut held, mut tries) = (0, 0);
                // One that the others keep out goes on when they have ended.
                while tries < 500 || held == 0 {
                    tries += 1;
                    assert!(tries < 1_000_000, "it never holds it");
                    if let Ok(hold) = store.hold("one").await {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two hold it");
                        tokio::task::yield_now().await;
                        inside.fetch_sub(1, Ordering::SeqCst);
                        held += 1;
                        drop(hold);
                    }
                    store.remove("one").await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    std::fs::remove_dir_all(&root).unwrap();
}

#[tokio::test]
async fn a_kept_program_that_has_ended_makes_no_call_again() {
    let (sandbox, host, store) = (Sandbox::default(), Recorder::default(), MemoryStore::new());
    let program = program("return ops.t.echo(5)");
    for _ in 0..2 {
        let outcome = sandbox.run_stored(&program, &StoredJournal::new(&store, "one"), &host).await.outcome;
        assert!(matches!(outcome, Outcome::Done(ref value) if *value == json!(5)), "{outcome:?}");
    }
    assert_eq!(host.ids().len(), 1);
    store.remove("one").await.unwrap();
    sandbox.run_stored(&program, &StoredJournal::new(&store, "one"), &host).await;
    assert_eq!(host.ids().len(), 2);
}

#[tokio::test]
async fn a_change_whose_result_is_lost_is_not_repeated_but_a_query_is() {
    let (sandbox, host) = (Sandbox::default(), Recorder::default());
    let asking = program(
        "const a = await ops.t.echo(1); let b; try { b = await ops.t.set(2) } catch (e) { b = e.code } return [a, b]",
    );
    let Outcome::Waiting(mut waiting) = sandbox.run(&asking, &host).await.outcome else { panic!() };
    waiting.journal.approve(&waiting.asks[0].key).unwrap();
    let text = waiting.journal.to_json().unwrap();
    // As a process leaves it that dies while the change is under way.
    let (before, after) = text.split_at(text.find("t.set").unwrap());
    let started = format!("{before}{}", after.replacen("\"allowed\"", "\"started\"", 1));
    let outcome = sandbox.resume(&asking, Journal::from_json(&started).unwrap(), &host).await.outcome;
    assert!(matches!(outcome, Outcome::Done(ref value) if *value == json!([1, "OUTCOME_UNKNOWN"])), "{outcome:?}");
    assert_eq!(host.ids(), ["t.echo"]);

    let query = program("return ops.t.echo(1)");
    let kept = MemoryStore::new();
    sandbox.run_stored(&query, &StoredJournal::new(&kept, "q"), &host).await;
    let mut journal: serde_json::Value =
        serde_json::from_str(&kept.load("q").await.unwrap().unwrap().to_json().unwrap()).unwrap();
    for gone in ["answer", "order", "at"] {
        journal["calls"][0].as_object_mut().unwrap().remove(gone);
    }
    assert_eq!(journal["calls"][0]["state"], "started");
    let outcome = sandbox.resume(&query, Journal::from_json(&journal.to_string()).unwrap(), &host).await.outcome;
    assert!(matches!(outcome, Outcome::Done(ref value) if *value == json!(1)), "{outcome:?}");
    assert_eq!(host.ids(), ["t.echo", "t.echo", "t.echo"]);
}

#[tokio::test]
async fn broken_journals_are_errors() {
    let (sandbox, host, store) = (Sandbox::default(), Recorder::default(), MemoryStore::new());
    let query = program("return await ops.t.echo(1) + await ops.t.echo(2)");
    sandbox.run_stored(&query, &StoredJournal::new(&store, "q"), &host).await;
    let text = store.load("q").await.unwrap().unwrap().to_json().unwrap();
    for broken in ["", "{}", "null", &text[..text.len() - 1], &text.replace("\"version\":1", "\"version\":2")] {
        assert!(Journal::from_json(broken).unwrap_err().to_string().starts_with("the journal cannot be read: "));
    }
    for (from, to, reason) in [
        ("\"order\":1", "\"order\":7", Reason::Journal),
        ("\"order\":1", "\"order\":0", Reason::Journal),
        ("\"input\":2", "\"input\":3", Reason::Differs),
        ("t.echo", "t.fail", Reason::Differs),
    ] {
        let Ok(journal) = Journal::from_json(&text.replace(from, to)) else { panic!("{from}") };
        let Outcome::Failed(failed) = sandbox.resume(&query, journal, &host).await.outcome else { panic!("{from}") };
        assert_eq!(failed.reason, reason, "{failed:?}");
    }
    // More calls than the program makes.
    let longer = program("return await ops.t.echo(1) + await ops.t.echo(2) + await ops.t.echo(3)");
    sandbox.run_stored(&longer, &StoredJournal::new(&store, "l"), &host).await;
    let mut one: serde_json::Value = serde_json::from_str(&text).unwrap();
    let other: serde_json::Value =
        serde_json::from_str(&store.load("l").await.unwrap().unwrap().to_json().unwrap()).unwrap();
    one["calls"] = other["calls"].clone();
    let journal = Journal::from_json(&one.to_string()).unwrap();
    let Outcome::Failed(failed) = sandbox.resume(&query, journal, &host).await.outcome else { panic!() };
    assert_eq!(failed.reason, Reason::Differs, "{failed:?}");
    assert_eq!(host.ids().len(), 5);
}

#[tokio::test]
async fn a_journal_is_run_once_at_a_time_and_answers_may_be_given_again() {
    let root = folder("held");
    let stores: [&dyn JournalStore; 2] = [&MemoryStore::new(), &FolderStore::new(&root)];
    for store in stores {
        let (sandbox, host) = (Sandbox::default(), Recorder::default());
        let asking = program("await ops.t.sleep({ ms: 1500 }); return ops.t.set(1)");
        let kept = StoredJournal::new(store, "one");
        let (one, other) = tokio::join!(sandbox.run_stored(&asking, &kept, &host), async {
            let begun = async {
                while host.ids().is_empty() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(60), begun).await.expect("the program begins");
            sandbox.run_stored(&asking, &kept, &host).await
        });
        let Outcome::Failed(failed) = other.outcome else { panic!() };
        assert_eq!(
            (failed.reason, failed.message.as_str()),
            (Reason::Journal, "the program is under way already: wait for its end")
        );
        let Outcome::Waiting(waiting) = one.outcome else { panic!() };

        let key = &waiting.asks[0].key;
        for _ in 0..2 {
            let outcome = sandbox.run_stored(&asking, &kept.clone().with_approved(key), &host).await.outcome;
            assert!(matches!(outcome, Outcome::Done(ref value) if *value == json!(1)), "{outcome:?}");
        }
        for wrong in [kept.clone().with_declined(key), kept.clone().with_approved("x")] {
            let Outcome::Failed(failed) = sandbox.run_stored(&asking, &wrong, &host).await.outcome else { panic!() };
            assert_eq!(failed.reason, Reason::Journal, "{failed:?}");
        }
        assert_eq!(host.ids(), ["t.sleep", "t.set"]);
    }
    std::fs::remove_dir_all(&root).unwrap();
}

#[tokio::test]
async fn of_a_journal_that_is_missing_no_file_is_made() {
    let root = folder("missing");
    let (store, host) = (FolderStore::new(&root), Recorder::default());
    let kept = StoredJournal::new(&store, "one").existing();
    let outcome = Sandbox::default().run_stored(&program("return ops.t.set(1)"), &kept, &host).await.outcome;
    let Outcome::Failed(failed) = outcome else { panic!("{outcome:?}") };
    assert_eq!((failed.reason, &*failed.message), (Reason::Journal, "there is no such journal, or no longer"));
    assert_eq!(std::fs::read_dir(&root).map_or(0, Iterator::count), 0);
}

#[tokio::test]
async fn numbers_that_a_program_computed_are_read_as_they_were() {
    let root = folder("numbers");
    let (sandbox, store, host) = (Sandbox::default(), FolderStore::new(&root), Recorder::default());
    let (asking, kept) = (program("return ops.t.set({ price: 9.99 * 1.07 })"), StoredJournal::new(&store, "one"));
    let outcome = sandbox.run_stored(&asking, &kept, &host).await.outcome;
    let Outcome::Waiting(waiting) = outcome else { panic!("{outcome:?}") };
    let price = json!({ "price": 9.99 * 1.07 });
    assert_eq!(waiting.asks[0].input, price);
    let outcome = sandbox.run_stored(&asking, &kept.with_approved(&waiting.asks[0].key), &host).await.outcome;
    assert!(matches!(outcome, Outcome::Done(ref value) if *value == price), "{outcome:?}");
    std::fs::remove_dir_all(&root).unwrap();
}

/// A host that is down until it is told otherwise, and whose rules may change.
#[derive(Default)]
struct Flaky {
    calls: Recorder,
    is_up: AtomicBool,
}

impl Host for Flaky {
    fn call<'a>(&'a self, id: &'a str, input: Value) -> BoxFuture<'a, Result<Value, CallError>> {
        let answer = self.calls.call(id, input);
        let fails = !self.is_up.load(Ordering::SeqCst) && id != "t.set";
        Box::pin(async move { if fails { Err(CallError::execution("status 503")) } else { answer.await } })
    }

    fn decide(&self, id: &str, _: &Value) -> Decision {
        match id {
            "t.denied" if !self.is_up.load(Ordering::SeqCst) => Decision::Deny,
            _ => Decision::Allow,
        }
    }

    fn is_query(&self, id: &str) -> bool {
        self.calls.is_query(id)
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_no_change_is_repeated() {
    for (source, calls, ends) in [
        ("await ops.t.set(1); return await ops.t.echo(2)", &["t.set", "t.echo", "t.echo"][..], true),
        (
            "return await Promise.all([ops.t.echo(1), ops.t.set(2), ops.t.echo(3)])",
            &["t.echo", "t.set", "t.echo", "t.echo", "t.echo"],
            true,
        ),
        ("await ops.t.set(1); return await ops.t.denied(2)", &["t.set", "t.denied"], true),
        // The change may have been carried out.
        ("return await ops.t.setOther(1)", &["t.setOther"], false),
        // What the program did after an error was done because of it.
        ("try { await ops.t.echo(1) } catch { await ops.t.set(2) } throw new Error('x')", &["t.echo", "t.set"], false),
        (
            "try { await ops.t.echo(1) } catch {} await ops.t.set(2); await ops.t.echo(3)",
            &["t.echo", "t.set", "t.echo", "t.echo"],
            true,
        ),
    ] {
        let (sandbox, host, store) = (Sandbox::default(), Flaky::default(), MemoryStore::new());
        let program = program(source);
        let failed = sandbox.run_stored(&program, &StoredJournal::new(&store, "one"), &host).await.outcome;
        assert!(
            matches!(failed, Outcome::Failed(ref failed) if failed.reason == Reason::Thrown),
            "{source}: {failed:?}"
        );
        host.is_up.store(true, Ordering::SeqCst);
        let outcome = sandbox.run_stored(&program, &StoredJournal::new(&store, "one"), &host).await.outcome;
        assert_eq!(matches!(outcome, Outcome::Done(_)), ends, "{source}: {outcome:?}");
        assert_eq!(host.calls.ids(), calls, "{source}");
        // A journal that has forgotten is one that can be read.
        let again = sandbox.run_stored(&program, &StoredJournal::new(&store, "one"), &host).await.outcome;
        assert_eq!(matches!(again, Outcome::Done(_)), ends, "{source}: {again:?}");
        assert_eq!(host.calls.ids(), calls, "{source}");
    }
}

/// A store whose saves fail until it is told otherwise.
#[derive(Default)]
struct Full {
    kept: MemoryStore,
    fails: AtomicUsize,
}

impl JournalStore for Full {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Option<Journal>>> {
        self.kept.load(name)
    }

    fn save<'a>(&'a self, name: &'a str, journal: &'a Journal) -> BoxFuture<'a, std::io::Result<()>> {
        let fails = self.fails.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        if fails {
            return Box::pin(async { Err(std::io::ErrorKind::StorageFull.into()) });
        }
        self.kept.save(name, journal)
    }

    fn hold<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Hold>> {
        self.kept.hold(name)
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<()>> {
        self.kept.remove(name)
    }
}

/// A call did not begin if what comes before it could not be kept.
#[tokio::test]
async fn a_call_before_which_nothing_could_be_kept_is_made_later() {
    let (sandbox, host) = (Sandbox::default(), Flaky::default());
    host.is_up.store(true, Ordering::SeqCst);
    let program = program("return await ops.t.set(1)");
    // The disk is full for a moment, or until the process has ended.
    for fails in [1, 2] {
        let store = Full { fails: fails.into(), ..Full::default() };
        let report = sandbox.run_stored(&program, &StoredJournal::new(&store, "one"), &host).await;
        assert!(matches!(&report.outcome, Outcome::Failed(failed) if failed.reason == Reason::Journal), "{report:?}");
        let could_be_kept = fails == 1;
        let wanted = if could_be_kept { Vec::new() } else { vec!["the journal could not be kept"] };
        assert_eq!(report.warnings, wanted, "nothing was under way");
        assert!(host.calls.ids().is_empty());
        let outcome = sandbox.run_stored(&program, &StoredJournal::new(&store, "one"), &host).await.outcome;
        assert!(matches!(outcome, Outcome::Done(ref value) if *value == json!(1)), "{outcome:?}");
        assert_eq!(std::mem::take(&mut *host.calls.calls.lock().unwrap()).len(), 1);
    }
}

/// Answers with a value of that depth; `t.fail` fails with details of that depth. `t.setOther` asks.
struct Deep(usize);

impl Host for Deep {
    fn call<'a>(&'a self, id: &'a str, _: Value) -> BoxFuture<'a, Result<Value, CallError>> {
        let deep = (0..self.0).fold(json!(1), |inner, _| json!([inner]));
        let fails = id == "t.fail";
        Box::pin(async move { if fails { Err(CallError::execution("no").with_details(deep)) } else { Ok(deep) } })
    }

    fn decide(&self, id: &str, _: &Value) -> Decision {
        if id == "t.setOther" { Decision::Ask } else { Decision::Allow }
    }

    fn is_query(&self, id: &str) -> bool {
        !id.starts_with("t.set")
    }
}

/// What a journal could not be read with again is told to the program at once, which goes on after a question.
#[tokio::test]
async fn a_journal_can_be_read_however_deep_its_values_are() {
    let root = folder("deep");
    let (sandbox, store) = (Sandbox::default(), FolderStore::new(&root));
    let source = "const seen = [];
        for (const call of [ops.t.set, ops.t.fail]) {
            try { await call(1); seen.push('given') } catch (e) { seen.push(e.message) }
        }
        try { await ops.t.setOther(2) } catch {}
        return seen";
    let program = program(source);
    let cut = json!([
        "the call was carried out, but its result is nested more than 120 levels deep, and is not given: ask for parts of it",
        "no [cut: details that are nested more than 120 levels deep]",
    ]);
    for (depth, wanted) in [(120, json!(["given", "no"])), (121, cut.clone()), (127, cut)] {
        let (host, name) = (Deep(depth), depth.to_string());
        let kept = StoredJournal::new(&store, &name);
        let outcome = sandbox.run_stored(&program, &kept, &host).await.outcome;
        let Outcome::Waiting(waiting) = outcome else { panic!("{depth}: {outcome:?}") };
        let outcome =
            sandbox.run_stored(&program, &kept.clone().with_approved(&waiting.asks[0].key), &host).await.outcome;
        assert!(matches!(outcome, Outcome::Done(ref value) if *value == wanted), "{depth}: {outcome:?}");
    }
    for (depth, fits) in [(120, true), (121, false)] {
        let source = format!("let a = 1; for (let i = 0; i < {depth}; i++) a = [a]; return ops.t.setOther(a)");
        let (program, name) = (crate::support::program(&source), format!("input-{depth}"));
        let outcome =
            sandbox.run_stored(&program, &StoredJournal::new(&store, &name), &Recorder::default()).await.outcome;
        let is_deep = matches!(&outcome, Outcome::Failed(failed) if failed.reason == Reason::Depth);
        assert_eq!((matches!(outcome, Outcome::Waiting(_)), is_deep), (fits, !fits), "{depth}: {outcome:?}");
        assert!(store.load(&name).await.unwrap().is_some());
    }
    std::fs::remove_dir_all(&root).unwrap();
}
