//! Types of the same definitions, by two generators: some of each document of a fixed list, of the smallest documents of
//! another directory, or of our own documents.
//!
//! A document that gives nothing to compare is not passed over: the test is told, and says whether that is expected.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ops_codegen::Generator;
use ops_runtime::openapi::FileSource;
use ops_runtime::openapi::{ReadOptions, load};
use ops_runtime::spec::{Api, Definition, Definitions, OperationSpec};
use serde_json::{Value, json};
use typify::{TypeSpace, TypeSpaceSettings};

/// Documents of the corpus whose definitions differ in kind.
const DOCUMENTS: &[&str] = &[
    "e2b-envd.yaml",
    "fastapi-full-stack-template.json",
    "museum.yaml",
    "oas3gen-pet-benchmark.json",
    "ollama.yaml",
    "oxide-buildomat.json",
    "oxide-keeper.json",
    "oxide-propolis.json",
    "petstore.yaml",
    "readme-train-travel.json",
    "realworld-conduit.yaml",
];

/// So many definitions of a document are compared.
const EACH: usize = 8;

/// A definition that needs more others than this is left out.
const LARGEST: usize = 12;

/// What the other generator takes no notice of, or another meaning from.
const UNKNOWN: &[&str] = &["prefixItems", "patternProperties", "unevaluatedProperties", "discriminator", "not"];

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    println!("cargo::rerun-if-env-changed=OPS_SPECS");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let (mut modules, mut calls, mut schemas) = (String::new(), String::new(), Vec::new());
    let mut nothing = Vec::new();
    for (at, file) in documents()?.iter().enumerate() {
        println!("cargo::rerun-if-changed={}", file.display());
        let document = file.file_name().unwrap_or_default().to_string_lossy();
        let (api, _) = match load(&file.display().to_string(), &FileSource::new(), &ReadOptions::new()) {
            Ok(read) => read,
            Err(error) => {
                nothing.push((document.into_owned(), error.to_string()));
                continue;
            }
        };
        let all: BTreeMap<String, Value> = api
            .definitions
            .as_slice()
            .iter()
            .map(|definition| Ok((definition.name.to_string(), serde_json::to_value(&definition.schema)?)))
            .collect::<Result<_, Error>>()?;
        let (names, needed) = chosen(&all);
        if names.is_empty() {
            let why = if all.is_empty() { "no definitions" } else { "no definitions that the other generator takes" };
            nothing.push((document.into_owned(), why.to_owned()));
            continue;
        }
        let (source, types) = theirs(&names, &needed, &all).ok_or("what it took alone it does not take together")?;
        std::fs::write(out.join(format!("theirs_{at}.rs")), source)?;
        std::fs::write(out.join(format!("ours_{at}.rs")), ours(&names, &needed, &all)?)?;
        for side in ["ours", "theirs"] {
            let file = out.join(format!("{side}_{at}.rs"));
            writeln!(modules, "#[allow(warnings, clippy::all)]\nmod {side}_{at} {{ include!({file:?}); }}")?;
        }
        for (number, (name, other)) in names.iter().zip(&types).enumerate() {
            writeln!(
                calls,
                "run.compare::<<ours_{at}::Op{number} as Operation>::Output, theirs_{at}::{other}>({document:?}, {name:?}, {});",
                schemas.len()
            )?;
            let defs: serde_json::Map<_, _> = needed.iter().map(|name| (name.clone(), all[name].clone())).collect();
            schemas.push(json!({ "$ref": format!("#/$defs/{name}"), "$defs": defs }));
        }
    }
    std::fs::write(out.join("schemas.json"), Value::from(schemas).to_string())?;
    let nothing = format!(
        "/// The documents that gave nothing to compare, and why.\nconst NOTHING: &[(&str, &str)] = &{nothing:?};\n"
    );
    std::fs::write(out.join("cases.rs"), format!("{modules}\n{nothing}\nfn cases(run: &mut Run) {{\n{calls}}}\n"))?;
    Ok(())
}

fn documents() -> Result<Vec<PathBuf>, Error> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var_os("OPS_SPECS").unwrap_or_else(|| "tests/fixtures/openapi".into());
    let folder = root.join(folder);
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<(u64, PathBuf)> = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|have| ["json", "yaml", "yml"].iter().any(|want| have == *want)) {
            files.push((path.metadata()?.len(), path));
        }
    }
    files.sort();
    let files: Vec<PathBuf> = files.into_iter().map(|(_, path)| path).collect();
    let is_named = |path: &&PathBuf| DOCUMENTS.iter().any(|name| path.file_name() == Some(name.as_ref()));
    let named: Vec<PathBuf> = files.iter().filter(is_named).cloned().collect();
    match named.len() {
        0 if files.is_empty() => Err(format!("no documents in {}", folder.display()).into()),
        // Another directory than the one whose documents are named.
        0 => Ok(files.into_iter().take(DOCUMENTS.len()).collect()),
        count if count == DOCUMENTS.len() => Ok(named),
        _ => Err(format!("{} has some of the documents of the list, not all", folder.display()).into()),
    }
}

/// Definitions that the other generator takes, and all that these need.
fn chosen(all: &BTreeMap<String, Value>) -> (Vec<String>, BTreeSet<String>) {
    let (mut names, mut needed) = (Vec::new(), BTreeSet::new());
    for name in all.keys() {
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let Some(more) = closure(name, all).filter(|more| is_plain && more.len() <= LARGEST) else { continue };
        let together: BTreeSet<String> = needed.union(&more).cloned().collect();
        let with: Vec<String> = names.iter().chain([name]).cloned().collect();
        if theirs(&with, &together, all).is_some() {
            (names, needed) = (with, together);
        }
        if names.len() == EACH {
            break;
        }
    }
    (names, needed)
}

/// A definition and all that it refers to; none if one of them says what the other generator does not know.
fn closure(name: &str, all: &BTreeMap<String, Value>) -> Option<BTreeSet<String>> {
    let (mut found, mut open) = (BTreeSet::new(), vec![name.to_owned()]);
    while let Some(name) = open.pop() {
        let schema = all.get(&name)?;
        if found.insert(name) && !references(schema, &mut open) {
            return None;
        }
    }
    Some(found)
}

fn references(value: &Value, into: &mut Vec<String>) -> bool {
    match value {
        Value::Object(members) => members.iter().all(|(key, value)| {
            if let ("$ref", Some(target)) = (key.as_str(), value.as_str()) {
                into.push(target.strip_prefix("#/$defs/").unwrap_or(target).to_owned());
            }
            !UNKNOWN.contains(&key.as_str()) && references(value, into)
        }),
        Value::Array(items) => items.iter().all(|item| references(item, into)),
        _ => true,
    }
}

/// The source that the other generator makes of the definitions, and the types of some.
fn theirs(names: &[String], needed: &BTreeSet<String>, all: &BTreeMap<String, Value>) -> Option<(String, Vec<String>)> {
    let schema = |value: &Value| value.to_string().replace("#/$defs/", "#/definitions/");
    std::panic::catch_unwind(|| {
        let mut space = TypeSpace::new(&TypeSpaceSettings::default());
        let mut definitions = Vec::new();
        for name in needed {
            definitions.push((name.clone(), serde_json::from_str(&schema(&all[name])).ok()?));
        }
        space.add_ref_types(definitions).ok()?;
        let mut types = Vec::new();
        for name in names {
            let reference = json!({ "$ref": format!("#/definitions/{name}") });
            let id = space.add_type(&serde_json::from_value(reference).ok()?).ok()?;
            types.push(space.get_type(&id).ok()?.ident().to_string());
        }
        let source = space.to_stream().to_string();
        // Titles can give it one name twice.
        let mut names = BTreeSet::new();
        let mut items = ["pub struct ", "pub enum "].iter().flat_map(|item| source.split(item).skip(1));
        let is_free = |item: &str| names.insert(item.split([' ', '<']).next().unwrap_or_default().to_owned());
        items.all(is_free).then_some((source.clone(), types))
    })
    .ok()?
}

/// Our source, with an operation that gives each of the definitions.
fn ours(names: &[String], needed: &BTreeSet<String>, all: &BTreeMap<String, Value>) -> Result<String, Error> {
    let definitions = needed.iter().map(|name| Definition::from_value(name.clone(), all[name].clone()));
    let operation = |(at, name): (usize, &String)| {
        let mut operation = OperationSpec::query("x.op");
        operation.id = format!("x.op{at}").into();
        operation.output = json!({ "$ref": format!("#/$defs/{name}") }).into();
        operation
    };
    let operations = names.iter().enumerate().map(operation).collect();
    Ok(Generator::new().generate(&Api::new(Definitions::new(definitions.collect()), operations)).source)
}
