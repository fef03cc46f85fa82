//! What changed between two versions of a document, judged by mutations that know what they break.
//!
//! Each mutation changes a place of a document that was chosen by chance, from a fixed seed. The test finds out by itself
//! which operations reach that place, in requests and in responses. With `OPS_SPECS` the documents are those of that
//! folder, else the fixtures.
#![cfg(feature = "openapi")]

#[path = "openapi_changes/mutation.rs"]
mod mutation;
#[path = "openapi_changes/reach.rs"]
mod reach;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::Api;
use serde_json::Value;

use mutation::{Expected, KINDS, Mutation};
use reach::Reach;

/// Larger documents take a debug build too long.
const LARGEST: u64 = 700_000;

/// How many mutations there are at least.
const WANTED: usize = 240;

pub(crate) struct Random(u64);

impl Random {
    /// A number below another (xorshift64).
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most.max(1) as u64).unwrap()
    }
}

fn documents() -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/openapi");
    let Some(folder) = std::env::var_os("OPS_SPECS").map(PathBuf::from) else {
        // The others are odd on purpose: nested without end, shared by several paths, lost.
        return ["petshop.yaml", "tracker.json"].map(|name| fixtures.join(name)).to_vec();
    };
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let fits = |path: &PathBuf| {
        path.extension().is_some_and(|e| e == "json" || e == "yaml") && path.metadata().unwrap().len() < LARGEST
    };
    let mut documents: Vec<_> = entries.filter(fits).collect();
    documents.sort();
    documents
}

fn api(document: &Value) -> Option<Api> {
    openapi::read(document, &ReadOptions::new().with_namespace("x")).ok().map(|(api, _)| api)
}

/// What was told, against what should have been.
fn judge(old: &Api, new: &Value, expected: &Expected) -> Result<(), String> {
    let new = api(new).ok_or("the mutated document cannot be read")?;
    let changes = openapi::changes(old, &new);
    let of = |breaks: bool| -> BTreeSet<String> {
        let changes = changes.iter().filter(|change| change.breaks || !breaks);
        changes.flat_map(|change| change.operations.iter().cloned()).collect()
    };
    let (breaking, all) = (of(true), of(false));
    if breaking == expected.breaking && all == expected.all && changes.iter().all(|change| !change.more) {
        return Ok(());
    }
    let lines: Vec<String> = changes.iter().take(8).map(ToString::to_string).collect();
    let less = |a: &BTreeSet<String>, b: &BTreeSet<String>| a.difference(b).take(5).cloned().collect::<Vec<_>>();
    Err(format!(
        "breaking too much {:?}, too little {:?}; told too much {:?}, too little {:?}; told:\n    {}",
        less(&breaking, &expected.breaking),
        less(&expected.breaking, &breaking),
        less(&all, &expected.all),
        less(&expected.all, &all),
        lines.join("\n    ")
    ))
}

#[test]
fn mutations_are_judged_as_what_they_are() {
    let documents = documents();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut faults = Vec::new();
    let mut counts = vec![[0_usize; 2]; KINDS.len()];
    let mut pairs = 0;
    let each = WANTED.div_ceil(documents.len());
    for path in &documents {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(document) = openapi::parse(&std::fs::read_to_string(path).unwrap()) else { continue };
        let Some(old) = api(&document).filter(|api| !api.operations.is_empty()) else { continue };
        // Read again, so that no table is the other.
        if !openapi::changes(&old, &api(&document).unwrap()).is_empty() {
            faults.push(format!("{name} differs from itself"));
        }
        let reach = Reach::new(&document, &old);
        let mut last: Option<Mutation> = None;
        for turn in 0..each {
            // Each kind has its turn, and the next one that this document has a place for.
            let start = random.below(KINDS.len());
            let Some(found) = (0..KINDS.len())
                .map(|at| (start + at) % KINDS.len())
                .find_map(|kind| Some((kind, mutation::find(kind, &document, &reach, &mut random)?)))
            else {
                continue;
            };
            let (kind, mutation) = found;
            let mut new = document.clone();
            mutation.apply(&mut new);
            counts[kind][usize::from(!mutation.expected.breaking.is_empty())] += 1;
            if let Err(fault) = judge(&old, &new, &mutation.expected) {
                faults.push(format!("{name}: {} at {}: {fault}", KINDS[kind], mutation.at));
            }
            // Two at once.
            if let Some(other) = last.take().filter(|other| turn % 2 == 1 && other.is_apart(&mutation)) {
                other.apply(&mut new);
                pairs += 1;
                if let Err(fault) = judge(&old, &new, &other.expected.and(&mutation.expected)) {
                    faults.push(format!("{name}: {} at {}, and at {}: {fault}", KINDS[kind], mutation.at, other.at));
                }
            }
            last = Some(mutation);
        }
    }
    let total: usize = counts.iter().flatten().sum();
    for (kind, [harmless, breaking]) in KINDS.iter().zip(&counts) {
        println!("{kind}: {breaking} that break, {harmless} that do not");
    }
    println!("{total} mutations of {} documents, and {pairs} pairs", documents.len());
    assert!(faults.is_empty(), "{} judged wrongly:\n{}", faults.len(), faults.join("\n"));
    assert!(counts.iter().filter(|count| count[0] + count[1] > 0).count() >= 12, "too few kinds");
    assert!(total >= if std::env::var_os("OPS_SPECS").is_some() { 200 } else { 40 }, "too few mutations");
}
