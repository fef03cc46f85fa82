//! `tests/wire [DIR] [--only FILE] [--record]`: sends a request of every operation of every document of a directory to a
//! mock server that knows the document, and says what the server did not like.
//!
//! The directory is the one of `OPS_SPECS` by default, else our own documents. With `--only`, only the documents that the
//! file names are run, from the directory and from our own. The smallest other documents replace those of `tests/known.txt`
//! that are missing. `tests/wire.txt` lists the exceptions: `document | operation | what the server says | cause`. With
//! `--record`, the lines that the list needs are printed at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ops_tests::wire::{Exceptions, Verdict};
use ops_tests::{corpus, wire};

/// The share of the operations that must be accepted, or refused as the list says.
const SHARE: f64 = 0.97;

/// The share of the operations of documents that are not known, if they have at least `MANY`. No list explains the refusals
/// there, so the share of only a few operations would mean nothing.
const SHARE_UNKNOWN: f64 = 0.9;
const MANY: usize = 100;

/// Two thirds of the documents must run, or all but two: the server cannot load every document.
const ENOUGH: (usize, usize) = (2, 3);
const FEW: usize = 2;

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
    /// True if a list names the files.
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
        let own = below(&corpus::root().join("tests/fixtures/openapi"))?;
        let (mut named, of_others) = corpus::matched(&corpus::entries(&list), &own);
        // Without a directory of other people's documents, these are not asked for.
        if !corpus::is_own(&directory) && !of_others.is_empty() {
            let chosen = corpus::choose(&of_others, &files, corpus::holds_document);
            named.extend(chosen.map_err(|error| format!("{only}: {error}"))?);
        }
        files = named;
    }
    files.retain(|file| corpus::holds_document(file));
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

/// The numbers of operations, of accepted ones, and of refused ones that the list explains.
#[derive(Default)]
struct Count {
    operations: usize,
    accepted: usize,
    listed: usize,
}

impl Count {
    fn is_good(&self, share: f64) -> bool {
        (self.accepted + self.listed) as f64 >= self.operations as f64 * share
    }
}

/// The sums over all documents.
#[derive(Default)]
struct Total {
    known: Count,
    unknown: Count,
    bad: usize,
    judged: usize,
    /// The documents that were run.
    ran: usize,
    /// Those that were not, with the reason.
    not_run: Vec<String>,
    /// The number of known documents in `not_run`.
    known_not_run: usize,
    /// The operations whose answers could not be judged, with the reason.
    unjudged: Vec<String>,
    /// What no line of the list explains, and the lines that explain nothing.
    faults: Vec<String>,
    /// The same for documents that are not known. They are no faults, because the list was not made for these documents.
    unexplained: Vec<String>,
}

impl Total {
    /// Adds what became of a document, and prints it.
    fn add(&mut self, name: &str, file: &Path, report: &wire::Report, exceptions: &Exceptions) {
        let (document, is_known) = (&corpus::label(file), corpus::is_known(file));
        let unexplained = if is_known { &mut self.faults } else { &mut self.unexplained };
        let stale = exceptions.stale(document, report);
        unexplained.extend(stale.into_iter().map(|fault| format!("{name}: {fault}")));
        if let Some(why) = &report.not_run {
            println!("{name}: not run: {why}");
            self.not_run.push(format!("{name}: {why}"));
            self.known_not_run += usize::from(is_known);
            return;
        }
        if let Some(why) = &report.failure {
            println!("{name}: FAILED: {why}");
            self.faults.push(format!("{name}: {why}"));
        }
        self.ran += 1;
        let count = if is_known { &mut self.known } else { &mut self.unknown };
        count.operations += report.sent.len();
        count.accepted += report.accepted;
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
                Verdict::Listed(cause) => {
                    let count = if is_known { &mut self.known } else { &mut self.unknown };
                    count.listed += 1;
                    cause.as_str()
                }
                Verdict::Excused(rule) => *rule,
                Verdict::Fault(why) => {
                    let unexplained = if is_known { &mut self.faults } else { &mut self.unexplained };
                    unexplained.push(format!("{name}: {}: {why}", complaint.operation));
                    "UNEXPLAINED"
                }
            };
            let what = complaint.what.replace('\n', " ");
            println!("    {} ({why}): {}: {what}", complaint.operation, complaint.said);
        }
    }

    /// Prints the sums. True if there is no fault. If a list names the documents, all known ones among them must have run.
    fn is_good(&self, is_named: bool) -> bool {
        let lists = [
            ("not run", &self.not_run),
            ("not judged", &self.unjudged),
            ("not explained, in documents that are not known", &self.unexplained),
            ("WRONG", &self.faults),
        ];
        for (what, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            println!("{what}:");
            list.iter().for_each(|line| println!("    {line}"));
        }
        let documents = self.ran + self.not_run.len();
        let operations = self.known.operations + self.unknown.operations;
        let accepted = self.known.accepted + self.unknown.accepted;
        println!(
            "total: {} of {documents} documents ran, {accepted} of {operations} operations accepted ({:.1} %), {} \
             unexplained; {} answers broke the document's own rules, {} were repaired, {} of these could not be judged",
            self.ran,
            accepted as f64 * 100.0 / operations.max(1) as f64,
            self.faults.len() + self.unexplained.len(),
            self.bad,
            self.judged,
            self.unjudged.len()
        );
        let is_enough = self.ran * ENOUGH.1 >= documents * ENOUGH.0 || self.not_run.len() <= FEW;
        let is_all = !is_named || self.known_not_run == 0;
        let is_few = self.unknown.operations < MANY;
        let is_accepted = self.known.is_good(SHARE) && (is_few || self.unknown.is_good(SHARE_UNKNOWN));
        operations > 0 && is_enough && is_all && is_accepted && self.faults.is_empty()
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
        let report = wire::exchange(file).await;
        total.add(&name.display().to_string(), file, &report, &exceptions);
        lines.extend(exceptions.record(&corpus::label(file), &report));
    }
    let is_good = total.is_good(is_named);
    if record {
        println!("the lines that tests/wire.txt needs for these documents:");
        lines.iter().for_each(|line| println!("{line}"));
    }
    Ok(is_good)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "swagger | op0 | X | why\nswagger | gone | X | why\nown/quotes | op0 | X | why";

    fn run(total: &mut Total, file: &Path, sent: usize, refused: &[&str], not_run: bool) {
        let complaint = |operation: &&str| wire::Complaint {
            operation: (*operation).to_owned(),
            said: "X".to_owned(),
            what: String::new(),
            excuse: None,
        };
        let report = wire::Report {
            not_run: not_run.then(|| "it cannot be loaded".to_owned()),
            sent: (0..sent).map(|number| format!("op{number}")).collect(),
            accepted: sent - refused.len(),
            complaints: refused.iter().map(complaint).collect(),
            ..wire::Report::default()
        };
        let exceptions = Exceptions::parse(LIST).unwrap();
        total.add("a document", file, &report, &exceptions);
    }

    #[test]
    fn too_few_documents_that_run_are_a_fault() {
        let (own, other) = (corpus::root().join("tests/fixtures/openapi/styles.yaml"), Path::new("other.yaml"));
        for (files, is_good) in [
            (&[(own.as_path(), false), (other, false), (other, true)][..], [true, true]),
            // One or two documents that do not run are no fault.
            (&[(own.as_path(), false), (other, true), (other, true)][..], [true, true]),
            (&[(own.as_path(), false), (other, true), (other, true), (other, true)][..], [false, false]),
            (&[(other, true), (other, true)][..], [false, false]),
            // A known document must run if a list names it.
            (&[(own.as_path(), true), (other, false), (other, false)][..], [true, false]),
        ] {
            let mut total = Total::default();
            files.iter().for_each(|(file, not_run)| run(&mut total, file, 9, &[], *not_run));
            assert_eq!([false, true].map(|is_named| total.is_good(is_named)), is_good);
        }
    }

    #[test]
    fn what_nothing_explains_is_a_fault_of_a_document_that_is_known() {
        let [own, listed] = ["swagger", "quotes"].map(|name| {
            let file = format!("tests/fixtures/openapi/{name}.yaml");
            corpus::root().join(file)
        });
        let names: Vec<String> = (0..12).map(|number| format!("op{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        // The lines about `swagger` apply neither to our own document of this name nor to one that is not known.
        for (file, sent, refused, is_good) in [
            (own.as_path(), 100, &[][..], true),
            (own.as_path(), 100, &["op0"][..], false),
            // A refusal that the list explains counts as accepted.
            (listed.as_path(), 2, &["op0"][..], true),
            (listed.as_path(), 2, &["op0", "op1"][..], false),
            (Path::new("swagger.yaml"), 100, &names[..11], true),
            (Path::new("swagger.yaml"), 100, &names[1..], false),
            // With fewer than `MANY` operations, the share does not count.
            (Path::new("swagger.yaml"), 99, &names[..], true),
        ] {
            let mut total = Total::default();
            run(&mut total, file, sent, refused, false);
            assert_eq!(total.is_good(false), is_good, "{} {refused:?}", file.display());
        }
    }
}
