//! What each protocol says of an answer beside its data.
//!
//! The pipeline asks here, and knows no protocol itself: is it an error, which alternative of the output is it, and what
//! takes the place of data that should have come. A new binding says so here, too.

use std::borrow::Cow;
use std::cell::OnceCell;

use serde_json::{Map, Value};

use crate::model::binding::{Expected, foreign_type};
use crate::model::media::{Media, essence};
use crate::model::secrets::Kept;
use crate::{
    Binding, CallError, ContentBlock, ErrorCode, HttpBinding, HttpMeta, HttpResponse, McpMeta, McpOutput,
    OperationKind, OperationSpec, ResponseMeta, StatusRange,
};
use crate::{pointer, record};

/// How many schemas are visited to find out if an output is bytes.
const VISITED: usize = 100;

impl ResponseMeta {
    /// True if the answer is what a failed operation says, which is not of the output's type.
    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Self::Mcp(meta) if meta.is_error)
    }

    /// The facts of an answer that is no error.
    ///
    /// # Errors
    /// The error that a typed call gives for the answer of a failed operation.
    pub(crate) fn of_success(self) -> Result<Self, CallError> {
        match self {
            Self::Mcp(meta) if meta.is_error => Err(tool_error(*meta)),
            meta => Ok(meta),
        }
    }

    /// The facts that belong into the details of an error about the answer.
    pub(crate) fn details(&self) -> Map<String, Value> {
        match self {
            Self::Http(http) => {
                let mut details = Map::from_iter([
                    ("statusCode".to_owned(), http.status_code.into()),
                    ("contentType".to_owned(), http.content_type.clone().into()),
                ]);
                if let Some(retries) = http.retries {
                    details.insert("retries".to_owned(), retries.into());
                }
                details
            }
            Self::Local(_) | Self::Mcp(_) => Map::new(),
        }
    }

    /// The content type of a response, which is empty if it has none. `None` if the protocol has no content types.
    pub(crate) fn content_type(&self) -> Option<&str> {
        self.as_http().map(|http| &*http.content_type)
    }

    /// The type of the server-sent event that an item came with. `None` if it has none of its own.
    pub(crate) fn event_type(&self) -> Option<&str> {
        let event = self.as_http()?.event.as_ref()?;
        Some(event.kind.as_str()).filter(|kind| !kind.is_empty() && *kind != "message")
    }

    /// True if a response of the protocol can come without data, as HTTP responses without a body do.
    pub(crate) fn may_be_empty(&self) -> bool {
        self.as_http().is_some()
    }

    /// What knows the secrets that the server was given, which no error and no log may hold.
    pub(crate) fn secrets(&self) -> Option<&Kept> {
        match self {
            Self::Http(http) => Some(&http.secrets),
            Self::Mcp(mcp) => Some(&mcp.secrets),
            Self::Local(_) => None,
        }
    }

    /// Words of the answer for the log, without the secrets.
    pub(crate) fn words<'w>(&self, words: &'w str) -> Cow<'w, str> {
        self.secrets().map_or(Cow::Borrowed(words), |secrets| secrets.text(words))
    }

    /// Keeps what knows the secrets that the server was given.
    #[cfg(feature = "mcp")]
    pub(crate) fn keep(&mut self, secrets: Kept) {
        match self {
            Self::Http(http) => http.secrets = secrets,
            Self::Mcp(mcp) => mcp.secrets = secrets,
            Self::Local(_) => {}
        }
    }

    /// An error about the answer, without the secrets that the server may have said again in it.
    pub(crate) fn told(&self, error: CallError) -> CallError {
        match self.secrets() {
            Some(secrets) => error.without_kept(secrets),
            None => error,
        }
    }

    /// The facts of an HTTP response that a handler of this process made, with a status that can be sent.
    pub(crate) fn as_own(&self) -> Option<&HttpMeta> {
        self.as_http().filter(|meta| meta.own.0 && (200..600).contains(&meta.status_code))
    }

    /// Marks a response as that of another server.
    #[inline]
    pub(crate) fn disown(&mut self) {
        if let Self::Http(http) = self {
            http.own.0 = false;
        }
    }

    /// Removes what the server sent beside the data, which is for the operator.
    pub(crate) fn remove_asides(&mut self) {
        if let Self::Http(http) = self {
            http.headers.clear();
            http.set_cookie.clear();
        }
    }
}

/// What to do without the data that an operation promises.
pub(crate) struct Missing {
    /// What is promised, and what came, as warnings say it.
    pub(crate) expected: &'static str,
    pub(crate) found: &'static str,
    /// True if `null` came, which is the data if the schema allows it.
    pub(crate) may_be_null: bool,
    /// Values that may be the data: the first that conforms to the schema is.
    pub(crate) candidates: Vec<Value>,
    /// What came.
    pub(crate) came: Value,
}

impl Missing {
    /// What is found where a tool left its structured content out.
    pub(crate) const BLOCKS: &'static str = "content blocks";
}

impl OperationSpec {
    /// True if handlers of this process run the operation, so that its types are its own.
    pub(crate) fn is_local(&self) -> bool {
        self.binding == Binding::Local
    }

    /// The properties of the input that are request bodies, for which OpenAPI's rules of requests hold, with their
    /// schemas. One without a name is the input itself.
    pub(crate) fn request_bodies(&self) -> Vec<(&str, Value)> {
        let mut found: Vec<(&str, Value)> = Vec::new();
        let Some(http) = self.directed_http().filter(|http| !http.bodies.is_empty()) else { return found };
        let Ok(input) = self.input.to_value() else { return found };
        for body in http.bodies.iter() {
            let schema = http.schema_of_body(body, &input);
            found.extend(schema.map(|schema| (body.property.as_ref(), schema)));
        }
        found
    }

    /// The alternative of the output's `oneOf` that an answer is, if its binding says so.
    pub(crate) fn variant_of(&self, meta: &ResponseMeta) -> Option<u16> {
        let (binding, meta) = (self.http()?, meta.as_http()?);
        binding.response(meta.status_code, &meta.content_type)?.variant
    }

    /// The kinds of content that are described for an answer, and the one that came, where they cannot be the same;
    /// `is_bytes` if the answer is read as bytes.
    pub(crate) fn foreign_type(&self, meta: &ResponseMeta, is_bytes: bool) -> Option<(String, String)> {
        let (binding, meta) = (self.http()?, meta.as_http()?);
        let expected = match self.kind {
            OperationKind::Subscription => Expected::Items,
            _ if is_bytes => Expected::Bytes,
            _ => Expected::Value,
        };
        if expected == Expected::Bytes
            && let Some(differs) = self.other_than_bytes(binding, meta)
        {
            return Some(differs);
        }
        foreign_type(&binding.responses, meta.status_code, &meta.content_type, expected)
    }

    /// The content type that the output has, and that of an answer, if the document describes both, and only the latter is
    /// bytes: in base64 these would look like a text of the output.
    fn other_than_bytes(&self, binding: &HttpBinding, meta: &HttpMeta) -> Option<(String, String)> {
        let is_bytes = |response: &HttpResponse| {
            let kind = response.content_type.as_deref().map(Media::of);
            matches!(kind, Some(Media::Bytes | Media::Multipart))
        };
        let came = essence(&meta.content_type);
        let answer = binding.response(meta.status_code, &came)?;
        let is_described = answer.content_type.as_deref().is_some_and(|described| essence(described) == came);
        if !is_described || !is_bytes(answer) || answer.variant.is_some() || self.output.is_any() {
            return None;
        }
        // The reader of documents puts the type of the output first.
        let mut alike = binding.responses.iter().filter(|response| response.status == answer.status);
        let (first, described) = alike.find_map(|response| {
            let described = response.content_type.as_deref().filter(|described| !Media::of(described).is_stream())?;
            Some((response, described))
        })?;
        // JSON may be described as bytes, too: then the answer is read as bytes, whatever its type is.
        let is_by_schema = || self.output.to_value().is_ok_and(|output| self.has_schema_of_bytes(first, &output));
        let is_open = is_bytes(first) || described.contains('*') || is_by_schema();
        (!is_open).then(|| (described.to_owned(), came))
    }

    /// True if bytes are described for an answer, which are held in base64 as a value.
    pub(crate) fn describes_bytes(&self, meta: &ResponseMeta) -> bool {
        let (Some(binding), Some(meta)) = (self.http(), meta.as_http()) else { return false };
        let described = binding.response(meta.status_code, &meta.content_type);
        described.is_some_and(|response| {
            let kind = response.content_type.as_deref().map(Media::of);
            matches!(kind, Some(Media::Bytes | Media::Multipart)) || self.gives_bytes([response]).contains(&true)
        })
    }

    /// For each response, true if its content type does not decide whether it is bytes, and the schema of the output says
    /// that it is. Such types are ranges such as `*/*`, and types of text such as `text/csv`. JSON stays JSON.
    pub(crate) fn gives_bytes<'r>(&self, responses: impl IntoIterator<Item = &'r HttpResponse>) -> Vec<bool> {
        // Parsed for all responses at once, and only if one needs it.
        let output = OnceCell::new();
        let of_response = |response: &HttpResponse| {
            if !leaves_open(response) {
                return false;
            }
            let output: &Option<Cow<'_, Value>> = output.get_or_init(|| self.output.to_value().ok());
            output.as_deref().is_some_and(|output| self.has_schema_of_bytes(response, output))
        };
        responses.into_iter().map(of_response).collect()
    }

    /// True if the schema that a response has in the output is that of bytes, whatever its content type is.
    fn has_schema_of_bytes(&self, response: &HttpResponse, output: &Value) -> bool {
        let schema = match response.variant {
            Some(at) => ["oneOf", "anyOf"].iter().find_map(|key| output.get(*key)?.get(usize::from(at))),
            None => Some(output),
        };
        let mut left = VISITED;
        schema.is_some_and(|schema| self.is_of_bytes(schema, &mut left))
    }

    /// True if a schema is that of bytes, by itself or by a schema that it refers to.
    fn is_of_bytes(&self, schema: &Value, left: &mut usize) -> bool {
        let Some(rest) = left.checked_sub(1) else { return false };
        *left = rest;
        if let Some(format) = schema.get("format") {
            return format == "binary";
        }
        let name = schema.get("$ref").and_then(Value::as_str).and_then(pointer::definition);
        let definition = name.and_then(|name| self.definitions.get(&name)?.schema.to_value().ok());
        if definition.is_some_and(|schema| self.is_of_bytes(&schema, left)) {
            return true;
        }
        let mut parts = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
        parts.any(|part| self.is_of_bytes(part, left))
    }

    /// True if a success of the operation is all that it gives: no body is described for one.
    pub(crate) fn gives_nothing(&self) -> bool {
        let Some(binding) = self.http().filter(|_| self.kind != OperationKind::Subscription) else { return false };
        let mut successes = binding.responses.iter().filter(|response| response.status.is_success());
        successes.all(|response| response.content_type.is_none())
            && self.output.to_value().is_ok_and(|schema| schema.get("type").is_some_and(|kind| kind == "null"))
    }

    /// Data that no schema describes, beside those that the operation gives: the data of a call by id.
    ///
    /// The facts hold what was sent wherever the result has been since.
    pub(crate) fn undescribed<'m>(&self, meta: &'m ResponseMeta) -> Option<&'m Value> {
        let (McpOutput::Content, false) = (self.mcp()?.output, meta.is_error()) else { return None };
        // Some servers say `null` for what they leave out.
        meta.as_mcp()?.structured_content.as_ref().filter(|structured| !structured.is_null())
    }

    /// The data that the operation gives where an answer holds [others](Self::undescribed), too.
    ///
    /// # Errors
    /// If the data can't be written as JSON.
    pub(crate) fn described(&self, meta: &ResponseMeta) -> Result<Option<Value>, CallError> {
        match (self.undescribed(meta), meta.as_mcp()) {
            (Some(_), Some(meta)) => meta.content_as_json().map(Some),
            _ => Ok(None),
        }
    }

    /// What is left if an answer lacks the data that the operation promises; `data` is what was read, if it is a value.
    ///
    /// # Errors
    /// If what came can't be written as JSON.
    pub(crate) fn missing(&self, meta: &ResponseMeta, data: Option<&Value>) -> Result<Option<Missing>, CallError> {
        let (Some(tool), Some(meta)) = (self.mcp(), meta.as_mcp()) else { return Ok(None) };
        if meta.is_error || tool.output == McpOutput::Content {
            return Ok(None);
        }
        let is_wrapped = tool.output == McpOutput::Wrapped;
        let (came, may_be_null) = match &meta.structured_content {
            Some(Value::Null) => (meta.content_as_json()?, !is_wrapped),
            Some(_) => return Ok(None),
            None => (meta.content_as_json()?, false),
        };
        // An envelope from another process may hold what was made of the text there.
        if meta.structured_content.is_none() && data != Some(&came) {
            return Ok(None);
        }
        let text = match meta.content.as_slice() {
            [ContentBlock::Text(block)] => record::from_str::<Value>(&block.text).ok(),
            _ => None,
        };
        let inner = text.as_ref().and_then(|value| value.get("result")).filter(|_| is_wrapped).cloned();
        let candidates = inner.into_iter().chain(text).collect();
        Ok(Some(Missing { expected: "structured content", found: Missing::BLOCKS, may_be_null, candidates, came }))
    }
}

impl McpMeta {
    /// The structured content of a failed tool whose result has no content blocks: nothing else says why it failed.
    pub(crate) fn only_reason(&self) -> Option<&Value> {
        self.structured_content.as_ref().filter(|reason| self.is_error && self.content.is_empty() && !reason.is_null())
    }

    /// The content blocks as JSON, as they are the data of a tool without an output schema.
    pub(crate) fn content_as_json(&self) -> Result<Value, CallError> {
        serde_json::to_value(&self.content)
            .map_err(|error| CallError::execution(format!("the content of a tool's answer is no JSON: {error}")))
    }
}

/// True if a response may be a success, and its content type does not decide whether it is bytes.
fn leaves_open(response: &HttpResponse) -> bool {
    let Some(kind) = response.content_type.as_deref() else { return false };
    let may_succeed = response.status.is_success() || response.status == StatusRange::Default;
    let is_open = kind.contains('*') || kind.trim().is_empty();
    may_succeed && (is_open || matches!(Media::of(kind), Media::Text | Media::Other))
}

/// The error of a call whose tool says that it failed, for callers that get its data.
#[cfg(any(feature = "gateway", feature = "program"))]
pub(crate) fn tool_failed() -> CallError {
    CallError::new(ErrorCode::ToolError, "the tool says that it failed")
}

fn tool_error(meta: McpMeta) -> CallError {
    let text: Vec<_> = meta.content.iter().filter_map(ContentBlock::as_text).collect();
    let message = match meta.only_reason() {
        Some(reason) => format!("the tool answered with an error: {reason}"),
        None if text.is_empty() => "the tool answered with an error".to_owned(),
        None => text.join("\n"),
    };
    CallError::new(ErrorCode::ToolError, message).with_mcp_meta(meta)
}
