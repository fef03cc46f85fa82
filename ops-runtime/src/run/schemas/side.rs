//! One compiled schema of an operation, by our own reading and by the standard.

use std::sync::OnceLock;

use serde_json::Value;

use super::demand::{self, Given};
use super::{canonical, closed, constraints};
use crate::normalise::{self, CompiledSchema, Problem, Validator, Violations};
use crate::{CallError, Definitions, Schema};

/// One schema of an operation.
pub(super) struct Side {
    pub(super) schema: Schema,
    /// The keyword of properties that only the other side sets.
    pub(super) other_side: &'static str,
    /// Where such properties may be.
    pub(super) given: Given,
    pub(super) definitions: Definitions,
    pub(super) shared: normalise::CompiledDefinitions,
    compiled: OnceLock<Result<Option<CompiledSchema>, String>>,
    standard: OnceLock<Standard>,
    read_whole: OnceLock<bool>,
}

impl Side {
    pub(super) fn new(
        schema: Schema,
        (other_side, given): (&'static str, Given),
        definitions: Definitions,
        shared: normalise::CompiledDefinitions,
    ) -> Self {
        let (compiled, standard, read_whole) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { schema, other_side, given, definitions, shared, compiled, standard, read_whole }
    }

    /// The compiled schema; `None` if every value is valid.
    pub(super) fn compiled(&self) -> Result<Option<&CompiledSchema>, CallError> {
        let compiled = self.compiled.get_or_init(|| {
            if self.schema.is_any() {
                return Ok(None);
            }
            let schema = self.schema.to_value().map_err(|error| error.to_string())?;
            Ok(Some(CompiledSchema::with_definitions(&schema, &self.shared)))
        });
        match compiled {
            Ok(schema) => Ok(schema.as_ref()),
            Err(error) => Err(CallError::execution(format!("a schema of the operation is not JSON: {error}"))),
        }
    }

    /// True if our own reading checks the whole schema, as far as it was compiled.
    pub(super) fn is_read_whole(&self) -> bool {
        *self.read_whole.get_or_init(|| !constraints::is_beyond_our_reading(&self.schema, &self.definitions))
            && !self.compiled().ok().flatten().is_some_and(CompiledSchema::is_cut)
    }

    /// The violations that our own reading finds.
    pub(super) fn own_violations(&self, value: &Value) -> Result<Violations, CallError> {
        Ok(self.compiled()?.map(|schema| schema.report(value)).unwrap_or_default())
    }

    /// True if a value conforms to the standard; `false` decides nothing.
    #[inline]
    pub(super) fn passes_plainly(&self, value: &Value) -> bool {
        match self.standard.get_or_init(|| self.standard()) {
            Standard::Any => true,
            Standard::Checked(validator) => validator.passes_plainly(value),
            Standard::Foreign => false,
        }
    }

    /// The violations of the standard, keyword by keyword.
    pub(super) fn violations(&self, value: &Value) -> Result<Violations, CallError> {
        match self.standard.get_or_init(|| self.standard()) {
            Standard::Any => Ok(Violations::default()),
            Standard::Checked(validator) => Ok(validator.report(value)),
            Standard::Foreign => self.own_violations(value),
        }
    }

    /// The violations of a value; empty if it conforms.
    pub(super) fn faults(&self, value: &Value) -> Result<Violations, CallError> {
        if self.passes_plainly(value) { Ok(Violations::default()) } else { self.violations(value) }
    }

    /// The parts of the schema by which [`violations`](Self::violations) does not check values.
    pub(super) fn problems(&self) -> &[Problem] {
        match self.standard.get() {
            Some(Standard::Checked(validator)) => validator.problems(),
            Some(Standard::Foreign) => self.compiled().ok().flatten().map_or(&[][..], CompiledSchema::problems),
            Some(Standard::Any) | None => &[],
        }
    }

    fn standard(&self) -> Standard {
        if self.schema.is_any() {
            return Standard::Any;
        }
        let Ok(mut schema) = self.schema.self_contained(&self.definitions) else { return Standard::Foreign };
        demand::demand_less(&mut schema, self.other_side, self.given);
        closed::open_parts(&mut schema);
        let schema = canonical::canonical(schema);
        // Properties that only responses have are removed from inputs.
        let is_input = self.other_side == "readOnly";
        let validator = if is_input { Validator::of_inputs(&schema) } else { Validator::new(&schema) };
        if validator.leads_nowhere() { Standard::Foreign } else { Standard::Checked(validator) }
    }
}

/// A schema compiled by the standard.
enum Standard {
    /// Every value conforms.
    Any,
    Checked(Validator),
    /// Its references, of another dialect, can be resolved only by our own reading.
    Foreign,
}
