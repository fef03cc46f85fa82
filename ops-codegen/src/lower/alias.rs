//! Aliases of types: none may lead to itself, and chains of them are short.

use std::collections::HashSet;

use ops_runtime::spec::Diagnostic;

use super::recursion::{groups, on_cycle};
use crate::types::{Shape, Type, Types};

/// An alias cannot refer to itself: a list or a map becomes a type of its own, any other type becomes any JSON.
pub(super) fn break_aliases(types: &mut Types, diagnostics: &mut Vec<Diagnostic>) {
    loop {
        let alias = |id: &usize| matches!(types.get(*id).map(|item| &item.shape), Some(Shape::Alias(_)));
        let mut edges: Vec<Vec<usize>> = Vec::new();
        for item in &types.items {
            let mut named = Vec::new();
            if let Shape::Alias(type_) = &item.shape {
                type_.named(&mut named);
                named.retain(alias);
            }
            edges.push(named);
        }
        let groups = groups(&edges);
        let bad = |id: usize, edges: &[Vec<usize>]| {
            edges.get(id).is_some_and(|targets| targets.iter().any(|to| on_cycle(&groups, edges, id, *to)))
        };
        let is_open = |shape: &Shape| matches!(shape, Shape::Alias(Type::Map(_) | Type::List(_)));
        let cyclic: Vec<usize> = (0..types.items.len()).filter(|id| bad(*id, &edges)).collect();
        if cyclic.is_empty() {
            return;
        }
        let open = cyclic.iter().any(|id| types.get(*id).is_some_and(|item| is_open(&item.shape)));
        // If a group has an item that is more than a name, such as a tuple, its names refer to that item.
        let has_more = |id: &&usize| types.get(**id).is_none_or(|item| !is_name(&item.shape));
        let more: HashSet<Option<&usize>> = cyclic.iter().filter(has_more).map(|id| groups.get(*id)).collect();
        for id in cyclic {
            let Some(item) = types.items.get_mut(id) else { continue };
            if !open {
                let message = if more.contains(&groups.get(id)) {
                    "the definition is part of itself, in a tuple or beside `null`"
                } else {
                    "the definition refers to nothing but itself"
                };
                diagnostics.push(Diagnostic::warning(&item.pointer, message).with_help("typed as any JSON"));
                item.shape = Shape::Alias(Type::Value);
            } else if let Shape::Alias(type_ @ (Type::Map(_) | Type::List(_))) = &mut item.shape {
                item.shape = Shape::Newtype(std::mem::replace(type_, Type::Value));
            }
        }
    }
}

/// True if an alias is only another name of a type.
fn is_name(shape: &Shape) -> bool {
    match shape {
        Shape::Alias(Type::Option(inner)) => matches!(**inner, Type::Named(_)),
        Shape::Alias(type_) => matches!(type_, Type::Named(_)),
        _ => false,
    }
}

/// How many aliases may lead to each other; more distant ones are replaced by the end of the chain.
const ALIASES: usize = 8;

/// Shortens chains of aliases, so that looking a type up takes one step.
pub(super) fn shorten_aliases(types: &mut Types) {
    let next: Vec<Option<usize>> = types
        .items
        .iter()
        .map(|item| if let Shape::Alias(Type::Named(next)) = item.shape { Some(next) } else { None })
        .collect();
    // The end of each chain, and the distance to it.
    let mut ends: Vec<Option<(usize, usize)>> = vec![None; next.len()];
    for start in 0..next.len() {
        let (mut way, mut at) = (Vec::new(), start);
        let (end, mut length) = loop {
            match (ends.get(at).copied().flatten(), next.get(at).copied().flatten()) {
                (Some((end, length)), _) => break (end, length),
                // Cycles are broken already.
                (None, Some(to)) if way.len() <= next.len() => {
                    way.push(at);
                    at = to;
                }
                _ => break (at, 0),
            }
        };
        while let Some(id) = way.pop() {
            length += 1;
            if let Some(slot) = ends.get_mut(id) {
                *slot = Some((end, length));
            }
        }
    }
    for (item, end) in types.items.iter_mut().zip(ends) {
        if let (Some((end, length)), Shape::Alias(type_)) = (end, &mut item.shape)
            && length > ALIASES
        {
            *type_ = Type::Named(end);
        }
    }
}
