//! Overlays: documents that change others (OpenAPI Overlay Specification 1.0 and 1.1), applied before references are
//! followed.

mod action;
mod edit;
mod origin;

use ops_runtime::openapi::{self, FileSource, Source, SourceError};
use ops_runtime::spec::{Diagnostic, Severity};
use serde_json::Value;

use self::action::{Action, Change, actions};
use self::edit::{Draft, kind};
use self::origin::Origins;
use crate::jsonpath::Steps;

/// How many nodes the targets of one overlay may visit.
const STEPS: usize = 100_000_000;

/// A document that overlays have changed.
#[derive(Debug)]
pub(crate) struct Overlaid {
    location: String,
    /// The document as it is now, as JSON.
    text: String,
    /// What the document itself says that is not in its value, such as a repeated key; its place is known.
    parsed: Vec<Diagnostic>,
    /// The files of the document and of the overlays, and where each place comes from.
    origins: Origins,
    files: FileSource,
}

impl Overlaid {
    /// Reads a document and overlays, and applies them in their order; adds warnings to the diagnostics.
    pub(crate) fn read(
        location: &str,
        overlays: &[String],
        files: FileSource,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Result<Self, Vec<Diagnostic>> {
        let read = |path: &str| -> Result<(String, Value, Vec<Diagnostic>), Vec<Diagnostic>> {
            let unreadable = |error: SourceError| Diagnostic::error("", error.message).with_document(path);
            let text = files.read(path, path).map_err(|error| vec![unreadable(error)])?;
            let (value, told) =
                openapi::parse_with_diagnostics(&text).map_err(|error| vec![error.with_document(path)])?;
            Ok((text, value, told))
        };
        let (text, value, mut parsed) = read(location)?;
        let mut origins = Origins::new(location, text);
        origins.locate_in(0, &mut parsed);
        diagnostics.extend(parsed.iter().cloned());
        let mut draft = Draft::new(value);
        for path in overlays {
            let (text, overlay, mut told) = read(path)?;
            let number = origins.add(path, text);
            let actions = actions(&overlay, &mut told);
            extends(&overlay, location, path, &mut told);
            let is_valid = told.iter().all(|diagnostic| diagnostic.severity < Severity::Error);
            if is_valid {
                apply(&actions, &mut draft, number, &mut told);
            }
            Diagnostic::bound(&mut told);
            origins.locate_in(number, &mut told);
            if told.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
                return Err(told);
            }
            diagnostics.append(&mut told);
        }
        origins.edits = draft.edits;
        Ok(Self { location: location.to_owned(), text: draft.value.to_string(), parsed, origins, files })
    }

    /// The files that were read.
    pub(crate) fn files(&self) -> Vec<std::path::PathBuf> {
        self.files.files()
    }

    /// The files that references led to and that are not there.
    pub(crate) fn missing(&self) -> Vec<std::path::PathBuf> {
        self.files.missing()
    }

    /// The document as it is now.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Gives diagnostics of the document as it is now their places in the files: those of the document, or of the
    /// overlay that put the part there.
    pub(crate) fn place(&self, diagnostics: &mut [Diagnostic]) {
        let ours = |diagnostic: &&mut Diagnostic| {
            diagnostic.document.as_ref() == Some(&self.location)
                && diagnostic.position.is_some()
                && !self.parsed.contains(&**diagnostic)
        };
        self.origins.place(diagnostics.iter_mut().filter(ours).collect());
    }
}

impl Source for Overlaid {
    fn read(&self, location: &str, root: &str) -> Result<String, SourceError> {
        if location == self.location { Ok(self.text.clone()) } else { self.files.read(location, root) }
    }

    fn resolve(&self, base: &str, reference: &str) -> String {
        self.files.resolve(base, reference)
    }
}

/// Warns if an overlay was written for another file.
fn extends(overlay: &Value, location: &str, path: &str, told: &mut Vec<Diagnostic>) {
    let Some(extends) = overlay.get("extends").and_then(Value::as_str) else { return };
    let meant = FileSource::new().resolve(path, extends);
    let real = |path: &str| std::path::Path::new(path).canonicalize().ok();
    // Nothing is known of URLs and of files that are not there.
    if real(&meant).is_some_and(|meant| real(location) != Some(meant)) {
        let message = format!("the overlay extends `{extends}`, and is applied to `{location}`");
        told.push(Diagnostic::warning("/extends", message));
    }
}

/// Applies the actions, each to the result of those before.
fn apply(actions: &[Action<'_>], draft: &mut Draft, overlay: usize, told: &mut Vec<Diagnostic>) {
    let mut steps = Steps::new(STEPS);
    for action in actions {
        let place = |field: &str| format!("/actions/{}/{field}", action.index);
        let Some(mut targets) = action.target.select(&draft.value, &mut steps) else {
            let message = "the targets of the overlay take too long to find: use fewer `..` and `*`";
            told.push(Diagnostic::error(place("target"), message));
            return;
        };
        if targets.is_empty() {
            let message = "the target matches nothing, so that the action changes nothing";
            told.push(Diagnostic::warning(place("target"), message));
            continue;
        }
        // In the order of the document, each once.
        let mut seen = std::collections::HashSet::new();
        targets.retain(|target| seen.insert(target.clone()));
        let (update, field) = match &action.change {
            Change::Remove => {
                if let Err(message) = draft.remove(&targets) {
                    told.push(Diagnostic::error(place("remove"), message));
                }
                continue;
            }
            Change::Update(update) => ((*update).clone(), "update"),
            Change::Copy(from) => match from.select(&draft.value, &mut steps).as_deref() {
                Some([one]) => (draft.value.pointer(one).cloned().unwrap_or_default(), "copy"),
                Some(found) => {
                    let message = format!("`copy` must select one node, and selects {}", found.len());
                    told.push(Diagnostic::error(place("copy"), message));
                    continue;
                }
                None => {
                    let message = "the node to copy takes too long to find: use fewer `..` and `*`";
                    told.push(Diagnostic::error(place("copy"), message));
                    return;
                }
            },
        };
        if let Err((pointer, message)) = mixed(&targets, draft, action)
            .map_or(Ok(()), |message| Err((place("target"), message)))
            .and_then(|()| draft.merge(&targets, &update, overlay, &place(field), field == "copy"))
        {
            told.push(Diagnostic::error(pointer, message));
        }
    }
}

/// Why the targets cannot be updated, if they cannot: the kinds of their values.
fn mixed(targets: &[String], draft: &Draft, action: &Action<'_>) -> Option<String> {
    let kinds = targets.iter().filter_map(|target| draft.value.pointer(target)).map(kind);
    let kinds: std::collections::BTreeSet<&str> = kinds.collect();
    if kinds.len() > 1 {
        let kinds: Vec<&str> = kinds.into_iter().collect();
        return Some(format!("the target matches {}: all must be of one kind", kinds.join(" and ")));
    }
    let is_old = action.is_old && kinds.contains("values");
    is_old.then(|| {
        "the target is neither an object nor a list: update the object around it, or write `overlay: 1.1.0`".to_owned()
    })
}

#[cfg(test)]
mod tests;
