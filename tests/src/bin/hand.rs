//! `tests/hand [DIR] [--only NAME] [--full | --static] [--show N]`: makes an input of every operation of every document of
//! a directory by naming only what is required, and compares what was asked for with the document.
//!
//! `tests/hand` says what the arguments mean.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use ops_tests::corpus;
use ops_tests::requests::hand::{self, Compiled, Document, Examined};
use ops_tests::requests::{Exceptions, Fault, Source};

const USAGE: &str = "usage: tests/hand [DIR] [--only NAME] [--full | --static] [--show N]";

/// For each `UNKNOWN` types, one may be missing in its document, and one more in any case.
const UNKNOWN: usize = 50;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Nothing is compiled; the calls of all documents are written.
    Static,
    /// The calls of the documents of a list are written and compiled.
    Few,
    /// Those of all are.
    Full,
}

struct Arguments {
    directory: PathBuf,
    only: Vec<String>,
    way: Way,
    show: usize,
}

fn arguments() -> Result<Arguments, String> {
    let directory = corpus::directory("OPS_SPECS", "openapi");
    let mut found = Arguments { directory, only: Vec::new(), way: Way::Few, show: 5 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(USAGE);
        match argument.as_str() {
            "--only" => found.only.push(value()?),
            "--full" => found.way = Way::Full,
            "--static" => found.way = Way::Static,
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
    let (arguments, exceptions) = (arguments()?, Exceptions::parse(&text("tests/hand.txt")?)?);
    let directory = &arguments.directory;
    let files = corpus::below(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let sources: Vec<Source> = Source::all(directory, &files, &arguments.only);
    if sources.is_empty() {
        return Err(format!("no documents in {}", directory.display()));
    }
    let compiled: Vec<&Source> = match arguments.way {
        Way::Static => Vec::new(),
        Way::Few => {
            hand::few(&sources, &text("tests/hand-few.txt")?).map_err(|error| format!("tests/hand-few.txt: {error}"))?
        }
        Way::Full => sources.iter().collect(),
    };
    let (mut total, mut documents, mut left, mut failed) = (Examined::default(), Vec::new(), 0, 0);
    let mut judge = |name: &str, path: &Path, faults: Vec<Fault>| {
        let faults: Vec<Fault> = faults.into_iter().filter(|fault| !exceptions.explain(path, fault)).collect();
        for Fault { operation, difference, .. } in faults.iter().take(arguments.show) {
            let (expected, found) = (shortened(&difference.expected), shortened(&difference.found));
            println!("    {name}: {operation}: {}: expected {expected}, found {found}", difference.place);
        }
        left += faults.len();
    };
    for source in &sources {
        let began = Instant::now();
        let name = source.path.strip_prefix(directory).unwrap_or(&source.path).display().to_string();
        let is_compiled = compiled.iter().any(|chosen| chosen.namespace == source.namespace);
        let with_calls = is_compiled || arguments.way != Way::Few;
        let (document, examined) = match Document::examine(source, with_calls) {
            Ok(examined) => examined,
            // The other documents are still compared.
            Err(error) => {
                println!("{name}: FAILED: {error}");
                failed += 1;
                continue;
            }
        };
        print(&name, &examined, began);
        if !examined.not_found.is_empty() {
            println!("    not found in the document: {}", shortened(&examined.not_found.join(", ")));
        }
        add(&mut total, &examined);
        judge(&name, &source.path, examined.faults);
        if is_compiled {
            // One of them as a user's build script makes it of a large document.
            let way = if documents.is_empty() { Compiled::OnlyUsed } else { Compiled::Whole };
            documents.push((document, way));
        }
    }
    let began = Instant::now();
    let results = if documents.is_empty() { Vec::new() } else { hand::run(&documents).await? };
    let (mut right, mut all) = (0, 0);
    for ((document, way), (own, of, faults)) in documents.iter().zip(results) {
        let name = document.path().strip_prefix(directory).unwrap_or(document.path()).display().to_string();
        let way = if *way == Compiled::OnlyUsed { ", of which only what is used is generated" } else { "" };
        println!("{name}: {own} of {of} inputs and values are as they must be{way}");
        judge(&name, document.path(), faults);
        (right, all) = (right + own, all + of);
    }
    let known = sources.iter().map(|source| source.path.as_path()).filter(|path| corpus::is_known(path));
    let idle = if arguments.way == Way::Full { exceptions.idle(&known.collect::<Vec<_>>()) } else { Vec::new() };
    idle.iter().for_each(|line| println!("tests/hand.txt: this explains nothing: {line}"));
    print("total", &total, began);
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{} documents compiled: {right} of {all} inputs and values, {seconds:.0} s; {left} faults, {failed} documents failed",
        documents.len()
    );
    let is_compared = total.not_found.len() <= 1 + total.types / UNKNOWN;
    if !is_compared {
        println!("too few types were found in their documents");
    }
    Ok(left == 0 && failed == 0 && idle.is_empty() && is_compared && total.types > 0)
}

fn text(path: &str) -> Result<String, String> {
    let path = corpus::root().join(path);
    std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

fn add(total: &mut Examined, one: &Examined) {
    total.types += one.types;
    total.right += one.right;
    total.not_found.extend(one.not_found.iter().cloned());
    total.operations += one.operations;
    total.written += one.written;
}

fn print(name: &str, examined: &Examined, began: Instant) {
    let Examined { types, right, not_found, operations, written, .. } = examined;
    let compared = types - not_found.len();
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{name}: {right} of {types} types ask for what is required ({compared} compared with the document), \
         {written} of {operations} operations can be called; {seconds:.1} s"
    );
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(400) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
