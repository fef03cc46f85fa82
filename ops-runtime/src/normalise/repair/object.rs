//! Objects: undeclared properties are removed, defaults filled in, and all properties fixed separately.

use serde_json::{Map, Value};

use super::told::Mark;
use super::{Fixer, Mode, Strip, kind, may_declare};
use crate::normalise::check::Checker;
use crate::normalise::equal::{copy, discard};
use crate::normalise::findings::{Change, UNDECLARED};
use crate::normalise::node::{Additional, At, Kind, Node, ObjectRules, Property};
use crate::normalise::path::Path;

/// An object that is being fixed.
struct Object<'a, 'p> {
    at: At<'a>,
    rules: &'a ObjectRules,
    path: &'p Path<'p>,
    strip: Strip<'a>,
    /// True if undeclared properties are removed.
    strips: bool,
    /// The number of its properties.
    count: usize,
    depth: u32,
}

impl<'a> Fixer<'_, 'a> {
    pub(super) fn object(
        &mut self,
        at: At<'a>,
        rules: &'a ObjectRules,
        map: &mut Map<String, Value>,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        let strips = self.mode != Mode::Cast && matches!(strip, Strip::All) && !rules.keeps_undeclared;
        let drops_nulls = matches!(self.mode, Mode::Repair | Mode::Normalise) && !self.compat();
        let object = Object { at, rules, path, strip, strips, count: map.len(), depth };
        let mut ok = true;
        let mut nulls = Vec::new();
        let mut wanted = 0;
        let mut undeclared = 0;
        let mut cursor = 0;
        for (index, (name, value)) in map.iter_mut().enumerate() {
            let property = rules.find(name, &mut cursor);
            if (drops_nulls || property.is_some() && self.is_by_type())
                && value.is_null()
                && let Some(node) = self.schema_of_absent(at, rules, name, property, depth)
            {
                // A type reads `null` as absent by itself, except for an entry of a map.
                if let Some(property) = property.filter(|_| self.is_by_type()) {
                    wanted += usize::from(property.wanted());
                    continue;
                }
                self.tell_null(at.to(node), &path.key(name));
                nulls.push(index);
                continue;
            }
            wanted += usize::from(property.is_some_and(Property::wanted));
            let (fits, is_declared) = self.member(&object, name, value, property);
            ok &= fits;
            undeclared += usize::from(!is_declared);
        }
        if !nulls.is_empty() {
            let (mut nulls, mut index) = (nulls.into_iter().peekable(), 0..);
            map.retain(|_, _| nulls.next_if_eq(&index.next().unwrap_or_default()).is_none());
        }
        if strips && undeclared > 0 {
            let checker = self.checker;
            self.strip(map, path, |name, cursor| checker.knows(rules, name, cursor));
        }
        if wanted < rules.wanted {
            ok &= self.absent(at, rules, map, path, strip, depth);
        }
        ok &= self.is_counted(rules, map);
        if !ok && self.mode != Mode::Clean {
            // A repaired object keeps only declared properties, and in the default reading also allowed ones.
            let allowed = self.mode == Mode::Repair
                || self.is_by_type()
                || !self.compat() && self.mode == Mode::Normalise && !matches!(rules.additional, Additional::False);
            if undeclared > 0 && !strips && !allowed && !matches!(strip, Strip::Member(..)) {
                self.drop_undeclared(rules, map, path);
            }
            self.report_count(rules, map, path);
        }
        ok
    }

    /// Fixes the value of a property by all schemas that describe it. Returns true if the value fits, and true if the name
    /// is declared or matches a pattern.
    fn member(
        &mut self,
        object: &Object<'a, '_>,
        name: &str,
        value: &mut Value,
        property: Option<&'a Property>,
    ) -> (bool, bool) {
        let &Object { at, rules, path, strip, depth, .. } = object;
        let mark = self.mark();
        let by_pattern = self.by_pattern(rules, name).unwrap_or_default();
        let is_listed = !by_pattern.is_empty();
        let is_scalar = !value.is_array() && !value.is_object();
        let received = if is_listed && is_scalar && self.mode == Mode::Repair { copy(value) } else { None };
        let mut ok = true;
        if let Some(property) = property {
            // Its patterns apply, too, so one schema must not strip properties that another declares.
            let strip = if is_listed { Strip::None } else { strip_inside(strip, name, self) };
            let mut fix = |fixer: &mut Self| fixer.fix(at.to(&property.node), value, &path.key(name), strip, depth + 1);
            ok &= if property.is_constant() { self.by_schema(fix) } else { fix(self) };
        }
        let mut is_declared = property.is_some();
        for node in by_pattern.iter().copied() {
            let strip = if is_declared { Strip::None } else { strip_inside(strip, name, self) };
            let is_again = std::mem::replace(&mut is_declared, true);
            let mut fix = |fixer: &mut Self| fixer.fix(at.to(node), value, &path.key(name), strip, depth + 1);
            ok &= if is_again { self.again(fix) } else { fix(self) };
        }
        if is_listed && self.mode == Mode::Repair && (is_scalar || !self.is_by_type()) {
            let all: Vec<_> = property.map(|property| &property.node).into_iter().chain(by_pattern).collect();
            ok &= self.agree(object, &all, (name, value), received, mark);
        }
        if !is_declared {
            ok &= self.fix_undeclared(object, name, value);
        }
        (ok, is_declared)
    }

    /// Fixes the value of a property that is not declared. Returns true if it fits.
    fn fix_undeclared(&mut self, object: &Object<'a, '_>, name: &str, value: &mut Value) -> bool {
        let &Object { at, rules, path, strip, strips, count, depth } = object;
        match &rules.additional {
            Additional::Each(node) => {
                let strip = strip_inside(strip, name, self);
                self.fix(at.to(node), value, &path.key(name), strip, depth + 1)
            }
            // A type skips such a property.
            Additional::False if self.is_by_type() => true,
            Additional::False if self.mode == Mode::Repair && !strips => {
                // Another member of an intersection may declare it.
                matches!(strip, Strip::Member(..)) || self.keep(&path.key(name), UNDECLARED, Some(value))
            }
            Additional::False => strips || rules.counts_keys && count == rules.properties.len(),
            Additional::Broken => self.keep(&path.key(name), "a schema", Some(value)),
            Additional::Unspecified | Additional::True => true,
        }
    }

    /// True if the changes by a property's own schema and by its patterns suit all of them; a scalar that does not
    /// stays unchanged.
    fn agree(
        &mut self,
        object: &Object<'a, '_>,
        all: &[&'a Node],
        (name, value): (&str, &mut Value),
        received: Option<Value>,
        mark: Mark,
    ) -> bool {
        let &Object { at, path, depth, .. } = object;
        let checker = self.checker;
        let refuses =
            |node: &'a Node| !checker.check(at.to(node), value, depth + 1) && !self.is_accepted(at.to(node), value);
        let refusing = all.iter().copied().find(|node| refuses(node));
        let Some(refusing) = refusing else { return true };
        if let Some(received) = received {
            discard(std::mem::replace(value, received));
            self.rollback(mark);
        }
        if self.repairs.mark().since(mark.repairs).kept == 0 {
            let expected = checker.expectation(at.to(refusing), Some(value));
            self.keep(&path.key(name), &expected, Some(value));
        }
        false
    }

    /// The schema by which `null` is taken for the absence of a property: it may be absent, but not `null`. A zero would
    /// be made up.
    fn schema_of_absent(
        &self,
        at: At<'a>,
        rules: &'a ObjectRules,
        name: &str,
        property: Option<&'a Property>,
        depth: u32,
    ) -> Option<&'a Node> {
        let refuses = |node: &'a Node| self.refuses_null(at.to(node), depth);
        if let Some(property) = property {
            return Some(&property.node).filter(|node| !property.required && refuses(node));
        }
        // What only a pattern or `additionalProperties` describes is never required.
        let listed = self.by_pattern(rules, name)?;
        match &rules.additional {
            _ if !listed.is_empty() => listed.into_iter().find(|node| refuses(node)),
            Additional::Each(node) => Some(node).filter(|node| refuses(node)),
            _ => None,
        }
    }

    /// True if a schema does not accept `null`.
    pub(in crate::normalise) fn refuses_null(&self, at: At<'a>, depth: u32) -> bool {
        self.found(|fixer| fixer.checker.check(at, &Value::Null, depth + 1)) == Some(false)
    }

    /// Reports a `null` that was taken for absence.
    pub(in crate::normalise) fn tell_null(&mut self, at: At<'a>, path: &Path<'_>) {
        let checker = self.checker;
        self.note(path, || checker.expectation(at, None), "null", Change::Converted);
    }

    /// Removes properties that are not allowed, and reports that once per place.
    pub(super) fn strip(
        &mut self,
        map: &mut Map<String, Value>,
        path: &Path<'_>,
        declares: impl Fn(&str, &mut usize) -> bool,
    ) {
        let mut cursor = 0;
        map.retain(|name, value| {
            let stays = declares(name, &mut cursor);
            if !stays {
                self.tell_removed(path, name, kind(Some(value)));
            }
            keep(stays, value)
        });
    }

    /// Reports a property that is not allowed in the object at a path and was removed, once per place.
    pub(in crate::normalise) fn tell_removed(&mut self, path: &Path<'_>, name: &str, found: &'static str) {
        if self.told.as_mut().is_some_and(|told| told.note(path, name)) {
            self.repairs.tell(&path.key(name), || UNDECLARED.to_owned(), found, Change::Removed);
        }
    }

    /// Removes the properties that the original drops when it rebuilds an object.
    pub(super) fn drop_undeclared(&mut self, rules: &ObjectRules, map: &mut Map<String, Value>, path: &Path<'_>) {
        if matches!(rules.additional, Additional::Each(_) | Additional::Broken) {
            return;
        }
        let mut dropped = Vec::new();
        map.retain(|name, value| {
            let known = self.checker.knows(rules, name, &mut 0);
            if !known {
                dropped.push((name.clone(), kind(Some(value))));
            }
            keep(known, value)
        });
        for (name, found) in dropped {
            self.record(&path.key(&name), "nothing".to_owned(), found);
        }
    }

    fn report_count(&mut self, rules: &ObjectRules, map: &Map<String, Value>, path: &Path<'_>) {
        if self.is_counted(rules, map) {
            return;
        }
        let count = map.len() as u64;
        let expected = match (rules.min.filter(|min| count < *min), rules.max) {
            (Some(min), _) => format!("object to have at least {min} properties"),
            (None, max) => format!("object to have no more than {} properties", max.unwrap_or(0)),
        };
        self.remain(path, expected, "object");
    }

    /// Fills absent properties with their defaults, or required ones with made-up values.
    fn absent(
        &mut self,
        at: At<'a>,
        rules: &'a ObjectRules,
        map: &mut Map<String, Value>,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        // Every property of the schema is looked for, however small the object is.
        if !self.checker.budget.spend(rules.properties.len() as u64 / 4) && !self.goes_on() {
            return false;
        }
        let mut ok = true;
        for property in &rules.properties {
            if !property.wanted() || map.contains_key(&*property.name) {
                continue;
            }
            let node = at.to(&property.node);
            let has_room = self.compat() || rules.max.is_none_or(|max| (map.len() as u64) < max);
            if self.mode != Mode::Cast
                && has_room
                && let Some((value, conforms)) = self.filled(at, rules, property, path, strip, depth)
            {
                ok &= conforms;
                map.insert(property.name.to_string(), value);
                continue;
            }
            if !property.required {
                continue;
            }
            if self.compat() && self.checker.admits_absence(node, 0) && !matches!(property.node.kind, Kind::Any) {
                continue;
            }
            // A type does not require a property that is not described.
            if self.is_by_type() && property.is_undescribed {
                continue;
            }
            ok = false;
            if self.mode == Mode::Clean {
                continue;
            }
            let path = path.key(&property.name);
            if self.mode == Mode::Repair {
                let checker = self.checker;
                self.throws += 1;
                self.note(&path, || checker.expectation(node, None), kind(None), Change::Kept);
                continue;
            }
            let expected = self.checker.expectation(node, None);
            match self.fix_absent(node, depth + 1) {
                Some(value) => {
                    self.record(&path, expected, "absent");
                    map.insert(property.name.to_string(), value);
                }
                None => {
                    self.keep(&path, &expected, None);
                }
            }
        }
        ok
    }

    /// The schemas of a name by patterns. `None` if the steps ran out.
    fn by_pattern(&self, rules: &'a ObjectRules, name: &str) -> Option<Vec<&'a Node>> {
        if rules.patterns.is_empty() {
            return Some(Vec::new());
        }
        self.found(|fixer| rules.listed(name, &fixer.checker.budget).collect())
    }

    /// The default of an absent property, itself cleaned, and true if it conforms.
    fn filled(
        &mut self,
        at: At<'a>,
        rules: &'a ObjectRules,
        property: &'a Property,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> Option<(Value, bool)> {
        let this = std::ptr::from_ref(property);
        if self.filling.contains(&this) {
            self.endless = Some(this);
            return None;
        }
        let node = at.to(&property.node);
        let default = self.checker.default_of_absent(at, property);
        let mut value = default.and_then(|default| self.checker.filling(default))?;
        let path = path.key(&property.name);
        let listed = self.by_pattern(rules, &property.name)?;
        let (mark, met) = (self.mark(), self.checker.budget.met());
        self.filling.push(this);
        // A value is not filled in just because the type would accept it if it were received.
        let (mut ok, suits) = self.by_schema(|fixer| {
            let strip = strip_inside(strip, &property.name, fixer);
            let mut ok = fixer.fix(node, &mut value, &path, strip, depth + 1);
            let mut suits = true;
            for node in listed {
                let mut fix = |fixer: &mut Self| fixer.fix(at.to(node), &mut value, &path, Strip::None, depth + 1);
                // A value that a pattern converts is no longer the default, but a cast makes up what is required.
                if fixer.compat() || fixer.mode == Mode::Normalise && property.required {
                    ok &= fix(fixer);
                } else {
                    suits &= fixer.within(Mode::Clean, fix);
                }
            }
            (ok, suits)
        });
        ok &= suits;
        self.filling.pop();
        let is_endless = self.endless == Some(this);
        if is_endless {
            self.endless = None;
        }
        // Properties stripped from a default were never in the value, so they are not reported. In a repair, a default
        // that does not fit is ignored, because the value had no fault without it.
        let is_ignored = is_endless || !suits || !ok && self.mode == Mode::Repair;
        if ok || is_ignored {
            self.rollback(mark);
        }
        if is_ignored {
            self.checker.budget.leave_out(met);
        }
        (!is_ignored).then_some((value, ok))
    }

    pub(super) fn may_declare(&self, at: At<'a>, name: &str, depth: u32) -> bool {
        may_declare(self.checker, at, name, depth)
    }
}

impl Checker<'_> {
    /// True if a schema declares a property, or has another schema for it. If the steps ran out, it may, so it stays.
    pub(super) fn knows(&self, rules: &ObjectRules, name: &str, cursor: &mut usize) -> bool {
        let is_listed = || rules.listed(name, &self.budget).next().is_some();
        rules.find(name, cursor).is_some()
            || !rules.patterns.is_empty() && (self.budget.is_dry() || self.found(None, is_listed).unwrap_or(true))
    }
}

/// Returns true if a property stays, and takes it apart if not.
fn keep(stays: bool, value: &mut Value) -> bool {
    if !stays {
        discard(value.take());
    }
    stays
}

/// How properties are stripped inside a property.
pub(super) fn strip_inside<'a>(strip: Strip<'a>, name: &str, fixer: &Fixer<'_, 'a>) -> Strip<'a> {
    match strip {
        Strip::All => Strip::All,
        Strip::None => Strip::None,
        Strip::Member(at, index) => {
            let Kind::Intersect(all) = &at.node.kind else { return Strip::None };
            let mut others = all.members.iter().enumerate().filter(|(other, _)| *other != index);
            // Another member that declares it may declare more properties inside.
            if others.any(|(_, node)| fixer.may_declare(at.to(node), name, 0)) { Strip::None } else { Strip::All }
        }
    }
}
