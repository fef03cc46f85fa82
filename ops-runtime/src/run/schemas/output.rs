//! Brings an output into the shape of its schema, under a policy.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use super::{Schemas, constraints, expectation, warnings};
use crate::normalise::{self, Change, CompiledSchema, MAX_TOLD, Measure, NO_MORE, Repair, Repaired, kind};
use crate::{CallError, OutputPolicy, Warning};

/// An output in the shape of its schema.
pub(crate) struct Shaped {
    pub(crate) value: Value,
    pub(crate) told: Vec<Told>,
    /// Why it is a different response than the schema describes. Boxed, since it is rare and the result is moved often.
    pub(crate) foreign: Option<Box<Warning>>,
    /// True if the check ended early, as the first entry reports.
    pub(crate) has_ended: bool,
}

impl Shaped {
    /// An output without findings.
    fn as_it_is(value: Value) -> Self {
        Self { value, told: Vec::new(), foreign: None, has_ended: false }
    }

    /// Removes all findings, for a `null` that stands for no data.
    pub(crate) fn of_nothing(&mut self) {
        let warnings = self.told.iter_mut().map(|told| &mut told.warning).chain(self.foreign.as_deref_mut());
        for warning in warnings.filter(|warning| warning.pointer.is_empty() && warning.found == "null") {
            warning.found = "nothing".into();
        }
    }
}

/// The expectation for an object that has nothing in common with its schema.
pub(crate) const NOTHING_DECLARED: &str = "an object with properties of the schema";

/// What was found instead.
pub(crate) const NONE_OF_THEM: &str = "an object with none of them";

/// A difference, and what was done about it.
pub(crate) struct Told {
    pub(crate) warning: Warning,
    pub(crate) change: Change,
    /// How many differences it stands for.
    pub(crate) stands_for: usize,
}

impl Told {
    /// A part that stays unrepaired.
    pub(crate) fn kept(warning: Warning) -> Self {
        Self { warning, change: Change::Kept, stands_for: 1 }
    }

    /// Differences that are not listed.
    pub(super) fn more(count: usize) -> Option<Self> {
        let told = || Self { stands_for: count, ..Self::kept(Warning::new("", NO_MORE, format!("{count} more"))) };
        (count > 0).then(told)
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.change == Change::Kept
    }
}

impl From<Repair> for Told {
    fn from(repair: Repair) -> Self {
        let warning = Warning::new(repair.pointer, repair.expected, repair.found);
        Self { warning, change: repair.change, stands_for: 1 }
    }
}

/// An output that is text, in the shape of its schema.
pub(crate) struct Mended {
    /// The text; `None` if it is unchanged.
    pub(crate) text: Option<String>,
    pub(crate) told: Vec<Told>,
}

fn mended(schema: &CompiledSchema, policy: OutputPolicy, measure: Measure, text: &[u8]) -> Option<Mended> {
    if policy == OutputPolicy::Strict {
        return schema.passes(text).then(|| Mended { text: None, told: Vec::new() });
    }
    let text = std::str::from_utf8(text).ok()?;
    let Repaired { value, repairs, more, .. } = match policy {
        OutputPolicy::Cast => schema.normalised_text(text, measure),
        _ => schema.shaped_text(text, measure),
    }?;
    // Made-up values need not conform. If a type decides, reading them shows it.
    let may_be_wrong = policy == OutputPolicy::Cast && measure == Measure::Schema && !repairs.is_empty();
    if may_be_wrong && !schema.passes(value.as_bytes()) {
        return None;
    }
    let mut told: Vec<_> = repairs.into_iter().map(Told::from).collect();
    told.extend(Told::more(more));
    Some(Mended { text: if let Cow::Owned(text) = value { Some(text) } else { None }, told })
}

impl Schemas {
    /// True if the output's schema constrains only the kind of value, and this is one; `false` decides nothing.
    pub(crate) fn output_is_plainly(&self, output: &Value) -> bool {
        match self.output.compiled() {
            Ok(None) => true,
            // A plain kind refers to no definitions, so later compilation changes nothing.
            Ok(Some(schema)) => {
                schema.is_plainly(output) && *self.plain_output_is_all.get_or_init(|| self.output.is_read_whole())
            }
            Err(_) => false,
        }
    }

    /// Brings an output into the shape of its schema, under the policy, and lists the differences. Under `Strict`, the schema
    /// decides, whatever the measure is.
    pub(crate) fn shape_output(
        &self,
        policy: OutputPolicy,
        measure: Measure,
        output: Value,
    ) -> Result<Shaped, CallError> {
        let Some(schema) = self.output.compiled()? else {
            return Ok(Shaped::as_it_is(output));
        };
        let is_foreign = policy != OutputPolicy::Cast && schema.has_nothing_of(&output, None);
        let nothing = || Some(Box::new(Warning::new("", NOTHING_DECLARED, NONE_OF_THEM)));
        // With a property of a variant that it does not conform to, it may be that variant with an error.
        if is_foreign && (policy == OutputPolicy::Strict || !schema.may_declare_some(&output)) {
            return Ok(Shaped { foreign: nothing(), ..Shaped::as_it_is(output) });
        }
        // What only the standard finds may forbid what a repair changes.
        let came = if self.output.is_read_whole() { None } else { normalise::copy(&output) };
        let repaired = match policy {
            OutputPolicy::Cast => schema.normalised(output, measure),
            OutputPolicy::Repair => schema.shaped(output, measure),
            OutputPolicy::Strict => {
                let told = self.output_mismatches(&output)?;
                if !told.is_empty() {
                    return Ok(Shaped { told, ..Shaped::as_it_is(output) });
                }
                schema.cleaned(output)
            }
        };
        let Repaired { value, repairs, more, has_ended, .. } = repaired;
        if is_foreign && schema.has_nothing_of(&value, None) {
            return Ok(Shaped { foreign: nothing(), ..Shaped::as_it_is(value) });
        }
        if let Some(came) = came
            && !self.output_violations(&value)?.list.is_empty()
            && self.output_violations(&came)?.list.is_empty()
        {
            return Ok(Shaped::as_it_is(came));
        }
        // What the repair read as a whole was checked as well. A type does not ask for more than the repair has read.
        let is_checked = policy == OutputPolicy::Strict
            || measure == Measure::Type
            || policy == OutputPolicy::Repair && self.output.is_read_whole();
        if is_checked && repairs.is_empty() && more == 0 {
            return Ok(Shaped::as_it_is(value));
        }
        let expected = schema.kinds_instead_of(&value).filter(|_| policy == OutputPolicy::Repair);
        let foreign = expected.map(|expected| Box::new(Warning::new("", expected, kind(Some(&value)))));
        let mut told: Vec<_> = repairs.into_iter().map(Told::from).collect();
        if foreign.is_none() && !is_checked && !has_ended {
            self.add_mismatches(&value, &mut told)?;
        }
        let beyond = told.len().saturating_sub(MAX_TOLD);
        told.truncate(MAX_TOLD);
        told.extend(Told::more(more + beyond));
        Ok(Shaped { value, told, foreign, has_ended })
    }

    /// What `Strict` refuses of an output: what does not match its schema, and names of variants that a mapping does not list.
    pub(crate) fn output_refusals(&self, output: &Value) -> Result<Vec<Told>, CallError> {
        let told = self.output_mismatches(output)?;
        let has_mapping = || constraints::has_mapping(&self.output.schema, &self.output.definitions);
        // Only cleaning finds such names, since the schema accepts them.
        if told.is_empty()
            && *self.output_has_mapping.get_or_init(has_mapping)
            && let Some(schema) = self.output.compiled()?
            && let Some(output) = normalise::copy(output)
        {
            let Repaired { repairs, more, has_ended, .. } = schema.cleaned(output);
            // A value that takes too many steps to clean conforms all the same.
            if !has_ended {
                return Ok(repairs.into_iter().map(Told::from).chain(Told::more(more)).collect());
            }
        }
        Ok(told)
    }

    /// Brings an output that is text into the shape of its schema, and makes values only of the parts that need a
    /// change.
    ///
    /// `None` if the value as a whole is required.
    pub(crate) fn mend_output(
        &self,
        policy: OutputPolicy,
        measure: Measure,
        text: &[u8],
    ) -> Result<Option<Mended>, CallError> {
        let Some(schema) = self.output.compiled()?.filter(|_| self.output.is_read_whole()) else { return Ok(None) };
        let mended = mended(schema, policy, measure, text);
        // Definitions are compiled on demand, so only now is it known if all of the schema was read.
        Ok(mended.filter(|_| self.output.is_read_whole()))
    }

    /// Adds what the full check finds and the repair did not, at places without a finding.
    fn add_mismatches(&self, value: &Value, told: &mut Vec<Told>) -> Result<(), CallError> {
        let mut violations = self.output_violations(value)?;
        if violations.list.is_empty() {
            return Ok(());
        }
        // That the check ended early belongs to no place.
        let end = if violations.has_ended { Some(violations.list.remove(0)) } else { None };
        if let Some(end) = end {
            told.insert(0, Told::kept(Warning::new(end.pointer, expectation(&end.message), kind(Some(value)))));
        }
        let mismatches = warnings(violations, value);
        let kept = told.iter().filter(|told| told.is_kept());
        let known: BTreeSet<String> = kept.map(|told| told.warning.pointer.clone()).collect();
        // The repair reports a missing property at its own place, the check at its object's.
        let is_known = |pointer: &str| {
            let inside = format!("{pointer}/");
            known.contains(pointer)
                || known.range(inside.clone()..).next().is_some_and(|next| next.starts_with(&inside))
        };
        told.extend(mismatches.into_iter().filter(|new| new.stands_for == 1 && !is_known(&new.warning.pointer)));
        Ok(())
    }

    /// True if a response may be read into the output's type without having anything in common with it.
    ///
    /// The schema is compiled only if the type can be read from `{}`, which `takes_anything` tells.
    pub(crate) fn output_may_be_foreign(&self, takes_anything: impl FnOnce() -> bool) -> bool {
        *self.may_be_foreign.get_or_init(|| {
            takes_anything() && self.output.compiled().ok().flatten().is_some_and(CompiledSchema::may_have_nothing_of)
        })
    }

    /// True if an output is an object with nothing in common with its schema, or with the selected variant of it.
    pub(crate) fn output_has_nothing_of(&self, output: &Value, meant: Option<u16>) -> bool {
        self.output.compiled().ok().flatten().is_some_and(|schema| schema.has_nothing_of(output, meant))
    }

    /// True if the output's schema is a union.
    pub(crate) fn output_is_union(&self) -> bool {
        self.output.compiled().ok().flatten().is_some_and(CompiledSchema::is_union)
    }

    /// True if the output's schema may declare a property.
    pub(crate) fn output_declares(&self, name: &str) -> bool {
        self.output.compiled().ok().flatten().is_none_or(|schema| schema.may_declare(name))
    }
}
