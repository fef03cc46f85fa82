//! The sources of the crates: their files, and the first sentence of each.

use std::fs;
use std::path::Path;

/// A file of a folder.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Its path below the folder, with `/`.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// All files below a folder whose names end so, in the order of their paths.
pub fn sources(folder: &Path, endings: &[&str]) -> Vec<Source> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for path in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                folders.push(path);
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                files.push(Source { path: name, text: fs::read_to_string(&path).unwrap() });
            }
        }
    }
    files.sort();
    files
}

impl Source {
    /// True if the file has tests only.
    pub fn is_test(&self) -> bool {
        self.path.split('/').any(|part| matches!(part, "tests" | "tests.rs"))
    }

    /// The first sentence of the comment that the file begins with, without links. Empty if there is no such comment.
    pub fn first_sentence(&self) -> String {
        let mark = if self.path.ends_with(".rs") { "//!" } else { "//" };
        let lines = self.text.lines().map_while(|line| line.strip_prefix(mark)).map(str::trim);
        let words: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
        let words = words.join(" ");
        let end = words.find(". ").map_or(words.len(), |at| at + 1);
        let mut sentence = words[..end].to_owned();
        while let Some(open) = sentence.find("`](") {
            let close = sentence[open..].find(')').map_or(sentence.len(), |at| open + at + 1);
            sentence.replace_range(open + 1..close, "");
        }
        sentence.replace("[`", "`").replace("`]", "`")
    }
}
