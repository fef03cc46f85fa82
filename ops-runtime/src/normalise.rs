//! Bringing results into the shape that their schema promises.
//!
//! "The original" below is TypeBox 0.34, whose `Value.Cast`, `Check` and `Errors` the compatible reading reproduces.
//!
//! Results of an API or a tool seldom match their schema exactly: they have undeclared properties, lack defaults, or
//! hold a `null` or a `"42"` instead of a number. Normalising takes three steps. It removes undeclared properties,
//! fills in a `default` for absent ones, and handles everything that still does not conform as the
//! [policy](crate::OutputPolicy) says:
//!
//! - [`repair`](CompiledSchema::repair) rewrites it as the schema asks if that loses nothing, or else keeps it.
//! - [`normalise`](CompiledSchema::normalise) makes up values that fit.
//! - [`clean`](CompiledSchema::clean) leaves it alone.
//!
//! Every change is reported, by place and kind.
//!
//! ```
//! use ops_runtime::normalise::{CompiledSchema, Reading};
//! use serde_json::json;
//!
//! let schema = CompiledSchema::new(
//!     &json!({
//!         "type": "object",
//!         "properties": {
//!             "id": {"type": "integer"},
//!             "name": {"type": "string"},
//!             "status": {"type": "string", "enum": ["available", "sold"], "default": "available"}
//!         },
//!         "required": ["id", "name"]
//!     }),
//!     Reading::Default,
//! );
//! let response = json!({"id": "7", "name": null, "_links": {}});
//!
//! let (value, told) = schema.repair(response.clone());
//! assert_eq!(value, json!({"id": 7, "name": null, "status": "available"}));
//! let told: Vec<_> = told.iter().map(ToString::to_string).collect();
//! assert_eq!(told, [
//!     "/id: expected integer, found string",
//!     "/name: expected string, found null, kept",
//!     "/_links: expected no such property, found object",
//! ]);
//!
//! let (value, _) = schema.normalise(response);
//! assert_eq!(value, json!({"id": 0, "name": "", "status": "available"}));
//! ```
//!
//! Schemas are compiled once, in one of two [readings](Reading), and used by any number of threads. The schemas of one
//! API share its [`CompiledDefinitions`], each of which is compiled when a value first reaches it.
//!
//! # What the steps do
//!
//! 1. A property is removed if the schema does not declare it: neither by `properties` or `patternProperties` of any
//!    `allOf` member, nor under a condition, nor by the variant of a union that the value belongs to. It stays if
//!    `additionalProperties` is `true` or a schema, or if the object declares nothing.
//! 2. An absent property gets its `default`, required or not, unless it is `writeOnly`: a result need not have what only
//!    requests have, so that nothing follows from its absence. A default that its schema, or that of a pattern, refuses is
//!    ignored. So is the default of a discriminator's property if it names a variant other than the object's own.
//! 3. A node that still does not conform is converted or left unchanged (`repair`, see below), or repaired as the
//!    original's `Value.Cast` does it (`normalise`): a scalar is *replaced* by its default or its zero value, not
//!    parsed or clamped; an object is repaired property by property; a union by the closest variant. If the original
//!    throws (nothing can be made up to match a `pattern`, say), the node stays as received, and this is reported.
//!
//! Parts beside a fault stay unchanged. A faulty value stays whole if it is unclear to which variant of a union it
//! belongs. Items of a list with `uniqueItems` stay as they came if the first two steps would make some of them equal.
//!
//! # Conversions that lose nothing
//!
//! | received | the schema asks for | becomes | why nothing is lost |
//! |---|---|---|---|
//! | `"7"`, `"-1.5"` | a number | `7`, `-1.5` | the text is a JSON number of at most the digits that a number holds |
//! | `7`, `-1.5` | a string | `"7"`, `"-1.5"` | a whole number, or one of at most 15 digits, is held exactly; its text has no exponent |
//! | `"true"`, `"false"` | a boolean | `true`, `false` | no other text is a boolean |
//! | `true`, `false` | a string | `"true"`, `"false"` | a boolean is its text |
//! | `1`, `0` | a boolean | `true`, `false` | databases without booleans write them so |
//! | `7.0` | an integer | `7` | it is the same number (not reported) |
//! | a value | a list of such values | a list of it | converters from XML write a list of one so |
//! | `[]` | an object that may be empty | `{}` | languages without empty objects write them so |
//! | `{}` | a list that may be empty | `[]` | languages without empty lists write them so |
//! | `null` | a value of another type, of an optional property or an entry of a map | its absence | both say that there is no value |
//!
//! A scalar of the wrong type is converted even if the result breaks another rule, such as an enum or a bound: a Rust type
//! can hold that. Then two things are reported: the conversion, and what is still wrong.
//!
//! The last four rows do not apply to the whole value: there, another kind means another response. Other conversions would
//! lose or guess something, and are not made: text with a sign `+`, spaces or leading zeros (an identifier), a list of
//! one for its item (the next response may hold two), `null`, `false`, `0` or `""` for no list, `null` for a required
//! property, `""` for no value, different case in an enum, `"yes"` or `"1"` for a boolean, JSON within a string.
//!
//! # Where the default reading differs
//!
//! The default reading differs from the original where that needlessly loses data or makes it up. A `null` counts as
//! absent if a property may be absent but not `null`, and this is reported; so it does in a map of values that may not be
//! `null`. An `allOf` of objects is one object, so
//! that a wrong property affects only itself. A repaired object keeps the properties that `additionalProperties: true`
//! allows. A union is repaired by the variant that its discriminator or constant tag names, or, if no variant scores
//! anything, by the first of the value's own type. If a discriminator names none that is described, nothing is removed.
//!
//! # Limits
//!
//! Schemas and values come from strangers, so everything is bounded. A value is followed to about 280 levels (JSON is
//! parsed to 128), a schema to 100; made-up values have up to 65,536 characters or items each; patterns are bounded in
//! size and time. What is beyond does not conform, stays unchanged, and is reported.
//!
//! The time for a value is proportional to its size, for any schema: at most 512 steps (each checks a schema against a
//! node, or up to 8 variants of a union) for each node and each 32 bytes of text, and 2^18 for a small value. Filled-in
//! defaults count, even if they are dropped again. A value that takes more does not conform, and stays unchanged from
//! where the steps ran out; the first violation or repair says so. Of these, 1,000 are listed; a last one counts the rest.

mod budget;
mod check;
mod compat;
mod create;
mod definitions;
mod draft;
mod equal;
mod findings;
mod lower;
mod names;
mod node;
mod number;
mod path;
mod pattern;
mod reference;
mod repair;
mod report;
mod scan;
mod standard;
mod tagged;
mod text;
mod violations;

use std::borrow::Cow;

use serde_json::Value;

use budget::Budget;
use check::Checker;
use node::{At, Unit};
use pattern::size::Allowance;
use repair::{Fixer, Mode, Strip};
use scan::{Mended, Scanner};
use violations::Lister;

pub use definitions::{CompiledDefinitions, Reading};
pub(crate) use equal::{copy, equal};
use findings::Problems;
pub(crate) use findings::UNDECLARED;
pub use findings::{Change, Problem, Repair, Violation};
pub(crate) use number::integer;
pub(crate) use pattern::named::{Patterns, Searches};
pub(crate) use repair::{Measure, kind};
pub(crate) use report::{MAX_TOLD, NO_MORE, Violations};
pub use standard::Validator;

/// A schema ready for use.
#[derive(Debug)]
pub struct CompiledSchema {
    unit: Unit,
    definitions: CompiledDefinitions,
    problems: Vec<Problem>,
}

impl CompiledSchema {
    /// Compiles a schema that needs only its own definitions.
    pub fn new(schema: &Value, reading: Reading) -> Self {
        CompiledSchema::with_definitions(schema, &CompiledDefinitions::none(reading))
    }

    /// Compiles a schema whose references may lead to shared definitions, in their reading.
    ///
    /// `#/$defs/Name`, `#/definitions/Name` and `#/components/schemas/Name` are searched in the schema first.
    pub fn with_definitions(schema: &Value, definitions: &CompiledDefinitions) -> Self {
        // Its own: the definitions may be those of any number of schemas, most of them gone.
        let (patterns, mut problems) = (Allowance::default(), Problems::default());
        let unit = match definitions.reading() {
            Reading::Compat => compat::compile(schema, definitions, &patterns),
            Reading::Default => lower::compile(schema, None, definitions, &patterns, &mut problems),
        };
        CompiledSchema { unit, definitions: definitions.clone(), problems: problems.into_list() }
    }

    /// The parts of the schema that were not understood, mainly references to nowhere and patterns that cannot be read.
    ///
    /// Shared definitions have [their own list](CompiledDefinitions::problems).
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// True if the schema, or a definition that was compiled so far, is nested deeper or combines more than is read: then
    /// not all of a value is checked.
    pub(crate) fn is_cut(&self) -> bool {
        self.problems.iter().any(Problem::is_cut) || self.definitions.is_cut()
    }

    fn root(&self) -> At<'_> {
        self.unit.root()
    }

    /// True if a value conforms.
    pub fn check(&self, value: &Value) -> bool {
        Checker::new(&self.definitions).check(self.root(), value, 0)
    }

    /// True if a JSON text conforms and need not be changed: it has no undeclared properties that would be removed, and
    /// lacks no defaults.
    ///
    /// The text is read once, and no value is made of it. `false` may also mean that a value is needed to tell, as for
    /// unions of objects without a tag, `allOf` that could not be merged, `patternProperties`, `uniqueItems` and names
    /// that come twice.
    ///
    /// ```
    /// use ops_runtime::normalise::{CompiledSchema, Reading};
    /// use serde_json::json;
    ///
    /// let schema = json!({"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}});
    /// let schema = CompiledSchema::new(&schema, Reading::Default);
    /// assert!(schema.passes(br#"[{"id": 7}, {}]"#));
    /// assert!(!schema.passes(br#"[{"id": "7"}]"#));
    /// assert!(!schema.passes(br#"[{"id": 7, "_links": {}}]"#));
    /// ```
    pub fn passes(&self, text: &[u8]) -> bool {
        Scanner::new(&Checker::new(&self.definitions), text).passes(self.root())
    }

    /// Repairs a JSON text as [`repair`](Self::repair) does a value, and makes a value only of the parts that need a change.
    ///
    /// All else stays as it was written. `None` means that the value as a whole is needed, as where the root itself does
    /// not conform, or that it is no JSON.
    ///
    /// ```
    /// use ops_runtime::normalise::{CompiledSchema, Reading};
    /// use serde_json::json;
    ///
    /// let schema = json!({"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}});
    /// let schema = CompiledSchema::new(&schema, Reading::Default);
    /// let (text, repairs) = schema.repair_text(r#"[{"id": 7}, {"_links": {}, "id": "8"}]"#).ok_or("no JSON")?;
    /// assert_eq!(text, r#"[{"id": 7}, {"id": 8}]"#);
    /// assert_eq!(repairs.len(), 2);
    /// # Ok::<(), &str>(())
    /// ```
    pub fn repair_text<'t>(&self, text: &'t str) -> Option<(Cow<'t, str>, Vec<Repair>)> {
        self.shaped_text(text, Measure::Schema).map(Repaired::listed)
    }

    pub(crate) fn shaped_text<'t>(&self, text: &'t str, measure: Measure) -> Option<Repaired<Cow<'t, str>>> {
        self.mended(text, Mode::Repair, measure)
    }

    /// Normalises a JSON text as [`normalise`](Self::normalise) does a value, and makes a value only of the parts that
    /// need a change.
    ///
    /// `None` means the same as for [`repair_text`](Self::repair_text).
    pub fn normalise_text<'t>(&self, text: &'t str) -> Option<(Cow<'t, str>, Vec<Repair>)> {
        self.normalised_text(text, Measure::Schema).map(Repaired::listed)
    }

    pub(crate) fn normalised_text<'t>(&self, text: &'t str, measure: Measure) -> Option<Repaired<Cow<'t, str>>> {
        self.mended(text, Mode::Normalise, measure)
    }

    fn mended<'t>(&self, text: &'t str, mode: Mode, measure: Measure) -> Option<Repaired<Cow<'t, str>>> {
        let checker = Checker::new(&self.definitions);
        let Mended { text, repairs, more } = Scanner::of_str(&checker, text).mend(self.root(), mode, measure, text)?;
        Some(Repaired { value: text, repairs, more, has_ended: false, steps: checker.budget.steps(), largest: 0 })
    }

    /// True if the schema asks for a kind of value and no more, and the value is of that kind, written as it should be.
    pub(crate) fn is_plainly(&self, value: &Value) -> bool {
        let node::Kind::Plain(types) = &self.unit.root.kind else { return false };
        types.admits(value) && !(types.wants_integer() && value.is_f64())
    }

    /// Everything that keeps a value from conforming; empty if it does.
    ///
    /// Beyond 1,000, a last entry says how many more there are. In the compatible reading the order and the words are
    /// the original's.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        self.report(value).listed()
    }

    /// Like [`violations`](Self::violations), with the number of those that are not listed.
    pub(crate) fn report(&self, value: &Value) -> Violations {
        self.violations_with(value, &Checker::new(&self.definitions))
    }

    fn violations_with(&self, value: &Value, checker: &Checker<'_>) -> Violations {
        let conforms = checker.keeping(|| checker.check(self.root(), value, 0));
        if conforms { Violations::default() } else { Lister::list(checker, self.root(), Some(value), report::MAX_TOLD) }
    }

    /// The steps that listing and repairing take, and how many each may take at most, for tests.
    #[doc(hidden)]
    pub fn steps(&self, value: &Value) -> (u64, u64, u64) {
        let checker = Checker::new(&self.definitions);
        self.violations_with(value, &checker);
        let repaired = self.shaped(value.clone(), Measure::Schema);
        let most = Budget::most(value).max(Budget::most(&repaired.value)).max(Budget::most_of(repaired.largest));
        (checker.budget.steps(), repaired.steps, most)
    }

    /// Like [`violations`](Self::violations), for an absent value.
    pub fn violations_of_absence(&self) -> Vec<Violation> {
        Lister::list(&Checker::new(&self.definitions), self.root(), None, report::MAX_TOLD).listed()
    }

    /// Repairs a value exactly as TypeBox's `Value.Cast` does, and nothing else.
    ///
    /// A value that conforms is returned as it is, undeclared properties included.
    pub fn cast(&self, value: Value) -> (Value, Vec<Repair>) {
        self.repaired(value, Measure::Schema, &[(Mode::Cast, Strip::None)]).listed()
    }

    /// Repairs a value, in one pass for each mode.
    fn repaired(&self, mut value: Value, measure: Measure, passes: &[(Mode, Strip<'_>)]) -> Repaired {
        let checker = Checker::new(&self.definitions);
        let mut fixer = Fixer::new(&checker, Mode::Clean, measure);
        for (index, (mode, strip)) in passes.iter().enumerate() {
            fixer.begin(*mode, index > 0);
            let strip = if let Strip::All = strip { Strip::All } else { Strip::None };
            fixer.fix(self.root(), &mut value, &path::Path::ROOT, strip, 0);
        }
        let (mut repairs, more) = fixer.repairs.finish();
        let has_ended = checker.budget.has_ended();
        if has_ended {
            let (expected, found) = (budget::expectation(), repair::kind(Some(&value)).into());
            repairs.insert(0, Repair { pointer: String::new(), expected, found, change: Change::Kept });
        }
        Repaired { value, repairs, more, has_ended, steps: checker.budget.steps(), largest: checker.budget.counted() }
    }

    /// The result of [`cast`](Self::cast) for an absent value, as of a handler without result; `None` if it conforms.
    pub fn cast_absent(&self) -> (Option<Value>, Vec<Repair>) {
        let checker = Checker::new(&self.definitions);
        let mut fixer = Fixer::new(&checker, Mode::Cast, Measure::Schema);
        let value = fixer.fix_root_absent(self.root());
        (value, fixer.repairs.finish().0)
    }

    /// Removes undeclared properties, fills in defaults, and rewrites the rest as the schema asks if nothing is lost.
    ///
    /// Nothing is made up: a part that still does not conform stays unchanged, and is reported. A scalar of the wrong type
    /// is converted all the same, if nothing is lost.
    pub fn repair(&self, value: Value) -> (Value, Vec<Repair>) {
        self.shaped(value, Measure::Schema).listed()
    }

    /// Like [`repair`](Self::repair), with the number of repairs that are not listed.
    pub(crate) fn shaped(&self, value: Value, measure: Measure) -> Repaired {
        self.repaired(value, measure, &[(Mode::Repair, Strip::All)])
    }

    /// Removes undeclared properties and fills in defaults; nothing else changes, and nothing is reported.
    ///
    /// A part that is of no known variant of a union stays as it came. A value that takes too many steps stays unchanged
    /// from where they ran out.
    pub fn clean(&self, value: Value) -> Value {
        self.cleaned(value).value
    }

    /// Like [`clean`](Self::clean), with the reason if it was not completed.
    pub(crate) fn cleaned(&self, value: Value) -> Repaired {
        self.repaired(value, Measure::Schema, &[(Mode::Clean, Strip::All)])
    }

    /// The kinds of value that might conform, as a person would list them; `None` if a value's kind is among them.
    pub(crate) fn kinds_instead_of(&self, value: &Value) -> Option<String> {
        let types = Checker::new(&self.definitions).types(self.root(), 0);
        (!types.admits(value)).then(|| types.describe())
    }

    /// Removes undeclared properties, fills in defaults, and then repairs the rest as TypeBox's `Value.Cast` does.
    ///
    /// Under an integer schema `1.0` becomes `1`, which is the same number and no repair.
    pub fn normalise(&self, value: Value) -> (Value, Vec<Repair>) {
        self.normalised(value, Measure::Schema).listed()
    }

    /// Like [`normalise`](Self::normalise), with the number of repairs that are not listed.
    pub(crate) fn normalised(&self, value: Value, measure: Measure) -> Repaired {
        match self.definitions.reading() {
            Reading::Default => self.repaired(value, measure, &[(Mode::Normalise, Strip::All)]),
            // The original repairs whole nodes, so they must be clean first.
            Reading::Compat => self.repaired(value, measure, &[(Mode::Clean, Strip::All), (Mode::Cast, Strip::None)]),
        }
    }
}

/// A repaired value or its text, and its reports.
pub(crate) struct Repaired<V = Value> {
    pub(crate) value: V,
    pub(crate) repairs: Vec<Repair>,
    /// How many repairs there are that are not listed.
    pub(crate) more: usize,
    /// True if the value was not processed to its end, as the first repair says.
    pub(crate) has_ended: bool,
    steps: u64,
    /// The size of the largest part whose size was counted, such as one that defaults filled in and that was left out again.
    largest: u64,
}

impl<V> Repaired<V> {
    /// The value and the list, with a last entry that says how many more there are.
    fn listed(mut self) -> (V, Vec<Repair>) {
        if self.more > 0 {
            let (expected, found) = (report::NO_MORE.to_owned(), format!("{} more", self.more).into());
            self.repairs.push(Repair { pointer: String::new(), expected, found, change: Change::Kept });
        }
        (self.value, self.repairs)
    }
}

/// The result of [`cast`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Cast {
    /// The repaired value. `None` if no value was given, and the schema requires none.
    pub value: Option<Value>,
    /// The repairs, and the faults that were left.
    pub repairs: Vec<Repair>,
}

/// Compiles a schema and casts one value, or none, with it.
///
/// ```
/// use ops_runtime::normalise::{Reading, cast};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
/// let result = cast(&schema, Some(json!({"n": "1", "x": 2})), Reading::Compat);
/// assert_eq!(result.value, Some(json!({"n": 0})));
/// ```
pub fn cast(schema: &Value, value: Option<Value>, reading: Reading) -> Cast {
    let schema = CompiledSchema::new(schema, reading);
    let (value, repairs) = match value {
        Some(value) => {
            let (value, repairs) = schema.cast(value);
            (Some(value), repairs)
        }
        None => schema.cast_absent(),
    };
    Cast { value, repairs }
}
