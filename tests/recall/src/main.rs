//! `tests/search DIR... QUESTIONS.tsv... [--quiet]`: how often a search finds the operation that answers a question.
//! `tests/search` says what is read and printed. `tests/search DIR... --operations` prints what can be found.

mod catalogue;
#[path = "../../src/corpus/known.rs"]
#[allow(dead_code, unreachable_pub, reason = "the other tests need more of it")]
mod known;
mod questions;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ops_runtime::search::SearchIndex;

use crate::catalogue::Catalogue;
use crate::questions::{Question, Questions};

const USAGE: &str = "usage: tests/search DIR... ((QUESTIONS.tsv [--bound RECALL])... [--quiet] | --operations)";

/// The numbers of places that are counted.
const PLACES: [usize; 3] = [1, 5, 10];

struct Arguments {
    directories: Vec<String>,
    /// The files of questions, each with the least recall at five. Without one, the operations are printed.
    questions: Vec<(String, Option<f64>)>,
    quiet: bool,
}

fn arguments() -> Result<Arguments, String> {
    let (mut directories, mut questions, mut quiet, mut asks) = (Vec::new(), Vec::new(), false, true);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--bound" => {
                let bound = arguments.next().and_then(|bound| bound.parse().ok()).ok_or(USAGE)?;
                let last: &mut (String, Option<f64>) = questions.last_mut().ok_or(USAGE)?;
                last.1 = Some(bound);
            }
            "--quiet" => quiet = true,
            "--operations" => asks = false,
            _ if argument.starts_with('-') => return Err(USAGE.to_owned()),
            _ if Path::new(&argument).extension().is_some_and(|extension| extension == "tsv") => {
                questions.push((argument, None));
            }
            _ => directories.push(argument),
        }
    }
    if directories.is_empty() || asks == questions.is_empty() {
        return Err(USAGE.to_owned());
    }
    Ok(Arguments { directories, questions, quiet })
}

fn main() -> ExitCode {
    match arguments().and_then(|arguments| run(&arguments)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let catalogue = Catalogue::read(&arguments.directories)?;
    if arguments.questions.is_empty() {
        print_operations(&catalogue);
        return Ok(true);
    }
    let mut files = Vec::new();
    for (file, bound) in &arguments.questions {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let questions = questions::read(&text, &catalogue).map_err(|error| format!("{file}: {error}"))?;
        files.push((file, *bound, questions));
    }

    let started = Instant::now();
    let index = SearchIndex::new(catalogue.operations());
    println!("{} operations indexed in {} ms", index.len(), started.elapsed().as_millis());

    let mut is_good = true;
    for (file, bound, Questions { questions, left_out }) in &files {
        if *left_out > 0 {
            println!("{file}: {left_out} questions about documents that are not there");
        }
        if questions.is_empty() {
            continue;
        }
        let (recall, median) = asked(&index, questions, arguments.quiet);
        println!("{file}: {} questions, p50 of a search {:.2} ms", questions.len(), median.as_secs_f64() * 1e3);
        if let Some(bound) = bound.filter(|bound| recall[1] < *bound) {
            // The bound holds only if all questions are asked, and if only known documents are indexed.
            let is_below = *left_out == 0 && catalogue.is_known();
            is_good &= !is_below;
            println!("recall@5 is below {bound}{}", if is_below { "" } else { ", which is for other documents" });
        }
        println!("recall@1 {:.3} recall@5 {:.3} recall@10 {:.3}", recall[0], recall[1], recall[2]);
    }
    Ok(is_good)
}

/// How large a part of the questions is answered by the first one, five and ten, and the p50 of a search.
fn asked(index: &SearchIndex, questions: &[Question], quiet: bool) -> ([f64; PLACES.len()], Duration) {
    let mut found = [0_usize; PLACES.len()];
    let mut times: Vec<Duration> = Vec::new();
    for question in questions {
        let started = Instant::now();
        let hits = index.search(&question.text, PLACES[2]);
        times.push(started.elapsed());
        let place = hits.iter().position(|hit| question.answers.iter().any(|answer| *answer == hit.id));
        for (count, places) in found.iter_mut().zip(PLACES) {
            *count += usize::from(place.is_some_and(|place| place < places));
        }
        if !quiet && place.is_none_or(|place| place >= PLACES[1]) {
            let place = place.map_or_else(|| "not found".to_owned(), |place| format!("at {}", place + 1));
            let first: Vec<&str> = hits.iter().take(PLACES[1]).map(|hit| hit.id.as_ref()).collect();
            println!("miss: {}\n    {} {place}; first {}", question.text, question.answers.join(","), first.join(" "));
        }
    }
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    (found.map(|count| count as f64 / questions.len() as f64), median)
}

/// Prints the id, the title and the description of each operation in a line of its own, with tabs between them.
fn print_operations(catalogue: &Catalogue) {
    for operation in catalogue.operations() {
        let texts =
            [operation.id.as_ref(), operation.title.as_deref().unwrap_or_default(), operation.description.as_ref()];
        println!("{}", texts.map(|text| text.replace(['\t', '\n', '\r'], " ")).join("\t"));
    }
}
