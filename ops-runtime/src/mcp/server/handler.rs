//! The server's side of one connection, as `rmcp` calls it.

use std::future::{Future, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "durable")]
use futures_util::future::{Either, FutureExt};
use rmcp::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestMethod, CompleteRequestParams, CompleteResult,
    ErrorData, Extensions, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
    ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ServerConfig, SubscriptionFilter, Tool,
};
#[cfg(feature = "durable")]
use rmcp::model::{CancelTaskParams, CustomRequest, CustomResult, GetTaskParams, GetTaskResult, UpdateTaskParams};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::call;
use super::served::ServedTools;
use super::shared::Shared;
#[cfg(feature = "durable")]
use super::tasks;
use super::tool::{Served, StructuredContent};
use crate::model::clock::millis;
use crate::run::principal::Principal;

/// The prefix of a cursor; the rest is the name of the last tool of the page before.
const CURSOR: &str = "after:";

/// One connection to the server: a pipe, an HTTP session, or one request without a session.
pub(super) struct Connection {
    server: Arc<Shared>,
    /// The tools at the start of the connection, so that no later change is missed.
    seen: Arc<ServedTools>,
    watched: AtomicBool,
    /// Ends the tasks of the connection, when it is dropped.
    closed: CancellationToken,
    _guard: DropGuard,
}

impl Connection {
    pub(super) fn new(server: Arc<Shared>) -> Self {
        let closed = CancellationToken::new();
        let (seen, watched) = (server.served(), AtomicBool::new(false));
        Self { server, seen, watched, _guard: closed.clone().drop_guard(), closed }
    }

    /// A page of the list of tools.
    fn page(&self, cursor: Option<String>, context: &RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData> {
        let served = self.server.served();
        let rest = match cursor {
            None => served.tools(),
            Some(cursor) => match cursor.strip_prefix(CURSOR) {
                Some(name) => served.after(name),
                None => return Err(ErrorData::invalid_params(format!("Unknown cursor: {cursor}"), None)),
            },
        };
        let caller = self.server.caller(&context.extensions);
        let structure = StructuredContent::of(context.protocol_version().as_ref());
        let size = self.server.options.page_size.max(1);
        let mut page: Vec<_> =
            rest.iter().filter(|tool| caller.sees(tool.spec())).take(size.saturating_add(1)).collect();
        let more = page.len() > size;
        page.truncate(size);
        let mut result =
            ListToolsResult::with_all_items(page.iter().map(|tool| tool.tool(structure).clone()).collect());
        if more {
            result.next_cursor = page.last().map(|tool| format!("{CURSOR}{}", tool.name));
        }
        if structure == StructuredContent::Any {
            result.ttl_ms = Some(millis(self.server.options.list_ttl));
            result.cache_scope = Some(if caller.is_known() { CacheScope::Private } else { CacheScope::Public });
        }
        Ok(result)
    }

    fn changes(&self, extensions: &Extensions) -> Changes {
        Changes { server: self.server.clone(), caller: self.server.caller(extensions), seen: self.seen.clone() }
    }
}

impl ServerHandler for Connection {
    fn get_info(&self) -> ServerConfig {
        self.server.info()
    }

    fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListToolsResult, ErrorData>> + Send + '_ {
        ready(self.page(request.and_then(|request| request.cursor), &context))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        Some(self.server.tool(name)?.tool(StructuredContent::Object).clone())
    }

    fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CallToolResponse, ErrorData>> + Send + '_ {
        #[cfg(feature = "durable")]
        {
            match tasks::route(&self.server, &request, &context) {
                tasks::Route::Plain => Either::Left(call::run(&self.server, request, context)),
                // Boxed, so that other calls are not as large.
                tasks::Route::Task(began) => Either::Right(began.run(request, context).boxed()),
                tasks::Route::Refused(error) => Either::Right(ready(Err(error)).boxed()),
            }
        }
        #[cfg(not(feature = "durable"))]
        {
            call::run(&self.server, request, context)
        }
    }

    #[cfg(feature = "durable")]
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let page = |cursor, context: &_| self.page(cursor, context);
        Box::pin(tasks::custom(&self.server, request, context, self.closed.clone(), page)).await.map(CustomResult)
    }

    #[cfg(feature = "durable")]
    fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<GetTaskResult, ErrorData>> + Send + '_ {
        Box::pin(tasks::extension_get(&self.server, request, context))
    }

    #[cfg(feature = "durable")]
    fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<(), ErrorData>> + Send + '_ {
        Box::pin(tasks::extension_update(&self.server, request, context))
    }

    #[cfg(feature = "durable")]
    fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<(), ErrorData>> + Send + '_ {
        Box::pin(tasks::extension_cancel(&self.server, request, context))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if self.watched.swap(true, Ordering::Relaxed) {
            return;
        }
        let (mut changes, peer) = (self.changes(&context.extensions), context.peer);
        let tell = async move {
            loop {
                changes.next().await;
                if peer.notify_tool_list_changed().await.is_err() {
                    break;
                }
            }
        };
        tokio::spawn(self.closed.clone().run_until_cancelled_owned(tell));
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.intersection(&SubscriptionFilter::builder().tools_list_changed().build()))
    }

    // Boxed: the SDK moves the future of a request several times, and its size is that of the largest.
    fn listen(&self, context: SubscriptionContext) -> impl Future<Output = Result<(), ErrorData>> + Send + '_ {
        Box::pin(async move {
            let mut changes = self.changes(&context.request_context().extensions);
            let tell = async {
                loop {
                    changes.next().await;
                    if context.sink().notify_tool_list_changed().await.is_err() {
                        break;
                    }
                }
            };
            context.request_context().ct.run_until_cancelled(tell).await;
            Ok(())
        })
    }

    // The SDK would respond with empty lists.

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }
}

/// The changes of the tools that one caller sees.
struct Changes {
    server: Arc<Shared>,
    caller: Principal,
    /// The tools at the last check.
    seen: Arc<ServedTools>,
}

impl Changes {
    /// Waits for the next change.
    async fn next(&mut self) {
        loop {
            self.server.registry.changed(self.seen.version()).await;
            let now = self.server.served();
            let before = std::mem::replace(&mut self.seen, now);
            if !self.visible(&before).eq(self.visible(&self.seen)) {
                return;
            }
        }
    }

    fn visible<'a>(&'a self, served: &'a ServedTools) -> impl Iterator<Item = &'a Tool> {
        let seen = |tool: &&Arc<Served>| self.caller.sees(tool.spec());
        served.tools().iter().filter(seen).map(|tool| tool.tool(StructuredContent::Any))
    }
}
