//! Where in a document the places are that the generator speaks of: it knows definitions and operations only.

use ops_runtime::openapi::locate;
use ops_runtime::{Diagnostic, OperationSpec};

/// Gives the generator's diagnostics the document, and pointer, line and column in it where the document has the place.
///
/// A definition is where documents keep theirs; one that comes from elsewhere, such as another file, keeps its name.
pub(super) fn place(diagnostics: &mut [Diagnostic], operations: &[OperationSpec], document: &str) {
    let ours = || diagnostics.iter().filter(|diagnostic| diagnostic.document.is_none());
    let candidates: Vec<Vec<String>> = ours().map(|diagnostic| candidates(&diagnostic.pointer, operations)).collect();
    let all: Vec<&str> = candidates.iter().flatten().map(String::as_str).collect();
    let text = if all.is_empty() { String::new() } else { std::fs::read_to_string(document).unwrap_or_default() };
    let mut positions = locate(&text, &all).into_iter();
    let ours = diagnostics.iter_mut().filter(|diagnostic| diagnostic.document.is_none());
    for (diagnostic, candidates) in ours.zip(candidates) {
        diagnostic.document = Some(document.to_owned());
        let mut found = candidates.into_iter().zip(positions.by_ref()).collect::<Vec<_>>().into_iter();
        if let Some((pointer, Some(position))) = found.find(|(_, position)| position.is_some()) {
            diagnostic.pointer = pointer;
            diagnostic.position = Some(position);
        }
    }
}

/// The places in a document that a pointer of the generator may mean, the likeliest first.
fn candidates(pointer: &str, operations: &[OperationSpec]) -> Vec<String> {
    if let Some(rest) = pointer.strip_prefix("/$defs/") {
        let name = rest.split('/').next().unwrap_or(rest);
        let roots = ["/components/schemas/", "/definitions/"];
        return [rest, name].iter().flat_map(|rest| roots.map(|root| format!("{root}{rest}"))).collect();
    }
    let Some(rest) = pointer.strip_prefix("/operations/") else { return Vec::new() };
    let escaped = rest.split('/').next().unwrap_or(rest);
    let id = escaped.replace("~1", "/").replace("~0", "~");
    let http = operations.iter().find(|spec| spec.id == id).and_then(OperationSpec::http);
    http.map(|http| {
        let path = http.path.replace('~', "~0").replace('/', "~1");
        format!("/paths/{path}/{}", http.method.to_lowercase())
    })
    .into_iter()
    .collect()
}
