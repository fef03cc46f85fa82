//! Which operations run, which ask first, and which are refused.

use crate::{OperationKind, OperationSpec};

/// What happens when a program calls an operation; the later, the more restrictive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// It runs.
    Allow,
    /// It runs if somebody says yes.
    Ask,
    /// It is refused.
    Deny,
}

/// Which operations run, which ask first, and which are refused: by patterns over ids, else by kind.
///
/// In a pattern, `*` is any text, and all else is itself. Of all patterns that match an id, the most restrictive decides:
/// their order says nothing. An id that no pattern matches is decided by the operation's kind: queries are allowed, and
/// all others ask.
///
/// ```
/// use ops_runtime::program::{Decision, Policy};
/// use ops_runtime::spec::OperationSpec;
///
/// let policy = Policy::new().with_allow("shop.*").with_deny("*.delete*");
/// assert_eq!(policy.decide(&OperationSpec::mutation("shop.addPet")), Decision::Allow);
/// assert_eq!(policy.decide(&OperationSpec::mutation("shop.deletePet")), Decision::Deny);
/// assert_eq!(policy.decide(&OperationSpec::mutation("bank.pay")), Decision::Ask);
/// assert_eq!(policy.decide(&OperationSpec::query("bank.balance")), Decision::Allow);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    rules: Vec<(String, Decision)>,
    queries: Decision,
    changes: Decision,
}

impl Default for Policy {
    fn default() -> Self {
        Self::new()
    }
}

impl Policy {
    /// Queries are allowed, all others ask.
    pub fn new() -> Self {
        Self { rules: Vec::new(), queries: Decision::Allow, changes: Decision::Ask }
    }

    /// Adds a pattern, and what is decided for ids that match it.
    #[must_use]
    pub fn with_rule(mut self, pattern: impl Into<String>, decision: Decision) -> Self {
        self.rules.push((pattern.into(), decision));
        self
    }

    /// Allows the operations whose ids match.
    #[must_use]
    pub fn with_allow(self, pattern: impl Into<String>) -> Self {
        self.with_rule(pattern, Decision::Allow)
    }

    /// Asks before the operations whose ids match.
    #[must_use]
    pub fn with_ask(self, pattern: impl Into<String>) -> Self {
        self.with_rule(pattern, Decision::Ask)
    }

    /// Refuses the operations whose ids match.
    #[must_use]
    pub fn with_deny(self, pattern: impl Into<String>) -> Self {
        self.with_rule(pattern, Decision::Deny)
    }

    /// Sets what is decided for queries that no pattern matches.
    #[must_use]
    pub fn with_queries(mut self, decision: Decision) -> Self {
        self.queries = decision;
        self
    }

    /// Sets what is decided for all but queries that no pattern matches.
    #[must_use]
    pub fn with_changes(mut self, decision: Decision) -> Self {
        self.changes = decision;
        self
    }

    /// What happens when the operation is called.
    pub fn decide(&self, spec: &OperationSpec) -> Decision {
        let matched =
            self.rules.iter().filter(|(pattern, _)| matches(pattern, &spec.id)).map(|(_, decision)| *decision);
        matched.max().unwrap_or(if spec.kind == OperationKind::Query { self.queries } else { self.changes })
    }
}

/// True if the text is the pattern's; the steps are at most the product of the lengths.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, wanted) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "shop.a", true),
            ("shop.*", "shop.a", true),
            ("shop.*", "shop2.a", false),
            ("shop.*", "ashop.a", false),
            ("*.delete*", "shop.deletePet", true),
            ("*.delete*", "shop.undelete", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("a**b", "ab", true),
            ("a?b", "axb", false),
            ("*ab", "aab", true),
            ("*müll*", "x.mülleimer", true),
        ] {
            assert_eq!(matches(pattern, text), wanted, "{pattern} {text}");
        }
    }

    #[test]
    fn the_most_restrictive_decides_whatever_the_order() {
        let spec = OperationSpec::mutation("shop.addPet");
        let one = Policy::new().with_allow("shop.*").with_ask("*");
        let other = Policy::new().with_ask("*").with_allow("shop.*");
        assert_eq!((one.decide(&spec), other.decide(&spec)), (Decision::Ask, Decision::Ask));
        assert_eq!(other.with_deny("*.addPet").decide(&spec), Decision::Deny);
        assert_eq!(Policy::new().with_changes(Decision::Deny).decide(&spec), Decision::Deny);
    }
}
