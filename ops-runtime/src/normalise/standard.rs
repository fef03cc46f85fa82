//! JSON Schema 2020-12 by the standard, keyword by keyword.
//!
//! The form for repairing values ([`CompiledSchema`](super::CompiledSchema)) merges schemas and reads them as their
//! authors mean them. Here each keyword has its standard meaning, so that inputs are checked against all of them.

mod check;
mod compile;
mod evaluated;
mod keyword;
mod list;
pub(super) mod locate;
mod plain;
mod shape;
mod unread;
mod uri;

use serde_json::Value;

use super::budget::{self, Budget};
use super::report::Violations;
use super::{Problem, Violation};
use check::Run;
use keyword::Schema;

/// A schema of draft 2020-12, ready to check values.
///
/// All assertions of the draft are checked, including references by `$id`, `$anchor` and `$dynamicRef`. `format` and
/// the keywords of contents are annotations. So is a `pattern` that no regular expression engine here can compile, and
/// a reference that leads nowhere ([`problems`](Self::problems) lists these).
///
/// The time for a check is bounded in proportion to the value's size. A value that takes longer does not conform, and
/// the violation says that the check was ended.
///
/// ```
/// use ops_runtime::normalise::Validator;
/// use serde_json::json;
///
/// let validator = Validator::new(&json!({
///     "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}},
///     "dependentRequired": {"to": ["from"]},
///     "unevaluatedProperties": false,
/// }));
/// assert!(validator.check(&json!({"from": 1, "to": 2})));
/// let violations: Vec<_> = validator.violations(&json!({"to": 2, "x": 3})).iter().map(ToString::to_string).collect();
/// assert_eq!(violations, [
///     "/from: Expected required property beside `to`",
///     "/x: Unexpected property",
/// ]);
/// ```
#[derive(Debug)]
pub struct Validator {
    schemas: Vec<Schema>,
    root: u32,
    /// The targets of the names of `$dynamicRef`s that each resource has, by the numbers of the names.
    anchors: Vec<Vec<(u32, u32)>>,
    problems: Vec<Problem>,
    /// True if [`plain`] understands all of it, and there are no problems.
    is_plain: bool,
}

impl Validator {
    /// Compiles a schema and everything inside it that it refers to.
    pub fn new(schema: &Value) -> Self {
        compile::compile(schema, false)
    }

    /// Like [`new`](Self::new), for inputs: a string of the format `binary` stands for bytes, and is as long as these.
    pub(crate) fn of_inputs(schema: &Value) -> Self {
        compile::compile(schema, true)
    }

    /// The parts of the schema that are not checked: references that lead nowhere, and patterns that cannot be read or are
    /// too large together.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// True if a reference leads nowhere.
    pub(crate) fn leads_nowhere(&self) -> bool {
        self.problems.iter().any(Problem::is_nowhere)
    }

    /// True if a value conforms.
    pub fn check(&self, value: &Value) -> bool {
        self.check_with(value, &Budget::new())
    }

    /// Everything that keeps a value from conforming; empty if it does.
    ///
    /// Beyond 1,000 violations, a last one says how many more there are.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        self.violations_with(value, &Budget::new()).listed()
    }

    /// Like [`violations`](Self::violations), with the number of those that are not listed.
    pub(crate) fn report(&self, value: &Value) -> Violations {
        self.violations_with(value, &Budget::new())
    }

    /// True if a value conforms; `false` says nothing.
    #[inline]
    pub(crate) fn passes_plainly(&self, value: &Value) -> bool {
        self.is_plain && plain::passes(&self.schemas, self.root, value, 0)
    }

    fn check_with(&self, value: &Value, budget: &Budget) -> bool {
        self.passes_plainly(value) || Run::new(self, budget).whole(value)
    }

    fn violations_with(&self, value: &Value, budget: &Budget) -> Violations {
        if self.passes_plainly(value) {
            return Violations::default();
        }
        let run = Run::new(self, budget);
        if run.whole(value) { Violations::default() } else { list::list(&run, value) }
    }

    /// The steps that listing takes, and how many it may take at most, for tests.
    #[doc(hidden)]
    pub fn steps(&self, value: &Value) -> (u64, u64) {
        let budget = Budget::new();
        self.violations_with(value, &budget);
        (budget.steps(), Budget::most(value))
    }
}

/// The message for a value that is nested too deeply.
const TOO_DEEP: &str = "Expected less nesting";

/// The message for a value whose check was ended.
fn ended() -> String {
    budget::ended()
}
