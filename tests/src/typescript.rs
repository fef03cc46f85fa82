//! Operations as TypeScript, judged by the compiler.
//!
//! For every operation there are two descriptions and a place in the declarations. They must compile. Values that are made
//! from the schemas must be values of the types, and values without something that is required must not.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use ops_runtime::openapi::{self, FileSource, ReadOptions};
use ops_runtime::spec::OperationSpec;
use ops_runtime::typescript::{Detail, Names, declarations, describe};
use ops_runtime::{binding::Binding, mcp};
use serde_json::Value;

use crate::corpus;
use crate::requests;
use crate::sample::{self, Extent};

mod compiler;

pub use compiler::{Compiler, Complaint};

/// A file has descriptions of about so many bytes, so that no file takes long.
const BATCH: usize = 1_000_000;

/// The values of an operation that are to fit its types, and those that are not to.
#[derive(Debug, Default)]
struct Values {
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    /// Inputs without one property that is required.
    wrong: Vec<Value>,
}

/// What was written of a document.
#[derive(Debug, Default)]
pub struct Written {
    /// How many operations there are.
    pub operations: usize,
    /// The sizes of the short descriptions, in bytes, with the ids.
    pub short: Vec<(usize, String)>,
    /// The bytes of all whole descriptions.
    pub whole: usize,
    /// The bytes of the declarations.
    pub declarations: usize,
    /// How many values are assigned to a type that they fit, and how many to one that they must not fit.
    pub fitting: usize,
    /// See `fitting`.
    pub wrong: usize,
}

/// Reads a document or a list of tools.
///
/// # Errors
/// If it is neither.
pub fn read(path: &Path, namespace: &str) -> Result<Vec<OperationSpec>, String> {
    let location = path.to_str().ok_or("the path is no text")?;
    let is_list = mcp::is_tool_list(&corpus::try_parse(path)?);
    let read = if is_list {
        mcp::load(location, &FileSource::new(), &mcp::ReadOptions::new().with_namespace(namespace))
    } else {
        openapi::load(location, &FileSource::new(), &ReadOptions::new().with_namespace(namespace))
    };
    read.map(|(api, _)| api.operations).map_err(|error| error.to_string())
}

/// Writes what a document becomes, and the values for it, to files for the compiler.
///
/// # Errors
/// If a file can't be written.
pub fn write(path: &Path, namespace: &str, specs: &[OperationSpec], files: &mut Files) -> std::io::Result<Written> {
    let names = Names::new(specs.iter().map(|spec| &spec.id));
    let mut written = Written { operations: specs.len(), ..Written::default() };
    let text = declarations(specs, &names);
    written.declarations = text.len();
    files.declarations(namespace, &text)?;
    let values = values(path, namespace, specs);
    let mut program = format!("import type {{ Operations }} from \"./{namespace}.d.ts\";\n");
    for (number, (spec, values)) in specs.iter().zip(&values).enumerate() {
        let id = Value::from(&*spec.id);
        let member = if spec.kind == ops_runtime::spec::OperationKind::Subscription { "item" } else { "output" };
        written.fitting += values.inputs.len() + values.outputs.len();
        written.wrong += values.wrong.len();
        assign(&mut program, &format!("i{number}"), &format!("Operations[{id}][\"input\"]"), &values.inputs, false);
        assign(&mut program, &format!("o{number}"), &format!("Operations[{id}][\"{member}\"]"), &values.outputs, false);
        assign(&mut program, &format!("w{number}"), &format!("Operations[{id}][\"input\"]"), &values.wrong, true);
    }
    files.program(namespace, &program)?;
    for (spec, values) in specs.iter().zip(&values) {
        let name = names.name(&spec.id).expect("every operation has a name");
        for detail in [Detail::Short, Detail::Whole] {
            let text = describe(spec, detail, &names);
            match detail {
                Detail::Short => written.short.push((text.len(), spec.id.to_string())),
                _ => written.whole += text.len(),
            }
            let own = format!("typeof {name}");
            let mut body = format!("  export {text}");
            let input = format!("Exclude<Parameters<{own}>[0], undefined>");
            assign(&mut body, "i", &input, &values.inputs, false);
            assign(&mut body, "w", &input, &values.wrong, true);
            let items = if spec.kind == ops_runtime::spec::OperationKind::Subscription { "[number]" } else { "" };
            assign(&mut body, "o", &format!("Awaited<ReturnType<{own}>>{items}"), &values.outputs, false);
            files.description(&spec.id, detail == Detail::Whole, &body)?;
            if detail == Detail::Short { written.fitting += values.inputs.len() + values.outputs.len() }
        }
    }
    Ok(written)
}

/// Declares a variable of a type for each value.
fn assign(out: &mut String, prefix: &str, type_: &str, values: &[Value], is_wrong: bool) {
    for (number, value) in values.iter().enumerate() {
        if is_wrong {
            out.push_str("// @ts-expect-error\n");
        }
        let _ = writeln!(out, "export const {prefix}_{number}: {type_} = {};", expression(value));
    }
}

/// A value as an expression: JSON, but for the one name that means something else in a literal.
fn expression(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(expression).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let each = members.iter().map(|(name, value)| match name.as_str() {
                "__proto__" => format!("[\"__proto__\"]:{}", expression(value)),
                name => format!("{}:{}", Value::from(name), expression(value)),
            });
            format!("{{{}}}", each.collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

/// The values for each operation.
fn values(path: &Path, namespace: &str, specs: &[OperationSpec]) -> Vec<Values> {
    let made = requests::inputs(path, namespace).map(|(_, made)| made).unwrap_or_default();
    let of = |spec: &OperationSpec| {
        let mut values = Values::default();
        let schema = spec.input_schema().expect("the schema was read from JSON");
        values.inputs = made.iter().filter(|made| made.fits && made.spec.id == spec.id).map(|made| made.input.clone()).collect();
        if !matches!(spec.binding, Binding::Http(_)) {
            values.inputs = [Extent::Required, Extent::Everything].into_iter().filter_map(|extent| fitting(&schema, extent)).collect();
        }
        if let Some(least) = values.inputs.first() {
            values.wrong = without_required(&schema, least);
        }
        let mut schema = spec.output_schema().expect("the schema was read from JSON");
        take_out(&mut schema, "writeOnly");
        values.outputs = [Extent::Required, Extent::Everything].into_iter().filter_map(|extent| fitting(&schema, extent)).collect();
        values.outputs.dedup();
        values.inputs.dedup();
        values
    };
    specs.iter().map(of).collect()
}

/// A value that another library says to fit.
fn fitting(schema: &Value, extent: Extent) -> Option<Value> {
    let validator = jsonschema::draft202012::new(schema).ok()?;
    sample::accepted(schema, schema, extent, &|value| validator.is_valid(value)).ok()
}

/// The inputs that lack one of the properties that the schema requires, at the top or one level below.
fn without_required(schema: &Value, input: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    let merged = sample::merged(schema, schema, 0);
    let required = |schema: &Value| -> BTreeSet<String> {
        let names = schema["required"].as_array().into_iter().flatten();
        names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    for name in required(&merged) {
        let mut less = input.clone();
        if less.as_object_mut().and_then(|less| less.remove(&name)).is_some() {
            found.push(less);
        }
        let part = sample::merged(&merged["properties"][&name], schema, 0);
        let is_plain = part["type"] == "object" && ["oneOf", "anyOf", "discriminator"].iter().all(|key| part.get(key).is_none());
        for inner in required(&part).into_iter().filter(|_| is_plain) {
            if part["properties"][&inner]["readOnly"] == true {
                continue;
            }
            let mut less = input.clone();
            if less.get_mut(&name).and_then(Value::as_object_mut).and_then(|part| part.remove(&inner)).is_some() {
                found.push(less);
            }
        }
    }
    found
}

/// Removes properties that only the other side sends.
fn take_out(schema: &mut Value, keyword: &str) {
    match schema {
        Value::Object(node) => {
            let mut gone = Vec::new();
            if let Some(Value::Object(properties)) = node.get_mut("properties") {
                properties.retain(|name, schema| {
                    let is_kept = schema.get(keyword) != Some(&Value::Bool(true));
                    gone.extend((!is_kept).then(|| name.clone()));
                    is_kept
                });
            }
            if let Some(Value::Array(required)) = node.get_mut("required") {
                required.retain(|name| !gone.iter().any(|gone| name == gone.as_str()));
            }
            node.values_mut().for_each(|value| take_out(value, keyword));
        }
        Value::Array(parts) => parts.iter_mut().for_each(|part| take_out(part, keyword)),
        _ => {}
    }
}

/// The files that the compiler reads.
pub struct Files {
    folder: std::path::PathBuf,
    batches: usize,
    batch: String,
    number: usize,
    /// The id of each description.
    pub ids: Vec<String>,
    /// True if whole descriptions are compiled, too.
    pub is_whole: bool,
}

impl Files {
    /// Files in a folder, from which all others are removed.
    ///
    /// # Errors
    /// If the folder can't be made.
    pub fn new(folder: &Path, is_whole: bool) -> std::io::Result<Self> {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder)?;
        let (batches, batch, number, ids) = Default::default();
        Ok(Self { folder: folder.to_owned(), batches, batch, number, ids, is_whole })
    }

    fn declarations(&self, namespace: &str, text: &str) -> std::io::Result<()> {
        std::fs::write(self.folder.join(format!("{namespace}.d.ts")), text)
    }

    fn program(&self, namespace: &str, text: &str) -> std::io::Result<()> {
        std::fs::write(self.folder.join(format!("{namespace}.values.ts")), text)
    }

    fn description(&mut self, id: &str, is_whole: bool, text: &str) -> std::io::Result<()> {
        if is_whole && !self.is_whole {
            return Ok(());
        }
        let kind = if is_whole { "whole" } else { "short" };
        let _ = writeln!(self.batch, "namespace {kind}_{} {{ // {}\n{text}}}", self.number, id.replace(|c: char| c.is_control(), " "));
        self.number += 1;
        self.ids.push(id.to_owned());
        if self.batch.len() > BATCH { self.flush() } else { Ok(()) }
    }

    /// Writes what is not written yet.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn flush(&mut self) -> std::io::Result<()> {
        self.batches += 1;
        let text = std::mem::take(&mut self.batch);
        std::fs::write(self.folder.join(format!("descriptions{}.ts", self.batches)), format!("export {{}};\n{text}"))
    }
}
