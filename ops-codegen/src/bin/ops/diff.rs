//! `ops diff`: compares two versions of a document, and lists the changes that break callers.

mod uses;

use std::collections::BTreeMap;
use std::io::Write;

use ops_codegen::Module;
use ops_codegen::described::{Described, Reordered, describe, reordered};
use ops_runtime::spec::{Api, Severity, pointer};
use ops_runtime::{mcp, openapi};
use serde_json::{Value, json};

use self::uses::{Sources, Use};
use crate::arguments::{Choice, DiffArguments};
use crate::failure::Failure;
use crate::modules::{modules, shown};
use crate::progress::Progress;
use crate::report::{clean, line, print};
use crate::stream::is_stream;

/// How many operations a line names.
const SHOWN: usize = 3;

/// A change, of a document or of a list of tools.
pub(crate) struct Row {
    /// The change as a line.
    pub(crate) text: String,
    pub(crate) breaks: bool,
    /// True if code that names what changed may have to change, even if nothing breaks.
    touches_names: bool,
    json: Value,
    namespace: String,
    operations: Vec<String>,
    /// The place in the old module, as [`Described`] names places; relative to the operations if it is in them.
    pointer: String,
    /// The type whose constructor changed, if the change is one of a constructor.
    constructs: Option<String>,
    uses: Vec<Use>,
}

pub(crate) fn run(arguments: &DiffArguments) -> Result<(), Failure> {
    if arguments.old == arguments.new && is_stream(&arguments.old) {
        let message = "one stream cannot be both versions: give one of them as a file".to_owned();
        return Err(Failure::Usage(message));
    }
    let progress = Progress::start("comparing");
    let (old, new) = (read(&arguments.old, arguments)?, read(&arguments.new, arguments)?);
    check(&old, &new, arguments)?;
    let mut rows = compare(&old, &new);
    if let Some(folder) = &arguments.used_in {
        let sources = Sources::read(folder)?;
        let described: BTreeMap<&str, Described> =
            old.iter().map(|module| (module.namespace.as_str(), describe(&api(module)))).collect();
        for row in rows.iter_mut().filter(|row| row.touches_names) {
            if let Some(described) = described.get(row.namespace.as_str()) {
                row.uses = match &row.constructs {
                    Some(type_) => sources.of_constructor(&row.namespace, &row.operations, type_, described),
                    None if !row.breaks && row.pointer.starts_with("/errors/") => {
                        sources.of_errors(&row.namespace, &row.operations, described)
                    }
                    None => sources.uses(&row.namespace, &row.operations, &row.pointer, described),
                };
            }
        }
    }
    drop(progress);
    print(&text(&rows, arguments.json)).map_err(Failure::trouble)?;
    let (all, breaking) = (rows.len(), rows.iter().filter(|row| row.breaks).count());
    let count = |count: usize| if count == 1 { "1 change".to_owned() } else { format!("{count} changes") };
    match (all, breaking) {
        (0, _) => tell("no operation changed"),
        (all, 0) => tell(&format!("{}, none of which breaks callers", count(all))),
        (all, 1) => return Err(Failure::Failed(format!("{}, of which 1 breaks callers", count(all)))),
        (all, breaking) => return Err(Failure::Failed(format!("{}, of which {breaking} break callers", count(all)))),
    }
    Ok(())
}

/// Reads a version; a document that can't be read is a failure of its own status, as that of `diff`.
fn read(spec: &str, arguments: &DiffArguments) -> Result<Vec<Module>, Failure> {
    let choice = Choice { namespace: arguments.namespace.clone(), ..Choice::default() };
    let (modules, _) = modules(&[spec.to_owned()], &choice).map_err(Failure::trouble)?;
    let unreadable = modules.iter().flat_map(|module| &module.generated.diagnostics);
    let unreadable: Vec<_> = unreadable.filter(|d| d.severity == Severity::Error).cloned().collect();
    if unreadable.is_empty() { Ok(modules) } else { Err(Failure::Trouble(unreadable)) }
}

/// Refuses versions of which one describes an HTTP API, and the other an MCP server: no change leads from one to the other.
fn check(old: &[Module], new: &[Module], arguments: &DiffArguments) -> Result<(), Failure> {
    let others = |module: &Module| match new {
        [only] if old.len() == 1 => Some(only),
        new => new.iter().find(|other| other.namespace == module.namespace),
    };
    // `None` for a module with operations of both, as a folder of specs may have them, and for one without operations.
    let are_tools = |module: &Module| {
        let mut are = module.operations.iter().map(|spec| spec.mcp().is_some());
        let first = are.next()?;
        are.all(|other| other == first).then_some(first)
    };
    let differ = |&module: &&Module| {
        let other = others(module).and_then(are_tools);
        are_tools(module).zip(other).is_some_and(|(old, new)| old != new)
    };
    match old.iter().find(differ) {
        Some(module) => {
            let (is, has) = match are_tools(module) == Some(true) {
                true => ("tools of an MCP server", "operations of an HTTP API"),
                false => ("operations of an HTTP API", "tools of an MCP server"),
            };
            let (old, new) = (shown(&arguments.old), shown(&arguments.new));
            let message = format!("`{old}` describes {is}, and `{new}` {has}, so they cannot be compared");
            Err(Failure::Usage(format!("{message}: name two versions of one document")))
        }
        None => Ok(()),
    }
}

/// The changes from the modules of one version to those of another.
fn compare(old: &[Module], new: &[Module]) -> Vec<Row> {
    let none = Api::default();
    let mut rows = Vec::new();
    if let ([old], [new]) = (old, new) {
        // Two versions of one document may have different names.
        rows_of(&old.namespace, &api(old), &api(new), &mut rows);
        return rows;
    }
    for module in old {
        let other = new.iter().find(|other| other.namespace == module.namespace);
        rows_of(&module.namespace, &api(module), &other.map_or(none.clone(), api), &mut rows);
    }
    for module in new.iter().filter(|module| !old.iter().any(|other| other.namespace == module.namespace)) {
        rows_of(&module.namespace, &none, &api(module), &mut rows);
    }
    rows
}

fn api(module: &Module) -> Api {
    let first = module.operations.iter().chain(&module.webhooks).next();
    let definitions = first.map(|spec| spec.definitions.clone()).unwrap_or_default();
    Api::new(definitions, module.operations.clone()).with_webhooks(module.webhooks.clone())
}

/// The changes from one API to another.
pub(crate) fn rows_of(namespace: &str, old: &Api, new: &Api, rows: &mut Vec<Row>) {
    let ((old_tools, old_others), (new_tools, new_others)) = (by_binding(old), by_binding(new));
    rows.extend(mcp::changes(&old_tools, &new_tools).into_iter().map(|change| {
        let operations = vec![format!("{namespace}.{}", change.tool)];
        let json = json!({
            "breaks": change.breaks,
            "operations": operations,
            "pointer": change.pointer,
            "message": change.message,
        });
        let pointer = change.pointer.replacen("/inputSchema", "/input", 1).replacen("/outputSchema", "/output", 1);
        row(namespace, change.to_string(), change.breaks, operations, pointer, json)
    }));
    rows.extend(openapi::changes(&old_others, &new_others).into_iter().map(|change| {
        let json = json!({
            "breaks": change.breaks,
            "part": change.part.as_str(),
            "operations": change.operations,
            "more": change.more,
            "subject": change.subject,
            "pointer": change.pointer,
            "message": change.message,
        });
        let (text, touches_names) = (change.to_string(), change.touches_names());
        let row = row(namespace, text, change.breaks, change.operations, change.pointer, json);
        Row { touches_names, ..row }
    }));
    rows.extend(reordered(old, new).into_iter().map(|change| constructor(namespace, change)));
}

/// Splits an API into the tools of an MCP server, and all other operations with the webhooks: a folder of specs may have both.
fn by_binding(api: &Api) -> (Api, Api) {
    let (tools, others) = api.operations.iter().cloned().partition(|spec| spec.mcp().is_some());
    let others = Api::new(api.definitions.clone(), others).with_webhooks(api.webhooks.clone());
    (Api::new(api.definitions.clone(), tools), others)
}

/// The change of a constructor that takes its values in another order.
fn constructor(namespace: &str, change: Reordered) -> Row {
    let Reordered { type_, pointer, operations, order } = change;
    let quoted = |names: &[String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let (shown, more) = operations.split_at(operations.len().min(SHOWN));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    let message = format!("`{type_}::new` takes its values in another order now: {}", quoted(&order));
    let text = format!("breaking: request of {}{more}: {message}", quoted(shown));
    let json = json!({
        "breaks": true,
        "part": openapi::Part::Request.as_str(),
        "operations": operations,
        "more": false,
        "subject": format!("`{type_}`"),
        "pointer": pointer,
        "message": message,
    });
    Row { constructs: Some(type_), ..row(namespace, text, true, operations, pointer, json) }
}

fn row(namespace: &str, text: String, breaks: bool, operations: Vec<String>, pointer: String, json: Value) -> Row {
    let text = line(&text);
    let namespace = namespace.to_owned();
    let (touches_names, constructs, uses) = (breaks, None, Vec::new());
    Row { text, breaks, touches_names, json, namespace, operations, pointer, constructs, uses }
}

/// The changes as they are printed.
fn text(rows: &[Row], as_json: bool) -> String {
    if as_json {
        let changes = rows.iter().map(|row| {
            let mut json = row.json.clone();
            if let Some(json) = json.as_object_mut().filter(|_| !row.uses.is_empty()) {
                let uses = row.uses.iter().map(|at| json!({ "file": at.file, "line": at.line, "name": at.name }));
                json.insert("uses".to_owned(), uses.collect());
            }
            json
        });
        let breaking = rows.iter().filter(|row| row.breaks).count();
        let value = json!({ "breaking": breaking, "changes": changes.collect::<Vec<_>>() });
        crate::report::json(&format!("{value:#}\n")).into_owned()
    } else {
        let line_of = |row: &Row| {
            let uses = row.uses.iter().map(|at| format!("  {}:{}: {}\n", line(&at.file), at.line, line(&at.name)));
            format!("{}\n{}", row.text, uses.collect::<String>())
        };
        rows.iter().map(line_of).collect()
    }
}

fn tell(text: &str) {
    // If standard error is closed, there is no way to report it.
    let _ = writeln!(std::io::stderr().lock(), "{}", clean(text));
}

/// The tokens of a pointer.
fn tokens(text: &str) -> Vec<String> {
    pointer::tokens(text).map(std::borrow::Cow::into_owned).collect()
}
