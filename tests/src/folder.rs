//! Folders for packages that tests write and Cargo builds.

use std::fs::{self, File};
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// Where all is built, so that what is there already is not built again.
pub fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// A folder where all is built. It is at the same place in every run, so that Cargo builds nothing twice, and belongs to one
/// process at a time: another one waits until this is dropped.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// The folder of that name, as soon as nobody else has it.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(root: &Path, name: &str) -> io::Result<Self> {
        let path = target(root).join(name);
        fs::create_dir_all(&path)?;
        let lock = File::options().create(true).append(true).open(path.with_extension("lock"))?;
        lock.lock()?;
        Ok(Self { path, _lock: lock })
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}
