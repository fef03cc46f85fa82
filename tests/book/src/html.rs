//! The links of the built book: every file and every anchor that a page names is there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The largest page, in bytes.
const MOST: u64 = 200 * 1024;

/// Checks all pages below a folder; returns the number of links, or what is wrong.
///
/// # Errors
/// A line for each dead link and each page that is too large.
pub fn check(folder: &Path) -> Result<usize, Vec<String>> {
    let mut pages = Vec::new();
    walk(folder, &mut pages);
    let (mut anchors, mut problems, mut links) = (BTreeMap::new(), Vec::new(), 0);
    for page in &pages {
        let text = fs::read_to_string(page).unwrap();
        let size = text.len() as u64;
        if size > MOST {
            problems.push(format!("{}: {size} bytes, more than {MOST}", page.display()));
        }
        let ids: BTreeSet<String> = values(&text, "id").into_iter().collect();
        anchors.insert(normal(page), (ids, text));
    }
    for page in &pages {
        let (ids, text) = &anchors[&normal(page)];
        for link in values(text, "href").into_iter().chain(values(text, "src")) {
            let outside = ["http://", "https://", "mailto:", "data:", "javascript:"];
            if outside.iter().any(|scheme| link.starts_with(scheme)) {
                continue;
            }
            links += 1;
            let (file, anchor) = link.split_once('#').map_or((link.as_str(), None), |(file, at)| (file, Some(at)));
            let file = file.split('?').next().unwrap_or_default();
            let target = normal(&page.parent().unwrap().join(decoded(file)));
            if !file.is_empty() && !target.exists() {
                problems.push(format!("{}: `{link}` leads nowhere", page.display()));
                continue;
            }
            let Some(anchor) = anchor.filter(|anchor| !anchor.is_empty()) else { continue };
            let there = if file.is_empty() { Some(ids) } else { anchors.get(&target).map(|(ids, _)| ids) };
            if there.is_some_and(|ids| !ids.contains(&decoded(anchor))) {
                problems.push(format!("{}: `{link}`: there is no such anchor", page.display()));
            }
        }
    }
    if problems.is_empty() { Ok(links) } else { Err(problems) }
}

/// Leads links to Markdown outside of the book back to it: mdBook takes every such file for a page.
pub fn mend(folder: &Path) {
    let mut pages = Vec::new();
    walk(folder, &mut pages);
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let mut mended = text.clone();
        for link in values(&text, "href") {
            let file = link.split('#').next().unwrap_or_default();
            let Some(name) = file.strip_suffix(".html") else { continue };
            let target = normal(&page.parent().unwrap().join(format!("{name}.md")));
            if !target.starts_with(folder) && target.exists() {
                let own = link.replacen(".html", ".md", 1);
                mended = mended.replace(&format!("href=\"{link}\""), &format!("href=\"{own}\""));
            }
        }
        if mended != text {
            fs::write(&page, mended).unwrap();
        }
    }
}

fn walk(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "html") {
            pages.push(path);
        }
    }
}

/// The values of an attribute.
fn values(text: &str, name: &str) -> Vec<String> {
    let start = format!(" {name}=\"");
    let pieces = text.split(&start).skip(1);
    pieces.filter_map(|piece| piece.split('"').next()).map(|value| value.replace("&amp;", "&")).collect()
}

/// A path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

fn decoded(text: &str) -> String {
    text.replace("%20", " ")
}
