//! Where journals are kept.

use std::collections::BTreeMap;
use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::BoxFuture;
use crate::model::random;
use crate::program::journal::{Journal, hash};

/// Where journals are kept, by names that callers choose.
pub trait JournalStore: Send + Sync {
    /// The journal with the name; `None` if there is none.
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Option<Journal>>>;

    /// Keeps the journal. When this is done, the journal outlives the process and the machine.
    fn save<'a>(&'a self, name: &'a str, journal: &'a Journal) -> BoxFuture<'a, io::Result<()>>;

    /// Removes the journal, if there is one.
    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<()>>;
}

/// Journals in memory, which end with the process.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<BTreeMap<String, Journal>>);

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<String, Journal>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl JournalStore for MemoryStore {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Option<Journal>>> {
        Box::pin(async move { Ok(self.with(|all| all.get(name).cloned())) })
    }

    fn save<'a>(&'a self, name: &'a str, journal: &'a Journal) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            self.with(|all| all.insert(name.to_owned(), journal.clone()));
            Ok(())
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            self.with(|all| all.remove(name));
            Ok(())
        })
    }
}

/// Journals as files of a folder, which is made if it is missing.
///
/// A file is written whole beside the one that it replaces, so that a process that is killed leaves one of the two. On
/// Unix, only the user can read the files.
#[derive(Debug, Clone)]
pub struct FolderStore(PathBuf);

impl FolderStore {
    /// The journals of a folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// The file of a journal. A name that is no plain word is hashed, so that none leads out of the folder.
    fn path(&self, name: &str) -> PathBuf {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if !name.is_empty() && name.len() <= 64 && !name.starts_with("h-") && name.bytes().all(is_plain) {
            return self.0.join(format!("j-{name}.json"));
        }
        self.0.join(format!("h-{}.json", hash(&[name.as_bytes()])))
    }
}

impl JournalStore for FolderStore {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Option<Journal>>> {
        let path = self.path(name);
        Box::pin(blocking(move || match std::fs::read_to_string(&path) {
            Ok(text) => Journal::from_json(&text).map(Some).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }))
    }

    fn save<'a>(&'a self, name: &'a str, journal: &'a Journal) -> BoxFuture<'a, io::Result<()>> {
        let (folder, path) = (self.0.clone(), self.path(name));
        Box::pin(async move {
            let text = journal.to_json().map_err(io::Error::other)?;
            blocking(move || write(&folder, &path, text.as_bytes())).await
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<()>> {
        let path = self.path(name);
        Box::pin(blocking(move || match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }))
    }
}

async fn blocking<T: Send + 'static>(act: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(act).await.map_err(io::Error::other)?
}

fn write(folder: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let fresh = path.with_extension(format!("{:016x}.new", random::number()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&fresh).and_then(|mut file| {
        file.write_all(text)?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| std::fs::rename(&fresh, path)) {
        // What is left of it would only take room.
        let _ = std::fs::remove_file(&fresh);
        return Err(error);
    }
    // The new name is kept by the folder.
    #[cfg(unix)]
    std::fs::File::open(folder)?.sync_all()?;
    Ok(())
}
