//! The caller of a program's operations, which notes what the user should know about the calls.

use std::collections::{BTreeMap, HashSet};
use std::fs::DirEntry;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use ops_runtime::envelope::Warning;
use ops_runtime::program::{Host, JournalStore};
use ops_runtime::registry::EnvelopeStream;
use ops_runtime::spec::OperationSpec;
use ops_runtime::{Call, CallError, CallOptions, Caller, ErrorCode, Registry, ResponseEnvelope, Subscribe};
use serde_json::Value;

use super::tell;
use crate::call::{is_of_output, told};

/// How many warnings about answers are printed.
const TOLD: usize = 20;

/// What the user should know about the calls of a run.
#[derive(Default)]
pub(super) struct Notes {
    /// The operations that may have changed something, each with the number of calls.
    changed: Mutex<BTreeMap<String, usize>>,
    /// The number of warnings about answers.
    warnings: AtomicUsize,
}

impl Notes {
    fn with_changed(&self, act: impl FnOnce(&mut BTreeMap<String, usize>)) {
        act(&mut self.changed.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Prints the warnings about an answer, unless there were too many already.
    fn warn(&self, id: &str, warnings: &[Warning]) {
        let before = self.warnings.fetch_add(warnings.len(), Ordering::Relaxed);
        for warning in warnings.iter().take(TOLD.saturating_sub(before)) {
            tell("warning", &format!("an answer of `{id}`: {}", told(warning)));
        }
    }

    /// Prints how many warnings were not printed.
    pub(super) fn tell_rest(&self) {
        let rest = self.warnings.load(Ordering::Relaxed).saturating_sub(TOLD);
        if rest > 0 {
            tell("warning", &format!("there are {rest} more warnings about answers"));
        }
    }

    /// Prints which calls of a failed run may have changed something.
    pub(super) fn tell_changed(&self) {
        self.with_changed(|changed| {
            if let Some(calls) = listed(changed) {
                let message = "in this run, the program called what changes something, and what was done stays done";
                tell("note", &format!("{message}: {calls}"));
            }
        });
    }
}

/// Operations with the numbers of their calls; `None` if there are none.
fn listed(calls: &BTreeMap<String, usize>) -> Option<String> {
    let all: Vec<String> = calls.iter().map(|(id, count)| format!("`{id}` ({count})")).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// What a run that did not end well leaves in the folder of its journal; `None` if it is nothing to know of. The journal may
/// be that of another program, from which the run differs.
pub(super) async fn left(
    folder: &Path,
    store: &dyn JournalStore,
    name: &str,
    host: &dyn Host,
    differs: bool,
) -> Option<String> {
    let (folder, calls) = (folder.display(), calls(store, name).await);
    if differs {
        return Some(match calls.map(|calls| listed(&changes(&calls, host))) {
            None => format!("`{folder}` cannot be read"),
            Some(None) => format!("no call in `{folder}` changed something"),
            Some(Some(calls)) => {
                format!("`{folder}` has calls that may have changed something, and they stay made: {calls}")
            }
        });
    }
    let calls = calls?;
    let has = |wanted: &str| calls.iter().any(|call| call.get("state").is_some_and(|state| state == wanted));
    let is_approved = |call: &Value| call.get("approved").is_some_and(|approved| approved == true);
    if has("started") {
        Some(format!(
            "`{folder}` keeps the calls that were made, and what was answered: the same command goes on from there, and without this folder it makes them again"
        ))
    } else if has("declined") || calls.iter().any(is_approved) {
        Some(format!("`{folder}` keeps what was answered: without this folder, the same command asks again"))
    } else {
        None
    }
}

/// A warning for a run without a journal, if the folder has journals of other paths: one of them may be of this script, under
/// another path. `None` if the run has a journal, or if the folder has none at all.
pub(super) async fn others(folder: &Path, store: &dyn JournalStore, name: &str) -> Option<String> {
    if !matches!(store.load(name).await, Ok(None)) {
        return None;
    }
    // A store gives such names to the files of journals that are named by paths.
    let is_journal = |entry: &DirEntry| {
        entry.file_name().to_str().is_some_and(|name| name.starts_with("h-") && name.ends_with(".json"))
    };
    let count = std::fs::read_dir(folder).ok()?.flatten().filter(is_journal).count();
    (count > 0).then(|| {
        let folder = folder.display();
        format!(
            "`{folder}` has no journal of `{name}`, so the program makes every call. Journals of scripts at other paths: {count}. \
             If one is of this script, which was moved or is named by a link, its calls are made again"
        )
    })
}

/// The calls of a journal; `None` if there is none, or if it cannot be read.
async fn calls(store: &dyn JournalStore, name: &str) -> Option<Vec<Value>> {
    let json = store.load(name).await.ok()??.to_json().ok()?;
    let journal: Value = serde_json::from_str(&json).ok()?;
    Some(journal.get("calls").and_then(Value::as_array).cloned().unwrap_or_default())
}

/// Those of a journal's calls that may have changed something, each operation with the number of its calls.
fn changes(calls: &[Value], host: &dyn Host) -> BTreeMap<String, usize> {
    let mut changed: BTreeMap<String, usize> = BTreeMap::new();
    for call in calls {
        let word = |key: &str| call.get(key).and_then(Value::as_str);
        if let (Some(id), Some("started")) = (word("id"), word("state"))
            && !host.is_query(id)
            && !call.pointer("/answer/error").is_some_and(was_refused)
        {
            *changed.entry(id.to_owned()).or_default() += 1;
        }
    }
    changed
}

/// True if the call of an error in a journal was not made.
fn was_refused(error: &Value) -> bool {
    let word = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let details = error.get("details").cloned().unwrap_or_default();
    is_refused(&CallError::new(ErrorCode::from(word("code")), word("message")).with_details(details))
}

/// A registry whose calls are noted.
pub(super) struct Watched {
    registry: Registry,
    /// The operations that may change something.
    changing: HashSet<String>,
    notes: Arc<Notes>,
}

impl Watched {
    pub(super) fn new(registry: Registry, specs: &[OperationSpec], notes: Arc<Notes>) -> Self {
        let changing = specs.iter().filter(|spec| spec.may_change());
        Self { registry, changing: changing.map(|spec| spec.id.to_string()).collect(), notes }
    }

    /// Notes a call that begins: it may have been carried out even if its result is not awaited.
    fn begins(&self, id: &str) {
        if self.changing.contains(id) {
            self.notes.with_changed(|changed| *changed.entry(id.to_owned()).or_default() += 1);
        }
    }

    /// Takes back the note of a call that failed before it was made.
    fn failed(&self, id: &str, error: &CallError) {
        if self.changing.contains(id) && is_refused(error) {
            self.notes.with_changed(|changed| {
                if let Some(count) = changed.get_mut(id) {
                    *count -= 1;
                }
                changed.retain(|_, count| *count > 0);
            });
        }
    }
}

impl Caller for Watched {
    async fn execute_with<Op: Call>(
        &self,
        input: impl Into<Op::Input> + Send,
        options: CallOptions,
    ) -> Result<ResponseEnvelope<Op::Output>, CallError> {
        self.registry.execute_with::<Op>(input, options).await
    }

    async fn subscribe_with<Op: Subscribe>(
        &self,
        input: impl Into<Op::Input> + Send,
        options: CallOptions,
    ) -> Result<EnvelopeStream<Op::Output>, CallError> {
        self.registry.subscribe_with::<Op>(input, options).await
    }

    async fn call_with(
        &self,
        id: &str,
        input: Value,
        options: CallOptions,
    ) -> Result<ResponseEnvelope<Value>, CallError> {
        self.begins(id);
        let result = self.registry.call_with(id, input, options).await;
        match &result {
            Ok(envelope) => self.notes.warn(id, &envelope.warnings),
            Err(error) => self.failed(id, error),
        }
        result
    }

    async fn stream_with(
        &self,
        id: &str,
        input: Value,
        options: CallOptions,
    ) -> Result<EnvelopeStream<Value>, CallError> {
        self.begins(id);
        let stream = self.registry.stream_with(id, input, options).await;
        let stream = stream.inspect_err(|error| self.failed(id, error))?;
        let (id, notes) = (id.to_owned(), self.notes.clone());
        let noted = stream.inspect(move |item| {
            if let Ok(envelope) = item {
                notes.warn(&id, &envelope.warnings);
            }
        });
        Ok(noted.boxed())
    }
}

/// True if a call was not made, because its input is invalid. An error with a status is an answer to a call.
fn is_refused(error: &CallError) -> bool {
    let has_status = error.details().get("statusCode").is_some();
    *error.code() == ErrorCode::ValidationError && !has_status && !is_of_output(error)
}
