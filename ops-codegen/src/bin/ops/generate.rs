//! `ops generate`: writes a Rust module for each document, or TypeScript declarations of all operations.

mod same;

use std::io::Write;
use std::path::{Path, PathBuf};

use ops_codegen::config::Config;
use ops_codegen::report::SHOWN;
use ops_codegen::{Module, is_generated, write_if_changed};
use ops_runtime::openapi::dir_namespaces;
use ops_runtime::spec::{Diagnostic, OperationSpec, Severity};
use ops_runtime::typescript::{Names, declarations};

use self::same::is_same;
use crate::arguments::{GenerateArguments, Language};
use crate::failure::Failure;
use crate::modules::{configured, modules, modules_of, unreadable};
use crate::progress::Progress;
use crate::report::{Reporter, print};

pub(crate) fn run(arguments: &GenerateArguments) -> Result<(), Failure> {
    let config = configured(&arguments.spec)?;
    let output = output(arguments, config.as_ref())?;
    if output == Path::new("-") && arguments.check {
        return Err(Failure::Usage("`--check` needs a file to compare with: name it by `--output`".to_owned()));
    }
    let progress = Progress::start("generating");
    let (modules, mut reporter) = match &config {
        Some(config) => modules_of(config, &arguments.choice)?,
        None => modules(&arguments.spec, &arguments.choice)?,
    };
    drop(progress);
    for module in &modules {
        report(module, &mut reporter);
    }
    let unreadable: Vec<Diagnostic> = unreadable(&modules).cloned().collect();
    reporter.print_list(&unreadable);
    let (language, declared) = (arguments.lang, declared(arguments.lang, &modules));
    if output == Path::new("-") {
        match &declared {
            Some(text) => print(text)?,
            None => print(module(&modules)?)?,
        }
        return Failure::of_unreadable(unreadable.len(), None);
    }
    // One file holds the operations of all documents: it would lose those of the documents that could not be read.
    let is_partial = declared.is_some() && !unreadable.is_empty();
    let targets = match &declared {
        Some(_) if is_partial => Vec::new(),
        Some(text) => vec![(output.clone(), text.as_str())],
        None => targets(&output, &modules)?,
    };
    let mut is_current = true;
    let failed = if arguments.check {
        let orphans = match language {
            Language::Rust if !is_file(&output) => orphans(arguments, config.as_ref(), &output, &targets, &unreadable),
            _ => Vec::new(),
        };
        check(&targets, language, orphans)
    } else {
        let written = write(&targets, arguments.force, language)?;
        cut(written.iter().map(|path| format!("wrote {}", path.display())).collect())
            .iter()
            .for_each(|line| eprint_line(line));
        is_current = written.is_empty();
        None
    };
    if is_partial {
        let what = if arguments.check { "compared" } else { "written" };
        eprint_line(&format!("{} was not {what}, as not all documents could be read", output.display()));
    }
    // Nothing is known about files that could not be read.
    if is_current && failed.is_none() && unreadable.is_empty() {
        eprint_line("all files are up to date");
    }
    eprint_line(&reporter.total(count(&modules)));
    Failure::of_unreadable(unreadable.len(), failed)
}

/// What is out of date, and how to write it; `None` if nothing is.
fn check(targets: &[Target<'_>], language: Language, orphans: Vec<String>) -> Option<String> {
    let mut found = differences(targets, language);
    let hint = match (found.is_empty(), foreign(targets).is_empty()) {
        (true, _) => "",
        (false, true) => "\nrun the command without `--check` to write it anew",
        (false, false) => {
            "\nrun the command without `--check`, and with `--force` to overwrite what it did not write, to write it anew"
        }
    };
    found.extend(orphans);
    (!found.is_empty()).then(|| format!("{}{hint}", cut(found).join("\n")))
}

/// Where to write.
fn output(arguments: &GenerateArguments, config: Option<&Config>) -> Result<PathBuf, Failure> {
    if arguments.lang == Language::Ts {
        let is_file = |output: &PathBuf| {
            output == Path::new("-") || output.extension().is_some_and(|ending| ending == "ts") && !output.is_dir()
        };
        let told = "declarations are one file: pass `--output` with a name that ends in `.d.ts`, or `-`";
        return arguments.output.clone().filter(is_file).ok_or_else(|| Failure::Usage(told.to_owned()));
    }
    let out = config.and_then(|config| Some(config.resolve(config.out.as_ref()?)));
    if let Some(output) = &arguments.output {
        is_for_rust(output)?;
    }
    arguments.output.clone().or(out).ok_or_else(|| {
        let or = config.map(|config| format!(", or `out` below `[generate]` in `{}`", config.path.display()));
        Failure::Usage(format!("it is not said where to write: pass `--output`{}", or.unwrap_or_default()))
    })
}

/// Refuses the name of a file that is none of Rust, which would become a folder.
fn is_for_rust(output: &Path) -> Result<(), Failure> {
    let is_folder = output.is_dir() || output.as_os_str().to_string_lossy().ends_with(std::path::is_separator);
    let hint = match output.extension().and_then(|ending| ending.to_str()) {
        None | Some("rs") => return Ok(()),
        Some(_) if is_folder => return Ok(()),
        Some("ts") => "did you mean `--lang ts`?",
        Some(_) => "end the name in `.rs` for a file, or in `/` for a folder",
    };
    Err(Failure::Usage(format!("`{}` is no name of a module of Rust: {hint}", output.display())))
}

/// What a file of declarations begins with, as modules do.
const HEAD: &str = "// @generated by ops-codegen; changes are lost when it is generated again.\n\n";

/// The declarations of all operations; `None` if modules are to be written.
fn declared(language: Language, modules: &[Module]) -> Option<String> {
    let specs: Vec<&OperationSpec> = modules.iter().flat_map(|module| &module.operations).collect();
    let names = Names::new(modules.iter().flat_map(|module| &module.ids));
    (language == Language::Ts).then(|| format!("{HEAD}{}", declarations(specs, &names)))
}

/// True if a file need not be written. What `cargo fmt` has laid out stays as it is.
fn is_current(found: &[u8], text: &str, language: Language) -> bool {
    match language {
        Language::Rust => is_same(found, text),
        Language::Ts => found == text.as_bytes(),
    }
}

fn count(modules: &[Module]) -> usize {
    modules.iter().map(|module| module.operations.len()).sum()
}

/// The first lines of a list, and the number of the rest.
fn cut(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > SHOWN {
        let more = lines.len() - SHOWN;
        lines.truncate(SHOWN);
        lines.push(format!("and {more} more"));
    }
    lines
}

/// A file to write, and its text.
type Target<'a> = (PathBuf, &'a str);

/// The file of each module, and those that the modules include.
fn targets<'a>(output: &Path, modules: &'a [Module]) -> Result<Vec<Target<'a>>, Failure> {
    if is_file(output) && modules.len() != 1 {
        return Err(Failure::Usage(format!(
            "`{}` is one file, and there are {} modules: name a folder",
            output.display(),
            modules.len()
        )));
    }
    let folder = if is_file(output) { output.parent().unwrap_or(Path::new("")) } else { output };
    let targets = modules.iter().flat_map(|module| {
        let path = if is_file(output) { output.to_owned() } else { folder.join(format!("{}.rs", module.namespace)) };
        let included = module.included().map(|(name, text)| (folder.join(name), text));
        std::iter::once((path, module.generated.source.as_str())).chain(included)
    });
    Ok(targets.collect())
}

fn is_file(output: &Path) -> bool {
    output.extension().is_some_and(|extension| extension == "rs") && !output.is_dir()
}

/// The files that this command did not write.
fn foreign(targets: &[Target<'_>]) -> Vec<String> {
    // What a module includes is named after it.
    let is_foreign = |path: &Path| {
        let is_module = path.extension().is_some_and(|ending| ending == "rs" || ending == "ts");
        is_module && std::fs::read(path).is_ok_and(|bytes| !is_generated(&bytes) && !bytes.is_empty())
    };
    let foreign = targets.iter().filter(|(path, _)| is_foreign(path));
    foreign.map(|(path, _)| format!("`{}`", path.display())).collect()
}

/// Writes what has changed beyond its layout, and returns which files; nothing if this command did not write one of them.
fn write<'t>(targets: &'t [Target<'_>], force: bool, language: Language) -> Result<Vec<&'t Path>, Failure> {
    let foreign = if force { Vec::new() } else { foreign(targets) };
    if !foreign.is_empty() {
        let them = if foreign.len() == 1 { "it" } else { "them" };
        return Err(Failure::Failed(format!(
            "{} was not written by this command: name another place, or pass `--force` to overwrite {them}",
            cut(foreign).join(", ")
        )));
    }
    let mut written = Vec::new();
    for (path, text) in targets {
        if std::fs::read(path).is_ok_and(|found| is_current(&found, text, language)) {
            continue;
        }
        write_if_changed(path, text).map_err(|error| Failure::Failed(error.to_string()))?;
        written.push(path.as_path());
    }
    Ok(written)
}

/// The files that differ from what would be written, beyond their layout.
fn differences(targets: &[Target<'_>], language: Language) -> Vec<String> {
    let told = |(path, text): &Target<'_>| match std::fs::read(path) {
        Ok(found) if is_current(&found, text, language) => None,
        Ok(_) => Some(format!("{} differs", path.display())),
        Err(_) => Some(format!("{} is not there", path.display())),
    };
    targets.iter().filter_map(told).collect()
}

/// The modules in the folder whose documents are gone, if the documents are those of a folder or of `ops.toml`.
fn orphans(
    arguments: &GenerateArguments,
    config: Option<&Config>,
    output: &Path,
    targets: &[Target<'_>],
    unreadable: &[Diagnostic],
) -> Vec<String> {
    let named = arguments.spec.iter().map(PathBuf::from);
    let configured = config.into_iter().flat_map(|config| config.documents.iter().map(|it| config.resolve(&it.path)));
    let folders: Vec<PathBuf> = named.chain(configured).filter(|path| path.is_dir()).collect();
    if folders.is_empty() && config.is_none() {
        return Vec::new();
    }
    // A document that can't be read is not gone.
    let documents = unreadable.iter().filter_map(|diagnostic| diagnostic.document.as_ref().map(PathBuf::from));
    let documents: Vec<PathBuf> = documents.collect();
    let names: Vec<String> =
        folders.iter().flat_map(|folder| dir_namespaces(folder, &documents, |_| false)).map(|file| file.name).collect();
    let is_orphan = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "rs")
            && targets.iter().all(|(target, _)| target != path)
            && path.file_stem().is_some_and(|stem| names.iter().all(|name| stem != name.as_str()))
            && std::fs::read(path).is_ok_and(|bytes| is_generated(&bytes))
    };
    let entries = std::fs::read_dir(output).into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_orphan).collect();
    found.sort();
    found.iter().map(|path| format!("{} is of a document that is gone: remove it", path.display())).collect()
}

/// The text of the one module that standard output takes.
fn module(modules: &[Module]) -> Result<&str, Failure> {
    let [module] = modules else {
        let message = format!("standard output takes one module, and there are {}: name a folder", modules.len());
        return Err(Failure::Usage(message));
    };
    if let Some((name, _)) = module.included() {
        // `only_used` of `ops.toml`.
        let message = format!(
            "the module includes `{name}`, a file beside it with the operations that your sources do not name, and standard \
             output takes one text: name a file or a folder by `--output`, or take `only_used` out of the configuration"
        );
        return Err(Failure::Usage(message));
    }
    Ok(&module.generated.source)
}

/// The warnings, and a line for those beyond the limit; errors are shown separately.
fn report(module: &Module, reporter: &mut Reporter) {
    let mut hidden = 0;
    let mut shown = 0;
    for diagnostic in module.generated.diagnostics.iter().filter(|d| d.severity < Severity::Error) {
        if diagnostic.severity >= Severity::Warning && shown < SHOWN {
            shown += 1;
            reporter.print(diagnostic);
        } else {
            hidden += usize::from(diagnostic.severity >= Severity::Warning);
            reporter.count(diagnostic);
        }
    }
    if hidden > 0 {
        eprint_line(&format!("{hidden} more warnings about `{}`: `ops inspect` shows them all", module.namespace));
    }
}

fn eprint_line(line: &str) {
    // If standard error is closed, there is no way to report it.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
