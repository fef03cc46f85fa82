//! JSON Schema 2020-12 as the standard has it, keyword by keyword.
//!
//! The form that values are repaired by ([`CompiledSchema`](super::CompiledSchema)) merges schemas and reads them as
//! their authors mean them. Here each keyword says what it says in the standard, so that inputs are held to all of it.

mod check;
mod compile;
mod evaluated;
mod keyword;
mod list;
mod locate;
mod shape;
mod uri;

use serde_json::Value;

use super::budget::{self, Budget};
use super::report::Violations;
use super::{Problem, Violation};
use check::Run;
use keyword::Schema;

/// A schema of draft 2020-12, ready to check values.
///
/// All assertions of the draft are checked, references by `$id`, `$anchor` and `$dynamicRef` included. `format` and the
/// keywords of contents are annotations. A `pattern` that no regular expression engine here can compile is one, too,
/// and so is a reference that leads nowhere ([`problems`](Self::problems) lists these).
///
/// The time for a check is bounded in proportion to the value's size. A value that takes more does not conform, and the
/// violation says that the check was ended.
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
    /// What each name that a `$dynamicRef` may look up stands for in each resource that has it.
    anchors: Vec<Vec<Option<u32>>>,
    problems: Vec<Problem>,
}

impl Validator {
    /// Compiles a schema and everything inside it that it refers to.
    pub fn new(schema: &Value) -> Self {
        compile::compile(schema)
    }

    /// What was not understood in the schema: references that lead nowhere.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// True if a value conforms.
    pub fn check(&self, value: &Value) -> bool {
        self.check_with(value, &Budget::new())
    }

    /// Everything that keeps a value from conforming; empty if it does.
    ///
    /// Of more than 1,000 violations a last one says how many more there are.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        self.violations_with(value, &Budget::new()).listed()
    }

    /// The same, with the number of those that are not listed.
    pub(crate) fn report(&self, value: &Value) -> Violations {
        self.violations_with(value, &Budget::new())
    }

    fn check_with(&self, value: &Value, budget: &Budget) -> bool {
        Run::new(self, budget).whole(value)
    }

    fn violations_with(&self, value: &Value, budget: &Budget) -> Violations {
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

/// What is said of a value that is nested too deeply.
const TOO_DEEP: &str = "Expected less nesting";

/// What is said of a value whose check was ended.
fn ended() -> String {
    budget::ended()
}
