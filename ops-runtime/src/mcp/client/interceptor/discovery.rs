//! What answers to `server/discover` and `initialize` mean.

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;

use super::{Frame, STATELESS, Verdict, read_error};

/// A server of the newest revision says so, or that it prefers another version; any other answer means that it is an
/// old one.
pub(super) fn discovered(id: i64, frame: &Frame<'_>) -> Verdict {
    let speaks = |versions: Option<&Value>| {
        versions.and_then(Value::as_array).is_some_and(|versions| versions.iter().any(|version| version == STATELESS))
    };
    if let Some(result) = frame.result {
        let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
        let readable = serde_json::from_value::<rmcp::model::DiscoverResult>(result.clone()).is_ok();
        return if readable && speaks(result.get("supportedVersions")) {
            Verdict::Pass
        } else {
            Verdict::Failed(id, legacy("an answer that does not fit"))
        };
    }
    let error = read_error(frame.error);
    let code = error.code.as_i64().and_then(|code| i32::try_from(code).ok()).map(ErrorCode);
    match code {
        Some(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION) if speaks(error.data.get("supported")) => Verdict::Pass,
        // Refusals of servers that know the revision.
        Some(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY | ErrorCode::HEADER_MISMATCH) => Verdict::Pass,
        _ => Verdict::Failed(id, legacy(error.message.as_str().unwrap_or("an error"))),
    }
}

/// The error that makes rmcp go on with `initialize`.
pub(in super::super) fn legacy(what: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("the answer to `server/discover` was: {what}"), None)
}

/// True if the answer to `initialize` says that the server reports changes of its tools.
pub(super) fn reports_changes(frame: &Frame<'_>) -> bool {
    let result = frame.result.and_then(|result| serde_json::from_str::<Value>(result.get()).ok());
    result.and_then(|result| result.pointer("/capabilities/tools/listChanged")?.as_bool()).unwrap_or_default()
}
