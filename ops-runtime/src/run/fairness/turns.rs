//! Work that goes on in turns.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context as Task, Poll, ready};
use std::time::{Duration, Instant};

use tokio::time::{Sleep, sleep};

use super::cost::{Cost, Next, Turn};
use super::nanoseconds;
use crate::BoxFuture;

/// How long a peer keeps its turn while a request of it is in work, parts of which may run in other tasks.
const KEEP: Duration = Duration::from_millis(5);

/// From which duration on a piece of work is long, so that everything else would wait for it.
const LONG: Duration = Duration::from_millis(1);

/// A turn that is kept while a request is in work.
struct Kept {
    cost: Arc<Cost>,
    until: Pin<Box<Sleep>>,
    _turn: Turn,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.cost.is_kept.store(false, Ordering::Relaxed);
    }
}

/// Runs the work of a peer in turns, if necessary.
#[derive(Default)]
pub(crate) struct Turns {
    waiting: Option<BoxFuture<'static, Turn>>,
    kept: Option<Kept>,
    is_reader: bool,
}

impl Turns {
    /// Turns of the task that reads the peer. It waits for the peer's other tasks, so that no more is read than is
    /// done, but not for long: it may read that the other tasks are aborted.
    pub(crate) fn of_reader() -> Self {
        Self { is_reader: true, ..Self::default() }
    }

    /// Does a piece of work, when it may be done, and measures its time.
    pub(crate) fn poll<T>(
        &mut self,
        cost: &Arc<Cost>,
        task: &mut Task<'_>,
        work: impl FnOnce(&mut Task<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let mut turn = None;
        if self.kept.as_mut().is_some_and(|kept| kept.until.as_mut().poll(task).is_ready()) {
            self.kept = None;
        }
        if self.waiting.is_none() && self.kept.is_none() {
            match cost.turn(self.is_reader) {
                Some(Next::Now(given)) => turn = Some(given),
                Some(Next::Later(waiting)) => self.waiting = Some(waiting),
                None => {}
            }
        }
        if let Some(waiting) = &mut self.waiting {
            let given = ready!(Pin::new(waiting).poll(task));
            self.waiting = None;
            cost.waited.fetch_add(nanoseconds(given.waited), Ordering::Relaxed);
            turn = Some(given);
        }
        let began = Instant::now();
        let polled = work(task);
        let ended = Instant::now();
        let took = ended.saturating_duration_since(began);
        cost.add(took, ended);
        if took >= LONG && !cost.pace.spares_alike {
            cost.pace.note(&cost.long, ended);
        }
        if turn.is_some() || self.kept.is_some() {
            cost.pace.done.fetch_add(nanoseconds(took), Ordering::Relaxed);
        }
        if polled.is_ready() || cost.in_work.load(Ordering::Relaxed) == 0 {
            self.kept = None;
        } else if let Some(turn) = turn {
            let mut until = Box::pin(sleep(KEEP));
            // Polled so that the timer wakes the task.
            if until.as_mut().poll(task).is_pending() {
                cost.is_kept.store(true, Ordering::Relaxed);
                self.kept = Some(Kept { cost: cost.clone(), until, _turn: turn });
            }
        }
        polled
    }

    /// Does pieces of work until there is a result.
    pub(crate) async fn run<T>(&mut self, cost: &Arc<Cost>, mut work: impl FnMut(&mut Task<'_>) -> Poll<T>) -> T {
        poll_fn(|task| self.poll(cost, task, &mut work)).await
    }
}

/// Runs a task of a peer in turns.
pub(crate) async fn in_turns<T>(task: impl Future<Output = T>, cost: Arc<Cost>) -> T {
    let mut task = pin!(task);
    Turns::default().run(&cost, |context| task.as_mut().poll(context)).await
}
