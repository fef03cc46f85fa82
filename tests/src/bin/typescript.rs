//! `tests/typescript [DIR..] [--full] [--only NAME] [--show N]`: writes every operation of every document and list of tools
//! of directories as TypeScript, and has the compiler judge it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use ops_runtime::typescript::Detail;

use ops_tests::corpus;
use ops_tests::folder::target;
use ops_tests::typescript::{self, Compiler, Complaint, Judge, Written};

const USAGE: &str = "usage: tests/typescript [DIR..] [--full] [--only NAME] [--show N]";

/// A short description is of at most so many bytes, for this share of the operations.
const SHORT: usize = 2_400;
const SHARE: f64 = 0.95;

/// The most operations of known documents, our own included, for which no checked value can be made. If all are there, 101 have
/// none.
const UNJUDGED: usize = 105;

/// So many documents are written at once.
const THREADS: usize = 2;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, String> {
    let began = Instant::now();
    let (mut folders, mut only, mut show, mut is_full) = (Vec::new(), Vec::new(), 10_usize, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(USAGE);
        match argument.as_str() {
            "--only" => only.push(value()?),
            "--show" => show = value()?.parse().map_err(|_| USAGE)?,
            "--full" => is_full = true,
            _ if argument.starts_with('-') => return Err(USAGE.to_owned()),
            _ => folders.push(PathBuf::from(argument)),
        }
    }
    if folders.is_empty() {
        folders = vec![corpus::directory("OPS_SPECS", "openapi"), corpus::directory("OPS_MCP", "mcp")];
    }
    let compiler = Compiler::installed()?;
    let details = if is_full { &[Detail::Short, Detail::Whole][..] } else { &[Detail::Short] };
    let (mut files, mut taken) = (Vec::new(), BTreeSet::new());
    for directory in folders {
        for file in corpus::below(&directory).map_err(|error| format!("{}: {error}", directory.display()))? {
            let name = file.strip_prefix(&directory).unwrap_or(&file).display().to_string();
            if only.is_empty() || only.iter().any(|only| name.starts_with(only.as_str())) {
                // Documents of two directories may have the same name.
                let plain = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
                let is_taken = !taken.insert(plain.clone());
                let plain = if is_taken { format!("{plain}_{}", files.len()) } else { plain };
                files.push((file, name, plain));
            }
        }
    }
    // The largest first, so that none is waited for alone.
    files.sort_by_key(|(file, ..)| std::cmp::Reverse(file.metadata().map_or(0, |data| data.len())));
    let folder = folder("typescript")?;
    let documents = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((file, name, plain)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let started = Instant::now();
            let Some(specs) = typescript::read(file, plain)? else { continue };
            let written = typescript::write(&folder, plain, &specs, Judge::Nobody, details);
            let written = written.map_err(|error| error.to_string())?;
            print(name, &written, started);
            let read = (plain.clone(), corpus::is_known(file), specs);
            documents.lock().map_err(|error| error.to_string())?.push((read, written));
        }
        Ok::<(), String>(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread has panicked".to_owned())?)
    })?;
    let (mut total, mut read) = (Written::default(), Vec::new());
    for (document, written) in documents.into_inner().map_err(|error| error.to_string())? {
        total.add(written);
        read.push(document);
    }
    let first = check(&compiler, &folder)?;
    let about = |complaint: &Complaint| typescript::operation(&total.places, complaint).map(str::to_owned);
    let (of_values, mut complaints): (Vec<_>, Vec<_>) =
        first.into_iter().partition(|complaint| about(complaint).is_some());
    // Where the first values that come to mind are none, others are made, and everything said of the operation again.
    let again: BTreeSet<String> = of_values.iter().filter_map(about).collect();
    let (mut unjudged, mut of_known) = (Vec::new(), 0);
    if !again.is_empty() {
        let folder = self::folder("typescript-again")?;
        let mut fitting = 0;
        for (name, is_known, specs) in &read {
            let specs: Vec<_> = specs.iter().filter(|spec| again.contains(&*spec.id)).cloned().collect();
            if !specs.is_empty() {
                let written = typescript::write(&folder, name, &specs, Judge::Validator, details);
                let written = written.map_err(|error| error.to_string())?;
                fitting += written.fitting;
                of_known += if *is_known { written.unjudged.len() } else { 0 };
                unjudged.extend(written.unjudged);
            }
        }
        println!(
            "again, with {fitting} values that are known to fit: {} operations; {} have no such input or output",
            again.len(),
            unjudged.len()
        );
        unjudged.iter().take(show).for_each(|id| println!("    {id}: no such value of one of its schemas"));
        complaints.extend(check(&compiler, &folder)?);
    }
    let documents = read.len();
    // The client that the documentation shows.
    let folder = self::folder("typescript-client")?;
    typescript::write_client(&folder)?;
    complaints.extend(check(&compiler, &folder)?);
    for complaint in complaints.iter().take(show) {
        println!("    {}:{}: {}", complaint.file, complaint.line, complaint.message);
    }
    total.short.sort();
    let is_short = total.short.iter().filter(|(size, _)| *size <= SHORT).count();
    let share = is_short as f64 / total.short.len().max(1) as f64;
    total.short.iter().rev().take(show).for_each(|(size, id)| println!("    {id}: {size} bytes"));
    print("total", &total, began);
    println!("{documents} documents, {} complaints, short {share:.4}", complaints.len());
    let is_judged = of_known <= UNJUDGED;
    if !is_judged {
        println!("{of_known} operations of known documents have no such input or output");
    }
    // A single document may require nothing, so that no value is wrong.
    let is_told = total.fitting > 0 && (total.wrong > 0 || !only.is_empty());
    Ok(complaints.is_empty() && share >= SHARE && total.operations > 0 && is_told && is_judged)
}

/// An empty folder for the compiler.
fn folder(name: &str) -> Result<PathBuf, String> {
    let folder = target(corpus::root()).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

fn check(compiler: &Compiler, folder: &Path) -> Result<Vec<Complaint>, String> {
    let started = Instant::now();
    let complaints = compiler.check(folder)?;
    println!("tsc: {} complaints, {:.1} s", complaints.len(), started.elapsed().as_secs_f64());
    Ok(complaints)
}

fn print(name: &str, written: &Written, started: Instant) {
    let Written { operations, short, whole, declarations, fitting, wrong, unjudged: _, places: _ } = written;
    let is_short = short.iter().filter(|(size, _)| *size <= SHORT).count();
    let bytes: usize = short.iter().map(|(size, _)| size).sum();
    println!(
        "{name}: {operations} operations, {is_short} short, on average {} bytes, whole {} bytes, declarations {} KB; \
         {fitting} values that fit, {wrong} that do not; {:.1} s",
        bytes / operations.max(&1),
        whole / operations.max(&1),
        declarations / 1024,
        started.elapsed().as_secs_f64()
    );
}
