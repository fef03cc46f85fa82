//! Who calls a tool.

use std::sync::Arc;

use crate::run::pipeline::Invocation;
use crate::{CallOptions, Context, Identity, OperationSpec, Registry};

/// Who calls a tool, as far as the transport knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Principal {
    /// The owner of the registry, who may call everything.
    Owner,
    /// A caller whose every call is checked; unknown without an identity.
    Checked(Option<Arc<Identity>>),
}

impl Principal {
    /// True if the caller may call an operation; other operations are not listed.
    pub(super) fn sees(&self, spec: &OperationSpec) -> bool {
        match self {
            Self::Owner => true,
            Self::Checked(Some(identity)) => spec.access.allows(identity),
            Self::Checked(None) => spec.access.is_open(),
        }
    }

    /// True if both are the same person, even if their rights have changed.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.id() == other.id()
    }

    /// True if the caller has an identity, which may decide what they see.
    pub(super) fn is_known(&self) -> bool {
        self.id().is_some()
    }

    /// The id of the caller, if it is known.
    pub(super) fn id(&self) -> Option<&str> {
        match self {
            Self::Checked(Some(identity)) => Some(&identity.id),
            _ => None,
        }
    }

    /// A call in the caller's name.
    pub(super) fn invocation(&self, registry: &Registry, options: CallOptions) -> Invocation {
        match self {
            Self::Owner => Invocation::with(registry, options),
            Self::Checked(identity) => {
                let policy = options.policy.unwrap_or(registry.policy());
                let context = Context::new(registry.clone(), options, identity.clone());
                Invocation { context, policy, checked: true }
            }
        }
    }
}
