//! `tests/serve [DIR] [--only NAME] [--show N]`: sends two requests of every operation of every document of a directory
//! from our client to our server, and compares what comes in with what was sent.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use ops_tests::corpus;
use ops_tests::serve::exchange::{self, Report};
use ops_tests::serve::excused::Excused;

const USAGE: &str = "usage: tests/serve [DIR] [--only NAME] [--show N]";

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ran = runtime.map_err(|error| error.to_string()).and_then(|runtime| runtime.block_on(run()));
    match ran {
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
    let (mut directory, mut only, mut show) = (corpus::directory("OPS_SPECS", "openapi"), Vec::new(), 5_usize);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(USAGE);
        match argument.as_str() {
            "--only" => only.push(value()?),
            "--show" => show = value()?.parse().map_err(|_| USAGE)?,
            _ if argument.starts_with('-') => return Err(USAGE.to_owned()),
            _ => directory = PathBuf::from(argument),
        }
    }
    let files = corpus::below(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let excused = excused()?;
    let (mut total, mut documents, mut failed) = (Report::default(), 0, 0);
    let mut unlisted = Vec::new();
    for file in files {
        let name = file.strip_prefix(&directory).unwrap_or(&file).display().to_string();
        let is_wanted = only.is_empty() || only.iter().any(|only| name.starts_with(only.as_str()));
        if !is_wanted || !corpus::holds_document(&file) {
            continue;
        }
        documents += 1;
        let started = Instant::now();
        let report = exchange::exchange(Path::new(&file), "served").await;
        print(&name, &report, show, started);
        failed += usize::from(report.failure.is_some());
        // There is no list of what other documents have.
        if corpus::is_known(&file) {
            unlisted.extend(excused.faults(&corpus::label(&file), &report));
        }
        total.operations += report.operations;
        total.requests += report.requests;
        total.same += report.same;
        total.unsent += report.unsent;
        report.lost.iter().for_each(|(cause, count)| *total.lost.entry(*cause).or_default() += count);
        total.faults.extend(report.faults);
        total.document.differing += report.document.differing;
        total.document.operations += report.document.operations;
        total.document.faults.extend(report.document.faults);
    }
    if documents == 0 {
        return Err(format!("no documents in {}", directory.display()));
    }
    print("total", &total, 0, began);
    let differences = total.faults.len() + total.document.faults.len();
    println!("{documents} documents, {failed} failed, {differences} differences");
    for line in &unlisted {
        println!("tests/serve.txt: {line}");
    }
    Ok(failed == 0 && total.faults.is_empty() && unlisted.is_empty() && total.requests > 0)
}

fn excused() -> Result<Excused, String> {
    let path = corpus::root().join("tests/serve.txt");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Excused::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn print(name: &str, report: &Report, show: usize, started: Instant) {
    let Report { operations, requests, same, unsent, lost, .. } = report;
    let lost = lost.iter().map(|(cause, count)| format!(", {count} {cause:?}")).collect::<String>();
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{name}: {operations} operations; {same} of {requests} requests came in as sent{lost}, {unsent} not sent; {seconds:.1} s"
    );
    if let Some(failure) = &report.failure {
        println!("    FAILED: {failure}");
    }
    let document = &report.document;
    let same = document.operations - document.differing;
    println!(
        "    its document: {same} of {} operations came out as they went in, {} differences",
        document.operations,
        document.faults.len()
    );
    for fault in document.faults.iter().take(show) {
        println!(
            "    {}: {} was {}\n      and is {}",
            fault.operation,
            fault.place,
            short(&fault.before),
            short(&fault.after)
        );
    }
    for fault in report.faults.iter().take(show) {
        println!(
            "    {} at {}: sent {}, came {}",
            fault.operation,
            fault.place,
            short(&fault.sent),
            short(&fault.came)
        );
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
