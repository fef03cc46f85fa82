//! What all faces of a gateway share, and a call as a model makes it.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::answer::{answer, blocks};
use super::approval::{self, Approved, Waiting};
use super::caller::CallerId;
use super::find::{self, View};
use super::gate::Gate;
use super::large::{Fitted, ReadAt, Results};
use super::rules::{MadeBy, caller_of};
use crate::model::request_id::RequestId;
use crate::run::pipeline;
use crate::run::principal::Principal;
use crate::run::registry::Entry;
use crate::run::shown;
use crate::{
    CallError, CallOptions, ContentBlock, Context, ErrorCode, OperationKind, OperationSpec, Payload, ResponseEnvelope,
    ResponseMeta,
};

/// How many items of a subscription a call collects.
const ITEMS: usize = 100;

/// How long a call collects items of a subscription, and how long it waits for one.
const COLLECT: std::time::Duration = std::time::Duration::from_secs(20);

/// The operation that reads on in a result that was cut. It is in no registry: `call` itself answers it.
pub(super) const READ_ON: &str = "results.read";

pub(super) struct Core {
    pub(super) gate: Arc<Gate>,
    pub(super) results: Results,
    pub(super) approvals: Approvals,
    #[cfg(feature = "program")]
    pub(super) programs: Option<super::programs::Programs>,
    view: ArcSwapOption<View>,
    /// Held by who makes a view, so that others wait for it.
    making: Mutex<()>,
}

/// How calls that somebody has to agree to are asked about.
pub(super) struct Approvals {
    pub(super) waiting: Waiting,
    /// True if the answer of a tool may ask, where the client can't.
    pub(super) by_answer: bool,
}

impl Core {
    pub(super) fn new(gate: Arc<Gate>, results: Results, approvals: Approvals) -> Self {
        Self {
            gate,
            results,
            approvals,
            #[cfg(feature = "program")]
            programs: None,
            view: ArcSwapOption::default(),
            making: Mutex::new(()),
        }
    }

    /// The index and the names of all operations as they are now.
    ///
    /// # Errors
    /// If the runtime is shutting down.
    pub(super) async fn view(&self) -> Result<Arc<View>, CallError> {
        let current = |version| self.view.load_full().filter(|view| view.version == version);
        let registry = self.gate.registry();
        if let Some(view) = current(registry.version()) {
            return Ok(view);
        }
        let _making = self.making.lock().await;
        let (version, entries) = {
            let table = registry.table();
            (table.version, table.iter().cloned().collect::<Vec<Arc<Entry>>>())
        };
        // Somebody else may have made it in the meantime.
        if let Some(view) = current(version) {
            return Ok(view);
        }
        let made = tokio::task::spawn_blocking(move || Arc::new(View::of(version, &entries))).await;
        let made = made.map_err(|error| CallError::execution(format!("the operations could not be read: {error}")))?;
        self.view.store(Some(made.clone()));
        Ok(made)
    }

    /// Calls an operation for a model: whatever happens is an answer that it can read.
    pub(super) async fn call_for_model(
        &self,
        principal: &Principal,
        id: &str,
        input: Value,
        approval: Option<&str>,
        context: &Context,
        mut options: CallOptions,
    ) -> ResponseEnvelope<Payload> {
        let caller = &caller_of(principal);
        if id == READ_ON {
            return self.read_on(caller, &input);
        }
        let Some(entry) = find::entry(&self.gate, principal, id) else {
            return match self.view().await {
                Ok(view) => answer(true, find::unknown(&self.gate, &view, principal, id)),
                Err(error) => answer(true, error.to_string()),
            };
        };
        let is_approved = approval.is_some_and(|key| self.approvals.waiting.redeem(key, caller, id, &input));
        if is_approved {
            options = options.with_extension(Approved);
        }
        options = options.with_extension(MadeBy(caller.clone()));
        options.progress = context.progress().cloned();
        let invocation = principal.forward(context, self.gate.registry(), options);
        let request = invocation.context.id();
        let outcome = if entry.spec.kind == OperationKind::Subscription {
            Box::pin(collect(invocation, id, input.clone())).await
        } else {
            pipeline::answer(invocation, &entry, input.clone()).await
        };
        match outcome {
            Ok(envelope) => self.success(caller, envelope),
            Err(error) if error.code().as_str() == approval::NEEDED => {
                self.wait(caller, &entry, &input, &error, approval.is_some())
            }
            Err(error) => {
                let error = self.public(principal, error, &entry.spec, &request);
                self.failure(caller, &entry, &error).await
            }
        }
    }

    /// An error as its caller may see it: the owner may read what servers say.
    pub(super) fn public(
        &self,
        principal: &Principal,
        error: CallError,
        spec: &OperationSpec,
        request: &RequestId,
    ) -> CallError {
        match principal {
            Principal::Owner => error,
            Principal::Checked(_) => shown::public(error, spec, request, false),
        }
    }

    fn success(&self, caller: &CallerId, envelope: ResponseEnvelope<Value>) -> ResponseEnvelope<Payload> {
        let ResponseEnvelope { data, meta, warnings } = envelope;
        let (is_error, mut content) = match meta {
            ResponseMeta::Mcp(meta) if meta.structured_content.is_none() || meta.is_error => {
                let fitted = meta.content.into_iter().flat_map(|block| match block.as_text() {
                    Some(text) => self.fit(caller, Value::from(text)),
                    None => vec![block],
                });
                (meta.is_error, fitted.collect())
            }
            _ => (false, self.fit(caller, data)),
        };
        if !warnings.is_empty() {
            let told: Vec<String> = warnings.iter().take(10).map(ToString::to_string).collect();
            content.push(ContentBlock::text(format!(
                "Not as described, in {} places: {}",
                warnings.len(),
                told.join("; ")
            )));
        }
        blocks(is_error, content)
    }

    /// A value as text; what is too long is cut, and a second block says how to read on.
    pub(super) fn fit(&self, caller: &CallerId, value: Value) -> Vec<ContentBlock> {
        as_text(self.results.fit(caller, value))
    }

    /// Reads on in a result that was cut.
    fn read_on(&self, caller: &CallerId, input: &Value) -> ResponseEnvelope<Payload> {
        let mut at = ReadAt::new();
        at.pointer = input.get("pointer").and_then(Value::as_str).map(str::to_owned);
        at.from = input.get("from").and_then(Value::as_u64).and_then(|from| usize::try_from(from).ok());
        let cursor = input.get("cursor").and_then(Value::as_str).unwrap_or_default();
        match self.results.read(caller, cursor, &at) {
            Ok(fitted) => blocks(false, as_text(fitted)),
            Err(error) => answer(true, format!("{}: {}", error.code(), error.message())),
        }
    }

    /// The answer of a call that somebody has to agree to, where the client can't ask.
    fn wait(
        &self,
        caller: &CallerId,
        entry: &Entry,
        input: &Value,
        error: &CallError,
        had_key: bool,
    ) -> ResponseEnvelope<Payload> {
        if !self.approvals.by_answer {
            return answer(true, format!("{}: {}", error.code(), error.message()));
        }
        let key = self.approvals.waiting.add(caller, &entry.spec.id, input);
        let why = match had_key {
            true => {
                "The approval is not one of this call: its key is unknown, was used already or is over an hour old, or \
                     the id or the input are others than those that the user agreed to. "
            }
            false => "",
        };
        let text = format!(
            "{why}This call waits. Ask the user: {}\n\nAfter a yes, `call` it again with the same id and input, and with \
             \"approval\": \"{key}\". After a no, leave it.",
            approval::question(&entry.spec, input)
        );
        answer(false, text)
    }

    /// A failure, with what helps to go on.
    async fn failure(&self, caller: &CallerId, entry: &Entry, error: &CallError) -> ResponseEnvelope<Payload> {
        let is_refused = *error.code() == ErrorCode::ValidationError && error.details().get("raw").is_none();
        if is_refused && let Ok(view) = self.view().await {
            return answer(true, find::refused(&view, &entry.spec, error));
        }
        let mut content = vec![ContentBlock::text(format!("{}: {}", error.code(), error.message()))];
        if !error.details().is_null() {
            content.extend(self.fit(caller, error.details().clone()));
        }
        blocks(true, content)
    }
}

/// A result, or what fits of it, and how to read on.
fn as_text(fitted: Fitted) -> Vec<ContentBlock> {
    let text = match fitted.shown {
        Value::String(text) => text,
        shown => shown.to_string(),
    };
    let mut content = vec![ContentBlock::text(text)];
    if let Some(note) = fitted.note {
        let read_on = fitted.cursor.map(|cursor| json!({ "id": READ_ON, "input": { "cursor": cursor } }));
        let how = read_on.map(|call| format!(" To read on, `call` {call}"));
        content.push(ContentBlock::text(format!("{note}{}", how.unwrap_or_default())));
    }
    content
}

/// The first items of a subscription, as a list.
pub(super) async fn collect(
    invocation: pipeline::Invocation,
    id: &str,
    input: Value,
) -> Result<ResponseEnvelope<Value>, CallError> {
    use futures_util::StreamExt;

    let mut stream = pipeline::stream(invocation, id, input).await?;
    let until = tokio::time::Instant::now() + COLLECT;
    let mut items = Vec::new();
    let mut warnings = Vec::new();
    while items.len() < ITEMS {
        match tokio::time::timeout_at(until, stream.next()).await {
            Ok(Some(Ok(item))) => {
                warnings.extend(item.warnings);
                items.push(item.data);
            }
            Ok(Some(Err(error))) if items.is_empty() => return Err(error),
            Ok(Some(Err(error))) => items.push(json!({ "error": error })),
            Ok(None) | Err(_) => break,
        }
    }
    let mut envelope = ResponseEnvelope::local(Value::Array(items), id.to_owned());
    envelope.warnings = warnings;
    Ok(envelope)
}
