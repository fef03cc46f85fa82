//! The subscription to changes of a server's tools (2026-07-28, `subscriptions/listen`).

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ErrorCode, SubscriptionFilter};
use rmcp::service::{Peer, ServiceError};
use serde_json::Value;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use super::delay::Reopening;
use super::interceptor::STATELESS;
use super::secrets::Given;
use super::session::Session;

/// How long connecting waits for the server to begin.
const OPENING: Duration = Duration::from_secs(3);

impl Session {
    /// Asks the server to report changes of its tools, if necessary, and waits a moment for that to begin, so that a
    /// list that is read afterwards misses no change. The listening task does not keep the connection open.
    pub(super) async fn listen(&self, changed: Arc<Notify>) {
        let says = self.info.capabilities.pointer("/tools/listChanged") == Some(&Value::Bool(true));
        if self.info.protocol_version != STATELESS || !says {
            return;
        }
        let (begun, begins) = oneshot::channel();
        let server = self.interceptor.server.clone();
        let listener = Listener { peer: self.peer().clone(), server, given: self.given.clone(), changed };
        self.runtime().spawn(listener.run(begun));
        let _ = timeout(OPENING, begins).await;
    }
}

/// The data for reopening the subscription.
struct Listener {
    peer: Peer<RoleClient>,
    server: Arc<str>,
    given: Arc<Given>,
    changed: Arc<Notify>,
}

impl Listener {
    /// Keeps the subscription open as long as the connection.
    async fn run(self, begun: oneshot::Sender<()>) {
        let (mut begun, mut reopening) = (Some(begun), Reopening::default());
        loop {
            match self.peer.listen(SubscriptionFilter::builder().tools_list_changed().build()).await {
                Ok(mut subscription) => {
                    reopening.opened();
                    // Earlier changes were not reported, unless the tools are yet to be listed.
                    if begun.take().is_none_or(|begun| begun.send(()).is_err()) {
                        self.changed.notify_one();
                    }
                    while let Ok(Some(_)) = subscription.next().await {
                        reopening.works();
                        self.changed.notify_one();
                    }
                }
                Err(error) => {
                    begun = None;
                    let told = self.given.words(&error);
                    tracing::debug!(server = %self.server, error = told, "the server does not say when its tools change");
                    if matches!(&error, ServiceError::McpError(error) if error.code == ErrorCode::METHOD_NOT_FOUND) {
                        return;
                    }
                }
            }
            if self.peer.is_transport_closed() {
                return;
            }
            reopening.wait(Duration::ZERO).await;
        }
    }
}
