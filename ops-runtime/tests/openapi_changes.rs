//! What changed between two versions of a document, judged by mutations that know what they break.
//!
//! Each mutation changes a place of a document that was chosen by chance, from a fixed seed. The test finds out by itself
//! which operations reach that place, in requests and in responses. The documents are some of our own and those of the folder
//! in `OPS_SPECS`. Every kind of mutation is tried on our own.
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

/// The number of mutations of the documents of a folder, and of our own documents.
const WANTED: usize = 240;
const OWN: usize = 120;

/// With fewer documents than this, a kind of mutation may find no place, for example if all operations are streams.
const MANY: usize = 20;

/// The step between the kinds of successive mutations of our own documents: so two that are made at once are not alike.
const STRIDE: usize = 7;

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

/// A document that can be read, and the number of mutations to make of it.
struct Document {
    name: String,
    value: Value,
    old: Api,
    mutations: usize,
    is_own: bool,
}

fn documents() -> Vec<Document> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The other fixtures are odd on purpose: their schemas are endless, shared by several paths, or missing.
    let own = [
        "../tests/fixtures/openapi/petshop.yaml",
        "../tests/fixtures/openapi/tracker.json",
        "tests/openapi_changes/clinic.yaml",
    ];
    let own = || own.map(|name| root.join(name)).to_vec();
    let Some(folder) = std::env::var_os("OPS_SPECS").map(PathBuf::from) else { return readable(own(), WANTED, true) };
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let fits = |path: &PathBuf| {
        let ending = path.extension().is_some_and(|e| e == "json" || e == "yaml" || e == "yml");
        ending && path.metadata().unwrap().len() < LARGEST
    };
    let mut documents: Vec<_> = entries.filter(fits).collect();
    documents.sort();
    let mut documents = readable(documents, WANTED, false);
    documents.extend(readable(own(), OWN, true));
    documents
}

/// The documents that can be read and have operations, each with a share of the mutations.
fn readable(paths: Vec<PathBuf>, mutations: usize, is_own: bool) -> Vec<Document> {
    let mut documents = Vec::new();
    for path in paths {
        let value = openapi::parse(&std::fs::read_to_string(&path).unwrap_or_default()).unwrap_or_default();
        match api(&value).filter(|api| !api.operations.is_empty()) {
            Some(old) => {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                documents.push(Document { name, value, old, mutations: 0, is_own });
            }
            None => println!("{}: no operations", path.display()),
        }
    }
    let each = mutations.div_ceil(documents.len().max(1));
    documents.iter_mut().for_each(|document| document.mutations = each);
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
    let (mut pairs, mut of_own) = (0, 0);
    let mut untried: BTreeSet<&str> = KINDS.iter().copied().collect();
    for Document { name, value: document, old, mutations, is_own } in &documents {
        // Read again, so that no table is the other.
        if !openapi::changes(old, &api(document).unwrap()).is_empty() {
            faults.push(format!("{name} differs from itself"));
        }
        let reach = Reach::new(document, old);
        let mut last: Option<Mutation> = None;
        for turn in 0..*mutations {
            // Each kind has its turn, and the next one that this document has a place for.
            let start = if *is_own { turn * STRIDE } else { random.below(KINDS.len()) };
            let Some(found) = (0..KINDS.len())
                .map(|at| (start + at) % KINDS.len())
                .find_map(|kind| Some((kind, mutation::find(kind, document, &reach, &mut random)?)))
            else {
                continue;
            };
            let (kind, mutation) = found;
            if *is_own {
                untried.remove(KINDS[kind]);
                of_own += 1;
            }
            let mut new = document.clone();
            mutation.apply(&mut new);
            counts[kind][usize::from(!mutation.expected.breaking.is_empty())] += 1;
            if let Err(fault) = judge(old, &new, &mutation.expected) {
                faults.push(format!("{name}: {} at {}: {fault}", KINDS[kind], mutation.at));
            }
            // Two at once.
            if let Some(other) = last.take().filter(|other| turn % 2 == 1 && other.is_apart(&mutation)) {
                other.apply(&mut new);
                pairs += 1;
                if let Err(fault) = judge(old, &new, &other.expected.and(&mutation.expected)) {
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
    assert!(untried.is_empty(), "our own documents have no place for these: {untried:?}");
    let wanted = |is_own: bool| -> usize {
        let documents = documents.iter().filter(|document| document.is_own || !is_own);
        documents.map(|document| document.mutations).sum()
    };
    assert!(of_own * 6 >= wanted(true) * 5, "too few mutations of our own: {of_own} of {}", wanted(true));
    let is_enough = documents.len() < MANY || total * 6 >= wanted(false) * 5;
    assert!(is_enough, "too few mutations: {total} of {}", wanted(false));
}
