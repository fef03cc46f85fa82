//! The tools as the server changes them, taken over into the registries that have them.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::{Instant, timeout};

use super::catalog::Catalog;
use super::session::Session;
use super::{Inner, Remote};
use crate::mcp::tool_changes;
use crate::model::lock::lock;
use crate::run::registry::WeakRegistry;
use crate::{CallError, Diagnostic, ErrorCode, OperationSpec, OutputPolicy, Registry, SpecRef};

impl Inner {
    /// Lists the tools, within the timeout for connecting. The user may take longer to agree to that.
    pub(super) async fn load(&self, session: &Session) -> Result<Arc<Catalog>, CallError> {
        let limit = self.config.connect_timeout;
        let number = self.loads.fetch_add(1, Ordering::Relaxed) + 1;
        let mut loading = pin!(Catalog::load(session, self.namespace.as_deref(), number));
        let mut since = Instant::now();
        loop {
            if let Ok(loaded) = timeout(limit.saturating_sub(since.elapsed()), &mut loading).await {
                return loaded;
            }
            match session.interceptor.questions.last_asked().filter(|asked| *asked > since) {
                Some(asked) => since = asked,
                None => break,
            }
        }
        let message = format!(
            "the MCP server `{}` did not list its tools within {limit:?}: raise `with_connect_timeout`",
            self.name
        );
        Err(CallError::new(ErrorCode::Timeout, message))
    }

    /// Lists the tools again, because the server says that they have changed; false if that has to be tried again.
    pub(super) async fn refresh(self: &Arc<Self>) -> bool {
        let Some(session) = self.settled().await else { return true };
        let begun = Instant::now();
        let loaded = self.load(&session).await;
        // The next connection lists them by itself; and who has just said no is not asked again.
        let has_asked = session.interceptor.questions.last_asked().is_some_and(|asked| asked > begun);
        let is_over = loaded.is_ok() || !session.is_open() || has_asked;
        if let Err(error) = loaded.and_then(|catalog| self.take_over(catalog)) {
            tracing::warn!(server = %self.name, %error, "the tools have changed, and can't be taken over");
        }
        is_over
    }

    /// Replaces the tools, in every registry that has them, unless there are newer ones.
    pub(super) fn take_over(self: &Arc<Self>, catalog: Arc<Catalog>) -> Result<(), CallError> {
        for diagnostic in &catalog.diagnostics {
            tracing::debug!(server = %self.name, %diagnostic, "a tool that can't be read in full");
        }
        self.replace(&catalog);
        self.config.operations.iter().try_for_each(|spec| self.expect(spec))
    }

    fn replace(self: &Arc<Self>, catalog: &Arc<Catalog>) {
        // Locked until all of them have the list, so that one list follows the other.
        let mut registries = lock(&self.registries);
        let before = self.catalog();
        if before.number > catalog.number {
            return;
        }
        *lock(&self.catalog) = catalog.clone();
        registries.retain(|registry| registry.upgrade().is_some());
        for registry in registries.iter().filter_map(WeakRegistry::upgrade) {
            self.update(&registry, &before, catalog);
        }
    }

    /// Checks that the server has an operation as the program expects it.
    pub(super) fn expect(&self, spec: &SpecRef) -> Result<(), CallError> {
        let catalog = self.catalog();
        let Some(binding) = spec.mcp() else { return Ok(()) };
        let tool = |live: &&SpecRef| live.mcp().is_some_and(|live| live.tool == binding.tool);
        let mut unfit = lock(&self.unfit);
        unfit.retain(|(id, _)| *id != spec.id);
        let message = match catalog.operations.iter().find(tool) {
            None => format!("`{}`: the MCP server `{}` has no tool `{}`", spec.id, self.name, binding.tool),
            Some(live) => match breaks(spec, live) {
                Some(changes) => format!("`{}` is not as the MCP server `{}` has it: {changes}", spec.id, self.name),
                None => return Ok(()),
            },
        };
        if self.config.policy == OutputPolicy::Strict {
            return Err(CallError::execution(message));
        }
        tracing::warn!(server = %self.name, operation = %spec.id, "{message}");
        unfit.push((spec.id.clone().into_owned(), Diagnostic::error("", message)));
        Ok(())
    }

    /// Applies the server's changes to a registry. What the program has changed itself stays: operations of generated
    /// code, specs with access rules of its own, and the absence of a tool that it has removed.
    fn update(self: &Arc<Self>, registry: &Registry, before: &Catalog, now: &Catalog) {
        let (known, listed) = (before.by_id(), now.by_id());
        let is_gone = |old: &&SpecRef| !listed.contains_key(&*old.id) && self.follows(registry, old);
        let is_changed = |new: &&SpecRef| match known.get(&*new.id) {
            None => registry.spec(&new.id).is_none(),
            Some(&old) => **old != ***new && self.follows(registry, old),
        };
        let gone: Vec<&str> = before.operations.iter().filter(is_gone).map(|gone| &*gone.id).collect();
        let changed = Remote(self.clone()).bind(now.operations.iter().filter(is_changed).cloned());
        registry.exchange(&gone, changed, |error| {
            tracing::warn!(server = %self.name, %error, "a tool can't be registered");
        });
    }

    /// True if a registry has an operation of this client as the server had it.
    fn follows(&self, registry: &Registry, old: &SpecRef) -> bool {
        self.runs(registry, &old.id)
            && matches!(registry.spec(&old.id), Some(SpecRef::Shared(there)) if *there == **old)
    }

    /// True if this client is the handler of an operation of a registry.
    pub(super) fn runs(&self, registry: &Registry, id: &str) -> bool {
        let Some(handler) = registry.handler(id) else { return false };
        let handler: &dyn std::any::Any = &*handler.erased;
        handler.downcast_ref::<Remote>().is_some_and(|remote| std::ptr::eq(&*remote.0, self))
    }
}

/// How a live tool breaks callers of an operation that the program expects; `None` if it does not.
fn breaks(known: &OperationSpec, live: &OperationSpec) -> Option<String> {
    let mut changes = tool_changes(known, live);
    // An operation that was written by hand need not say what it takes.
    changes.retain(|change| change.breaks && !(known.input.is_any() && change.pointer.starts_with("/inputSchema")));
    let said = changes.iter().map(|change| match change.pointer.as_str() {
        "" => change.message.clone(),
        pointer => format!("{pointer}: {}", change.message),
    });
    (!changes.is_empty()).then(|| said.collect::<Vec<_>>().join("; "))
}
