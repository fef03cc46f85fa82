//! Generates types of the same definitions by two generators. The definitions are from our own documents, and from those of a
//! fixed list; the smallest other documents of the directory replace those that are missing.
//!
//! If a document has nothing to compare, the test gets its name, and decides if that is expected. Other files of the directory
//! are skipped. Neither is an error here, because that would stop the build of the whole workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ops_codegen::Generator;
use ops_runtime::openapi::FileSource;
use ops_runtime::openapi::{ReadOptions, load, parse};
use ops_runtime::spec::{Api, Definition, Definitions, OperationSpec};
use serde_json::{Value, json};
use typify::{TypeSpace, TypeSpaceSettings};

#[path = "../src/corpus/document.rs"]
#[allow(unreachable_pub, reason = "it is public in the library of the tests")]
mod document;
#[path = "../src/corpus/known.rs"]
#[allow(dead_code, unreachable_pub, reason = "the other tests need more of it")]
mod known;

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
    let (given, own) = documents()?;
    for (at, file) in given.iter().chain(&own).enumerate() {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let document = if at < given.len() { name.into_owned() } else { format!("own/{name}") };
        let (api, _) = match load(&file.display().to_string(), &FileSource::new(), &ReadOptions::new()) {
            Ok(read) => read,
            Err(error) => {
                nothing.push((document, error.to_string()));
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
            nothing.push((document, why.to_owned()));
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
    let is_known = given.iter().all(|file| known::is_known(file));
    let is_corpus = is_known && known::matched(DOCUMENTS, &given).1.is_empty();
    let nothing = format!(
        "/// The documents that gave nothing to compare, and why.\nconst NOTHING: &[(&str, &str)] = &{nothing:?};\n\
         /// True if it is known what all documents have.\nconst IS_KNOWN: bool = {is_known};\n\
         /// True if the documents of the list are among them.\nconst IS_CORPUS: bool = {is_corpus};\n"
    );
    std::fs::write(out.join("cases.rs"), format!("{modules}\n{nothing}\nfn cases(run: &mut Run) {{\n{calls}}}\n"))?;
    Ok(())
}

/// The documents of the directory, unless it is our own, and our own documents.
fn documents() -> Result<(Vec<PathBuf>, Vec<PathBuf>), Error> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let below = |folder: &Path| known::below(folder).map_err(|error| format!("{}: {error}", folder.display()));
    let folder = std::env::var_os("OPS_SPECS").map(|folder| root.join(folder)).filter(|folder| !known::is_own(folder));
    let given = match folder {
        Some(folder) => known::choose(DOCUMENTS, &below(&folder)?, is_document)?,
        None => Vec::new(),
    };
    Ok((given, below(&root.join("tests/fixtures/openapi"))?))
}

fn is_document(file: &Path) -> bool {
    parse(&std::fs::read_to_string(file).unwrap_or_default()).is_ok_and(|value| document::is_document(&value))
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
