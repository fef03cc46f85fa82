//! Turning a call into a task.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, CreateTaskResult, ErrorCode as RpcCode, ErrorData,
    JsonObject, ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::ask::Client;
use super::config::{McpTasks, TaskSupport};
use super::follow::{self, Listener};
use super::state::{Asker, Seen, unreachable};
use super::wire::legacy;
use crate::CallError;
use crate::durable::record::{Stored, Tries};
use crate::durable::{AnyJob, Origin, SubmitOptions};
use crate::mcp::server::call;
use crate::mcp::server::result;
use crate::mcp::server::shared::Shared;
use crate::mcp::server::tool::{Served, StructuredContent};
use crate::mcp::server::unread;
use crate::model::clock::millis;
use crate::run::payload::to_text;
use crate::run::principal::Principal;

/// The code of the error of a caller that has too many tasks.
const TOO_MANY: RpcCode = RpcCode(-32000);

/// How a call of a tool is run.
pub(in crate::mcp::server) enum Route<'a> {
    /// The response is its result.
    Plain,
    /// The response may be a task of 2026-07-28.
    Task(Began<'a>),
    /// It is refused.
    Refused(ErrorData),
}

/// A call whose response may be a task.
pub(in crate::mcp::server) struct Began<'a> {
    asker: Asker<'a>,
    tool: Arc<Served>,
    support: TaskSupport,
}

/// Decides how a call of a tool is run that its client has not requested to be a task.
pub(in crate::mcp::server) fn route<'a>(
    server: &'a Shared,
    params: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Route<'a> {
    let Some(asker) = Asker::new(server, context) else { return Route::Plain };
    let Some(tool) = server.tool(&params.name).filter(|tool| asker.caller.sees(tool.spec())) else {
        return Route::Plain;
    };
    let support = asker.tasks.support(tool.spec());
    let stands_alone = asker.structure == StructuredContent::Any;
    let declared = context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks());
    match support {
        TaskSupport::Forbidden => Route::Plain,
        _ if stands_alone && declared => Route::Task(Began { asker, tool, support }),
        TaskSupport::Optional => Route::Plain,
        TaskSupport::Required if stands_alone => {
            let required = ClientCapabilities::builder().enable_tasks().build();
            Route::Refused(ErrorData::missing_required_client_capability(required))
        }
        TaskSupport::Required => Route::Refused(only_as_a_task(&tool.name, context)),
    }
}

fn only_as_a_task(tool: &str, context: &RequestContext<RoleServer>) -> ErrorData {
    let how = match is_earlier(context) {
        true => "call it with `task`",
        false => "this revision of the protocol has none",
    };
    ErrorData::new(RpcCode::METHOD_NOT_FOUND, format!("the tool `{tool}` runs as a task only: {how}"), None)
}

/// True if tasks are those of 2025-11-25.
pub(super) fn is_earlier(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version() == Some(ProtocolVersion::V_2025_11_25)
}

impl Began<'_> {
    /// Runs the call: the response is its result if that is ready soon, else a task.
    pub(in crate::mcp::server) async fn run(
        self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Self { asker, tool, support } = self;
        let (job, begun) = match begin(&asker, &tool, params.arguments, None, &context).await? {
            Ok(begun) => begun,
            // As the call itself would have failed.
            Err(error) => return Ok(result::failure(&error).into()),
        };
        let told = || CallToolResponse::Task(CreateTaskResult::new(asker.told_as_extension(&begun)));
        if support == TaskSupport::Required {
            return Ok(told());
        }
        let token = context.meta.get_progress_token();
        let listener = Listener { peer: context.peer.clone(), token, closed: context.ct.clone() };
        match timeout(asker.tasks.patience, listener.follow(&job)).await {
            Err(_) => Ok(told()),
            Ok(true) => match asker.find(job.id().as_str()).await.ok().and_then(|seen| asker.outcome(&seen)) {
                Some(outcome) => {
                    let answer = outcome?;
                    unread::count(&context.extensions, &answer);
                    Ok(answer.into())
                }
                // Its result can't be read now, but the call was carried out: the client must not repeat it, but can poll.
                None => Ok(told()),
            },
            // The client does not wait for the response any more, and knows of no task.
            Ok(false) => {
                job.cancel().await.map_err(|error| unreachable(&error))?;
                Err(ErrorData::internal_error("the call was cancelled", None))
            }
        }
    }
}

/// Begins the task of a call of 2025-11-25, and returns its state.
pub(super) async fn called(
    server: &Arc<Shared>,
    params: Value,
    context: RequestContext<RoleServer>,
    closed: CancellationToken,
) -> Result<Value, ErrorData> {
    let malformed =
        |error: serde_json::Error| ErrorData::invalid_params(format!("malformed parameters: {error}"), None);
    let ttl = match params.get("task").and_then(|task| task.get("ttl")) {
        None | Some(Value::Null) => None,
        Some(ttl) => match ttl.as_f64().map(|ttl| ttl / 1e3).map(Duration::try_from_secs_f64) {
            Some(Ok(ttl)) => Some(ttl),
            _ => return Err(ErrorData::invalid_params(format!("`ttl` is no number of milliseconds: {ttl}"), None)),
        },
    };
    let params: CallToolRequestParams = serde_json::from_value(params).map_err(malformed)?;
    let asker = Asker::new(server, &context).filter(|_| is_earlier(&context));
    // A server without tasks ignores these parameters.
    let Some(asker) = asker else { return plain(server, params, context).await };
    let Some(tool) = server.tool(&params.name) else { return Err(server.unknown(&params.name, &asker.caller)) };
    if !asker.caller.sees(tool.spec()) {
        return Err(ErrorData::invalid_params(format!("the tool `{}` may not be called", tool.name), None));
    }
    if asker.tasks.support(tool.spec()) == TaskSupport::Forbidden {
        let message = format!("the tool `{}` does not run as a task", tool.name);
        return Err(ErrorData::new(RpcCode::METHOD_NOT_FOUND, message, None));
    }
    let (job, begun) = begin(&asker, &tool, params.arguments, ttl, &context)
        .await?
        .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
    let task = asker.told(&begun);
    let listener = Listener { peer: context.peer.clone(), token: context.meta.get_progress_token(), closed };
    tokio::spawn(listened(listener, job, server.clone(), asker.caller.clone()));
    Ok(json!({ "task": task }))
}

/// Sends the status of a task that has ended to the connection that began it.
async fn listened(listener: Listener, job: AnyJob, server: Arc<Shared>, caller: Principal) {
    if !listener.follow(&job).await {
        return;
    }
    let Some(tasks) = &server.tasks else { return };
    let asker = Asker { server: &server, tasks, caller, structure: StructuredContent::Object };
    if let Ok(seen) = asker.find(job.id().as_str()).await
        && seen.is_ended()
    {
        listener.tell(Value::Object(asker.told(&seen))).await;
    }
}

/// Runs a call that requests a task on a server without tasks.
async fn plain(
    server: &Shared,
    params: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<Value, ErrorData> {
    if let Route::Refused(error) = route(server, &params, &context) {
        return Err(error);
    }
    legacy(call::run(server, params, context).await?.into())
}

/// The error of a task that may have begun: it is unknown if the engine has its job.
fn uncertain(error: &CallError) -> ErrorData {
    tracing::warn!(%error, "it is not known whether a task was begun");
    let message = "tasks can't be written now: this one may have begun all the same. Find out what it has done before you call \
                   it again";
    ErrorData::internal_error(message, None)
}

/// Submits the job of a call. The inner error is one of the call itself.
async fn begin(
    asker: &Asker<'_>,
    tool: &Arc<Served>,
    arguments: Option<JsonObject>,
    ttl: Option<Duration>,
    context: &RequestContext<RoleServer>,
) -> Result<Result<(AnyJob, Seen), CallError>, ErrorData> {
    let Asker { server, tasks, caller, .. } = asker;
    let McpTasks { jobs, max_open, open, .. } = tasks;
    let Some(counted) = open.enter(caller.id(), *max_open) else {
        let message = format!("there are {max_open} tasks that have not ended (`max_open`): try again when some have");
        return Err(ErrorData::new(TOO_MANY, message, None));
    };
    let spec = tool.spec();
    let mut options = SubmitOptions::new().with_retention(tasks.ttl(ttl));
    // A caller's tasks do not delay those of a caller in another lane.
    options.tenant = caller.id().map(str::to_owned);
    options.metadata = call::metadata(context).collect::<Map<_, _>>();
    let capabilities = context.client_capabilities().and_then(|all| serde_json::to_value(all).ok());
    Client::new(capabilities.as_ref(), server.options.ask_timeout).write(&mut options.metadata);
    let jobs = match caller {
        Principal::Checked(Some(identity)) => jobs.scoped((**identity).clone()),
        _ => jobs.clone(),
    };
    let origin =
        Origin { retry: spec.retry(), unknown: !asker.is_somebody(), via: Some(asker.via()), ..Origin::default() };
    let record = tool
        .input_of(arguments)
        .and_then(|input| tool.entry.check_exactly(&input).map(|()| input))
        .and_then(|input| to_text(&input))
        .and_then(|input| jobs.record(&spec.id, input, options, &origin));
    let mut record = match record {
        Ok(record) => record,
        Err(error) => return Ok(Err(error)),
    };
    // The client decides if a call is a task, and must not get more time by that.
    let limit = tasks.timeout(server.options.timeout).map(|limit| record.submitted.saturating_add(millis(limit)));
    record.deadline = record.deadline.into_iter().chain(limit).min();
    let job = jobs.put_record(record.clone()).await.map_err(|error| uncertain(&error))?;
    follow::count(job.clone(), counted);
    let stored = Stored::Open { job: Box::new(record), tries: Tries::default() };
    let begun = Seen::begun(job.id().clone(), tool.clone(), stored);
    tracing::debug!(task = begun.id.as_str(), operation = spec.id.as_ref(), caller = caller.id(), "a task was begun");
    Ok(Ok((job, begun)))
}
