//! From a request to the input of its operation, and what is told of a request that is none.
//!
//! Futures of what most requests do not need are in boxes: each request would have to find room for them.

use std::fmt;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Response, StatusCode};
use serde_json::Value;

use super::call::not_json;
use super::incoming::Incoming;
use super::limits::Held;
use super::problem::Problem;
use super::read::{self, Content, Fault, Refused};
use super::routes::Match;
use super::upload;
use crate::model::body::handover;
use crate::model::media::{self, Media, essence};
use crate::run::pipeline;
use crate::run::registry::Entry;
use crate::{Bodies, Identity, OutputPolicy, Payload};

impl Incoming<'_> {
    /// Reads the text of the input of a call by id: the body, or a parameter of a request that has none.
    pub(super) async fn text_by_id<B>(&self, body: B) -> Result<(Held, Bytes), Problem>
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
    pub(super) async fn bound<B>(
        &self,
        mut matches: Vec<Match<'_>>,
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
            match Box::pin(read::input(&request, Content::Bytes(bytes.clone()))).await {
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

    fn request<'r>(&'r self, found: &'r Match<'r>) -> Option<read::Request<'r>> {
        let binding = found.route.binding()?;
        Some(read::Request {
            binding,
            shapes: found.route.shapes(binding),
            names: &found.route.names,
            path: &found.path,
            query: &found.route.query,
            parts: self.parts,
        })
    }

    /// The input as text, if the operation's own type is read from it, which tells by itself if it is an input.
    fn text(&self, found: &Match<'_>, bytes: &Bytes) -> Option<Bytes> {
        let is_strict = self.server.registry.policy() == OutputPolicy::Strict;
        if found.route.is_stream() || is_strict || !pipeline::reads_text(&found.route.entry) {
            return None;
        }
        read::text(&self.request(found)?, bytes)
    }

    /// A refusal of an input with all that is wrong with it: an operation's own type tells only the first.
    async fn with_all_faults(
        &self,
        found: &Match<'_>,
        bytes: Bytes,
        answered: Result<Response<Body>, Problem>,
    ) -> Result<Response<Body>, Problem> {
        match answered {
            Err(problem) if problem.status == StatusCode::UNPROCESSABLE_ENTITY => {
                Err(Box::pin(self.all_faults(found, bytes)).await.unwrap_or(problem))
            }
            answered => answered,
        }
    }

    /// What is wrong with a request whose text is no input; `None` if the input is fine, and the call failed otherwise.
    async fn all_faults(&self, found: &Match<'_>, bytes: Bytes) -> Option<Problem> {
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
    async fn streamed(&self, found: &Match<'_>) -> Option<(Value, String)> {
        let request = self.request(found)?;
        let handler = found.route.entry.handler.as_ref().filter(|_| !found.route.is_stream())?;
        request.streams()?;
        let placeholder = handover::placeholder();
        let input = Box::pin(read::input(&request, Content::Stream(placeholder.clone()))).await.ok()?;
        let (input, bodies) = (Value::Object(input), Bodies::of(placeholder.clone(), crate::Body::default()));
        handler.erased.takes_bodies(&input, &bodies).then_some((input, placeholder))
    }

    /// True if the client names the content type of a stream.
    fn names_stream(&self, found: &Match<'_>) -> bool {
        let responses = found.route.binding().into_iter().flat_map(|binding| binding.responses.iter());
        let kinds = responses.filter_map(|response| response.content_type.as_deref());
        let is_stream = |kind: &&str| Media::of(kind).is_stream();
        let mut kinds = kinds.filter(is_stream).map(essence);
        kinds.any(|kind| self.accept.names(&kind))
    }
}

/// The input that a text is; nothing at all is an input that says nothing.
fn input(entry: &Entry, text: &[u8]) -> Result<Value, Problem> {
    if text.is_empty() {
        return Ok(read::nothing(&entry.spec));
    }
    serde_json::from_slice(text).map_err(|error| not_json(&error))
}

/// The problem of an input with all that its schema has against it: an operation's own type tells only the first.
pub(super) fn all_violations(entry: &Entry, text: &[u8], problem: Problem) -> Problem {
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
