//! What can be read only once: standard input, and pipes such as that of `<(git show main:api.yaml)`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ops_runtime::spec::Diagnostic;

use crate::failure::Failure;
use crate::modules::is_url;

/// The name of a document from standard input in messages.
pub(crate) const STDIN: &str = "<stdin>";

/// What was read, by how it is named, for all that look into it.
static TEXTS: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// True for what can be read only once.
pub(crate) fn is_stream(spec: &str) -> bool {
    let path = Path::new(spec);
    // On some systems, even a file is read on from where it was left if it comes by one of these names.
    let is_open = || path.starts_with("/dev/fd") || path == Path::new("/dev/stdin");
    let is_once = || path.metadata().is_ok_and(|it| !it.is_dir() && (!it.is_file() || is_open()));
    spec == "-" || !is_url(spec) && is_once()
}

/// The text of a stream, which is read to its end the first time.
pub(crate) fn read_stream(spec: &str) -> Result<String, Failure> {
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = texts.get(spec) {
        return Ok(text.clone());
    }
    let text = if spec == "-" {
        read_stdin()?
    } else {
        std::fs::read_to_string(spec).map_err(|error| {
            let message = format!("the document cannot be read: {error}");
            Failure::Unreadable(vec![Diagnostic::error("", message).with_document(spec)])
        })?
    };
    texts.insert(spec.to_owned(), text.clone());
    Ok(text)
}

/// What was read of streams, with their names in messages.
pub(crate) fn texts() -> Vec<(String, String)> {
    let texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    texts.iter().map(|(spec, text)| (label(spec).to_owned(), text.clone())).collect()
}

/// The text of a file or a stream, to see what it is: empty if it cannot be read, which its reader tells.
pub(crate) fn look_into(spec: &str) -> String {
    if is_stream(spec) {
        read_stream(spec).unwrap_or_default()
    } else {
        std::fs::read_to_string(spec).unwrap_or_default()
    }
}

/// The name of a stream in messages.
pub(crate) fn label(spec: &str) -> &str {
    if spec == "-" { STDIN } else { spec }
}

pub(crate) fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    match std::io::stdin().read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => {
            let message = format!("standard input cannot be read: {error}");
            Err(Failure::Unreadable(vec![Diagnostic::error("", message)]))
        }
    }
}
