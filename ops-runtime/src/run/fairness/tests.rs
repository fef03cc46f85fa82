//! What a peer costs, and whose turn it is.

use std::future::poll_fn;
use std::sync::atomic::AtomicUsize;
use std::task::{Context as Task, Poll, Waker};

use super::cost::Next;
use super::*;

const MS: Duration = Duration::from_millis(1);

/// What does not succeed in this time never will.
const PATIENCE: Duration = Duration::from_secs(60);

/// The result of a run that took at most so long. What is measured includes the time in which a thread has to wait for a
/// processor, so a run that took longer says nothing, and is repeated.
fn undisturbed<T>(most: Duration, mut run: impl FnMut() -> T) -> T {
    let first = Instant::now();
    loop {
        let began = Instant::now();
        let found = run();
        if began.elapsed() <= most {
            return found;
        }
        assert!(first.elapsed() < PATIENCE, "each run took longer than {most:?}");
    }
}

fn is_paced(cost: &Cost) -> bool {
    cost.turn(false).is_some()
}

/// Lets peers ask for much until all of them are known for it: one that has to wait for a processor is forgotten.
fn ask_for_much(costs: &[Arc<Cost>]) {
    let began = Instant::now();
    while !costs.iter().all(|cost| is_paced(cost)) {
        assert!(began.elapsed() < PATIENCE, "not all of them are known");
        costs.iter().for_each(|cost| cost.add(MS * 10, Instant::now()));
    }
}

#[test]
fn few_that_ask_for_much_do_not_wait() {
    let (pace, costs, new, found) = undisturbed(MS * 10, || {
        let pace = Pace::of(2, false);
        let costs = [0; 3].map(|_| Cost::new(&pace));
        let much = |cost: &Cost| cost.add(MS * 10, Instant::now());
        let few = [0, 1].map(|at: usize| {
            let before = is_paced(&costs[at]);
            much(&costs[at]);
            (before, is_paced(&costs[at]))
        });
        // The third is one too many, which the others learn when they are looked at next.
        much(&costs[2]);
        let third = (is_paced(&costs[2]), is_paced(&costs[0]));
        much(&costs[0]);
        // Who is new waits with them.
        let new = Cost::new(&pace);
        let found = (few, third, is_paced(&costs[0]), is_paced(&new));
        (pace, costs, new, found)
    });
    assert_eq!(found, ([(false, false); 2], (true, false), true, true));
    std::thread::sleep(LATELY * 2);
    new.add(MS, Instant::now());
    assert!(!is_paced(&new));
    // They are forgotten when they ask for no more.
    costs[0].add(MS, Instant::now());
    assert!(!is_paced(&costs[0]) && !is_paced(&Cost::new(&pace)));
}

#[test]
fn those_that_ask_for_the_same_do_not_wait() {
    let found = undisturbed(MS * 10, || {
        let pace = Pace::of(2, true);
        let costs = [0; 4].map(|_| Cost::new(&pace));
        // Takes so many of 100 ms.
        let took = |cost: &Cost, time: Duration| {
            let now = Duration::from_nanos(cost.since.load(Ordering::Relaxed)) + MS * 100;
            cost.add(time, pace.began + now);
            is_paced(cost)
        };
        let same = costs.iter().chain(&costs).any(|cost| took(cost, MS * 10));
        // Once is chance.
        let once = [80, 10, 80].map(|time: u32| took(&costs[0], MS * time));
        // Twice is more than others ask for, who are told when they are looked at next.
        let twice = (took(&costs[0], MS * 80), took(&costs[1], MS * 10));
        // In turns they get the same, which changes nothing for a while.
        let in_turns = (took(&costs[0], MS * 10), took(&costs[1], MS * 10));
        pace.unlike.store(0, Ordering::Relaxed);
        let later = took(&costs[0], MS * 10);
        // Others wait for those that ask for little, which is little beside them.
        let some = [0; 2].map(|_| Cost::new(&pace));
        for cost in &costs {
            took(cost, MS * 3);
            took(cost, MS * 3);
        }
        let beside = |cost: &Cost, time: Duration| (took(cost, time), took(cost, time), took(&costs[0], MS * 3));
        let (much, little) = (beside(&some[0], MS * 8 / 5), beside(&some[1], MS));
        (same, once, twice, in_turns, later, much, little)
    });
    let none = (false, false, false);
    assert_eq!(found, (false, [false; 3], (true, true), (true, true), false, none, (false, false, true)));
}

#[tokio::test(flavor = "current_thread")]
async fn short_work_is_done_at_once() {
    let pace = Pace::of(2, false);
    let costs = [0; 4].map(|_| Cost::new(&pace));
    ask_for_much(&costs);
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
    ask_for_much(&costs);
    pace.little.store(0, Ordering::Relaxed);
    little.add(MS / 10, Instant::now());
    assert!(pace.little.load(Ordering::Relaxed) > 0);
    // It counts as lately until it is set again, however long this thread has to wait for a processor.
    pace.little.store(u64::MAX / 2, Ordering::Relaxed);
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
    let second = turn(&costs[1]).await.unwrap();
    // The last processor is for those that ask for little, as one did lately.
    assert!(turn(&costs[2]).await.is_err());
    pace.little.store(pace.now().max(1), Ordering::Relaxed);
    tokio::time::sleep(LATELY * 2).await;
    let third = turn(&costs[2]).await.unwrap();
    assert!(turn(&costs[3]).await.is_err());
    drop((first, second, third));
    turn(&costs[3]).await.unwrap();
}

/// Connections that are new together and ask for the same do not wait for each other, unless others ask for little.
#[test]
fn new_connections_that_are_alike_take_no_turns() {
    for (spares_alike, is_beside, waits) in [(true, false, false), (true, true, true), (false, false, true)] {
        let is_paced = undisturbed(MS * 10, || {
            let pace = Pace::of(2, spares_alike);
            if is_beside {
                pace.note(&pace.little, Instant::now());
            }
            let costs = [0; 8].map(|_| Cost::new(&pace));
            for _ in 0..4 {
                costs.iter().for_each(|cost| cost.add(MS * 4, Instant::now()));
            }
            is_paced(&Cost::new(&pace))
        });
        assert_eq!(is_paced, waits, "alike are spared: {spares_alike}, beside little: {is_beside}");
    }
}

/// One peer alone takes turns after a long piece of work, and none after short ones; a first measurement may be chance.
#[test]
fn long_pieces_take_turns() {
    let after = |piece: Duration, most: Duration| {
        undisturbed(most, || {
            let pace = Pace::of(2, false);
            let cost = Cost::new(&pace);
            // Much, until it is known as such: new, perhaps by chance, and again.
            for _ in 0..3 {
                cost.add(MS * 10, Instant::now());
                assert!(!is_paced(&cost));
            }
            let work = |_: &mut Task<'_>| {
                std::thread::sleep(piece);
                Poll::Ready(())
            };
            assert!(Turns::default().poll(&cost, &mut Task::from_waker(Waker::noop()), work).is_ready());
            is_paced(&cost)
        })
    };
    // On a busy machine a short piece may become a long one; not each time.
    assert!(!after(SHORT / 4, MS * 9 / 10));
    assert!(after(MS * 2, MS * 50));
    // Who asked for little is believed once.
    let found = undisturbed(MS * 10, || {
        let pace = Pace::of(2, false);
        let costs = [0; 4].map(|_| Cost::new(&pace));
        let later = pace.began + LATELY * 2;
        costs[0].add(MS / 10, later);
        for cost in costs[1..].iter().chain(&costs[1..]).chain(&costs[1..]) {
            cost.add(MS * 10, later);
        }
        costs[0].add(MS * 10, later);
        let once = (is_paced(&costs[0]), is_paced(&costs[1]));
        costs[0].add(MS * 10, later);
        (once, is_paced(&costs[0]))
    });
    assert_eq!(found, ((false, true), true));
}
