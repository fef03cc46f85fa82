//! The bodies of the server's HTTP requests, and those of its responses, which hold the resources of their requests.

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_util::stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use http_body_util::{BodyExt, Full, StreamBody};
use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};

use super::question::as_given_over_http;

/// The body of a request. Its error does not say why it broke off.
pub(super) type RequestBody = UnsyncBoxBody<Bytes, ()>;

/// Converts the body type of any HTTP server to the one type that this module reads.
pub(super) fn of_request<B>(body: B) -> RequestBody
where
    B: http_body::Body + Send + 'static,
{
    let bytes = |mut data: B::Data| data.copy_to_bytes(data.remaining());
    body.map_frame(move |frame| frame.map_data(bytes)).map_err(|_| ()).boxed_unsync()
}

/// The body of a response: JSON, or a stream of events.
pub struct McpBody {
    body: BoxBody<Bytes, Infallible>,
    /// The resources of the request, held until this is read.
    _held: Option<Arc<dyn Any + Send + Sync>>,
}

impl McpBody {
    /// A body that holds a resource until it is read or dropped.
    pub(super) fn holding(body: BoxBody<Bytes, Infallible>, held: Arc<dyn Any + Send + Sync>) -> Self {
        Self { body, _held: Some(held) }
    }

    /// A body of these bytes that holds a resource until they are written.
    pub(super) fn written(bytes: Bytes, held: Arc<dyn Any + Send + Sync>) -> Self {
        // A body that says that it has ended is dropped before its bytes are written.
        let frame = stream::once(ready(Ok::<_, Infallible>(http_body::Frame::data(bytes))));
        Self::holding(StreamBody::new(frame).boxed(), held)
    }
}

impl http_body::Body for McpBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(task));
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(as_given_over_http))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

impl fmt::Debug for McpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("McpBody")
    }
}

/// A response in plain text.
pub(super) fn plain(status: StatusCode, text: &'static str) -> Response<McpBody> {
    let body = Full::new(Bytes::from_static(text.as_bytes())).boxed();
    let mut response = Response::new(McpBody { body, _held: None });
    *response.status_mut() = status;
    response
}

/// A response with an error of the protocol.
pub(super) fn refusal(status: StatusCode, error: ErrorData, id: RequestId) -> Response<McpBody> {
    let text = serde_json::to_vec(&ServerJsonRpcMessage::error(error, Some(id))).unwrap_or_default();
    let mut response = Response::new(McpBody { body: Full::new(Bytes::from(text)).boxed(), _held: None });
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
