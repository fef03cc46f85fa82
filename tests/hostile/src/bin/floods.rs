//! `floods [TARGET] [--hostile N] [--honest N] [--seconds N] [--only ATTACK]`: floods a server and prints what honest clients see of it.

use std::alloc::System;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use cap::Cap;
use ops_tests_hostile::block_on;
use ops_tests_hostile::floods::hub::FloodedHub;
use ops_tests_hostile::floods::{Size, Target, attack, flood, serve};

/// Counts what is allocated and not freed.
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Each kind of server that can be flooded.
    let run = match arguments.first().map(String::as_str) {
        None | Some("hub") => run::<FloodedHub>,
        Some(first) if first.starts_with("--") => run::<FloodedHub>,
        Some(other) => {
            eprintln!("there is no target `{other}`: hub");
            return ExitCode::from(2);
        }
    };
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run<T: Target>(arguments: &[String]) -> Result<bool, String> {
    let word = |at: usize| arguments.get(at).map(String::as_str);
    match word(1) {
        Some("serve") => return block_on(serve::<T>(|| HEAP.allocated())).map(|()| true),
        Some("attack") => {
            let address: SocketAddr = word(2).unwrap_or_default().parse().map_err(|_| "no address".to_owned())?;
            let connections = word(3).and_then(|n| n.parse().ok()).unwrap_or(200);
            block_on(attack::<T>(address, connections, word(4).unwrap_or_default()));
            return Ok(true);
        }
        _ => {}
    }
    let option = |name: &str, default: usize| {
        let at = arguments.iter().position(|argument| argument == name);
        at.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(default)
    };
    let only =
        arguments.iter().position(|argument| argument == "--only").and_then(|at| word(at + 1)).unwrap_or_default();
    let size = Size {
        hostile: option("--hostile", 200),
        honest: option("--honest", 50),
        time: Duration::from_secs(option("--seconds", 20) as u64),
        only: only.to_owned().leak(),
    };
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let report = block_on(flood::<T>(&program.to_string_lossy(), size))?;
    println!("{} hostile connections beside {} honest ones, {:?} each", size.hostile, size.honest, size.time);
    println!("| | calls | failed | p50 ms | p99 ms |\n|---|--:|--:|--:|--:|");
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    for (name, seen) in [("without", &report.before), ("beside the flood", &report.during)] {
        let [p50, p99] = [50, 99].map(|of| milliseconds(seen.percentile(of)));
        println!("| {name} | {} | {} | {p50:.2} | {p99:.2} |", seen.answered(), seen.failed);
    }
    let ([before, most], [heap, after]) = (report.megabytes, report.heap);
    println!(
        "memory of the server in MB: {before:.0} before, {most:.0} at most; its heap: {heap:.1} before, {after:.1} after"
    );
    let ratio = milliseconds(report.during.percentile(99)) / milliseconds(report.before.percentile(99));
    println!("p99 is {ratio:.1} times that without");
    if report.during.failed > 0 {
        println!("the last honest call that failed: {}", report.during.why);
    }
    Ok(report.during.failed == 0 && ratio <= 5.0 && most < 500.0 && report.gave_back())
}
