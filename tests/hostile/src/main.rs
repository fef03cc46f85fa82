//! `hostile list`, or `hostile CASE [SIZE]`: runs one case, and prints what it came to and what it cost.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let cases = ops_tests_hostile::cases();
    let name = arguments.next().unwrap_or_default();
    if name == "list" {
        for case in cases {
            println!("{} {} {} {}", case.name, case.family.unwrap_or("-"), case.megabytes, case.seconds);
        }
        return ExitCode::SUCCESS;
    }
    let Some(case) = cases.into_iter().find(|case| case.name == name) else {
        eprintln!("usage: hostile list | hostile CASE [SIZE]; there is no case `{name}`");
        return ExitCode::from(2);
    };
    let size = match arguments.next().map(|size| size.parse()) {
        None => case.size,
        Some(Ok(size)) => size,
        Some(Err(error)) => {
            eprintln!("a size is a number: {error}");
            return ExitCode::from(2);
        }
    };
    let outcome = (case.run)(size);
    let (seconds, megabytes) = cost();
    let (verdict, said) = match &outcome {
        Ok(said) => ("held", said),
        Err(said) => ("broken", said),
    };
    let said: String = said.chars().take(400).collect();
    println!("{verdict} {seconds:.2} {megabytes:.1} {said}");
    if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The CPU time of this process in seconds, and the most memory that it held in MB, as the kernel counts them.
fn cost() -> (f64, f64) {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    // Fields 14 and 15 of `stat`, counted from behind the name in parentheses, are hundredths of a second.
    let stat = read("/proc/self/stat");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let hundredths = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(f64::NAN);
    let status = read("/proc/self/status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kilobytes = peak.split_whitespace().next().and_then(|field| field.parse::<f64>().ok()).unwrap_or(f64::NAN);
    ((hundredths(11) + hundredths(12)) / 100.0, kilobytes / 1024.0)
}
