//! `tests/requests [DIR] [--only NAME] [--full | --by-id] [--show N]`: sends two requests of every operation of every
//! document of a directory to a server of ours, and compares what arrives with what the document says.
//!
//! `tests/requests` says what the arguments mean.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use ops_tests::corpus;
use ops_tests::requests::{self, Exceptions, Report, Source, Typed};

const USAGE: &str = "usage: tests/requests [DIR] [--only NAME] [--full | --by-id] [--show N]";

/// Of which documents the generated code is run as well.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Of none.
    ById,
    /// Of those that a list names.
    Listed,
    /// Of all.
    Full,
}

struct Arguments {
    directory: PathBuf,
    only: Vec<String>,
    way: Way,
    show: usize,
}

fn arguments() -> Result<Arguments, String> {
    let mut found =
        Arguments { directory: corpus::directory("OPS_SPECS", "openapi"), only: Vec::new(), way: Way::Listed, show: 5 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(USAGE);
        match argument.as_str() {
            "--only" => found.only.push(value()?),
            "--full" => found.way = Way::Full,
            "--by-id" => found.way = Way::ById,
            "--show" => found.show = value()?.parse().map_err(|_| USAGE)?,
            _ if argument.starts_with('-') => return Err(USAGE.to_owned()),
            _ => found.directory = argument.into(),
        }
    }
    Ok(found)
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
    let began = Instant::now();
    let (arguments, exceptions) = (arguments()?, exceptions()?);
    let files = corpus::below(&arguments.directory).map_err(|e| format!("{}: {e}", arguments.directory.display()))?;
    let sources = Source::all(&arguments.directory, &files, &arguments.only);
    let chosen = typed(&arguments, &files, &sources);
    let mut program = None;
    if !chosen.is_empty() {
        let started = Instant::now();
        program = Some(Typed::start(&chosen).await?);
        println!("{} documents generated and compiled in {:.0} s", chosen.len(), started.elapsed().as_secs_f64());
    }
    let (mut total, mut explained, mut refused, mut failed) = (Report::default(), 0, 0, 0);
    for source in &sources {
        let started = Instant::now();
        let is_typed = chosen.iter().any(|chosen| chosen.namespace == source.namespace);
        let failure = program.as_ref().and_then(|program| program.failure(&source.namespace)).map(str::to_owned);
        let runs = program.as_mut().filter(|_| is_typed && failure.is_none());
        let mut report = requests::exchange(&source.path, &source.namespace, runs).await;
        report.failure = report.failure.or(failure);
        let before = report.faults.len();
        report.faults.retain(|fault| !exceptions.explain(&source.path, fault));
        explained += before - report.faults.len();
        let before = report.faults.len();
        // Two validators refuse the input. In a document that is not known, this counts as a fault of its schemas.
        report.faults.retain(|fault| fault.difference.place != "input" || corpus::is_known(&source.path));
        refused += before - report.faults.len();
        print(&name(&arguments.directory, &source.path), &report, arguments.show, started);
        failed += usize::from(report.failure.is_some());
        add(&mut total, report);
    }
    let documents = sources.len();
    if documents == 0 {
        return Err(format!("no documents in {}", arguments.directory.display()));
    }
    let (known, others): (Vec<&Path>, Vec<&Path>) =
        sources.iter().map(|source| source.path.as_path()).partition(|path| corpus::is_known(path));
    let idle = exceptions.idle(&known);
    idle.iter().for_each(|line| println!("tests/requests.txt: this explains nothing: {line}"));
    for line in exceptions.idle(&others) {
        println!("tests/requests.txt: this is about another document: {line}");
    }
    print("total", &total, 0, began);
    println!(
        "{documents} documents, {failed} failed, {explained} differences explained, {refused} inputs that their schemas \
         refuse, {} not explained",
        total.faults.len()
    );
    Ok(failed == 0 && total.faults.is_empty() && idle.is_empty() && total.by_id.requests > 0)
}

fn exceptions() -> Result<Exceptions, String> {
    let path = corpus::root().join("tests/requests.txt");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Exceptions::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Those of which the generated code is run: `SMOKE.txt` beside the documents lists them, or else the small ones are.
fn typed(arguments: &Arguments, files: &[PathBuf], sources: &[Source]) -> Vec<Source> {
    let named = match arguments.way {
        Way::ById => Vec::new(),
        Way::Full => files.to_vec(),
        // Chosen from all files, so that `--only` compiles no document that a run without it does not compile.
        Way::Listed => corpus::smoke(&arguments.directory, files),
    };
    sources.iter().filter(|source| named.contains(&source.path)).cloned().collect()
}

fn add(total: &mut Report, report: Report) {
    total.operations += report.operations;
    total.left_out += report.left_out;
    for (sum, one) in [(&mut total.by_id, report.by_id), (&mut total.typed, report.typed)] {
        sum.requests += one.requests;
        sum.agreed += one.agreed;
    }
    total.faults.extend(report.faults);
}

fn name(directory: &Path, file: &Path) -> String {
    file.strip_prefix(directory).unwrap_or(file).display().to_string()
}

fn print(name: &str, report: &Report, show: usize, started: Instant) {
    let Report { operations, left_out, by_id, typed, .. } = report;
    println!(
        "{name}: {operations} operations, {left_out} left out; by id {} of {} agree, typed {} of {}; {} differences; {:.1} s",
        by_id.agreed,
        by_id.requests,
        typed.agreed,
        typed.requests,
        report.faults.len(),
        started.elapsed().as_secs_f64()
    );
    if let Some(failure) = &report.failure {
        println!("    FAILED: {failure}");
    }
    for fault in report.faults.iter().take(show) {
        let difference = &fault.difference;
        println!(
            "    {} ({}): {}: expected {}, found {}",
            fault.operation,
            fault.way,
            difference.place,
            shortened(&difference.expected),
            shortened(&difference.found)
        );
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(400) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
