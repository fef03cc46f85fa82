//! `ops generate`

mod same;

use std::io::Write;
use std::path::{Path, PathBuf};

use ops_codegen::config::Config;
use ops_codegen::report::SHOWN;
use ops_codegen::{Module, is_generated, write_if_changed};
use ops_runtime::openapi::dir_namespaces;
use ops_runtime::spec::{Diagnostic, Severity};

use self::same::is_same;
use crate::arguments::GenerateArguments;
use crate::failure::Failure;
use crate::modules::{configured, modules, modules_of, unreadable};
use crate::progress::Progress;
use crate::report::Reporter;

pub(crate) fn run(arguments: &GenerateArguments) -> Result<(), Failure> {
    let config = configured(&arguments.spec)?;
    let output = output(arguments, config.as_ref())?;
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
    if output == Path::new("-") {
        print(&modules)?;
        return Failure::of_unreadable(unreadable.len(), None);
    }
    let targets = targets(&output, &modules)?;
    let failed = if arguments.check {
        let mut found = differences(&targets);
        if !is_file(&output) {
            found.extend(orphans(arguments, config.as_ref(), &output, &targets, &unreadable));
        }
        let hint = "run the command without `--check` to write it anew";
        (!found.is_empty()).then(|| format!("{}\n{hint}", cut(found).join("\n")))
    } else {
        write(&targets, arguments.force)?;
        None
    };
    eprint_line(&reporter.total(count(&modules)));
    Failure::of_unreadable(unreadable.len(), failed)
}

/// Where to write.
fn output(arguments: &GenerateArguments, config: Option<&Config>) -> Result<PathBuf, Failure> {
    let out = config.and_then(|config| Some(config.resolve(config.out.as_ref()?)));
    arguments.output.clone().or(out).ok_or_else(|| {
        let or = config.map(|config| format!(", or `out` below `[generate]` in `{}`", config.path.display()));
        Failure::Usage(format!("it is not said where to write: pass `--output`{}", or.unwrap_or_default()))
    })
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

/// Writes what has changed beyond its layout; nothing if this command did not write one of the files.
fn write(targets: &[Target<'_>], force: bool) -> Result<(), Failure> {
    // What a module includes is named after it.
    let is_foreign = |path: &Path| {
        let is_module = path.extension().is_some_and(|ending| ending == "rs");
        is_module && std::fs::read(path).is_ok_and(|bytes| !is_generated(&bytes) && !bytes.is_empty())
    };
    let foreign = targets.iter().filter(|(path, _)| !force && is_foreign(path));
    let foreign: Vec<String> = foreign.map(|(path, _)| format!("`{}`", path.display())).collect();
    if !foreign.is_empty() {
        let them = if foreign.len() == 1 { "it" } else { "them" };
        return Err(Failure::Failed(format!(
            "{} was not written by this command: name another place, or pass `--force` to overwrite {them}",
            cut(foreign).join(", ")
        )));
    }
    for (path, text) in targets {
        // One that `cargo fmt` has laid out stays as it is.
        if std::fs::read(path).is_ok_and(|found| is_same(&found, text)) {
            continue;
        }
        write_if_changed(path, text).map_err(|error| Failure::Failed(error.to_string()))?;
    }
    Ok(())
}

/// The files that differ from what would be written, beyond their layout.
fn differences(targets: &[Target<'_>]) -> Vec<String> {
    let told = |(path, text): &Target<'_>| match std::fs::read(path) {
        Ok(found) if is_same(&found, text) => None,
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

fn print(modules: &[Module]) -> Result<(), Failure> {
    let [module] = modules else {
        let message = format!("standard output takes one module, and there are {}: name a folder", modules.len());
        return Err(Failure::Usage(message));
    };
    std::io::stdout().write_all(module.generated.source.as_bytes()).map_err(Failure::output)
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
