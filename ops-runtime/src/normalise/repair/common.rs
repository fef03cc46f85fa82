//! What an object has in common with a schema.

use serde_json::{Map, Value};

use crate::normalise::check::{Checker, MAX_COMBINED};
use crate::normalise::node::{Additional, At, Kind, Node, OBJECT, ObjectRules};

/// True if an object has no property in common with a schema that allows no others. An empty object may be one that has
/// none.
pub(in crate::normalise) fn has_nothing_of<'a>(checker: &Checker<'a>, at: At<'a>, map: &Map<String, Value>) -> bool {
    !map.is_empty() && closes(checker, at, 0) && !may_declare_some(checker, at, map)
}

/// True if any variant of a schema might declare a property of an object.
///
/// A `null` that the schema does not accept says nothing. It does not count if there is a value that is not declared:
/// `{"data": null, "error": ".."}`.
pub(in crate::normalise) fn may_declare_some<'a>(checker: &Checker<'a>, at: At<'a>, map: &Map<String, Value>) -> bool {
    let (mut has_null, mut has_other) = (false, false);
    for (name, value) in map {
        if !may_declare(checker, at, name, 0) {
            has_other |= !value.is_null();
        } else if value.is_null() && !may_be_null(checker, at, name) {
            has_null = true;
        } else {
            return true;
        }
    }
    has_null && !has_other
}

/// True if any variant of a schema might declare a property.
pub(in crate::normalise) fn may_declare<'a>(checker: &Checker<'a>, at: At<'a>, name: &str, depth: u32) -> bool {
    any_rules(checker, at, depth, &|_, rules| checker.knows(rules, name, &mut 0))
}

/// True if any variant of a schema might declare a property that may be `null`.
fn may_be_null<'a>(checker: &Checker<'a>, at: At<'a>, name: &str) -> bool {
    any_rules(checker, at, 0, &|at, rules| match rules.find(name, &mut 0) {
        Some(property) => checker.found(None, || checker.check(at.to(&property.node), &Value::Null, 1)) != Some(false),
        None => checker.knows(rules, name, &mut 0),
    })
}

/// True if something is true of the rules that any variant of a schema has for objects. If the steps ran out, it may be.
fn any_rules<'a>(checker: &Checker<'a>, at: At<'a>, depth: u32, is: &impl Fn(At<'a>, &'a ObjectRules) -> bool) -> bool {
    if depth >= MAX_COMBINED || !checker.budget.spend(1) {
        return true;
    }
    let any = |nodes: &'a [Node]| nodes.iter().any(|node| any_rules(checker, at.to(node), depth + 1, is));
    match &at.node.kind {
        Kind::Typed(typed) => typed.object.as_ref().is_some_and(|rules| is(at, rules)),
        Kind::Union(union) => any(&union.variants),
        Kind::Intersect(all) => any(&all.members),
        Kind::Ref(_) => checker.follow(at).is_some_and(|at| any_rules(checker, at, depth + 1, is)),
        _ => false,
    }
}

/// True if each variant of a schema that is for objects allows no other properties than those that it declares, if any.
pub(in crate::normalise) fn closes<'a>(checker: &Checker<'a>, at: At<'a>, depth: u32) -> bool {
    if depth >= MAX_COMBINED || !checker.budget.spend(1) {
        return false;
    }
    let closes = |node: &'a Node| closes(checker, at.to(node), depth + 1);
    let of_objects = |node: &&'a Node| checker.types(at.to(node), depth + 1).has(OBJECT);
    match &at.node.kind {
        Kind::Typed(typed) => typed.object.as_ref().is_some_and(|rules| {
            // Rules beside a union that declare nothing leave that to the variants.
            let says = !rules.properties.is_empty() || matches!(rules.additional, Additional::False);
            says && !rules.keeps_undeclared
        }),
        Kind::Union(union) => {
            let mut variants = union.variants.iter().filter(of_objects).peekable();
            variants.peek().is_some() && variants.all(closes)
        }
        Kind::Intersect(all) => all.members.iter().any(closes),
        Kind::Ref(_) => checker.follow(at).is_some_and(|at| super::common::closes(checker, at, depth + 1)),
        _ => false,
    }
}
