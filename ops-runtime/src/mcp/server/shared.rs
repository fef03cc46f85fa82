//! State shared by all connections of a server.

use std::sync::Arc;

use http::request::Parts;
use rmcp::model::{ErrorData, Extensions, Implementation, ServerCapabilities, ServerConfig};

use super::options::McpServerOptions;
use super::peer::States;
use super::served::{Cache, Naming, ServedTools};
#[cfg(feature = "durable")]
use super::tasks::McpTasks;
use super::tool::Served;
use crate::model::nearest::{nearest, question};
use crate::run::filter::Filters;
use crate::run::principal::Principal;
use crate::{Identity, Registry};

/// How many tools an error suggests.
const PROPOSED: usize = 3;

/// The served registry, with the server's settings.
pub(super) struct Shared {
    pub(super) registry: Registry,
    pub(super) options: McpServerOptions,
    pub(super) identity: Option<Arc<Identity>>,
    pub(super) filters: Filters,
    pub(super) naming: Option<Naming>,
    pub(super) cache: Cache,
    pub(super) states: States,
    #[cfg(feature = "durable")]
    pub(super) tasks: Option<McpTasks>,
}

impl Shared {
    pub(super) fn served(&self) -> Arc<ServedTools> {
        self.cache.with(self, Arc::clone)
    }

    pub(super) fn tool(&self, name: &str) -> Option<Arc<Served>> {
        self.cache.with(self, |served| served.find(name).cloned())
    }

    /// The error of a call of a tool that does not exist. It names similar tools, of those that the caller may call.
    pub(super) fn unknown(&self, name: &str, caller: &Principal) -> ErrorData {
        let meant = self.cache.with(self, |served| {
            let seen = served.tools().iter().filter(|tool| caller.sees(tool.spec()));
            question(&nearest(name, seen.map(|tool| tool.name.as_str()), PROPOSED))
        });
        ErrorData::invalid_params(format!("Unknown tool: {name}{meant}"), None)
    }

    pub(super) fn info(&self) -> ServerConfig {
        let McpServerOptions { name, version, instructions, .. } = &self.options;
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed();
        #[cfg(feature = "durable")]
        let capabilities = match &self.tasks {
            Some(_) => capabilities.enable_tasks(),
            None => capabilities,
        };
        let capabilities = capabilities.build();
        let mut info = ServerConfig::new(capabilities).with_server_info(Implementation::new(name, version));
        info.instructions.clone_from(instructions);
        info
    }

    /// The sender of a request; over HTTP, the caller that the service has determined.
    pub(super) fn caller(&self, extensions: &Extensions) -> Principal {
        let remote = extensions.get::<Parts>().map(|parts| parts.extensions.get::<Principal>().cloned());
        match (remote, &self.identity) {
            (Some(caller), _) => caller.unwrap_or(Principal::Checked(None)),
            (None, Some(identity)) => Principal::Checked(Some(identity.clone())),
            (None, None) => Principal::Owner,
        }
    }

    /// The sender of HTTP requests without authentication.
    pub(super) fn remote_caller(&self) -> Principal {
        Principal::Checked(self.identity.clone())
    }
}
