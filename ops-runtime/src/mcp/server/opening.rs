//! The opening of a connection over pipes, before the client has chosen its lifecycle.

use std::future::Future;

use rmcp::model::{ClientRequest, GetMeta, JsonRpcMessage, ProtocolVersion};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use super::question::as_given;

/// A transport that ignores all but requests until a request has chosen the lifecycle.
///
/// The SDK ends a connection that begins with anything else. A client may cancel a probe that took too long before it sends
/// `initialize`: nothing is in flight then, so such a message means nothing.
pub(super) struct Opening<T> {
    inner: T,
    is_open: bool,
}

impl<T> Opening<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, is_open: false }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Opening<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.inner.send(as_given(message))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.inner.receive().await?;
            if self.is_open {
                return Some(message);
            }
            if let JsonRpcMessage::Request(request) = &message {
                self.is_open = opens(&request.request);
                return Some(message);
            }
            tracing::debug!("a message before `initialize` is ignored: it is no request");
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), T::Error>> + Send {
        self.inner.close()
    }
}

/// True if the SDK leaves the opening with this request: `initialize`, or one that stands alone. After any other, which it
/// answers, it still waits for one of these.
fn opens(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => {
            let meta = other.get_meta();
            let is_known = |version| ProtocolVersion::KNOWN_VERSIONS.contains(&version);
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && meta.protocol_version().is_some_and(is_known)
        }
    }
}
