//! State shared by a running job and its worker.

use std::collections::HashMap;
#[cfg(feature = "mcp-server")]
use std::collections::HashSet;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::durable::id::JobId;
use crate::durable::jobs::Jobs;
use crate::durable::lease::Lease;
use crate::durable::record::JobRecord;
use crate::model::lock::lock;
use crate::model::request_id::Number;
use crate::{CallError, Context, ErrorCode};

/// Counts the running jobs of a worker in a queue, and those of them that wait for steps.
///
/// A job that waits for a step makes room for another, which may be the step. So steps always find room, and there may
/// be more jobs than allowed for a moment when many steps end at once.
pub(super) struct Gate {
    /// Below zero for a moment if a handler has ended and left a task behind that waits for a step.
    running: AtomicIsize,
    waiting: AtomicUsize,
    max_running: usize,
    max_waiting: usize,
    freed: Notify,
    /// Cancelled when the worker stops: steps may find no worker then, so jobs do not wait for them.
    pub(super) draining: CancellationToken,
}

impl Gate {
    pub(super) fn new(max_running: usize, max_waiting: usize) -> Self {
        Self {
            running: AtomicIsize::new(0),
            waiting: AtomicUsize::new(0),
            max_running: max_running.max(1),
            max_waiting,
            freed: Notify::new(),
            draining: CancellationToken::new(),
        }
    }

    /// Waits until there is room, and returns for how many jobs.
    ///
    /// If there is little, jobs that are about to end may do so first, so that jobs are requested by the dozen rather
    /// than one by one.
    pub(super) async fn room(&self) -> usize {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            match self.free() {
                0 => freed.await,
                room if room < self.max_running / 4 => {
                    tokio::task::yield_now().await;
                    // Steps that have ended may have taken the room.
                    match self.free() {
                        0 => {}
                        room => return room,
                    }
                }
                room => return room,
            }
        }
    }

    fn free(&self) -> usize {
        self.max_running.saturating_sub(usize::try_from(self.running.load(Ordering::Acquire)).unwrap_or_default())
    }

    /// Takes a place until the returned guard is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> Place {
        self.running.fetch_add(1, Ordering::AcqRel);
        Place(self.clone())
    }

    fn leave(&self) {
        self.running.fetch_sub(1, Ordering::AcqRel);
        self.freed.notify_waiters();
    }
}

/// The place of a job in a worker.
pub(super) struct Place(Arc<Gate>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// The kind of a step; names of different kinds do not conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// An operation.
    Operation,
    /// A closure.
    Closure,
}

/// A running job, for its handler and the calls that it makes.
pub(crate) struct Scope {
    /// The jobs with whose identity it was submitted.
    pub(crate) jobs: Jobs,
    lease: Arc<Lease>,
    /// The deadline of the job and its steps.
    pub(super) deadline: Option<u64>,
    gate: Arc<Gate>,
    /// The steps that it waits for.
    steps: Mutex<Vec<JobId>>,
    /// The names of steps that this attempt has used.
    names: Mutex<HashMap<(Step, String), Use>>,
    /// The numbers of the task's questions that this attempt has asked.
    #[cfg(feature = "mcp-server")]
    questions: Mutex<HashSet<usize>>,
    /// Cancelled when the job is given back, to go on when its steps have ended.
    pub(super) suspended: CancellationToken,
}

impl Scope {
    pub(super) fn new(jobs: Jobs, lease: Arc<Lease>, deadline: Option<u64>, gate: Arc<Gate>) -> Self {
        let (steps, names) = (Mutex::default(), Mutex::default());
        Self {
            jobs,
            lease,
            deadline,
            gate,
            steps,
            names,
            #[cfg(feature = "mcp-server")]
            questions: Mutex::default(),
            suspended: CancellationToken::new(),
        }
    }

    pub(crate) fn job(&self) -> &JobRecord {
        &self.lease.delivery.job
    }

    /// True if an earlier attempt may have begun steps.
    pub(super) fn is_repeated(&self) -> bool {
        self.lease.delivery.deliveries > 1 || self.job().retried
    }

    /// Takes a question of the task for this attempt. Returns `false` if it was taken before.
    #[cfg(feature = "mcp-server")]
    pub(crate) fn take_question(&self, number: usize) -> bool {
        lock(&self.questions).insert(number)
    }

    /// A question that was taken has no answer, and can be taken again.
    #[cfg(feature = "mcp-server")]
    pub(crate) fn leave_question(&self, number: usize) {
        lock(&self.questions).remove(&number);
    }

    /// Assigns a step's name to a call, for the rest of the attempt, even if the step fails.
    ///
    /// It is unknown which of several calls used a name in an earlier attempt: their order may differ, and the one that
    /// failed then would get the result of the next one.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` if another call of this attempt has a step of that name, or if this call has one that gave a
    /// value or still runs: it would get that step's result.
    pub(super) fn name<'a>(&'a self, step: Step, name: &'a str, context: &Context) -> Result<Named<'a>, CallError> {
        let call = context.request;
        let mut names = self.names();
        let used = names.entry((step, name.to_owned())).or_insert(Use { call, is_taken: false });
        let message = if used.call != call {
            format!(
                "another call of this job has a step `{name}`, and would share its result: make its name from what tells \
                 the calls apart, such as a member of the input, or the number of the try if the handler repeats the call"
            )
        } else if used.is_taken {
            format!(
                "this call has a step `{name}` already, and would get its result again, without running this one: give \
                 each step of a handler a name of its own; in a loop, make the name from what the turn is about"
            )
        } else {
            used.is_taken = true;
            return Ok(Named { scope: self, step, name, has_value: false });
        };
        Err(CallError::new(ErrorCode::ValidationError, message))
    }

    fn names(&self) -> MutexGuard<'_, HashMap<(Step, String), Use>> {
        lock(&self.names)
    }

    /// The steps that the job waits for.
    pub(super) fn steps(&self) -> Vec<JobId> {
        lock(&self.steps).clone()
    }

    /// Releases the job's place while it waits for a step. `None` if the worker has too many waiting jobs, or stops:
    /// then the job is given back.
    pub(super) fn wait_for(self: &Arc<Self>, step: &JobId) -> Option<Waiting> {
        let is_full = self.gate.waiting.fetch_add(1, Ordering::AcqRel) >= self.gate.max_waiting;
        let mut steps = lock(&self.steps);
        steps.push(step.clone());
        // Of concurrent steps, the first releases the place and the last takes it again.
        if steps.len() == 1 {
            self.gate.leave();
        }
        drop(steps);
        // From here on, dropping it undoes all of this.
        let waiting = Waiting { scope: self.clone(), step: step.clone() };
        if is_full || self.gate.draining.is_cancelled() {
            return None;
        }
        Some(waiting)
    }

    /// Completes when the worker stops.
    pub(super) async fn draining(&self) {
        self.gate.draining.cancelled().await;
    }
}

/// How an attempt has used the name of a step.
struct Use {
    /// The call that used it: the job's own or a nested one.
    call: Number,
    /// True if the step runs, or gave a value.
    is_taken: bool,
}

/// The name of a step that runs. If the step fails, its call may repeat it.
pub(super) struct Named<'a> {
    scope: &'a Scope,
    step: Step,
    name: &'a str,
    has_value: bool,
}

impl Named<'_> {
    /// The step gave a value.
    pub(super) fn keep(mut self) {
        self.has_value = true;
    }
}

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if !self.has_value
            && let Some(used) = self.scope.names().get_mut(&(self.step, self.name.to_owned()))
        {
            used.is_taken = false;
        }
    }
}

/// A job that waits for a step, until this is dropped.
pub(super) struct Waiting {
    scope: Arc<Scope>,
    step: JobId,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Scope { gate, steps, .. } = &*self.scope;
        gate.waiting.fetch_sub(1, Ordering::AcqRel);
        let mut steps = lock(steps);
        if let Some(at) = steps.iter().position(|step| *step == self.step) {
            steps.swap_remove(at);
        }
        if steps.is_empty() {
            gate.running.fetch_add(1, Ordering::AcqRel);
        }
    }
}
