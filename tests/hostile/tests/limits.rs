//! Runs every case in a child process with the memory and the CPU time that it may have, each as a test of its name.

use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};
use ops_tests_hostile::{Case, cases};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One at a time: what a case may take is counted as if it were alone.
    arguments.test_threads = Some(1);
    let mut trials: Vec<Trial> = cases().into_iter().map(|case| Trial::test(case.name, move || run(&case))).collect();
    trials.push(Trial::test("no_two_cases_have_one_name", no_two_cases_have_one_name));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn no_two_cases_have_one_name() -> Result<(), Failed> {
    let mut names: Vec<&str> = cases().iter().map(|case| case.name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(pair[0].into()),
    }
}

/// Runs a case, prints what it came to, and returns an error if it broke a limit or a promise.
fn run(case: &Case) -> Result<(), Failed> {
    let output = Command::new("prlimit")
        // Memory that is written to: what is only reserved (by stacks, by arenas) does no harm.
        // The soft limits alone: a case lifts them for a server of other people that it starts.
        .arg(format!("--data={}:", case.megabytes << 20))
        .arg(format!("--cpu={}:", case.seconds))
        .arg("--core=0")
        .arg(env!("CARGO_BIN_EXE_hostile"))
        .arg(case.name)
        .env("RUST_BACKTRACE", "0")
        // Few arenas, so that the limit counts what is used.
        .env("MALLOC_ARENA_MAX", "2")
        .output()
        .map_err(|error| format!("cannot run `prlimit`: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{}: {}", case.name, text.trim());
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = stderr.lines().rev().take(3).collect();
    let Case { megabytes, seconds, .. } = case;
    Err(format!("{} of {megabytes} MB and {seconds} s: {} {}", output.status, text.trim(), last.join(" / ")).into())
}
