//! `ops inspect`: shows the operations of documents and servers, or one operation in full.

use std::io::Write;
use std::path::Path;

use ops_codegen::Module;
use ops_runtime::mcp::ReadOptions;
use ops_runtime::spec::{Diagnostic, OperationSpec, Severity};
use serde_json::{Value, json};

use crate::arguments::{Choice, InspectArguments};
use crate::failure::Failure;
use crate::modules::{Sources, modules, runtime, unreadable};
use crate::progress::Progress;
use crate::report::{Reporter, cut, line, print};
use crate::server::{OF_FILE, from_file, is_config};
use crate::summary;

mod example;
mod operation;
mod required;

/// How many characters of a cell are shown.
const WIDEST: usize = 200;

/// How many seconds a server has to list its tools.
const TIMEOUT: u64 = 60;

pub(crate) fn run(arguments: &InspectArguments) -> Result<(), Failure> {
    let progress = Progress::start("reading");
    let (spec, operation) = arguments.sources();
    let (modules, mut reporter, failed) = read(arguments, spec)?;
    drop(progress);
    let failed = (!failed.is_empty()).then(|| failed.join("\n"));
    if let Some(operation) = operation {
        // One of these may have it.
        let unreadable: Vec<Diagnostic> = unreadable(&modules).cloned().collect();
        reporter.print_list(&unreadable);
        let text = operation::show(&modules, operation, spec, arguments);
        // An operation that is not found may be one of a server that does not answer.
        let text =
            text.map_err(|error| error.after(failed)).map_err(|error| match is_left_out(arguments, operation, spec) {
                true => Failure::Usage(format!("`{operation}` is left out by `--include` or `--exclude`")),
                false => error,
            });
        let shown = text.and_then(|text| print(&text));
        return shown
            .map_err(|error| error.beside(unreadable.len()))
            .and(Failure::of_unreadable(unreadable.len(), None));
    }
    let text = if arguments.json { json(&modules) } else { table(&modules) };
    print(&text)?;
    if !arguments.json {
        for diagnostic in modules.iter().flat_map(|module| &module.generated.diagnostics) {
            reporter.print(diagnostic);
        }
        let operations: usize = modules.iter().map(|module| module.operations.len()).sum();
        // If standard error is closed, there is no way to report it.
        let _ = writeln!(std::io::stderr().lock(), "{}", reporter.total(operations));
    }
    Failure::of_unreadable(unreadable(&modules).count(), failed)
}

/// True if a document has the operation, and the patterns leave it out.
fn is_left_out(arguments: &InspectArguments, operation: &str, spec: Option<&str>) -> bool {
    let Some(spec) = spec.filter(|spec| matches!(is_config(spec), Ok(false))) else { return false };
    if arguments.choice.include.is_empty() && arguments.choice.exclude.is_empty() {
        return false;
    }
    let choice = Choice { namespace: arguments.choice.namespace.clone(), ..Choice::default() };
    modules(&[spec.to_owned()], &choice)
        .is_ok_and(|(modules, _)| operation::show(&modules, operation, Some(spec), arguments).is_ok())
}

impl InspectArguments {
    /// The document and the operation: if a server is named, the only name is that of an operation.
    fn sources(&self) -> (Option<&str>, Option<&str>) {
        let (spec, operation) = (self.spec.as_deref(), self.operation.as_deref());
        match (spec, operation) {
            (Some(spec), None) if self.server.is_given() && !Path::new(spec).exists() => (None, Some(spec)),
            // A snapshot beside its server shows what the server has.
            (Some(_), Some(operation)) if self.server.is_given() => (None, Some(operation)),
            _ => (spec, operation),
        }
    }
}

/// The modules, and what each server said that has not answered: one that fails does not hide the others.
fn read(arguments: &InspectArguments, spec: Option<&str>) -> Result<(Vec<Module>, Reporter, Vec<String>), Failure> {
    let InspectArguments { choice, server, credentials, .. } = arguments;
    let servers = match spec {
        Some(_) if server.is_given() => {
            let message = "name a document or a server, not both";
            return Err(Failure::Usage(message.to_owned()));
        }
        Some(file) if is_config(file)? => {
            credentials.refuse(OF_FILE)?;
            from_file(Path::new(file), server.server.as_deref())?
        }
        Some(spec) => {
            credentials.refuse("a document is read without them; `ops add` fetches one with them")?;
            server.refuse_name(spec)?;
            let (modules, reporter) = modules(&[spec.to_owned()], choice)?;
            return Ok((modules, reporter, Vec::new()));
        }
        None => server.servers(credentials)?,
    };
    if choice.namespace.is_some() && servers.len() > 1 {
        let message = "`--namespace` names the namespace of one server, and there are several: name one by `--server`";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut sources = Sources::default();
    let (runtime, mut failed) = (runtime()?, Vec::new());
    for server in &servers {
        let snapshot = match runtime.block_on(server.snapshot(TIMEOUT)) {
            Ok(snapshot) => snapshot,
            Err(Failure::Failed(message) | Failure::Usage(message)) => {
                failed.push(message);
                continue;
            }
            Err(other) => return Err(other),
        };
        let mut options = ReadOptions::new();
        options.namespace = choice.namespace.clone().or(server.namespace());
        let read = snapshot.read(&options).map_err(|error| Failure::Unreadable(vec![error]))?;
        sources.add(read, options.namespace.as_deref(), server.label().to_owned());
    }
    if failed.len() == servers.len() {
        return Err(Failure::Failed(failed.join("\n")));
    }
    let (modules, reporter) = sources.generate(choice)?;
    Ok((modules, reporter, failed))
}

fn table(modules: &[Module]) -> String {
    let head = ["ID", "KIND", "METHOD", "PATH", "INPUT", "OUTPUT"].map(str::to_owned);
    let rows: Vec<[String; 6]> =
        std::iter::once(head).chain(modules.iter().flat_map(|module| &module.operations).map(row)).collect();
    let mut widths = [0; 6];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn row(spec: &OperationSpec) -> [String; 6] {
    let (input, output) = (summary::short(&summary::input(spec)), summary::short(&summary::output(spec)));
    let (method, path) = match (spec.http(), spec.mcp()) {
        (Some(http), _) => (http.method.as_ref(), http.path.as_ref()),
        (None, Some(mcp)) => ("tool", mcp.tool.as_ref()),
        (None, None) => ("", ""),
    };
    [&spec.id, summary::kind(spec), method, path, &input, &output].map(|cell| cut(&line(cell), WIDEST))
}

fn json(modules: &[Module]) -> String {
    let operation = |spec: &OperationSpec| {
        json!({
            "id": spec.id,
            "kind": summary::kind(spec),
            "method": spec.http().map(|http| &http.method),
            "path": spec.http().map(|http| &http.path),
            "tool": spec.mcp().map(|mcp| &mcp.tool),
            "tags": spec.tags,
            "deprecated": spec.deprecated,
            "input": summary::input(spec),
            "output": summary::output(spec),
        })
    };
    let module = |module: &Module| {
        json!({
            "namespace": module.namespace,
            "lines": module.generated.source.lines().count(),
            "operations": module.operations.iter().map(operation).collect::<Vec<_>>(),
            "diagnostics": module.generated.diagnostics.iter().map(diagnostic).collect::<Vec<_>>(),
        })
    };
    let value = json!({ "modules": modules.iter().map(module).collect::<Vec<_>>() });
    crate::report::json(&format!("{value:#}\n")).into_owned()
}

fn diagnostic(diagnostic: &Diagnostic) -> Value {
    json!({
        "severity": match diagnostic.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            _ => "error",
        },
        "message": diagnostic.message,
        "pointer": diagnostic.pointer,
        "help": diagnostic.help,
        "document": diagnostic.document,
        "line": diagnostic.position.map(|(line, _)| line),
        "column": diagnostic.position.map(|(_, column)| column),
    })
}
