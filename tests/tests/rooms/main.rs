//! The plan of the house: no circles between folders, and none of more than two files but those that are named here;
//! folders that take from those below them in ARCHITECTURE.md only; and a pipeline that names no protocol.
//!
//! Arrows are read from the code itself: what a file names of another, whether it is imported or written with its path.
//! What a module re-exports is followed to where it is defined, and the re-export is no arrow, so a module may show what
//! is inside it. Tests inside a file do not count.

mod arrows;
mod circles;
mod modules;
mod order;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use arrows::arrows;
use circles::circles;
use modules::Modules;

/// The crates whose plan is checked.
const CRATES: [&str; 3] = ["ops-runtime", "ops-codegen", "ops-macros"];

/// Circles that there are, by a place in each, with the number of files or folders in them: of more than two files, and of
/// folders (with a slash at the end). None may grow, and one that is cut is taken out of the list.
///
/// Those that belong together: the registry with its entries, the handlers that it runs, and the context that they get of
/// it; the reader of an OpenAPI document with the parts whose state it holds; the definitions that a schema is compiled with,
/// and that are compiled when they are first met. The others are not cut yet.
const KNOWN: &[(&str, usize)] = &[
    ("ops-runtime/call/pending.rs", 3),
    ("ops-runtime/documents/openapi/reader.rs", 4),
    ("ops-runtime/normalise/definitions.rs", 3),
    ("ops-runtime/normalise/standard.rs", 4),
    ("ops-runtime/record/table.rs", 4),
    ("ops-runtime/run/registry.rs", 4),
    ("ops-codegen/lower.rs", 3),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(name: &str) -> Modules {
    Modules::read(&root().join(name).join("src")).unwrap()
}

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Arrows between two rooms, each with a file on either side that it is made of.
type Ties = BTreeMap<(String, String), (String, String)>;

/// The arrows between the folders of a crate, by the folder that they are in.
fn between_folders(arrows: &Arrows) -> BTreeMap<String, Ties> {
    let mut levels: BTreeMap<String, Ties> = BTreeMap::new();
    for (from, to) in arrows.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to))) {
        let (one, other): (Vec<_>, Vec<_>) = (rooms(from), rooms(to));
        let same = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
        if let (Some(one), Some(other)) = (one.get(same), other.get(same)) {
            let level = levels.entry(rooms(from)[..same].join("/")).or_default();
            level.entry((one.clone(), other.clone())).or_insert((from.clone(), to.clone()));
        }
    }
    levels
}

/// The folders that a file is in. A file beside a folder of its name is its door.
fn rooms(file: &str) -> Vec<String> {
    let mut rooms: Vec<_> = file.split('/').map(str::to_owned).collect();
    let last = rooms.pop().unwrap_or_default();
    if last == "mod.rs" {
        return rooms;
    }
    rooms.push(last);
    rooms
}

/// The arrows with each file that is the door of a folder inside that folder.
fn with_doors(modules: &Modules, arrows: &Arrows) -> Arrows {
    let inside = |file: &String| match file.strip_suffix(".rs").filter(|folder| modules.is_folder(folder)) {
        Some(folder) => format!("{folder}/mod.rs"),
        None => file.clone(),
    };
    arrows.iter().map(|(from, all)| (inside(from), all.iter().map(inside).collect())).collect()
}

#[test]
fn there_are_no_circles_but_those_that_are_known() {
    let mut problems = Vec::new();
    let mut met = BTreeSet::new();
    for name in CRATES {
        let modules = read(name);
        let arrows = arrows(&modules);
        let count: usize = arrows.values().map(BTreeSet::len).sum();
        println!("{name}: {} files, {count} arrows", arrows.len());
        assert!(arrows.len() > 10 && count > 20, "hardly anything was read of {name}");
        let of_files = circles(&arrows).into_iter().filter(|circle| circle.len() > 2);
        let mut found: Vec<_> = of_files.map(|circle| (shown(&circle, &arrows), circle)).collect();
        for (level, ties) in between_folders(&with_doors(&modules, &arrows)) {
            found.extend(circles_of_folders(&level, &ties));
        }
        for (shown, circle) in found {
            let known = |(place, _): &&(&str, usize)| {
                place
                    .strip_prefix(name)
                    .and_then(|place| place.strip_prefix('/'))
                    .is_some_and(|place| circle.contains(place))
            };
            match KNOWN.iter().find(known) {
                Some((place, most)) if circle.len() <= *most => drop(met.insert(*place)),
                Some((place, most)) => problems.push(format!("the circle of {place} grew from {most}:{shown}")),
                None => problems.push(format!("{name}: a circle of {}:{shown}", circle.len())),
            }
        }
    }
    for (place, _) in KNOWN.iter().filter(|(place, _)| !met.contains(place)) {
        problems.push(format!("the circle of {place} is no more: take it out of the list"));
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

/// The circles between the folders that are beside each other in one, with what ties them. Files beside them do not count.
fn circles_of_folders(level: &str, ties: &Ties) -> Vec<(String, BTreeSet<String>)> {
    let is_folder = |room: &String| !room.ends_with(".rs");
    let mut folders: Arrows = BTreeMap::new();
    for (from, to) in ties.keys().filter(|(from, to)| is_folder(from) && is_folder(to)) {
        folders.entry(from.clone()).or_default().insert(to.clone());
    }
    let found = circles(&folders).into_iter().map(|circle| {
        let of = |((from, to), _): &(&(String, String), _)| circle.contains(from) && circle.contains(to);
        let shown = ties.iter().filter(of).map(|(_, (from, to))| format!("\n    {from} -> {to}")).collect();
        let place = |room: &String| if level.is_empty() { format!("{room}/") } else { format!("{level}/{room}/") };
        (shown, circle.iter().map(place).collect())
    });
    found.collect()
}

/// A circle with the arrows in it.
fn shown(circle: &BTreeSet<String>, arrows: &Arrows) -> String {
    let inside = |file: &String| {
        let to: Vec<_> = arrows[file].iter().filter(|to| circle.contains(*to)).cloned().collect();
        format!("\n    {file} -> {}", to.join(", "))
    };
    circle.iter().map(inside).collect()
}

#[test]
fn folders_take_from_those_below_them() {
    let modules = read("ops-runtime");
    let mut ties = between_folders(&with_doors(&modules, &arrows(&modules)));
    let ties = ties.remove("").unwrap();
    let mut problems = Vec::new();
    let mut listed = Vec::new();
    for name in order::listed(&fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()) {
        if !root().join("ops-runtime/src").join(&name).exists() {
            problems.push(format!("there is no {name}"));
        }
        // A file beside a folder of its name stands for both.
        let folder = name.strip_suffix(".rs").filter(|folder| modules.is_folder(folder));
        listed.push(folder.unwrap_or(name.trim_end_matches('/')).to_owned());
    }
    problems.extend(order::problems(&listed, &ties));
    assert!(problems.is_empty(), "ARCHITECTURE.md, \"Where things are\":\n{}", problems.join("\n"));
}

/// What a protocol says of a result is asked of `model/protocol.rs`.
#[test]
fn the_pipeline_names_no_protocol() {
    let modules = read("ops-runtime");
    let files: BTreeSet<_> = modules.iter().map(|(_, module)| &module.file).collect();
    let files: Vec<_> = files.into_iter().filter(|file| file.starts_with("run/pipeline")).collect();
    assert!(files.len() > 3, "{files:?}");
    for file in files {
        let text = fs::read_to_string(root().join("ops-runtime/src").join(file)).unwrap();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim_start().starts_with("//")) {
            for name in ["as_http", "as_mcp", ".http()", ".mcp()", "Http", "Mcp", "Binding"] {
                assert!(!line.contains(name), "{file}:{number} names a protocol: {line}");
            }
        }
    }
}

#[test]
fn circles_are_found() {
    let arrows: Arrows = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d"), ("f", "f")]
        .iter()
        .fold(BTreeMap::new(), |mut arrows: Arrows, (from, to)| {
            arrows.entry((*from).to_owned()).or_default().insert((*to).to_owned());
            arrows
        });
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(circles(&arrows), [set(&["a", "b", "c"]), set(&["d", "e"])]);
}
