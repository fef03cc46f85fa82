//! Operations as TypeScript, judged by the compiler.
//!
//! For every operation there are two descriptions and a place in the declarations. They must compile. Values that are made
//! from the schemas must be values of the types, and values without something that is required must not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use ops_runtime::mcp;
use ops_runtime::openapi::{self, FileSource, ReadOptions};
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::typescript::{Detail, Names, declarations, describe};
use serde_json::Value;

use crate::corpus;
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

/// How values are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judge {
    /// The first that is made of a schema. Few schemas are such that it is none of their values.
    Nobody,
    /// One that another library says to fit, which takes long. A schema of which none can be made has no value.
    Validator,
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
    /// The operations whose input or output could not be checked, because there is no value for it.
    pub unjudged: Vec<String>,
    /// Where each operation is in the files.
    pub places: Places,
}

/// The first line of each operation in each file, and its id.
pub type Places = BTreeMap<String, Vec<(usize, String)>>;

/// The operation that a complaint is about; `None` if it is about declarations.
pub fn operation<'p>(places: &'p Places, complaint: &Complaint) -> Option<&'p str> {
    let operations = places.get(&complaint.file)?;
    let at = operations.partition_point(|(line, _)| *line <= complaint.line);
    Some(&operations.get(at.checked_sub(1)?)?.1)
}

impl Written {
    /// Adds what was written of another document.
    pub fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.short.extend(other.short);
        self.whole += other.whole;
        self.declarations += other.declarations;
        self.fitting += other.fitting;
        self.wrong += other.wrong;
        self.unjudged.extend(other.unjudged);
        self.places.extend(other.places);
    }
}

/// Reads a document or a list of tools; `None` if the file is neither.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &Path, namespace: &str) -> Result<Option<Vec<OperationSpec>>, String> {
    let location = path.to_str().ok_or("the path is no text")?;
    let value = match corpus::try_parse(path) {
        Ok(value) => value,
        // If the other library cannot read a file either, it is no document, unless it is known: that must be readable.
        Err(_) if !corpus::is_known(path) => return Ok(None),
        Err(error) => return Err(error),
    };
    let read = if mcp::is_tool_list(&value) {
        mcp::read(&value, &mcp::ReadOptions::new().with_namespace(namespace))
    } else if corpus::is_document(&value) {
        openapi::load(location, &FileSource::new(), &ReadOptions::new().with_namespace(namespace))
    } else {
        return Ok(None);
    };
    read.map(|(api, _)| Some(api.operations)).map_err(|error| format!("{location}: {error}"))
}

/// Writes what operations become, and values for them, to files of a folder for the compiler.
///
/// # Errors
/// If a file can't be written.
pub fn write(
    folder: &Path,
    namespace: &str,
    specs: &[OperationSpec],
    judge: Judge,
    details: &[Detail],
) -> std::io::Result<Written> {
    let (batch, batches, number, operations) = Default::default();
    let mut files = Files { folder, namespace, batch, batches, number, operations };
    let names = Names::new(specs.iter().map(|spec| &spec.id));
    let mut written = Written { operations: specs.len(), ..Written::default() };
    let text = declarations(specs, &names);
    written.declarations = text.len();
    std::fs::write(folder.join(format!("{namespace}.d.ts")), &text)?;
    let mut program = File::new(format!("import type {{ Operations }} from \"./{namespace}.d.ts\";\n{HELP}"));
    for spec in specs {
        let values = values(spec, judge);
        let name = names.name(&spec.id).expect("every operation has a name");
        let is_stream = spec.kind == OperationKind::Subscription;
        let entry = format!("Operations[{}]", Value::from(&*spec.id));
        let own = Types {
            input: format!("Given<{entry}[\"input\"]>"),
            output: format!("{entry}[\"{}\"]", if is_stream { "item" } else { "output" }),
        };
        program.begin(spec);
        program.text.push_str("{\n");
        written.fitting += assign(&mut program.text, &own, &values);
        program.text.push_str("}\n");
        written.wrong += values.wrong.len();
        if values.inputs.is_empty() || values.outputs.is_empty() {
            written.unjudged.push(spec.id.to_string());
        }
        for detail in details.iter().copied() {
            let text = describe(spec, detail, &names);
            match detail {
                Detail::Short => written.short.push((text.len(), spec.id.to_string())),
                _ => written.whole += text.len(),
            }
            let own = Types {
                input: format!("Given<Input<typeof {name}>>"),
                output: format!("Awaited<ReturnType<typeof {name}>>{}", if is_stream { "[number]" } else { "" }),
            };
            let mut body = format!("export {text}");
            written.fitting += assign(&mut body, &own, &values);
            files.description(spec, &body)?;
        }
    }
    files.program(format!("{namespace}.values.ts"), program)?;
    files.flush()?;
    written.places = files.operations;
    Ok(written)
}

/// Writes the client that the documentation shows, the declarations of an API, and calls that are right and wrong.
///
/// # Errors
/// If a file can't be read or written.
pub fn write_client(folder: &Path) -> Result<(), String> {
    let root = corpus::root();
    let specs = read(&root.join("tests/fixtures/typescript/shop.json"), "shop")?.ok_or("the fixture is no document")?;
    let names = Names::new(specs.iter().map(|spec| &spec.id));
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).map_err(|error| error.to_string());
    write("ops.d.ts", &declarations(&specs, &names))?;
    for (name, from) in [("client.ts", "ops-runtime/src/typescript"), ("calls.ts", "tests/fixtures/typescript")] {
        let text = std::fs::read_to_string(root.join(from).join(name)).map_err(|error| error.to_string())?;
        write(name, &text)?;
    }
    Ok(())
}

/// Types that each program uses: of an operation that takes nothing, the input is an empty object.
const HELP: &str = "\
type Input<F extends (input: never) => unknown> =
  Parameters<F> extends [] ? undefined : Exclude<Parameters<F>[0], undefined>;
type Given<T> = [T] extends [undefined] ? { [key: string]: never } : T;
";

/// The types of an operation, as expressions.
struct Types {
    input: String,
    output: String,
}

/// Declares a variable of a type for each value. Returns how many values are to fit.
fn assign(out: &mut String, types: &Types, values: &Values) -> usize {
    let mut each = |prefix: &str, type_: &str, values: &[Value], before: &str| {
        for (number, value) in values.iter().enumerate() {
            let _ = writeln!(out, "{before}const {prefix}{number}: {type_} = {};", expression(value));
        }
    };
    each("i", &types.input, &values.inputs, "");
    each("o", &types.output, &values.outputs, "");
    each("w", &types.input, &values.wrong, "// @ts-expect-error\n");
    values.inputs.len() + values.outputs.len()
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

/// Values for an operation.
fn values(spec: &OperationSpec, judge: Judge) -> Values {
    let of = |schema: &Value| {
        let validator = match judge {
            Judge::Nobody => None,
            Judge::Validator => jsonschema::draft202012::new(schema).ok(),
        };
        let fits = |value: &Value| match &validator {
            Some(validator) => validator.is_valid(value),
            None => judge == Judge::Nobody,
        };
        let extents = [Extent::Required, Extent::Everything].into_iter();
        let mut values: Vec<Value> =
            extents.filter_map(|extent| sample::accepted(schema, schema, extent, &fits).ok()).collect();
        values.dedup();
        values
    };
    let mut input = spec.input_schema().expect("the schema was read from JSON");
    // The parameters and bodies themselves are all sent.
    for name in ["properties", "$defs"].into_iter().filter(|_| spec.http().is_some()) {
        let schemas = input.get_mut(name).and_then(Value::as_object_mut).into_iter().flatten();
        schemas.for_each(|(_, schema)| take_out(schema, "readOnly"));
    }
    let mut output = spec.output_schema().expect("the schema was read from JSON");
    take_out(&mut output, "writeOnly");
    let (inputs, outputs) = (of(&input), of(&output));
    let wrong = inputs.first().map(|least| without_required(&input, least)).unwrap_or_default();
    Values { inputs, outputs, wrong }
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
        let is_plain =
            part["type"] == "object" && ["oneOf", "anyOf", "discriminator"].iter().all(|key| part.get(key).is_none());
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

/// A file under construction, which knows where each operation begins.
#[derive(Debug, Default)]
struct File {
    text: String,
    lines: usize,
    counted: usize,
    /// The first line of each operation, and its id.
    operations: Vec<(usize, String)>,
}

impl File {
    fn new(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    /// What is written from here on is about that operation.
    fn begin(&mut self, spec: &OperationSpec) {
        self.lines += self.text[self.counted..].matches('\n').count();
        self.counted = self.text.len();
        self.operations.push((self.lines + 1, spec.id.to_string()));
    }
}

/// The files of one document in the folder that the compiler reads.
struct Files<'f> {
    folder: &'f Path,
    namespace: &'f str,
    batch: File,
    batches: usize,
    number: usize,
    operations: Places,
}

impl Files<'_> {
    fn program(&mut self, name: String, file: File) -> std::io::Result<()> {
        // A module, so that its names are its own.
        std::fs::write(self.folder.join(&name), format!("{}export {{}};\n", file.text))?;
        self.operations.insert(name, file.operations);
        Ok(())
    }

    fn description(&mut self, spec: &OperationSpec, body: &str) -> std::io::Result<()> {
        if self.batch.text.is_empty() {
            self.batch = File::new(HELP.to_owned());
        }
        self.number += 1;
        self.batch.begin(spec);
        let _ = writeln!(self.batch.text, "namespace d{} {{\n{body}}}", self.number);
        if self.batch.text.len() > BATCH { self.flush() } else { Ok(()) }
    }

    /// Writes what is not written yet.
    fn flush(&mut self) -> std::io::Result<()> {
        self.batches += 1;
        let batch = std::mem::take(&mut self.batch);
        self.program(format!("{}.described{}.ts", self.namespace, self.batches), batch)
    }
}
