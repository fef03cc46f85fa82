//! Unions and intersections if nothing may be made up: finds the variant that a faulty value is meant to be.

use serde_json::Value;

use super::told::Counts;
use super::{Fixer, Measure, Mode, Strip, kind};
use crate::normalise::equal::{copy, discard, weight};
use crate::normalise::findings::{Change, Repair};
use crate::normalise::node::{At, Intersect, Node, Tag, Types, Union};
use crate::normalise::path::Path;

/// How many unions may be tried inside each other: each multiplies the work by its variants.
pub(super) const MAX_TRIALS: u32 = 3;

/// The result of treating a value as one variant.
pub(super) struct Trial<'a> {
    node: &'a Node,
    pub(super) value: Value,
    pub(super) repairs: Vec<Repair>,
    pub(super) counts: Counts,
    /// The places where properties were removed.
    told: Vec<u64>,
    score: u32,
    pub(super) faults: usize,
}

/// How many members of a value are not in what became of it.
pub(super) fn lost(came: &Value, left: &Value) -> usize {
    match (came, left) {
        (Value::Object(came), Value::Object(left)) => {
            came.iter().map(|(name, value)| left.get(name).map_or(1, |left| lost(value, left))).sum()
        }
        (Value::Array(came), Value::Array(left)) => came.iter().zip(left).map(|(came, left)| lost(came, left)).sum(),
        _ => 0,
    }
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
            return self.mode != Mode::Clean && self.convert(at, value, path, strip, depth);
        }
        if !self.is_again {
            // A trial works on a copy, whose parts are not counted. The value itself was counted with what is around it.
            self.checker.budget.grow(weight(value) - 1);
        }
        let mut trials = self.trials(at, &able, value, path, strip, depth);
        while self.checker.budget.is_dry() && self.checker.budget.refill(None) {
            trials = self.trials(at, &able, value, path, strip, depth);
        }
        // Of what was not tried to its end, nothing is known.
        if trials.len() < able.len() || self.checker.budget.is_dry() {
            trials.clear();
        }
        // What one variant does not declare, another may: the one that keeps most is meant.
        let faultless = trials.iter().enumerate().filter(|(_, trial)| trial.faults == 0);
        let chosen = faultless.min_by_key(|(_, trial)| (lost(value, &trial.value), trial.counts.converted));
        let chosen = chosen.map(|(chosen, _)| chosen);
        // A value that is one only because that one asks for nothing is rather another with a fault.
        let is_rather_another = chosen
            .and_then(|chosen| able.get(chosen).copied())
            .is_some_and(|node| self.is_rather_another(at, &able, node, value));
        // Where nothing is repaired, nothing is removed by a guess.
        if self.mode == Mode::Clean && (chosen.is_none() || is_rather_another) {
            if is_rather_another || !self.is_by_type() || self.absent_tag(at, union, value).is_some() {
                return false;
            }
            let nearest = self.nearest(at, &able, &trials, value).and_then(|nearest| able.get(nearest).copied());
            let likely = if nearest.is_some() { nearest.as_slice() } else { able.as_slice() };
            return self.is_accepted_as(at, likely, value, path, strip, depth);
        }
        let chosen = match chosen {
            _ if is_rather_another => None,
            None => self.nearest(at, &able, &trials, value),
            chosen => chosen,
        };
        match chosen {
            Some(chosen) => {
                let trial = trials.swap_remove(chosen);
                let variant = at.to(trial.node);
                let fits = self.adopt(at, trial, value, path, strip, depth);
                // Without the tag, described or not, a type does not know which variant an object is.
                let is_untold = |tag: &&'a Tag| {
                    let property = self.checker.property(variant, &tag.property);
                    self.is_by_type() && property.is_some_and(|property| property.is_undescribed)
                };
                match self.absent_tag(at, union, value).filter(is_untold) {
                    Some(tag) => self.tell_absent(tag, value, path),
                    None => fits,
                }
            }
            None => {
                if let Some(tag) = self.absent_tag(at, union, value) {
                    return self.tell_absent(tag, value, path);
                }
                if !is_rather_another && self.is_accepted_as(at, &able, value, path, strip, depth) {
                    return true;
                }
                let expected = match is_rather_another {
                    true => format!("properties that one of {} schemas declares", union.variants.len()),
                    false => self.checker.expectation(at, Some(value)),
                };
                self.keep(path, &expected, Some(value))
            }
        }
    }

    /// Repairs a value as each of some variants, until the steps run out. The schema decides which variant the value is.
    pub(super) fn trials(
        &mut self,
        at: At<'a>,
        able: &[&'a Node],
        value: &Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> Vec<Trial<'a>> {
        let mut trials = Vec::new();
        if self.trials < MAX_TRIALS {
            self.trials += 1;
            self.by_schema(|fixer| {
                for node in able {
                    trials.extend(fixer.trial(at, node, value, path, strip, depth));
                }
            });
            self.trials -= 1;
        }
        trials
    }

    /// True if a type accepts a value as it is, as one of some variants.
    fn is_accepted_as(
        &mut self,
        at: At<'a>,
        variants: &[&'a Node],
        value: &Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        if !self.is_by_type() || self.trials >= MAX_TRIALS {
            return false;
        }
        self.trials += 1;
        let is_accepted = self.within(Mode::Clean, |fixer| {
            let mut trials = variants.iter().map(|node| fixer.trial(at, node, value, path, strip, depth));
            trials.any(|trial| trial.is_some_and(|trial| trial.faults == 0))
        });
        self.trials -= 1;
        is_accepted
    }

    /// Repairs a copy of a value as one variant; its reports are taken back.
    pub(super) fn trial(
        &mut self,
        at: At<'a>,
        node: &'a Node,
        value: &Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> Option<Trial<'a>> {
        if !self.goes_on() || !self.checker.budget.spend(weight(value) as u64 / 4) {
            return None;
        }
        let mut copied = copy(value)?;
        let (mark, throws) = (self.mark(), self.throws);
        let fits = self.again(|fixer| fixer.fix_as(at, node, &mut copied, path, strip, depth));
        let counts = self.repairs.mark().since(mark.repairs);
        let repairs = self.repairs.take_since(mark.repairs);
        let told = self.told.as_ref().map_or_else(Vec::new, |told| told.since(mark.told));
        self.rollback(mark);
        self.throws = throws;
        let faults = counts.kept.max(usize::from(!fits));
        let score = self.found(|fixer| fixer.score(at.to(node), value, value, depth, 0))?;
        Some(Trial { node, value: copied, repairs, counts, told, score, faults })
    }

    /// The variant with most in common with the value, unless another declares a property that it would remove.
    fn nearest(&self, at: At<'a>, able: &[&'a Node], trials: &[Trial<'a>], value: &Value) -> Option<usize> {
        if let [_] = trials {
            return Some(0);
        }
        let best = trials.iter().map(|trial| trial.score).max().filter(|best| *best > 0)?;
        let mut nearest = trials.iter().enumerate().filter(|(_, trial)| trial.score == best);
        let (chosen, trial) = nearest.next().filter(|_| nearest.next().is_none())?;
        let (Value::Object(came), Value::Object(left)) = (value, &trial.value) else { return Some(chosen) };
        let others: Vec<&&Node> = able.iter().enumerate().filter(|(i, _)| *i != chosen).map(|(_, node)| node).collect();
        let is_less = |name: &str, value: &Value| left.get(name).is_none_or(|left| lost(value, left) > 0);
        let mut less = came.iter().filter(|(name, value)| is_less(name, value));
        let loses = less.any(|(name, _)| others.iter().any(|node| self.may_declare(at.to(node), name, 0)));
        (!loses).then_some(chosen)
    }

    /// Takes over the result of a trial, and its reports. Returns true if the value conforms.
    pub(super) fn adopt(
        &mut self,
        at: At<'a>,
        trial: Trial<'a>,
        value: &mut Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        // The schema has decided which variant it is. The type decides what is wrong with it.
        if self.is_by_type() {
            discard(trial.value);
            return self.again(|fixer| fixer.fix_as(at, trial.node, value, path, strip, depth));
        }
        discard(std::mem::replace(value, trial.value));
        if let Some(told) = &mut self.told {
            told.adopt(trial.told);
        }
        self.repairs.adopt(trial.repairs, trial.counts);
        trial.faults == 0
    }

    /// A value that names an unknown variant stays unchanged: its properties may be declared there.
    pub(super) fn unknown_tag(&mut self, at: At<'a>, union: &'a Union, value: &Value, path: &Path<'_>) -> bool {
        let tag: Option<&Tag> = self.checker.shape(at, union).tag.as_ref();
        self.throws += 1;
        match tag {
            Some(tag) => self.tell_tag(tag, value, path),
            None => self.remain(path, "a variant".to_owned(), kind(Some(value))),
        }
    }

    /// The tag that an object lacks, though all variants that are objects require it.
    fn absent_tag(&self, at: At<'a>, union: &'a Union, value: &Value) -> Option<&'a Tag> {
        // A tag that no variant has was reported before the variants were tried.
        self.checker.wrong_tag(at, union, value).filter(|tag| value.get(&*tag.property).is_none())
    }

    fn tell_absent(&mut self, tag: &Tag, value: &Value, path: &Path<'_>) -> bool {
        self.throws += 1;
        self.tell_tag(tag, value, path)
    }

    /// Reports a tag that no variant has, or that is absent.
    pub(super) fn tell_tag(&mut self, tag: &Tag, value: &Value, path: &Path<'_>) -> bool {
        self.remain(&path.key(&tag.property), tag.expectation(), kind(value.get(&*tag.property)))
    }

    /// Reports a discriminator with a name that no variant has. If a mapping lists the names, the value does not match its
    /// schema, even if it fits a variant. A pass that repairs nothing reports that, too.
    pub(super) fn tell_undescribed(&mut self, union: &'a Union, tag: &Tag, value: &Value, path: &Path<'_>) {
        let lists_names = union.discriminator.as_ref().is_some_and(|discriminator| !discriminator.mapping.is_empty());
        if self.mode != Mode::Clean {
            self.tell_tag(tag, value, path);
        } else if lists_names && self.told.is_none() {
            let (path, found) = (path.key(&tag.property), kind(value.get(&*tag.property)));
            self.repairs.tell(&path, || tag.expectation(), found, Change::Kept);
        }
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
        let conforms = self.found(|fixer| fixer.checker.check(at, value, depth)) == Some(true);
        let is_scalar = !value.is_array() && !value.is_object();
        let received = if conforms || is_scalar { copy(value) } else { None };
        let mark = self.mark();
        if let Strip::All = strip {
            self.strip_members(at, value, path, conforms, depth);
        }
        self.members(at, all, value, path, strip, depth);
        self.repairs.tell_once(mark.repairs);
        let repaired = match self.measure {
            Measure::Schema => self.found(|fixer| fixer.checker.check(at, value, depth)) == Some(true),
            Measure::Type => self.within(Mode::Clean, |fixer| fixer.members(at, all, value, path, strip, depth)),
        };
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
