//! Unions of which a value is one variant, but may be another, or several: which of them keeps most of it.

use serde_json::Value;

use super::object::strip_inside;
use super::union::Depth;
use super::variants::{MAX_TRIALS, lost};
use super::{Fixer, Mode, Strip};
use crate::normalise::equal::weight;
use crate::normalise::node::{At, Kind, Node, Union};
use crate::normalise::path::Path;
use crate::normalise::tagged::Tagged;

impl<'a> Fixer<'_, 'a> {
    /// True if variants that an object conforms to would remove what another declares, which it may be with a fault.
    pub(super) fn may_be_another(
        &self,
        at: At<'a>,
        union: &'a Union,
        conforming: &[&'a Node],
        value: &Value,
        depth: u32,
    ) -> bool {
        let (Some(first), Value::Object(map)) = (conforming.first(), value) else {
            return false;
        };
        let removes = || self.undeclared(at.to(first), value, false, Depth::new(depth)) > 0;
        if self.compat() || self.trials >= MAX_TRIALS || !removes() {
            return false;
        }
        let declares = |node: &'a Node, name: &str| self.may_declare(at.to(node), name, 0);
        let is_faulty = |node: &'a Node| !self.checker.check(at.to(node), value, depth + 1);
        let removed = map.keys().filter(|name| !conforming.iter().any(|node| declares(node, name)));
        let removed: Vec<&String> = removed.collect();
        let mut others = union.variants.iter().filter(|node| removed.iter().any(|name| declares(node, name)));
        others.any(is_faulty)
    }

    /// True if variants declare nothing of an object, and allow nothing else.
    pub(super) fn keeps_nothing(&self, at: At<'a>, variants: &[&'a Node], value: &Value) -> bool {
        let Some(map) = value.as_object().filter(|map| !map.is_empty()) else { return false };
        let keeps_nothing = |node: &'a Node| {
            super::closes(self.checker, at.to(node), 0)
                && !map.keys().any(|name| self.may_declare(at.to(node), name, 0))
        };
        variants.iter().all(|node| keeps_nothing(node))
    }

    /// True if a variant keeps nothing of an object, of which another declares something.
    pub(super) fn is_rather_another(&self, at: At<'a>, able: &[&'a Node], node: &'a Node, value: &Value) -> bool {
        let declares = |other: &'a Node| {
            value.as_object().is_some_and(|map| map.keys().any(|name| self.may_declare(at.to(other), name, 0)))
        };
        self.keeps_nothing(at, &[node], value) && able.iter().any(|other| declares(other))
    }

    /// Converts an object that fits some variants of an `anyOf` so that it fits others, too, if these declare properties that
    /// would be removed otherwise. True if it was tried, so that the parts of the object are counted.
    pub(super) fn convert_as_others(
        &mut self,
        at: At<'a>,
        union: &'a Union,
        value: &mut Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        if self.mode != Mode::Repair || self.compat() || self.trials >= MAX_TRIALS || !value.is_object() {
            return false;
        }
        let all = self.found(|fixer| fixer.all_conforming(at, union, value, depth)).unwrap_or_default();
        let removes = |node: &&'a Node| self.undeclared(at.to(node), value, false, Depth::new(depth)) > 0;
        if all.is_empty() || all.len() == union.variants.len() || !all.iter().all(removes) {
            return false;
        }
        let mut is_counted = false;
        // They are in the order of the variants.
        let mut among = all.iter().peekable();
        let mut is_among = |node: &Node| among.next_if(|other| std::ptr::eq(**other, node)).is_some();
        for node in union.variants.iter().filter(|node| !is_among(node)) {
            let declares = |node: &'a Node, name: &String| self.may_declare(at.to(node), name, 0);
            let is_lost = |name: &String| {
                // Another member of an intersection may declare it.
                let stays = || matches!(strip_inside(strip, name, self), Strip::None);
                declares(node, name) && !all.iter().any(|other| declares(other, name)) && !stays()
            };
            if !value.as_object().is_some_and(|map| map.keys().any(is_lost)) {
                continue;
            }
            if !std::mem::replace(&mut is_counted, true) && !self.is_again {
                self.checker.budget.grow(weight(value) - 1);
            }
            let trial = self.trials(at, &[node], value, path, Strip::None, depth).pop();
            let still = |value: &Value| all.iter().all(|other| self.checker.check(at.to(other), value, depth + 1));
            if let Some(trial) = trial.filter(|trial| trial.faults == 0 && still(&trial.value)) {
                self.adopt(at, trial, value, path, Strip::None, depth);
            }
        }
        is_counted
    }

    /// Fixes a value as the one of several variants, to which it conforms, that keeps most of what lies inside it.
    #[expect(clippy::too_many_arguments, reason = "what the caller knows of the value")]
    pub(super) fn fix_as_likeliest(
        &mut self,
        at: At<'a>,
        union: &'a Union,
        variants: &[&'a Node],
        value: &mut Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> Option<bool> {
        let first = variants.first().copied()?;
        if self.mode == Mode::Clean
            && self.keeps_nothing(at, variants, value)
            && self.may_be_another(at, union, variants, value, depth)
        {
            return Some(true);
        }
        if let [node] = variants {
            return Some(self.fix_as(at, node, value, path, strip, depth));
        }
        if !self.is_again {
            self.checker.budget.grow(weight(value) - 1);
        }
        let trials = self.within(Mode::Clean, |fixer| fixer.trials(at, variants, value, path, strip, depth));
        let least = trials.iter().enumerate().min_by_key(|(_, trial)| lost(value, &trial.value));
        let least = least.filter(|_| trials.len() == variants.len()).and_then(|(index, _)| variants.get(index));
        let node = least.copied().unwrap_or(first);
        Some(self.again(|fixer| fixer.fix_as(at, node, value, path, strip, depth)))
    }

    /// Fixes a value as one variant of a union. The discriminator's property, filled in or rewritten, must not make it
    /// another.
    pub(super) fn fix_as(
        &mut self,
        at: At<'a>,
        node: &'a Node,
        value: &mut Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        let union = match &at.node.kind {
            Kind::Union(union) if union.discriminator.is_some() && value.is_object() => union,
            _ => return self.fix(at.to(node), value, path, strip, depth + 1),
        };
        let Some(tag) = self.checker.shape(at, union).declared.as_ref().filter(|_| !self.compat()) else {
            return self.fix(at.to(node), value, path, strip, depth + 1);
        };
        let had_tag = value.get(&*tag.property).is_some_and(|tag| !tag.is_null());
        let fits = self.fix(at.to(node), value, path, strip, depth + 1);
        let is_another = match self.checker.tagged(at, union, value) {
            Tagged::Variant(named) | Tagged::Default(named) => !std::ptr::eq(named, node),
            Tagged::Unknown | Tagged::Undescribed(_) | Tagged::No => false,
        };
        if !is_another {
            return fits;
        }
        if let Value::Object(map) = value
            && !had_tag
        {
            map.retain(|name, _| **name != *tag.property);
            if !fits || self.checker.check(at, value, depth) {
                return fits;
            }
        }
        self.throws += 1;
        self.tell_tag(tag, value, path)
    }
}
