//! Handles the server's requests and notifications.

use std::pin::pin;
use std::sync::{Arc, Weak};

use futures_util::future::{Either, select};
use rmcp::RoleClient;
use rmcp::model::{
    ClientConfig, ClientResult, ConstString, CustomResult, ErrorCode as RpcCode, ErrorData, Implementation,
    ProtocolVersion, ServerNotification, ServerRequest,
};
use rmcp::service::{NotificationContext, RequestContext, Service};
use serde_json::Value;
use tokio::sync::Notify;

use super::interceptor::Interceptor;
use super::secrets::Given;
use crate::mcp::ask::Asks;

/// The handler of requests of the server to this side.
#[derive(Clone)]
pub(super) struct Host {
    /// The connection, held weakly: rmcp may keep this value for any time.
    pub(super) interceptor: Weak<Interceptor>,
    pub(super) given: Arc<Given>,
    pub(super) asks: Asks,
    /// Notified when the tools may have changed.
    pub(super) changed: Arc<Notify>,
}

impl Host {
    /// The answer to a question. `None` if the server has withdrawn it, or its session is lost.
    async fn answer(&self, method: &str, context: &RequestContext<RoleClient>) -> Option<Result<Value, (i32, String)>> {
        let interceptor = self.interceptor.upgrade()?;
        let questions = &interceptor.questions;
        let withdrawn = questions.withdrawal(&context.id)?;
        let asking = questions.asks();
        let answer = context.ct.run_until_cancelled(self.asks.answer(method, questions.params(&context.id)));
        let answer = match select(pin!(withdrawn.notified()), pin!(answer)).await {
            Either::Left(_) => None,
            Either::Right((answer, _)) => answer,
        };
        drop(asking);
        // If the program's function blocks its thread, an answer can come after the question was withdrawn.
        match questions.withdrawal(&context.id) {
            Some(open) if Arc::ptr_eq(&open, &withdrawn) => answer,
            // The next session has asked with the same id, and would get any response. So there is none, until the
            // connection ends. If the server had cancelled this question, the wait ends at once, and the next one gets
            // the error: waiting on would hold up the end of the connection.
            Some(_) => {
                context.ct.cancelled().await;
                None
            }
            None => None,
        }
    }
}

impl Service<RoleClient> for Host {
    async fn handle_request(
        &self,
        request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        let method = match &request {
            ServerRequest::PingRequest(_) => return Ok(ClientResult::empty(())),
            ServerRequest::CreateMessageRequest(request) => request.method.as_str(),
            ServerRequest::ListRootsRequest(request) => request.method.as_str(),
            ServerRequest::ElicitRequest(request) => request.method.as_str(),
            ServerRequest::CustomRequest(request) => request.method.as_str(),
            _ => "",
        };
        // The response to a question that the server has cancelled, or whose session is lost, is not sent.
        self.answer(method, &context)
            .await
            .unwrap_or_else(|| Err((-32800, "the question was withdrawn".to_owned())))
            .map(|result| ClientResult::CustomResult(CustomResult::new(result)))
            .map_err(|(code, message)| ErrorData::new(RpcCode(code), message, None))
    }

    async fn handle_notification(
        &self,
        notification: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        match notification {
            ServerNotification::ToolListChangedNotification(_) => self.changed.notify_one(),
            ServerNotification::LoggingMessageNotification(message) => {
                let message = serde_json::to_value(&message.params).unwrap_or_default();
                let server = self.interceptor.upgrade().map(|interceptor| interceptor.server.clone());
                let message = || self.given.words(&message);
                tracing::debug!(target: "ops_runtime::mcp::log", server = server.as_deref(), message = message());
            }
            _ => {}
        }
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        let implementation = Implementation::new("ops-runtime", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(self.asks.capabilities(), implementation).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }
}
