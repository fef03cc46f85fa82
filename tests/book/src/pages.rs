//! The pages of the book: which there are, their blocks, and what includes stand for.

use std::fs;
use std::path::{Path, PathBuf};

/// A page of the book.
#[derive(Debug)]
pub struct Page {
    /// Its path below `docs/src`, with `/`.
    pub path: String,
    /// Its heading.
    pub title: String,
    /// Its text as it is written.
    pub text: String,
}

/// A fenced block.
#[derive(Debug, Default)]
pub struct Block {
    /// What stands behind the fence, such as `rust,run`.
    pub info: String,
    /// The number of its first line.
    pub line: usize,
    /// Its lines, each with its end.
    pub text: String,
}

impl Block {
    /// True for a language, whatever stands behind it.
    pub fn is(&self, language: &str) -> bool {
        self.info.split(',').next() == Some(language)
    }

    /// True if all that it says is included from a file.
    pub fn is_included(&self) -> bool {
        let mut lines = self.text.lines().filter(|line| !line.trim().is_empty()).peekable();
        lines.peek().is_some() && lines.all(|line| line.trim_start().starts_with("{{#include "))
    }
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of the pages.
pub fn source() -> PathBuf {
    root().join("docs/src")
}

/// All pages, in the order of their paths. `SUMMARY.md` is not one.
pub fn all() -> Vec<Page> {
    let mut pages = Vec::new();
    walk(&source(), "", &mut pages);
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    pages
}

fn walk(folder: &Path, prefix: &str, pages: &mut Vec<Page>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            walk(&entry.path(), &format!("{prefix}{name}/"), pages);
        } else if name.ends_with(".md") && name != "SUMMARY.md" {
            let text = fs::read_to_string(entry.path()).unwrap();
            let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default().to_owned();
            pages.push(Page { path: format!("{prefix}{name}"), title, text });
        }
    }
}

/// The fenced blocks of a text. A fence may be indented.
pub fn blocks(text: &str) -> Vec<Block> {
    let (mut blocks, mut open) = (Vec::new(), None::<Block>);
    for (number, line) in (1..).zip(text.lines()) {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(info)) => {
                open = Some(Block { info: info.trim().to_owned(), line: number + 1, text: String::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block does not end: {open:?}");
    blocks
}

/// The text outside of its fenced blocks; each line of a block is an empty one.
pub fn prose(text: &str) -> String {
    let (mut prose, mut inside) = (String::new(), false);
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        if !inside && !is_fence {
            prose.push_str(line);
        }
        inside ^= is_fence;
        prose.push('\n');
    }
    prose
}

/// A text whose includes are replaced by what they stand for: a file, or the lines between two anchors of it.
///
/// # Errors
/// If a file or an anchor is missing.
pub fn expand(path: &str, text: &str) -> Result<String, String> {
    let folder = source().join(path).parent().unwrap().to_owned();
    let mut expanded = String::new();
    for line in text.lines() {
        match line.trim_start().strip_prefix("{{#include ").and_then(|rest| rest.strip_suffix("}}")) {
            Some(target) => {
                let (file, anchor) =
                    target.split_once(':').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
                let included =
                    fs::read_to_string(folder.join(file)).map_err(|error| format!("{path}: {file}: {error}"))?;
                expanded.push_str(
                    lines_of(&included, anchor)
                        .ok_or_else(|| format!("{path}: {file} has no anchor {anchor:?}"))?
                        .trim_end(),
                );
            }
            None => expanded.push_str(line),
        }
        expanded.push('\n');
    }
    Ok(expanded)
}

/// The lines of a file between two anchors, or all; those that name anchors are left out.
fn lines_of(text: &str, anchor: Option<&str>) -> Option<String> {
    let (mut lines, mut inside, mut found) = (String::new(), anchor.is_none(), anchor.is_none());
    for line in text.lines() {
        if let Some((_, name)) = line.split_once("ANCHOR_END: ") {
            inside &= name.split_whitespace().next() != anchor;
        } else if let Some((_, name)) = line.split_once("ANCHOR: ") {
            if name.split_whitespace().next() == anchor {
                (inside, found) = (true, true);
            }
        } else if inside {
            lines.push_str(line);
            lines.push('\n');
        }
    }
    found.then_some(lines)
}

/// A text as plain Markdown: includes are replaced, and lines of Rust that the book hides are left out.
///
/// # Errors
/// As [`expand`].
pub fn plain(path: &str, text: &str) -> Result<String, String> {
    let (mut plain, mut rust, mut inside) = (String::new(), false, false);
    for line in expand(path, text)?.lines() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            let indent = &line[..line.len() - line.trim_start().len()];
            inside = !inside;
            rust = inside && info.split(',').next() == Some("rust");
            plain.push_str(indent);
            plain.push_str("```");
            plain.push_str(info.split(',').next().unwrap_or_default());
            plain.push('\n');
        } else if !(rust && is_hidden(line)) {
            plain.push_str(line);
            plain.push('\n');
        }
    }
    Ok(plain)
}

/// True for a line of Rust that the book hides: `# ` and code.
pub fn is_hidden(line: &str) -> bool {
    line == "#" || line.starts_with("# ")
}

/// The first paragraph of a text below its heading, as one line.
pub fn summary(text: &str) -> String {
    let lines =
        text.lines().skip_while(|line| !line.starts_with("# ")).skip(1).skip_while(|line| line.trim().is_empty());
    let lines: Vec<&str> = lines.take_while(|line| !line.trim().is_empty()).collect();
    lines.join(" ")
}
