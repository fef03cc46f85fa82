//! `ops generate`

use std::io::Write;
use std::path::{Path, PathBuf};

use ops_codegen::{Module, write_if_changed};
use ops_runtime::Severity;

use crate::arguments::GenerateArguments;
use crate::failure::Failure;
use crate::modules::modules;
use crate::progress::Progress;
use crate::report::Reporter;

/// So many warnings are shown of a module.
const SHOWN: usize = 20;

pub(crate) fn run(arguments: &GenerateArguments) -> Result<(), Failure> {
    let progress = Progress::start("generating");
    let (modules, mut reporter) = modules(&arguments.spec, &arguments.choice)?;
    drop(progress);
    for module in &modules {
        report(module, &mut reporter);
    }
    if arguments.output == Path::new("-") {
        return print(&modules);
    }
    let mut different = Vec::new();
    for (path, module) in targets(&arguments.output, &modules)? {
        let source = &module.generated.source;
        if arguments.check {
            let found = std::fs::read(&path);
            if !found.as_ref().is_ok_and(|found| found == source.as_bytes()) {
                different.push(format!(
                    "{} {}",
                    path.display(),
                    if found.is_ok() { "differs" } else { "is not there" }
                ));
            }
        } else {
            write_if_changed(&path, source).map_err(|error| Failure::Failed(error.to_string()))?;
        }
    }
    eprint_line(&reporter.total(count(&modules)));
    if different.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!("{}\nrun the command without `--check` to write it anew", different.join("\n"))))
}

fn count(modules: &[Module]) -> usize {
    modules.iter().map(|module| module.operations.len()).sum()
}

/// Where each module goes.
fn targets<'a>(output: &Path, modules: &'a [Module]) -> Result<Vec<(PathBuf, &'a Module)>, Failure> {
    let is_file = output.extension().is_some_and(|extension| extension == "rs") && !output.is_dir();
    match modules {
        [module] if is_file => Ok(vec![(output.to_owned(), module)]),
        _ if is_file => Err(Failure::Usage(format!(
            "`{}` is one file, and there are {} modules: name a folder",
            output.display(),
            modules.len()
        ))),
        _ => Ok(modules.iter().map(|module| (output.join(format!("{}.rs", module.namespace)), module)).collect()),
    }
}

fn print(modules: &[Module]) -> Result<(), Failure> {
    let [module] = modules else {
        let message = format!("standard output takes one module, and there are {}: name a folder", modules.len());
        return Err(Failure::Usage(message));
    };
    std::io::stdout().write_all(module.generated.source.as_bytes()).map_err(Failure::output)
}

/// The warnings, and a line for those that are too many.
fn report(module: &Module, reporter: &mut Reporter) {
    let mut hidden = 0;
    let mut shown = 0;
    for diagnostic in &module.generated.diagnostics {
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
    // Nothing is left to tell if standard error is closed.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
