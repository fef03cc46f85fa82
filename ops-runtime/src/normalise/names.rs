//! What a schema declares of objects, for callers that need no repair.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value};

use super::check::Checker;
use super::node::{Additional, At, Kind, Typed, Union};
use super::tagged::Tagged;
use super::{CompiledSchema, repair};
use crate::pointer::unescaped;

impl CompiledSchema {
    /// True if an object has no property in common with a schema that allows no others. `{"error": ..}` would conform
    /// if all properties are optional, but hold nothing; and so would `{"data": null, "error": ..}`.
    ///
    /// Of a union, that is true if it holds for all variants that the object conforms to, or for the variant at a
    /// position where it is known that this one is meant.
    pub(crate) fn has_nothing_of(&self, value: &Value, meant: Option<u16>) -> bool {
        let Some(map) = value.as_object().filter(|map| !map.is_empty()) else { return false };
        let checker = Checker::new(&self.definitions);
        let nothing_of = |at| repair::has_nothing_of(&checker, at, map);
        let (at, Some(union)) = self.root_union(&checker) else { return nothing_of(self.root()) };
        if nothing_of(at) {
            return true;
        }
        // An object that names its variant has that in common with it, and a variant that is unknown here may be a new one.
        if !matches!(checker.tagged(at, union, value), Tagged::No) {
            return false;
        }
        let takes = |node| checker.check(at.to(node), value, 1);
        if let Some(node) = meant.and_then(|meant| union.variants.get(usize::from(meant)))
            && takes(node)
        {
            return nothing_of(at.to(node));
        }
        let mut taking = union.variants.iter().filter(|node| takes(node)).peekable();
        taking.peek().is_some() && taking.all(|node| nothing_of(at.to(node)))
    }

    /// The schema behind the root, and its variants if it is a union.
    fn root_union<'s>(&'s self, checker: &Checker<'s>) -> (At<'s>, Option<&'s Union>) {
        let at = checker.follow(self.root()).unwrap_or(self.root());
        (at, if let Kind::Union(union) = &at.node.kind { Some(union) } else { None })
    }

    /// True if the schema is a union, so that more than the names of properties says what an object is.
    pub(crate) fn is_union(&self) -> bool {
        self.root_union(&Checker::new(&self.definitions)).1.is_some()
    }

    /// True if any variant of the schema may declare the property.
    pub(crate) fn may_declare(&self, name: &str) -> bool {
        repair::may_declare(&Checker::new(&self.definitions), self.root(), name, 0)
    }

    /// True if any variant of the schema may declare a property of an object.
    pub(crate) fn may_declare_some(&self, value: &Value) -> bool {
        let checker = Checker::new(&self.definitions);
        value.as_object().is_some_and(|map| repair::may_declare_some(&checker, self.root(), map))
    }

    /// True if any object might conform, to a variant at least, but have nothing in common with it.
    pub(crate) fn may_have_nothing_of(&self) -> bool {
        let checker = Checker::new(&self.definitions);
        let nothing = Value::Object(Map::new());
        let may = |at| checker.check(at, &nothing, 0) && repair::closes(&checker, at, 0);
        let (at, union) = self.root_union(&checker);
        may(at) || union.is_some_and(|union| union.variants.iter().any(|node| may(at.to(node))))
    }

    /// The names of the properties that any variant of the schema declares for the object at a place.
    pub(crate) fn names_in(&self, pointer: &str) -> BTreeSet<&str> {
        let checker = Checker::new(&self.definitions);
        let mut here = typed(&checker, vec![self.root()]);
        for part in pointer.split('/').skip(1).map(unescaped) {
            here = typed(&checker, here.iter().flat_map(|(at, typed)| below(*at, typed, &part)).collect());
        }
        let objects = here.iter().filter_map(|(_, typed)| typed.object.as_ref());
        objects.flat_map(|rules| &rules.properties).map(|property| &*property.name).collect()
    }
}

/// The schemas of objects and lists that some schemas combine.
///
/// Each is there once, however many ways lead to it: with each step into a value, the ways may multiply.
fn typed<'a>(checker: &Checker<'a>, mut open: Vec<At<'a>>) -> Vec<(At<'a>, &'a Typed)> {
    let mut seen = HashSet::new();
    let mut found: Vec<(At<'a>, &'a Typed)> = Vec::new();
    while let Some(at) = open.pop() {
        if !checker.budget.spend(1) {
            break;
        }
        let Some(at) = checker.follow(at).filter(|at| seen.insert(std::ptr::from_ref(at.node).addr())) else {
            continue;
        };
        match &at.node.kind {
            Kind::Typed(typed) => found.push((at, typed)),
            Kind::Union(union) => open.extend(union.variants.iter().map(|node| at.to(node))),
            Kind::Intersect(all) => open.extend(all.members.iter().map(|node| at.to(node))),
            _ => {}
        }
    }
    found
}

/// The schemas of a member or an item.
fn below<'a>(at: At<'a>, typed: &'a Typed, part: &str) -> impl Iterator<Item = At<'a>> {
    let property = typed.object.as_ref().and_then(|rules| match (rules.find(part, &mut 0), &rules.additional) {
        (Some(property), _) => Some(&property.node),
        (None, Additional::Each(node)) => Some(node),
        _ => None,
    });
    let item = typed.array.as_ref().and_then(|rules| rules.item(part.parse().ok()?));
    [property, item].into_iter().flatten().map(move |node| at.to(node))
}
