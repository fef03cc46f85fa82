//! The compiled schemas of a registered operation, made on first use.

mod canonical;
mod closed;
mod constraints;
mod content;
mod demand;
#[cfg(feature = "gateway")]
mod files;
mod output;
mod parts;
mod read_only;
mod side;

use std::borrow::Cow;
use std::sync::{Mutex, Once, OnceLock};

use serde_json::{Map, Value};

use self::constraints::Beyond;
use self::content::Contents;
use self::demand::Given;
use self::read_only::ReadOnly;
use self::side::Side;
use crate::model::error::violation;
use crate::model::lock::lock;
use crate::model::nearest::{nearest, question};
use crate::model::text::readable;
use crate::normalise::{self, Change, Measure, Reading, UNDECLARED, Violation, Violations, kind};
use crate::pointer::unescaped;
use crate::{CallError, Definitions, OperationSpec, Schema, Warning};

pub(crate) use demand::published_input;
#[cfg(feature = "gateway")]
pub(crate) use files::WhichFiles;
pub(crate) use output::{Mended, NONE_OF_THEM, NOTHING_DECLARED, Shaped, Told};

/// How many names are suggested for one that is not declared.
const PROPOSED: usize = 3;

/// Limits of the violations in the message of an error, and in its details.
const TOLD: usize = 5;
const MAX_LISTED: usize = 100;

/// The compiled definitions of each API in a registry, shared by all operations of the API.
#[derive(Default)]
pub(crate) struct DefinitionCache(Mutex<Vec<(Definitions, normalise::CompiledDefinitions)>>);

impl DefinitionCache {
    fn get(&self, definitions: &Definitions) -> normalise::CompiledDefinitions {
        let mut cache = lock(&self.0);
        if let Some((_, compiled)) = cache.iter().find(|(table, _)| table.same_table(definitions)) {
            return compiled.clone();
        }
        let source = definitions.clone();
        let schema = move |name: &str| Some(source.get(name)?.schema.to_value().ok()?.into_owned());
        let compiled = normalise::CompiledDefinitions::new(Reading::Default, schema);
        // Those of removed operations are dropped.
        cache.retain(|(_, compiled)| compiled.is_shared());
        cache.push((definitions.clone(), compiled.clone()));
        compiled
    }
}

/// The input and output schema of an operation.
pub(crate) struct Schemas {
    input: Side,
    output: Side,
    /// True if an input can name one of several content types that have schemas of their own.
    may_name_content: bool,
    /// The schema of each body, in the order of the binding. `None` for one that has no check of its own.
    contents: Contents,
    /// Done when the log has what is not checked of inputs.
    has_told: Once,
    beyond: OnceLock<Beyond>,
    may_be_foreign: OnceLock<bool>,
    /// True if our own reading checks all of an output's schema that constrains only the kind of value.
    plain_output_is_all: OnceLock<bool>,
    /// True if a discriminator in an output's schema has a mapping.
    output_has_mapping: OnceLock<bool>,
    read_only: OnceLock<Option<ReadOnly>>,
    #[cfg(feature = "gateway")]
    files: OnceLock<Option<files::Files>>,
}

impl Schemas {
    pub(crate) fn new(spec: &OperationSpec, cache: &DefinitionCache) -> Self {
        let definitions = cache.get(&spec.definitions);
        let side = |schema: &Schema, other_side, given| {
            Side::new(schema.clone(), (other_side, given), spec.definitions.clone(), definitions.clone())
        };
        let input = side(&spec.input, "readOnly", Given::of_input(spec));
        let output = side(&spec.output, "writeOnly", Given::Anywhere);
        Self {
            input,
            output,
            may_name_content: content::may_be_named(spec),
            contents: Contents::default(),
            has_told: Once::new(),
            beyond: OnceLock::new(),
            may_be_foreign: OnceLock::new(),
            plain_output_is_all: OnceLock::new(),
            output_has_mapping: OnceLock::new(),
            read_only: OnceLock::new(),
            #[cfg(feature = "gateway")]
            files: OnceLock::new(),
        }
    }

    /// Where the input may contain files; `None` if nowhere.
    #[cfg(feature = "gateway")]
    pub(crate) fn files(&self, spec: &OperationSpec) -> Option<&files::Files> {
        self.files.get_or_init(|| files::Files::of(spec)).as_ref()
    }

    /// True if the input's schema has constraints that a value of its Rust type may break.
    #[inline]
    pub(crate) fn input_is_constrained(&self) -> bool {
        self.may_name_content || matches!(self.beyond(), Beyond::Constraints | Beyond::Unlisted)
    }

    /// True if JSON that can be read into the input's type also matches its schema, apart from what the type can hold and
    /// the schema does not list.
    #[inline]
    pub(crate) fn input_is_its_type(&self) -> bool {
        !self.may_name_content && matches!(self.beyond(), Beyond::Nothing | Beyond::Unlisted)
    }

    #[inline]
    fn beyond(&self) -> Beyond {
        *self.beyond.get_or_init(|| constraints::beyond(&self.input.schema, &self.input.definitions))
    }

    /// Removes properties that only the server sets from the request body.
    pub(crate) fn remove_read_only(&self, spec: &OperationSpec, input: &mut Value) {
        if let Some(read_only) = self.read_only.get_or_init(|| ReadOnly::of(spec))
            && !read_only.remove(input)
        {
            tracing::warn!(
                operation = spec.id.as_ref(),
                "an input has more names than the patterns of `patternProperties` can be searched in: `readOnly` members may be sent. Use fewer or simpler patterns, or send a smaller input"
            );
        }
    }

    /// Checks an input against its schema.
    #[inline]
    pub(crate) fn check_input(&self, spec: &OperationSpec, input: &Value) -> Result<(), CallError> {
        if self.passes_plainly(input) { Ok(()) } else { self.check_input_closely(spec, input) }
    }

    /// True if an input certainly conforms. If false, it may conform or not.
    #[inline]
    fn passes_plainly(&self, input: &Value) -> bool {
        !self.may_name_content && self.input.passes_plainly(input)
    }

    /// The violations of the input's schema, and of the schema of the content type that the input names.
    fn input_violations(&self, spec: &OperationSpec, input: &Value) -> Result<Violations, CallError> {
        if !self.may_name_content {
            return self.input.violations(input);
        }
        let mut found = self.input.faults(input)?;
        self.contents.check(&self.input, spec, input, &mut found)?;
        Ok(found)
    }

    #[inline(never)]
    fn check_input_closely(&self, spec: &OperationSpec, input: &Value) -> Result<(), CallError> {
        let Violations { mut list, more, .. } = self.input_violations(spec, input)?;
        self.has_told.call_once(|| self.tell_problems(spec));
        if list.is_empty() {
            return Ok(());
        }
        list.iter_mut().take(TOLD).for_each(|violation| self.propose(violation));
        let told = format!("the input of `{}` is invalid: {}", spec.id, told(&list, more));
        let said = list.iter().take(MAX_LISTED);
        let mut said: Vec<_> = said.map(|v| violation(&v.pointer, &message(v))).collect();
        let more = more + list.len() - said.len();
        if more > 0 {
            said.push(violation("", &format!("and {more} more")));
        }
        Err(CallError::invalid(told, said))
    }

    /// Adds the names that may be meant to the violation of a property that is not declared.
    fn propose(&self, violation: &mut Violation) {
        let place = violation.pointer.rsplit_once('/').filter(|_| violation.message == "Unexpected property");
        if let (Some((object, name)), Ok(Some(schema))) = (place, self.input.compiled()) {
            let meant = question(&nearest(&unescaped(name), schema.names_in(object), PROPOSED));
            violation.message.push_str(&meant);
        }
    }

    /// Logs what of the input's schema is not checked: its author may rely on a pattern that keeps inputs out.
    fn tell_problems(&self, spec: &OperationSpec) {
        let problems = self.input.problems();
        for problem in problems.iter().take(TOLD) {
            let unlisted = problems.len().saturating_sub(TOLD);
            tracing::warn!(
                operation = spec.id.as_ref(),
                unlisted,
                "a part of the input's schema is not checked: {}. Write that part in another way, or check it in the operation",
                readable(&problem.to_string(), 400)
            );
        }
    }

    /// True if an input matches its schema.
    #[cfg(feature = "gateway")]
    pub(crate) fn fits_input(&self, spec: &OperationSpec, input: &Value) -> bool {
        self.passes_plainly(input) || self.input_violations(spec, input).is_ok_and(|found| found.list.is_empty())
    }

    /// Refuses members of an input that its schema does not declare, if it allows no others.
    pub(crate) fn check_members(&self, spec: &OperationSpec, input: &Value) -> Result<(), CallError> {
        let Some(schema) = self.input.compiled()? else { return Ok(()) };
        // Most inputs are flat, and need no copy.
        let is_flat = |value: &Value| !value.is_object() && !value.is_array();
        if input
            .as_object()
            .is_some_and(|map| map.iter().all(|(name, value)| is_flat(value) && schema.may_declare(name)))
        {
            return Ok(());
        }
        let removed = schema.shaped(input.clone(), Measure::Schema).repairs.into_iter();
        let unknown = removed.filter(|repair| repair.change == Change::Removed && repair.expected == UNDECLARED);
        let unknown: Vec<String> = unknown.map(|repair| repair.pointer).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let declared = spec.input_schema().ok();
        let declared = declared.as_ref().and_then(|schema| schema.get("properties")?.as_object());
        let known: Vec<&str> = declared.into_iter().flat_map(Map::keys).map(String::as_str).collect();
        Err(undeclared(&spec.id, &unknown, &known))
    }

    /// The parts of an output that do not match its schema.
    pub(crate) fn output_mismatches(&self, output: &Value) -> Result<Vec<Told>, CallError> {
        Ok(warnings(self.output_violations(output)?, output))
    }

    fn output_violations(&self, output: &Value) -> Result<Violations, CallError> {
        if self.output.is_read_whole() {
            let own = self.output.own_violations(output)?;
            // Definitions are compiled on demand, so only now is it known if all of them were read.
            if !own.list.is_empty() || self.output.is_read_whole() {
                return Ok(own);
            }
        }
        self.output.violations(output)
    }
}

/// Violations of a value as warnings.
fn warnings(violations: Violations, value: &Value) -> Vec<Told> {
    let Violations { list, more, .. } = violations;
    let warning = |Violation { pointer, message, .. }: Violation| {
        let found = kind(value.pointer(&pointer));
        Told::kept(Warning::new(pointer, expectation(&message), found))
    };
    let told = list.into_iter().map(warning);
    told.chain(Told::more(more)).collect()
}

/// What a violation expects, in the words of warnings. The normaliser's text is TypeBox's.
fn expectation(message: &str) -> Cow<'_, str> {
    if let Some(expected) = message.strip_prefix("Expected ") {
        return Cow::Borrowed(expected);
    }
    match message.strip_prefix("Unexpected ") {
        Some(unexpected) => Cow::Owned(format!("no such {unexpected}")),
        None => Cow::Borrowed(if message == "Never" { "nothing" } else { message }),
    }
}

/// The error of members that the input of an operation may not have, by their pointers; `known` are the allowed ones.
pub(crate) fn undeclared(id: &str, unknown: &[String], known: &[&str]) -> CallError {
    let told = |pointer: &String| {
        let name = pointer.strip_prefix('/').filter(|name| !name.contains('/')).map(unescaped);
        let meant = |name: &str| question(&nearest(name, known.iter().copied(), PROPOSED));
        let meant = name.as_deref().map_or_else(String::new, meant);
        let shown = readable(name.as_deref().unwrap_or(pointer), 200);
        format!("`{shown}` is not in the input of `{id}`{meant}")
    };
    let message = unknown.iter().take(TOLD).map(told).collect::<Vec<_>>().join("; ");
    let all = unknown.iter().take(MAX_LISTED).map(|pointer| violation(pointer, &told(pointer)));
    CallError::invalid(message, all.collect())
}

/// The text of a violation as in all errors: in lower case. The normaliser's text is TypeBox's.
fn message(violation: &Violation) -> Cow<'_, str> {
    for (upper, lower) in [("Expected ", "expected "), ("Unexpected ", "unexpected ")] {
        if let Some(said) = violation.message.strip_prefix(upper) {
            return Cow::Owned(format!("{lower}{said}"));
        }
    }
    Cow::Borrowed(&violation.message)
}

/// The first violations in a line; more of them are in the details of the error.
fn told(violations: &[Violation], more: usize) -> String {
    let place = |pointer: &str| if pointer.is_empty() { String::new() } else { format!("{pointer}: ") };
    let shown = violations.iter().take(TOLD).map(|v| format!("{}{}", place(&v.pointer), message(v)));
    let mut list: Vec<_> = shown.collect();
    let more = more + violations.len() - list.len();
    if more > 0 {
        list.push(format!("and {more} more"));
    }
    list.join("; ")
}
