//! The operations for programs of models.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::{Value, json};

use super::approval::{self, Approved};
use super::caller::CallerId;
use super::core::{self, Core, Items, misfits};
use super::find::{self, View};
use super::rules::{Asking, MadeBy, TooSoon};
use super::summary::{name, summary};
use crate::mcp::McpPeer;
use crate::model::lock::lock;
use crate::model::protocol::tool_failed;
use crate::program::{Ask, Describe, Host, Search};
use crate::run::context::until;
use crate::run::pipeline;
use crate::run::principal::Principal;
use crate::run::registry::{Entry, Exact};
use crate::{BoxFuture, CallError, CallOptions, Context, Decision, ErrorCode, OperationKind, OperationSpec, Warning};

/// The host of a model's program: the operations that its caller may call, under the gateway's rules.
pub(super) struct ModelHost {
    pub(super) core: Arc<Core>,
    pub(super) principal: Principal,
    pub(super) context: Context,
    pub(super) view: Arc<View>,
    pub(super) caller: CallerId,
    pub(super) noted: Noted,
    /// The latest time for the user's answer to reach the program. `None` if its call has no deadline.
    pub(super) deadline: Option<Instant>,
}

/// Events of a run that its report should mention.
#[derive(Default)]
pub(super) struct Noted(Mutex<Noticed>);

/// How many notes about responses are kept.
const MOST: usize = 5;

#[derive(Default)]
pub(super) struct Noticed {
    /// The operations that may have changed something, each with the number of calls.
    pub(super) changed: BTreeMap<String, usize>,
    /// Mismatches of responses with their descriptions; only the first ones.
    pub(super) misfits: Vec<String>,
}

impl Noted {
    fn with<T>(&self, act: impl FnOnce(&mut Noticed) -> T) -> T {
        act(&mut lock(&self.0))
    }

    pub(super) fn changes(&self, id: &str) {
        self.with(|noticed| *noticed.changed.entry(id.to_owned()).or_default() += 1);
    }

    fn misfits(&self, id: &str, warnings: &[Warning]) {
        if let Some(told) = misfits(warnings) {
            self.with(|noticed| {
                if noticed.misfits.len() < MOST {
                    noticed.misfits.push(format!("An answer of `{id}`: {told}"));
                }
            });
        }
    }

    /// Notes what the list of a subscription's items leaves out, and that some of them are failures.
    fn items(&self, id: &str, items: &Items) {
        let more = || format!("Of `{id}`, the program got the first items alone: there may be more.");
        for told in items.is_cut.then(more).into_iter().chain(items.told_of_failed(&format!(" of `{id}`"))) {
            self.with(|noticed| {
                if noticed.misfits.len() < MOST && !noticed.misfits.contains(&told) {
                    noticed.misfits.push(told);
                }
            });
        }
    }

    pub(super) fn take(&self) -> Noticed {
        self.with(std::mem::take)
    }
}

/// Notes a call that changes something when it ends, if it was made: even if its result is not awaited.
struct Noting<'a> {
    noted: &'a Noted,
    id: &'a str,
    made_by: &'a MadeBy,
}

impl Drop for Noting<'_> {
    fn drop(&mut self) {
        if self.made_by.is_made() {
            self.noted.changes(self.id);
        }
    }
}

impl ModelHost {
    /// The operation with this id.
    ///
    /// # Errors
    /// An `OPERATION_NOT_FOUND` if there is none that the caller may call. It may have been there when the program began.
    fn entry(&self, id: &str) -> Result<Arc<Entry>, CallError> {
        let unknown = || CallError::new(ErrorCode::OperationNotFound, format!("there is no operation `{}`", name(id)));
        find::entry(&self.core.gate, &self.principal, id).ok_or_else(unknown)
    }

    /// Reports a call that is not made.
    fn refused(&self, entry: &Entry, input: &Value, error: &CallError) {
        let made_by = MadeBy::new(&self.caller);
        self.core.gate.rules().note_refused(&made_by, self.context.request_id(), entry, input, error);
    }

    /// Asks the user of a client if a call of the program may be made; true if so.
    ///
    /// # Errors
    /// If the user did not answer, the client could not ask, or the operation is gone by now.
    pub(super) async fn ask(&self, peer: &McpPeer, key: &str, ask: &Ask) -> Result<bool, CallError> {
        let entry = self.entry(&ask.id)?;
        let asking = self.asking(&entry, ask)?;
        let late = || Err(CallError::new(ErrorCode::Timeout, "the user did not answer within the time of the call"));
        let answer = until(self.deadline, approval::ask(peer, key, &entry, &ask.input, None)).await;
        match answer.unwrap_or_else(late) {
            Ok(()) => {
                asking.agreed();
                Ok(true)
            }
            Err(error) => {
                asking.failed(&error);
                if *error.code() == ErrorCode::AccessDenied { Ok(false) } else { Err(error) }
            }
        }
    }

    /// Writes an audit entry for a call that the user has declined.
    pub(super) fn declined(&self, ask: &Ask) {
        self.tell(ask, approval::declined);
    }

    /// Writes an audit entry for a call that waits for an approval, because its client cannot ask the user.
    pub(super) fn waits(&self, ask: &Ask) {
        self.tell(ask, approval::needed);
    }

    fn tell(&self, ask: &Ask, error: fn(&OperationSpec) -> CallError) {
        let Some(entry) = find::entry(&self.core.gate, &self.principal, &ask.id) else { return };
        // The call is not made, even if the log has room for it.
        if let Ok(asking) = self.asking(&entry, ask) {
            asking.failed(&error(&entry.spec));
        }
    }

    fn asking(&self, entry: &Entry, ask: &Ask) -> Result<Asking, CallError> {
        self.core.gate.rules().asking(&self.caller, self.context.request_id(), entry, &ask.input)
    }

    /// Makes a call of the program; `approved` says that its user was asked about it, and has agreed.
    async fn make(&self, id: &str, input: Value, approved: bool) -> Result<Value, CallError> {
        let entry = self.entry(id)?;
        let made_by = MadeBy::of_program(&self.caller);
        let mut options = CallOptions::new();
        if approved {
            options.extensions.insert_own(Approved);
        }
        options.extensions.insert_own(made_by.clone());
        options.extensions.insert_own(Exact);
        // For the calls that its handler makes, too.
        if let Some(peer) = McpPeer::for_program(&self.context) {
            options.extensions.insert(peer);
        }
        let _noting = entry.spec.may_change().then_some(Noting { noted: &self.noted, id, made_by: &made_by });
        let invocation = self.principal.forward(&self.context, self.core.gate.registry(), options);
        let (request, given) = (invocation.context.id(), input.clone());
        let result = if entry.spec.kind == OperationKind::Subscription {
            let public =
                |error| self.core.public(&self.principal, &made_by, error, &entry.spec, entry.is_foreign(), &request);
            Box::pin(core::collect(invocation, id, input, public)).await.map(|(envelope, items)| {
                self.noted.items(id, &items);
                envelope
            })
        } else {
            pipeline::call(Ok(invocation), id, input).await
        };
        let envelope = result.map_err(|error| {
            self.core.gate.rules().note_refused(&made_by, request.to_string(), &entry, &given, &error);
            self.core.public(&self.principal, &made_by, error, &entry.spec, entry.is_foreign(), &request)
        })?;
        self.noted.misfits(id, &envelope.warnings);
        if envelope.meta.is_error() {
            return Err(tool_failed().with_details(envelope.data));
        }
        Ok(envelope.data)
    }
}

impl Host for ModelHost {
    fn call<'a>(&'a self, id: &'a str, input: Value) -> BoxFuture<'a, Result<Value, CallError>> {
        Box::pin(self.make(id, input, false))
    }

    fn call_approved<'a>(&'a self, id: &'a str, input: Value) -> BoxFuture<'a, Result<Value, CallError>> {
        Box::pin(self.make(id, input, true))
    }

    fn decide(&self, id: &str, input: &Value) -> Decision {
        // `check` refuses a call of an operation that is gone. `Allow` would make the call without a question if the
        // operation is back by then.
        let Ok(entry) = self.entry(id) else { return Decision::Ask };
        let decision = self.core.gate.rules().decide(&entry.spec);
        if decision == Decision::Deny {
            let error = CallError::new(ErrorCode::AccessDenied, "the policy of this gateway denies it");
            self.refused(&entry, input, &error);
        }
        decision
    }

    fn check(&self, id: &str, input: &Value) -> Result<(), CallError> {
        let entry = self.entry(id)?;
        let mut options = CallOptions::new();
        options.extensions.insert_own(Exact);
        let invocation = self.principal.forward(&self.context, self.core.gate.registry(), options);
        let request = invocation.context.id();
        let checked = entry.check_input(input, &invocation.context);
        let checked = checked.and_then(|()| entry.check_by_handler(input, &invocation.context));
        checked.map_err(|error| {
            self.refused(&entry, input, &error);
            let made_by = MadeBy::new(&self.caller);
            self.core.public(&self.principal, &made_by, error, &entry.spec, entry.is_foreign(), &request)
        })
    }

    fn is_query(&self, id: &str) -> bool {
        find::entry(&self.core.gate, &self.principal, id).is_some_and(|entry| !entry.spec.may_change())
    }

    fn search(&self) -> Option<&dyn Search> {
        Some(self)
    }

    fn describe(&self) -> Option<&dyn Describe> {
        Some(self)
    }
}

impl Search for ModelHost {
    fn search<'a>(&'a self, words: &'a str, limit: Option<usize>) -> BoxFuture<'a, Result<Value, CallError>> {
        let (view, principal, words) = (self.view.clone(), self.principal.clone(), words.to_owned());
        Box::pin(self.core.look(&self.caller, TooSoon::Waits, move |core| {
            let found = find::best(&core.gate, &view, &principal, &words, None, limit.unwrap_or(8));
            let listed = found.iter().map(|entry| {
                let spec = &entry.spec;
                let function = view.function(&spec.id);
                match find::is_denied(&core.gate, spec) {
                    true => json!({ "id": spec.id, "function": function, "summary": summary(spec), "denied": true }),
                    false => json!({ "id": spec.id, "function": function, "summary": summary(spec) }),
                }
            });
            listed.collect::<Value>()
        }))
    }
}

impl Describe for ModelHost {
    fn describe<'a>(&'a self, id: &'a str, detail: &'a Value) -> BoxFuture<'a, Result<Value, CallError>> {
        let (view, principal, id) = (self.view.clone(), self.principal.clone(), id.to_owned());
        let is_whole = detail == "whole";
        let described =
            self.core.look(&self.caller, TooSoon::Waits, move |core| match find::entry(&core.gate, &principal, &id) {
                Some(entry) => Ok(Value::from(find::describe(&core.gate, &view, &entry.spec, is_whole))),
                None => {
                    let text = find::unknown(&core.gate, &view, &principal, &id);
                    Err(CallError::new(ErrorCode::OperationNotFound, text))
                }
            });
        Box::pin(async move { described.await? })
    }
}
