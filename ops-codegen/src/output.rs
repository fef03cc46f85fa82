//! Writing files so that nothing is compiled again for nothing.

use std::path::Path;

use crate::Error;

/// Writes the file unless it holds the text already; whether it was written.
///
/// # Errors
/// If the file or its folder cannot be written.
pub fn write_if_changed(path: &Path, text: &str) -> Result<bool, Error> {
    if std::fs::read(path).is_ok_and(|bytes| bytes == text.as_bytes()) {
        return Ok(false);
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
    }
    std::fs::write(path, text).map_err(|error| Error::io(path, error))?;
    Ok(true)
}
