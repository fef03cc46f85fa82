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
    Failure::Usage(format!("`{}` cannot be written: {error}", file.display()))
}

/// Writes the data to a file, or to standard output for `-`.
pub(super) fn save(envelope: ResponseEnvelope<Value>, spec: &OperationSpec, file: &Path) -> Result<(), Failure> {
    tell_warnings(&envelope);
    let bytes = bytes(&envelope, spec);
    let is_binary = bytes.is_some();
    let content = match bytes {
        Some(bytes) => bytes,
        None => match text_of(&envelope) {
            Some(text) => text.into_bytes(),
            None => format!("{:#}\n", envelope.data).into_bytes(),
        },
    };
    if file != Path::new("-") {
        std::fs::write(file, &content).map_err(|error| unwritable(file, &error))?;
        tell("note", &format!("`{}` has the {} bytes of the answer", file.display(), content.len()));
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
    let schema = spec.output_schema().ok()?;
    let text = envelope.data.as_str().filter(|_| is_bytes(&views(vec![&schema], &schema)))?;
    STANDARD.decode(text).ok()
}
