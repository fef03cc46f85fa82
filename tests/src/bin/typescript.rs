//! `tests/typescript [DIR..] [--full] [--only NAME] [--show N]`: writes every operation of every document and list of tools
//! of directories as TypeScript, and has the compiler judge it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use ops_tests::corpus;
use ops_tests::typescript::{self, Compiler, Complaint, Files, Judge, Written};

const USAGE: &str = "usage: tests/typescript [DIR..] [--full] [--only NAME] [--show N]";

/// A short description is of at most so many bytes, for this share of the operations.
const SHORT: usize = 2_400;
const SHARE: f64 = 0.95;

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
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| corpus::root().join("target"), PathBuf::from);
    let folder = target.join("typescript");
    let mut files = Files::new(&folder, is_full).map_err(|error| error.to_string())?;
    let (mut total, mut documents) = (Written::default(), BTreeMap::new());
    for directory in folders {
        for file in corpus::below(&directory).map_err(|error| format!("{}: {error}", directory.display()))? {
            let name = file.strip_prefix(&directory).unwrap_or(&file).display().to_string();
            let is_wanted = only.is_empty() || only.iter().any(|only| name.starts_with(only.as_str()));
            let started = Instant::now();
            let plain = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
            let Some(specs) = is_wanted.then(|| typescript::read(&file, &plain)).transpose()?.flatten() else { continue };
            let written = typescript::write(&plain, &specs, Judge::Nobody, &mut files);
            let written = written.map_err(|error| error.to_string())?;
            print(&name, &written, started);
            total.operations += written.operations;
            total.short.extend(written.short);
            total.whole += written.whole;
            total.declarations += written.declarations;
            total.fitting += written.fitting;
            total.wrong += written.wrong;
            documents.insert(plain, specs);
        }
    }
    files.flush().map_err(|error| error.to_string())?;
    let first = check(&compiler, &folder)?;
    let (of_values, mut complaints): (Vec<_>, Vec<_>) =
        first.into_iter().partition(|complaint| files.operation(complaint).is_some());
    // Where the first values that come to mind are none, others are made, and everything said of the operation again.
    let again: BTreeSet<String> =
        of_values.iter().filter_map(|complaint| files.operation(complaint)).map(str::to_owned).collect();
    if !again.is_empty() {
        let mut files = Files::new(&target.join("typescript-again"), is_full).map_err(|error| error.to_string())?;
        let mut fitting = 0;
        for (name, specs) in &documents {
            let specs: Vec<_> = specs.iter().filter(|spec| again.contains(&*spec.id)).cloned().collect();
            if !specs.is_empty() {
                let written = typescript::write(name, &specs, Judge::Validator, &mut files);
                fitting += written.map_err(|error| error.to_string())?.fitting;
            }
        }
        files.flush().map_err(|error| error.to_string())?;
        println!("again, with {fitting} values that are known to fit: {} operations", again.len());
        complaints.extend(check(&compiler, &target.join("typescript-again"))?);
    }
    let documents = documents.len();
    for complaint in complaints.iter().take(show) {
        println!("    {}:{}: {}", complaint.file, complaint.line, complaint.message);
    }
    total.short.sort();
    let is_short = total.short.iter().filter(|(size, _)| *size <= SHORT).count();
    let share = is_short as f64 / total.short.len().max(1) as f64;
    total.short.iter().rev().take(show).for_each(|(size, id)| println!("    {id}: {size} bytes"));
    print("total", &total, began);
    println!("{documents} documents, {} complaints, short {share:.4}", complaints.len());
    Ok(complaints.is_empty() && share >= SHARE && total.operations > 0 && total.fitting > 0)
}

fn check(compiler: &Compiler, folder: &Path) -> Result<Vec<Complaint>, String> {
    let started = Instant::now();
    let complaints = compiler.check(folder)?;
    println!("tsc: {} complaints, {:.1} s", complaints.len(), started.elapsed().as_secs_f64());
    Ok(complaints)
}

fn print(name: &str, written: &Written, started: Instant) {
    let Written { operations, short, whole, declarations, fitting, wrong } = written;
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
