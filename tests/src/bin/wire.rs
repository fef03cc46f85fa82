//! `tests/wire [DIR] [--only FILE] [--record]`: sends a request of every operation of every document of a directory to a
//! mock server that knows the document, and says what the server did not like.
//!
//! The directory is the one of `OPS_SPECS` by default, else our own documents. With `--only`, only the documents that the
//! file names are run; each entry must name one, of the directory or of ours, and each must run. `tests/wire.txt` lists the exceptions:
//! `document | operation | what the server says | cause`. With `--record`, the lines that it needs are printed at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ops_tests::wire::{Exceptions, Verdict};
use ops_tests::{corpus, wire};

/// The share of the operations that must be accepted.
const SHARE: f64 = 0.97;

/// Of a directory of so many documents...
const MANY: usize = 60;

/// ...at least so many must run: the server loads not all that people write.
const ENOUGH: usize = 40;

const USAGE: &str = "usage: tests/wire [DIR] [--only FILE] [--record]";

fn exceptions() -> Result<Exceptions, String> {
    let path = corpus::root().join("tests/wire.txt");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Exceptions::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// What to run.
struct Arguments {
    directory: PathBuf,
    files: Vec<PathBuf>,
    /// True if a list names them.
    is_named: bool,
    /// Whether the lines that the list needs are printed.
    record: bool,
}

fn arguments() -> Result<Arguments, String> {
    let (mut directory, mut only, mut record) = (None, None, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" => only = Some(arguments.next().ok_or("`--only` needs a file")?),
            "--record" => record = true,
            _ if argument.starts_with('-') || directory.is_some() => return Err(USAGE.to_owned()),
            _ => directory = Some(PathBuf::from(argument)),
        }
    }
    let directory = directory.unwrap_or_else(|| corpus::directory("OPS_SPECS", "openapi"));
    let below = |folder: &Path| corpus::below(folder).map_err(|error| format!("{}: {error}", folder.display()));
    let mut files = below(&directory)?;
    let is_named = only.is_some();
    if let Some(only) = only {
        let list = fs::read_to_string(&only).map_err(|error| format!("{only}: {error}"))?;
        // Lists name documents of ours as well.
        let own = corpus::root().join("tests/fixtures/openapi");
        let is_own = directory.canonicalize().is_ok_and(|directory| directory == own);
        if !is_own {
            files.extend(below(&own)?);
        }
        let (named, missing) = corpus::matched(&list, &files);
        // Without a directory of other people's documents, these are not asked for.
        let missing = if is_own && !named.is_empty() { Vec::new() } else { missing };
        if named.is_empty() || !missing.is_empty() {
            return Err(format!("{only} names documents that are not there: {}", missing.join(", ")));
        }
        files = named;
    }
    // What cannot be read at all is run as well, so that it is told.
    files.retain(|file| corpus::try_parse(file).map_or(true, |value| corpus::is_document(&value)));
    Ok(Arguments { directory, files, is_named, record })
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

/// The sums over all documents.
#[derive(Default)]
struct Total {
    operations: usize,
    accepted: usize,
    bad: usize,
    judged: usize,
    /// The documents that were run.
    ran: usize,
    /// Those that were not, with the reason.
    not_run: Vec<String>,
    /// The operations whose answers could not be judged, with the reason.
    unjudged: Vec<String>,
    /// What no line of the list explains, and the lines that explain nothing.
    faults: Vec<String>,
}

impl Total {
    /// Adds what became of a document, and prints it.
    fn add(&mut self, name: &str, document: &str, report: &wire::Report, exceptions: &Exceptions) {
        let stale = exceptions.stale(document, report);
        self.faults.extend(stale.into_iter().map(|fault| format!("{name}: {fault}")));
        if let Some(why) = &report.not_run {
            println!("{name}: not run: {why}");
            self.not_run.push(format!("{name}: {why}"));
            return;
        }
        if let Some(why) = &report.failure {
            println!("{name}: FAILED: {why}");
            self.faults.push(format!("{name}: {why}"));
        }
        self.ran += 1;
        self.operations += report.sent.len();
        self.accepted += report.accepted;
        self.bad += report.bad_answers;
        self.judged += report.judged;
        self.unjudged.extend(report.unjudged.iter().map(|(operation, why)| format!("{name}: {operation}: {why}")));
        let slow = match report.from_examples {
            0 => String::new(),
            count => format!(" ({count} answered from examples)"),
        };
        println!("{name}: {} of {} operations accepted{slow}", report.accepted, report.sent.len());
        for (complaint, verdict) in report.complaints.iter().zip(exceptions.verdicts(document, report)) {
            let why = match &verdict {
                Verdict::Listed(cause) => cause,
                Verdict::Excused(rule) => *rule,
                Verdict::Fault(why) => {
                    self.faults.push(format!("{name}: {}: {why}", complaint.operation));
                    "UNEXPLAINED"
                }
            };
            let what = complaint.what.replace('\n', " ");
            println!("    {} ({why}): {}: {what}", complaint.operation, complaint.said);
        }
    }

    /// Prints the sums, and says whether all is well; there were so many documents, all of which must run if a list names them.
    fn is_good(&self, documents: usize, is_named: bool) -> bool {
        let lists = [("not run", &self.not_run), ("not judged", &self.unjudged), ("WRONG", &self.faults)];
        for (what, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            println!("{what}:");
            list.iter().for_each(|line| println!("    {line}"));
        }
        let share = if self.operations == 0 { 0.0 } else { self.accepted as f64 / self.operations as f64 };
        println!(
            "total: {} of {documents} documents ran, {} of {} operations accepted ({:.1} %), {} unexplained; {} answers \
             broke the document's own rules, {} were repaired, {} of these could not be judged",
            self.ran,
            self.accepted,
            self.operations,
            share * 100.0,
            self.faults.len(),
            self.bad,
            self.judged,
            self.unjudged.len()
        );
        let enough = if is_named { self.ran == documents } else { documents < MANY || self.ran >= ENOUGH };
        self.operations > 0 && enough && share >= SHARE && self.faults.is_empty()
    }
}

async fn run() -> Result<bool, String> {
    let exceptions = exceptions()?;
    let Arguments { directory, files, is_named, record } = arguments()?;
    if files.is_empty() {
        return Err(format!("no documents in {}", directory.display()));
    }
    let (mut total, mut lines) = (Total::default(), Vec::new());
    for file in &files {
        let name = file.strip_prefix(&directory).or_else(|_| file.strip_prefix(corpus::root())).unwrap_or(file);
        let document = file.file_stem().unwrap_or_default().to_string_lossy();
        let report = wire::exchange(file).await;
        total.add(&name.display().to_string(), &document, &report, &exceptions);
        lines.extend(exceptions.record(&document, &report));
    }
    let is_good = total.is_good(files.len(), is_named);
    if record {
        println!("the lines that tests/wire.txt needs for these documents:");
        lines.iter().for_each(|line| println!("{line}"));
    }
    Ok(is_good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_of_a_list_that_does_not_run_is_a_fault() {
        let total = Total { operations: 9, accepted: 9, ran: 1, ..Total::default() };
        assert!(total.is_good(1, true));
        assert!(total.is_good(2, false));
        assert!(!total.is_good(2, true));
    }
}
