//! Stores of journals.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{File, TryLockError};
use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use tokio::sync::OwnedMutexGuard;

use crate::BoxFuture;
use crate::model::lock::lock;
use crate::model::random;
use crate::program::journal::{Journal, hash};
use crate::program::outcome::Ask;

/// A store of journals, by names that callers choose.
pub trait JournalStore: Send + Sync {
    /// The journal with the name; `None` if there is none.
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Option<Journal>>>;

    /// Saves the journal. When this has completed, the journal survives a crash of the process and of the machine.
    ///
    /// # Errors
    /// Of the kind `FileTooLarge` if the store keeps no journal of this size: a later run with the same program would fail again.
    fn save<'a>(&'a self, name: &'a str, journal: &'a Journal) -> BoxFuture<'a, io::Result<()>>;

    /// Locks the journal, so that no other task or process runs its program, until the result is dropped.
    ///
    /// A run that is dropped may leave a [`save`](Self::save) that is still being written. Others are kept out until it has ended: it
    /// would put an older journal in the place of theirs.
    ///
    /// # Errors
    /// Of the kind `WouldBlock` if it is locked.
    fn hold<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Hold>>;

    /// Removes the journal, if there is one.
    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<()>>;
}

/// A lock on a journal: until it is dropped, no other task or process can run the program.
pub struct Hold(#[allow(dead_code, reason = "it acts when it is dropped")] Box<dyn Send + Sync>);

impl Hold {
    /// A lock that is released when the value is dropped.
    pub fn new(value: impl Send + Sync + 'static) -> Self {
        Self(Box::new(value))
    }
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hold")
    }
}

/// A journal in a store, with answers to its pending calls.
///
/// Answers that the journal has already change nothing, so they may be given again after a crash.
#[derive(Clone)]
pub struct StoredJournal<'a> {
    pub(super) store: &'a dyn JournalStore,
    pub(super) name: &'a str,
    pub(super) must_exist: bool,
    answers: Vec<(String, bool)>,
    /// Told of each call that the answers decline, when the journal has them.
    declined: Option<&'a (dyn Fn(&Ask) + Send + Sync)>,
    /// The time at which the call that runs the program ends. `None` if the call has no deadline.
    pub(super) deadline: Option<Instant>,
}

impl<'a> StoredJournal<'a> {
    /// The journal with the name, which is created if there is none.
    pub fn new(store: &'a dyn JournalStore, name: &'a str) -> Self {
        Self { store, name, must_exist: false, answers: Vec::new(), declined: None, deadline: None }
    }

    /// Refuses to run the program if there is no journal with that name: it would run from its start.
    #[must_use]
    pub fn existing(mut self) -> Self {
        self.must_exist = true;
        self
    }

    /// Approves the call with this key.
    #[must_use]
    pub fn with_approved(mut self, key: impl Into<String>) -> Self {
        self.answers.push((key.into(), true));
        self
    }

    /// Declines the call with this key.
    #[must_use]
    pub fn with_declined(mut self, key: impl Into<String>) -> Self {
        self.answers.push((key.into(), false));
        self
    }

    /// Sets the time at which the call that runs the program ends. The run fails at that time, unless its own time limit ends
    /// it before.
    #[cfg(feature = "gateway")]
    pub(crate) fn with_deadline(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Called once for each declined call, as soon as the journal has the answer.
    #[cfg(feature = "gateway")]
    pub(crate) fn with_told_of_declined(mut self, declined: &'a (dyn Fn(&Ask) + Send + Sync)) -> Self {
        self.declined = Some(declined);
        self
    }

    /// Takes the answers of the user, and saves them in the journal.
    ///
    /// # Errors
    /// If an answer has no question, or if the journal cannot be saved.
    pub(super) async fn take_answers(&self, journal: &mut Journal) -> Result<(), String> {
        if self.answers.is_empty() {
            return Ok(());
        }
        let asks = if self.declined.is_some() { journal.asks() } else { Vec::new() };
        for (key, yes) in &self.answers {
            journal.answer(key, *yes).map_err(|error| error.to_string())?;
        }
        let saved = self.store.save(self.name, journal).await;
        saved.map_err(|error| format!("the journal cannot be kept: {error}"))?;
        if let Some(declined) = self.declined {
            let is_declined = |ask: &&Ask| self.answers.iter().any(|(key, yes)| *key == ask.key && !yes);
            asks.iter().filter(is_declined).for_each(declined);
        }
        Ok(())
    }

    /// Saves the answers in the journal, for a program that is not resumed yet.
    ///
    /// # Errors
    /// If the journal cannot be read or saved, if it is locked, or if an answer has no question.
    #[doc(hidden)]
    pub async fn keep_answers(&self) -> io::Result<()> {
        if self.answers.is_empty() {
            return Ok(());
        }
        let _hold = self.store.hold(self.name).await?;
        let Some(mut journal) = self.store.load(self.name).await? else { return Ok(()) };
        self.take_answers(&mut journal).await.map_err(io::Error::other)
    }
}

impl std::fmt::Debug for StoredJournal<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredJournal").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Journals in memory, which end with the process.
#[derive(Debug, Default)]
pub struct MemoryStore {
    journals: Mutex<BTreeMap<String, Journal>>,
    held: Arc<Mutex<BTreeSet<String>>>,
}

/// Releases a name when it is dropped.
struct Held(Arc<Mutex<BTreeSet<String>>>, String);

impl Drop for Held {
    fn drop(&mut self) {
        lock(&self.0).remove(&self.1);
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<String, Journal>) -> T) -> T {
        act(&mut lock(&self.journals))
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

    fn hold<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Hold>> {
        Box::pin(async move {
            let is_free = lock(&self.held).insert(name.to_owned());
            is_free.then(|| Hold::new(Held(self.held.clone(), name.to_owned()))).ok_or(io::ErrorKind::WouldBlock.into())
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            self.with(|all| all.remove(name));
            Ok(())
        })
    }
}

/// Journals as files in a folder, which is created if it is missing.
///
/// A new file is completed before it replaces the old one, so a process that is killed leaves one of the two. On Unix,
/// only the user can read the files.
///
/// A journal stays until it is removed, even if its program waits for an answer and is never resumed. The lock file of
/// [`hold`](JournalStore::hold) is removed with the journal; on systems other than Unix, an empty file stays.
#[derive(Debug, Clone)]
pub struct FolderStore {
    folder: PathBuf,
    /// The locks that are held by this store and its clones, by the files of their journals.
    held: Arc<Mutex<HashMap<PathBuf, Weak<Locked>>>>,
}

/// A file that is locked until the last reference to it is gone, and whose turn it is to write the journal.
type Locked = tokio::sync::Mutex<File>;

impl FolderStore {
    /// The journals of a folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), held: Arc::default() }
    }

    /// Waits until nothing is written to a journal that is held. What this gives keeps the journal from others.
    async fn turn(&self, path: &Path) -> Option<OwnedMutexGuard<File>> {
        let held = lock(&self.held).get(path).and_then(Weak::upgrade);
        match held {
            Some(held) => Some(held.lock_owned().await),
            None => None,
        }
    }

    /// The file of a journal. A name that is not a plain word is hashed, so that none leads out of the folder.
    fn path(&self, name: &str) -> PathBuf {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if !name.is_empty() && name.len() <= 64 && !name.starts_with("h-") && name.bytes().all(is_plain) {
            return self.folder.join(format!("j-{name}.json"));
        }
        self.folder.join(format!("h-{}.json", hash(&[name.as_bytes()])))
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
        let (folder, path) = (self.folder.clone(), self.path(name));
        Box::pin(async move {
            let text = journal.to_json().map_err(io::Error::other)?;
            let turn = self.turn(&path).await;
            // This goes on when nobody waits for it any more, and others get the journal after it.
            let written = blocking(move || {
                let written = write(&folder, &path, text.as_bytes());
                drop(turn);
                written
            });
            written.await
        })
    }

    fn hold<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Hold>> {
        let (folder, path, held) = (self.folder.clone(), self.path(name), self.held.clone());
        Box::pin(blocking(move || {
            std::fs::create_dir_all(&folder)?;
            let options = &mut std::fs::OpenOptions::new();
            let file = lock_file(&path.with_extension("lock"), options.write(true).create(true).truncate(false))?;
            // The system gives the lock up when the process ends.
            let locked = Arc::new(Locked::new(file));
            let mut held = lock(&held);
            held.retain(|_, locked| locked.strong_count() > 0);
            held.insert(path, Arc::downgrade(&locked));
            Ok(Hold::new(locked))
        }))
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<()>> {
        let path = self.path(name);
        Box::pin(async move {
            // What is being written would be there again.
            drop(self.turn(&path).await);
            blocking(move || remove(&path)).await
        })
    }
}

/// Removes a journal, and what holds it unless another does.
fn remove(path: &Path) -> io::Result<()> {
    let lock_path = path.with_extension("lock");
    let held = lock_file(&lock_path, std::fs::OpenOptions::new().write(true));
    remove_file(path)?;
    match held {
        // As long as it is held, nobody has another file of that name.
        Ok(_held) if cfg!(unix) => remove_file(&lock_path),
        // Another runs the program, and removes the file when it removes its journal.
        Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::WouldBlock) => Err(error),
        _ => Ok(()),
    }
}

/// Locks the file with that name.
///
/// Another process may have removed the file meanwhile, and a third may have created and locked a new one: then the
/// lock of the old file is useless, and the new one is tried.
fn lock_file(path: &Path, options: &std::fs::OpenOptions) -> io::Result<File> {
    loop {
        let file = options.open(path)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
            TryLockError::Error(error) => error,
        })?;
        if is_named(&file, path)? {
            return Ok(file);
        }
    }
}

/// True if the path leads to the open file.
#[cfg(unix)]
fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let own = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// True, since locked files are never removed on systems where this cannot be found out.
#[cfg(not(unix))]
fn is_named(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Removes a file, if there is one.
fn remove_file(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
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
        // An incomplete file would only take space.
        let _ = std::fs::remove_file(&fresh);
        return Err(error);
    }
    // The folder stores the new name.
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;
    use crate::program::journal::{Entry, State};

    /// A journal that takes a while to be written.
    fn long() -> Journal {
        let mut journal = Journal::new("long".to_owned(), 0);
        journal.calls.push(Arc::new(Entry::new("t.set".to_owned(), json!("x".repeat(32 << 20)), State::Started)));
        journal
    }

    fn store(name: &str) -> (PathBuf, FolderStore) {
        let folder = std::env::temp_dir().join(format!("ops-store-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        (folder.clone(), FolderStore::new(folder))
    }

    /// A run that is cancelled while its journal is written does not put it in the place of the next one's.
    #[tokio::test]
    async fn a_journal_that_is_being_written_is_held() {
        let (folder, store) = store("held");
        let (long, short) = (long(), Journal::new("short".to_owned(), 0));
        let hold = store.hold("one").await.unwrap();
        assert!(store.save("one", &long).now_or_never().is_none());
        drop(hold);
        let hold = loop {
            match store.hold("one").await {
                Ok(hold) => break hold,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        };
        assert!(store.load("one").await.unwrap() == Some(long));
        store.save("one", &short).await.unwrap();
        store.save("other", &short).await.unwrap();
        drop(hold);
        assert_eq!(store.load("one").await.unwrap(), Some(short));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn a_journal_that_is_removed_while_it_is_written_stays_away() {
        let (folder, store) = store("away");
        let hold = store.hold("one").await.unwrap();
        assert!(store.save("one", &long()).now_or_never().is_none());
        drop(hold);
        store.remove("one").await.unwrap();
        for _ in 0..10 {
            assert!(store.load("one").await.unwrap().is_none());
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
