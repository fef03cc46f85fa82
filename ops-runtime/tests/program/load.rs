//! Many programs at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use ops_runtime::program::{Limits, Outcome, Reason, Sandbox};

use crate::support::{Recorder, program};

/// Of 500 programs some never end, some wait, some take memory, and the rest have little to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn none_of_500_starves() {
    let limits = Limits::new().with_cpu(Duration::from_millis(400)).with_total_memory(200 << 20);
    // Enough for all of them to have their turns on a busy machine.
    let limits = limits.with_time(Duration::from_secs(600));
    let (sandbox, host) = (Sandbox::new(limits), Arc::new(Recorder::default()));
    let start = Instant::now();
    let mut running = Vec::new();
    for at in 0..500 {
        let source = match at % 25 {
            0 => "for (;;) {}",
            1 => "const a = []; for (;;) a.push('x'.repeat(100000))",
            2..=12 => "return (await ops.t.sleep({ ms: 1500 })).ms",
            _ => "return 1",
        };
        let (sandbox, host) = (sandbox.clone(), host.clone());
        running.push(tokio::spawn(async move {
            let report = sandbox.run(&program(source), &*host).await;
            (at % 25, report.outcome, start.elapsed())
        }));
    }
    let mut last = [Duration::ZERO; 2];
    for task in running {
        let (kind, outcome, elapsed) = task.await.unwrap();
        let done = matches!(outcome, Outcome::Done(_));
        assert_eq!(done, kind >= 2, "{kind}: {outcome:?}");
        let of = usize::from(kind >= 2);
        last[of] = last[of].max(elapsed);
    }
    println!("500 programs: {last:?}, {} MB", peak());
    assert!(peak() < 1_500, "{} MB", peak());
    // Those that never end have 20 * 0.4 s of a processor alone, and end last.
    assert!(last[1] < last[0], "those that do little wait for those that do much: {last:?}");
}

/// As many programs as the sandbox takes at once run; the others wait, for no longer than their time.
#[tokio::test]
async fn a_program_waits_for_its_turn() {
    let (sandbox, host) = (Sandbox::new(Limits::new().with_programs(2)), Recorder::default());
    let sleeping = program("return (await ops.t.sleep({ ms: 100 })).ms");
    let reports = join_all((0..6).map(|_| sandbox.run(&sleeping, &host))).await;
    assert!(reports.iter().all(|report| matches!(report.outcome, Outcome::Done(_))), "{reports:?}");
    assert_eq!(host.ids().len(), 6);
    assert!(host.most_at_once.load(Ordering::SeqCst) <= 2);

    let limits = Limits::new().with_programs(1).with_time(Duration::from_millis(300));
    let (sandbox, host, long) =
        (Sandbox::new(limits), Recorder::default(), program("await ops.t.sleep({ ms: 60000 })"));
    for report in join_all((0..6).map(|_| sandbox.run(&long, &host))).await {
        assert!(matches!(&report.outcome, Outcome::Failed(failure) if failure.reason == Reason::Time), "{report:?}");
    }
    // If the wait were not part of its time, each would have its turn. The second may still get one: its time ends a little
    // later than that of the first.
    assert!(host.ids().len() < 6, "{:?}", host.ids());
}

/// The least time of a program without calls; printed, and bounded far above what it is, for machines under load.
#[tokio::test]
async fn a_program_of_no_calls_costs_little() {
    let (sandbox, host, one) = (Sandbox::default(), Recorder::default(), program("return 1"));
    sandbox.run(&one, &host).await;
    let mut least = Duration::MAX;
    for _ in 0..100 {
        let start = Instant::now();
        assert!(matches!(sandbox.run(&one, &host).await.outcome, Outcome::Done(_)));
        least = least.min(start.elapsed());
    }
    println!("a program of no calls: {least:?}");
    assert!(least < Duration::from_millis(50), "{least:?}");
}

/// The most memory that the process had, in MB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}
