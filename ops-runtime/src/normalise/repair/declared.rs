//! What the schemas of a value declare together, and what none of them does.

use std::collections::HashSet;

use serde_json::Value;

use super::object::strip_inside;
use super::union::Depth;
use super::{Fixer, Strip};
use crate::normalise::check::Checker;
use crate::normalise::node::{Additional, At, Kind, Node, ObjectRules, Typed};
use crate::normalise::path::Path;
use crate::normalise::tagged::Tagged;

/// The schemas that declare the parts of a value, each once.
#[derive(Default)]
pub(super) struct Declared<'a> {
    typed: Vec<(At<'a>, &'a Typed)>,
    /// The addresses of what was looked at: combined schemas meet the same ones again and again.
    seen: HashSet<usize>,
}

impl<'a> Declared<'a> {
    /// The rules for objects among them.
    pub(super) fn rules(&self) -> impl Iterator<Item = &'a ObjectRules> {
        self.typed.iter().filter_map(|(_, typed)| typed.object.as_ref())
    }

    /// True if any of them declares the property.
    pub(super) fn knows(&self, name: &str, checker: &Checker<'_>) -> bool {
        self.rules().any(|rules| checker.knows(rules, name, &mut 0))
    }

    /// True if they declare properties of objects and allow no others.
    fn closes(&self, compat: bool) -> bool {
        let closed = |rules: &ObjectRules| matches!(rules.additional, Additional::False);
        let allows = |rules: &ObjectRules| {
            matches!(rules.additional, Additional::True | Additional::Each(_) | Additional::Broken)
                || rules.keeps_undeclared && (rules.declares || !compat && rules.min.is_some_and(|min| min > 0))
        };
        self.rules().any(|rules| rules.declares || closed(rules)) && !self.rules().any(allows)
    }

    /// The schemas of a property.
    fn below(&self, name: &str, checker: &Checker<'_>) -> Vec<At<'a>> {
        let mut nodes = Vec::new();
        for (at, rules) in self.typed.iter().filter_map(|(at, typed)| Some((at, typed.object.as_ref()?))) {
            let before = nodes.len();
            nodes.extend(rules.find(name, &mut 0).map(|property| at.to(&property.node)));
            nodes.extend(rules.listed(name, &checker.budget).map(|node| at.to(node)));
            if let (true, Additional::Each(node)) = (nodes.len() == before, &rules.additional) {
                nodes.push(at.to(node));
            }
        }
        nodes
    }

    /// True if one of them is of lists whose items must differ.
    fn is_unique(&self) -> bool {
        self.typed.iter().any(|(_, typed)| typed.array.as_ref().is_some_and(|rules| rules.unique))
    }

    /// The schemas of an item.
    fn item(&self, index: usize) -> Vec<At<'a>> {
        let arrays = self.typed.iter().filter_map(|(at, typed)| Some((at, typed.array.as_ref()?)));
        arrays.filter_map(|(at, rules)| Some(at.to(rules.item(index)?))).collect()
    }
}

impl<'a> Fixer<'_, 'a> {
    /// Collects the schemas that declare the parts of a value; `false` if they cannot be known.
    pub(super) fn declaring(&self, at: At<'a>, value: &Value, declared: &mut Declared<'a>, depth: Depth) -> bool {
        let Some(at) = self.checker.follow(at).filter(|_| !depth.is_too_much() && self.checker.budget.spend(1)) else {
            return false;
        };
        match &at.node.kind {
            Kind::Typed(_) | Kind::Union(_) | Kind::Intersect(_)
                if !declared.seen.insert(std::ptr::from_ref(at.node).addr()) =>
            {
                true
            }
            Kind::Typed(typed) => {
                declared.typed.push((at, typed));
                true
            }
            Kind::Union(union) => {
                let variants = self.variants_for(at, union, value, depth);
                let depth = depth.in_union();
                !variants.is_empty() && variants.iter().all(|node| self.declaring(at.to(node), value, declared, depth))
            }
            Kind::Intersect(all) => {
                all.members.iter().all(|node| self.declaring(at.to(node), value, declared, depth.in_intersection()))
            }
            _ => true,
        }
    }

    /// Removes properties that no member of an intersection declares.
    pub(super) fn strip_members(&mut self, at: At<'a>, value: &mut Value, path: &Path<'_>, conforms: bool, depth: u32) {
        let declared = self.found(|fixer| {
            let mut declared = Declared::default();
            fixer.declaring(at, value, &mut declared, Depth::new(depth)).then_some(declared)
        });
        let (Some(Some(declared)), Some(map)) = (declared, value.as_object()) else { return };
        if declared.closes(self.compat()) && map.keys().any(|name| !declared.knows(name, self.checker)) {
            let Value::Object(map) = value else { return };
            // For a faulty value it is unknown which variant of a union declares its properties.
            let checker = self.checker;
            let may = |name: &str| !conforms && super::may_declare(checker, at, name, 0);
            self.strip(map, path, |name, _| declared.knows(name, checker) || may(name));
        }
    }

    /// Removes, here and below, what none of several schemas declares that a value conforms to at once.
    ///
    /// Where one of them leaves open what there may be, all stays.
    pub(super) fn strip_among(
        &mut self,
        schemas: &[At<'a>],
        value: &mut Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) {
        let is_nested = |value: &Value| value.is_object() || value.is_array();
        if matches!(strip, Strip::None) || !is_nested(value) || !self.goes_on() || !self.checker.enter(depth) {
            return;
        }
        let Some(Some(all)) = self.found(|fixer| fixer.each_declaring(schemas, value, depth)) else { return };
        let closes: Vec<bool> = all.iter().map(|declared| declared.closes(self.compat())).collect();
        let checker = self.checker;
        let knows = |name: &str| all.iter().any(|declared| declared.knows(name, checker));
        match value {
            Value::Object(map) => {
                if matches!(strip, Strip::All)
                    && closes.iter().all(|closes| *closes)
                    && !map.keys().all(|name| knows(name))
                {
                    self.strip(map, path, |name, _| knows(name));
                }
                for (name, value) in map.iter_mut().filter(|(_, value)| is_nested(value)) {
                    let below = |fixer: &Self| -> Vec<Vec<At<'a>>> {
                        all.iter().map(|declared| declared.below(name, fixer.checker)).collect()
                    };
                    let Some(below) = self.found(below) else { return };
                    let is_open = below.iter().zip(&closes).any(|(below, closes)| below.is_empty() && !closes);
                    let strip = strip_inside(strip, name, self);
                    if !is_open {
                        self.strip_among(&below.concat(), value, &path.key(name), strip, depth + 1);
                    }
                }
            }
            // What is undeclared may be all that tells two items apart.
            Value::Array(items) if matches!(strip, Strip::All) && !all.iter().any(Declared::is_unique) => {
                for (index, value) in items.iter_mut().enumerate().filter(|(_, value)| is_nested(value)) {
                    let below: Vec<Vec<At<'a>>> = all.iter().map(|declared| declared.item(index)).collect();
                    if !below.iter().any(Vec::is_empty) {
                        self.strip_among(&below.concat(), value, &path.index(index), strip, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    /// What each of several schemas of a value declares, and each variant of those that are unions; `None` if that
    /// cannot be known.
    fn each_declaring(&self, schemas: &[At<'a>], value: &Value, depth: u32) -> Option<Vec<Declared<'a>>> {
        let mut seen = HashSet::new();
        let mut open: Vec<(At<'a>, Depth)> = schemas.iter().map(|at| (*at, Depth::new(depth))).collect();
        let mut all = Vec::new();
        while let Some((at, depth)) = open.pop() {
            let at = self.checker.follow(at).filter(|_| !depth.is_too_much() && self.checker.budget.spend(1))?;
            if !seen.insert(std::ptr::from_ref(at.node).addr()) {
                continue;
            }
            let Kind::Union(union) = &at.node.kind else {
                let mut declared = Declared::default();
                if !self.declaring(at, value, &mut declared, depth) {
                    return None;
                }
                all.push(declared);
                continue;
            };
            let variants: Vec<&'a Node> = match self.checker.tagged(at, union, value) {
                Tagged::Variant(node) => vec![node],
                Tagged::Default(_) | Tagged::Undescribed(_) => return None,
                _ if union.overlaps => self.all_conforming(at, union, value, depth.value()),
                _ => vec![self.conforming(at, union, value, false, depth)?],
            };
            open.extend(variants.into_iter().map(|node| (at.to(node), depth.in_union())));
        }
        Some(all)
    }
}
