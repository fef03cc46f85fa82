//! The caller of a server, as far as its transport knows.

use std::sync::Arc;

use crate::run::pipeline::Invocation;
use crate::{CallOptions, Context, Identity, OperationSpec, Registry};

/// An extension of a call: the owner of the registry makes it.
#[cfg(feature = "gateway")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByOwner;

/// The caller of a server, as far as its transport knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Principal {
    /// The owner of the registry, who may call everything.
    Owner,
    /// A caller whose every call is checked; `None` if unknown.
    Checked(Option<Arc<Identity>>),
}

impl Principal {
    /// True if the caller may call an operation; other operations are not listed.
    pub(crate) fn sees(&self, spec: &OperationSpec) -> bool {
        match self {
            Self::Owner => true,
            Self::Checked(Some(identity)) => spec.access.allows(identity),
            Self::Checked(None) => spec.access.is_open(),
        }
    }

    /// True if both are the same caller, even if its rights have changed.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.id() == other.id()
    }

    /// True if the caller has an identity, on which lists may depend.
    pub(crate) fn is_known(&self) -> bool {
        self.id().is_some()
    }

    /// The id of the caller, if it is known.
    pub(crate) fn id(&self) -> Option<&str> {
        match self {
            Self::Checked(Some(identity)) => Some(&identity.id),
            _ => None,
        }
    }

    /// A call of this caller.
    pub(crate) fn invocation(&self, registry: &Registry, options: CallOptions) -> Invocation {
        match self {
            Self::Owner => Invocation::with(registry, options),
            Self::Checked(identity) => {
                let policy = options.policy.unwrap_or(registry.policy());
                let context = Context::new(registry.clone(), options, identity.clone());
                Invocation { context, policy, checked: true }
            }
        }
    }

    /// The caller of a handler that forwards calls on behalf of its own caller.
    ///
    /// Without an identity it is the owner, if the transport treats unknown callers as the owner.
    #[cfg(feature = "gateway")]
    pub(crate) fn of(context: &Context, unknown_is_owner: bool) -> Self {
        match context.extra.as_ref().and_then(|extra| extra.identity.clone()) {
            None if unknown_is_owner => Self::Owner,
            identity => Self::Checked(identity),
        }
    }

    /// A call that a handler forwards to another registry, checked like its own caller's.
    #[cfg(feature = "gateway")]
    pub(crate) fn forward(&self, context: &Context, registry: &Registry, options: CallOptions) -> Invocation {
        let mut context = context.nested(options);
        context.registry = registry.clone();
        if let Some(extra) = &mut context.extra {
            Arc::make_mut(extra).trusted = false;
        }
        Invocation { context, policy: registry.policy(), checked: *self != Self::Owner }
    }
}
