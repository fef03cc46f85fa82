//! The few tools in front of all operations: `search`, `describe`, `call`, and with programs `execute`.

use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::{Map, Value, json};

use super::core::Core;
use super::find;
use super::rules::{MadeBy, TooSoon, caller_of};
use super::summary::name;
use super::tool_result::{drop_unsaid, text_of, whole, wrong};
use crate::model::nearest::{nearest, question};
use crate::model::separators::separators;
use crate::run::pipeline::{self, Invocation};
use crate::run::principal::Principal;
use crate::run::registry::Exact;
use crate::{
    BoxFuture, CallError, CallOptions, Context, Endpoint, Handler, OperationSpec, Payload, PayloadStream, Registration,
    Registry, RegistryError, ResponseEnvelope, Schema, SpecRef,
};

/// The namespace of the tools' own operations, which their names do not contain.
const NAMESPACE: &str = "gateway";

static SEARCH: OperationSpec = OperationSpec::query("gateway.search")
    .with_description(
        "Finds operations by what they do, in plain words, best first. Name the service if you know it: \"github: close \
         an issue\".",
    )
    .with_input(Schema::text(
        r#"{"type":"object","additionalProperties":false,"required":["query"],"properties":{
            "query":{"type":"string","description":"What the operation should do"},
            "namespace":{"type":["string","null"],"description":"Only operations of this namespace"},
            "limit":{"type":["integer","null"],"minimum":1,"maximum":50,"default":8}}}"#,
    ));

static DESCRIBE: OperationSpec = OperationSpec::query("gateway.describe")
    .with_description(
        "Shows an operation as a TypeScript signature: what it takes and what it gives. The short form leaves out what is \
         long; `whole` has everything.",
    )
    .with_input(Schema::text(
        r#"{"type":"object","additionalProperties":false,"required":["id"],"properties":{
            "id":{"type":"string","description":"The operation, as `search` names it"},
            "detail":{"enum":["short","whole",null],"default":"short"}}}"#,
    ));

// Its schema is open: what stands beside `input` gets an error that says where it goes.
static CALL: OperationSpec = OperationSpec::mutation("gateway.call")
    .with_description(
        "Calls an operation. A result that is too long is cut; its last line says how to read on. A call that changes \
         something may have to be agreed to first.",
    )
    .with_input(Schema::text(
        r#"{"type":"object","required":["id"],"properties":{
            "id":{"type":"string","description":"The operation, as `search` names it"},
            "input":{"description":"Its input, as `describe` shows it: all that the operation takes stands in here"},
            "approval":{"type":["string","null"],"description":"The key of a call that waited, once the user has agreed to it"}}}"#,
    ));

/// The function of a tool.
#[derive(Clone, Copy)]
enum Work {
    Search,
    Describe,
    Call,
}

/// The registry of the tools, for one kind of caller.
///
/// # Errors
/// None in practice: the ids are valid and differ.
pub(super) fn registry(core: &Arc<Core>, unknown_is_owner: bool) -> Result<Registry, RegistryError> {
    let registry = Registry::new();
    let tool = |spec: &'static OperationSpec, work| {
        Registration::new(spec, Handler::endpoint(Tool { core: core.clone(), work, unknown_is_owner }))
    };
    registry.register_all([tool(&SEARCH, Work::Search), tool(&DESCRIBE, Work::Describe), tool(&CALL, Work::Call)])?;
    #[cfg(feature = "program")]
    if core.programs.is_some() {
        registry.remove(&CALL.id);
        registry.register(super::execute::registration(core, unknown_is_owner))?;
    }
    debug_assert!(registry.list().iter().all(|spec| spec.namespace() == NAMESPACE));
    Ok(registry)
}

/// A snapshot of the operations themselves, for a model that this process calls: a call that needs approval waits.
pub(super) fn own(core: &Arc<Core>) -> Result<Registry, RegistryError> {
    let behind = core.gate.registry();
    let registry = Registry::builder().with_policy(behind.policy()).build();
    let own = |spec: SpecRef| Registration::new(spec, Handler::endpoint(Own(core.clone())).keeping_time(false));
    registry.register_all(behind.list().into_iter().map(own))?;
    Ok(registry)
}

/// An operation of the gate, as a model calls it.
struct Own(Arc<Core>);

impl Own {
    fn invocation(&self, context: &Context) -> Invocation {
        let principal = Principal::of(context, true);
        let mut options = CallOptions::default();
        options.extensions.insert_own(MadeBy::new(&caller_of(&principal)));
        options.extensions.insert_own(Exact);
        options.progress = context.progress().cloned();
        principal.forward(context, self.0.gate.registry(), options)
    }
}

impl Endpoint for Own {
    fn refused(&self, spec: &OperationSpec, input: &Value, context: &Context, error: &CallError) {
        let made_by = MadeBy::new(&caller_of(&Principal::of(context, true)));
        if let Some(entry) = self.0.gate.registry().table().get(&spec.id) {
            self.0.gate.rules().note_refused(&made_by, context.request_id(), entry, input, error);
        }
    }

    fn call(
        &self,
        spec: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let (invocation, id) = (self.invocation(&context), spec.id.clone());
        Box::pin(async move { pipeline::serve(invocation, &id, Payload::Value(input)).await })
    }

    fn subscribe(
        &self,
        spec: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<PayloadStream, CallError>> {
        let (invocation, id) = (self.invocation(&context), spec.id.clone());
        Box::pin(async move {
            let items = pipeline::stream(invocation, &id, input).await?;
            Ok(items.map(|item| item.map(|envelope| envelope.map(Payload::Value))).boxed())
        })
    }
}

struct Tool {
    core: Arc<Core>,
    work: Work,
    unknown_is_owner: bool,
}

impl Endpoint for Tool {
    fn call(
        &self,
        _: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let (core, work) = (self.core.clone(), self.work);
        let principal = Principal::of(&context, self.unknown_is_owner);
        Box::pin(async move {
            let Value::Object(mut input) = input else { return Err(wrong("an object is needed")) };
            drop_unsaid(&mut input, &["namespace", "limit", "detail", "approval"]);
            match work {
                Work::Search => search(&core, principal, &input).await,
                Work::Describe => describe(&core, principal, &input).await,
                Work::Call => Box::pin(call(&core, &principal, input, &context)).await,
            }
        })
    }
}

async fn search(
    core: &Arc<Core>,
    principal: Principal,
    input: &Map<String, Value>,
) -> Result<ResponseEnvelope<Payload>, CallError> {
    let query = text_of(input, "query")?.to_owned();
    let namespace = input.get("namespace").and_then(Value::as_str).map(str::to_owned);
    let limit = input.get("limit").and_then(whole);
    let (view, caller) = (core.view().await?, caller_of(&principal));
    let own = caller.clone();
    let found = core.look(&caller, TooSoon::Refused, move |core| {
        let listed = find::list(&core.gate, &view, &principal, &query, namespace.as_deref(), limit.unwrap_or(8));
        core.told(&own, false, listed)
    });
    found.await
}

async fn describe(
    core: &Arc<Core>,
    principal: Principal,
    input: &Map<String, Value>,
) -> Result<ResponseEnvelope<Payload>, CallError> {
    let id = text_of(input, "id")?.to_owned();
    let whole = input.get("detail").and_then(Value::as_str) == Some("whole");
    let (view, caller) = (core.view().await?, caller_of(&principal));
    let own = caller.clone();
    let described = core.look(&caller, TooSoon::Refused, move |core| match find::entry(&core.gate, &principal, &id) {
        Some(entry) => core.told(&own, false, find::describe(&core.gate, &view, &entry.spec, whole)),
        None => core.told(&own, true, find::unknown(&core.gate, &view, &principal, &id)),
    });
    described.await
}

async fn call(
    core: &Arc<Core>,
    principal: &Principal,
    mut input: Map<String, Value>,
    context: &Context,
) -> Result<ResponseEnvelope<Payload>, CallError> {
    let id = text_of(&input, "id")?.to_owned();
    if let Some(error) = beside_input(&input) {
        return Err(error);
    }
    let argument = match input.remove("input") {
        // Models also write the input as a string.
        Some(Value::String(text)) => read_text(core, principal, &id, text, context),
        // And `null` if there is none.
        Some(Value::Null) | None => json!({}),
        Some(argument) => argument,
    };
    let approval = input.get("approval").and_then(Value::as_str);
    Ok(core.call_for_model(principal, &id, argument, approval, context, CallOptions::default()).await)
}

/// The error of arguments that `call` does not take: models put what the operation takes beside `input`, or call it
/// otherwise.
fn beside_input(arguments: &Map<String, Value>) -> Option<CallError> {
    let other = arguments.keys().find(|argument| !["id", "input", "approval"].contains(&argument.as_str()))?;
    let meant = match other.as_str() {
        "arguments" | "args" | "parameters" | "params" => vec!["input"],
        other => nearest(other, ["approval", "input"], 1),
    };
    let help = match meant.is_empty() {
        true => ": what the operation takes goes into `input`".to_owned(),
        false => question(&meant),
    };
    Some(wrong(format!("`call` has no `{}`{help}", name(other))))
}

/// Approximate limit of the values in a string that is read as JSON: the limits of a request count its values, but not
/// those inside of a string.
const MAX_VALUES: usize = 1 << 16;

/// The object in a string of JSON, unless the operation takes the string itself.
fn read_text(core: &Core, principal: &Principal, id: &str, text: String, context: &Context) -> Value {
    if !text.trim_start().starts_with('{') || separators(text.as_bytes()) > MAX_VALUES {
        return Value::String(text);
    }
    let Ok(read) = serde_json::from_str::<Value>(&text) else { return Value::String(text) };
    let text = Value::String(text);
    let entry = find::entry(&core.gate, principal, id);
    let is_refused = || entry.as_ref().is_some_and(|entry| entry.check_input(&text, context).is_err());
    if core.reads_on(&caller_of(principal), id, entry.as_deref(), &read) || is_refused() { read } else { text }
}
