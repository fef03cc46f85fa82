//! The sandbox in which programs run: its limits and turns.

use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Semaphore;

use crate::BoxFuture;
use crate::model::clock::{millis, since_epoch};
use crate::program::functions::Functions;
use crate::program::host::Host;
use crate::program::journal::{Journal, hash};
use crate::program::limits::Limits;
use crate::program::outcome::{Failure, Outcome, Reason, Report};
use crate::program::run::Run;
use crate::program::store::StoredJournal;

/// How long a program runs before other programs get their turn.
pub(super) const TURN: Duration = Duration::from_millis(10);

/// A program: the body of an async function in JavaScript, with its functions and its input.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Program {
    /// The source.
    pub source: String,
    /// The names by which it calls operations.
    pub functions: Arc<Functions>,
    /// The value of the variable `input`.
    pub input: Value,
    /// The servers of its operations, such as their URLs.
    pub place: String,
}

impl Program {
    /// A program, and the names by which it calls operations.
    pub fn new(source: impl Into<String>, functions: impl Into<Arc<Functions>>) -> Self {
        Self { source: source.into(), functions: functions.into(), input: Value::Null, place: String::new() }
    }

    /// Sets the value of the variable `input`, which is `null` by default.
    #[must_use]
    pub fn with_input(mut self, input: impl Into<Value>) -> Self {
        self.input = input.into();
        self
    }

    /// Sets the servers of its operations, such as their URLs; empty by default.
    ///
    /// A program is not resumed with the journal of one whose operations have other servers: it would take the results
    /// of one server for those of another.
    #[must_use]
    pub fn with_place(mut self, place: impl Into<String>) -> Self {
        self.place = place.into();
        self
    }

    /// A hash of the program, its input and its place.
    fn hash(&self) -> String {
        let (source, input) = (self.source.as_bytes(), self.input.to_string());
        match self.place.as_str() {
            // As in journals of programs without a place.
            "" => hash(&[source, input.as_bytes()]),
            place => hash(&[source, input.as_bytes(), place.as_bytes()]),
        }
    }
}

/// Runs untrusted programs.
///
/// A clone is the same sandbox: its programs share the limits of all programs. Programs take turns, so that none waits
/// for the end of another, and a program that waits for its calls occupies no thread.
#[derive(Debug, Clone)]
pub struct Sandbox {
    pub(super) limits: Arc<Limits>,
    /// A permit for each concurrent program.
    pub(super) programs: Arc<Semaphore>,
    /// A permit for each processor.
    pub(super) turns: Arc<Semaphore>,
    /// Bytes of memory of all programs.
    pub(super) memory: Arc<AtomicUsize>,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new(Limits::new())
    }
}

impl Sandbox {
    /// A sandbox with these limits.
    pub fn new(limits: Limits) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            programs: Arc::new(Semaphore::new(limits.programs.clamp(1, Semaphore::MAX_PERMITS))),
            turns: Arc::new(Semaphore::new(processors)),
            memory: Arc::default(),
            limits: Arc::new(limits),
        }
    }

    /// The limits of its programs.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Runs a program from its start. It needs a tokio runtime with a timer.
    pub fn run<'a>(&'a self, program: &'a Program, host: &'a dyn Host) -> BoxFuture<'a, Report> {
        Box::pin(async move {
            let journal = self.journal(program);
            Run::new(self, program, host, journal, None).run().await
        })
    }

    /// Resumes a program that waited: runs it again, with the results in its journal.
    pub fn resume<'a>(&'a self, program: &'a Program, journal: Journal, host: &'a dyn Host) -> BoxFuture<'a, Report> {
        Box::pin(async move {
            if !journal.is_of(&program.hash()) {
                return differs();
            }
            Run::new(self, program, host, journal, None).run().await
        })
    }

    /// Runs a program with a stored journal, or resumes it if there is a journal with that name.
    ///
    /// The journal is saved before and after each call that changes something, so a process that is killed and started
    /// again makes no such call twice. A call whose result was lost fails with the code `OUTCOME_UNKNOWN`; a query is
    /// repeated. No other task or process runs the program of this journal at the same time. The journal stays in the
    /// store when the program has ended, for the caller to remove.
    ///
    /// When a program fails, temporary errors are removed from the journal: errors of queries, and refusals, after
    /// which it made no call. A run with this journal makes those calls again, and no others.
    pub fn run_stored<'a>(
        &'a self,
        program: &'a Program,
        kept: &'a StoredJournal<'_>,
        host: &'a dyn Host,
    ) -> BoxFuture<'a, Report> {
        Box::pin(async move {
            let failed = |message: String| Report::failed(Failure::new(Reason::Journal, message));
            let is_missing = || failed("there is no such journal, or no longer".to_owned());
            // Before the lock: locking a missing journal would leave a file behind that is never removed.
            if kept.must_exist && matches!(kept.store.load(kept.name).await, Ok(None)) {
                return is_missing();
            }
            let _hold = match kept.store.hold(kept.name).await {
                Ok(hold) => hold,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return failed("the program is under way already: wait for its end".to_owned());
                }
                Err(error) => return failed(format!("the journal cannot be held: {error}")),
            };
            let mut journal = match kept.store.load(kept.name).await {
                Ok(Some(journal)) if !journal.is_of(&program.hash()) => return differs(),
                Ok(Some(journal)) => journal,
                // Another run has ended it meanwhile.
                Ok(None) if kept.must_exist => return is_missing(),
                Ok(None) => self.journal(program),
                Err(error) => return failed(format!("the journal cannot be read: {error}")),
            };
            if let Err(message) = kept.take_answers(&mut journal).await {
                return failed(message);
            }
            Run::new(self, program, host, journal, Some(kept)).run().await
        })
    }

    fn journal(&self, program: &Program) -> Journal {
        Journal::new(program.hash(), now())
    }
}

fn differs() -> Report {
    let message = "the journal is one of another program or input, or of operations that lead elsewhere: run the program from its start, without it";
    Report::failed(Failure::new(Reason::Differs, message))
}

impl Report {
    pub(super) fn failed(failure: Failure) -> Self {
        let (logs, warnings) = (Vec::new(), Vec::new());
        Self { outcome: Outcome::Failed(failure), logs, calls: 0, warnings, has_gone_on: false, had_pending: false }
    }
}

/// Milliseconds since 1970.
pub(super) fn now() -> u64 {
    millis(since_epoch())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::sync::OwnedSemaphorePermit;

    use super::*;
    use crate::{CallError, Decision};

    /// Takes all turns of a sandbox with the first call.
    struct Busy(Arc<Semaphore>, Mutex<Option<OwnedSemaphorePermit>>);

    impl Host for Busy {
        fn call<'a>(&'a self, _: &'a str, input: Value) -> BoxFuture<'a, Result<Value, CallError>> {
            Box::pin(async move {
                let all = u32::try_from(self.0.available_permits()).unwrap();
                *self.1.lock().unwrap() = self.0.clone().try_acquire_many_owned(all).ok();
                Ok(input)
            })
        }

        fn decide(&self, _: &str, _: &Value) -> Decision {
            Decision::Allow
        }

        fn is_query(&self, _: &str) -> bool {
            true
        }
    }

    #[tokio::test]
    async fn what_was_written_is_told_of_a_program_whose_time_runs_out_before_its_turn() {
        let functions: Functions = [("t", "echo", "t.echo")].into_iter().collect();
        let program = Program::new("console.log('seen'); await ops.t.echo(1); return 2", functions);
        // A busy machine, or one that has yet to start the engine, may need more time until the call.
        let mut report = None;
        for seconds in [1, 10, 60] {
            let sandbox = Sandbox::new(Limits::new().with_time(Duration::from_secs(seconds)));
            let host = Busy(sandbox.turns.clone(), Mutex::default());
            let ran = sandbox.run(&program, &host).await;
            if host.1.lock().unwrap().is_some() {
                report = Some(ran);
                break;
            }
        }
        let report = report.expect("a program that gets to its call");
        assert!(matches!(&report.outcome, Outcome::Failed(failed) if failed.reason == Reason::Time), "{report:?}");
        assert_eq!(report.logs.iter().map(|log| log.text.as_str()).collect::<Vec<_>>(), ["seen"]);
    }
}
