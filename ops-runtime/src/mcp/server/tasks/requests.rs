//! The requests about tasks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use rmcp::model::{
    CancelTaskParams, CustomRequest, DetailedTask, ErrorCode as RpcCode, ErrorData, GetTaskParams, GetTaskResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerResult, TaskPayload, UpdateTaskParams,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::ask::{self, Answer, Question};
use super::create::{called, is_earlier};
use super::list::listed;
use super::state::{Asker, Seen, unreachable};
use super::wire::{PREFIX, RELATED, legacy};
use crate::ErrorCode;
use crate::durable::JobId;
use crate::mcp::server::question::{Unanswered, send};
use crate::mcp::server::shared::Shared;
use crate::mcp::server::tool::StructuredContent;
use crate::mcp::server::unread;

/// How often a task that may ask is checked while its result is awaited.
const LOOK: Duration = Duration::from_millis(200);
/// How long a result is awaited at a time.
const WAIT: Duration = Duration::from_secs(30);

/// Handles requests that the SDK does not know: those of 2025-11-25.
///
/// # Errors
/// If the method is unknown, or the request is invalid.
pub(in crate::mcp::server) async fn custom(
    server: &Arc<Shared>,
    request: CustomRequest,
    context: RequestContext<RoleServer>,
    closed: CancellationToken,
    page: impl FnOnce(Option<String>, &RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData>,
) -> Result<Value, ErrorData> {
    let method = request.method.strip_prefix(PREFIX).unwrap_or(&request.method);
    let params = request.params.unwrap_or_default();
    match method {
        "tools/list" => {
            let params: Option<PaginatedRequestParams> = serde_json::from_value(params)
                .map_err(|error| ErrorData::invalid_params(format!("malformed parameters: {error}"), None))?;
            let page = page(params.and_then(|params| params.cursor), &context)?;
            return with_support(server, page, &context);
        }
        "tools/call" => return called(server, params, context, closed).await,
        _ => {}
    }
    let stands_alone = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    let asker = match Asker::new(server, &context) {
        // A method that the SDK knows arrived without its parameters.
        Some(_) if stands_alone && matches!(&*request.method, "tasks/get" | "tasks/update" | "tasks/cancel") => {
            return Err(ErrorData::invalid_params("`taskId` is missing, or what belongs to it is malformed", None));
        }
        Some(asker) if is_earlier(&context) => asker,
        _ => return Err(unknown(method)),
    };
    match method {
        "tasks/get" => {
            let seen = asker.find(id(&params)?).await?;
            Ok(Value::Object(asker.told(&seen)))
        }
        "tasks/result" => result(&asker, id(&params)?, &context).await,
        "tasks/cancel" => cancel(&asker, id(&params)?).await,
        "tasks/list" if asker.is_somebody() => listed(&asker, params.get("cursor")).await,
        _ => Err(unknown(method)),
    }
}

fn unknown(method: &str) -> ErrorData {
    ErrorData::new(RpcCode::METHOD_NOT_FOUND, method.to_owned(), None)
}

fn id(params: &Value) -> Result<&str, ErrorData> {
    let id = params.get("taskId").and_then(Value::as_str);
    id.ok_or_else(|| ErrorData::invalid_params("`taskId` is missing, or no text", None))
}

/// A page of the tools, each with its support for tasks.
fn with_support(
    server: &Shared,
    page: ListToolsResult,
    context: &RequestContext<RoleServer>,
) -> Result<Value, ErrorData> {
    let mut page = legacy(ServerResult::ListToolsResult(page))?;
    let Some(tasks) = server.tasks.as_ref().filter(|_| is_earlier(context)) else { return Ok(page) };
    for tool in page.get_mut("tools").and_then(Value::as_array_mut).into_iter().flatten() {
        let served = tool.get("name").and_then(Value::as_str).and_then(|name| server.tool(name));
        if let (Some(served), Value::Object(tool)) = (served, tool) {
            let support = tasks.support(served.spec()).as_str();
            tool.insert("execution".to_owned(), json!({ "taskSupport": support }));
        }
    }
    Ok(page)
}

/// Waits until a task has ended, asks the client the task's questions meanwhile, and returns the result of the call
/// itself.
async fn result(asker: &Asker<'_>, id: &str, context: &RequestContext<RoleServer>) -> Result<Value, ErrorData> {
    let mut asked = Vec::new();
    let mut asking = FuturesUnordered::new();
    let seen = loop {
        let seen = asker.find(id).await?;
        if seen.is_ended() {
            break seen;
        }
        for (number, question) in &seen.questions {
            if !asked.contains(number) {
                asked.push(*number);
                let until = seen.answers_until(asker.engine().now());
                asking.push(put(asker, (seen.id.clone(), *number), question.clone(), &context.peer, until));
            }
        }
        let wait = if seen.can_ask() { LOOK } else { WAIT };
        tokio::select! {
            biased;
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("the request was cancelled", None)),
            waited = asker.engine().wait(&seen.id, wait) => drop(waited.map_err(|error| unreachable(&error))?),
            Some(()) = asking.next() => {}
        }
    };
    let mut result = asker.outcome(&seen).unwrap_or_else(|| Err(ErrorData::internal_error("no result", None)))?;
    unread::count(&context.extensions, &result);
    let meta = result.meta.get_or_insert_default();
    meta.insert(RELATED.to_owned(), json!({ "taskId": seen.id.as_str() }));
    legacy(ServerResult::CallToolResult(result))
}

/// Asks the client a question of a task, and stores the answer until that time.
async fn put(asker: &Asker<'_>, (id, number): (JobId, usize), question: Question, peer: &Peer<RoleServer>, until: u64) {
    let asked = send(peer, &question.method, question.with_related(&id), asker.server.options.ask_timeout).await;
    let answer = match asked {
        Ok(answer) => Answer::Given(answer),
        Err(Unanswered::Refused(error)) => Answer::Refused(error),
        // It may be asked again, by another connection or for a later attempt.
        Err(Unanswered::Lost(error)) => {
            tracing::debug!(%error, task = id.as_str(), "a question of a task was not answered");
            return;
        }
    };
    if let Err(error) = ask::answer(asker.engine(), &id, number, &answer, until).await {
        tracing::warn!(%error, task = id.as_str(), "an answer of the client was not kept");
    }
}

/// Cancels a task, and returns its new state.
async fn cancel(asker: &Asker<'_>, id: &str) -> Result<Value, ErrorData> {
    let seen = asker.find(id).await?;
    let job = asker.tasks.jobs.job_by_id(seen.id.clone());
    let is_open = !seen.is_ended();
    if is_open && job.cancel().await.map_err(|error| unreachable(&error))? {
        return Ok(Value::Object(asker.told(&asker.find(id).await?)));
    }
    let task = asker.told(&asker.find(id).await?);
    let status = task.get("status").and_then(Value::as_str).unwrap_or_default();
    Err(ErrorData::invalid_params(format!("the task can't be cancelled: it is {status}"), None))
}

/// The task of 2026-07-28, with its result or its questions.
///
/// # Errors
/// If the caller has no such task.
pub(in crate::mcp::server) async fn extension_get(
    server: &Shared,
    params: GetTaskParams,
    context: RequestContext<RoleServer>,
) -> Result<GetTaskResult, ErrorData> {
    let asker = extension(server, &context)?;
    let seen = asker.find(&params.task_id).await?;
    let payload = payload(&asker, &seen, &context)?;
    Ok(GetTaskResult::new(DetailedTask::new(asker.told_as_extension(&seen), payload)))
}

fn payload(asker: &Asker<'_>, seen: &Seen, context: &RequestContext<RoleServer>) -> Result<TaskPayload, ErrorData> {
    let object = |value: Result<Value, serde_json::Error>| match value {
        Ok(Value::Object(members)) => Ok(members),
        _ => Err(ErrorData::internal_error("the result can't be written as JSON", None)),
    };
    Ok(match asker.outcome(seen) {
        _ if seen.is_cancelled() => TaskPayload::Cancelled,
        Some(Ok(result)) => {
            unread::count(&context.extensions, &result);
            TaskPayload::Completed { result: object(serde_json::to_value(&result))? }
        }
        Some(Err(error)) => TaskPayload::Failed { error: object(serde_json::to_value(&error))? },
        None => {
            let requests = seen
                .questions
                .iter()
                .filter_map(|(_, question)| question.request().map(|request| (question.key.clone(), request)));
            let input_requests: std::collections::BTreeMap<_, _> = requests.collect();
            match input_requests.is_empty() {
                true => TaskPayload::Working,
                false => TaskPayload::InputRequired { input_requests },
            }
        }
    })
}

/// Stores answers to questions of a task.
///
/// # Errors
/// If the caller has no such task.
pub(in crate::mcp::server) async fn extension_update(
    server: &Shared,
    params: UpdateTaskParams,
    context: RequestContext<RoleServer>,
) -> Result<(), ErrorData> {
    let asker = extension(server, &context)?;
    let seen = asker.find(&params.task_id).await?;
    if seen.questions.is_empty() {
        return Ok(());
    }
    let until = seen.answers_until(asker.engine().now());
    let answered = ask::answer_all(asker.engine(), &seen.id, &seen.questions, params.input_responses, until).await;
    answered.map_err(|error| match error.code() {
        // It would be too large again.
        ErrorCode::ValidationError => ErrorData::invalid_params(error.message().to_owned(), None),
        _ => unreachable(&error),
    })
}

/// Cancels a task of 2026-07-28; one that has ended stays as it is.
///
/// # Errors
/// If the caller has no such task.
pub(in crate::mcp::server) async fn extension_cancel(
    server: &Shared,
    params: CancelTaskParams,
    context: RequestContext<RoleServer>,
) -> Result<(), ErrorData> {
    let asker = extension(server, &context)?;
    let seen = asker.find(&params.task_id).await?;
    if !seen.is_ended() {
        asker.tasks.jobs.job_by_id(seen.id).cancel().await.map_err(|error| unreachable(&error))?;
    }
    Ok(())
}

/// The extension is for revisions whose requests stand alone.
fn extension<'a>(server: &'a Shared, context: &RequestContext<RoleServer>) -> Result<Asker<'a>, ErrorData> {
    let asker = Asker::new(server, context).filter(|asker| asker.structure == StructuredContent::Any);
    asker.ok_or_else(|| unknown("tasks are not served in this revision"))
}
