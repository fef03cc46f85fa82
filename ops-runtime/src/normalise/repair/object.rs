//! Objects: undeclared properties go, defaults come, every property is fixed by itself.

use serde_json::{Map, Value};

use super::union::Depth;
use super::{Fixer, Mode, Strip, kind};
use crate::normalise::check::MAX_COMBINED;
use crate::normalise::equal::discard;
use crate::normalise::node::{Additional, At, Kind, ObjectRules, Property};
use crate::normalise::path::Path;

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
        let mut ok = true;
        if self.mode == Mode::Normalise && !self.compat() && map.values().any(Value::is_null) {
            self.drop_nulls(at, rules, map, path, depth);
        }
        let mut wanted = 0;
        let mut undeclared = 0;
        let mut cursor = 0;
        let count = map.len();
        for (name, value) in map.iter_mut() {
            let property = rules.find(name, &mut cursor);
            if let Some(property) = property {
                wanted += usize::from(property.wanted());
                let strip = strip_inside(strip, name, self);
                ok &= self.fix(at.to(&property.node), value, &path.key(name), strip, depth + 1);
            }
            let mut listed = property.is_some();
            for (_, node) in rules.patterns.iter().filter(|(pattern, _)| pattern.matches(name)) {
                // Fixed twice if it is also a property, so one schema must not strip what the other declares.
                let strip = if listed { Strip::None } else { strip_inside(strip, name, self) };
                listed = true;
                ok &= self.fix(at.to(node), value, &path.key(name), strip, depth + 1);
            }
            if !listed {
                undeclared += 1;
                ok &= match &rules.additional {
                    Additional::Each(node) => {
                        let strip = strip_inside(strip, name, self);
                        self.fix(at.to(node), value, &path.key(name), strip, depth + 1)
                    }
                    Additional::False => strips || rules.counts_keys && count == rules.properties.len(),
                    Additional::Broken => self.keep(&path.key(name), "a schema", Some(value)),
                    Additional::Unspecified | Additional::True => true,
                };
            }
        }
        if strips && undeclared > 0 {
            let mut cursor = 0;
            map.retain(|name, value| keep(rules.knows_next(name, &mut cursor), value));
        }
        if wanted < rules.wanted {
            ok &= self.absent(at, rules, map, path, strip, depth);
        }
        ok &= rules.counts(map);
        if !ok && self.mode != Mode::Clean {
            // An object that had to be repaired keeps only what it declares; in the default reading also what it allows.
            let allowed =
                !self.compat() && self.mode == Mode::Normalise && !matches!(rules.additional, Additional::False);
            if undeclared > 0 && !strips && !allowed && !matches!(strip, Strip::Member(..)) {
                self.drop_undeclared(rules, map, path);
            }
            self.report_count(rules, map, path);
        }
        ok
    }

    /// Takes a `null` for absence where a property may be absent but not `null`: a zero in its place would be made up.
    fn drop_nulls(
        &mut self,
        at: At<'a>,
        rules: &'a ObjectRules,
        map: &mut Map<String, Value>,
        path: &Path<'_>,
        depth: u32,
    ) {
        let nulls = map.iter().filter(|(_, value)| value.is_null());
        let refused: Vec<_> = nulls
            .filter_map(|(name, null)| {
                let property = rules.find(name, &mut 0).filter(|property| !property.required)?;
                let node = at.to(&property.node);
                (!self.checker.check(node, null, depth + 1)).then(|| (name.clone(), node))
            })
            .collect();
        for (name, node) in refused {
            let expected = self.checker.expectation(node, None);
            self.record(&path.key(&name), expected, "null");
            map.retain(|key, _| *key != name);
        }
    }

    /// Removes what the original drops when it rebuilds an object.
    pub(super) fn drop_undeclared(&mut self, rules: &ObjectRules, map: &mut Map<String, Value>, path: &Path<'_>) {
        if matches!(rules.additional, Additional::Each(_) | Additional::Broken) {
            return;
        }
        let mut dropped = Vec::new();
        map.retain(|name, value| {
            let known = rules.knows(name);
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
        if rules.counts(map) {
            return;
        }
        let count = map.len() as u64;
        let expected = match (rules.min.filter(|min| count < *min), rules.max) {
            (Some(min), _) => format!("object to have at least {min} properties"),
            (None, max) => format!("object to have no more than {} properties", max.unwrap_or(0)),
        };
        self.remain(path, expected, "object");
    }

    /// Fills absent properties: by their defaults, or by what is made up for required ones.
    fn absent(
        &mut self,
        at: At<'a>,
        rules: &'a ObjectRules,
        map: &mut Map<String, Value>,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        let mut ok = true;
        for property in &rules.properties {
            if !property.wanted() || map.contains_key(&*property.name) {
                continue;
            }
            let node = at.to(&property.node);
            if self.mode != Mode::Cast
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
            ok = false;
            if self.mode == Mode::Clean {
                continue;
            }
            let expected = self.checker.expectation(node, None);
            let path = path.key(&property.name);
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

    /// The default of an absent property, itself cleaned, and whether it conforms.
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
        let mut value = self.checker.default_of(node).and_then(|default| self.checker.filling(default))?;
        let path = path.key(&property.name);
        let listed = rules.patterns.iter().filter(|(pattern, _)| pattern.matches(&property.name));
        self.filling.push(this);
        let mut ok = self.fix(node, &mut value, &path, strip_inside(strip, &property.name, self), depth + 1);
        for (_, node) in listed {
            ok &= self.fix(at.to(node), &mut value, &path, Strip::None, depth + 1);
        }
        self.filling.pop();
        if self.endless == Some(this) {
            self.endless = None;
            return None;
        }
        Some((value, ok))
    }

    /// The objects by which the properties of a value are declared; `false` if they cannot be known.
    pub(super) fn declaring(&self, at: At<'a>, value: &Value, rules: &mut Vec<&'a ObjectRules>, depth: Depth) -> bool {
        let Some(at) = self.checker.follow(at).filter(|_| !depth.is_too_much()) else { return false };
        match &at.node.kind {
            Kind::Typed(typed) => {
                rules.extend(&typed.object);
                true
            }
            Kind::Union(union) => match self.variant_for(at, union, value, depth) {
                Some(node) => self.declaring(at.to(node), value, rules, depth.in_union()),
                None => false,
            },
            Kind::Intersect(all) => {
                all.members.iter().all(|node| self.declaring(at.to(node), value, rules, depth.in_intersection()))
            }
            _ => true,
        }
    }

    /// Removes what no member of an intersection declares.
    pub(super) fn strip_members(&self, at: At<'a>, value: &mut Value, depth: u32) {
        let mut rules = Vec::new();
        let known = self.declaring(at, value, &mut rules, Depth::new(depth));
        let Value::Object(map) = value else { return };
        let closed = |rules: &&ObjectRules| matches!(rules.additional, Additional::False);
        let allows = |rules: &&ObjectRules| {
            matches!(rules.additional, Additional::True | Additional::Each(_) | Additional::Broken)
                || rules.declares && rules.keeps_undeclared
        };
        let declares = rules.iter().any(|rules| rules.declares) || rules.iter().any(closed);
        if known
            && declares
            && !rules.iter().any(allows)
            && map.keys().any(|name| !rules.iter().any(|rules| rules.knows(name)))
        {
            map.retain(|name, value| keep(rules.iter().any(|rules| rules.knows(name)), value));
        }
    }

    /// Whether a schema might declare a property, whatever variant of it is meant.
    fn may_declare(&self, at: At<'a>, name: &str, depth: u32) -> bool {
        if depth >= MAX_COMBINED {
            return true;
        }
        match &at.node.kind {
            Kind::Typed(typed) => typed.object.as_ref().is_some_and(|rules| rules.knows(name)),
            Kind::Union(union) => union.variants.iter().any(|node| self.may_declare(at.to(node), name, depth + 1)),
            Kind::Intersect(all) => all.members.iter().any(|node| self.may_declare(at.to(node), name, depth + 1)),
            Kind::Ref(_) => self.checker.follow(at).is_some_and(|at| self.may_declare(at, name, depth + 1)),
            _ => false,
        }
    }
}

/// Passes on whether a property stays, and takes it apart if not.
fn keep(stays: bool, value: &mut Value) -> bool {
    if !stays {
        discard(value.take());
    }
    stays
}

/// How properties are stripped inside a property.
fn strip_inside<'a>(strip: Strip<'a>, name: &str, fixer: &Fixer<'_, 'a>) -> Strip<'a> {
    match strip {
        Strip::All => Strip::All,
        Strip::None => Strip::None,
        Strip::Member(at, index) => {
            let Kind::Intersect(all) = &at.node.kind else { return Strip::None };
            let mut others = all.members.iter().enumerate().filter(|(other, _)| *other != index);
            // What another member declares too may have more properties there.
            if others.any(|(_, node)| fixer.may_declare(at.to(node), name, 0)) { Strip::None } else { Strip::All }
        }
    }
}
