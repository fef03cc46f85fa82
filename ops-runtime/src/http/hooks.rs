//! Hooks: functions of the program that see each request before it is sent, and its response.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, Uri};

use super::RequestBody;
use super::engine::{EngineResponse, SendError};
use crate::CallError;

/// A request that is about to be sent, for [`HttpConfig::with_before`](super::HttpConfig::with_before).
#[non_exhaustive]
pub struct RequestInfo<'a> {
    /// The id of the operation; empty for a document that is fetched.
    pub operation: &'a str,
    /// 1 for the first attempt of a call, 2 for its first retry. Redirects belong to the attempt that caused them.
    pub attempt: u32,
    /// The method.
    pub method: &'a Method,
    /// The URL, which may hold secrets.
    pub uri: &'a Uri,
    /// The headers, which the function may change. They hold the credentials.
    pub headers: &'a mut HeaderMap,
    body: &'a RequestBody,
}

/// Shows neither the URL nor the headers and the body, which may hold secrets.
impl fmt::Debug for RequestInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, attempt, method, .. } = self;
        f.debug_struct("RequestInfo")
            .field("operation", operation)
            .field("attempt", attempt)
            .field("method", method)
            .finish_non_exhaustive()
    }
}

impl RequestInfo<'_> {
    /// The bytes of the body, to be signed. `None` if it has a file or a stream.
    pub fn body(&self) -> Option<Bytes> {
        self.body.in_memory()
    }
}

/// A response, or the reason why there is none, for [`HttpConfig::with_after`](super::HttpConfig::with_after).
#[non_exhaustive]
pub struct ResponseInfo<'a> {
    /// The id of the operation; empty for a document that is fetched.
    pub operation: &'a str,
    /// 1 for the first attempt of a call, 2 for its first retry. Redirects belong to the attempt that caused them.
    pub attempt: u32,
    /// The method of the request.
    pub method: &'a Method,
    /// The URL of the request, which may hold secrets.
    pub uri: &'a Uri,
    /// The time from sending the request to the response's headers.
    pub elapsed: Duration,
    /// The status and the headers of the response, or the reason why there is none.
    pub result: Result<(StatusCode, &'a HeaderMap), &'a CallError>,
}

/// Shows neither the URL nor the headers and the error, which may hold secrets.
impl fmt::Debug for ResponseInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, attempt, method, elapsed, .. } = self;
        f.debug_struct("ResponseInfo")
            .field("operation", operation)
            .field("attempt", attempt)
            .field("method", method)
            .field("elapsed", elapsed)
            .field("status", &self.result.ok().map(|(status, _)| status))
            .finish_non_exhaustive()
    }
}

type Before = Arc<dyn Fn(&mut RequestInfo<'_>) -> Result<(), CallError> + Send + Sync>;
type After = Arc<dyn Fn(&ResponseInfo<'_>) + Send + Sync>;

/// All hooks of a client, in the order in which they run.
#[derive(Clone, Default)]
pub(super) struct Hooks {
    pub(super) before: Vec<Before>,
    pub(super) after: Vec<After>,
}

/// A request as it was sent, for the hooks that see its response.
pub(super) struct Sending {
    method: Method,
    uri: Uri,
    start: Instant,
}

impl Hooks {
    /// Runs the hooks before a request. `None` if no hook waits for the response.
    ///
    /// # Errors
    /// That of the first hook that refuses the request, which is not sent then.
    pub(super) fn before(
        &self,
        operation: &str,
        attempt: u32,
        request: &mut Request<RequestBody>,
    ) -> Result<Option<Sending>, CallError> {
        if !self.before.is_empty() {
            let mut headers = std::mem::take(request.headers_mut());
            let (method, uri, body) = (request.method(), request.uri(), request.body());
            let mut info = RequestInfo { operation, attempt, method, uri, headers: &mut headers, body };
            let run = self.before.iter().try_for_each(|hook| hook(&mut info));
            *request.headers_mut() = headers;
            run?;
        }
        let sending =
            || Sending { method: request.method().clone(), uri: request.uri().clone(), start: Instant::now() };
        Ok((!self.after.is_empty()).then(sending))
    }

    /// Runs the hooks after a request.
    pub(super) fn after(
        &self,
        operation: &str,
        attempt: u32,
        sending: Option<Sending>,
        result: &Result<EngineResponse, SendError>,
    ) {
        let Some(Sending { method, uri, start }) = sending else { return };
        let result = match result {
            Ok(response) => Ok((response.status(), response.headers())),
            Err(failed) => Err(&failed.error),
        };
        let info = ResponseInfo { operation, attempt, method: &method, uri: &uri, elapsed: start.elapsed(), result };
        self.after.iter().for_each(|hook| hook(&info));
    }
}
