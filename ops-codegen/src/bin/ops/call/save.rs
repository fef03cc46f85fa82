//! The data of a call, in a file.

use std::io::{IsTerminal, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ops_runtime::ResponseEnvelope;
use ops_runtime::spec::OperationSpec;
use serde_json::Value;

use super::{tell, tell_warnings, text_of};
use crate::failure::Failure;
use crate::input::{is_bytes, views};

/// Refuses a file that cannot be written, before a call is made whose answer would be lost.
pub(super) fn check(file: &Path) -> Result<(), Failure> {
    if file == Path::new("-") {
        return Ok(());
    }
    let is_new = !file.exists();
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
    opened.map_err(|error| unwritable(file, &error))?;
    if is_new {
        std::fs::remove_file(file).map_err(|error| unwritable(file, &error))?;
    }
    Ok(())
}

fn unwritable(file: &Path, error: &std::io::Error) -> Failure {
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
    let mut stdout = std::io::stdout().lock();
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

/// The bytes that the answer is; `None` if it is another value.
fn bytes(envelope: &ResponseEnvelope<Value>, spec: &OperationSpec) -> Option<Vec<u8>> {
    let schema = spec.output_schema().ok()?;
    let text = envelope.data.as_str().filter(|_| is_bytes(&views(vec![&schema], &schema)))?;
    STANDARD.decode(text).ok()
}
