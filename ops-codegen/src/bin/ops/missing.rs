//! Documents that are not there: what their users may have meant.

use std::path::Path;

use ops_runtime::nearest::{nearest, question};

use crate::modules::is_url;

/// The error of a missing file, with similar names.
pub(crate) fn absent(path: &Path) -> String {
    format!("`{}` does not exist{}", path.display(), similar(path))
}

/// What may have been meant by the location of a document that is not there; `None` if it is there, or if nothing is similar.
pub(crate) fn meant(location: &str) -> Option<String> {
    if is_url(location) || Path::new(location).exists() {
        return None;
    }
    if let Some(rest) = ["https:", "http:"].iter().find_map(|scheme| location.strip_prefix(scheme)) {
        return Some(format!("did you mean `https://{}`?", rest.trim_start_matches('/')));
    }
    let similar = similar(Path::new(location));
    if let Some(question) = similar.strip_prefix(": ") {
        return Some(question.to_owned());
    }
    // The name of a host has dots, and that of a folder seldom has.
    let (host, _) = location.split_once('/')?;
    let is_host = host.contains('.') && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':'));
    let is_plain = host.starts_with(|c: char| c.is_ascii_alphanumeric()) && !Path::new(host).exists();
    (is_host && is_plain).then(|| format!("did you mean `https://{location}`?"))
}

/// The question for files of similar names in the same folder; empty if there are none.
fn similar(path: &Path) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    question(&nearest(&wanted, names.iter().map(String::as_str), 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_its_scheme_is_one() {
        for (location, wanted) in [
            ("example.com/openapi.json", Some("https://example.com/openapi.json")),
            ("localhost.test:8080/x.json", Some("https://localhost.test:8080/x.json")),
            ("https:/example.com/x.json", Some("https://example.com/x.json")),
            ("http:example.com/x.json", Some("https://example.com/x.json")),
            ("https://example.com/x.json", None),
            ("../no/such.json", None),
            ("no-such-folder/x.json", None),
            ("", None),
        ] {
            assert_eq!(meant(location), wanted.map(|url| format!("did you mean `{url}`?")), "{location}");
        }
    }
}
