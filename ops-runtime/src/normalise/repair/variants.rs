//! Unions and intersections if nothing may be made up: finds the variant that a faulty value is meant to be.

use serde_json::Value;

use super::told::Counts;
use super::{Fixer, Strip, kind};
use crate::normalise::cut::{MAX_NAME, cut};
use crate::normalise::equal::{copy, discard, weight};
use crate::normalise::findings::{Change, Repair};
use crate::normalise::node::{At, Intersect, Node, Tag, Types, Union};
use crate::normalise::path::Path;

/// How many unions may be tried inside each other: each multiplies the work by its variants.
const MAX_TRIALS: u32 = 3;

/// The result of treating a value as one variant.
struct Trial {
    value: Value,
    repairs: Vec<Repair>,
    counts: Counts,
    score: u32,
    faults: usize,
}

impl<'a> Fixer<'_, 'a> {
    /// Repairs a value that conforms to no variant: as the variant that it conforms to after a repair, or as the one
    /// that it is clearly closest to. If neither is clear, nothing changes.
    pub(super) fn try_variants(
        &mut self,
        at: At<'a>,
        union: &'a Union,
        value: &mut Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        let types = Types::of(value).and(union.types);
        let able: Vec<&'a Node> =
            union.variants.iter().filter(|node| self.checker.types(at.to(node), 0).meets(types)).collect();
        if able.is_empty() {
            return self.convert(at, value, path, strip, depth);
        }
        if !self.is_again {
            // A trial works on a copy, whose parts are not counted.
            self.checker.budget.grow(weight(value));
        }
        let mut trials = Vec::new();
        if self.trials < MAX_TRIALS {
            self.trials += 1;
            for node in &able {
                trials.extend(self.trial(at.to(node), value, path, strip, depth));
            }
            self.trials -= 1;
        }
        let faultless = trials.iter().filter(|trial| trial.faults == 0).map(|trial| trial.counts.converted).min();
        let chosen = match faultless {
            Some(least) => trials.iter().position(|trial| trial.faults == 0 && trial.counts.converted == least),
            None => self.nearest(at, &able, &trials, value),
        };
        match chosen {
            Some(chosen) => {
                let trial = trials.swap_remove(chosen);
                discard(std::mem::replace(value, trial.value));
                self.adopt(trial.repairs, trial.counts, path);
                trial.faults == 0
            }
            None => {
                let expected = self.checker.expectation(at, Some(value));
                self.keep(path, &expected, Some(value))
            }
        }
    }

    /// Repairs a copy of a value as one variant; its reports are taken back.
    fn trial(&mut self, at: At<'a>, value: &Value, path: &Path<'_>, strip: Strip<'a>, depth: u32) -> Option<Trial> {
        if !self.goes_on() || !self.checker.budget.spend(weight(value) as u64 / 4) {
            return None;
        }
        let mut copied = copy(value)?;
        let (mark, throws) = (self.mark(), self.throws);
        let fits = self.again(|fixer| fixer.fix(at, &mut copied, path, strip, depth + 1));
        let counts = self.repairs.mark().since(mark.repairs);
        let repairs = self.repairs.take_since(mark.repairs);
        self.rollback(mark);
        self.throws = throws;
        let faults = counts.kept.max(usize::from(!fits));
        Some(Trial { value: copied, score: self.score(at, value, value, depth, 0), repairs, counts, faults })
    }

    /// The variant with most in common with the value, unless another declares a property that it would remove.
    fn nearest(&self, at: At<'a>, able: &[&'a Node], trials: &[Trial], value: &Value) -> Option<usize> {
        if let [_] = trials {
            return Some(0);
        }
        let best = trials.iter().map(|trial| trial.score).max().filter(|best| *best > 0)?;
        let mut nearest = trials.iter().enumerate().filter(|(_, trial)| trial.score == best);
        let (chosen, trial) = nearest.next().filter(|_| nearest.next().is_none())?;
        let removed = match (value, &trial.value) {
            (Value::Object(came), Value::Object(left)) => came.keys().filter(|name| !left.contains_key(*name)),
            _ => return Some(chosen),
        };
        let others: Vec<&&Node> = able.iter().enumerate().filter(|(i, _)| *i != chosen).map(|(_, node)| node).collect();
        let mut removed = removed;
        let loses = removed.any(|name| others.iter().any(|node| self.may_declare(at.to(node), name, 0)));
        (!loses).then_some(chosen)
    }

    /// Takes over the reports of a trial.
    fn adopt(&mut self, mut repairs: Vec<Repair>, mut counts: Counts, path: &Path<'_>) {
        // The places of a trial were taken back; reported again, they count once.
        repairs.retain(|repair| {
            let is_new = repair.change != Change::Removed
                || self.told.as_mut().is_none_or(|told| told.note(path, &repair.pointer));
            counts.all -= usize::from(!is_new).min(counts.all);
            is_new
        });
        self.repairs.adopt(repairs, counts);
    }

    /// A value that names an unknown variant stays unchanged: its properties may be declared there.
    pub(super) fn unknown_tag(&mut self, at: At<'a>, union: &'a Union, value: &Value, path: &Path<'_>) -> bool {
        let tag: Option<&Tag> = self.checker.shape(at, union).tag.as_ref();
        let Some((tag, map)) = tag.zip(value.as_object()) else { return self.keep(path, "a variant", Some(value)) };
        let known = tag.variants.iter().take(8).map(|(value, _)| format!("'{}'", cut(value, MAX_NAME)));
        let known: Vec<String> = known.collect();
        let more = if tag.variants.len() > known.len() { ", .." } else { "" };
        let expected = format!("one of {}{more}", known.join(", "));
        self.throws += 1;
        self.remain(&path.key(&tag.property), expected, kind(map.get(&*tag.property)))
    }

    /// Each member repairs the parts that it declares; equal reports of several are reported once.
    pub(super) fn repair_members(
        &mut self,
        at: At<'a>,
        all: &'a Intersect,
        value: &mut Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        let conforms = self.found(|fixer| fixer.checker.check(at, value, depth));
        let is_scalar = !value.is_array() && !value.is_object();
        let received = if conforms || is_scalar { copy(value) } else { None };
        let mark = self.mark();
        if let Strip::All = strip {
            self.strip_members(at, value, path, conforms, depth);
        }
        self.members(at, all, value, path, strip, depth);
        self.repairs.tell_once(mark.repairs);
        let repaired = self.found(|fixer| fixer.checker.check(at, value, depth));
        match received {
            // A member may forbid the changes of another: then the value stays unchanged.
            Some(received) if !repaired && (conforms || !self.is_settled(at, all, value, path, strip, depth)) => {
                discard(std::mem::replace(value, received));
                self.rollback(mark);
                conforms || {
                    let expected = self.checker.expectation(at, Some(value));
                    self.keep(path, &expected, Some(value))
                }
            }
            _ if repaired => {
                // A fault for one member was repaired by another.
                self.repairs.forgive(mark.repairs);
                true
            }
            _ => {
                if self.repairs.mark().since(mark.repairs).kept == 0 {
                    let expected = self.checker.expectation(at, Some(value));
                    self.keep(path, &expected, Some(value));
                }
                false
            }
        }
    }

    /// True if another pass of the intersection's members leaves a scalar as they made it.
    fn is_settled(
        &mut self,
        at: At<'a>,
        all: &'a Intersect,
        value: &Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        let Some(mut again) = copy(value) else { return false };
        let mark = self.mark();
        self.again(|fixer| fixer.members(at, all, &mut again, path, strip, depth));
        let converted = self.repairs.mark().since(mark.repairs).converted;
        self.rollback(mark);
        converted == 0
    }
}
