//! Unions and intersections: which schema is meant, and what to do if none conforms, or not all.

use serde_json::Value;

use super::declared::Declared;
use super::{Fixer, Mode, Strip};
use crate::normalise::check::{MAX_COMBINED, SCHEMAS_PER_STEP};
use crate::normalise::create::{as_object, merge};
use crate::normalise::equal::{copy, discard, equal, weight};
use crate::normalise::node::{At, Intersect, Kind, Node, Types, Union};
use crate::normalise::path::Path;
use crate::normalise::tagged::Tagged;

/// The depth of a value, and the number of combined schemas around it: finding out what a union declares means trying
/// its variants, which may be unions in turn.
#[derive(Clone, Copy)]
pub(super) struct Depth {
    value: u32,
    combined: u32,
}

impl Depth {
    /// Unions weigh more than intersections, because they branch.
    const UNION: u32 = 4;

    pub(super) fn new(value: u32) -> Self {
        Depth { value, combined: 0 }
    }

    /// How deep the value is.
    pub(super) fn value(self) -> u32 {
        self.value
    }

    pub(super) fn in_union(self) -> Self {
        Depth { value: self.value, combined: self.combined + Depth::UNION }
    }

    pub(super) fn in_intersection(self) -> Self {
        Depth { value: self.value, combined: self.combined + 1 }
    }

    pub(super) fn is_too_much(self) -> bool {
        self.combined > 5 * Depth::UNION
    }
}

impl<'a> Fixer<'_, 'a> {
    pub(super) fn union(
        &mut self,
        at: At<'a>,
        union: &'a Union,
        value: &mut Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        if self.mode == Mode::Cast {
            return match self.conforms_or_throws(at, value, depth) {
                Some(true) => true,
                Some(false) => self.cast_union(at, union, value, path, strip, depth),
                None => self.keep(path, "a schema", Some(value)),
            };
        }
        if !union.types.admits(value) {
            return self.misfit(at, value, path, strip, depth);
        }
        let strip = match self.checker.tagged(at, union, value) {
            tagged if self.is_kept_whole(at, union, &tagged, value) => return true,
            Tagged::Variant(node) => return self.fix(at.to(node), value, path, strip, depth + 1),
            Tagged::Unknown if self.mode == Mode::Repair => return self.unknown_tag(at, union, value, path),
            Tagged::Default(node) => return self.fix_as(at, node, value, path, Strip::None, depth),
            Tagged::Undescribed(tag) => {
                self.tell_undescribed(union, tag, value, path);
                Strip::None
            }
            _ => strip,
        };
        let default = self.checker.default_of(at).is_some();
        // If only one variant has the value's type, there is nothing to find out. An object is not replaced by the
        // default because one of its properties is wrong.
        let local =
            !default || matches!(self.mode, Mode::Clean | Mode::Repair) || value.is_object() || value.is_array();
        if let Some(node) = self.only_variant(at, union, value).filter(|_| local) {
            return self.fix_as(at, node, value, path, strip, depth);
        }
        let mut is_counted = false;
        if union.overlaps && (value.is_object() || value.is_array()) {
            is_counted = self.convert_as_others(at, union, value, path, strip, depth);
            let mut fix = |fixer: &mut Self| fixer.fix_as_all(at, union, value, path, strip, depth);
            if let Some(conforms) = if is_counted { self.again(fix) } else { fix(self) } {
                return conforms;
            }
        } else if let Some(likeliest) = self.found(|fixer| fixer.likeliest(at, union, value, Depth::new(depth)))
            && !(self.mode == Mode::Repair && self.may_be_another(at, union, &likeliest, value, depth))
            && let Some(conforms) = self.fix_as_likeliest(at, union, &likeliest, value, path, strip, depth)
        {
            return conforms;
        }
        // A type accepts a scalar of the kind of any variant.
        if self.is_accepted(at, value) {
            return true;
        }
        // The original's repair needs a value that is clean, as far as can be guessed.
        if self.mode == Mode::Repair || self.mode == Mode::Clean && !self.compat() {
            let mut try_them = |fixer: &mut Self| fixer.try_variants(at, union, value, path, strip, depth);
            return if is_counted { self.again(try_them) } else { try_them(self) };
        }
        let node = self.select(at, union, value, depth);
        if self.mode == Mode::Clean {
            return node.is_some_and(|node| self.fix_as(at, node, value, path, strip, depth));
        }
        if default {
            // The default has precedence over a repair, but not over a value that conforms once it is clean.
            let clean = node.is_some_and(|node| {
                self.within(Mode::Clean, |fixer| fixer.fix_as(at, node, value, path, strip, depth))
            });
            return clean || self.replace(at, value, path, depth);
        }
        match node {
            Some(node) => self.fix_as(at, node, value, path, strip, depth),
            None => self.replace(at, value, path, depth),
        }
    }

    /// Fixes a value as all the variants that it is at once; `None` if it is none.
    fn fix_as_all(
        &mut self,
        at: At<'a>,
        union: &'a Union,
        value: &mut Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> Option<bool> {
        let (node, all) = self.found(|fixer| {
            let all = fixer.all_conforming(at, union, value, depth);
            Some((fixer.best(at, all.iter().copied(), value, false, Depth::new(depth))?, all))
        })??;
        if self.keeps_nothing(at, &all, value) && self.may_be_another(at, union, &all, value, depth) {
            match self.mode {
                Mode::Repair => return None,
                Mode::Clean => return Some(true),
                _ => {}
            }
        }
        // Another variant may declare what this one does not. What none declares is removed first, and this one then
        // removes nothing.
        let strip = if let [_] = all.as_slice() {
            strip
        } else {
            let all: Vec<At<'a>> = all.iter().map(|node| at.to(node)).collect();
            self.strip_among(&all, value, path, strip, depth);
            Strip::None
        };
        let mark = self.mark();
        let fits = self.fix_as(at, node, value, path, strip, depth);
        // A name that this variant does not describe is no fault, because the value conforms to another variant as well.
        if self.mode == Mode::Clean && all.len() > 1 {
            self.rollback(mark);
        }
        Some(fits)
    }

    /// True if a value conforms; `None` where the original throws.
    fn conforms_or_throws(&self, at: At<'a>, value: &Value, depth: u32) -> Option<bool> {
        let before = self.checker.gave_up.replace(false);
        let conforms = self.checker.check(at, value, depth);
        let threw = self.checker.gave_up.replace(before) && self.compat();
        (!threw).then_some(conforms)
    }

    /// Repairs a value of a union without a conforming variant, as the original does.
    fn cast_union(
        &mut self,
        at: At<'a>,
        union: &'a Union,
        value: &mut Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        // The default reading may have narrowed it to some types.
        if self.checker.default_of(at).is_some() || !union.types.admits(value) {
            return self.replace(at, value, path, depth);
        }
        let mark = self.repairs.mark().all;
        if let Some(node) = self.select(at, union, value, depth) {
            self.fix(at.to(node), value, path, strip, depth + 1);
        }
        if self.repairs.mark().all == mark {
            let expected = self.checker.expectation(at, Some(value));
            self.keep(path, &expected, Some(value));
        }
        false
    }

    /// The only variant that accepts values of this type, in the default reading.
    fn only_variant(&self, at: At<'a>, union: &'a Union, value: &Value) -> Option<&'a Node> {
        if self.compat() {
            return None;
        }
        // The types of all variants are looked at.
        if !self.checker.budget.spend(union.variants.len() as u64 / 16) && !self.goes_on() {
            return None;
        }
        let mut able = self.of_types(at, union, Types::of(value));
        let node = able.next()?;
        able.next().is_none().then_some(node)
    }

    /// The variants that accept values of some of these types.
    fn of_types(&self, at: At<'a>, union: &'a Union, types: Types) -> impl Iterator<Item = &'a Node> {
        let shape = self.checker.shape(at, union);
        let able = union.variants.iter().zip(&shape.types).filter(move |(_, variant)| variant.meets(types));
        able.map(|(node, _)| node)
    }

    /// The variants of a union, to be looked at one by one.
    fn each(&self, union: &'a Union) -> impl Iterator<Item = &'a Node> {
        let parts = union.variants.chunks(SCHEMAS_PER_STEP);
        parts.take_while(move |_| self.checker.budget.spend(1) || self.goes_on()).flatten()
    }

    /// The variants that a value conforms to; each is checked when it is asked for.
    fn each_conforming(
        &self,
        at: At<'a>,
        union: &'a Union,
        value: &Value,
        depth: u32,
    ) -> impl Iterator<Item = &'a Node> {
        self.each(union).filter(move |node| self.checker.check(at.to(node), value, depth + 1))
    }

    /// All variants that a value conforms to.
    pub(super) fn all_conforming(&self, at: At<'a>, union: &'a Union, value: &Value, depth: u32) -> Vec<&'a Node> {
        self.each_conforming(at, union, value, depth).collect()
    }

    /// The variants that a value conforms to and that declare most of its properties; the first will do if nothing lies
    /// inside these.
    fn likeliest(&self, at: At<'a>, union: &'a Union, value: &Value, depth: Depth) -> Vec<&'a Node> {
        let is_nested = |value: &Value| value.is_object() || value.is_array();
        let holds_parts = match value {
            Value::Object(map) => map.values().any(is_nested),
            Value::Array(items) => items.iter().any(is_nested),
            _ => false,
        };
        if self.compat() || !holds_parts {
            return self.conforming(at, union, value, false, depth).into_iter().collect();
        }
        let (mut likeliest, mut least) = (Vec::new(), usize::MAX);
        for node in self.all_conforming(at, union, value, depth.value) {
            let undeclared = self.undeclared(at.to(node), value, false, depth.in_union());
            if undeclared < least {
                (likeliest, least) = (Vec::new(), undeclared);
            }
            if undeclared == least {
                likeliest.push(node);
            }
        }
        likeliest
    }

    /// The variant that the value conforms to; if there are several, the one that declares most of its properties.
    pub(super) fn conforming(
        &self,
        at: At<'a>,
        union: &'a Union,
        value: &Value,
        among: bool,
        depth: Depth,
    ) -> Option<&'a Node> {
        self.best(at, self.each_conforming(at, union, value, depth.value), value, among, depth)
    }

    /// The variant that declares most properties of a value that conforms to all of these.
    ///
    /// A variant that declares nothing changes nothing, unless it is `among` others that do declare properties.
    fn best(
        &self,
        at: At<'a>,
        variants: impl Iterator<Item = &'a Node>,
        value: &Value,
        among: bool,
        depth: Depth,
    ) -> Option<&'a Node> {
        let mut best: Option<(usize, &'a Node)> = None;
        for node in variants {
            let undeclared = self.undeclared(at.to(node), value, among, depth.in_union());
            if best.is_none_or(|(least, _)| undeclared < least) {
                best = Some((undeclared, node));
            }
            if undeclared == 0 {
                break;
            }
        }
        best.map(|(_, node)| node)
    }

    /// How many properties would be removed from an object of this schema.
    pub(super) fn undeclared(&self, at: At<'a>, value: &Value, among: bool, depth: Depth) -> usize {
        let Value::Object(map) = value else { return 0 };
        let mut declared = Declared::default();
        let known = self.declaring(at, value, &mut declared, depth);
        if !known || !among && !declared.rules().any(|rules| !rules.keeps_undeclared) {
            return 0;
        }
        map.keys().filter(|name| !declared.knows(name, self.checker)).count()
    }

    /// The variants that declare the properties of a value: one, or all that it is at once.
    ///
    /// If a value names no variant that is described, none is known to declare all of it.
    pub(super) fn variants_for(&self, at: At<'a>, union: &'a Union, value: &Value, depth: Depth) -> Vec<&'a Node> {
        match self.checker.tagged(at, union, value) {
            tagged if self.is_kept_whole(at, union, &tagged, value) => return Vec::new(),
            Tagged::Variant(node) => return vec![node],
            Tagged::Default(_) | Tagged::Undescribed(_) => return Vec::new(),
            Tagged::Unknown | Tagged::No => {}
        }
        if union.overlaps {
            let all = self.all_conforming(at, union, value, depth.value);
            if !all.is_empty() {
                return all;
            }
        }
        let conforming = if union.overlaps { None } else { self.conforming(at, union, value, true, depth) };
        let node = conforming.or_else(|| self.select(at, union, value, depth.value));
        node.into_iter().collect()
    }

    /// The closest variant: by the original's score, or, if that is zero, by type.
    fn select(&self, at: At<'a>, union: &'a Union, value: &Value, depth: u32) -> Option<&'a Node> {
        let as_object = match value {
            Value::Array(items) if self.compat() => {
                let mut map = as_object(copy(value)?);
                map.insert("length".to_owned(), items.len().into());
                Some(Value::Object(map))
            }
            _ => None,
        };
        let scored = as_object.as_ref().unwrap_or(value);
        let mut best = 0;
        let mut selected = None;
        for node in self.checker.possible(at, union) {
            let score = self.score(at.to(node), value, scored, depth, 0);
            if score > best {
                best = score;
                selected = Some(node);
            }
        }
        let of_type = || self.of_types(at, union, Types::of(value).and(union.types)).next();
        selected
            .or_else(|| if self.compat() { None } else { of_type() })
            .or_else(|| self.checker.possible(at, union).next())
    }

    pub(super) fn score(&self, at: At<'a>, value: &Value, scored: &Value, depth: u32, combined: u32) -> u32 {
        if combined >= MAX_COMBINED || !self.checker.budget.spend(1) {
            return 0;
        }
        let Some(at) = self.checker.follow(at) else { return 0 };
        match (&at.node.kind, scored) {
            (Kind::Typed(typed), Value::Object(map)) if typed.object.is_some() => {
                let properties = typed.object.as_ref().map_or(&[][..], |rules| rules.properties.as_slice());
                // Every property of the schema is looked for, however small the object is.
                if !self.checker.budget.spend(properties.len() as u64 / 4) {
                    return 0;
                }
                let certain = properties.iter().filter(|property| !property.is_conditional);
                certain
                    .map(|property| self.score_property(at.to(&property.node), map.get(&*property.name), depth))
                    .sum()
            }
            (Kind::Union(union), _) => {
                let scores =
                    union.variants.iter().map(|node| self.score(at.to(node), value, scored, depth, combined + 1));
                scores.max().unwrap_or(0)
            }
            _ => u32::from(self.checker.check(at, value, depth)),
        }
    }

    fn score_property(&self, at: At<'a>, value: Option<&Value>, depth: u32) -> u32 {
        let Some(value) = value else {
            // To the original, what is absent may be anything.
            return if self.compat() && self.checker.admits_absence(at, 0) { 10 } else { 0 };
        };
        let checks = self.checker.check(at, value, depth + 1);
        let literal = matches!(&at.node.kind, Kind::Literals(values) if values.len() == 1);
        1 + if checks { 10 } else { 0 } + if checks && literal { 100 } else { 0 }
    }

    pub(super) fn intersect(
        &mut self,
        at: At<'a>,
        all: &'a Intersect,
        value: &mut Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        if self.mode == Mode::Cast {
            return match self.conforms_or_throws(at, value, depth) {
                Some(true) => true,
                Some(false) => self.cast_intersect(at, value, path, depth),
                None => self.keep(path, "a schema", Some(value)),
            };
        }
        if self.mode == Mode::Repair {
            return self.repair_members(at, all, value, path, strip, depth);
        }
        if !self.is_again {
            // It is visited several times, so its parts are counted here. It was counted itself with what is around it.
            self.checker.budget.grow(weight(value) - 1);
        }
        let conforms = !self.compat() && self.found(|fixer| fixer.checker.check(at, value, depth)) == Some(true);
        let (came, mark) = (if conforms { copy(value) } else { None }, self.mark());
        if let Strip::All = strip {
            // By the best score, it is known which variants declare its properties.
            let is_known = self.mode == Mode::Normalise || self.compat();
            self.strip_members(at, value, path, is_known || conforms, depth);
        }
        let clean = self.within(Mode::Clean, |fixer| fixer.members(at, all, value, path, strip, depth));
        // A member may forbid what another fills in: then a value that conforms stays unchanged.
        if let Some(came) = came
            && !equal(&came, value)
            && self.found(|fixer| fixer.checker.check(at, value, depth)) == Some(false)
        {
            discard(std::mem::replace(value, came));
            self.rollback(mark);
            return true;
        }
        if clean || self.mode == Mode::Clean {
            return clean;
        }
        if self.checker.check(at, value, depth) {
            return true;
        }
        // Each member repairs the parts that it declares; everything is created anew only if that fails.
        let (received, mark) = (copy(value), self.mark());
        if self.again(|fixer| fixer.members(at, all, value, path, strip, depth)) && self.is_by_type() {
            return true;
        }
        // Earlier members have not seen values that later ones made up.
        if self.checker.check(at, value, depth) {
            self.within(Mode::Clean, |fixer| fixer.members(at, all, value, path, strip, depth));
            return false;
        }
        let repaired = self.mark();
        if self.is_by_type() && self.again(|fixer| fixer.members(at, all, value, path, strip, depth)) {
            self.rollback(repaired);
            return false;
        }
        let Some(received) = received else { return false };
        discard(std::mem::replace(value, received));
        self.rollback(mark);
        self.cast_intersect(at, value, path, depth)
    }

    pub(super) fn members(
        &mut self,
        at: At<'a>,
        all: &'a Intersect,
        value: &mut Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        let mut ok = true;
        for (index, node) in all.members.iter().enumerate() {
            let strip = if let Strip::All = strip { Strip::Member(at, index) } else { Strip::None };
            let mut fix = |fixer: &mut Self| fixer.fix(at.to(node), value, path, strip, depth + 1);
            ok &= if index > 0 { self.again(fix) } else { fix(self) };
        }
        ok
    }

    /// All or nothing: the creation of the members, with as much of the value as conforms.
    fn cast_intersect(&mut self, at: At<'a>, value: &mut Value, path: &Path<'_>, depth: u32) -> bool {
        let expected = self.checker.expectation(at, Some(value));
        let Some(created) = self.checker.create(at, Types::NONE, depth) else {
            return self.keep(path, &expected, Some(value));
        };
        let merged = copy(&created).zip(copy(value)).map(|(created, value)| merge(created, value, 0));
        self.record(path, expected, super::kind(Some(value)));
        let result = match merged {
            Some(merged) if self.checker.check(at, &merged, depth) => merged,
            _ => created,
        };
        discard(std::mem::replace(value, result));
        if self.mode == Mode::Normalise {
            self.within(Mode::Clean, |fixer| fixer.fix(at, value, path, Strip::All, depth + 1));
        }
        false
    }
}
