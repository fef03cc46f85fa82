//! The only layer between a caller and a handler: panics, deadline and cancellation.
//!
//! One hand-written future instead of nested async blocks, because each layer costs every call.

use std::future::Future;
use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context as Task, Poll, ready};
use std::time::{Duration, Instant};

use futures_core::Stream;
use pin_project_lite::pin_project;
use serde_json::json;
use tokio::time::Sleep;

use crate::model::clock::millis;
use crate::model::futures::{BoxFuture, BoxStream};
use crate::run::cancel::Cancelled;
use crate::run::context::{OpeningUntil, deadline_after, earlier, now};
use crate::{CallError, CancelToken, Context, ErrorCode, OperationSpec, SpecRef};

/// How much later than its timer a task may run that waits for nothing else, on a busy machine.
const LATE: Duration = Duration::from_millis(20);

/// How long a nested call whose deadline has passed holds its error back: the precision of a timer.
const MOMENT: Duration = Duration::from_millis(1);

/// What ends a call from outside; the timer and the listener are made only when the handler has to wait.
pub(crate) struct Limits {
    deadline: Option<Instant>,
    timeout: Option<Duration>,
    cancel: Option<CancelToken>,
    waiting: Option<Box<Waiting>>,
    /// True until the first poll, if the call may end before it.
    is_new: bool,
    /// True if a handler made the call: it then ends with the handler's own.
    is_nested: bool,
    /// The error of a nested call, from when its limits end the call until the handler gets it.
    held_back: Option<BoxFuture<'static, CallError>>,
}

/// The timer and the listener of a waiting call.
struct Waiting {
    timer: Option<Pin<Box<Sleep>>>,
    cancelled: Option<Cancelled>,
}

impl Limits {
    #[inline]
    pub(crate) fn of(context: &Context) -> Self {
        let cancel = context.cancel_token().cloned();
        let is_new = context.deadline.is_some() || cancel.is_some();
        let is_nested = context.extra.as_ref().is_some_and(|extra| extra.parent.is_some());
        Self { deadline: context.deadline, cancel, is_new, is_nested, ..Self::within(context.timeout) }
    }

    /// The limits of a call that has none but the operation's own timeout.
    #[inline]
    pub(super) fn within(timeout: Option<Duration>) -> Self {
        Self { deadline: None, timeout, cancel: None, waiting: None, is_new: false, is_nested: false, held_back: None }
    }

    /// The limits of opening a subscription, and those of its items: the operation's own timeout continues from one to
    /// the other, until the first item. It is removed from the context, since the work of the handler may go on after
    /// it. An endpoint that opens the subscription gets it as [`OpeningUntil`].
    pub(crate) fn of_subscription(context: &mut Context) -> (Self, SubscriptionLimits) {
        let first_item = context.timeout.take().and_then(deadline_after);
        if let Some(deadline) = first_item {
            context.put_own(OpeningUntil(deadline));
        }
        let context = &*context;
        let deadline = earlier(context.deadline, first_item);
        let opening = Self { deadline, is_new: true, ..Self::of(context) };
        let idle = context.extra.as_ref().and_then(|extra| extra.idle_timeout);
        (opening, SubscriptionLimits { limits: Self::of(context), first_item, idle })
    }

    /// An error if the call was cancelled, or its deadline has passed, before it began.
    #[inline]
    fn check(&self) -> Result<(), CallError> {
        match (&self.cancel, self.deadline) {
            (None, None) => Ok(()),
            (Some(token), _) if token.is_cancelled() => Err(aborted()),
            (_, Some(deadline)) if deadline <= now() => Err(timed_out()),
            _ => Ok(()),
        }
    }

    /// True if the error of the call is held back, because it is a nested call that has ended with its limits.
    ///
    /// The handler's own call ends by the same limits, but it looks at them only while its handler waits. A handler that got
    /// the error at once would go on in the same poll, and return a result for a call that has ended. If it retried in a loop,
    /// nothing would ever end it.
    #[cold]
    #[inline(never)]
    fn holds_back(&self) -> bool {
        self.is_nested && self.check().is_err()
    }

    /// Holds the error back until the task has yielded once. After a deadline, it is held back for a moment more: the nested call
    /// may be in another task, and an operation's own timeout counts from when its handler first waits, a little after its nested
    /// calls begin.
    #[cold]
    #[inline(never)]
    fn hold_back(&mut self, error: CallError, task: &mut Task<'_>) -> Poll<CallError> {
        // A token needs no timers, so the runtime may have none.
        let is_timed = self.deadline.is_some() && tokio::runtime::Handle::try_current().is_ok();
        // The task is not woken here, because some combinators poll a future again if it wakes itself.
        let held_back = self.held_back.insert(Box::pin(async move {
            match is_timed {
                true => tokio::time::sleep(MOMENT).await,
                false => tokio::task::yield_now().await,
            }
            error
        }));
        held_back.as_mut().poll(task)
    }

    /// The error that was held back; `None` if there is none.
    #[inline]
    fn poll_held_back(&mut self, task: &mut Task<'_>) -> Option<Poll<CallError>> {
        let held_back = self.held_back.as_mut()?;
        let polled = held_back.as_mut().poll(task);
        if polled.is_ready() {
            self.held_back = None;
        }
        Some(polled)
    }

    fn poll(&mut self, task: &mut Task<'_>) -> Poll<CallError> {
        let Waiting { timer, cancelled } = match &mut self.waiting {
            Some(waiting) => &mut **waiting,
            None if self.deadline.is_none() && self.timeout.is_none() && self.cancel.is_none() => return Poll::Pending,
            None => match Waiting::start(self.deadline, self.timeout, self.cancel.as_ref()) {
                Ok(waiting) => self.waiting.insert(Box::new(waiting)),
                Err(error) => return Poll::Ready(error),
            },
        };
        if let Some(cancelled) = cancelled
            && cancelled.poll(task).is_ready()
        {
            return Poll::Ready(aborted());
        }
        match timer {
            // Checked before it is polled: a handler that uses up tokio's budget would keep the timer from firing.
            Some(timer) if tokio::time::Instant::now() >= timer.deadline() => Poll::Ready(timed_out()),
            Some(timer) => timer.as_mut().poll(task).map(|()| timed_out()),
            None => Poll::Pending,
        }
    }
}

impl Waiting {
    fn start(
        deadline: Option<Instant>,
        timeout: Option<Duration>,
        cancel: Option<&CancelToken>,
    ) -> Result<Self, CallError> {
        let deadline = earlier(deadline, timeout.and_then(deadline_after));
        if deadline.is_some() && tokio::runtime::Handle::try_current().is_err() {
            return Err(CallError::execution("a deadline needs a tokio runtime"));
        }
        Ok(Self {
            timer: deadline.map(|deadline| Box::pin(tokio::time::sleep_until(deadline.into()))),
            cancelled: cancel.map(CancelToken::listen),
        })
    }
}

/// The limits of a subscription's items.
pub(crate) struct SubscriptionLimits {
    /// What ends the subscription as a whole: the caller's deadline and token.
    limits: Limits,
    /// When the operation's own timeout ends while the subscription is opened. What is left then is for the first item.
    first_item: Option<Instant>,
    idle: Option<Duration>,
}

/// Ends a subscription whose reader waits too long for an item. It does not count while no item is asked for.
struct Wait {
    timeout: Duration,
    error: fn(Duration) -> CallError,
    timer: Option<Pin<Box<Sleep>>>,
    /// True if a reader waits, so that the timer counts.
    armed: bool,
}

impl Wait {
    fn new(timeout: Duration, error: fn(Duration) -> CallError) -> Self {
        Self { timeout, error, timer: None, armed: false }
    }

    /// Waits while there is no item.
    fn poll(&mut self, task: &mut Task<'_>) -> Poll<CallError> {
        if !self.armed {
            // By tokio's clock, as below: a test may have paused it, and it is then ahead of the system's. A time too
            // far away to be represented means no limit.
            let Some(deadline) = tokio::time::Instant::now().checked_add(self.timeout) else { return Poll::Pending };
            match &mut self.timer {
                Some(timer) => timer.as_mut().reset(deadline),
                None if tokio::runtime::Handle::try_current().is_err() => {
                    return Poll::Ready(CallError::execution("the timeout of an item needs a tokio runtime"));
                }
                None => self.timer = Some(Box::pin(tokio::time::sleep_until(deadline))),
            }
            self.armed = true;
        }
        let Some(timer) = &mut self.timer else { return Poll::Pending };
        // Checked before it is polled: a stream that uses up tokio's budget would keep the timer from firing.
        if tokio::time::Instant::now() < timer.deadline() {
            ready!(timer.as_mut().poll(task));
        }
        // A reader that waits is polled when the timer fires. One that polls later has done something else, and waits
        // from now.
        let late = tokio::time::Instant::now().saturating_duration_since(timer.deadline());
        if late <= (self.timeout / 4).max(LATE) {
            return Poll::Ready((self.error)(self.timeout));
        }
        self.armed = false;
        self.poll(task)
    }
}

fn silent(timeout: Duration) -> CallError {
    let message = format!("the subscription stayed silent for {timeout:?}");
    let error = CallError::new(ErrorCode::Timeout, message).with_details(json!({ "idleTimeout": millis(timeout) }));
    error.by_this_process()
}

pub(crate) fn timed_out() -> CallError {
    CallError::new(ErrorCode::Timeout, "the deadline passed before the operation was done").by_this_process()
}

fn aborted() -> CallError {
    CallError::new(ErrorCode::Aborted, "the call was cancelled").by_this_process()
}

/// The error of an operation's handler that panicked. The panic's message is only logged, since it may contain anything.
fn panicked(panic: &(dyn std::any::Any + Send), spec: &OperationSpec) -> CallError {
    tracing::error!(operation = spec.id.as_ref(), panic = panic_text(panic), "a handler panicked");
    CallError::new(ErrorCode::UnknownError, "the handler panicked")
}

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let message = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    message.unwrap_or("(not text)")
}

/// Starts a handler. `start` also makes its guard.
#[inline]
pub(crate) fn begin<R>(spec: &OperationSpec, start: impl FnOnce() -> R) -> Result<R, CallError> {
    catch_unwind(AssertUnwindSafe(start)).map_err(|panic| panicked(&*panic, spec))
}

pin_project! {
    /// A handler's future under its limits.
    pub(crate) struct Guard<F> {
        // `None` when it has ended, or if it may not begin.
        #[pin]
        work: Option<F>,
        limits: Limits,
        // The handler's operation, for the log.
        spec: SpecRef,
    }

    impl<F> PinnedDrop for Guard<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            // A completed call has nothing left to drop.
            if this.work.is_some() {
                guarded(this.spec, || this.work.set(None));
            }
        }
    }
}

/// The future of a handler that does not take the operation's types.
pub(crate) type Boxed<T> = Guard<BoxFuture<'static, Result<T, CallError>>>;

impl<F> Guard<F> {
    /// The guard of a handler that `start` starts. If the call has ended already, the handler is not started, and the first
    /// poll returns the error.
    #[inline]
    pub(crate) fn new(start: impl FnOnce() -> F, limits: Limits, spec: SpecRef) -> Self {
        Self { work: limits.check().is_ok().then(start), limits, spec }
    }

    /// Like `new`; what the handler does before its first await is guarded like the rest.
    // Does not use `begin`, which would move the guard once more.
    #[inline]
    pub(crate) fn start(limits: Limits, spec: &SpecRef, start: impl FnOnce() -> F) -> Result<Self, CallError> {
        match catch_unwind(AssertUnwindSafe(|| limits.check().is_ok().then(start))) {
            Ok(work) => Ok(Self { work, limits, spec: spec.clone() }),
            Err(panic) => Err(panicked(&*panic, spec)),
        }
    }
}

impl<T, F: Future<Output = Result<T, CallError>>> Future for Guard<F> {
    type Output = Result<T, CallError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(error) = this.limits.poll_held_back(task) {
            return error.map(Err);
        }
        let mut output = None;
        let polled = catch_unwind(AssertUnwindSafe(|| {
            if take(&mut this.limits.is_new)
                && let Err(error) = this.limits.check()
            {
                output = Some(Err(error));
                this.work.set(None);
                return;
            }
            let polled = match this.work.as_mut().as_pin_mut() {
                Some(work) => work.poll(task),
                None => Poll::Ready(Err(aborted())),
            };
            let polled = if polled.is_pending() { this.limits.poll(task).map(Err) } else { polled };
            if let Poll::Ready(ready) = polled {
                output = Some(ready);
                // Its locals may panic when they are dropped: here, so that nothing has to be caught twice.
                this.work.set(None);
            }
        }));
        if let Err(panic) = polled {
            // A result from before the panic counts.
            output.get_or_insert(Err(panicked(&*panic, this.spec)));
            guarded(this.spec, || this.work.set(None));
        }
        match output {
            Some(Err(error)) if this.limits.holds_back() => this.limits.hold_back(error, task).map(Err),
            Some(output) => Poll::Ready(output),
            None => Poll::Pending,
        }
    }
}

/// Drops a handler's future or stream, whose locals may panic when they are dropped.
fn guarded(spec: &OperationSpec, drop: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(drop)) {
        panicked(&*panic, spec);
    }
}

/// A handler's stream under its limits: the caller's deadline applies to the stream as a whole, the operation's own
/// timeout to the time that its reader waits for the first item.
pub(crate) struct StreamGuard<T> {
    work: Option<BoxStream<'static, Result<T, CallError>>>,
    limits: Limits,
    /// What is left of the operation's own timeout, until the first item.
    first_item: Option<Wait>,
    idle: Option<Wait>,
    /// The handler's operation, for the log.
    spec: SpecRef,
}

impl<T> StreamGuard<T> {
    pub(crate) fn new(
        work: BoxStream<'static, Result<T, CallError>>,
        limits: SubscriptionLimits,
        spec: SpecRef,
    ) -> Self {
        let SubscriptionLimits { limits, first_item, idle } = limits;
        let left = |deadline: Instant| deadline.saturating_duration_since(now());
        Self {
            work: Some(work),
            limits,
            first_item: first_item.map(|deadline| Wait::new(left(deadline), |_| timed_out())),
            idle: idle.map(|timeout| Wait::new(timeout, silent)),
            spec,
        }
    }
}

impl<T> Stream for StreamGuard<T> {
    type Item = Result<T, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Option<Self::Item>> {
        let Self { work, limits, first_item, idle, spec } = &mut *self;
        if let Some(error) = limits.poll_held_back(task) {
            return error.map(|error| Some(Err(error)));
        }
        let Some(stream) = work else { return Poll::Ready(None) };
        let polled = catch_unwind(AssertUnwindSafe(|| {
            // The limits come first: a stream that always has an item ready must end, too.
            if let Poll::Ready(error) = limits.poll(task) {
                return Poll::Ready(Some(Err(error)));
            }
            if let Poll::Ready(item) = stream.as_mut().poll_next(task) {
                return Poll::Ready(item.map(Ok));
            }
            for wait in [&mut *first_item, &mut *idle].into_iter().flatten() {
                if let Poll::Ready(error) = wait.poll(task) {
                    return Poll::Ready(Some(Err(error)));
                }
            }
            Poll::Pending
        }));
        let end = match polled {
            Ok(Poll::Ready(Some(Ok(item)))) => {
                *first_item = None;
                if let Some(idle) = idle {
                    idle.armed = false;
                }
                return Poll::Ready(Some(item));
            }
            Ok(Poll::Ready(Some(Err(error)))) => Some(error),
            Ok(Poll::Ready(None)) => None,
            Ok(Poll::Pending) => return Poll::Pending,
            Err(panic) => Some(panicked(&*panic, spec)),
        };
        guarded(spec, || *work = None);
        match end {
            Some(error) if limits.holds_back() => limits.hold_back(error, task).map(|error| Some(Err(error))),
            end => Poll::Ready(end.map(Err)),
        }
    }
}

impl<T> Drop for StreamGuard<T> {
    fn drop(&mut self) {
        // A completed call has nothing left to drop.
        if self.work.is_some() {
            let Self { work, spec, .. } = self;
            guarded(spec, || *work = None);
        }
    }
}

#[cfg(all(test, any(feature = "http-server", feature = "mcp-server")))]
mod tests {
    use super::*;

    /// Servers show these texts, also for operations of other servers.
    #[test]
    fn how_a_call_ends_here_is_said_by_this_process() {
        for error in [silent(Duration::from_secs(1)), timed_out(), aborted()] {
            assert!(error.is_by_this_process(), "{error}");
        }
    }
}
