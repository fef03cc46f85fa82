//! What a peer costs, and whose turn it is.

use std::future::poll_fn;
use std::sync::atomic::AtomicUsize;
use std::task::{Context as Task, Poll};

use super::cost::{Next, Turn};
use super::*;

const MS: Duration = Duration::from_millis(1);

#[test]
fn few_that_ask_for_much_do_not_wait() {
    let pace = Pace::of(2, false);
    let costs = [0; 3].map(|_| Cost::new(&pace));
    let paced = |cost: &Cost| cost.turn(false).is_some();
    for cost in &costs[..2] {
        assert!(!paced(cost));
        cost.add(MS * 10, Instant::now());
        assert!(!paced(cost));
    }
    // The third is one too many, which the others learn when they are looked at next.
    costs[2].add(MS * 10, Instant::now());
    assert!(paced(&costs[2]) && !paced(&costs[0]));
    costs[0].add(MS * 10, Instant::now());
    assert!(paced(&costs[0]));
    // Who is new waits with them.
    let new = Cost::new(&pace);
    assert!(paced(&new));
    std::thread::sleep(LATELY * 2);
    new.add(MS, Instant::now());
    assert!(!paced(&new));
    // They are forgotten when they ask for no more.
    costs[0].add(MS, Instant::now());
    assert!(!paced(&costs[0]) && !paced(&Cost::new(&pace)));
}

#[test]
fn those_that_ask_for_the_same_do_not_wait() {
    let pace = Pace::of(2, true);
    let costs = [0; 4].map(|_| Cost::new(&pace));
    // Takes so many of 100 ms.
    let took = |cost: &Cost, time: Duration| {
        let now = Duration::from_nanos(cost.since.load(Ordering::Relaxed)) + MS * 100;
        cost.add(time, pace.began + now);
        cost.turn(false).is_some()
    };
    for cost in costs.iter().chain(&costs) {
        assert!(!took(cost, MS * 10));
    }
    // Once is chance.
    assert!(!took(&costs[0], MS * 80) && !took(&costs[0], MS * 10) && !took(&costs[0], MS * 80));
    // Twice is more than others ask for, who are told when they are looked at next.
    assert!(took(&costs[0], MS * 80));
    assert!(took(&costs[1], MS * 10));
    // In turns they get the same, which changes nothing for a while.
    assert!(took(&costs[0], MS * 10) && took(&costs[1], MS * 10));
    pace.unlike.store(0, Ordering::Relaxed);
    assert!(!took(&costs[0], MS * 10));
    // Others wait for those that ask for little, which is little beside them.
    let some = [0; 2].map(|_| Cost::new(&pace));
    for cost in &costs {
        took(cost, MS * 3);
        took(cost, MS * 3);
    }
    assert!(!took(&some[0], MS * 8 / 5) && !took(&some[0], MS * 8 / 5) && !took(&costs[0], MS * 3));
    assert!(!took(&some[1], MS) && !took(&some[1], MS) && took(&costs[0], MS * 3));
}

#[tokio::test(flavor = "current_thread")]
async fn short_work_is_done_at_once() {
    let pace = Pace::of(2, false);
    let costs = [0; 4].map(|_| Cost::new(&pace));
    for cost in costs.iter().chain(&costs) {
        cost.add(MS * 10, Instant::now());
    }
    // What is ready meanwhile waits until the work in turns has taken its time.
    let others = Arc::new(AtomicUsize::new(0));
    let counted = others.clone();
    tokio::spawn(async move {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let mut turns = Turns::default();
    let mut piece = async |cost: &Arc<Cost>, done: Duration| {
        pace.done.store(nanoseconds(done), Ordering::Relaxed);
        let work = |_: &mut Task<'_>| {
            std::thread::sleep(SHORT);
            Poll::Ready(others.load(Ordering::Relaxed))
        };
        poll_fn(|task| turns.poll(cost, task, work)).await
    };
    assert_eq!(piece(&costs[0], Duration::ZERO).await, 0);
    assert!(pace.is_done());
    assert_eq!(piece(&costs[1], SHORT / 2).await, 0);
    assert_eq!(piece(&costs[2], SHORT).await, 1);
    // It counts anew.
    assert_eq!(piece(&costs[3], Duration::ZERO).await, 1);
}

#[tokio::test(flavor = "current_thread")]
async fn a_turn_is_given_to_one_of_a_peer_at_a_time() {
    let pace = Pace::of(3, false);
    let costs = [0; 5].map(|_| Cost::new(&pace));
    let little = Cost::new(&pace);
    tokio::time::sleep(LATELY * 2).await;
    little.add(MS / 10, Instant::now());
    for cost in costs.iter().chain(&costs).chain(&costs) {
        cost.add(MS * 10, Instant::now());
    }
    little.add(MS / 10, Instant::now());
    let wait = |next: Option<Next>| async {
        match next.unwrap() {
            Next::Now(turn) => turn,
            Next::Later(waiting) => waiting.await,
        }
    };
    let turn = |cost: &Cost| tokio::time::timeout(MS * 20, wait(cost.turn(false)));
    let first = turn(&costs[0]).await.unwrap();
    assert!(turn(&costs[0]).await.is_err());
    // But for what reads the peer, after a while.
    drop(tokio::time::timeout(LATELY * 4, wait(costs[0].turn(true))).await.unwrap());
    little.add(MS / 10, Instant::now());
    let second = turn(&costs[1]).await.unwrap();
    // The last processor is for those that ask for little, as one did lately.
    assert!(turn(&costs[2]).await.is_err());
    tokio::time::sleep(LATELY * 2).await;
    let third = turn(&costs[2]).await.unwrap();
    assert!(turn(&costs[3]).await.is_err());
    drop((first, second, third));
    turn(&costs[3]).await.unwrap();
}

/// Connections that are new together and ask for the same do not wait for each other, unless others ask for little.
#[tokio::test]
async fn new_connections_that_are_alike_take_no_turns() {
    for (spares_alike, is_beside, waits) in [(true, false, false), (true, true, true), (false, false, true)] {
        let pace = Pace::of(2, spares_alike);
        tokio::time::sleep(LATELY * 2).await;
        if is_beside {
            pace.note(&pace.little, Instant::now());
        }
        let costs = [0; 8].map(|_| Cost::new(&pace));
        for _ in 0..4 {
            costs.iter().for_each(|cost| cost.add(MS * 4, Instant::now()));
        }
        let new = Cost::new(&pace);
        assert_eq!(new.turn(false).is_some(), waits, "alike are spared: {spares_alike}, beside little: {is_beside}");
    }
}

/// One peer alone takes turns after a long piece of work, and none after short ones; a first measurement may be chance.
#[tokio::test]
async fn long_pieces_take_turns() {
    let after = async |piece: Duration| {
        let pace = Pace::of(2, false);
        let cost = Cost::new(&pace);
        // Much, until it is known as such: new, perhaps by chance, and again.
        for _ in 0..3 {
            cost.add(MS * 10, Instant::now());
            assert!(cost.turn(false).is_none());
        }
        let work = |_: &mut Task<'_>| {
            std::thread::sleep(piece);
            Poll::Ready(())
        };
        let began = Instant::now();
        poll_fn(|task| Turns::default().poll(&cost, task, work)).await;
        (cost.turn(false).is_some(), began.elapsed())
    };
    // On a busy machine a short piece may become a long one; not each time.
    let mut short = after(super::SHORT / 4).await;
    for _ in 0..1_000 {
        if short.1 < super::SHORT {
            break;
        }
        short = after(super::SHORT / 4).await;
    }
    assert!(!short.0, "after {:?}", short.1);
    assert!(after(MS * 2).await.0);
    // Who asked for little is believed once.
    let pace = Pace::of(2, false);
    let costs = [0; 4].map(|_| Cost::new(&pace));
    tokio::time::sleep(LATELY * 2).await;
    costs[0].add(MS / 10, Instant::now());
    for cost in costs[1..].iter().chain(&costs[1..]).chain(&costs[1..]) {
        cost.add(MS * 10, Instant::now());
    }
    costs[0].add(MS * 10, Instant::now());
    assert!(costs[0].turn(false).is_none() && costs[1].turn(false).is_some());
    costs[0].add(MS * 10, Instant::now());
    assert!(costs[0].turn(false).is_some());
}
