//! Which calls may be made without asking anybody.

use crate::{OperationKind, OperationSpec};

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// It is made.
    Allow,
    /// It is made after it was approved.
    Ask,
    /// It is refused.
    Deny,
}

/// Decides by patterns which calls may be made, and which somebody has to agree to first.
///
/// Of the patterns that match an operation the strictest counts: `deny`, then `ask`, then `allow`. Where none matches,
/// operations that change nothing are allowed, and mutations are asked about. Patterns are those of
/// [`OperationSpec::matches`].
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
    /// The policy without patterns: mutations are asked about.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows calls of operations that match.
    #[must_use]
    pub fn with_allow(mut self, pattern: impl Into<String>) -> Self {
        self.allow.push(pattern.into());
        self
    }

    /// Asks about calls of operations that match.
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

    /// The patterns, each with what it decides.
    pub fn patterns(&self) -> impl Iterator<Item = (Decision, &str)> {
        let all = [(Decision::Allow, &self.allow), (Decision::Ask, &self.ask), (Decision::Deny, &self.deny)];
        all.into_iter()
            .flat_map(|(decision, patterns)| patterns.iter().map(move |pattern| (decision, pattern.as_str())))
    }

    /// What becomes of calls of the operation.
    pub fn decide(&self, spec: &OperationSpec) -> Decision {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| spec.matches(pattern));
        if any(&self.deny) {
            Decision::Deny
        } else if any(&self.ask) {
            Decision::Ask
        } else if spec.kind != OperationKind::Mutation || any(&self.allow) {
            Decision::Allow
        } else {
            Decision::Ask
        }
    }
}
