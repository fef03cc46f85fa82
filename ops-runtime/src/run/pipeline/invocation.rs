//! A call before it runs: its caller, and the checks if its operation exists and may run.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::guard::Limits;
use crate::model::error::MAX_ID;
use crate::model::nearest::{nearest, question};
use crate::model::text::readable;
use crate::run::context::Chosen;
use crate::run::ending::Ending;
use crate::run::registry::Entry;
use crate::{CallError, CallOptions, Context, ErrorCode, Handler, Identity, OutputPolicy, Registry};

/// Where a call by type comes from.
///
/// Each context holds its registry, which costs as much as all else that the pipeline does before an operation runs. So it is
/// made when an operation takes it.
pub(crate) enum Origin<'r> {
    /// From the owner of a registry, with default options; the timeout is the operation's own.
    Owner(&'r Registry, Option<Duration>),
    /// From a caller of whom more is known.
    Known(Invocation),
}

impl From<Invocation> for Origin<'_> {
    #[inline]
    fn from(call: Invocation) -> Self {
        Self::Known(call)
    }
}

impl From<Origin<'_>> for Invocation {
    #[inline]
    fn from(origin: Origin<'_>) -> Self {
        match origin {
            Origin::Owner(registry, timeout) => {
                let mut call = Self::plain(registry);
                call.context.timeout = timeout;
                call
            }
            Origin::Known(call) => call,
        }
    }
}

impl Origin<'_> {
    #[inline]
    pub(super) fn registry(&self) -> &Registry {
        match self {
            Self::Owner(registry, _) => registry,
            Self::Known(call) => &call.context.registry,
        }
    }

    /// Does what [`Invocation::admit`] does.
    #[inline]
    pub(super) fn admit<'e>(
        &mut self,
        id: &str,
        entry: &'e Arc<Entry>,
    ) -> Result<(&'e Arc<Entry>, &'e Handler), CallError> {
        match self {
            Self::Owner(_, timeout) => {
                *timeout = entry.timeout;
                Ok((entry, handler_of(entry, id)?))
            }
            Self::Known(call) => call.admit(id, Some(entry)),
        }
    }

    /// The limits of a call of code that takes the operation's own types.
    #[inline]
    pub(super) fn limits(&self) -> Limits {
        match self {
            Self::Owner(_, timeout) => Limits::within(*timeout),
            Self::Known(call) => call.limits(),
        }
    }

    #[inline]
    pub(super) fn policy(&self) -> OutputPolicy {
        match self {
            Self::Owner(registry, _) => registry.policy(),
            Self::Known(call) => call.policy,
        }
    }
}

/// The operation's schemas, if the policy requires that even typed values are checked against them.
#[inline]
pub(super) fn strict(policy: OutputPolicy, entry: &Arc<Entry>) -> Option<Arc<Entry>> {
    (policy == OutputPolicy::Strict).then(|| entry.clone())
}

fn handler_of<'e>(entry: &'e Entry, id: &str) -> Result<&'e Handler, CallError> {
    entry.handler.as_ref().ok_or_else(|| not_found(id, "no handler is registered for the operation"))
}

/// A call: everything but the operation and its input.
pub(crate) struct Invocation {
    pub(crate) context: Context,
    pub(crate) policy: OutputPolicy,
    /// True if access rules apply: not to the owner of the registry, nor to nested calls.
    pub(crate) checked: bool,
}

impl Invocation {
    /// The trusted owner's call, with default options.
    #[inline]
    pub(crate) fn plain(registry: &Registry) -> Self {
        Self { policy: registry.policy(), context: Context::plain(registry.clone()), checked: false }
    }

    /// The trusted owner's call; an identity in the options has it checked.
    pub(crate) fn with(registry: &Registry, options: CallOptions) -> Self {
        let policy = options.policy.unwrap_or(registry.policy());
        let checked = options.identity.is_some();
        Self { context: Context::new(registry.clone(), options, None), policy, checked }
    }

    /// A call on behalf of an identity.
    pub(crate) fn scoped(registry: &Registry, mut options: CallOptions, identity: &Arc<Identity>) -> Self {
        let policy = options.policy.unwrap_or(registry.policy());
        // The scope sets the identity; options cannot widen it.
        options.identity = None;
        Self { context: Context::new(registry.clone(), options, Some(identity.clone())), policy, checked: true }
    }

    /// A call that a handler makes.
    pub(crate) fn nested(context: &Context, options: CallOptions) -> Self {
        let policy = options.policy.unwrap_or(context.registry.policy());
        // A handler that sets an identity has it checked.
        let checked = options.identity.is_some();
        Self { context: context.nested(options), policy, checked }
    }

    /// Finds the operation's handler, checks access and applies the operation's own timeout.
    #[inline]
    pub(super) fn admit<'e>(
        &mut self,
        id: &str,
        entry: Option<&'e Arc<Entry>>,
    ) -> Result<(&'e Arc<Entry>, &'e Handler), CallError> {
        let entry = entry.ok_or_else(|| self.unknown(id))?;
        let handler = handler_of(entry, id)?;
        if self.checked {
            self.authorise(entry).map_err(|error| self.refused(entry, &Value::Null, error))?;
        }
        self.context.timeout = entry.timeout;
        Ok((entry, handler))
    }

    /// What the check of the call's result is reported to, if the handler notes how calls end.
    #[inline]
    pub(super) fn ending(&mut self, handler: &Handler) -> Option<Ending> {
        handler.notes_end.then(|| self.noted())
    }

    /// Gives the handler what it adds to. A function of its own, so that the code of other calls stays small.
    #[cold]
    #[inline(never)]
    fn noted(&mut self) -> Ending {
        let ending = Ending::default();
        self.context.put_own(ending.clone());
        ending
    }

    /// Reports a refused call to the operation's handler.
    #[cold]
    pub(crate) fn refused(&self, entry: &Entry, input: &Value, error: CallError) -> CallError {
        if let Some(handler) = &entry.handler {
            handler.erased.refused(&entry.spec, input, &self.context, &error);
        }
        error
    }

    /// The error of an unregistered id, with similar ids of operations that its caller may run.
    ///
    /// The error of a nested call may reach a caller who should not learn of other operations, and lists none.
    #[cold]
    pub(super) fn unknown(&self, id: &str) -> CallError {
        const PROPOSED: usize = 3;
        let table = self.context.registry.table();
        let is_nested = self.context.extra.as_ref().is_some_and(|extra| extra.parent.is_some());
        let known = table.iter().filter(|entry| !is_nested && (!self.checked || self.may_run(entry)));
        let meant = question(&nearest(id, known.map(|entry| entry.spec.id.as_ref()), PROPOSED));
        refused(id, format!("operation not found: `{}`{meant}", shown(id)))
    }

    fn may_run(&self, entry: &Entry) -> bool {
        let access = &entry.spec.access;
        self.context.identity().map_or_else(|| access.is_open(), |identity| access.allows(identity))
    }

    pub(super) fn authorise(&self, entry: &Entry) -> Result<(), CallError> {
        if self.may_run(entry) {
            return Ok(());
        }
        let access = &entry.spec.access;
        // Scopes are in the spec, which every caller that may see the operation can read.
        let mut needs = Vec::new();
        if !access.required_scopes.is_empty() {
            needs.push(format!("all of the scopes {}", access.required_scopes.join(", ")));
        }
        if !access.required_scopes_any.is_empty() {
            needs.push(format!("one of the scopes {}", access.required_scopes_any.join(", ")));
        }
        match (&access.resource_type, &access.resource_action) {
            (None, None) => {}
            (Some(kind), Some(action)) => needs.push(format!("the right to {action} {kind}")),
            // Half a rule lets nobody in.
            _ => needs.push("a rule with both `resourceType` and `resourceAction`".to_owned()),
        }
        let message = format!("access to `{}` denied: it needs {}", entry.spec.id, needs.join(", and "));
        let mut details = Map::from_iter([("requiredScopes".to_owned(), json!(access.required_scopes))]);
        if !access.required_scopes_any.is_empty() {
            details.insert("requiredScopesAny".to_owned(), json!(access.required_scopes_any));
        }
        let error = CallError::new(ErrorCode::AccessDenied, message).with_details(details);
        Err(match self.context.extension::<Chosen>() {
            Some(Chosen) => error.refusing_program(),
            None => error,
        })
    }

    #[inline]
    pub(super) fn limits(&self) -> Limits {
        Limits::of(&self.context)
    }
}

pub(crate) fn not_found(id: &str, what: &str) -> CallError {
    refused(id, format!("{what}: `{}`", shown(id)))
}

/// The error of a call of an operation that does not exist.
pub(crate) fn refused(id: &str, message: String) -> CallError {
    CallError::new(ErrorCode::OperationNotFound, message).with_details(json!({ "operationId": shown(id) }))
}

/// The id of an operation in an error: a remote caller may have sent any text as an id.
fn shown(id: &str) -> String {
    readable(id, MAX_ID)
}
