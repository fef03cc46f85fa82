//! Runs every case in a child process with the memory and the CPU time that it may have.

use std::process::Command;

use ops_tests_hostile::{Case, cases};

#[test]
fn every_case_is_held_within_its_limits() {
    let cases = cases();
    let mut names: Vec<&str> = cases.iter().map(|case| case.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len(), "two cases have one name");
    let only = std::env::var("OPS_HOSTILE_ONLY").unwrap_or_default();
    let chosen: Vec<&Case> = cases.iter().filter(|case| case.name.contains(&only)).collect();
    assert!(!chosen.is_empty(), "no case has `{only}` in its name");
    let failed: Vec<String> = chosen.into_iter().filter_map(|case| run(case).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Runs a case, prints what it came to, and returns an error if it broke a limit or a promise.
fn run(case: &Case) -> Result<(), String> {
    let output = Command::new("prlimit")
        // Memory that is written to: what is only reserved (by stacks, by arenas) does no harm.
        // The soft limits alone: a case lifts them for a server of other people that it starts.
        .arg(format!("--data={}:", case.megabytes << 20))
        .arg(format!("--cpu={}:", case.seconds))
        .arg("--core=0")
        .arg(env!("CARGO_BIN_EXE_hostile"))
        .arg(case.name)
        .env("RUST_BACKTRACE", "0")
        // One arena, so that the limit counts what is used.
        .env("MALLOC_ARENA_MAX", "2")
        .output()
        .map_err(|error| format!("{}: cannot run `prlimit`: {error}", case.name))?;
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{}: {}", case.name, text.trim());
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = stderr.lines().rev().take(3).collect();
    Err(format!("{}: {}: {} {}", case.name, output.status, text.trim(), last.join(" / ")))
}
