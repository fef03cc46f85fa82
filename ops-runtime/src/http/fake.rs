//! A service for tests, made of a function.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower_service::Service;

use super::RequestBody;

#[derive(Clone)]
pub(super) struct Fake<F>(pub(super) F);

impl<F: Fn(Request<RequestBody>) -> Response<B>, B> Service<Request<RequestBody>> for Fake<F> {
    type Response = Response<B>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        ready(Ok((self.0)(request)))
    }
}

/// A response of a status, with headers and a body.
pub(super) fn respond(status: u16, headers: &[(&str, &str)], body: &'static [u8]) -> Response<Full<Bytes>> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Full::new(Bytes::from_static(body))).unwrap()
}
