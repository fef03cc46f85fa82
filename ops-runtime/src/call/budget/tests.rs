//! What the peers of a budget may hold.

use super::*;
use crate::Payload;

fn budget() -> Arc<Budget> {
    Budget::new(Limits { peer: 4 << 20, all: 8 << 20, peer_running: 10, all_running: 3 })
}

#[test]
fn a_peer_has_a_limit_and_all_together_have_one() {
    let budget = budget();
    let (one, two, three) = (budget.own_share(), budget.own_share(), budget.own_share());
    assert_eq!(one.take(5 << 20), Err(Spent::Peer));
    assert_eq!((one.take(4 << 20), two.take(4 << 20)), (Ok(()), Ok(())));
    assert_eq!(three.take(FLOOR + 1), Err(Spent::All));
    assert_eq!(three.refused(), Some(Spent::All));
    // Those that hold little go on.
    assert_eq!(three.take(FLOOR), Ok(()));
    three.give_back(1);
    three.wake_reader(std::task::Waker::noop());
    assert_eq!(three.refused(), None, "a reader that waits was refused nothing");
    three.take_anyway(1);
    one.give_back(4 << 20);
    assert_eq!(three.take(1 << 20), Ok(()));
    drop((one, two, three));
    assert_eq!(budget.used.load(Ordering::Relaxed), 0);
}

/// Each caller over a broker may choose a new name for each request.
#[test]
fn any_number_of_peers_without_a_connection_exceed_no_limit() {
    let budget = budget();
    let shares: Vec<_> = (0..100).map(|_| budget.share()).collect();
    let taken = shares.iter().map(|share| share.take(FLOOR));
    assert_eq!(taken.filter(Result::is_ok).count(), 40);
    assert_eq!(budget.used.load(Ordering::Relaxed), 10 << 20);
    assert_eq!(shares[40].refused(), Some(Spent::All));
    assert!(budget.is_full());
    // A connection still gets its part.
    assert_eq!((budget.watched_share().take(FLOOR), budget.own_share().take(FLOOR)), (Ok(()), Ok(())));
    // The next request may be larger than what is left.
    shares[0].give_back(FLOOR / 2);
    assert!(budget.is_full());
    assert_eq!(shares[40].take(FLOOR), Err(Spent::All));
    shares[0].give_back(FLOOR / 2);
    shares[1].give_back(FLOOR);
    assert!(!budget.is_full());
    assert_eq!(shares[40].take(FLOOR), Ok(()));
}

/// Requests are refused then: if they were left to wait, nothing would ever end the wait.
#[test]
fn a_budget_of_nothing_is_full_only_while_something_is_held() {
    let budget = Budget::new(Limits { all: 0, ..Limits::default() });
    assert!(!budget.is_full());
    let share = budget.share();
    assert_eq!(share.take(1), Err(Spent::All));
    share.take_anyway(1);
    assert!(budget.is_full());
    share.give_back(1);
    assert!(!budget.is_full());
}

/// Those that hold much do not keep the others from their requests.
#[test]
fn peers_without_a_connection_that_hold_little_go_on() {
    let budget = budget();
    let (one, two, three) = (budget.share(), budget.share(), budget.share());
    assert_eq!((one.take(4 << 20), two.take(4 << 20)), (Ok(()), Ok(())));
    assert!(!budget.is_full());
    assert_eq!((one.take(1), three.take(FLOOR + 1)), (Err(Spent::Peer), Err(Spent::All)));
    assert_eq!((three.take(FLOOR), three.take(1)), (Ok(()), Err(Spent::All)));
}

#[test]
fn a_peer_is_read_whatever_waits_for_it() {
    let share = budget().share();
    assert_eq!(share.take_ahead(3 << 20), Ok(()));
    assert!(!share.is_spent());
    assert_eq!(share.take_ahead(2 << 20), Err(Spent::Peer));
    share.give_back_ahead(2 << 20);
    assert_eq!(share.take(2 << 20), Ok(()));
    assert!(share.is_spent());
    assert_eq!(share.window(), FLOOR as u64);
    assert_eq!(Budget::new(Limits { peer: 512 << 10, ..Limits::default() }).share().window(), 32 << 10);
}

#[test]
fn whoever_holds_the_most_is_disconnected() {
    let budget = Budget::new(Limits { peer: 8 << 20, all: 8 << 20, ..Limits::default() });
    let shares: Vec<_> = (0..8).map(|_| budget.watched_share()).collect();
    assert_eq!(shares[0].take(7 << 20), Ok(()));
    std::thread::sleep(LOOK);
    assert_eq!(shares[1].take(2 << 20), Err(Spent::All));
    assert!(shares[0].evicted().is_cancelled() && !shares[1].evicted().is_cancelled());
}

#[test]
fn requests_are_counted_over_all() {
    let budget = budget();
    let (one, two) = (budget.share(), budget.share());
    let request = CallRequest::new("a.b", serde_json::Value::Null);
    let held = [one.request(&request).unwrap(), one.request(&request).unwrap(), two.request(&request).unwrap()];
    assert!(two.request(&request).is_err());
    drop(held);
    assert!(two.request(&request).is_ok());
    assert_eq!((one.used(), two.used()), (0, 0));
}

#[test]
fn each_connection_may_run_a_few_requests_whatever_the_others_do() {
    let limits = Limits { all_running: 64 * FEW, ..Limits::default() };
    let budget = Budget::new(limits);
    let (greedy, modest, unknown) = (budget.watched_share(), budget.watched_share(), budget.share());
    let request = CallRequest::new("a.b", serde_json::Value::Null);
    let all: Vec<_> = (0..limits.all_running).map(|_| greedy.request(&request).unwrap()).collect();
    assert!(greedy.request(&request).is_err());
    let few: Vec<_> = (0..FEW).map(|_| modest.request(&request).unwrap()).collect();
    assert!(modest.request(&request).is_err());
    // Callers over a broker may be any number: each name is as good as another.
    assert!(unknown.request(&request).is_err());
    drop((all, few));
    assert!(unknown.request(&request).is_ok());
    assert_eq!(budget.running.load(Ordering::Relaxed), 0);
    // What protects something small is kept to.
    let budget = Budget::new(Limits { all_running: 1, ..Limits::default() });
    let (one, two) = (budget.watched_share(), budget.watched_share());
    let _held = one.request(&request).unwrap();
    assert!(two.request(&request).is_err());
}

/// The error does not suggest sending a request again that never fits.
#[test]
fn a_request_that_is_larger_than_all_that_a_peer_may_hold() {
    let limits = Limits { peer: 10_000, all: 20_000, ..Limits::default() };
    let share = Budget::new(limits).share();
    let request = |bytes| {
        let input = serde_json::value::to_raw_value(&"x".repeat(bytes)).unwrap();
        CallRequest::with_id("1".into(), "a.b".into(), Payload::Raw(input))
    };
    let _held = share.request(&request(6_000)).unwrap();
    let told = |bytes| share.request(&request(bytes)).err().unwrap().message().to_owned();
    assert!(
        told(6_000)
            .ends_with("one peer may hold 10000 bytes (the first of `CallHandler::with_max_bytes`); try again later")
    );
    assert!(told(30_000).ends_with("one peer may hold 10000 bytes (the first of `CallHandler::with_max_bytes`)"));
    // The limit of all peers may be the smaller one.
    let share = Budget::new(Limits { peer: 20_000, all: 10_000, ..Limits::default() }).share();
    let error = share.request(&request(15_000)).err().unwrap();
    assert!(error.message().ends_with("all peers may hold 10000 bytes (the second of `CallHandler::with_max_bytes`)"));
    assert_eq!(error.details(), &json!({ "limit": 10_000 }));
}

#[test]
fn ids_of_requests_are_weighed() {
    let request = |id: &str| {
        let input = serde_json::value::to_raw_value(&1).unwrap();
        CallRequest::with_id(id.into(), "a.b".into(), Payload::Raw(input))
    };
    let mut nested = request(&"i".repeat(1_000));
    nested.parent_request_id = Some("p".repeat(1_000).into());
    assert_eq!(weight(&nested) - weight(&request("")), 2_000);
}
