//! Random calls and random faults, from a seed.
//!
//! 30 seconds over all transports, or as long as one likes, each in turn:
//!
//! ```text
//! OPS_FAULT_SECONDS=600 OPS_FAULT_SEED=7 cargo test -p ops-runtime --all-features --test call random -- --nocapture
//! ```
//!
//! `OPS_FAULT_ONLY=nats` gives all of the time to one of them.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::join_all;
use ops_runtime::call::Remote;
use ops_runtime::{CallError, CallOptions, ErrorCode};
use serde_json::json;

use crate::harness::{Harness, Working, another, eventually};
use crate::operations::{Count, CountInput, Echo, EchoInput, Outer, OuterInput, SilentAfter, SilentAfterInput};
use crate::operations::{Wait, WaitInput};

/// How many callers there are.
const CALLERS: u64 = 12;

/// How long a call may take.
const DEADLINE: Duration = Duration::from_secs(3);

/// A small generator of numbers that look random (splitmix64): the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut n = self.0;
        n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (n ^ (n >> 31)) % sides
    }
}

#[derive(Default)]
struct Tally {
    done: AtomicU64,
    /// The part of `done` in the last third of the time: earlier disturbances must not stop all calls.
    late: AtomicU64,
    failed: AtomicU64,
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

/// Runs one transport for its share of the time. Returns `false` if `OPS_FAULT_ONLY` names another one.
pub(crate) async fn faults<H: Harness>(share: u64) -> bool {
    let only = std::env::var("OPS_FAULT_ONLY").unwrap_or_default();
    if !H::NAME.starts_with(&only) {
        return false;
    }
    let share = if only.is_empty() { share } else { 1 };
    let time = Duration::from_millis(setting("OPS_FAULT_SECONDS", 30) * 1_000 / share);
    let seed = setting("OPS_FAULT_SEED", 1);
    let harness = Arc::new(H::start().await);
    let remote = harness.caller().await;
    let (stop, tally) = (Arc::new(AtomicBool::new(false)), Arc::new(Tally::default()));
    let started = Instant::now();
    let callers: Vec<_> = (0..CALLERS)
        .map(|n| {
            let (remote, stop, tally) = (remote.clone(), stop.clone(), tally.clone());
            tokio::spawn(async move {
                let mut dice = Dice(seed ^ (n << 32));
                while !stop.load(Ordering::SeqCst) {
                    let result = once(&remote, &mut dice).await;
                    if !check(&tally, result, started.elapsed() > time * 2 / 3) {
                        // What fails at once is not to keep others from running.
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            })
        })
        .collect();

    let mut dice = Dice(seed);
    let mut workers = vec![another(&*harness).await, another(&*harness).await];
    let mut memory = None;
    while started.elapsed() < time {
        tokio::time::sleep(Duration::from_millis(20 + dice.roll(150))).await;
        if memory.is_none() && started.elapsed() > time / 3 {
            memory = Some(resident());
        }
        match dice.roll(6) {
            0 if workers.len() > 1 => workers.swap_remove(dice.roll(workers.len() as u64) as usize).0.kill().await,
            1 if workers.len() > 1 => workers.swap_remove(dice.roll(workers.len() as u64) as usize).0.stop().await,
            2 | 3 if workers.len() < 4 => workers.push(another(&*harness).await),
            _ => harness.disturb(dice.roll(1_000)).await,
        }
    }
    stop.store(true, Ordering::SeqCst);
    for caller in join_all(callers).await {
        caller.unwrap();
    }
    served(&remote).await;
    eventually("no request is pending", || remote.in_flight() == 0).await;
    for (worker, probe) in &workers {
        eventually("no task is left", || worker.running() == 0).await;
        eventually("no handler is left", || probe.alive() == 0).await;
    }
    let [done, late, failed] = [&tally.done, &tally.late, &tally.failed].map(|count| count.load(Ordering::SeqCst));
    let grown = resident().saturating_sub(memory.unwrap_or_default());
    println!(
        "{}: {done} calls done, {late} of them in the last third of the time, {failed} failed, memory grew by {} KB",
        H::NAME,
        grown >> 10
    );
    assert!(done > 100, "hardly anything was done: {done} calls, {failed} failed");
    assert!(late > 0, "nothing was done in the last third of the time: {done} calls before, {failed} failed");
    assert!(memory.is_none() || grown < 200 << 20, "{grown} bytes more than after a third of the time");
    true
}

/// Waits until a call succeeds, after the disturbances have ended: then a worker serves again.
async fn served(remote: &Remote) {
    let began = Instant::now();
    loop {
        let input = EchoInput { value: json!("again") };
        match remote.execute_with::<Echo>(input, CallOptions::new().with_timeout(DEADLINE)).await {
            Ok(answer) => {
                assert_eq!(answer.data, "again");
                return;
            }
            Err(error) => assert!(began.elapsed() < DEADLINE * 10, "calls fail though nothing is disturbed: {error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Memory that the process uses, which has no other tests.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.as_deref().and_then(|text| text.split(' ').nth(1)).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * 4096
}

/// Counts a call; `is_late` is true in the last third of the time. Returns `true` if the call did not fail.
fn check(tally: &Tally, result: Result<bool, CallError>, is_late: bool) -> bool {
    match &result {
        Ok(is_answered) => {
            tally.done.fetch_add((*is_answered).into(), Ordering::SeqCst);
            tally.late.fetch_add((*is_answered && is_late).into(), Ordering::SeqCst);
        }
        Err(error) => {
            let expected = [ErrorCode::Aborted, ErrorCode::Timeout, ErrorCode::OperationNotFound];
            assert!(expected.contains(error.code()), "{error:?}");
            tally.failed.fetch_add(1, Ordering::SeqCst);
        }
    }
    result.is_ok()
}

/// Makes one call of some kind. It must end in time, and its result must be right. Returns `false` if the call was dropped
/// before it had a result.
async fn once(remote: &Remote, dice: &mut Dice) -> Result<bool, CallError> {
    let options = || CallOptions::new().with_timeout(DEADLINE);
    let call = async {
        match dice.roll(8) {
            0 | 1 => {
                let value = json!([dice.roll(1 << 40), "x".repeat(dice.roll(3_000) as usize)]);
                let answer = remote.execute_with::<Echo>(EchoInput { value: value.clone() }, options()).await?;
                assert_eq!(answer.data, value);
            }
            2 => {
                let key = dice.roll(1 << 40).to_string();
                let input = WaitInput { key: key.clone(), milliseconds: dice.roll(100) };
                assert_eq!(remote.execute_with::<Wait>(input, options()).await?.data, key);
            }
            3 => drop(remote.execute_with::<Outer>(OuterInput { milliseconds: dice.roll(50) }, options()).await?),
            // Given up by its deadline, and by dropping it.
            4 => {
                let options = CallOptions::new().with_timeout(Duration::from_millis(dice.roll(30)));
                drop(remote.execute_with::<Wait>(WaitInput { key: "t".to_owned(), milliseconds: 50 }, options).await?);
            }
            5 => {
                let input = WaitInput { key: "d".to_owned(), milliseconds: 60_000 };
                let call = remote.execute_with::<Wait>(input, options());
                let _ = tokio::time::timeout(Duration::from_millis(dice.roll(40)), call).await;
                return Ok(false);
            }
            6 => {
                let to = dice.roll(300);
                let mut items = remote.subscribe_with::<Count>(CountInput { to }, options()).await?;
                let mut next = 0;
                while let Some(item) = items.next().await {
                    assert_eq!(item?.data, next);
                    next += 1;
                }
                assert_eq!(next, to);
            }
            _ => {
                let take = dice.roll(100);
                let input = SilentAfterInput { items: take + 1 };
                let mut items = remote.subscribe_with::<SilentAfter>(input, options()).await?;
                for n in 0..take {
                    match items.next().await {
                        Some(item) => assert_eq!(item?.data, n),
                        None => panic!("it ended by itself"),
                    }
                }
            }
        }
        Ok(true)
    };
    tokio::time::timeout(DEADLINE * 10, call).await.expect("a call hangs")
}

/// Runs the faults in a process of their own, whose memory is theirs alone.
#[test]
fn random_faults() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "random::faults_of_all", "--nocapture"])
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    println!("{stdout}");
    assert!(child.status.success() && stdout.contains("1 passed"), "{}\n{stderr}", child.status);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "`random_faults` starts it"]
async fn faults_of_all() {
    let mut has_run = false;
    has_run |= faults::<crate::in_process::InProcessHarness>(TRANSPORTS).await;
    #[cfg(feature = "websocket")]
    {
        has_run |= faults::<crate::websocket::ThroughHub>(TRANSPORTS).await;
    }
    // What is lost by mistake is only counted here, so that they can be quick to take something for lost.
    #[cfg(feature = "nats")]
    {
        has_run |= faults::<crate::nats::NatsHarness<600>>(TRANSPORTS).await;
    }
    #[cfg(feature = "redis")]
    {
        has_run |= faults::<crate::redis::RedisHarness<600>>(TRANSPORTS).await;
    }
    assert!(has_run, "no transport has a name that begins with `OPS_FAULT_ONLY`");
}

/// How many transports share the time.
const TRANSPORTS: u64 =
    1 + cfg!(feature = "websocket") as u64 + cfg!(feature = "nats") as u64 + cfg!(feature = "redis") as u64;
