//! State shared by all interfaces of a gateway, and calls of models.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use arc_swap::ArcSwapOption;
use serde_json::{Value, json};
use tokio::sync::{Mutex, Semaphore};

use super::approval::{self, Approved, Waiting, Yes};
use super::blocks::{MEDIA, beside, media, text_of};
use super::caller::CallerId;
use super::find::{self, View};
use super::gate::Gate;
use super::large::{Fitted, ReadAt, Results};
use super::rules::{MadeBy, TooSoon, caller_of};
use super::tool_result::{answer, blocks, failed, whole};
use crate::model::nearest::{nearest, question};
use crate::model::request_id::RequestId;
use crate::normalise::UNDECLARED;
use crate::run::first_items::{COLLECT, FirstItems, ITEMS, first_items};
use crate::run::pipeline;
use crate::run::principal::Principal;
use crate::run::redact;
use crate::run::registry::{Entry, Exact};
use crate::{
    CallError, CallOptions, ContentBlock, Context, ErrorCode, OperationKind, OperationSpec, Payload, ResponseEnvelope,
    ResponseMeta, Warning,
};

/// The operation that reads further parts of a shortened result. It is in no registry: `call` handles it.
const READ_ON: &str = "results.read";

pub(super) struct Core {
    pub(super) gate: Arc<Gate>,
    pub(super) results: Results,
    pub(super) approvals: Approvals,
    /// True if models see the messages of failures without a code of their own.
    expose_errors: bool,
    #[cfg(feature = "program")]
    pub(super) programs: Option<super::programs::Programs>,
    view: ArcSwapOption<View>,
    /// Locked while a view is made, so that it is made once.
    making: Mutex<()>,
    /// A permit for each explanation of a mistaken call that is made at a time. More would only slow down other work.
    explaining: Arc<Semaphore>,
}

/// How approval is asked for.
pub(super) struct Approvals {
    pub(super) waiting: Waiting,
    /// True if a tool's result may ask if the client can't.
    pub(super) by_answer: bool,
}

impl Core {
    pub(super) fn new(gate: Arc<Gate>, results: Results, approvals: Approvals, expose_errors: bool) -> Self {
        Self {
            gate,
            results,
            approvals,
            expose_errors,
            #[cfg(feature = "program")]
            programs: None,
            view: ArcSwapOption::default(),
            making: Mutex::new(()),
            explaining: Arc::new(Semaphore::new(available_parallelism().map_or(1, NonZero::get))),
        }
    }

    /// The index and the names of all present operations.
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
        // Another task may have made it meanwhile.
        if let Some(view) = current(version) {
            return Ok(view);
        }
        let made = tokio::task::spawn_blocking(move || Arc::new(View::of(version, &entries))).await;
        let made = made.map_err(|error| CallError::execution(format!("the operations could not be read: {error}")))?;
        self.view.store(Some(made.clone()));
        Ok(made)
    }

    /// Searches or describes operations, on a thread for such work: it may take a while where there are thousands of
    /// them. It counts like a call of its caller, for as long as it lasts.
    ///
    /// # Errors
    /// A `TOO_MANY_REQUESTS` beyond the limits of the caller, or if the runtime is shutting down.
    pub(super) async fn look<T: Send + 'static>(
        self: &Arc<Self>,
        caller: &CallerId,
        too_soon: TooSoon,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, CallError> {
        let permit = self.gate.rules().enter(caller, too_soon).await?.admit().await?;
        let looking = self.aside(move |core| {
            let done = work(core);
            // Not before, also if nobody waits for it any more.
            drop(permit);
            done
        });
        looking.await
    }

    /// Does what may take a while on a thread for such work.
    pub(super) async fn aside<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, CallError> {
        let core = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&core)).await;
        done.map_err(|error| CallError::execution(format!("the operations could not be read: {error}")))
    }

    /// The explanation of a mistaken call. It counts among the calls in flight of its caller, and if `too_soon` says so
    /// for their rate.
    ///
    /// # Errors
    /// A `TOO_MANY_REQUESTS` beyond the limits of the caller, or if the runtime is shutting down.
    async fn explain(
        self: &Arc<Self>,
        caller: &CallerId,
        too_soon: TooSoon,
        work: impl FnOnce(&Self, &View) -> String + Send + 'static,
    ) -> Result<String, CallError> {
        let permit = self.gate.rules().enter(caller, too_soon).await?.admit().await?;
        let view = self.view().await?;
        let turn = self.explaining.clone().acquire_owned().await;
        let explaining = self.aside(move |core| {
            let said = work(core, &view);
            // Not before, even if the caller has gone.
            drop((permit, turn));
            said
        });
        explaining.await
    }

    /// Calls an operation for a model; errors become results that it can read.
    pub(super) async fn call_for_model(
        self: &Arc<Self>,
        principal: &Principal,
        id: &str,
        input: Value,
        approval: Option<&str>,
        context: &Context,
        mut options: CallOptions,
    ) -> ResponseEnvelope<Payload> {
        let caller = &caller_of(principal);
        let entry = find::entry(&self.gate, principal, id);
        if self.reads_on(caller, id, entry.as_deref(), &input) {
            let read = self.read_on(caller, input).await;
            return read.unwrap_or_else(|error| self.failure(caller, &error));
        }
        let Some(entry) = entry else {
            let (principal, id) = (principal.clone(), id.to_owned());
            let work = move |core: &Self, view: &View| find::unknown(&core.gate, view, &principal, &id);
            // A search for the words of the id counts like any other.
            return match self.explain(caller, TooSoon::Refused, work).await {
                Ok(said) => failed(&ErrorCode::OperationNotFound, self.fit(caller, said.into())),
                Err(error) => self.failure(caller, &error),
            };
        };
        let made_by = MadeBy::new(caller);
        let agreed = approval.and_then(|key| self.approvals.waiting.redeem(key, caller, id, &input));
        // The key of an approval is kept until the approved call is made or cancelled.
        let _yes = agreed.map(|call| {
            options.extensions.insert_own(Approved);
            Yes::new(&self.approvals.waiting, call, &made_by, context)
        });
        options.extensions.insert_own(made_by.clone());
        options.extensions.insert_own(Exact);
        options.progress = context.progress().cloned();
        let invocation = principal.forward(context, self.gate.registry(), options);
        let request = invocation.context.id();
        let outcome = if entry.spec.kind == OperationKind::Subscription {
            let public = |error| self.public(principal, &made_by, error, &entry.spec, entry.is_foreign(), &request);
            Box::pin(collect(invocation, id, input.clone(), public)).await
        } else {
            // A model reads the response as it is, and its mismatches: no schema is promised here.
            pipeline::call(Ok(invocation), id, input.clone()).await.map(|envelope| (envelope, Items::default()))
        };
        if let Err(error) = &outcome {
            self.gate.rules().note_refused(&made_by, request.to_string(), &entry, &input, error);
        }
        match outcome {
            Ok((envelope, items)) => self.success(caller, envelope, &items),
            // An operation that was run may have an error of this code, too.
            Err(error) if error.code().as_str() == approval::NEEDED && !made_by.is_made() => {
                self.wait(caller, &entry, &input, &error, approval.is_some())
            }
            Err(error) => {
                // An error of the input, not of a response, nor of a call that the handler made.
                let is_of_input = error.is_of(&entry.spec.id) && error.details().get("raw").is_none();
                let is_refused = *error.code() == ErrorCode::ValidationError && is_of_input;
                let error = self.public(principal, &made_by, error, &entry.spec, entry.is_foreign(), &request);
                let said = if is_refused { self.refused(caller, &entry, &error).await } else { None };
                match said {
                    Some(said) => failed(error.code(), self.fit(caller, said.into())),
                    None => self.failure(caller, &error),
                }
            }
        }
    }

    /// An error as a model may see it. Messages of servers and functions without a code are only logged, for every caller. The
    /// owner may read why the gateway itself did not make a call.
    pub(super) fn public(
        &self,
        principal: &Principal,
        made_by: &MadeBy,
        error: CallError,
        spec: &OperationSpec,
        is_foreign: bool,
        request: &RequestId,
    ) -> CallError {
        match principal {
            Principal::Owner if !made_by.is_made() => error,
            _ => redact::public(error, spec, request, is_foreign, self.expose_errors),
        }
    }

    fn success(
        &self,
        caller: &CallerId,
        envelope: ResponseEnvelope<Value>,
        items: &Items,
    ) -> ResponseEnvelope<Payload> {
        let ResponseEnvelope { data, meta, warnings } = envelope;
        let (is_error, mut content) = match meta {
            ResponseMeta::Mcp(meta) if meta.only_reason().is_some() => (true, self.fit(caller, data)),
            ResponseMeta::Mcp(meta) if meta.structured_content.is_none() || meta.is_error => {
                (meta.is_error, self.fit_blocks(caller, meta.content))
            }
            ResponseMeta::Mcp(meta) => {
                let mut content = self.fit(caller, data);
                // The texts beside a structured result repeat it (MCP specification, "Structured content"); resources
                // do not.
                let others = meta.content.into_iter().filter(|block| !matches!(block, ContentBlock::Text(_)));
                content.extend(self.fit_blocks(caller, others.collect()));
                (false, content)
            }
            _ => (false, self.fit(caller, data)),
        };
        content.extend(misfits(&warnings).map(ContentBlock::text));
        if items.is_cut {
            let most = format!("at most {ITEMS}, and those of {COLLECT:?}");
            content.push(ContentBlock::text(format!("These are the first items, {most}: there may be more.")));
        }
        content.extend(items.told_of_failed("").map(ContentBlock::text));
        blocks(is_error || items.failed > 0, content)
    }

    /// A value as text; if it is too long, it is shortened, and a second block says how to read on.
    pub(super) fn fit(&self, caller: &CallerId, value: Value) -> Vec<ContentBlock> {
        self.as_text(self.results.fit(caller, value))
    }

    /// True if a result is shown whole.
    #[cfg(feature = "program")]
    pub(super) fn fits(&self, value: &Value) -> bool {
        self.results.fits(value)
    }

    /// A text as a result. What does not fit can be read on.
    pub(super) fn told(&self, caller: &CallerId, is_error: bool, text: String) -> ResponseEnvelope<Payload> {
        blocks(is_error, self.fit(caller, Value::String(text)))
    }

    /// Content blocks whose texts share the room of one result. If that is too little, they become a list, which can be
    /// read on like any other. The [others](media) have as much room again for what they say beside their data.
    fn fit_blocks(&self, caller: &CallerId, blocks: Vec<ContentBlock>) -> Vec<ContentBlock> {
        let mut texts: Vec<Value> = blocks.iter().filter_map(text_of).collect();
        let others = blocks.len().saturating_sub(texts.len());
        let all = match texts.len() {
            0 => None,
            1 => texts.pop(),
            _ => Some(Value::Array(texts)),
        };
        let has_room = all.as_ref().is_none_or(|all| self.results.fits(all)) && others <= MEDIA;
        if has_room && self.results.fits(&blocks.iter().map(beside).collect::<Value>()) {
            return blocks;
        }
        let mut content = all.map(|all| self.fit(caller, all)).unwrap_or_default();
        let (shown, more) = media(blocks, self.results.shown());
        content.extend(shown);
        if more > 0 {
            content.push(ContentBlock::text(format!("And {more} more images, sounds or files, which are not shown.")));
        }
        content
    }

    /// The name by which a model reads on: an operation, or if there is no `call`, the input of `execute`.
    fn reads_by(&self) -> &'static str {
        #[cfg(feature = "program")]
        if self.programs.is_some() {
            return "read";
        }
        READ_ON
    }

    /// A result, or the part of it that fits, with how to read on.
    fn as_text(&self, fitted: Fitted) -> Vec<ContentBlock> {
        let text = match fitted.shown {
            Value::String(text) => text,
            shown => shown.to_string(),
        };
        let mut content = vec![ContentBlock::text(text)];
        if let Some(note) = fitted.note {
            let how = fitted.cursor.map(|cursor| match self.reads_by() {
                READ_ON => format!(" To read on, `call` {}", json!({ "id": READ_ON, "input": { "cursor": cursor } })),
                name => format!(" To read on, `execute` {}", json!({ name: { "cursor": cursor } })),
            });
            content.push(ContentBlock::text(format!("{note}{}", how.unwrap_or_default())));
        }
        content
    }

    /// True if a call with this id reads on in a shortened result: a document may have an operation with that id, too.
    pub(super) fn reads_on(&self, caller: &CallerId, id: &str, entry: Option<&Entry>, input: &Value) -> bool {
        let is_kept = || {
            let cursor = input.get("cursor").and_then(Value::as_str);
            cursor.is_some_and(|cursor| self.results.has(caller, cursor))
        };
        id == READ_ON && (entry.is_none() || is_kept())
    }

    /// Reads on in a shortened result. It counts like a search: a result may be large, and is read from its start.
    ///
    /// # Errors
    /// A `TOO_MANY_REQUESTS` beyond the limits of the caller, or if the runtime is shutting down.
    pub(super) async fn read_on(
        self: &Arc<Self>,
        caller: &CallerId,
        input: Value,
    ) -> Result<ResponseEnvelope<Payload>, CallError> {
        let own = caller.clone();
        self.look(caller, TooSoon::Refused, move |core| core.part(&own, &input)).await
    }

    /// The part of a shortened result for the input of [`READ_ON`].
    fn part(&self, caller: &CallerId, input: &Value) -> ResponseEnvelope<Payload> {
        if let Some(wrong) = not_to_read_on(input, self.reads_by()) {
            return self.failure(caller, &CallError::new(ErrorCode::ValidationError, wrong));
        }
        let mut at = ReadAt::new();
        at.pointer = input.get("pointer").and_then(Value::as_str).map(str::to_owned);
        at.from = input.get("from").and_then(whole);
        let cursor = input.get("cursor").and_then(Value::as_str).unwrap_or_default();
        match self.results.read(caller, cursor, &at) {
            Ok(fitted) => blocks(false, self.as_text(fitted)),
            Err(error) => self.failure(caller, &error),
        }
    }

    /// The result of a call that needs approval, if the client can't ask.
    fn wait(
        &self,
        caller: &CallerId,
        entry: &Entry,
        input: &Value,
        error: &CallError,
        had_key: bool,
    ) -> ResponseEnvelope<Payload> {
        if !self.approvals.by_answer {
            return self.failure(caller, error);
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
            approval::question(entry, input, None)
        );
        answer(false, text)
    }

    /// The explanation of a refused input. `None` if its caller has too many calls in flight.
    async fn refused(self: &Arc<Self>, caller: &CallerId, entry: &Arc<Entry>, error: &CallError) -> Option<String> {
        let (entry, error) = (entry.clone(), error.clone());
        let work = move |core: &Self, view: &View| find::refused(&core.gate, view, &entry.spec, &error);
        self.explain(caller, TooSoon::Begins, work).await.ok()
    }

    /// A failed result, with its details.
    fn failure(&self, caller: &CallerId, error: &CallError) -> ResponseEnvelope<Payload> {
        let mut content = self.fit(caller, Value::String(format!("{}: {}", error.code(), error.message())));
        if !error.details().is_null() {
            content.extend(self.fit(caller, error.details().clone()));
        }
        failed(error.code(), content)
    }
}

/// The mismatches of a response with its description, in words; `None` if there are none.
///
/// Members that are not described are counted, not named: their names are chosen by the service, and they are not part
/// of the data.
pub(super) fn misfits(warnings: &[Warning]) -> Option<String> {
    const TOLD: usize = 10;
    let (removed, changed): (Vec<_>, Vec<_>) = warnings.iter().partition(|warning| warning.expected == UNDECLARED);
    let mut told: Vec<String> = changed.iter().take(TOLD).map(ToString::to_string).collect();
    if !removed.is_empty() {
        told.push(format!("members that it does not describe, which are left out: {}", removed.len()));
    }
    let places = if warnings.len() == 1 { "place" } else { "places" };
    (!told.is_empty()).then(|| format!("Not as described, in {} {places}: {}", warnings.len(), told.join("; ")))
}

/// The error of an input of [`READ_ON`], or of a member with an unknown name.
fn not_to_read_on(input: &Value, name_of_it: &str) -> Option<String> {
    const TAKEN: [&str; 3] = ["cursor", "from", "pointer"];
    let members = input.as_object().into_iter().flatten();
    // Models write `null` for what they leave out.
    for (name, value) in members.filter(|(_, value)| !value.is_null()) {
        let (fits, kind) = match name.as_str() {
            "cursor" | "pointer" => (value.is_string(), "a text"),
            "from" => (whole(value).is_some(), "a whole number from 0"),
            _ => {
                let meant = question(&nearest(name, TAKEN, 1));
                return Some(format!("`{name_of_it}` takes `cursor`, `pointer` and `from`, and no `{name}`{meant}"));
            }
        };
        if !fits {
            return Some(format!("`{name}` of `{name_of_it}` is {kind}"));
        }
    }
    let is_missing = input.get("cursor").is_none_or(Value::is_null);
    is_missing.then(|| format!("`{name_of_it}` needs the `cursor` that the result came with"))
}

/// What a model should know of a list of a subscription's items, beside the list.
#[derive(Default)]
pub(super) struct Items {
    /// True if there may be more.
    pub(super) is_cut: bool,
    /// How many of them failed.
    failed: usize,
}

impl Items {
    /// A sentence about the failed items; `of` may say what they are items of. `None` if no item failed.
    pub(super) fn told_of_failed(&self, of: &str) -> Option<String> {
        match self.failed {
            0 => None,
            1 => Some(format!("1 item{of} failed: in the list, it is `{{ error }}`.")),
            failed => Some(format!("{failed} items{of} failed: in the list, they are `{{ error }}`.")),
        }
    }
}

/// The first items of a subscription, as a list; `public` limits what its caller sees of an item's error.
pub(super) async fn collect(
    invocation: pipeline::Invocation,
    id: &str,
    input: Value,
    public: impl Fn(CallError) -> CallError,
) -> Result<(ResponseEnvelope<Value>, Items), CallError> {
    let stream = pipeline::stream(invocation, id, input).await?;
    let FirstItems { items, warnings, is_whole, failed } = first_items(stream, public).await?;
    let mut envelope = ResponseEnvelope::local(Value::Array(items), id.to_owned());
    envelope.warnings = warnings;
    Ok((envelope, Items { is_cut: !is_whole, failed }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misfits_are_counted() {
        let of = |pointers: &[&str]| {
            misfits(&pointers.iter().map(|at| Warning::new(*at, "string", "null")).collect::<Vec<_>>())
        };
        let (one, two) = (of(&["/a"]), of(&["/a", "/b"]));
        assert_eq!(one.as_deref(), Some("Not as described, in 1 place: /a: expected string, found null"));
        assert!(two.is_some_and(|told| told.starts_with("Not as described, in 2 places: /a: ")));
        assert_eq!(of(&[]), None);
    }
}
