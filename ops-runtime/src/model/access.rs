//! Access control: the identity of a caller and the access rules of an operation.
//!
//! ```
//! use ops_runtime::access::{AccessControl, Identity};
//!
//! let rules = AccessControl::NONE.with_scopes(&["pets:write"]);
//! assert!(rules.allows(&Identity::new("ann").with_scope("pets:write")));
//! assert!(!rules.allows(&Identity::new("bob")));
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::model::text::{Text, set};
use crate::model::text_list::TextList;

pub use crate::model::call_policy::{CallPolicy, Decision};

/// What a caller needs in order to run an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessControl {
    /// Scopes of which the caller must hold all.
    pub required_scopes: TextList,
    /// Scopes of which the caller must hold at least one; empty for no such rule.
    pub required_scopes_any: TextList,
    /// The type of resource that the operation acts on. If it is set without `resource_action`, every call is refused.
    pub resource_type: Option<Text>,
    /// The action of the operation on the resource. If it is set without `resource_type`, every call is refused.
    pub resource_action: Option<Text>,
}

impl AccessControl {
    /// No rules: anyone may call, even without an identity.
    pub const NONE: Self = Self {
        required_scopes: TextList::new(&[]),
        required_scopes_any: TextList::new(&[]),
        resource_type: None,
        resource_action: None,
    };

    /// Requires all of these scopes.
    #[must_use]
    pub const fn with_scopes(mut self, scopes: &'static [&'static str]) -> Self {
        set(&mut self.required_scopes, TextList::new(scopes));
        self
    }

    /// Requires at least one of these scopes.
    #[must_use]
    pub const fn with_scopes_any(mut self, scopes: &'static [&'static str]) -> Self {
        set(&mut self.required_scopes_any, TextList::new(scopes));
        self
    }

    /// Requires that the caller may do `action` to some resource of type `resource`.
    #[must_use]
    pub const fn with_resource(mut self, resource: &'static str, action: &'static str) -> Self {
        set(&mut self.resource_type, Some(Cow::Borrowed(resource)));
        set(&mut self.resource_action, Some(Cow::Borrowed(action)));
        self
    }

    /// True if there are no rules, so that no identity is needed.
    pub fn is_open(&self) -> bool {
        let has_scopes = !self.required_scopes.is_empty() || !self.required_scopes_any.is_empty();
        !has_scopes && self.resource_type.is_none() && self.resource_action.is_none()
    }

    /// True if the identity satisfies every rule.
    ///
    /// The resource rule asks for the action on any resource of the type; the handler must check which one
    /// ([`Identity::may`]).
    pub fn allows(&self, identity: &Identity) -> bool {
        let holds = |scope: &str| identity.scopes.iter().any(|s| s == scope);
        self.required_scopes.iter().all(holds)
            && (self.required_scopes_any.is_empty() || self.required_scopes_any.iter().any(holds))
            && match (&self.resource_type, &self.resource_action) {
                (None, None) => true,
                (Some(kind), Some(action)) => identity.may_some(kind, action),
                // The other half is missing, perhaps by a typing error. That must not open the operation.
                _ => false,
            }
    }
}

impl Default for AccessControl {
    fn default() -> Self {
        Self::NONE
    }
}

/// A caller's identity: an id, the scopes it holds and the actions it may take on resources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Identity {
    /// The caller's id.
    pub id: String,
    /// The scopes that the caller holds.
    pub scopes: Vec<String>,
    /// Actions by resource, keyed `type:id`.
    pub resources: BTreeMap<String, Vec<String>>,
    /// Not part of the JSON: it stays in the process that authenticated the caller.
    pub(in crate::model) token: Option<CallerToken>,
}

impl Identity {
    /// An identity without scopes or resources.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// Adds a scope.
    #[must_use]
    pub fn with_scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.push(scope.into());
        self
    }

    /// Allows an action on a resource, given as `type:id`.
    #[must_use]
    pub fn with_resource(mut self, resource: impl Into<String>, action: impl Into<String>) -> Self {
        self.resources.entry(resource.into()).or_default().push(action.into());
        self
    }

    /// Keeps the token by which the caller authenticated, for HTTP clients that pass it on or exchange it.
    ///
    /// An authenticator says this of a token that it has checked. No client sends it unless its configuration says so.
    /// The token is not part of the identity's JSON, so it does not reach other processes with a call.
    ///
    /// ```
    /// use ops_runtime::access::Identity;
    ///
    /// let ann = Identity::new("ann").with_token("t0k3n");
    /// assert_eq!(ann.token().map(|token| token.expose()), Some("t0k3n"));
    /// assert!(!format!("{ann:?}").contains("t0k3n"));
    /// ```
    #[must_use]
    pub fn with_token(mut self, token: impl Into<CallerToken>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// The token by which the caller authenticated, if the authenticator kept it.
    pub fn token(&self) -> Option<&CallerToken> {
        self.token.as_ref()
    }

    /// True if the caller may take an action on a resource, given as `type:id`.
    ///
    /// A handler asks this for the resource that its input names: the access rules of an operation require the action on
    /// some resource of the type.
    ///
    /// ```
    /// use ops_runtime::access::Identity;
    ///
    /// let ann = Identity::new("ann").with_resource("pet:7", "read");
    /// assert!(ann.may("pet:7", "read"));
    /// assert!(!ann.may("pet:8", "read") && !ann.may("pet:7", "sell"));
    /// ```
    pub fn may(&self, resource: &str, action: &str) -> bool {
        self.resources.get(resource).is_some_and(|actions| actions.iter().any(|a| a == action))
    }

    /// True if the caller may take an action on some resource of a type.
    fn may_some(&self, kind: &str, action: &str) -> bool {
        self.resources.iter().any(|(resource, actions)| {
            resource.split_once(':').is_some_and(|(k, _)| k == kind) && actions.iter().any(|a| a == action)
        })
    }
}

/// The token by which a caller authenticated, which `Debug` never shows.
#[derive(Clone, PartialEq, Eq)]
pub struct CallerToken(Arc<str>);

impl CallerToken {
    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for CallerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallerToken")
    }
}

impl From<String> for CallerToken {
    fn from(token: String) -> Self {
        Self(token.into())
    }
}

impl From<&str> for CallerToken {
    fn from(token: &str) -> Self {
        Self(token.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_rule_for_a_resource_lets_nobody_in() {
        let whole = AccessControl::NONE.with_resource("pet", "sell");
        let ann = Identity::new("ann").with_resource("pet:7", "sell");
        assert_eq!((whole.is_open(), whole.allows(&ann), whole.allows(&Identity::new("bob"))), (false, true, false));
        let untyped = AccessControl { resource_type: None, ..whole.clone() };
        let without_action = AccessControl { resource_action: None, ..whole.clone() };
        for half in [untyped, without_action] {
            assert_eq!((half.is_open(), half.allows(&ann)), (false, false), "{half:?}");
            // Nor is it read: a member with a typing error is skipped like any other unknown one.
            let json = serde_json::to_string(&half).unwrap();
            let error = serde_json::from_str::<AccessControl>(&json).unwrap_err().to_string();
            let told = "an access rule has `resourceType` and `resourceAction`, or neither";
            assert!(error.starts_with(told), "{error}");
        }
        let json = serde_json::to_string(&whole).unwrap();
        assert_eq!(serde_json::from_str::<AccessControl>(&json).unwrap(), whole);
    }

    #[test]
    fn a_token_is_no_part_of_the_json() {
        let ann = Identity::new("ann").with_scope("pets:read").with_token("hush");
        let json = serde_json::to_string(&ann).unwrap();
        assert_eq!(json, r#"{"id":"ann","scopes":["pets:read"]}"#);
        // Nor can a peer name one.
        let read: Identity = serde_json::from_str(r#"{"id":"ann","scopes":[],"token":"hush"}"#).unwrap();
        assert_eq!(read, Identity::new("ann"));
    }
}
