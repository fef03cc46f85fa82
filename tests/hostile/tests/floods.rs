//! A small flood: honest calls are answered, and the server keeps its memory within bounds.

use std::process::Command;
use std::time::Duration;

use ops_tests_hostile::block_on;
use ops_tests_hostile::floods::hub::FloodedHub;
use ops_tests_hostile::floods::{Size, flood};

#[test]
fn a_hub_serves_honest_clients_beside_hostile_ones() {
    assert!(Command::new("nice").arg("true").status().is_ok_and(|status| status.success()), "no `nice`");
    // Three of each attack. A hub gives up a connection for which it had no memory for ten seconds, and honest ones are no
    // exception, so a machine that is slow must not have more to do than this.
    let size = Size { hostile: 24, honest: 5, time: Duration::from_secs(5), only: "" };
    let report = block_on(flood::<FloodedHub>(env!("CARGO_BIN_EXE_floods"), size)).unwrap();
    let ([before, most], [heap, after]) = (report.megabytes, report.heap);
    println!(
        "{:?} {:?} {before:.0} {most:.0} MB, heap {heap:.1} {after:.1} MB",
        report.before.percentile(99),
        report.during.percentile(99)
    );
    assert_eq!((report.during.failed, report.during.why.as_str()), (0, ""));
    assert!(report.during.answered() > 0);
    assert!(most < 500.0, "{most} MB were held");
    assert!(report.gave_back(), "{heap} MB before, {after} after");
}
