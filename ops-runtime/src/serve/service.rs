//! From a request to a response: the route, who sends it, the input, the call, the result.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context as Task, Poll};

use axum::body::Body;
use axum::extract::OriginalUri;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::accept::{Accept, ENVELOPE};
use super::answer;
use super::auth;
#[cfg(feature = "docs-page")]
use super::docs::Page;
use super::document::{self, About, Written};
use super::identity::{self, Authenticator, Lack};
use super::limits::{Held, Limits};
use super::metrics::{self, Meter, Metrics};
use super::options::HttpServerOptions;
use super::problem::{PROBLEM, Problem, is_of_input};
use super::read::{self, Content, Fault, Refused};
use super::routes::{Cache, Filter, Found, Match, Route, Routes};
use super::stream::{Framing, Streaming, last_event};
use super::upload;
use crate::model::body::handover;
use crate::model::media::{self, Form, Media, essence, form};
use crate::model::request_id::{Number, RequestId};
use crate::model::trace_parent::{TRACEPARENT, TRACESTATE, TraceParent};
use crate::model::unauthorized::Unauthorized;
use crate::run::context::deadline_after;
use crate::run::door::Door;
use crate::run::pipeline::{self, Invocation};
use crate::run::registry::Entry;
use crate::run::shown;
use crate::{
    Bodies, BoxFuture, CallError, CallOptions, Context, ErrorCode, HttpBinding, Identity, OperationKind, OutputPolicy,
    ParameterLocation, Payload, Registry, SecurityKind, SecurityScheme,
};

/// Every response has the id by which the server's log knows its request.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const NO_SNIFF: HeaderName = HeaderName::from_static("x-content-type-options");

/// The key in a call's metadata of the id of the event that a client has seen last.
const LAST_EVENT_ID: &str = "lastEventId";

/// The header in which a client says what it would like (RFC 7240), and the key in a call's metadata.
const PREFER: &str = "prefer";

/// What all requests of a server share.
pub(super) struct Shared {
    pub(super) registry: Registry,
    pub(super) options: HttpServerOptions,
    pub(super) filters: Vec<Filter>,
    pub(super) authenticator: Option<Arc<dyn Authenticator>>,
    pub(super) door: Option<Door>,
    pub(super) limits: Limits,
    pub(super) metrics: Option<Arc<Metrics>>,
    pub(super) cancel: CancellationToken,
    pub(super) cache: Cache,
    /// What the document says of the server; `None` if it is not given.
    pub(super) about: Option<About>,
}

/// The server as a service.
#[derive(Clone)]
pub(super) struct Service(pub(super) Arc<Shared>);

impl<B> tower_service::Service<Request<B>> for Service
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: fmt::Display,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Task<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.0.clone();
        Box::pin(async move { Ok(server.respond(request).await) })
    }
}

/// A request on its way through the server.
struct Incoming<'a> {
    server: &'a Shared,
    parts: &'a Parts,
    number: Number,
    accept: Accept,
    meter: &'a Meter,
}

impl Shared {
    async fn respond<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Error: fmt::Display,
    {
        let (parts, body) = request.into_parts();
        let number = Number::next();
        let meter = Meter::start(self.metrics.as_ref());
        let accept = Accept::of(&parts.headers);
        let incoming = Incoming { server: self, parts: &parts, number, accept, meter: &meter };
        let id = RequestId::of(number);
        let answered = incoming.answer(body).await;
        let mut response = answered.unwrap_or_else(|problem| problem.into_response(&id));
        meter.end(response.status());
        let headers = response.headers_mut();
        headers.insert(NO_SNIFF, HeaderValue::from_static("nosniff"));
        if let Ok(id) = HeaderValue::from_str(&id) {
            headers.insert(REQUEST_ID, id);
        }
        response
    }
}

impl Shared {
    /// Asks for credentials as the authenticator understands them.
    fn challenge(&self) -> Unauthorized {
        self.authenticator.as_ref().map_or_else(Unauthorized::bearer, |own| auth::challenge(&own.schemes()))
    }
}

/// Where a request leads.
enum Place {
    /// To operations at the path of their bindings.
    Bound(Vec<Match>),
    /// To an operation by its id.
    ById(Arc<Entry>),
    /// To the word that the server is there.
    Health,
    /// To the document of the operations.
    Document(Written),
    /// To the page that shows it.
    #[cfg(feature = "docs-page")]
    Docs(Page),
    /// To what the server has counted.
    Metrics(Arc<Metrics>),
}

impl Incoming<'_> {
    async fn answer<B>(&self, body: B) -> Result<Response<Body>, Problem>
    where
        B: http_body::Body + Send + 'static,
        B::Error: fmt::Display,
    {
        if let Some(door) = &self.server.door {
            let refused = |status| Problem::new(status, "the server is not reached by that name, or from that page");
            door.check(&self.parts.uri, &self.parts.headers).map_err(refused)?;
        }
        let headers = self.parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        if headers.sum::<usize>() > self.server.options.max_head {
            return Err(Problem::new(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "the head of the request is too long",
            ));
        }
        let routes = self.server.cache.get(&self.server.registry, &self.server.filters);
        match self.place(&routes)? {
            Place::Health => Ok(answer::respond(StatusCode::OK, "application/json", "{\"status\":\"ok\"}")),
            Place::Document(written) => Ok(self.document(&routes, written)),
            #[cfg(feature = "docs-page")]
            Place::Docs(page) => Ok(page.response(&self.parts.headers)),
            Place::Metrics(metrics) => {
                let identity = self.identify().await?;
                identity::allows(&metrics.access, identity.as_deref()).map_err(|lack| self.lacking(lack))?;
                let text = metrics.text(self.server.limits.open_streams(), |id| routes.entry(id).is_some());
                Ok(answer::respond(StatusCode::OK, metrics::CONTENT_TYPE, text))
            }
            Place::ById(entry) => {
                let identity = self.identify().await?;
                self.admit(&entry, identity.as_deref())?;
                self.plain(None)?;
                let (_held, text) = self.text_by_id(body).await?;
                let input = match text.is_empty() {
                    true => Payload::Value(read::nothing(&entry.spec)),
                    false => Payload::Json(text.clone()),
                };
                let answered = self.run(&entry, None, identity, input, Bodies::default()).await;
                answered.map_err(|problem| all_violations(&entry, &text, problem))
            }
            Place::Bound(matches) => {
                let identity = self.identify().await?;
                self.bound(matches, identity, body).await
            }
        }
    }

    fn place(&self, routes: &Routes) -> Result<Place, Problem> {
        let (method, uri) = (&self.parts.method, &self.parts.uri);
        let methods = match routes.find(method.as_str(), uri.path(), uri.query().unwrap_or_default()) {
            Found::Matches(matches) => return Ok(Place::Bound(matches)),
            Found::Methods(methods) => methods,
            Found::Nothing => Vec::new(),
        };
        let is_read = method == Method::GET || method == Method::HEAD;
        if uri.path() == "/healthz" && is_read {
            return Ok(Place::Health);
        }
        if let (true, Some(written), Some(_)) = (is_read, Written::at(uri.path()), &self.server.about) {
            return Ok(Place::Document(written));
        }
        #[cfg(feature = "docs-page")]
        if let (true, Some(About { has_page: true, .. }), Some(page)) =
            (is_read, &self.server.about, Page::at(uri.path()))
        {
            return Ok(Place::Docs(page));
        }
        if let Some(metrics) = self.server.metrics.as_ref().filter(|_| uri.path() == "/metrics" && is_read) {
            return Ok(Place::Metrics(metrics.clone()));
        }
        if let Some(id) = by_id(uri.path()) {
            let Some(entry) = routes.entry(&id) else {
                let error = CallError::new(ErrorCode::OperationNotFound, "there is no such operation");
                return Err(Problem::of_error(&error, &crate::OperationSpec::query("")));
            };
            let may_be_read = entry.spec.kind != OperationKind::Mutation;
            if method == Method::POST || (is_read && may_be_read) {
                return Ok(Place::ById(entry.clone()));
            }
            let methods = if may_be_read { &["GET", "POST"][..] } else { &["POST"] };
            return Err(Problem::methods(&methods.iter().map(|&method| method.to_owned()).collect::<Vec<_>>()));
        }
        if methods.is_empty() {
            return Err(Problem::new(StatusCode::NOT_FOUND, "there is no operation at that path"));
        }
        Err(Problem::methods(&methods))
    }

    /// The document of all operations.
    fn document(&self, routes: &Routes, written: Written) -> Response<Body> {
        // Where this router is nested, the operations are below the same prefix.
        let original = self.parts.extensions.get::<OriginalUri>().map_or(&self.parts.uri, |original| &original.0);
        let url = original.path().strip_suffix(self.parts.uri.path()).filter(|url| !url.is_empty()).unwrap_or("/");
        let about = self.server.about.clone().unwrap_or_default();
        let schemes = || match &self.server.authenticator {
            Some(authenticator) => authenticator.schemes(),
            None => vec![SecurityScheme::new("bearer", SecurityKind::Bearer)],
        };
        let make = || document::document(&routes.entries, &about, schemes(), url);
        let text = routes.document(url).text(written, make);
        answer::respond(StatusCode::OK, written.content_type(), text)
    }

    /// Refuses a body that is coded, unless the operation describes the header and its handler decodes it.
    fn plain(&self, binding: Option<&HttpBinding>) -> Result<(), Problem> {
        let mut encodings = self.parts.headers.get_all(CONTENT_ENCODING).iter();
        let mut parameters = binding.into_iter().flat_map(|binding| binding.parameters.iter());
        let is_plain = encodings.all(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity"));
        let name = CONTENT_ENCODING.as_str();
        if is_plain
            || parameters.any(|own| own.location == ParameterLocation::Header && own.name.eq_ignore_ascii_case(name))
        {
            return Ok(());
        }
        Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "compressed bodies are not taken"))
    }

    /// Who sends the request.
    async fn identify(&self) -> Result<Option<Arc<Identity>>, Problem> {
        let Some(authenticator) = &self.server.authenticator else { return Ok(None) };
        let identity = authenticator.authenticate(self.parts).await.map_err(Problem::unauthorized)?;
        Ok(identity.map(Arc::new))
    }

    /// Refuses a caller who may not run the operation, before anything is read for it.
    fn admit(&self, entry: &Entry, identity: Option<&Identity>) -> Result<(), Problem> {
        self.meter.operation(&entry.spec.id);
        identity::check(&entry.spec, identity).map_err(|lack| self.lacking(lack))
    }

    fn lacking(&self, lack: Lack) -> Problem {
        match lack {
            Lack::Identity => Problem::unauthorized(self.server.challenge()),
            Lack::Rights => Problem::forbidden(),
        }
    }

    /// Reads the text of the input of a call by id: the body, or a parameter of a request that has none.
    async fn text_by_id<B>(&self, body: B) -> Result<(Held, Bytes), Problem>
    where
        B: http_body::Body + Send,
        B::Error: fmt::Display,
    {
        let mut held = self.server.limits.admit()?;
        if self.parts.method != Method::POST {
            let query = self.parts.uri.query().unwrap_or_default();
            let text = read::parameter_text(query, "input").map_err(|error| not_json(&error))?.unwrap_or_default();
            self.server.limits.values(&mut held, text.as_bytes())?;
            return Ok((held, text.into()));
        }
        let text = self.server.limits.read(&mut held, body).await?;
        let content_type = self.parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !text.is_empty() && !content_type.is_some_and(media::is_json) {
            let detail = "the input is a body of type application/json";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
        Ok((held, text))
    }

    /// Runs the first of the operations at a path that the request is meant for.
    async fn bound<B>(
        &self,
        mut matches: Vec<Match>,
        identity: Option<Arc<Identity>>,
        body: B,
    ) -> Result<Response<Body>, Problem>
    where
        B: http_body::Body + Send + 'static,
        B::Error: fmt::Display,
    {
        // Of one that gives a result and one that streams, the client's `Accept` chooses.
        let wants_stream = matches.iter().any(|found| found.route.is_stream() && self.names_stream(found));
        matches.sort_by_key(|found| found.route.is_stream() != wants_stream);
        // Who may run none of them need not send a body.
        let mut refused = None;
        matches.retain(|found| match self.admit(&found.route.entry, identity.as_deref()) {
            Ok(()) => true,
            Err(problem) => {
                refused.get_or_insert(problem);
                false
            }
        });
        if matches.is_empty() {
            return Err(
                refused.unwrap_or_else(|| Problem::new(StatusCode::NOT_FOUND, "there is no operation at that path"))
            );
        }
        matches.iter().try_for_each(|found| self.plain(found.route.binding()))?;
        let mut held = self.server.limits.admit()?;
        self.server.limits.values(&mut held, self.parts.uri.query().unwrap_or_default().as_bytes())?;
        if let [found] = matches.as_slice()
            && let Some((input, placeholder)) = self.streamed(found).await
        {
            let allowed = self.server.limits.upload(&body)?;
            let content_type = self.parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            let upload = upload::stream_of(body, content_type.unwrap_or_default(), allowed);
            let bodies = Bodies::of(placeholder, upload);
            return self.run(&found.route.entry, Some(&found.route), identity, Payload::Value(input), bodies).await;
        }
        let bytes = self.server.limits.read(&mut held, body).await?;
        if let [found] = matches.as_slice()
            && let Some(text) = self.text(found, &bytes)
        {
            let (entry, route) = (&found.route.entry, Some(&*found.route));
            let answered = self.run(entry, route, identity, Payload::Json(text), Bodies::default()).await;
            return self.with_all_faults(found, bytes, answered).await;
        }
        let mut problem = None;
        for found in &matches {
            let Some(request) = self.request(found) else { continue };
            match read::input(&request, Content::Bytes(bytes.clone())).await {
                Ok(input) => {
                    let (entry, route) = (&found.route.entry, Some(&*found.route));
                    let input = Payload::Value(Value::Object(input));
                    let answered = self.run(entry, route, identity, input, Bodies::default()).await;
                    return self.with_all_faults(found, bytes, answered).await;
                }
                Err(refused) => {
                    let is_other = matches!(refused, Refused::Other(_));
                    problem.get_or_insert_with(|| refusal(&found.route.entry, refused));
                    if !is_other {
                        break;
                    }
                }
            }
        }
        Err(problem.unwrap_or_else(|| Problem::new(StatusCode::NOT_FOUND, "there is no operation at that path")))
    }

    fn request<'r>(&'r self, found: &'r Match) -> Option<read::Request<'r>> {
        let binding = found.route.binding()?;
        Some(read::Request {
            binding,
            shapes: found.route.shapes(binding),
            path: &found.path,
            query: &found.route.query,
            parts: self.parts,
        })
    }

    /// The input as text, if the operation's own type is read from it, which tells by itself if it is an input.
    fn text(&self, found: &Match, bytes: &Bytes) -> Option<Bytes> {
        let is_strict = self.server.registry.policy() == OutputPolicy::Strict;
        if found.route.is_stream() || is_strict || !pipeline::reads_text(&found.route.entry) {
            return None;
        }
        read::text(&self.request(found)?, bytes)
    }

    /// A refusal of an input with all that is wrong with it: an operation's own type tells only the first.
    async fn with_all_faults(
        &self,
        found: &Match,
        bytes: Bytes,
        answered: Result<Response<Body>, Problem>,
    ) -> Result<Response<Body>, Problem> {
        match answered {
            Err(problem) if problem.status == StatusCode::UNPROCESSABLE_ENTITY => {
                Err(self.all_faults(found, bytes).await.unwrap_or(problem))
            }
            answered => answered,
        }
    }

    /// What is wrong with a request whose text is no input; `None` if the input is fine, and the call failed otherwise.
    async fn all_faults(&self, found: &Match, bytes: Bytes) -> Option<Problem> {
        let entry = &found.route.entry;
        match read::input(&self.request(found)?, Content::Bytes(bytes)).await {
            Err(refused) => Some(refusal(entry, refused)),
            Ok(input) => {
                let checked = entry.schemas.check_input(&entry.spec, &Value::Object(input));
                checked.err().map(|error| Problem::of_error(&error, &entry.spec))
            }
        }
    }

    /// The input with a text in the place of its body, and that text, if the body is bytes that the handler takes as a
    /// stream.
    async fn streamed(&self, found: &Match) -> Option<(Value, String)> {
        let request = self.request(found)?;
        let handler = found.route.entry.handler.as_ref().filter(|_| !found.route.is_stream())?;
        request.streams()?;
        let placeholder = handover::placeholder();
        let input = read::input(&request, Content::Stream(placeholder.clone())).await.ok()?;
        let (input, bodies) = (Value::Object(input), Bodies::of(placeholder.clone(), crate::Body::default()));
        handler.erased.takes_bodies(&input, &bodies).then_some((input, placeholder))
    }

    /// True if the client names the content type of a stream.
    fn names_stream(&self, found: &Match) -> bool {
        let responses = found.route.binding().into_iter().flat_map(|binding| binding.responses.iter());
        let kinds = responses.filter_map(|response| response.content_type.as_deref());
        let is_stream = |kind: &&str| Media::of(kind).is_stream();
        let mut kinds = kinds.filter(is_stream).map(essence);
        kinds.any(|kind| self.accept.names(&kind))
    }

    async fn run(
        &self,
        entry: &Arc<Entry>,
        route: Option<&Route>,
        identity: Option<Arc<Identity>>,
        input: Payload,
        bodies: Bodies,
    ) -> Result<Response<Body>, Problem> {
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
        let work = async {
            if is_stream {
                let input = input_value(input)?;
                return Box::pin(self.stream(entry, binding, identity, input)).await;
            }
            let mut invocation = self.invocation(identity, is_stream);
            let gives_bytes = route.is_some_and(|route| route.gives_bytes) && !self.accept.names(ENVELOPE);
            invocation.context = invocation.context.with_bodies(bodies.with_output(gives_bytes));
            let mut envelope = match pipeline::answer_text(invocation, entry, input).await {
                Ok(envelope) => envelope,
                Err(error) => return self.failure(entry, binding, error),
            };
            match std::mem::replace(&mut envelope.data, Payload::Value(Value::Null)) {
                Payload::Body(body) => {
                    let permit = self.server.limits.stream()?;
                    answer::bytes(binding, &envelope.meta, body, permit).await
                }
                data => {
                    envelope.data = data;
                    answer::response(&entry.spec, bound, &self.accept, envelope)
                }
            }
        };
        work.instrument(span).await
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
        let opening = pipeline::stream(self.invocation(identity, true), &entry.spec.id, input);
        let opened = match options.timeout {
            Some(timeout) => tokio::time::timeout(timeout, opening)
                .await
                .unwrap_or_else(|_| Err(CallError::new(ErrorCode::Timeout, "the subscription did not begin in time"))),
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
            expose: options.expose_errors,
            keep_alive: options.keep_alive,
            last_event: last_event(&self.parts.headers),
            cancel: self.server.cancel.clone(),
            _permit: permit,
        };
        Ok(streaming.response(items))
    }

    /// A call in the sender's name.
    fn invocation(&self, identity: Option<Arc<Identity>>, is_stream: bool) -> Invocation {
        let registry = &self.server.registry;
        let mut metadata = Map::new();
        let texts = |name: &str| {
            let texts = self.parts.headers.get_all(name).iter().map(|value| value.to_str().ok());
            texts.collect::<Option<Vec<_>>>().unwrap_or_default()
        };
        if let &[parent] = texts(TRACEPARENT).as_slice()
            && TraceParent::parse(parent).is_some()
        {
            metadata.insert(TRACEPARENT.to_owned(), parent.into());
            // What tracing systems have added to the trace goes with it.
            let state = texts(TRACESTATE).join(",");
            if !state.is_empty() {
                metadata.insert(TRACESTATE.to_owned(), state.into());
            }
        }
        let preferences = texts(PREFER).join(", ");
        if !preferences.is_empty() {
            metadata.insert(PREFER.to_owned(), preferences.into());
        }
        if let Some(id) = last_event(&self.parts.headers).filter(|_| is_stream) {
            metadata.insert(LAST_EVENT_ID.to_owned(), id.into());
        }
        let deadline = self.server.options.timeout.filter(|_| !is_stream).and_then(deadline_after);
        let options = CallOptions { deadline, metadata, ..CallOptions::default() };
        let mut context = Context::new(registry.clone(), options, identity);
        context.request = self.number;
        Invocation { context, policy: registry.policy(), checked: true }
    }

    /// The response for a call that failed.
    ///
    /// What the operation describes for a status is its body, as it is; all else is a problem.
    fn failure(
        &self,
        entry: &Entry,
        binding: Option<&HttpBinding>,
        error: CallError,
    ) -> Result<Response<Body>, Problem> {
        let request = RequestId::of(self.number);
        if *error.code() == ErrorCode::ValidationError && !is_of_input(&error, &entry.spec) {
            // What was wrong with a result is for who runs the operation.
            tracing::error!(operation = entry.spec.id.as_ref(), %request, %error, "a result does not match its schema");
            return Err(Problem::of_error(&error, &entry.spec));
        }
        let error = shown::public(error, &entry.spec, &request, self.server.options.expose_errors);
        let status =
            error.details().get("statusCode").and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok());
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        if let (Some(status), Some(body), Some(binding)) = (status, error.details().get("body"), binding) {
            let code = status.as_u16();
            let Some(described) = binding.response(code, PROBLEM) else {
                return Ok(answer::respond(status, "application/json", body.to_string()));
            };
            return Ok(match (described.content_type.as_deref(), body) {
                (None, _) => answer::empty(status),
                (Some(kind), Value::String(text)) if form(kind) == Form::Text => {
                    answer::respond(status, kind, text.clone())
                }
                (Some(kind), body) if form(kind) == Form::Json => answer::respond(status, kind, body.to_string()),
                (_, body) => answer::respond(status, "application/json", body.to_string()),
            });
        }
        Err(Problem::of_error(&error, &entry.spec))
    }
}

/// The input that a text is; nothing at all is an input that says nothing.
fn input(entry: &Entry, text: &[u8]) -> Result<Value, Problem> {
    if text.is_empty() {
        return Ok(read::nothing(&entry.spec));
    }
    serde_json::from_slice(text).map_err(|error| not_json(&error))
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

fn not_json(error: &dyn fmt::Display) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, format!("the input is not JSON: {error}"))
}

/// The problem of an input with all that its schema has against it: an operation's own type tells only the first.
fn all_violations(entry: &Entry, text: &[u8], problem: Problem) -> Problem {
    if problem.status != StatusCode::UNPROCESSABLE_ENTITY {
        return problem;
    }
    let checked = input(entry, text).map(|input| entry.schemas.check_input(&entry.spec, &input));
    match checked {
        Ok(Err(error)) => Problem::of_error(&error, &entry.spec),
        Ok(Ok(())) => problem,
        Err(problem) => problem,
    }
}

/// The problem of a request that is no input of an operation.
fn refusal(entry: &Entry, refused: Refused) -> Problem {
    match refused {
        Refused::Type(detail) => Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail),
        Refused::Body(detail) => Problem::new(StatusCode::BAD_REQUEST, detail),
        Refused::Other(faults) => Problem::faults(&faults),
        Refused::Faults(faults, members) => {
            // What could be read is checked as well, so that all is told at once.
            let checked = entry.schemas.check_input(&entry.spec, &Value::Object(members));
            let mut violations: Vec<Value> = faults.iter().map(Fault::to_json).collect();
            if let Err(error) = checked {
                let more = error.details().get("violations").and_then(Value::as_array).into_iter().flatten();
                let is_known = |violation: &&Value| {
                    let pointer = violation.get("pointer").and_then(Value::as_str).unwrap_or_default();
                    faults
                        .iter()
                        .any(|fault| fault.pointer == pointer || fault.pointer.starts_with(&format!("{pointer}/")))
                };
                violations.extend(more.filter(|violation| !is_known(violation)).cloned());
            }
            Problem::violations(violations)
        }
    }
}

/// The id in the path of a call by id: `/operations/{namespace}/{name}`.
fn by_id(path: &str) -> Option<String> {
    let (namespace, name) = path.strip_prefix("/operations/")?.split_once('/')?;
    if namespace.is_empty() || name.is_empty() || name.contains('/') {
        return None;
    }
    Some(format!("{}.{}", read::unescaped(namespace)?, read::unescaped(name)?))
}
