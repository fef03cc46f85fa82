//! The origins of the parts of a changed document: the document's own text, or that of an overlay.

use std::collections::{BTreeMap, BTreeSet};

use ops_runtime::openapi::locate;
use ops_runtime::spec::Diagnostic;

use super::edit::Edit;

/// How many changes are searched for all diagnostics; further diagnostics have no line.
const LOOKS: usize = 50_000_000;

#[derive(Debug)]
pub(super) struct Origins {
    /// The location and text of the document, then of each overlay.
    files: Vec<(String, String)>,
    pub(super) edits: Vec<Edit>,
}

impl Origins {
    pub(super) fn new(location: &str, text: String) -> Self {
        Self { files: vec![(location.to_owned(), text)], edits: Vec::new() }
    }

    /// Adds an overlay; returns its number.
    pub(super) fn add(&mut self, location: &str, text: String) -> usize {
        self.files.push((location.to_owned(), text));
        self.files.len() - 1
    }

    /// The file of a place in the changed document, and the place in it.
    fn origin(&self, pointer: &str) -> (usize, String) {
        let mut pointer = pointer.to_owned();
        for edit in self.edits.iter().rev() {
            match edit {
                Edit::Set { at, overlay, from, is_copy } => {
                    if let Some(rest) = below(&pointer, at) {
                        let rest = if *is_copy { "" } else { rest };
                        return (*overlay, format!("{from}{rest}"));
                    }
                }
                Edit::Removed { list, index } => {
                    let Some(rest) = below(&pointer, list).and_then(|rest| rest.strip_prefix('/')) else { continue };
                    let (item, deeper) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                    if let Some(item) = item.parse::<usize>().ok().filter(|item| item >= index) {
                        pointer = format!("{list}/{}{deeper}", item + 1);
                    }
                }
            }
        }
        (0, pointer)
    }

    /// Gives diagnostics of the changed document their places in the files.
    pub(super) fn place(&self, diagnostics: Vec<&mut Diagnostic>) {
        let mut looks = LOOKS;
        let mut by_file: BTreeMap<usize, Vec<&mut Diagnostic>> = BTreeMap::new();
        for diagnostic in diagnostics {
            diagnostic.position = None;
            if let Some(left) = looks.checked_sub(self.edits.len()) {
                looks = left;
                let (file, pointer) = self.origin(&diagnostic.pointer);
                diagnostic.pointer = pointer;
                by_file.entry(file).or_default().push(diagnostic);
            }
        }
        by_file.into_iter().for_each(|(file, diagnostics)| self.locate(file, diagnostics));
    }

    /// Gives diagnostics of a file, of the document or an overlay, its location, and lines in it if they have none.
    pub(super) fn locate_in(&self, file: usize, diagnostics: &mut [Diagnostic]) {
        self.locate(file, diagnostics.iter_mut().collect());
    }

    fn locate(&self, file: usize, diagnostics: Vec<&mut Diagnostic>) {
        let Some((location, text)) = self.files.get(file) else { return };
        let pointers: BTreeSet<&str> = diagnostics.iter().flat_map(|diagnostic| around(&diagnostic.pointer)).collect();
        let pointers: Vec<&str> = pointers.into_iter().collect();
        let positions: BTreeMap<String, (usize, usize)> = pointers
            .iter()
            .zip(locate(text, &pointers))
            .filter_map(|(pointer, position)| Some(((*pointer).to_owned(), position?)))
            .collect();
        for diagnostic in diagnostics {
            diagnostic.document = Some(location.clone());
            let found = || around(&diagnostic.pointer).find_map(|pointer| positions.get(pointer).copied());
            diagnostic.position = diagnostic.position.or_else(found);
        }
    }
}

/// What follows a pointer in one of a place at it or below.
fn below<'p>(pointer: &'p str, above: &str) -> Option<&'p str> {
    pointer.strip_prefix(above).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A pointer, and those of the places around it, up to the root.
fn around(pointer: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(pointer), |pointer| Some(pointer.rsplit_once('/')?.0))
}
