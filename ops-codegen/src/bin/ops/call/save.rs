//! The data of a call, in a file.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ops_runtime::ResponseEnvelope;
use ops_runtime::spec::OperationSpec;
use serde_json::Value;

use super::{tell, tell_warnings, text_of};
use crate::failure::Failure;
use crate::input::{is_bytes, views};

/// How many links to files are followed.
const LINKS: usize = 40;

/// Refuses a file that cannot be written, before a call is made whose result would be lost. Nothing is changed.
pub(super) fn check(file: &Path) -> Result<(), Failure> {
    if file == Path::new("-") {
        return Ok(());
    }
    let mut place = file.to_owned();
    for _ in 0..LINKS {
        match probe(&place) {
            Probe::Done(done) => return done.map_err(|error| unwritable(file, &error)),
            // The target of the link does not exist yet, and will be written.
            Probe::Link(to) => place = place.parent().unwrap_or(Path::new("")).join(to),
        }
    }
    Err(unwritable(file, &io::Error::other("it leads to too many links")))
}

enum Probe {
    Done(io::Result<()>),
    Link(PathBuf),
}

/// Finds out if a file can be written, by the system's own rules: it is opened as it will be, but not emptied.
fn probe(file: &Path) -> Probe {
    let is_there = match OpenOptions::new().write(true).create_new(true).open(file) {
        // It was created just now, so it is ours.
        Ok(_) => return Probe::Done(std::fs::remove_file(file)),
        Err(error) => error.kind() == io::ErrorKind::AlreadyExists,
    };
    match std::fs::metadata(file) {
        // Opening a pipe waits for its reader, which would take its closing for the end.
        Ok(data) if !data.is_file() && !data.is_dir() => Probe::Done(Ok(())),
        Err(error) if is_there && error.kind() == io::ErrorKind::NotFound => match std::fs::read_link(file) {
            Ok(to) => Probe::Link(to),
            Err(error) => Probe::Done(Err(error)),
        },
        _ => Probe::Done(OpenOptions::new().append(true).open(file).map(drop)),
    }
}

fn unwritable(file: &Path, error: &io::Error) -> Failure {
    Failure::Failed(format!("`{}` cannot be written: {error}", file.display()))
}

/// Writes the data to a file, or to standard output for `-`.
pub(super) fn save(envelope: ResponseEnvelope<Value>, spec: &OperationSpec, file: &Path) -> Result<(), Failure> {
    // Without its body, an answer has no data to write, and an older file is worth more.
    if let Some(skipped) = envelope.warnings.iter().find(|warning| warning.expected == "no body") {
        let (file, found) = (file.display(), &skipped.found);
        let message = format!("`{file}` is not written: the document describes no body, and the answer has {found}");
        return Err(Failure::Failed(format!("{message}. Describe it, by an overlay for example")));
    }
    tell_warnings(&envelope);
    let bytes = bytes(&envelope, spec);
    let is_binary = bytes.is_some();
    let (content, is_json) = match bytes.or_else(|| text_of(&envelope).map(String::into_bytes)) {
        Some(content) => (content, false),
        None => (format!("{:#}\n", envelope.data).into_bytes(), true),
    };
    if file != Path::new("-") {
        std::fs::write(file, &content).map_err(|error| unwritable(file, &error))?;
        let (file, size) = (file.display(), content.len());
        let note = match (&envelope.data, is_json) {
            (_, false) => format!("`{file}` has the {size} bytes of the answer"),
            (Value::Null, true) => format!("`{file}` has `null`, because the answer has no data"),
            // The server may have written it without line breaks.
            (_, true) => format!("`{file}` has the answer as JSON, in {size} bytes"),
        };
        tell("note", &note);
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    if is_binary && stdout.is_terminal() {
        let message = "the answer is bytes, which are not for a terminal: name a file by `--output`";
        return Err(Failure::Failed(message.to_owned()));
    }
    // Other data may hold commands for a terminal.
    let written = if stdout.is_terminal() {
        stdout.write_all(crate::report::clean(&String::from_utf8_lossy(&content)).as_bytes())
    } else {
        stdout.write_all(&content)
    };
    written.and_then(|()| stdout.flush()).map_err(Failure::output)
}

/// The bytes of the result; `None` if it is another value.
fn bytes(envelope: &ResponseEnvelope<Value>, spec: &OperationSpec) -> Option<Vec<u8>> {
    let text = envelope.data.as_str()?;
    let schema = spec.output_schema().ok()?;
    let is_base64 = is_bytes(&views(vec![&schema], &schema)) || came_as_bytes(envelope, spec);
    if is_base64 { STANDARD.decode(text).ok() } else { None }
}

/// True if the client read the response as bytes, which it has in base64, whatever the schema says.
fn came_as_bytes(envelope: &ResponseEnvelope<Value>, spec: &OperationSpec) -> bool {
    let Some(meta) = envelope.meta.as_http() else { return false };
    let described = spec.http().into_iter().flat_map(|binding| binding.responses.iter());
    let described = described.filter(|response| response.status.contains(meta.status_code));
    let described = described.filter_map(|response| Some((response.status, response.content_type.as_deref()?)));
    let described = described.filter(|(_, content_type)| is_specific(content_type));
    // Ranges of statuses are ordered from the most to the least specific.
    let best = described.clone().map(|(status, _)| status).min();
    let described: Vec<&str> = described.filter(|(status, _)| Some(*status) == best).map(|(_, kind)| kind).collect();
    is_read_as_bytes(&meta.content_type, &described)
}

/// True if the client reads a response of this type as bytes, where these are described for its status.
fn is_read_as_bytes(came: &str, described: &[&str]) -> bool {
    // If only bytes are described, the type that came does not matter.
    if !described.is_empty() && !described.iter().any(|kind| is_text(kind)) {
        return true;
    }
    match essence(came).as_str() {
        "" => false,
        // Only if all that is described is text are bytes of no specific type read as text, too.
        "application/octet-stream" => {
            described.is_empty() || !described.iter().all(|kind| is_text(kind) && !is_json(kind))
        }
        came => !is_text(came),
    }
}

/// True if a described content type tells how the client reads a response: a range does not, nor does a stream.
fn is_specific(content_type: &str) -> bool {
    !matches!(essence(content_type).as_str(), "" | "*" | "*/*" | "application/*" | "text/event-stream")
}

fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// True for the types of JSON documents.
fn is_json(content_type: &str) -> bool {
    let essence = essence(content_type);
    let sub = essence.split_once('/').map_or("", |(_, sub)| sub);
    matches!(sub, "json" | "x-json") || sub.ends_with("+json")
}

/// True for the types that the client reads as JSON or as text.
fn is_text(content_type: &str) -> bool {
    let essence = essence(content_type);
    let Some((kind, sub)) = essence.split_once('/') else { return false };
    // These may be written with `x-` as well; of the others, only the names that are listed are known to the client.
    let formats = ["json", "jsonl", "jsonlines", "ndjson", "yaml"];
    let others = [
        "csv",
        "ecmascript",
        "graphql",
        "javascript",
        "jose",
        "json-lines",
        "json-seq",
        "jwt",
        "sql",
        "toml",
        "x-json-stream",
        "x-pem-file",
        "x-www-form-urlencoded",
        "xml",
    ];
    let own = sub.strip_prefix("x-").unwrap_or(sub);
    let is_suffix = |suffix: &str| ["json", "json-seq", "xml", "yaml"].contains(&suffix);
    kind == "text"
        || kind == "application" && (formats.contains(&own) || others.contains(&sub))
        || sub.rsplit_once('+').is_some_and(|(_, suffix)| is_suffix(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_from_text_as_the_client_tells_them() {
        let table: &[(&str, &[&str], bool)] = &[
            ("application/javascript", &[], false),
            ("application/x-javascript", &[], true),
            ("application/x-sql", &[], true),
            ("application/x-yaml; charset=utf-8", &[], false),
            ("application/x-ndjson", &[], false),
            ("application/json-seq", &[], false),
            ("application/qlog+json-seq", &[], false),
            ("image/svg+xml", &[], false),
            ("image/png", &["text/plain"], true),
            ("text/plain", &["image/png"], true),
            ("", &["image/png"], true),
            ("application/json", &["application/zip"], true),
            ("application/json", &["application/zip", "application/json"], false),
            ("", &[], false),
            ("application/octet-stream", &[], true),
            ("application/octet-stream", &["text/csv"], false),
            ("application/octet-stream", &["text/csv", "application/zip"], true),
            ("application/octet-stream", &["text/csv", "application/json"], true),
            ("application/octet-stream", &["application/json"], true),
            ("application/octet-stream", &["application/hal+json"], true),
        ];
        for (came, described, expected) in table {
            assert_eq!(is_read_as_bytes(came, described), *expected, "{came:?} where {described:?}");
        }
    }

    #[test]
    fn a_file_beside_errors_in_json_is_bytes() {
        use ops_runtime::binding::{Binding, HttpBinding, HttpResponse, StatusRange};
        use ops_runtime::envelope::HttpMeta;
        use ops_runtime::spec::OperationKind;

        let mut binding = HttpBinding::owned("GET", "/export");
        binding.responses = vec![
            HttpResponse::owned(StatusRange::Exact(200), "*/*"),
            HttpResponse::owned(StatusRange::Default, "application/json"),
        ]
        .into();
        let mut spec = OperationSpec::new(OperationKind::Query, "t", "export").unwrap();
        spec.binding = Binding::Http(binding);
        for (came, expected) in [("application/octet-stream", true), ("text/csv", false), ("application/json", false)] {
            let envelope = ResponseEnvelope::new(Value::from("Y2Fm6Q=="), HttpMeta::new(200, came));
            assert_eq!(came_as_bytes(&envelope, &spec), expected, "{came}");
        }
    }

    #[test]
    fn ranges_are_not_specific() {
        for content_type in ["*/*", "application/*", "", "text/event-stream"] {
            assert!(!is_specific(content_type), "{content_type}");
        }
        assert!(is_specific("image/*") && is_specific("image/png"));
    }
}
