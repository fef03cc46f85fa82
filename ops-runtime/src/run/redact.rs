//! What callers in other processes see of results and errors that came from other servers.
//!
//! The data of a result are for every caller of the operation. The headers, the cookies and the error texts of the
//! server that sent it are for the operator: they are logged. This holds for MCP and for the call protocol.

use std::fmt;

use serde_json::{Map, Value};

use crate::normalise::{CompiledSchema, Reading};
use crate::{CallError, ErrorCode, ErrorDefinition, OperationSpec, ResponseMeta, StatusRange};

/// The details of an error that come from another server.
const FOREIGN: [&str; 6] = ["headers", "contentType", "body", "raw", "truncated", "statusCode"];

/// Removes what another server sent beside the data from the meta of a result.
pub(crate) fn meta(meta: &mut ResponseMeta) {
    meta.remove_asides();
}

/// The part of an error that a caller in another process may see: everything that the operation itself reports.
///
/// The error of a response shows its status, and its body if it is the operation's own and declared. An
/// operation of another server reports nothing itself, so a failure on the way is only logged. The failure of a function
/// is shown as it is: peers are usually programs of the same owner, unlike the clients of a server (`public`). If a call
/// that the function made was refused or ended too early, or if a tool that it called failed, the text is only logged.
/// Otherwise a peer that serves the function to clients would show them the text, because it cannot know that it is not
/// the function's own.
pub(crate) fn error(error: CallError, spec: &OperationSpec, request: &str) -> CallError {
    if error.own_status().is_some() {
        return error;
    }
    if is_of_another(&error, spec) {
        tracing::warn!(operation = spec.id.as_ref(), request, %error, "a call that an operation made failed");
        return without_text(&error, "worker", &request);
    }
    if is_misleading(&error, spec) {
        return as_own(error, spec, request);
    }
    let details = error.details();
    if let Some(status) = details.get("statusCode").and_then(Value::as_u64)
        && *error.code() == ErrorCode::ExecutionError
    {
        tracing::warn!(operation = spec.id.as_ref(), request, %error, "an operation was answered by an error");
        return of_response(&error, status, spec);
    }
    let failed = matches!(error.code(), ErrorCode::ExecutionError | ErrorCode::UnknownError);
    if failed && !spec.is_local() {
        tracing::warn!(operation = spec.id.as_ref(), request, %error, "an operation of another server failed");
        let message = format!("the operation failed; the worker's log says more of request {request}");
        let shown = CallError::new(error.code().clone(), message);
        // A job of the caller must not repeat it either.
        return if error.is_lasting() { shown.lasting() } else { shown };
    }
    if is_of_another_tool(&error, spec) {
        tracing::warn!(operation = spec.id.as_ref(), request, %error, "a tool that an operation called failed");
        let message =
            format!("a tool that the operation called failed; the worker's log says more of request {request}");
        return CallError::new(ErrorCode::ToolError, message);
    }
    // An error with a code of the operation's own is meant for callers.
    let may_be_foreign = failed || *error.code() == ErrorCode::ValidationError;
    match details {
        Value::Object(members) if may_be_foreign && FOREIGN.iter().any(|name| members.contains_key(*name)) => {
            let own = members.iter().filter(|(name, _)| !FOREIGN.contains(&name.as_str()));
            let own: Map<String, Value> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
            error.with_details(if own.is_empty() { Value::Null } else { Value::Object(own) })
        }
        _ => error.without_response(),
    }
}

/// The error of a call that the handler made, as a failure of the operation itself.
///
/// By its code, a caller would take it for the answer to its own call: the operation is not there, or the input does not fit. But
/// the operation was run, and may have done something before.
pub(crate) fn as_own(error: CallError, spec: &OperationSpec, request: &str) -> CallError {
    if !is_misleading(&error, spec) {
        return error;
    }
    tracing::warn!(operation = spec.id.as_ref(), request, %error, "a call that an operation made was refused");
    CallError::new(ErrorCode::ExecutionError, error.message().to_owned())
}

/// True if the code of a call that the handler made says something else of the operation itself.
fn is_misleading(error: &CallError, spec: &OperationSpec) -> bool {
    let is_of_call = matches!(error.code(), ErrorCode::OperationNotFound | ErrorCode::ValidationError);
    error.refuses_program() || is_of_call && !error.is_of(&spec.id)
}

/// True if a call that the handler made was refused or ended too early, or if the program's own credentials were refused.
fn is_of_another(error: &CallError, spec: &OperationSpec) -> bool {
    let is_of_call = matches!(error.code(), ErrorCode::AccessDenied | ErrorCode::Timeout | ErrorCode::Aborted);
    error.refuses_program() || is_of_call && !error.is_of(&spec.id)
}

/// The error of a refusal, or of a call that ended too early, without its text and its details. The log of the process
/// (`logging`) has them.
///
/// If credentials were refused that the program has chosen, the operation has failed: the caller may have every right.
fn without_text(error: &CallError, logging: &str, request: &dyn fmt::Display) -> CallError {
    let (code, what) = match error.code() {
        _ if error.refuses_program() => (ErrorCode::ExecutionError, "failed"),
        ErrorCode::AccessDenied => (ErrorCode::AccessDenied, "is not allowed"),
        ErrorCode::Timeout => (ErrorCode::Timeout, "did not end in time"),
        code => (code.clone(), "was interrupted, or is not available now"),
    };
    let shown =
        CallError::new(code, format!("the operation {what}; the {logging}'s log says more of request {request}"));
    match error.code() {
        _ if error.is_lasting() => shown.lasting(),
        ErrorCode::Aborted if error.is_retryable() => shown.retryable(),
        _ => shown,
    }
}

/// The part of an error that a client of a server may see.
///
/// Errors with a code of the operation's own are meant for callers, and so are those of the registry. The failure of a
/// handler, or of what it called, may contain anything: it is logged, and the caller gets a number to find it in the
/// log. An input that a call of the handler does not take is such a failure, and no fault of the caller.
///
/// An HTTP error shows its status, and its body if it is the operation's own and declared. A status that a handler
/// itself returns is shown as it is.
///
/// If such a call was refused or ended too early, its text is only logged as well: it is about operations, hosts and
/// credentials that the caller does not know. The same applies to an operation of another server (`is_foreign`) that ended too
/// early, unless this process has ended it.
#[cfg(any(feature = "http-server", feature = "mcp-server"))]
pub(crate) fn public(
    error: CallError,
    spec: &OperationSpec,
    request: &crate::model::request_id::RequestId,
    is_foreign: bool,
    expose: bool,
) -> CallError {
    if error.own_status().is_some() {
        return error;
    }
    let is_late = matches!(error.code(), ErrorCode::Timeout | ErrorCode::Aborted);
    if is_of_another(&error, spec) || is_late && is_foreign && !error.is_by_this_process() {
        match *error.code() == ErrorCode::AccessDenied && !error.refuses_program() {
            // No failure: any client can cause it.
            true => {
                tracing::warn!(operation = spec.id.as_ref(), %request, %error, "a call that a served operation made was refused");
            }
            false => tracing::error!(operation = spec.id.as_ref(), %request, %error, "a served operation failed"),
        }
        let shown = without_text(&error, "server", request);
        let is_kept = expose && shown.code() == error.code();
        return if is_kept { shown.with_message(error.message().to_owned()) } else { shown };
    }
    match error.code() {
        ErrorCode::ValidationError if !is_misleading(&error, spec) => {
            // The details also hold responses that do not match; a result with violations was meant for callers.
            let shown = ["violations", "value"]
                .iter()
                .filter_map(|name| Some(((*name).to_owned(), error.details().get(name)?.clone())));
            let shown: Map<String, Value> = shown.collect();
            error.with_details(if shown.is_empty() { Value::Null } else { Value::Object(shown) })
        }
        ErrorCode::ExecutionError
        | ErrorCode::UnknownError
        | ErrorCode::OperationNotFound
        | ErrorCode::ValidationError => {
            tracing::error!(operation = spec.id.as_ref(), %request, %error, "a served operation failed");
            let is_misleading = is_misleading(&error, spec);
            if !is_misleading && let Some(status) = error.details().get("statusCode").and_then(Value::as_u64) {
                return of_response(&error, status, spec);
            }
            if expose && error.code() == &ErrorCode::ExecutionError {
                return error.with_details(Value::Null);
            }
            let is_unserved = !is_misleading && error.is_unserved();
            let what = if is_unserved { "is not available now" } else { "failed" };
            let message = format!("the operation {what}; the server's log says more of request {request}");
            let code = if is_misleading { ErrorCode::ExecutionError } else { error.code().clone() };
            let shown = CallError::new(code, message);
            if is_unserved { shown.retryable() } else { shown }
        }
        ErrorCode::ToolError if is_of_another_tool(&error, spec) => {
            tracing::error!(operation = spec.id.as_ref(), %request, %error, "a tool that a served operation called failed");
            let message = match expose {
                true => error.message().to_owned(),
                false => {
                    format!("a tool that the operation called failed; the server's log says more of request {request}")
                }
            };
            CallError::new(ErrorCode::ToolError, message)
        }
        _ => error.without_response(),
    }
}

/// The error of a response: its status, and the body if the operation itself has it and declares it.
///
/// The response of another operation, which the handler called, is not what this one declares.
fn of_response(error: &CallError, status: u64, spec: &OperationSpec) -> CallError {
    let body = error.details().get("body").filter(|body| error.is_of(&spec.id) && is_declared(status, body, spec));
    CallError::of_status(status, body.cloned())
}

/// True if the operation declares an error response, by its status or by a range of statuses (`4XX`, `default`).
///
/// A range declares no redirect, because callers do not get its target. Nor does it declare 401 and 407: they are about
/// the credentials of this process, and callers would think of their own.
fn is_declared(status: u64, body: &Value, spec: &OperationSpec) -> bool {
    let Ok(status) = u16::try_from(status) else { return false };
    let of = |range: StatusRange| {
        let code = range.error_code();
        spec.errors.iter().find(|declared| declared.code == code)
    };
    if spec.errors.iter().any(|declared| declared.http_status == Some(status))
        || of(StatusRange::Exact(status)).is_some()
    {
        return true;
    }
    let by_range = of(StatusRange::Class(status / 100)).or_else(|| of(StatusRange::Default));
    matches!(status, 400..600)
        && !matches!(status, 401 | 407)
        && by_range.is_some_and(|declared| !is_page(body, declared, spec))
}

/// True if the body is a text, but an object is declared.
///
/// Such a text is usually the page of a framework or a proxy, which may show paths and hosts.
fn is_page(body: &Value, declared: &ErrorDefinition, spec: &OperationSpec) -> bool {
    body.is_string()
        && declared.schema.self_contained(&spec.definitions).is_ok_and(|schema| {
            let schema = CompiledSchema::new(&schema, Reading::Default);
            let admits = |value: &Value| schema.kinds_instead_of(value).is_none();
            admits(&Value::Object(Map::new())) && !admits(body)
        })
}

/// True if not the operation itself is the tool that failed, but one that its handler called.
///
/// A tool of another server passes on what it says of its own failure. What a function called is not for its callers.
fn is_of_another_tool(error: &CallError, spec: &OperationSpec) -> bool {
    *error.code() == ErrorCode::ToolError && !error.is_of(&spec.id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_keep_what_the_operation_says() {
        let spec = OperationSpec::query("a.b");
        let shown = |details: Value| error(CallError::execution("told").with_details(details), &spec, "1");
        assert_eq!(shown(json!({ "why": 7 })).details(), &json!({ "why": 7 }));
        assert_eq!(shown(json!({ "why": 7, "raw": "secret", "headers": {} })).details(), &json!({ "why": 7 }));
        let http = shown(json!({ "statusCode": 404, "body": "secret", "headers": { "x": "secret" } }));
        assert_eq!((http.message(), http.details()), ("HTTP 404: Not Found", &json!({ "statusCode": 404 })));
        // Nor does a function show the body of an API that it called, in a box or not, even if it declares the status itself.
        let mut own = OperationSpec::query("a.b");
        own.errors = vec![crate::ErrorDefinition::new("NotFound").with_http_status(404)].into();
        let details = json!({ "statusCode": 404, "body": "secret", "headers": { "x": "secret" } });
        for operation in ["far.away", "a.b"] {
            let failed = CallError::execution("HTTP 404: Not Found").with_details(details.clone());
            let boxed: Box<dyn std::error::Error + Send + Sync> = failed.with_operation(operation).into();
            let shown = error(boxed.into(), &own, "1");
            let body = if operation == "a.b" { json!("secret") } else { Value::Null };
            assert_eq!((&shown.details()["body"], &shown.details()["headers"]), (&body, &Value::Null), "{operation}");
        }
        // Nor the text of another server's tool; that of a tool that is called itself is meant for its callers.
        let said = "connect postgres://10.0.0.7 refused";
        for (operation, is_shown) in [("far.away", false), ("a.b", true)] {
            let failed = || CallError::new(ErrorCode::ToolError, said).with_operation(operation);
            let shown = error(failed(), &spec, "1");
            assert_eq!((*shown.code() == ErrorCode::ToolError, shown.message() == said), (true, is_shown), "{shown}");
            #[cfg(any(feature = "http-server", feature = "mcp-server"))]
            for (expose, is_shown) in [(false, is_shown), (true, true)] {
                let meta = crate::envelope::McpMeta::default();
                let request = crate::model::request_id::RequestId::from("1");
                let shown = public(failed().with_mcp_meta(meta), &spec, &request, false, expose);
                assert_eq!(
                    (*shown.code() == ErrorCode::ToolError, shown.message() == said),
                    (true, is_shown),
                    "{shown}"
                );
                assert_eq!(shown.mcp_meta().is_some(), operation == "a.b", "{shown}");
            }
        }
        let own = error(CallError::new("TAKEN", "told").with_details(json!({ "by": "ann" })), &spec, "1");
        assert_eq!((own.message(), own.details()), ("told", &json!({ "by": "ann" })));
        let answered = error(crate::ErrorResponse::new(404, "meant for callers").into(), &spec, "1");
        assert_eq!(answered.details(), &json!({ "statusCode": 404, "body": "meant for callers" }));
    }

    /// The operation was carried out, so a caller that repeats failures must not repeat it.
    #[test]
    fn what_would_fail_again_is_told_without_its_words() {
        let spec = OperationSpec::mutation("far.away").with_http(crate::binding::HttpBinding::new("POST", "/"));
        for (failed, details) in [
            (CallError::execution("10.0.0.7"), Value::Null),
            (CallError::execution("10.0.0.7").lasting(), json!({ "retryable": false })),
            (
                CallError::execution("10.0.0.7").with_details(json!({ "by": "ann" })).lasting(),
                json!({ "retryable": false }),
            ),
        ] {
            let shown = error(failed, &spec, "1");
            let message = "the operation failed; the worker's log says more of request 1";
            assert_eq!(shown, CallError::execution(message).with_details(details));
        }
    }

    #[test]
    fn what_a_call_of_the_handler_is_refused_for_is_not_said_of_the_operation() {
        let spec = OperationSpec::mutation("shop.buy");
        let violations = || vec![json!({ "pointer": "/secretAccount", "message": "expected required property" })];
        let of = |operation: &'static str| CallError::invalid("/secretAccount", violations()).with_operation(operation);
        for shown in [error(of("ledger.post"), &spec, "1"), as_own(of("ledger.post"), &spec, "1")] {
            assert_eq!(shown, CallError::execution("/secretAccount"));
        }
        assert_eq!(as_own(of("shop.buy"), &spec, "1"), of("shop.buy"));
        assert_eq!(error(of("shop.buy"), &spec, "1"), of("shop.buy"));
        #[cfg(any(feature = "http-server", feature = "mcp-server"))]
        for expose in [false, true] {
            let request = crate::model::request_id::RequestId::from("1");
            let failed = CallError::execution("the operation failed; the server's log says more of request 1");
            assert_eq!(public(of("ledger.post"), &spec, &request, false, expose), failed);
            // Nor is the status of a response that did not fit that of the operation.
            let misfit =
                of("ledger.post").with_details(json!({ "statusCode": 200, "raw": "secret", "violations": [] }));
            assert_eq!(public(misfit, &spec, &request, false, expose), failed);
            assert_eq!(public(of("shop.buy"), &spec, &request, false, expose), of("shop.buy"));
        }
    }

    #[test]
    fn what_a_call_of_the_handler_is_refused_or_late_for_is_not_said_to_peers() {
        let buy = OperationSpec::mutation("shop.buy");
        let failed = |code: &'static str, operation: &'static str| {
            CallError::new(code, "10.0.0.7").with_details(json!({ "requiredScopes": ["a"] })).with_operation(operation)
        };
        let told = |code: &'static str, what: &str| {
            CallError::new(code, format!("the operation {what}; the worker's log says more of request 1"))
        };
        for (code, what) in [
            ("ACCESS_DENIED", "is not allowed"),
            ("TIMEOUT", "did not end in time"),
            ("ABORTED", "was interrupted, or is not available now"),
        ] {
            assert_eq!(error(failed(code, "shop.buy"), &buy, "1"), failed(code, "shop.buy"));
            assert_eq!(error(failed(code, "ledger.post"), &buy, "1"), told(code, what));
        }
        let gone = failed("ABORTED", "ledger.post").retryable();
        assert_eq!(error(gone, &buy, "1"), told("ABORTED", "was interrupted, or is not available now").retryable());
        // Credentials that the program has chosen, also for an operation that calls itself, or is in another process.
        for operation in ["ledger.post", "shop.buy"] {
            let refused = failed("ACCESS_DENIED", operation).refusing_program();
            assert_eq!(error(refused.clone(), &buy, "1"), told("EXECUTION_ERROR", "failed"));
            assert_eq!(as_own(refused, &buy, "1"), CallError::execution("10.0.0.7"));
        }
    }

    #[cfg(any(feature = "http-server", feature = "mcp-server"))]
    #[test]
    fn what_a_call_of_the_handler_is_refused_or_late_for_is_not_said_to_clients() {
        let request = crate::model::request_id::RequestId::from("1");
        let failed = |code: &'static str, operation: &'static str| {
            CallError::new(code, "10.0.0.7").with_details(json!({ "requiredScopes": ["a"] })).with_operation(operation)
        };
        let told = |code: &'static str, what: &str| {
            CallError::new(code, format!("the operation {what}; the server's log says more of request 1"))
        };
        let buy = OperationSpec::mutation("shop.buy");
        for (code, what) in [
            ("ACCESS_DENIED", "is not allowed"),
            ("TIMEOUT", "did not end in time"),
            ("ABORTED", "was interrupted, or is not available now"),
        ] {
            let own = failed(code, "shop.buy");
            assert_eq!(public(own.clone(), &buy, &request, false, false), own);
            // What another server is late for is not the words of a function. A refusal is that of the caller.
            let foreign = if code == "ACCESS_DENIED" { own.clone() } else { told(code, what) };
            assert_eq!(public(own.clone(), &buy, &request, true, false), foreign);
            // How this process ends a call is no secret, but how it ends a call of the handler is.
            assert_eq!(public(own.clone().by_this_process(), &buy, &request, true, false), own);
            let nested = failed(code, "ledger.post").by_this_process();
            assert_eq!(public(nested, &buy, &request, true, false), told(code, what));
            for spec in [&buy, &OperationSpec::query("")] {
                let of = |expose| public(failed(code, "ledger.post"), spec, &request, false, expose);
                assert_eq!((of(false), of(true)), (told(code, what), CallError::new(code, "10.0.0.7")));
                // Credentials that the handler has chosen.
                let refused = failed(code, "ledger.post").refusing_program();
                for expose in [false, true] {
                    let shown = public(refused.clone(), spec, &request, false, expose);
                    assert_eq!(shown, told("EXECUTION_ERROR", "failed"));
                }
            }
        }
        // The process's own are refused by a hub.
        let refused = failed("ACCESS_DENIED", "shop.buy").refusing_program();
        assert_eq!(public(refused, &buy, &request, true, false), told("EXECUTION_ERROR", "failed"));
        // What is gone may come back. A function may say so in its own words.
        let gone = |operation: &'static str| failed("ABORTED", operation).retryable();
        let interrupted = told("ABORTED", "was interrupted, or is not available now").retryable();
        assert_eq!(public(gone("ledger.post"), &buy, &request, false, false), interrupted);
        assert_eq!(public(gone("shop.buy"), &buy, &request, true, false), interrupted);
        assert_eq!(public(gone("shop.buy"), &buy, &request, false, false), gone("shop.buy"));
    }
}
