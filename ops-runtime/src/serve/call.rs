//! The call of an operation on behalf of the sender, and the response for its result or its failure.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use axum::body::Body;
use http::header::{VARY, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::{Map, Value};
use tracing::Instrument;

use super::incoming::Incoming;
use super::own_response;
use super::problem::{PROBLEM, Problem};
use super::response;
use super::routes::Route;
use super::status::status_of;
use super::stream::{Framing, Streaming, last_event};
use super::upload::Clock;
use crate::model::media::{Form, JSON, form};
use crate::model::request_id::RequestId;
use crate::model::trace_parent::{TRACEPARENT, TRACESTATE, TraceParent};
use crate::run::attempt::{IDEMPOTENCY_KEY, ReceivedKey};
use crate::run::context::deadline_after;
use crate::run::pipeline::{self, Invocation};
use crate::run::redact;
use crate::run::registry::Entry;
use crate::{
    Bodies, CallError, CallOptions, Context, ErrorCode, HttpBinding, Identity, OperationKind, ParameterLocation,
    Payload, ResponseEnvelope,
};

/// The metadata key of the id of the last event that a client has received.
const LAST_EVENT_ID: &str = "lastEventId";

/// The header with a client's preferences (RFC 7240), and its metadata key.
const PREFER: &str = "prefer";

/// Limit of an idempotency key, in bytes: functions keep them.
const MAX_KEY: usize = 255;

impl Incoming<'_> {
    /// Runs an operation, and makes the response.
    // Not an async fn: its future would hold the input twice.
    pub(super) fn run(
        &self,
        entry: &Arc<Entry>,
        route: Option<&Route>,
        identity: Option<Arc<Identity>>,
        input: Payload,
        bodies: Bodies,
        upload: Option<Clock>,
    ) -> impl Future<Output = Result<Response<Body>, Problem>> + Send {
        let bound = route.and_then(|route| Some((route.binding()?, &route.variants)));
        let binding = bound.map(|(binding, _)| binding);
        let span = tracing::debug_span!(
            "serve",
            "otel.kind" = "server",
            operation = entry.spec.id.as_ref(),
            request_id = %RequestId::of(self.number),
        );
        self.meter.operation(&entry.spec.id);
        let is_stream = entry.spec.kind == OperationKind::Subscription;
        let in_envelope = self.wants_envelope(binding);
        let work = async move {
            if let Err(problem) = self.idempotency_key()
                && !has_key(binding)
            {
                return Err(problem);
            }
            if is_stream {
                let input = input_value(input)?;
                return Box::pin(self.stream(entry, binding, identity, input)).await;
            }
            let mut invocation = self.invocation(identity, is_stream);
            let gives_bytes = route.is_some_and(Route::gives_bytes) && !in_envelope;
            // Before the call: one whose response has no room would have its effect, and be sent again.
            let permit = if gives_bytes { Some(self.server.limits.stream()?) } else { None };
            invocation.context = invocation.context.with_bodies(bodies.with_output(gives_bytes));
            let answered = match upload.zip(self.server.options.timeout) {
                Some((clock, time)) => {
                    invocation.context.deadline = None;
                    Box::pin(clock.limit(time, pipeline::answer_text(invocation, entry, input))).await
                }
                None => pipeline::answer_text(invocation, entry, input).await,
            };
            // A tool that failed has a result, too, which says why, and is not of the output's type.
            let succeeded = answered.and_then(|ResponseEnvelope { data, meta, warnings }| {
                Ok(ResponseEnvelope { data, meta: meta.of_success()?, warnings })
            });
            let mut envelope = match succeeded {
                Ok(envelope) => envelope,
                Err(error) => return self.failure(entry, binding, error),
            };
            own_response::set_status(&entry.spec.id, &mut envelope.meta, self.response.status());
            match std::mem::replace(&mut envelope.data, Payload::Value(Value::Null)) {
                Payload::Body(body) => {
                    let permit = permit.map_or_else(|| self.server.limits.stream(), Ok)?;
                    Box::pin(response::bytes(&entry.spec, binding, &envelope.meta, body, permit)).await
                }
                data => {
                    envelope.data = data;
                    response::response(&entry.spec, bound, &self.accept, in_envelope, envelope)
                }
            }
        };
        let answered = async move {
            let answered = work.await;
            let is_own_form = route.is_some() && !in_envelope;
            let mut answered = self.add_said(&entry.spec.id, is_own_form, answered);
            self.add_challenge(&mut answered);
            self.add_vary(&mut answered);
            answered
        };
        answered.instrument(span)
    }

    /// Adds the headers and the cookies that the handler has set by its context, if they were not added yet.
    fn add_said(
        &self,
        operation: &str,
        is_own_form: bool,
        mut answered: Result<Response<Body>, Problem>,
    ) -> Result<Response<Body>, Problem> {
        let (headers, is_own_form) = match &mut answered {
            Ok(response) => (response.headers_mut(), is_own_form),
            Err(problem) => (&mut problem.headers, false),
        };
        own_response::add_headers(operation, &self.response.take(), is_own_form, headers);
        answered
    }

    /// Adds a challenge to a status 401 of the handler, unless it has set one itself (RFC 9110, section 15.5.2).
    fn add_challenge(&self, answered: &mut Result<Response<Body>, Problem>) {
        let (status, headers) = match answered {
            Ok(response) => (response.status(), response.headers_mut()),
            Err(problem) => (problem.status, &mut problem.headers),
        };
        if status == StatusCode::UNAUTHORIZED {
            headers.entry(WWW_AUTHENTICATE).or_insert_with(|| self.server.challenge().challenge);
        }
    }

    /// Tells caches that `Accept` chooses the response: at least, a client may ask for an envelope instead.
    fn add_vary(&self, answered: &mut Result<Response<Body>, Problem>) {
        // Only such responses are kept by caches.
        if matches!(self.parts.method.as_str(), "GET" | "HEAD") {
            let headers = match answered {
                Ok(response) => response.headers_mut(),
                Err(problem) => &mut problem.headers,
            };
            headers.append(VARY, HeaderValue::from_static("accept"));
        }
    }

    async fn stream(
        &self,
        entry: &Arc<Entry>,
        binding: Option<&HttpBinding>,
        identity: Option<Arc<Identity>>,
        input: Value,
    ) -> Result<Response<Body>, Problem> {
        let permit = self.server.limits.stream()?;
        let options = &self.server.options;
        let opening = pipeline::answer_stream(self.invocation(identity, true), &entry.spec.id, input);
        let opened = match options.timeout {
            Some(timeout) => tokio::time::timeout(timeout, opening).await.unwrap_or_else(|_| {
                Err(CallError::new(ErrorCode::Timeout, "the subscription did not begin in time").by_this_process())
            }),
            None => opening.await,
        };
        let items = match opened {
            Ok(items) => items,
            Err(error) => return self.failure(entry, binding, error),
        };
        let streaming = Streaming {
            framing: Framing::of(binding, &self.accept),
            spec: entry.spec.clone(),
            request: RequestId::of(self.number),
            is_foreign: entry.is_foreign(),
            expose: options.expose_errors,
            keep_alive: options.keep_alive,
            last_event: last_event(&self.parts.headers),
            cancel: self.server.cancel.clone(),
            undeclared: self.server.undeclared_of(entry).cloned(),
            _permit: permit,
        };
        Ok(streaming.response(items))
    }

    /// A call on behalf of the sender.
    pub(super) fn invocation(&self, identity: Option<Arc<Identity>>, is_stream: bool) -> Invocation {
        let registry = &self.server.registry;
        let metadata = metadata(&self.parts.headers, is_stream);
        let deadline = self.server.options.timeout.filter(|_| !is_stream).and_then(deadline_after);
        let options = CallOptions { deadline, metadata, ..CallOptions::default() };
        let mut context = Context::new(registry.clone(), options, identity);
        context.request = self.number;
        // Any other was refused, or is a part of the input.
        if let Ok(Some(key)) = self.idempotency_key() {
            context.put_own(ReceivedKey(key.to_owned()));
        }
        let context = context.with_response(self.response.clone());
        Invocation { context, policy: registry.policy(), checked: true }
    }

    /// The idempotency key of the request. A key without characters is none.
    ///
    /// A key that no function can take is refused: its sender would assume that the request is safe to repeat.
    fn idempotency_key(&self) -> Result<Option<&str>, Problem> {
        let headers = self.parts.headers.get_all(IDEMPOTENCY_KEY).iter();
        let mut keys = headers.filter(|key| !key.as_bytes().trim_ascii().is_empty());
        let Some(first) = keys.next() else { return Ok(None) };
        let is_one = keys.all(|other| other == first);
        let key = first.to_str().ok().map(str::trim).filter(|key| is_one && key.len() <= MAX_KEY);
        key.map(Some).ok_or_else(|| {
            let detail = format!("the header `Idempotency-Key` is not one key of up to {MAX_KEY} ASCII characters");
            Problem::new(StatusCode::BAD_REQUEST, detail)
        })
    }

    /// The response for a failed call.
    ///
    /// What the handler has said of the form of its result, such as an entity tag, is not said of this.
    fn failure(
        &self,
        entry: &Entry,
        binding: Option<&HttpBinding>,
        error: CallError,
    ) -> Result<Response<Body>, Problem> {
        self.add_said(&entry.spec.id, false, self.described_failure(entry, binding, error))
    }

    /// The response for a failure.
    ///
    /// A body that the operation describes for the status, and a response of the handler itself, are sent as they are.
    /// So is an error that an API declares, even if its body is not described. All else is a problem.
    fn described_failure(
        &self,
        entry: &Entry,
        binding: Option<&HttpBinding>,
        error: CallError,
    ) -> Result<Response<Body>, Problem> {
        let request = RequestId::of(self.number);
        if let Some(undeclared) = self.server.undeclared_of(entry) {
            undeclared.tell(&error, &entry.spec);
        }
        if let Some(problem) = Problem::of_result(&error, &entry.spec, &request) {
            return Err(problem);
        }
        let is_own = error.own_status().is_some();
        // The content type of another server's response; empty if it has none.
        let came = error.details().get("contentType").and_then(Value::as_str).filter(|_| !is_own).map(str::to_owned);
        let expose = self.server.options.expose_errors;
        let error = redact::public(error, &entry.spec, &request, entry.is_foreign(), expose);
        // Only the error of a response has a status: the details of any other are the operation's own, or those of the server
        // that declares the code. Called by id, an operation gives no response of another server.
        let is_of_api = binding.is_some() && *error.code() == ErrorCode::ExecutionError;
        let status = error.status().filter(|_| is_own || is_of_api);
        if let (Some(status), Some(body)) = (status, error.details().get("body"))
            && let Some(status) = status_of(&entry.spec.id, status)
        {
            let came = came.as_deref();
            let described = binding.and_then(|binding| binding.response(status.as_u16(), came.unwrap_or(PROBLEM)));
            let described_type = described.and_then(|described| described.content_type.as_deref());
            // Another server may send a body that is not described, or none. A handler's own body has to be described.
            let is_empty = match is_own {
                true => described_type.is_none() && (body.is_null() || described.is_some()),
                false => body.is_null(),
            };
            let response = match (content_type(came, described_type, body), body) {
                _ if is_empty => response::empty(status),
                (Some(kind), Value::String(text)) if form(kind) == Form::Text => {
                    response::of_text(status, kind, text.clone())
                }
                (Some(kind), body) if form(kind) == Form::Json => response::respond(status, kind, body.to_string()),
                // It was read as text, whatever its type is.
                (_, Value::String(text)) if !is_own => {
                    response::of_text(status, came.unwrap_or("text/plain"), text.clone())
                }
                (_, body) => response::respond(status, JSON, body.to_string()),
            };
            return Ok(response);
        }
        Err(Problem::of_error(&error, &entry.spec))
    }
}

/// The content type of the body of an error: that of another server's response, or else the described one.
///
/// If that server names plain JSON, the document may know a more precise type. If it names none, the client has read
/// objects and lists as JSON, and all else as text.
fn content_type<'t>(came: Option<&'t str>, described: Option<&'t str>, body: &Value) -> Option<&'t str> {
    let described_as = |wanted: Form| described.filter(|kind| form(kind) == wanted);
    match came {
        Some("") if body.is_string() => described_as(Form::Text).or(Some("text/plain")),
        Some("") | None => described,
        Some(JSON) => described_as(Form::Json).or(came),
        came => came,
    }
}

/// True if the operation has a parameter of its own for the idempotency key, whose schema says what it takes.
fn has_key(binding: Option<&HttpBinding>) -> bool {
    let mut parameters = binding.into_iter().flat_map(|binding| binding.parameters.iter());
    parameters.any(|own| own.location == ParameterLocation::Header && own.name.eq_ignore_ascii_case(IDEMPOTENCY_KEY))
}

/// The metadata from the headers of a request. Most requests have few headers, so each is checked once.
fn metadata(headers: &HeaderMap, is_stream: bool) -> Map<String, Value> {
    let (mut parents, mut states, mut preferences) = (Vec::new(), Vec::new(), Vec::new());
    for (name, value) in headers {
        match name.as_str() {
            TRACEPARENT => parents.push(value.to_str().ok()),
            TRACESTATE => states.push(value.to_str().ok()),
            PREFER => preferences.push(value.to_str().ok()),
            _ => {}
        }
    }
    // A header of which a part is not text is ignored.
    let joined = |texts: Vec<Option<&str>>, separator: &str| {
        let texts: Option<Vec<_>> = texts.into_iter().collect();
        texts.map(|texts| texts.join(separator)).filter(|text| !text.is_empty())
    };
    let mut metadata = Map::new();
    if let &[Some(parent)] = parents.as_slice()
        && TraceParent::parse(parent).is_some()
    {
        metadata.insert(TRACEPARENT.to_owned(), parent.into());
        // Additions of tracing systems are passed on with the trace.
        metadata.extend(joined(states, ",").map(|state| (TRACESTATE.to_owned(), state.into())));
    }
    metadata.extend(joined(preferences, ", ").map(|text| (PREFER.to_owned(), text.into())));
    if let Some(id) = is_stream.then(|| last_event(headers)).flatten() {
        metadata.insert(LAST_EVENT_ID.to_owned(), id.into());
    }
    metadata
}

/// The input of a subscription, which is opened with a value.
fn input_value(input: Payload) -> Result<Value, Problem> {
    match input {
        Payload::Json(text) => serde_json::from_slice(&text).map_err(|error| not_json(&error)),
        Payload::Raw(text) => serde_json::from_str(text.get()).map_err(|error| not_json(&error)),
        Payload::Value(value) => Ok(value),
        Payload::Body(_) => Ok(Value::Null),
    }
}

/// The problem of a text that is not JSON.
pub(super) fn not_json(error: &dyn fmt::Display) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, format!("the input is not JSON: {error}"))
}
