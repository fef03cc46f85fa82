//! Chains of types that are too long for rustc to prove `Send`.
//!
//! rustc proves that a type is `Send` field by field and stops 128 types deep. This code goes the same way: depth
//! first, in the order of the fields, through types that are not proved yet.

use ops_runtime::spec::Diagnostic;

use super::roots::Roots;
use crate::types::{ItemId, Shape, Type, Types};

/// How deep types may lead; a little less than rustc's limit, to leave room for the types around them.
const DEEPEST: usize = 112;

/// A visited type: its place and depth.
struct Step {
    item: ItemId,
    depth: usize,
}

/// Replaces types that are too deep by any JSON.
pub(crate) fn limit(types: &mut Types, roots: &mut Roots, diagnostics: &mut Vec<Diagnostic>) {
    let mut seen = vec![false; types.items.len()];
    for root in roots.types_mut() {
        let mut stack = Vec::new();
        cut(root, 0, &mut |item, depth| stack.push(Step { item, depth }));
        stack.reverse();
        while let Some(Step { item: id, depth }) = stack.pop() {
            match seen.get_mut(id) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            let Some(item) = types.items.get_mut(id) else { continue };
            let mut inner = Vec::new();
            let mut whole = true;
            // A property that may be absent is an `Option`.
            let optional = match &item.shape {
                Shape::Record(record) => record.fields.iter().map(|field| usize::from(!field.required)).collect(),
                _ => Vec::new(),
            };
            for (i, type_) in item.shape.types_mut().into_iter().enumerate() {
                let depth = depth + 1 + optional.get(i).copied().unwrap_or(0);
                whole &= cut(type_, depth, &mut |item, depth| inner.push(Step { item, depth }));
            }
            if !whole {
                let message = "the type leads to others in too long a chain";
                diagnostics.push(Diagnostic::warning(&item.pointer, message).with_help("its end is any JSON"));
            }
            stack.extend(inner.into_iter().rev());
        }
    }
}

/// Visits the named types inside and replaces those that are too deep; true if there were none.
fn cut(type_: &mut Type, depth: usize, visit: &mut impl FnMut(ItemId, usize)) -> bool {
    if depth > DEEPEST {
        let scalar = !matches!(
            type_,
            Type::List(_) | Type::Map(_) | Type::Tuple(_) | Type::Option(_) | Type::Named(_) | Type::Boxed(_)
        );
        if !scalar {
            *type_ = Type::Value;
        }
        return scalar;
    }
    match type_ {
        Type::Option(inner) => cut(inner, depth + 1, visit),
        // `Vec`, its buffer, and the buffer's marker of ownership; a map also has nodes.
        Type::List(inner) => cut(inner, depth + 3, visit),
        Type::Map(inner) => cut(inner, depth + 6, visit),
        Type::Tuple(items) => {
            let cuts = items.iter_mut().filter_map(|item| (!cut(item, depth + 1, visit)).then_some(()));
            cuts.count() == 0
        }
        Type::Named(id) => {
            visit(*id, depth);
            true
        }
        Type::Boxed(id) => {
            visit(*id, depth + 2);
            true
        }
        _ => true,
    }
}
