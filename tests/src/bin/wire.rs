//! `tests/wire [DIR] [--only FILE]`: sends a request of every operation of every document of a directory to a mock
//! server that knows the document, and says what the server did not like.
//!
//! The directory is the one of `OPS_SPECS` by default, else our own documents. With `--only`, only the documents that
//! the file names are run, or the small ones if the directory has none of them. `tests/wire.txt` lists the exceptions:
//! `document | operation | cause`, `*` for every operation.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use ops_tests::{corpus, wire};

/// The share of the operations that must be accepted.
const SHARE: f64 = 0.97;

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
    let mut files = corpus::below(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    files.retain(|file| corpus::try_parse(file).is_ok_and(|value| corpus::is_document(&value)));
    if let Some(only) = only {
        let list = fs::read_to_string(&only).map_err(|error| format!("{only}: {error}"))?;
        files = corpus::named(&list, &files, SMALL);
    }
    Ok((directory, files))
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
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
        let name = file.strip_prefix(&directory).unwrap_or(file).display().to_string();
        let report = wire::exchange(file).await;
        if let Some(why) = &report.not_run {
            println!("{name}: not run: {why}");
            if report.operations == 0 {
                continue;
            }
        }
        ran += 1;
        operations += report.operations;
        accepted += report.accepted;
        bad += report.bad_answers;
        judged += report.judged;
        println!("{name}: {} of {} operations accepted", report.accepted, report.operations);
        for complaint in &report.complaints {
            let is_listed = |exception: &&Exception| {
                name.split('.').next() == exception.document.split('.').next()
                    && (exception.operation == "*" || exception.operation == complaint.operation)
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
    Ok(operations > 0 && share >= SHARE && unexplained == 0)
}
