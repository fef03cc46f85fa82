//! Who calls a tool.

use std::sync::Arc;

use crate::run::pipeline::Invocation;
use crate::{CallOptions, Context, Identity, OperationSpec, Registry};

/// Who calls a tool, as far as the transport knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Principal {
    /// The owner of the registry, who may call everything.
    Owner,
    /// Somebody whose every call is checked; without an identity, somebody unknown.
    Checked(Option<Arc<Identity>>),
}

impl Principal {
    /// Whether the caller may call an operation; what they may not is not listed.
    pub(super) fn sees(&self, spec: &OperationSpec) -> bool {
        match self {
            Self::Owner => true,
            Self::Checked(Some(identity)) => spec.access.allows(identity),
            Self::Checked(None) => spec.access.is_open(),
        }
    }

    /// Whether both are the same person, whatever they may do by now.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.id() == other.id()
    }

    /// Whether the caller has an identity, on which what they see may depend.
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
