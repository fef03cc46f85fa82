//! Several documents in one crate of which only what the crate names is generated (`only_used`).

use std::collections::BTreeSet;
use std::path::Path;

use ops_codegen::Builder;
use ops_runtime::spec::OperationKind;
use serde_json::{Value, json};

use super::super::document::Document as Raw;
use super::super::package::{Package, Program};
use super::super::{Arrived, Recorder, Source, compare, expected};
use super::code::Code;
use super::write::{self, Writer};
use super::{KIT, operations};
use crate::corpus;
use crate::folder::target;
use crate::sample::Extent;

const PROGRAM: Program = Program { name: "used", kit: KIT, main: MAIN, listed: "CASES" };

/// Runs what the one package lists.
const MAIN: &str = "//! Runs what is written.\n\nfn main() {\n    for cases in [\n        // LISTED\n    ] {\n        used_kit::run(cases);\n    }\n}\n";

/// So many documents, and so many operations of each.
const DOCUMENTS: usize = 12;
const OPERATIONS: usize = 4;

/// Larger documents take longer than this test should.
const LARGEST: u64 = 1_000_000;

/// A document in the crate.
struct Part {
    source: Source,
    document: Value,
    code: Code,
    /// The operations that are named.
    named: BTreeSet<String>,
    /// What each of their calls is to record.
    wanted: Vec<Value>,
    /// The expressions that make the calls.
    calls: Vec<String>,
    /// The one that is called by its id, and what sends it by its type.
    other: Option<(String, String)>,
}

fn size(file: &Path) -> u64 {
    file.metadata().map_or(u64::MAX, |data| data.len())
}

/// Documents from all over the directory. If it has only large documents, it is the smallest one.
fn sources() -> Vec<Source> {
    let directory = corpus::directory("OPS_SPECS", "openapi");
    let mut files = corpus::below(&directory).unwrap();
    files.sort_by_key(|file| size(file));
    let small = files.partition_point(|file| size(file) <= LARGEST);
    let large = files.split_off(small);
    files.sort();
    let mut all = Source::all(&directory, &files, &[]);
    if all.is_empty() {
        let smallest = large.into_iter().find(|file| corpus::holds_document(file));
        all = Source::all(&directory, &smallest.into_iter().collect::<Vec<_>>(), &[]);
    }
    let step = all.len().div_ceil(DOCUMENTS).max(1);
    let mut chosen: Vec<Source> = all.into_iter().step_by(step).collect();
    for (number, source) in chosen.iter_mut().enumerate() {
        source.namespace = format!("d{number}");
        source.path = source.path.canonicalize().unwrap();
    }
    chosen
}

impl Part {
    /// What a user writes who needs a few operations of a document.
    fn new(source: Source, seed: usize) -> Self {
        let document = corpus::parse(&source.path);
        let (specs, generated) = super::generate(&source).unwrap();
        let code = Code::read(&generated).unwrap();
        let raw = Raw::new(&document);
        let mut all = operations(&raw, specs);
        let (mut named, mut wanted, mut calls) = (BTreeSet::new(), Vec::new(), Vec::new());
        for pick in 0..OPERATIONS.min(all.len().div_ceil(2)) {
            let (operation, spec) = all.remove((seed * 31 + pick * 17) % all.len());
            let own = code.operations.iter().find(|own| own.id == *spec.id).unwrap();
            let sample = expected::sample(&raw, &operation, &spec, Extent::Required);
            let call = match (Writer { code: &code, module: "api" }).call(own, &sample.input) {
                Ok(call) => call,
                // No value matches the schema of a document that is not known.
                Err(_) if !sample.fits && !corpus::is_known(&source.path) => continue,
                Err(error) => panic!("{}: {}: {error}", source.path.display(), own.id),
            };
            calls.push(write::case(own, &call.source));
            wanted.push(call.json);
            named.insert(own.id.clone());
        }
        Self { source, document, code, named, wanted, calls, other: None }
    }

    fn text(&self) -> String {
        let (namespace, methods) = (&self.source.namespace, &self.code.methods);
        let cases: String = self.calls.iter().map(|call| format!("    {call},\n")).collect();
        format!(
            "pub mod {namespace} {{\nuse std::collections::BTreeMap;\nuse api::{methods};\n\
             use hand_kit::{{Case, made}};\nuse ops_runtime::Body;\n\
             pub static CASES: (&str, &[Case]) = ({namespace:?}, &[\n{cases}]);\n\
             include!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/whole/{namespace}.rs\"));\n\
             pub mod api {{ ops_runtime::include_operations!({namespace:?}); }}\n}}\n"
        )
    }

    /// Chooses an operation that the crate does not name, to be sent by its type and by its id.
    fn choose(&mut self, words: &BTreeSet<String>, seed: usize) {
        let raw = Raw::new(&self.document);
        let (specs, _) = super::generate(&self.source).unwrap();
        let all = operations(&raw, specs);
        let order = (0..all.len()).map(|at| &all[(seed * 13 + at) % all.len()]);
        for (operation, spec) in order.filter(|(_, spec)| spec.kind != OperationKind::Subscription) {
            let own = self.code.operations.iter().find(|own| own.id == *spec.id).unwrap();
            let is_named =
                [&own.method, &own.name, &format!("{}Error", own.name)].iter().any(|name| words.contains(*name));
            let sample = expected::sample(&raw, operation, spec, Extent::Required);
            if is_named || !sample.fits || !sample.problems.is_empty() {
                continue;
            }
            // Its module, whole, in a file that the build script does not read.
            let builder = Builder::new().openapi(&self.source.path).with_namespace(&self.source.namespace);
            let Ok(mut modules) = builder.include(spec.id.as_ref()).generate() else { continue };
            let generated = modules.remove(0).generated.source;
            let code = Code::read(&generated).unwrap();
            let [own] = code.operations.as_slice() else { continue };
            let Ok(call) = (Writer { code: &code, module: "api" }).call(own, &sample.input) else { continue };
            let text = format!(
                "mod whole {{\n#![allow(unused, deprecated)]\nuse std::collections::BTreeMap;\nuse api::{};\n\
                 use ops_runtime::{{Body, CallError, HttpClient}};\n\
                 pub const ID: &str = {:?};\npub const INPUT: &str = {:?};\n\
                 pub async fn run(mock: HttpClient) -> Option<CallError> {{ {}.await.err() }}\n\
                 pub mod api {{\n{generated}}}\n}}\n",
                code.methods,
                own.id,
                sample.input.to_string(),
                call.source
            );
            let sent = "Case::Sent(whole::ID, whole::INPUT, |mock| Box::pin(whole::run(mock)), api::other_operations)";
            self.calls.push(sent.to_owned());
            self.other = Some((own.id.clone(), text));
            break;
        }
        self.calls.push("Case::Ids(api::operations, api::other_operations)".to_owned());
    }

    /// Compares what the program printed of this document, and sent.
    fn judge(&self, lines: &mut impl Iterator<Item = Value>, arrived: &mut impl Iterator<Item = Arrived>) {
        let name = self.source.path.display();
        let mut next = || {
            let line = lines.next().unwrap();
            assert_eq!(line[0], self.source.namespace, "{line}");
            line[2].clone()
        };
        for wanted in &self.wanted {
            let found = next();
            assert!(write::is_same(wanted, &found), "{name}: {found} instead of {wanted}");
        }
        if let Some((other, _)) = &self.other {
            assert_eq!(next(), json!("sent"), "{name}: {other}");
            let (typed, by_id) = (arrived.next().unwrap(), arrived.next().unwrap());
            let mut found = Vec::new();
            compare::raw(&typed, &by_id, &mut found);
            assert!(found.is_empty(), "{name}: {other}: {found:#?}");
        }
        let ids = next();
        let set = |key: &str| -> BTreeSet<String> {
            ids[key].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
        };
        let (own, others) = (set("operations"), set("others"));
        // More than what is named may be there: other words of the crate may be names, too.
        assert!(self.named.is_subset(&own), "{name}: {:?} are not all generated: {own:?}", self.named);
        assert!(self.other.iter().all(|(other, _)| others.contains(other)), "{name}: {others:?}");
        assert!(own.is_disjoint(&others), "{name}: {own:?} {others:?}");
        let all: BTreeSet<String> = self.code.operations.iter().map(|own| own.id.clone()).collect();
        assert_eq!(own.union(&others).cloned().collect::<BTreeSet<_>>(), all, "{name}");
        println!("{name}: {} named, {} generated, {} left out", self.named.len(), own.len(), others.len());
    }
}

#[tokio::test]
async fn what_is_named_is_there_and_the_rest_is_called_by_id() {
    let mut parts: Vec<Part> =
        sources().into_iter().enumerate().map(|(seed, source)| Part::new(source, seed)).collect();
    let text: String = parts.iter().map(Part::text).collect();
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned).collect();
    parts.iter_mut().enumerate().for_each(|(seed, part)| part.choose(&words, seed));
    let folder = target(corpus::root()).join("used/of_all/whole");
    std::fs::create_dir_all(&folder).unwrap();
    let (mut openapi, mut modules, mut list) = (String::new(), String::new(), String::new());
    for part in &parts {
        let namespace = &part.source.namespace;
        let whole = part.other.as_ref().map_or("", |(_, text)| text.as_str());
        std::fs::write(folder.join(format!("{namespace}.rs")), whole).unwrap();
        let path = part.source.path.display().to_string();
        openapi.push_str(&format!(".openapi({path:?}).with_namespace({namespace:?})"));
        modules.push_str(&part.text());
        list.push_str(&format!("    {namespace}::CASES,\n"));
    }
    let script = format!(
        "//! Generates what is named.\n\nfn main() -> Result<(), ops_codegen::Error> {{\n    \
         ops_codegen::Builder::new(){openapi}.only_used().build()\n}}\n"
    );
    let source = format!(
        "#![allow(deprecated, unused, clippy::all)]\nextern crate used_kit as hand_kit;\n{modules}\n\
         pub static CASES: &[(&str, &[hand_kit::Case])] = &[\n{list}];\n"
    );
    let package = Package { name: "of_all".to_owned(), source, build_script: Some(script) };
    let (program, failures) = PROGRAM.build(&[package]).await.unwrap();
    assert!(failures.is_empty(), "{failures:#?}");

    let recorder = Recorder::start().await.unwrap();
    let output = tokio::process::Command::new(&program).env("OPS_URL", recorder.url()).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let mut lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut arrived = recorder.take().into_iter();
    parts.iter().for_each(|part| part.judge(&mut lines, &mut arrived));
    assert!(lines.next().is_none() && arrived.next().is_none());
    // In a small document, the code may name all operations, so that no other one is left. Some directories have only such
    // documents.
    let sent = parts.iter().filter(|part| part.other.is_some()).count();
    let is_known = parts.iter().all(|part| corpus::is_known(&part.source.path));
    assert!(!parts.is_empty() && (sent * 2 > parts.len() || !is_known), "{sent} of {}", parts.len());
}
