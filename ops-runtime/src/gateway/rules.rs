//! The rules for every call: the policy, the limits of its caller, and the audit log.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as Task, Poll, ready};
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use serde_json::Value;
use tokio::time::Instant;

use super::approval::{self, Approved, Call, Waiting, Yes};
use super::audit::{Approval, AuditEntry, AuditLog, AuditRecord, files};
use super::caller::CallerId;
use super::limits::{CallPermit, CallerLimits, Entered, Limiter};
use super::size::size_of;
use super::summary::name;
use crate::mcp::McpPeer;
use crate::model::protocol::tool_failed;
use crate::run::ending::Ending;
use crate::run::principal::{ByOwner, Principal};
use crate::run::registry::Entry;
use crate::{
    CallError, CallPolicy, CancelToken, Context, Decision, ErrorCode, OperationSpec, Payload, PayloadStream,
    ResponseEnvelope,
};

/// For how long a call waits for its caller's rate limit, if it waits.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// What becomes of a call that comes too soon for its caller's rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TooSoon {
    /// It is refused, and its caller may retry.
    Refused,
    /// It waits: it is an approved call, or one of a program, which cannot retry.
    Waits,
    /// It begins, and does not count for the rate: it explains a call that was not made.
    Begins,
}

/// The rules for calls.
pub(super) struct Rules {
    policy: CallPolicy,
    limiter: Limiter,
    audit: Option<AuditLog>,
    /// Calls that a user has approved, and that were not made, for example because too many other calls of the caller were in
    /// flight. A call that was cancelled is not among them.
    agreed: Waiting,
}

/// The caller for limits and the audit log: without an identity, all owners are one caller, and all others are another.
pub(super) fn caller_of(principal: &Principal) -> CallerId {
    match principal {
        Principal::Owner => CallerId::connection("owner"),
        Principal::Checked(identity) => CallerId::of(identity.as_deref()),
    }
}

/// An extension of a call: a model makes it.
#[derive(Clone)]
pub(super) struct MadeBy {
    /// The caller, which its identity does not always tell.
    caller: CallerId,
    /// True if the call has reached the rules, and true if it has passed them.
    is_met: Arc<AtomicBool>,
    is_let: Arc<AtomicBool>,
    /// True if the call waits for its caller's rate limit, since its caller cannot retry.
    waits: bool,
}

impl MadeBy {
    pub(super) fn new(caller: &CallerId) -> Self {
        Self { caller: caller.clone(), is_met: Arc::default(), is_let: Arc::default(), waits: false }
    }

    /// The mark of a program's call.
    #[cfg(feature = "program")]
    pub(super) fn of_program(caller: &CallerId) -> Self {
        Self { waits: true, ..Self::new(caller) }
    }

    /// The mark of a call; if it has none, a new one with its identity.
    fn of(context: &Context) -> Self {
        if let Some(marked) = context.extension::<Self>() {
            return marked.clone();
        }
        match context.identity() {
            None if context.extension::<ByOwner>().is_some() => Self::new(&caller_of(&Principal::Owner)),
            identity => Self::new(&CallerId::of(identity)),
        }
    }

    /// True if the operation was run, whatever its result.
    pub(super) fn is_made(&self) -> bool {
        self.is_let.load(Ordering::Relaxed)
    }
}

impl Rules {
    pub(super) fn new(policy: CallPolicy, limits: CallerLimits, audit: Option<AuditLog>) -> Self {
        Self { policy, limiter: Limiter::new(limits), audit, agreed: Waiting::default() }
    }

    /// True if calls are written to an audit log.
    pub(super) fn has_audit(&self) -> bool {
        self.audit.is_some()
    }

    /// The policy's decision for an operation.
    pub(super) fn decide(&self, spec: &OperationSpec) -> Decision {
        self.policy.decide(spec)
    }

    /// Waits until the audit log has written all calls that have ended, as long as the end of a process should wait.
    pub(super) async fn flush(&self) {
        if let Some(log) = &self.audit {
            log.flush_for_end().await;
        }
    }

    /// Admits a call, after asking the user and waiting if necessary. `check` refuses inputs before the user is asked.
    ///
    /// # Errors
    /// The error of `check`; `ACCESS_DENIED` if the policy or the user refuses the call; `APPROVAL_NEEDED` if no user
    /// can be asked; `TOO_MANY_REQUESTS` beyond the limits of its caller; those of an audit log that is required.
    pub(super) async fn admit(
        &self,
        operation: &Entry,
        input: &Payload,
        context: &Context,
        check: impl Fn(&Value) -> Result<(), CallError> + Send,
    ) -> Result<Passed, CallError> {
        let spec = &*operation.spec;
        let made_by = MadeBy::of(context);
        made_by.is_met.store(true, Ordering::Relaxed);
        // The gate of another gateway may have let the call of a program pass, and this one may refuse it: then nothing is changed.
        if made_by.waits {
            made_by.is_let.store(false, Ordering::Relaxed);
        }
        let mut record = match &self.audit {
            None => None,
            Some(log) => {
                let entry =
                    AuditEntry::new(context.request_id(), spec.id.clone(), spec.kind).with_caller(&made_by.caller);
                let told = || match value(input) {
                    Cow::Borrowed(input) => files::told(operation, input, Some(context)),
                    Cow::Owned(input) => Cow::Owned(files::told(operation, &input, Some(context)).into_owned()),
                };
                let record = log.begin_as(entry, size_of_input(input, context), told)?;
                Some(record.with_deadline(context.deadline))
            }
        };
        let admitted = self.pass(operation, input, context, check, &made_by, &mut record).await;
        match admitted {
            Ok(permit) => Ok(Passed { record, permit }),
            Err(error) => {
                if let Some(record) = record {
                    record.finish(Err(&error));
                }
                Err(error)
            }
        }
    }

    /// Refuses an input with members that its handler would ignore, and writes that to the audit log.
    pub(super) fn check_members(&self, operation: &Entry, input: &Value, context: &Context) -> Result<(), CallError> {
        operation.check_members(input, context).inspect_err(|error| self.refused(operation, input, context, error))
    }

    /// Writes to the audit log that a call was refused before the rules, for example for its input.
    pub(super) fn refused(&self, operation: &Entry, input: &Value, context: &Context, error: &CallError) {
        self.note_refused(&MadeBy::of(context), context.request_id(), operation, input, error);
    }

    /// Like [`refused`](Self::refused), for a call whose caller is known.
    pub(super) fn note_refused(
        &self,
        made_by: &MadeBy,
        request: impl Into<String>,
        operation: &Entry,
        input: &Value,
        error: &CallError,
    ) {
        let Some(log) = self.audit.as_ref().filter(|_| !made_by.is_met.swap(true, Ordering::Relaxed)) else { return };
        let spec = &operation.spec;
        let entry = AuditEntry::new(request, spec.id.clone(), spec.kind).with_caller(&made_by.caller);
        // The call has failed already, even if the log has no room for it.
        let begun = log.begin_as(entry, files::size(input, None), || files::told(operation, input, None));
        if let Ok(record) = begun {
            record.finish(Err(error));
        }
    }

    /// Begins the audit entry of a program's call for which the user is asked.
    ///
    /// # Errors
    /// Those of an audit log that is required.
    #[cfg(feature = "program")]
    pub(super) fn asking(
        &self,
        caller: &CallerId,
        request: impl Into<String>,
        operation: &Entry,
        input: &Value,
    ) -> Result<Asking, CallError> {
        let by = caller.to_string();
        let Some(log) = &self.audit else { return Ok(Asking { record: None, by }) };
        let spec = &operation.spec;
        let entry = AuditEntry::new(request, spec.id.clone(), spec.kind).with_caller(caller);
        let mut record = log.begin_as(entry, files::size(input, None), || files::told(operation, input, None))?;
        record.set_approval(Approval::Asked);
        Ok(Asking { record: Some(record), by })
    }

    /// Counts a call that begins.
    ///
    /// # Errors
    /// A `TOO_MANY_REQUESTS` beyond the limits of the caller.
    pub(super) async fn enter(&self, caller: &CallerId, too_soon: TooSoon) -> Result<Entered, CallError> {
        let until = Instant::now() + MAX_WAIT;
        loop {
            match self.limiter.enter(caller, too_soon != TooSoon::Begins) {
                Err(error) if too_soon == TooSoon::Waits => {
                    let seconds = error.details().get("retryAfter").and_then(Value::as_f64).unwrap_or(1.0);
                    let then =
                        Duration::try_from_secs_f64(seconds).ok().and_then(|wait| Instant::now().checked_add(wait));
                    match then.filter(|then| *then <= until) {
                        Some(then) => tokio::time::sleep_until(then).await,
                        None => return Err(error),
                    }
                }
                entered => return entered,
            }
        }
    }

    async fn pass(
        &self,
        operation: &Entry,
        input: &Payload,
        context: &Context,
        check: impl Fn(&Value) -> Result<(), CallError> + Send,
        made_by: &MadeBy,
        record: &mut Option<AuditRecord>,
    ) -> Result<CallPermit, CallError> {
        let (spec, caller) = (&*operation.spec, &made_by.caller);
        let mut tell = |approval| {
            if let Some(record) = record {
                record.set_approval(approval);
            }
        };
        let decision = self.policy.decide(spec);
        if decision == Decision::Deny {
            tell(Approval::Denied { by: "policy".to_owned() });
            let message = format!("`{}` may not be called: the policy of this gateway denies it", name(&spec.id));
            return Err(CallError::new(ErrorCode::AccessDenied, message));
        }
        // Before the user is asked: a call that waits for an answer counts, too.
        let is_approved = context.extension::<Approved>().is_some();
        let too_soon = if is_approved || made_by.waits { TooSoon::Waits } else { TooSoon::Refused };
        let entered = self.enter(caller, too_soon).await?;
        let agreed = match decision {
            Decision::Ask if is_approved => {
                tell(Approval::Approved { by: caller.to_string() });
                None
            }
            Decision::Ask => match McpPeer::of(context) {
                Some(peer) => {
                    let input = value(input);
                    check(&input)?;
                    tell(Approval::Asked);
                    let by = caller.to_string();
                    let call = match self.agreed.take(caller, &spec.id, &input) {
                        Some(call) => call,
                        None => {
                            let key = approval::key(&spec.id, &input);
                            if let Err(error) = approval::ask(&peer, &key, operation, &input, Some(context)).await {
                                if *error.code() == ErrorCode::AccessDenied {
                                    tell(Approval::Denied { by });
                                }
                                return Err(error);
                            }
                            Call::new(caller, &spec.id, &input)
                        }
                    };
                    tell(Approval::Approved { by });
                    // All callers without an identity count as one caller, but may have several users: no approval is kept.
                    (*caller != CallerId::of(None)).then_some(call)
                }
                // A model without a client, such as one that this process calls.
                None if context.extension::<MadeBy>().is_some() => {
                    check(&value(input))?;
                    return Err(approval::needed(spec));
                }
                // Other callers than models decide themselves.
                None => None,
            },
            Decision::Allow | Decision::Deny => None,
        };
        // An approval is used up when the call is made, and withdrawn when it is cancelled. Until then, the user is not asked
        // again.
        let _yes = agreed.map(|call| Yes::new(&self.agreed, call, made_by, context));
        let permit = entered.admit().await?;
        made_by.is_let.store(true, Ordering::Relaxed);
        Ok(permit)
    }
}

/// A program's call for which the user is asked. If this is dropped before the answer, the call counts as `ABORTED`.
#[cfg(feature = "program")]
pub(super) struct Asking {
    record: Option<AuditRecord>,
    by: String,
}

#[cfg(feature = "program")]
impl Asking {
    /// The call is made later, and has an entry of its own then.
    pub(super) fn agreed(self) {
        if let Some(record) = self.record {
            record.discard();
        }
    }

    /// The call is not made, or not yet.
    pub(super) fn failed(self, error: &CallError) {
        let Some(mut record) = self.record else { return };
        if *error.code() == ErrorCode::AccessDenied {
            record.set_approval(Approval::Denied { by: self.by });
        }
        record.finish(Err(error));
    }
}

/// The value of an input; `null` if it is not JSON, which its operation will refuse.
fn value(input: &Payload) -> Cow<'_, Value> {
    match input {
        Payload::Value(value) => Cow::Borrowed(value),
        other => Cow::Owned(other.text().and_then(|text| serde_json::from_slice(text).ok()).unwrap_or_default()),
    }
}

/// The size of an input. A text is not parsed only to be measured, unless it has placeholders of bodies.
fn size_of_input(input: &Payload, context: &Context) -> Option<usize> {
    match input.text() {
        Some(text) if !files::are_beside(context) => Some(text.len()),
        _ => files::size(&value(input), Some(context)),
    }
}

/// The size of a result, if it is known.
fn size_of_output(output: &Payload) -> Option<usize> {
    match output {
        Payload::Value(value) => size_of(value, usize::MAX),
        Payload::Body(body) => body.known_length().and_then(|length| usize::try_from(length).ok()),
        text => text.text().map(<[u8]>::len),
    }
}

/// An admitted call: it counts for its caller until this is dropped.
pub(super) struct Passed {
    record: Option<AuditRecord>,
    permit: CallPermit,
}

impl Passed {
    /// Notes how the call ended: a result counts once it has passed the check that follows its handler. A body that is
    /// a stream counts for the caller until it has been read.
    pub(super) fn end(
        self,
        answer: Result<ResponseEnvelope<Payload>, CallError>,
        ending: Option<&Ending>,
    ) -> Result<ResponseEnvelope<Payload>, CallError> {
        let Self { record, permit } = self;
        if let Some(record) = record {
            match (&answer, ending) {
                (Err(error), _) => record.finish(Err(error)),
                (Ok(envelope), _) if envelope.meta.is_error() => record.finish(Err(&tool_failed())),
                (Ok(envelope), None) => record.finish_with(size_of_output(&envelope.data)),
                (Ok(envelope), Some(ending)) => {
                    let bytes = size_of_output(&envelope.data);
                    ending.then(move |error| match error {
                        None => record.finish_with(bytes),
                        Some(error) => record.finish(Err(error)),
                    });
                }
            }
        }
        if let Ok(ResponseEnvelope { data: Payload::Body(body), .. }) = &answer {
            body.hold_until_read(permit);
        }
        answer
    }

    /// Notes how a stream ended; the call lasts as long as the stream.
    pub(super) fn follow(
        self,
        stream: Result<PayloadStream, CallError>,
        context: &Context,
    ) -> Result<PayloadStream, CallError> {
        let Self { record, permit } = self;
        match stream {
            Err(error) => {
                if let Some(record) = record {
                    record.finish(Err(&error));
                }
                Err(error)
            }
            Ok(stream) => {
                let (ending, cancel) = (context.extension::<Ending>().cloned(), context.cancel_token().cloned());
                Ok(Followed { stream, record, ending, cancel, _permit: permit }.boxed())
            }
        }
    }
}

/// The items of an admitted subscription, which counts for its caller until this is dropped.
struct Followed {
    stream: PayloadStream,
    record: Option<AuditRecord>,
    /// How its items were read.
    ending: Option<Ending>,
    /// What cancels it.
    cancel: Option<CancelToken>,
    _permit: CallPermit,
}

impl Followed {
    /// Notes the error of the last item, or that it did not fail.
    fn end(&mut self) {
        let Some(record) = self.record.take() else { return };
        match self.ending.as_ref().and_then(Ending::failed) {
            Some(error) => record.finish(Err(&error)),
            None => record.finish_with(None),
        }
    }
}

impl Stream for Followed {
    type Item = Result<ResponseEnvelope<Payload>, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Option<Self::Item>> {
        let item = ready!(self.stream.poll_next_unpin(task));
        if item.is_none() {
            self.end();
        }
        Poll::Ready(item)
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        // A reader may leave when it has what it wanted. A call that its deadline or its token ends is dropped before
        // its reader learns of that: then the record, which is dropped as well, says which of them it was.
        let is_cancelled = self.cancel.as_ref().is_some_and(CancelToken::is_cancelled);
        if !is_cancelled && !self.record.as_ref().is_some_and(AuditRecord::is_late) {
            self.end();
        }
    }
}
