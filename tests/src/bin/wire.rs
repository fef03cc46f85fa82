//! `tests/wire [DIR] [--only FILE]`: sends a request of every operation of every document of a directory to a mock
//! server that knows the document, and says what the server did not like.
//!
//! The directory is the one of `OPS_SPECS` by default, else our own documents. With `--only`, only the documents that
//! the file names are run, or the small ones if the directory has none of them. `tests/wire.txt` lists the exceptions:
//! `document | operation | cause`, where `*` in the name of an operation stands for anything.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ops_tests::{corpus, wire};

/// The share of the operations that must be accepted.
const SHARE: f64 = 0.97;

/// Of a directory of so many documents...
const MANY: usize = 60;

/// ...at least so many must run: the server loads not all that people write.
const ENOUGH: usize = 40;

/// A document that is no larger is small.
const SMALL: u64 = 100_000;

struct Exception {
    document: String,
    operation: String,
    cause: String,
}

fn exceptions() -> Result<Vec<Exception>, String> {
    let path = corpus::root().join("tests/wire.txt");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let exception = |line: &str| match line.split('|').map(str::trim).collect::<Vec<_>>()[..] {
        [document, operation, cause] if !cause.is_empty() => {
            Ok(Exception { document: document.to_owned(), operation: operation.to_owned(), cause: cause.to_owned() })
        }
        _ => Err(format!("{}: `{line}` is not `document | operation | cause`", path.display())),
    };
    lines.map(exception).collect()
}

/// Whether a name fits a pattern, in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            rest.is_empty() || name.char_indices().any(|(at, _)| matches(rest, name.split_at(at).1))
        }),
    }
}

fn documents() -> Result<(PathBuf, Vec<PathBuf>), String> {
    let mut directory = corpus::directory("OPS_SPECS", "openapi");
    let mut only = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" => only = Some(arguments.next().ok_or("`--only` needs a file")?),
            _ if argument.starts_with('-') => return Err("usage: tests/wire [DIR] [--only FILE]".to_owned()),
            _ => directory = argument.into(),
        }
    }
    let below = |folder: &Path| corpus::below(folder).map_err(|error| format!("{}: {error}", folder.display()));
    let mut files = below(&directory)?;
    if let Some(only) = only {
        let list = fs::read_to_string(&only).map_err(|error| format!("{only}: {error}"))?;
        // Lists name documents of ours as well.
        let own = corpus::root().join("tests/fixtures/openapi");
        if directory.canonicalize().is_ok_and(|directory| directory != own) {
            files.extend(below(&own)?);
        }
        files = corpus::named(&list, &files, SMALL);
    }
    files.retain(|file| corpus::try_parse(file).is_ok_and(|value| corpus::is_document(&value)));
    Ok((directory, files))
}

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = tokio::select! {
        outcome = run() => outcome,
        // What `run` holds, the server among it, is dropped, and the server ends with that.
        name = signalled() => Err(format!("ended by {name}")),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// Waits for a signal that asks to end.
async fn signalled() -> &'static str {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let wait = |kind| async move {
            match signal(kind) {
                Ok(mut signals) => _ = signals.recv().await,
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            () = wait(SignalKind::interrupt()) => "SIGINT",
            () = wait(SignalKind::terminate()) => "SIGTERM",
            () = wait(SignalKind::hangup()) => "SIGHUP",
        }
    }
    #[cfg(not(unix))]
    {
        _ = tokio::signal::ctrl_c().await;
        "an interrupt"
    }
}

async fn run() -> Result<bool, String> {
    let exceptions = exceptions()?;
    let (directory, files) = documents()?;
    if files.is_empty() {
        return Err(format!("no documents in {}", directory.display()));
    }
    let (mut ran, mut operations, mut accepted, mut bad, mut judged, mut unexplained) = (0, 0, 0, 0, 0, 0);
    for file in &files {
        let name = file.strip_prefix(&directory).or_else(|_| file.strip_prefix(corpus::root())).unwrap_or(file);
        let name = name.display().to_string();
        let report = wire::exchange(file).await;
        if let Some(why) = &report.not_run {
            println!("{name}: not run: {why}");
            continue;
        }
        if let Some(why) = &report.failure {
            println!("{name}: FAILED: {why}");
            unexplained += 1;
        }
        ran += 1;
        operations += report.operations;
        accepted += report.accepted;
        bad += report.bad_answers;
        judged += report.judged;
        let slow = match report.from_examples {
            0 => String::new(),
            count => format!(" ({count} answered from examples)"),
        };
        println!("{name}: {} of {} operations accepted{slow}", report.accepted, report.operations);
        for complaint in &report.complaints {
            let is_listed = |exception: &&Exception| {
                file.file_stem().is_some_and(|stem| stem == exception.document.as_str())
                    && matches(&exception.operation, &complaint.operation)
            };
            let listed = exceptions.iter().find(is_listed).map(|exception| exception.cause.as_str());
            let cause = listed.or(complaint.excuse);
            unexplained += usize::from(cause.is_none());
            println!("    {} ({}): {}", complaint.operation, cause.unwrap_or("UNEXPLAINED"), complaint.what);
        }
    }
    let share = if operations == 0 { 0.0 } else { accepted as f64 / operations as f64 };
    println!(
        "total: {ran} of {} documents ran, {accepted} of {operations} operations accepted ({:.1} %), {unexplained} \
         unexplained; {bad} answers broke the document's own rules, {judged} were repaired",
        files.len(),
        share * 100.0
    );
    let enough = files.len() < MANY || ran >= ENOUGH;
    Ok(operations > 0 && enough && share >= SHARE && unexplained == 0)
}
