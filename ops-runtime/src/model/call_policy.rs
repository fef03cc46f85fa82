//! Which calls may be made without asking anybody.

use crate::OperationSpec;

/// The decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// The call is made.
    Allow,
    /// The call is made after the user has approved it.
    Ask,
    /// The call is refused.
    Deny,
}

/// Decides by patterns which calls are allowed, which need approval, and which are refused.
///
/// If several patterns match an operation, the strictest one applies: `deny`, then `ask`, then `allow`. If none matches,
/// operations that change nothing are allowed, and those that [may change something](OperationSpec::may_change) need approval.
/// The patterns are those of [`OperationSpec::matches`].
///
/// ```
/// use ops_runtime::access::{CallPolicy, Decision};
/// use ops_runtime::spec::OperationSpec;
///
/// let policy = CallPolicy::new().with_allow("shop.add*").with_deny("shop.*All");
/// assert_eq!(policy.decide(&OperationSpec::query("shop.showPet")), Decision::Allow);
/// assert_eq!(policy.decide(&OperationSpec::mutation("shop.addPet")), Decision::Allow);
/// assert_eq!(policy.decide(&OperationSpec::mutation("shop.removePet")), Decision::Ask);
/// assert_eq!(policy.decide(&OperationSpec::mutation("shop.addAll")), Decision::Deny);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallPolicy {
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
}

impl CallPolicy {
    /// The policy without patterns: operations that may change something need approval.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows calls of operations that match.
    #[must_use]
    pub fn with_allow(mut self, pattern: impl Into<String>) -> Self {
        self.allow.push(pattern.into());
        self
    }

    /// Requires approval for calls of operations that match.
    #[must_use]
    pub fn with_ask(mut self, pattern: impl Into<String>) -> Self {
        self.ask.push(pattern.into());
        self
    }

    /// Refuses calls of operations that match.
    #[must_use]
    pub fn with_deny(mut self, pattern: impl Into<String>) -> Self {
        self.deny.push(pattern.into());
        self
    }

    /// The patterns, each with its decision.
    pub fn patterns(&self) -> impl Iterator<Item = (Decision, &str)> {
        let all = [(Decision::Allow, &self.allow), (Decision::Ask, &self.ask), (Decision::Deny, &self.deny)];
        all.into_iter()
            .flat_map(|(decision, patterns)| patterns.iter().map(move |pattern| (decision, pattern.as_str())))
    }

    /// Returns the decision about calls of the operation.
    pub fn decide(&self, spec: &OperationSpec) -> Decision {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| spec.matches(pattern));
        if any(&self.deny) {
            Decision::Deny
        } else if any(&self.ask) {
            Decision::Ask
        } else if !spec.may_change() || any(&self.allow) {
            Decision::Allow
        } else {
            Decision::Ask
        }
    }
}
