//! The rules that say which operations may be called without a question: those of `ops run`, of `ops serve` and of its file.

use clap::Args;
use ops_runtime::access::CallPolicy;
use serde::Deserialize;

/// Patterns of operations, of which the most restrictive that matches decides.
#[derive(Debug, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Rules {
    /// Do not ask before operations that match: an id or name, tag:NAME, a path, or 'METHOD path'; * is any text. By default,
    /// every operation that changes something is asked about
    #[arg(long, value_name = "PATTERN")]
    pub(crate) allow: Vec<String>,
    /// Ask before operations that match are called
    #[arg(long, value_name = "PATTERN")]
    pub(crate) ask: Vec<String>,
    /// Refuse calls of operations that match
    #[arg(long, value_name = "PATTERN")]
    pub(crate) deny: Vec<String>,
}

impl Rules {
    /// The patterns of each option, with its name.
    pub(crate) fn each(&self) -> [(&'static str, &[String]); 3] {
        [("--allow", &self.allow), ("--ask", &self.ask), ("--deny", &self.deny)]
    }

    /// Adds the rules to a policy.
    pub(crate) fn add_to(&self, policy: CallPolicy) -> CallPolicy {
        let policy = self.allow.iter().fold(policy, CallPolicy::with_allow);
        let policy = self.ask.iter().fold(policy, CallPolicy::with_ask);
        self.deny.iter().fold(policy, CallPolicy::with_deny)
    }
}
