//! The meaning of responses to `server/discover` and `initialize`.

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;
use serde_json::value::RawValue;

/// The newest revision, which needs no `initialize`.
pub(in super::super) const STATELESS: &str = "2026-07-28";

/// The error for rmcp if the server does not know the newest revision. A server that knows it says so, or that it
/// prefers another version; any other response means that it is an old server.
pub(super) fn unknown(result: Option<&RawValue>, code: &Value, message: &Value, data: &Value) -> Option<ErrorData> {
    let speaks = |versions: Option<&Value>| {
        versions.and_then(Value::as_array).is_some_and(|versions| versions.iter().any(|version| version == STATELESS))
    };
    if let Some(result) = result {
        let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
        let readable = serde_json::from_value::<rmcp::model::DiscoverResult>(result.clone()).is_ok();
        let knows = readable && speaks(result.get("supportedVersions"));
        return (!knows).then(|| legacy("an answer that does not fit"));
    }
    let code = code.as_i64().and_then(|code| i32::try_from(code).ok()).map(ErrorCode);
    match code {
        Some(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION) if speaks(data.get("supported")) => None,
        // Refusals by servers that know the revision.
        Some(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY | ErrorCode::HEADER_MISMATCH) => None,
        _ => Some(legacy(message.as_str().unwrap_or("an error"))),
    }
}

/// The error that makes rmcp continue with `initialize`.
pub(in super::super) fn legacy(what: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("the answer to `server/discover` was: {what}"), None)
}

/// True if the result of `initialize` declares that the server reports changes of its tools.
pub(super) fn reports_changes(result: &RawValue) -> bool {
    let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
    result.pointer("/capabilities/tools/listChanged") == Some(&Value::Bool(true))
}
