//! `tests/corpus [DIR] [--only FILE] [--generate-only] [--server] [--debug]`: generates from every document of a
//! directory, checks that no operation or webhook is lost in silence, compiles what was generated, and says what it cost.
//!
//! A document is an API's or the list of an MCP server's tools. The directories are those of `OPS_SPECS` and `OPS_MCP`
//! by default, else our own documents. With `--only`, only the documents that the file names are compiled, and the smallest
//! others in place of those of `tests/known.txt` that are missing. With `--server`, the modules have the trait by which a
//! program serves the operations. With `--debug`, the generator is the one that the tests have built, so its times are those of
//! a debug build.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ops_runtime::openapi::{FileSource, ReadOptions, load};
use ops_tests::corpus;
use ops_tests::folder::{Folder, target};
use ops_tests::measure::{self, Measured};

/// So much of a compiler's output is shown.
const SHOWN: usize = 3_000;

struct Arguments {
    directories: Vec<PathBuf>,
    only: Option<PathBuf>,
    generate_only: bool,
    server: bool,
    debug: bool,
}

fn arguments() -> Result<Arguments, String> {
    let mut found =
        Arguments { directories: Vec::new(), only: None, generate_only: false, server: false, debug: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" => found.only = Some(arguments.next().ok_or("`--only` needs a file")?.into()),
            "--generate-only" => found.generate_only = true,
            "--server" => found.server = true,
            "--debug" => found.debug = true,
            _ if argument.starts_with('-') => {
                return Err("usage: tests/corpus [DIR] [--only FILE] [--generate-only] [--server] [--debug]".to_owned());
            }
            _ => found.directories.push(argument.into()),
        }
    }
    if found.directories.is_empty() {
        found.directories = vec![corpus::directory("OPS_SPECS", "openapi"), corpus::directory("OPS_MCP", "mcp")];
    }
    Ok(found)
}

/// What became of a document, or of all.
#[derive(Default)]
struct Row {
    generated: usize,
    compiled: usize,
    operations: usize,
    diagnostics: usize,
    lines: usize,
    generate: Measured,
    check: Measured,
}

impl Row {
    fn add(&mut self, row: &Self) {
        self.generated += row.generated;
        self.compiled += row.compiled;
        self.operations += row.operations;
        self.diagnostics += row.diagnostics;
        self.lines += row.lines;
        for (sum, one) in [(&mut self.generate, &row.generate), (&mut self.check, &row.check)] {
            sum.cpu += one.cpu;
            sum.megabytes = sum.megabytes.max(one.megabytes);
        }
    }

    fn print(&self, name: &str, outcome: &str) {
        let cost = |measured: &Measured, is_there: bool| match is_there {
            true => format!("{:8.2} {:7.0}", measured.cpu, measured.megabytes),
            false => format!("{:>8} {:>7}", "-", "-"),
        };
        println!(
            "{name:44} {outcome:10} {:6} {:6} {:8} {} {}",
            self.operations,
            self.diagnostics,
            self.lines,
            cost(&self.generate, self.generated > 0),
            cost(&self.check, self.compiled > 0)
        );
    }
}

fn main() -> ExitCode {
    let run = |arguments: Arguments| {
        let chosen = chosen(&arguments)?;
        let generator = generator(arguments.debug)?;
        let generator = Generator { program: generator, server: arguments.server };
        let good = arguments.directories.iter().map(|directory| run(directory, &chosen, &generator));
        good.collect::<Result<Vec<bool>, String>>().map(|good| !good.contains(&false))
    };
    match arguments().and_then(run) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// What generates, and whether it adds servers.
struct Generator {
    program: PathBuf,
    server: bool,
}

fn run(directory: &Path, chosen: &Chosen, generator: &Generator) -> Result<bool, String> {
    let files = files(directory)?;
    let work = Folder::new(corpus::root(), "corpus").map_err(|error| format!("the folder `corpus`: {error}"))?;
    if files.iter().any(|file| chosen.has(file)) {
        prepare(&work, generator.server)?;
    }
    println!("{}:", directory.display());
    println!(
        "{:44} {:10} {:>6} {:>6} {:>8} {:>8} {:>7} {:>8} {:>7}",
        "document", "outcome", "ops", "diag.", "lines", "gen. s", "MB", "check s", "MB"
    );
    let (mut total, mut count, mut to_compile) = (Row::default(), 0, 0);
    let (mut wrong, mut failed, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for file in &files {
        let name = name(directory, file);
        let document = corpus::try_parse(file);
        let is_document = match &document {
            Ok(value) => corpus::is_document(value) || corpus::tools(value).is_some(),
            // If the other library cannot read a file either, it is no document, unless it is known: that must be readable.
            Err(_) => corpus::is_known(file),
        };
        if !is_document {
            if matches!(chosen, Chosen::Named(_)) && chosen.has(file) {
                wrong.push(name.clone());
            }
            others.push(name);
            continue;
        }
        count += 1;
        to_compile += usize::from(chosen.has(file));
        let (row, problems) = one(file, &name, document, chosen.has(file), generator, &work);
        let outcome = match (problems.is_empty(), row.compiled) {
            (false, _) => "WRONG",
            (true, 0) => "generated",
            (true, _) => "compiled",
        };
        row.print(&name, outcome);
        problems.iter().for_each(|problem| println!("    {}", problem.replace('\n', "\n    ")));
        failed.extend((row.generated == 0).then(|| name.clone()));
        wrong.extend((!problems.is_empty()).then_some(name));
        total.add(&row);
    }
    if count == 0 {
        return Err(format!("no documents in {}", directory.display()));
    }
    total.print(&format!("total: {count} documents"), if wrong.is_empty() { "good" } else { "WRONG" });
    for (what, names) in [("no document of an API or of tools", &others), ("NOT GENERATED", &failed), ("WRONG", &wrong)]
    {
        if !names.is_empty() {
            println!("{what}: {}", names.join(", "));
        }
    }
    let (generated, compiled) = (total.generated, total.compiled);
    println!("{generated} of {count} generated, {compiled} of {to_compile} compiled, {} wrong", wrong.len());
    Ok(wrong.is_empty() && generated == count && compiled == to_compile)
}

/// What becomes of one document, and what is wrong with it.
fn one(
    file: &Path,
    name: &str,
    document: Result<serde_json::Value, String>,
    is_compiled: bool,
    generator: &Generator,
    work: &Path,
) -> (Row, Vec<String>) {
    let (mut row, mut problems) = (Row::default(), Vec::new());
    if let Some((source, told)) = generate(generator, file, work, &mut row, &mut problems) {
        match document {
            Ok(document) => {
                lost(&document, &source, &told, &mut row, &mut problems);
                problems.extend(webhooks(file, &document, &source).err());
            }
            Err(error) => problems.push(format!("its operations cannot be checked: {error}")),
        }
        if is_compiled {
            compile(name, &source, generator.server, work, &mut row, &mut problems);
        }
    }
    (row, problems)
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, String> {
    corpus::below(directory).map_err(|error| format!("{}: {error}", directory.display()))
}

/// The path below the directory.
fn name(directory: &Path, file: &Path) -> String {
    file.strip_prefix(directory).unwrap_or(file).display().to_string()
}

/// The documents to compile.
enum Chosen {
    None,
    All,
    Named(BTreeSet<PathBuf>),
}

impl Chosen {
    fn has(&self, file: &Path) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Named(names) => names.contains(file),
        }
    }
}

fn chosen(arguments: &Arguments) -> Result<Chosen, String> {
    let Some(only) = &arguments.only else {
        return Ok(if arguments.generate_only { Chosen::None } else { Chosen::All });
    };
    let failed = |error: String| format!("{}: {error}", only.display());
    let list = fs::read_to_string(only).map_err(|error| failed(error.to_string()))?;
    let files: Vec<Vec<PathBuf>> =
        arguments.directories.iter().map(|directory| files(directory)).collect::<Result<_, String>>()?;
    let named = corpus::choose(&corpus::entries(&list), &files.concat(), corpus::holds_document);
    let named = named.map_err(failed)?;
    if named.is_empty() {
        return Err(failed("it names no document that is there".to_owned()));
    }
    Ok(if arguments.generate_only { Chosen::None } else { Chosen::Named(named.into_iter().collect()) })
}

fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// Builds the program that generates, as users have it: optimised, and without anything else of the workspace. Or as the
/// tests build all.
fn generator(debug: bool) -> Result<PathBuf, String> {
    let (profile, of) = match debug {
        true => ("debug", ["--profile=dev", "--workspace", "--all-features"]),
        false => ("release", ["--release", "--package=ops-codegen", "--no-default-features"]),
    };
    let mut command = ops_tests::program::cargo();
    command.args(["build", "--quiet", "--locked", "--example", "generate"]).args(of);
    let status = command.current_dir(corpus::root()).status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() {
        Ok(target(corpus::root()).join(profile).join("examples/generate"))
    } else {
        Err("the generator does not build".to_owned())
    }
}

/// The source that a child process makes of a document, and what it had to say.
fn generate(
    generator: &Generator,
    file: &Path,
    work: &Path,
    row: &mut Row,
    problems: &mut Vec<String>,
) -> Option<(String, String)> {
    let out = work.join("generated");
    let _ = fs::remove_dir_all(&out);
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let server = generator.server.then_some(Path::new("--server"));
    let arguments: Vec<&Path> = [file.as_path(), &out].into_iter().chain(server).collect();
    row.generate = measure::run(&generator.program, &arguments, work, &work.join("generate.txt"));
    let stderr = std::mem::take(&mut row.generate.stderr);
    row.diagnostics =
        stderr.lines().filter(|line| ["note: ", "warning: "].iter().any(|word| line.starts_with(word))).count();
    let written = fs::read_dir(&out).ok().and_then(|mut files| files.next()?.ok());
    match written.and_then(|file| fs::read_to_string(file.path()).ok()).filter(|_| row.generate.success) {
        Some(source) => {
            row.generated = 1;
            row.lines = source.lines().count();
            Some((source, stderr))
        }
        None => {
            problems.push(format!("it was not generated: {}", tail(&stderr)));
            None
        }
    }
}

/// Counts the operations of a document, and names those that are neither in the source nor told to be left out.
fn lost(document: &serde_json::Value, source: &str, told: &str, row: &mut Row, problems: &mut Vec<String>) {
    if let Some(tools) = corpus::tools(document) {
        row.operations = tools.len();
        // Long calls are broken over lines.
        let source: String = source.chars().filter(|c| !c.is_whitespace()).collect();
        let is_printed = |tool: &&serde_json::Value| {
            let binding = format!("McpBinding::new({}", tool["name"]);
            source.contains(&binding.split_whitespace().collect::<String>())
        };
        let lost = tools.iter().filter(|tool| !is_printed(tool));
        problems.extend(lost.map(|tool| format!("the tool {} is not generated", tool["name"])));
        return;
    }
    let operations = corpus::operations(document);
    row.operations = operations.len();
    for lost in corpus::lost(&operations, source, told) {
        problems.push(format!("{} is neither generated nor told to be left out", lost.pointer));
    }
}

/// Compares the webhooks and callbacks of a module with those that the reader finds.
fn webhooks(file: &Path, document: &serde_json::Value, source: &str) -> Result<(), String> {
    let operations = corpus::operations(document);
    let calls_back =
        |place: &str| document.pointer(place).is_some_and(|operation| operation.get("callbacks").is_some());
    if document.get("webhooks").is_none() && !operations.iter().any(|operation| calls_back(&operation.place)) {
        return Ok(());
    }
    let read = load(&file.display().to_string(), &FileSource::new(), &ReadOptions::new());
    let (api, _) = read.map_err(|error| format!("its webhooks cannot be read: {error}"))?;
    match (source.matches("impl ops::Webhook for ").count(), api.webhooks.len()) {
        (there, read) if there == read => Ok(()),
        (there, read) => Err(format!("{there} of {read} webhooks are generated")),
    }
}

fn package(folder: &Path, library: &str, server: bool) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder.join("src")).map_err(failed)?;
    let runtime = corpus::root().join("ops-runtime");
    // Without the runtime there is nothing that serves.
    let features = if server { "\"macros\", \"registry\"" } else { "\"macros\"" };
    let manifest = format!(
        "[package]\nname = \"generated\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         ops-runtime = {{ path = {runtime:?}, default-features = false, features = [{features}] }}\n\n[workspace]\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest).map_err(failed)?;
    fs::copy(corpus::root().join("Cargo.lock"), folder.join("Cargo.lock")).map_err(failed)?;
    fs::write(folder.join("src/lib.rs"), library).map_err(failed)
}

fn check(folder: &Path, work: &Path) -> Measured {
    let target = work.join("target").display().to_string();
    let arguments = ["check", "--quiet", "--offline", "--target-dir", &target];
    measure::run(&cargo(), &arguments, folder, &work.join("check.txt"))
}

/// Builds the dependencies, which are not what is measured.
fn prepare(work: &Path, server: bool) -> Result<(), String> {
    package(&work.join("dependencies"), "//! Nothing.\n", server)?;
    let measured = check(&work.join("dependencies"), work);
    if measured.success { Ok(()) } else { Err(format!("the dependencies do not build: {}", tail(&measured.stderr))) }
}

fn compile(name: &str, source: &str, server: bool, work: &Path, row: &mut Row, problems: &mut Vec<String>) {
    let folder = work.join("package");
    let library = "//! A corpus.\n#![deny(warnings, missing_docs)]\n/// A document.\npub mod module;\n";
    let written = package(&folder, library, server)
        .and_then(|()| fs::write(folder.join("src/module.rs"), source).map_err(|error| error.to_string()));
    if let Err(error) = written {
        problems.push(error);
        return;
    }
    row.check = check(&folder, work);
    if row.check.success {
        row.compiled = 1;
    } else {
        problems.push(format!("what was generated for {name} does not compile:\n{}", tail(&row.check.stderr)));
    }
}

/// The beginning of what a program said.
fn tail(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}\n...", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}
