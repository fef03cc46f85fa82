//! Inputs as somebody would write them: every type that a request is made of, by what the document requires and nothing
//! else, and every operation, by its method.
//!
//! Which properties are required is read from the raw document; what a user has to name, from the generated code by a
//! parser of Rust. The expressions are compiled and run against a mock, which records the inputs: each must hold what the
//! document requires, and nothing else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ops_runtime::spec::{OperationKind, OperationSpec};
use serde_json::Value;
use tokio::process::Command;

use super::compare::Difference;
use super::document::{Document as Raw, Operation as RawOperation};
use super::package::{Package, Program};
use super::{Fault, Source, by_request, expected, request};
use crate::corpus;
use crate::sample::{self, Extent};

mod code;
mod pairs;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod used;
mod write;

use code::{Code, Record, Shape, Type};
use pairs::{Pair, Pairs};
use write::{Writer, Written};

/// Runs the calls that are written out.
const PROGRAM: Program = Program { name: "hand", kit: KIT, main: MAIN, listed: "CASES" };

/// The package that runs what is written, and the program, but for the list of its packages.
const KIT: &str = include_str!("hand/kit.txt");
const MAIN: &str = include_str!("hand/program.txt");

/// How much of a document is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compiled {
    /// Everything that is generated.
    Whole,
    /// What a program names, by `only_used`: every other operation.
    OnlyUsed,
}

/// What was found in a document.
#[derive(Debug, Default)]
pub struct Examined {
    /// How many types with properties inputs reach.
    pub types: usize,
    /// How many of them are made of what is required and nothing else.
    pub right: usize,
    /// Those that were not found in the document by their properties, so that only their own fields say what is required.
    pub not_found: Vec<String>,
    /// How many operations were to be called.
    pub operations: usize,
    /// How many of them can be, by naming only what is required.
    pub written: usize,
    /// What was wrong.
    pub faults: Vec<Fault>,
}

/// A document, and what a program would write to use it.
#[derive(Debug)]
pub struct Document {
    source: Source,
    generated: String,
    code: Code,
    calls: Vec<Case>,
    values: Vec<Case>,
}

/// An expression, and what it must be in JSON.
#[derive(Debug)]
struct Case {
    /// The operation or the type.
    name: String,
    source: String,
    wanted: Value,
}

impl Document {
    /// Generates, and compares what callers have to name with the document; writes the calls, if that is asked for.
    ///
    /// # Errors
    /// If the document cannot be read, or its code not be understood.
    pub fn examine(source: &Source, with_calls: bool) -> Result<(Self, Examined), String> {
        let raw = corpus::try_parse(&source.path)?;
        let (specs, generated) = generate(source)?;
        let code = Code::read(&generated)?;
        let mut examined = Examined::default();
        let raw = Raw::new(&raw);
        let mut pairs = Pairs::new(&code);
        let writer = Writer { code: &code, module: "api" };
        let mut calls = Vec::new();
        for (operation, spec) in operations(&raw, specs) {
            let Some(own) = code.operations.iter().find(|own| own.id == *spec.id) else {
                examined.fault(&spec.id, Difference::new("method", "a method", "none"));
                continue;
            };
            pairs.add(&raw, &operation, &spec, &own.input);
            if !with_calls {
                continue;
            }
            examined.operations += 1;
            let sample = expected::sample(&raw, &operation, &spec, Extent::Required);
            match writer.call(own, &sample.input) {
                Ok(Written { source, json, .. }) => {
                    examined.written += 1;
                    let source = write::case(own, &source);
                    calls.push(Case { name: own.name.clone(), source, wanted: json });
                }
                // No value matches the schema of a document that is not known. The operation counts as not written.
                Err(_) if !sample.fits && !corpus::is_known(&source.path) => {}
                Err(error) => {
                    examined.fault(spec.name(), Difference::new("input", "what the document requires", error))
                }
            }
        }
        for name in code.sent() {
            if let Some(Shape::Record(record)) = code.types.get(name) {
                examined.record(name, record, pairs.found.get(name));
            }
        }
        let mut values = Vec::new();
        for (name, pair) in pairs.found.iter().filter(|_| with_calls) {
            let Some((schema, root)) = &pair.schema else { continue };
            let value = sample::accepted(schema, root, Extent::Required, &|_| true).unwrap_or_else(|value| value);
            // What cannot be written down was reported with the type, or with the operation that needs it.
            if let Ok(Written { source, json, .. }) = writer.value(&Type::Named(name.clone()), &value) {
                values.push(Case {
                    name: name.clone(),
                    source: format!("Case::Value(|| made(&{source}))"),
                    wanted: json,
                });
            }
        }
        Ok((Self { source: source.clone(), generated, code, calls, values }, examined))
    }

    /// The namespace, which names the package as well.
    pub fn namespace(&self) -> &str {
        &self.source.namespace
    }

    /// The document.
    pub fn path(&self) -> &Path {
        &self.source.path
    }

    fn cases(&self, compiled: Compiled) -> Vec<&Case> {
        match compiled {
            Compiled::Whole => self.calls.iter().chain(&self.values).collect(),
            Compiled::OnlyUsed => self.calls.iter().step_by(2).collect(),
        }
    }

    fn package(&self, compiled: Compiled) -> Package {
        let namespace = &self.source.namespace;
        let methods = &self.code.methods;
        let cases: String = self.cases(compiled).iter().map(|case| format!("    {},\n", case.source)).collect();
        // The package has a folder of its own.
        let path = self.source.path.canonicalize().unwrap_or_else(|_| self.source.path.clone());
        let (module, build_script) = match compiled {
            Compiled::Whole => (self.generated.clone(), None),
            Compiled::OnlyUsed => {
                let script = format!(
                    "//! Generates what the package names.\n\nfn main() -> Result<(), ops_codegen::Error> {{\n    \
                     ops_codegen::Builder::new().openapi({:?}).with_namespace({namespace:?}).only_used().build()\n}}\n",
                    path.display().to_string()
                );
                (format!("ops_runtime::include_operations!({namespace:?});\n"), Some(script))
            }
        };
        let source = format!(
            "#![allow(deprecated, unused, clippy::all)]\nuse std::collections::BTreeMap;\nuse api::{methods};\n\
             use hand_kit::{{Case, made}};\nuse ops_runtime::Body;\n\
             pub static CASES: (&str, &[Case]) = ({namespace:?}, &[\n{cases}]);\npub mod api {{\n{module}}}\n"
        );
        Package { name: namespace.clone(), source, build_script }
    }
}

/// Compiles what was written, runs it, and says of each document how many inputs were as they must be, of how many.
///
/// # Errors
/// If that goes wrong for all documents.
pub async fn run(documents: &[(Document, Compiled)]) -> Result<Vec<(usize, usize, Vec<Fault>)>, String> {
    let packages: Vec<Package> = documents.iter().map(|(document, compiled)| document.package(*compiled)).collect();
    let (program, failures) = PROGRAM.build(&packages).await?;
    let output = Command::new(&program).output().await.map_err(|error| format!("{}: {error}", program.display()))?;
    if !output.status.success() {
        return Err(format!("the program ended: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let mut found: BTreeMap<(String, usize), Value> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let (document, number, value) = serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
        found.insert((document, number), value);
    }
    let judged = documents.iter().map(|(document, compiled)| {
        let namespace = document.namespace();
        let cases = document.cases(*compiled);
        let mut faults = Vec::new();
        if let Some((_, why)) = failures.iter().find(|(name, _)| name == namespace) {
            faults.push(fault("all", Difference::new("code", "what compiles", why.clone())));
            return (0, cases.len(), faults);
        }
        for (number, case) in cases.iter().enumerate() {
            let value = found.get(&(namespace.to_owned(), number)).unwrap_or(&Value::Null);
            if !write::is_same(&case.wanted, value) {
                faults.push(fault(&case.name, Difference::new("recorded", case.wanted.to_string(), value.to_string())));
            }
        }
        (cases.len() - faults.len(), cases.len(), faults)
    });
    Ok(judged.collect())
}

fn fault(operation: &str, difference: Difference) -> Fault {
    Fault { operation: operation.to_owned(), way: "by hand".to_owned(), difference }
}

impl Examined {
    fn fault(&mut self, name: &str, difference: Difference) {
        self.faults.push(fault(name, difference));
    }

    /// Compares what a type asks for with its own fields, and with the document.
    fn record(&mut self, name: &str, record: &Record, pair: Option<&Pair>) {
        self.types += 1;
        let before = self.faults.len();
        let asked: Vec<&str> = record.new.iter().flatten().filter_map(|(field, _)| record.property(field)).collect();
        if asked.len() != record.new.as_ref().map_or(0, Vec::len) {
            self.fault(name, Difference::new("new", "properties", "other arguments"));
        }
        let fields: Vec<(&str, &Type)> =
            record.fields.iter().filter_map(|(field, type_)| Some((record.property(field)?, type_))).collect();
        let is_optional = |type_: &Type| matches!(type_, Type::Option(_));
        for (property, type_) in &fields {
            if !is_optional(type_) && !asked.contains(property) {
                self.fault(name, Difference::new(*property, "an argument of `new`, as it is no option", "none"));
            }
        }
        let in_order: Vec<&str> = fields.iter().map(|(property, _)| *property).filter(|p| asked.contains(p)).collect();
        if in_order != asked {
            self.fault(name, Difference::new("order", in_order.join(", "), asked.join(", ")));
        }
        if asked.is_empty() && !fields.is_empty() && !record.has_default {
            self.fault(name, Difference::new("default", "a default, as nothing is required", "none"));
        }
        if let Some(pair) = pair {
            let is_required = |property: &&str| pair.required.contains(*property);
            let required: Vec<&str> = fields.iter().map(|(property, _)| *property).filter(is_required).collect();
            if required != asked {
                self.fault(name, Difference::new("new", required.join(", "), asked.join(", ")));
            }
            let has_field = |property: &&str| fields.iter().any(|(own, _)| own == property);
            let described: Vec<&str> = pair.properties.iter().map(String::as_str).filter(has_field).collect();
            let own: Vec<&str> =
                fields.iter().map(|(property, _)| *property).filter(|own| described.contains(own)).collect();
            if described != own {
                self.fault(name, Difference::new("order", described.join(", "), own.join(", ")));
            }
        } else {
            self.not_found.push(name.to_owned());
        }
        self.right += usize::from(self.faults.len() == before);
    }
}

fn generate(source: &Source) -> Result<(Vec<OperationSpec>, String), String> {
    let module = ops_codegen::Builder::new().openapi(&source.path).with_namespace(&source.namespace).generate();
    let module = module.map_err(|error| error.to_string())?.pop().ok_or("no module")?;
    Ok((module.operations, module.generated.source))
}

/// The operations of the document, each with its spec; one that is called in two ways, twice.
fn operations(raw: &Raw<'_>, specs: Vec<OperationSpec>) -> Vec<(RawOperation, OperationSpec)> {
    let mut specs = by_request(specs);
    let mut found = Vec::new();
    for operation in raw.operations() {
        let queue = specs.entry(request(&operation.method, &operation.path)).or_default();
        let Some(first) = queue.pop_front() else { continue };
        let is_plain = first.kind != OperationKind::Subscription;
        let twin = queue.pop_front_if(|next| is_plain && next.kind == OperationKind::Subscription);
        found.extend([Some(first), twin].into_iter().flatten().map(|spec| (operation.clone(), spec)));
    }
    found
}

/// The documents to compile, by a list of names for [`corpus::choose`].
///
/// # Errors
/// If an entry is misspelt.
pub fn few<'s>(sources: &'s [Source], list: &str) -> Result<Vec<&'s Source>, String> {
    let files: Vec<PathBuf> = sources.iter().map(|source| source.path.clone()).collect();
    let chosen = corpus::choose(&corpus::entries(list), &files, |_| true)?;
    Ok(sources.iter().filter(|source| chosen.contains(&source.path)).collect())
}
