//! Problem objects of our own servers: the codes of their errors.

use serde_json::{Value, json};

use crate::http::sse::SseEvent;
use crate::{CallError, ErrorCode, HttpMeta, OperationSpec, Text};

/// The content type of a problem (RFC 9457).
const PROBLEM: &str = "application/problem+json";

/// The codes that an operation declares, with their statuses.
#[derive(Debug, Clone, Default)]
pub(super) struct Codes(Vec<(Text, Option<u16>)>);

impl Codes {
    pub(super) fn of(spec: &OperationSpec) -> Self {
        // A code made from a status, such as `HTTP_404`, is the name of a response: no server sends it.
        let own = spec.errors.iter().filter(|declared| !declared.code.starts_with("HTTP_"));
        Self(own.map(|declared| (declared.code.clone(), declared.http_status)).collect())
    }

    fn declares(&self, code: &str, status: u16) -> bool {
        self.0.iter().any(|(own, of)| own == code && of.is_none_or(|of| of == status))
    }

    /// The error of a response, with the code and the message of its problem if the operation declares that code for its
    /// status.
    pub(super) fn named(&self, error: CallError) -> CallError {
        let Some(status) = error.status().filter(|_| !self.0.is_empty()) else { return error };
        let body = error.details().get("body");
        match body.and_then(Problem::of).filter(|problem| problem.status == status) {
            Some(problem) if self.declares(problem.code, status) => {
                let (code, detail) = (problem.code.to_owned(), problem.detail.to_owned());
                error.renamed(code, detail)
            }
            _ => error,
        }
    }

    /// The error in an event, if it has the form of our servers.
    pub(super) fn event(&self, event: &SseEvent, meta: &HttpMeta) -> Option<CallError> {
        if event.kind != "error" {
            return None;
        }
        self.item(serde_json::from_str(&event.data).ok()?, meta)
    }

    /// The error in a text of a stream, if it has the form of our servers.
    pub(super) fn text(&self, text: &[u8], meta: &HttpMeta) -> Option<CallError> {
        // No other text is parsed here.
        let rest = text.strip_prefix(b"{")?.trim_ascii_start();
        if !rest.starts_with(b"\"error\"") {
            return None;
        }
        match serde_json::from_slice(text).ok()? {
            Value::Object(mut members) if members.len() == 1 => self.item(members.remove("error")?, meta),
            _ => None,
        }
    }

    fn item(&self, body: Value, meta: &HttpMeta) -> Option<CallError> {
        let Problem { status, code, detail } = Problem::of_server(&body)?;
        let code = match ErrorCode::from(code.to_owned()) {
            ErrorCode::Domain(code) if !self.declares(&code, status) => ErrorCode::ExecutionError,
            code => code,
        };
        let error = CallError::new(code, detail.to_owned());
        let headers = &meta.headers;
        let details = json!({ "statusCode": status, "headers": headers, "contentType": PROBLEM, "body": body });
        Some(error.with_details(details))
    }
}

/// The error of a call in a problem.
struct Problem<'a> {
    status: u16,
    code: &'a str,
    detail: &'a str,
}

impl<'a> Problem<'a> {
    /// A problem with a code, from any server.
    fn of(body: &'a Value) -> Option<Self> {
        let text = |name| body.get(name).and_then(Value::as_str);
        let status = body.get("status")?.as_u64()?.try_into().ok()?;
        Some(Self { status, code: text("code")?, detail: text("detail")? })
    }

    /// A problem with all members that our servers write, so that no item is taken for one.
    fn of_server(body: &'a Value) -> Option<Self> {
        let is_text = |name| body.get(name).is_some_and(Value::is_string);
        let is_ours =
            body.get("type").is_some_and(|kind| kind == "about:blank") && is_text("title") && is_text("request");
        Self::of(body).filter(|problem| is_ours && (400..600).contains(&problem.status))
    }
}
