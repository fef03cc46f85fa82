//! What a program costs: the CPU time and the memory of a child process.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// No measured program runs longer than this many seconds.
const LIMIT: &str = "1200";

/// A program that has run.
#[derive(Debug, Default)]
pub struct Measured {
    /// Whether it ended with status 0.
    pub success: bool,
    /// What it wrote to standard error, or why it could not be run.
    pub stderr: String,
    /// CPU time in seconds, of the program and its children.
    pub cpu: f64,
    /// The most memory that any one of its processes held, in MB.
    pub megabytes: f64,
}

/// Runs a program by GNU time, in a folder; its figures are left in `report`.
pub fn run<I: AsRef<OsStr>>(program: &Path, arguments: &[I], folder: &Path, report: &Path) -> Measured {
    // What an earlier run left must not pass for the figures of this one.
    let _ = std::fs::remove_file(report);
    let mut command = Command::new("timeout");
    command.arg(LIMIT).args(["/usr/bin/time", "--quiet", "-f", "%U %S %M", "-o"]).arg(report);
    command.arg(program).args(arguments).current_dir(folder).stdin(Stdio::null());
    // Measured as a stranger would run it.
    command.env("CARGO_INCREMENTAL", "0").env_remove("RUSTFLAGS").env_remove("RUST_BACKTRACE");
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            let stderr = format!("cannot run `timeout /usr/bin/time`, which measure: {error}");
            return Measured { stderr, ..Measured::default() };
        }
    };
    let mut stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        stderr.push_str(&format!("\n({} ended with {})", program.display(), output.status));
    }
    let figures = std::fs::read_to_string(report).unwrap_or_default();
    let figures: Vec<f64> = figures.split_whitespace().filter_map(|figure| figure.parse().ok()).collect();
    match figures[..] {
        [.., user, system, kilobytes] => {
            Measured { success: output.status.success(), stderr, cpu: user + system, megabytes: kilobytes / 1024.0 }
        }
        _ => Measured {
            success: false,
            stderr: format!("{stderr}\n(no figures from /usr/bin/time)"),
            ..Measured::default()
        },
    }
}
