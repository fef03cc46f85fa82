//! The list of all source files, and what `ARCHITECTURE.md` says of files: that they are there.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use ops_tests_book::pages::{self, root};
use ops_tests_book::sources::{Source, sources};

mod golden;

const CRATES: [&str; 3] = ["ops-runtime", "ops-codegen", "ops-macros"];

/// The folder that a file is listed under. A file beside a folder of its name belongs to it.
fn folder<'s>(file: &'s Source, all: &[Source]) -> &'s str {
    let name = file.path.split('/').next().unwrap();
    let name = name.trim_end_matches(".rs");
    let is_folder = all.iter().any(|file| file.path.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')));
    if is_folder { name } else { "" }
}

#[test]
fn files() {
    let mut text = String::from(
        "# Files\n\nMade from the sources: every file of Rust and JavaScript in the three crates, without tests, and the first sentence \
         of its documentation. [ARCHITECTURE.md](../../ARCHITECTURE.md#where-things-are) says what the folders are for.\n",
    );
    let mut count = 0;
    for name in CRATES {
        let all = sources(&root().join(name).join("src"), &[".rs", ".js"]);
        let mut files: Vec<_> =
            all.iter().filter(|file| !file.is_test()).map(|file| (folder(file, &all), file)).collect();
        files.sort();
        let mut last = None;
        for (folder, file) in files {
            if last != Some(folder) {
                let slash = if folder.is_empty() { "" } else { "/" };
                write!(text, "\n## {name}/src{slash}{folder}\n\n| file | contents |\n|---|---|\n").unwrap();
                last = Some(folder);
            }
            let sentence = file.first_sentence();
            assert!(!sentence.is_empty(), "{name}/src/{} does not begin with a sentence about it", file.path);
            let (path, sentence) = (&file.path, sentence.replace('|', "\\|"));
            writeln!(text, "| [`{path}`](../../{name}/src/{path}) | {sentence} |").unwrap();
            count += 1;
        }
    }
    assert!(count > 700, "{count} files");
    golden::check(Path::new("docs/generated/files.md"), &text);
}

#[test]
fn sentences() {
    for (path, text, expected) in [
        ("a.rs", "//! One. Two.\n", "One."),
        ("a.rs", "//! One,\n//! and more: `x..`.\n//!\n//! Two.\n", "One, and more: `x..`."),
        (
            "a.rs",
            "//! Each of [`A`](super::A) and [`B`], not `&[\"c\"]`.\nuse d;\n",
            "Each of `A` and `B`, not `&[\"c\"]`.",
        ),
        ("a.rs", "// A remark.\n", ""),
        ("a.js", "// One. Two.\n//\n// Three.\n", "One."),
    ] {
        let file = Source { path: path.to_owned(), text: text.to_owned() };
        assert_eq!(file.first_sentence(), expected, "{text}");
    }
}

/// The words between backticks in a text.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn the_paths_in_architecture_are_there() {
    let text = pages::prose(&fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap());
    let folders =
        [".ci/", "docs/", "engine/", "examples/", "fuzz/", "ops-codegen/", "ops-macros/", "ops-runtime/", "tests/"];
    let paths = code(&text).filter(|span| folders.iter().any(|folder| span.starts_with(folder)));
    let mut count = 0;
    for path in paths.filter_map(|span| span.split_whitespace().next()) {
        assert!(root().join(path).exists(), "ARCHITECTURE.md names {path}, which is not there");
        count += 1;
    }
    // Files of one of the crates are named below its sources.
    let sources = ["ops-runtime/src", "ops-codegen/src", "ops-macros/src"].map(|folder| root().join(folder));
    for path in code(&text).filter(|span| span.ends_with(".rs") && span.contains('/') && !span.contains(' ')) {
        let is_there = root().join(path).exists() || sources.iter().any(|folder| folder.join(path).exists());
        assert!(is_there, "ARCHITECTURE.md names {path}, which is not there");
    }
    assert!(count > 60, "{count} paths");
}

#[test]
fn the_files_that_the_map_names_are_there() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let map = text.split("\n## Where things are\n").nth(1).unwrap().split("\n## ").next().unwrap();
    // A table for each of the two large crates; the third is of other folders.
    let mut tables: Vec<Vec<&str>> = Vec::new();
    let mut is_inside = false;
    for line in map.lines() {
        if line.starts_with('|') {
            if !is_inside {
                tables.push(Vec::new());
            }
            tables.last_mut().unwrap().push(line);
        }
        is_inside = line.starts_with('|');
    }
    assert_eq!(tables.len(), 3, "the tables of \"Where things are\"");
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || b"_./".contains(&byte));
    let mut count = 0;
    for (name, rows) in CRATES.iter().zip(&tables[..2]) {
        let sources = root().join(name).join("src");
        for row in rows.iter().skip(2) {
            let first = code(row).next().unwrap();
            let places = [sources.clone(), sources.join(first)];
            for name in code(row).filter(|name| is_name(name)) {
                let there = |place: &Path| place.join(name).exists() || place.join(format!("{name}.rs")).exists();
                assert!(places.iter().any(|place| there(place)), "ARCHITECTURE.md: {first}: there is no `{name}`");
                count += 1;
            }
        }
    }
    assert!(count > 40, "{count} names");
}
