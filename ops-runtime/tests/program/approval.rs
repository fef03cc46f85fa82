//! Programs that ask, and go on after the answer.

use ops_runtime::CallError;
use ops_runtime::access::Decision;
use ops_runtime::adapter::BoxFuture;
use ops_runtime::program::{
    Ask, Host, Journal, JournalStore, MemoryStore, Outcome, Reason, Sandbox, StoredJournal, Waiting,
};
use serde_json::{Value, json};

use crate::support::{Recorder, program};

/// A host whose rules are others by now.
struct Ruled<'a>(&'a Recorder, Decision);

impl Host for Ruled<'_> {
    fn call<'a>(&'a self, id: &'a str, input: Value) -> BoxFuture<'a, Result<Value, CallError>> {
        self.0.call(id, input)
    }

    fn decide(&self, _: &str, _: &Value) -> Decision {
        self.1
    }

    fn is_query(&self, id: &str) -> bool {
        self.0.is_query(id)
    }
}

/// The journal of a program as a process leaves it that dies before this call is started.
fn before_start(text: &str, of: &str) -> Journal {
    let mut journal: Value = serde_json::from_str(text).unwrap();
    let calls = journal["calls"].as_array_mut().unwrap();
    let entry = calls.iter_mut().find(|entry| entry["id"] == of).unwrap().as_object_mut().unwrap();
    for gone in ["answer", "order", "at"] {
        entry.remove(gone);
    }
    entry.insert("state".to_owned(), json!("allowed"));
    Journal::from_json(&journal.to_string()).unwrap()
}

fn waiting(outcome: Outcome) -> (Vec<Ask>, Journal) {
    match outcome {
        Outcome::Waiting(Waiting { asks, journal, .. }) => (asks, journal),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_program_stops_where_it_asks_and_goes_on_after_a_yes() {
    let (sandbox, host) = (Sandbox::default(), Recorder::default());
    let program = program(
        "const random = Math.random(); const seen = await ops.t.echo({ random });
         console.log('seen');
         const set = await ops.t.set({ to: 7 });
         return [seen.random === random, set, Date.now() >= 0]",
    );
    let report = sandbox.run(&program, &host).await;
    let (asks, mut journal) = waiting(report.outcome);
    assert_eq!(asks.len(), 1);
    assert_eq!((asks[0].id.as_str(), &asks[0].input), ("t.set", &json!({ "to": 7 })));
    assert_eq!(host.ids(), ["t.echo"]);

    // Without an answer, it waits for the same, and makes no call.
    let (again, _) = waiting(sandbox.resume(&program, journal.clone(), &host).await.outcome);
    assert_eq!((again, host.ids().len()), (asks.clone(), 1));

    journal.approve(&asks[0].key).unwrap();
    assert!(journal.approve(&asks[0].key).is_err() && journal.decline(&asks[0].key).is_err(), "it is answered");
    let journal = Journal::from_json(&journal.to_json().unwrap()).unwrap();
    let report = sandbox.resume(&program, journal, &host).await;
    assert!(
        matches!(report.outcome, Outcome::Done(ref value) if *value == json!([true, { "to": 7 }, true])),
        "{report:?}"
    );
    assert_eq!(host.ids(), ["t.echo", "t.set"]);
    assert_eq!((report.logs.len(), report.calls), (1, 2));
}

#[tokio::test]
async fn a_no_is_an_error_that_the_program_may_catch() {
    let (sandbox, host) = (Sandbox::default(), Recorder::default());
    let program = program("try { await ops.t.set({}) } catch (e) { return [e.code, e.message] }");
    let (asks, mut journal) = waiting(sandbox.run(&program, &host).await.outcome);
    journal.decline(&asks[0].key).unwrap();
    let outcome = sandbox.resume(&program, journal, &host).await.outcome;
    let wanted = json!(["ACCESS_DENIED", "the call was declined: somebody was asked and did not say yes"]);
    assert!(matches!(outcome, Outcome::Done(ref value) if *value == wanted), "{outcome:?}");
    assert!(host.ids().is_empty());
}

#[tokio::test]
async fn calls_in_parallel_end_before_it_waits_and_all_questions_are_told() {
    let (sandbox, host) = (Sandbox::default(), Recorder::default());
    let program = program(
        "const [a, b, c] = await Promise.all([ops.t.set(1), ops.t.sleep({ ms: 30 }).then(() => ops.t.set(2)), ops.t.echo(3)]);
         return [a, b, c]",
    );
    let (asks, mut journal) = waiting(sandbox.run(&program, &host).await.outcome);
    let asked: Vec<_> = asks.iter().map(|ask| ask.input.clone()).collect();
    assert_eq!(asked, [json!(1), json!(2)]);
    assert_eq!(host.ids(), ["t.sleep", "t.echo"]);
    // The second alone: the first still waits.
    journal.approve(&asks[1].key).unwrap();
    let (asks, mut journal) = waiting(sandbox.resume(&program, journal, &host).await.outcome);
    assert_eq!((asks.len(), &asks[0].input), (1, &json!(1)));
    journal.approve(&asks[0].key).unwrap();
    let outcome = sandbox.resume(&program, journal, &host).await.outcome;
    assert!(matches!(outcome, Outcome::Done(ref value) if *value == json!([1, 2, 3])), "{outcome:?}");
    assert_eq!(host.ids(), ["t.sleep", "t.echo", "t.set", "t.set"]);
}

#[tokio::test]
async fn a_yes_is_bound_to_the_operation_its_input_and_the_program() {
    let (sandbox, host) = (Sandbox::default(), Recorder::default());
    let asking = program("return ops.t.set({ amount: 1 })");
    let (asks, journal) = waiting(sandbox.run(&asking, &host).await.outcome);

    // A key of another run of the same program.
    let (other, mut of_other) = waiting(sandbox.run(&asking, &host).await.outcome);
    assert_ne!(asks[0].key, other[0].key);
    assert!(of_other.approve(&asks[0].key).is_err());

    // Another program, and the same one with another input of its call.
    let mut yes = journal.clone();
    yes.approve(&asks[0].key).unwrap();
    let changed = program("return ops.t.set({ amount: 1000 })");
    let Outcome::Failed(failed) = sandbox.resume(&changed, yes.clone(), &host).await.outcome else { panic!() };
    assert_eq!(failed.reason, Reason::Differs);
    let text = yes.to_json().unwrap();
    for (from, to) in [("\"amount\":1", "\"amount\":1000"), ("t.set", "t.setOther")] {
        let edited = Journal::from_json(&text.replace(from, to)).unwrap();
        let Outcome::Failed(failed) = sandbox.resume(&asking, edited, &host).await.outcome else { panic!() };
        assert_eq!(failed.reason, Reason::Differs, "{failed:?}");
        assert!(failed.message.contains("differently than its journal says: call 1 was"), "{failed:?}");
    }
    assert!(host.ids().is_empty());
}

#[tokio::test]
async fn what_the_policy_allowed_is_decided_anew() {
    let (sandbox, host, store) = (Sandbox::default(), Recorder::default(), MemoryStore::new());
    let program = program("try { return await ops.t.set(1) } catch (e) { return e.code }");
    let kept = StoredJournal::new(&store, "one");
    sandbox.run_stored(&program, &kept, &Ruled(&host, Decision::Allow)).await;
    let text = store.load("one").await.unwrap().unwrap().to_json().unwrap();
    assert_eq!(host.ids(), ["t.set"]);

    // It is asked about by now.
    let allowed = before_start(&text, "t.set");
    let (asks, mut yes) =
        waiting(sandbox.resume(&program, allowed.clone(), &Ruled(&host, Decision::Ask)).await.outcome);
    assert_eq!((asks.len(), host.ids().len()), (1, 1));
    // It is denied by now, also what somebody has agreed to.
    yes.approve(&asks[0].key).unwrap();
    for journal in [allowed, yes.clone()] {
        let outcome = sandbox.resume(&program, journal, &Ruled(&host, Decision::Deny)).await.outcome;
        assert!(matches!(outcome, Outcome::Done(ref value) if value == "ACCESS_DENIED"), "{outcome:?}");
    }
    assert_eq!(host.ids().len(), 1);
    // A yes is one to what is asked, whatever else has happened to the process.
    let outcome = sandbox.resume(&program, yes, &Ruled(&host, Decision::Ask)).await.outcome;
    assert!(matches!(outcome, Outcome::Done(ref value) if *value == json!(1)), "{outcome:?}");
    assert_eq!(host.ids().len(), 2);
}

#[tokio::test]
async fn what_was_asked_is_decided_anew() {
    let (sandbox, host) = (Sandbox::default(), Recorder::default());
    let program = program("try { return await ops.t.set(1) } catch (e) { return e.code }");
    let (asks, asked) = waiting(sandbox.run(&program, &host).await.outcome);
    let mut no = asked.clone();
    no.decline(&asks[0].key).unwrap();
    for (journal, decision, value) in [
        (&asked, Decision::Deny, json!("ACCESS_DENIED")),
        (&no, Decision::Allow, json!("ACCESS_DENIED")),
        (&asked, Decision::Allow, json!(1)),
    ] {
        assert!(host.ids().is_empty());
        let outcome = sandbox.resume(&program, journal.clone(), &Ruled(&host, decision)).await.outcome;
        assert!(matches!(outcome, Outcome::Done(ref done) if *done == value), "{decision:?}: {outcome:?}");
    }
    assert_eq!(host.ids(), ["t.set"]);
}

#[tokio::test]
async fn a_yes_may_be_given_again_also_to_what_is_denied_by_now() {
    let (sandbox, host, store) = (Sandbox::default(), Recorder::default(), MemoryStore::new());
    let program = program("try { return await ops.t.set(1) } catch (e) { return e.code }");
    let kept = StoredJournal::new(&store, "one");
    let (asks, _) = waiting(sandbox.run_stored(&program, &kept, &host).await.outcome);
    let kept = kept.with_approved(&asks[0].key);
    for _ in 0..2 {
        let outcome = sandbox.run_stored(&program, &kept, &Ruled(&host, Decision::Deny)).await.outcome;
        assert!(matches!(outcome, Outcome::Done(ref value) if value == "ACCESS_DENIED"), "{outcome:?}");
    }
    assert!(host.ids().is_empty());
}
