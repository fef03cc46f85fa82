//! From a request to the input of its operation, and the errors of an invalid request.
//!
//! Futures that most requests do not need are boxed, since each request would have to reserve room for them. So are
//! parts of the others: allocators have blocks of up to a kilobyte at hand, and one future for all would be larger.

use std::sync::Arc;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Response, StatusCode};
use serde_json::Value;

use super::accept::ENVELOPE;
use super::access;
use super::call::not_json;
use super::incoming::Incoming;
use super::limits::Held;
use super::problem::Problem;
use super::read::{self, Content, Fault, Refused, Room};
use super::routes::Match;
use super::upload::{self, Clock};
use crate::model::body::handover;
use crate::model::media::{self, JSON, Media, essence};
use crate::run::pipeline;
use crate::run::registry::Entry;
use crate::{Bodies, CallError, HttpBinding, Identity, OutputPolicy, Payload, StatusRange};

/// A request that was read.
struct Read<'m, 'p> {
    /// The operation that it is for.
    found: &'m Match<'p>,
    input: Payload,
    bodies: Bodies,
    body: Came,
}

/// How the body of a request comes.
enum Came {
    Bytes(Bytes),
    /// As a stream, whose sender takes none of the time of the call.
    Stream(Clock),
}

fn nothing_there() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no operation at that path")
}

impl Incoming<'_> {
    /// Reads the text of the input of a call by id: the body, or a parameter of a request without body.
    pub(super) async fn text_by_id(&self, entry: &Entry, body: Body) -> Result<(Held, Bytes), Problem> {
        let mut held = self.server.limits.admit()?;
        if self.parts.method != Method::POST {
            let query = self.parts.uri.query().unwrap_or_default();
            let unread = |error: &str| {
                Problem::new(StatusCode::BAD_REQUEST, format!("the parameter `input` cannot be read: {error}"))
            };
            let text = read::parameter_text(query, "input").map_err(unread)?.unwrap_or_default();
            self.server.limits.values(&mut held, read::nodes_of_json(text.as_bytes()))?;
            return Ok((held, text.into()));
        }
        let content_type = self.content_type();
        let text = self.server.limits.read(&mut held, content_type, body).await?;
        if text.is_empty() {
            return Ok((held, text));
        }
        let Some(content_type) = content_type.filter(|kind| media::is_json(kind)) else {
            let detail = "the input is a body of type application/json";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        };
        let text = read::json_text(content_type, text).map_err(|refused| refusal(entry, refused, None))?;
        Ok((held, text))
    }

    fn content_type(&self) -> Option<&str> {
        self.parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok())
    }

    /// Runs the first operation at a path that matches the request.
    pub(super) async fn bound(
        &self,
        mut matches: Vec<Match<'_>>,
        identity: Option<Arc<Identity>>,
        body: Body,
    ) -> Result<Response<Body>, Problem> {
        self.choose(&mut matches, identity.as_deref())?;
        let mut held = self.server.limits.admit()?;
        let query = self.parts.uri.query().unwrap_or_default();
        self.server.limits.values(&mut held, read::nodes(query.as_bytes()))?;
        let Read { found, input, bodies, body } = self.read(&matches, &mut held, body).await?;
        let (bytes, clock) = match body {
            Came::Bytes(bytes) => (Some(bytes), None),
            Came::Stream(clock) => (None, Some(clock)),
        };
        let failed = {
            let run = self.run(&found.route.entry, Some(&found.route), identity, input, bodies, clock);
            match (Box::pin(run).await, bytes) {
                (Err(problem), Some(bytes)) if problem.status == StatusCode::UNPROCESSABLE_ENTITY => (bytes, problem),
                (answered, _) => return answered,
            }
        };
        Err(Box::pin(self.unread(found, failed.0, failed.1)).await)
    }

    /// Keeps the operations that the caller may run; those that the client's `Accept` prefers come first.
    fn choose(&self, matches: &mut Vec<Match<'_>>, identity: Option<&Identity>) -> Result<(), Problem> {
        // Of one that gives a result and one that streams, the client's `Accept` chooses: the one whose type it prefers, and
        // the stream of two that are alike to it, if it names the stream's.
        let streams = matches.iter().filter(|found| found.route.is_stream());
        let stream = streams.filter_map(|found| self.weight_of_stream(found)).max();
        let wants_stream = stream.is_some_and(|stream| {
            let mut results = matches.iter().filter(|found| !found.route.is_stream());
            results.all(|found| self.weight_of_result(found.route.binding()) <= stream)
        });
        matches.sort_by_key(|found| found.route.is_stream() != wants_stream);
        let is_allowed = |found: &Match<'_>| access::check(&found.route.entry.spec, identity).is_ok();
        if matches.len() > 1 && matches.iter().any(is_allowed) {
            matches.retain(is_allowed);
        }
        // A caller that may run none of them need not send a body. It gets the refusal of the operation that its `Accept`
        // prefers.
        self.admit(&matches.first().ok_or_else(nothing_there)?.route.entry, identity)?;
        matches.iter().try_for_each(|found| self.plain(found.route.binding()))
    }

    /// Reads the input of the first operation that matches the request.
    async fn read<'m, 'p>(
        &self,
        matches: &'m [Match<'p>],
        held: &mut Held,
        body: Body,
    ) -> Result<Read<'m, 'p>, Problem> {
        if let [found] = matches
            && self.may_stream(found)
            && let Some((input, placeholder)) = Box::pin(self.streamed(found)).await?
        {
            let allowed = self.server.limits.upload(&body)?;
            let (upload, clock) = upload::stream_of(body, self.content_type().unwrap_or_default(), allowed);
            let bodies = Bodies::of(placeholder, upload);
            return Ok(Read { found, input: Payload::Value(input), bodies, body: Came::Stream(clock) });
        }
        let bytes = match body.is_end_stream() {
            true => Bytes::new(),
            false => Box::pin(self.server.limits.read(held, self.content_type(), body)).await?,
        };
        if let [found] = matches
            && let Some(text) = self.text(found, &bytes)
        {
            let bodies = Bodies::default();
            return Ok(Read { found, input: Payload::Json(text), bodies, body: Came::Bytes(bytes) });
        }
        Box::pin(self.first_meant(matches, held, bytes)).await
    }

    /// Reads the input of the first operation that is meant. If none is, the error is that of the operations that the
    /// request agrees with most: first in the parameters, then in the type of the body, then in its values.
    async fn first_meant<'m, 'p>(
        &self,
        matches: &'m [Match<'p>],
        held: &mut Held,
        bytes: Bytes,
    ) -> Result<Read<'m, 'p>, Problem> {
        let (mut parameters, mut types, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for found in matches {
            let Some(request) = self.request(found) else { continue };
            let mut full = None;
            let mut hold =
                |values| self.server.limits.values(held, values).map_err(|problem| full = Some(problem)).is_ok();
            let mut room = Room::counted(&mut hold);
            let read = read::input(&request, Content::Bytes(bytes.clone()), &mut room).await;
            let files = room.into_files();
            if let Some(full) = full {
                return Err(full);
            }
            match read {
                Ok(input) => {
                    let (input, bodies) = with_files(found, Value::Object(input), files)?;
                    return Ok(Read { found, input: Payload::Value(input), bodies, body: Came::Bytes(bytes) });
                }
                Err(Refused::OtherParameters(faults)) => parameters.push(faults),
                Err(Refused::Type(detail)) => types.push(detail),
                Err(Refused::OtherBody(faults)) => values.push(faults),
                Err(refused) => return Err(refusal(&found.route.entry, refused, None)),
            }
        }
        Err(match (values.is_empty(), types.is_empty(), parameters.is_empty()) {
            (false, _, _) => Problem::faults(&joined(values)),
            (_, false, _) => Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, either(types)),
            (_, _, false) => Problem::faults(&joined(parameters)),
            _ => nothing_there(),
        })
    }

    fn request<'r>(&'r self, found: &'r Match<'r>) -> Option<read::Request<'r>> {
        let binding = found.route.binding()?;
        Some(read::Request {
            binding,
            shapes: found.route.shapes(binding),
            names: &found.route.names,
            path: &found.path,
            fixed: &found.route.fixed,
            query: &found.route.query,
            schemes: &self.server.schemes,
            parts: self.parts,
        })
    }

    /// The input as text, if the operation's own type is read from it, which checks the input by itself.
    fn text(&self, found: &Match<'_>, bytes: &Bytes) -> Option<Bytes> {
        let is_strict = self.server.registry.policy() == OutputPolicy::Strict;
        if found.route.is_stream() || is_strict || !pipeline::reads_text(&found.route.entry) {
            return None;
        }
        read::text(&self.request(found)?, bytes)
    }

    /// The problem of a call that refused its text: what cannot be read of the request, such as a body that is not JSON
    /// (status 400). If all of it can be read, it is the original problem, which has all violations. Only of a body with
    /// an object too many around it, the problem is told as such.
    async fn unread(&self, found: &Match<'_>, bytes: Bytes, problem: Problem) -> Problem {
        let entry = &found.route.entry;
        let Some(request) = self.request(found) else { return problem };
        let mut hold = |_: usize| true;
        let members = match read::input(&request, Content::Bytes(bytes), &mut Room::known(&mut hold)).await {
            Ok(members) => members,
            Err(refused) => return refusal(entry, refused, None),
        };
        let is_wrong = |fault: &Fault| {
            let checked = entry.schemas.check_input(&entry.spec, &Value::Object(members.clone()));
            let error = checked.err();
            let mut pointers =
                error.iter().flat_map(violations).filter_map(|violation| violation.get("pointer")?.as_str());
            pointers.any(|pointer| {
                pointer.strip_prefix(&*fault.pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        match read::wrapped(&request, &members).filter(is_wrong) {
            Some(fault) => refusal(entry, Refused::Faults(vec![fault], members), None),
            None => problem,
        }
    }

    /// True if the body is bytes that the handler may take as a stream.
    fn may_stream(&self, found: &Match<'_>) -> bool {
        let has_handler = found.route.entry.handler.is_some() && !found.route.is_stream();
        has_handler && self.request(found).is_some_and(|request| request.streams().is_some())
    }

    /// The input with a placeholder for its body, and that placeholder, if the handler takes the body as a stream.
    ///
    /// # Errors
    /// If something else of the request is invalid: then its body, which may be of any length, need not be read.
    async fn streamed(&self, found: &Match<'_>) -> Result<Option<(Value, String)>, Problem> {
        let entry = &found.route.entry;
        let (Some(request), Some(handler)) = (self.request(found), entry.handler.as_ref()) else { return Ok(None) };
        let placeholder = handover::placeholder();
        let mut hold = |_: usize| true;
        let room = &mut Room::known(&mut hold);
        let read = read::input(&request, Content::Stream(placeholder.clone()), room).await;
        let input = Value::Object(read.map_err(|refused| refusal(entry, refused, Some(&placeholder)))?);
        let bodies = Bodies::of(placeholder.clone(), crate::Body::default());
        if handler.erased.takes_bodies(&input, &bodies) {
            return Ok(Some((input, placeholder)));
        }
        // If the handler takes no stream, only the body itself shows if the schema allows it.
        let checked = entry.schemas.check_input(&entry.spec, &input);
        let elsewhere: Vec<Value> = checked
            .err()
            .iter()
            .flat_map(violations)
            .filter(|violation| is_elsewhere(violation, &input, &placeholder))
            .cloned()
            .collect();
        if elsewhere.is_empty() { Ok(None) } else { Err(Problem::violations(elsewhere)) }
    }

    /// How much the client wants the content type of a stream, if it names it.
    fn weight_of_stream(&self, found: &Match<'_>) -> Option<u32> {
        let named = kinds(found.route.binding()).filter(|kind| Media::of(kind).is_stream()).map(essence);
        named.filter(|kind| self.accept.names(kind)).map(|kind| self.accept.weight(&kind)).max()
    }

    /// How much the client wants what an operation gives that is no stream.
    fn weight_of_result(&self, binding: Option<&HttpBinding>) -> u32 {
        let described = kinds(binding).filter(|kind| !Media::of(kind).is_stream()).map(essence);
        let most = described.map(|kind| self.accept.weight(&kind)).max();
        most.unwrap_or_else(|| self.accept.weight(JSON))
    }

    /// True if the client names the envelope, and wants nothing more that the operation gives.
    pub(super) fn wants_envelope(&self, binding: Option<&HttpBinding>) -> bool {
        self.accept.names(ENVELOPE) && self.accept.weight(ENVELOPE) >= self.weight_of_result(binding)
    }
}

/// The content types of what an operation gives if it succeeds.
fn kinds(binding: Option<&HttpBinding>) -> impl Iterator<Item = &str> {
    let responses = binding.into_iter().flat_map(|binding| binding.responses.iter());
    let given = responses.filter(|own| own.status.is_success() || own.status == StatusRange::Default);
    given.filter_map(|response| response.content_type.as_deref())
}

/// An input with its files beside it, with their names, if the handler takes them unchanged; otherwise they are JSON in
/// it.
fn with_files(found: &Match<'_>, input: Value, files: Bodies) -> Result<(Value, Bodies), Problem> {
    let Entry { spec, handler, .. } = &*found.route.entry;
    let takes = |files: &Bodies| handler.as_ref().is_some_and(|handler| handler.erased.takes_bodies(&input, files));
    if files.is_empty() || !found.route.is_stream() && takes(&files) {
        return Ok((input, files));
    }
    let json = files.to_json(&input).map_err(|error| Problem::of_error(&error, spec))?;
    Ok((json.into_owned(), Bodies::default()))
}

/// The input in a text; an empty text is an input without properties.
fn input(entry: &Entry, text: &[u8]) -> Result<Value, Problem> {
    if text.is_empty() {
        return Ok(read::nothing(&entry.spec));
    }
    serde_json::from_slice(text).map_err(|error| not_json(&error))
}

/// The problem of a text that was refused as an input: 400 if it is not JSON at all.
pub(super) fn refused(entry: &Entry, text: &[u8], problem: Problem) -> Problem {
    match problem.status {
        StatusCode::UNPROCESSABLE_ENTITY => input(entry, text).err().unwrap_or(problem),
        _ => problem,
    }
}

/// The violations in an error.
fn violations(error: &CallError) -> impl Iterator<Item = &Value> {
    error.details().get("violations").and_then(Value::as_array).into_iter().flatten()
}

/// True if a violation concerns neither the placeholder of a body nor the whole of which it is part.
fn is_elsewhere(violation: &Value, input: &Value, placeholder: &str) -> bool {
    let pointer = violation.get("pointer").and_then(Value::as_str).unwrap_or_default();
    !pointer.is_empty() && input.pointer(pointer).is_none_or(|at| at.as_str() != Some(placeholder))
}

/// The errors of a request that no operation at its path is meant by, from those of each. If all are about one place,
/// each says what it takes there.
fn joined(of_each: Vec<Vec<Fault>>) -> Vec<Fault> {
    let mut of_each = of_each.into_iter();
    let mut first = of_each.next().unwrap_or_default();
    let Some(others) = of_each.map(|faults| <[Fault; 1]>::try_from(faults).ok()).collect::<Option<Vec<_>>>() else {
        return first;
    };
    if let [one] = first.as_mut_slice()
        && others.iter().all(|[other]| other.pointer == one.pointer)
    {
        let message = std::mem::take(&mut one.message);
        one.message = either([message].into_iter().chain(others.into_iter().map(|[other]| other.message)));
    }
    first
}

/// What each of several operations takes, each once.
fn either(messages: impl IntoIterator<Item = String>) -> String {
    let mut each = Vec::new();
    for message in messages {
        if !each.contains(&message) {
            each.push(message);
        }
    }
    each.join(", or ")
}

/// The problem of a request that is not a valid input; `placeholder` stands for a body that was not read.
fn refusal(entry: &Entry, refused: Refused, placeholder: Option<&str>) -> Problem {
    match refused {
        Refused::Type(detail) => Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail),
        Refused::Body(detail) => Problem::new(StatusCode::BAD_REQUEST, detail),
        Refused::OtherParameters(faults) | Refused::OtherBody(faults) => Problem::faults(&faults),
        Refused::Full => Problem::busy("too many bytes are in flight"),
        Refused::Faults(faults, members) => {
            // The parts that could be read are checked as well, so that all errors are reported at once.
            let input = Value::Object(members);
            let checked = entry.schemas.check_input(&entry.spec, &input);
            let mut all: Vec<Value> = faults.iter().map(Fault::to_json).collect();
            if let Err(error) = checked {
                let is_of_input = |violation: &&Value| {
                    placeholder.is_none_or(|placeholder| is_elsewhere(violation, &input, placeholder))
                };
                let more = violations(&error).filter(is_of_input);
                let is_known = |violation: &&Value| {
                    let pointer = violation.get("pointer").and_then(Value::as_str).unwrap_or_default();
                    faults
                        .iter()
                        .any(|fault| fault.pointer == pointer || fault.pointer.starts_with(&format!("{pointer}/")))
                };
                all.extend(more.filter(|violation| !is_known(violation)).cloned());
            }
            Problem::violations(all)
        }
    }
}
