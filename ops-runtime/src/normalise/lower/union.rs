//! Unions: kept apart where they have to be, one node where a single node can express them.

use std::collections::HashMap;

use serde_json::Value;

use crate::normalise::node::{Discriminator, Kind, NULL, Node, Types, Union};

/// The node or null.
pub(super) fn nullable(mut node: Node) -> Node {
    let null = Types::one(NULL);
    match &mut node.kind {
        Kind::Any => {}
        Kind::Never => node.kind = Kind::Plain(null),
        Kind::Plain(types) => *types = types.or(null),
        Kind::Typed(typed) => typed.types = typed.types.or(null),
        Kind::Literals(values) if values.contains(&Value::Null) => {}
        Kind::Literals(values) => {
            node.kind = Kind::Literals(values.iter().cloned().chain([Value::Null]).collect());
        }
        Kind::Union(_) | Kind::Intersect(_) | Kind::Ref(_) => {
            let default = node.default.take();
            let variants = vec![node, Node::new(Kind::Plain(null), None)];
            node = Node { kind: Kind::Union(Box::new(Union::new(variants))), default };
        }
    }
    node
}

/// True if the node itself can state its types.
pub(super) fn can_narrow(node: &Node) -> bool {
    matches!(node.kind, Kind::Plain(_) | Kind::Typed(_) | Kind::Union(_))
}

/// Restricts a node to some types.
pub(super) fn narrow(node: &mut Node, allowed: Types) {
    match &mut node.kind {
        Kind::Plain(types) => *types = types.and(allowed),
        Kind::Typed(typed) => typed.types = typed.types.and(allowed),
        Kind::Union(union) => union.types = union.types.and(allowed),
        _ => {}
    }
}

/// One node for a union whose variants a single node can express: scalars, or one schema and other types.
pub(super) fn merge_variants(mut variants: Vec<Node>) -> Node {
    if variants.len() == 1
        && let Some(node) = variants.pop()
    {
        return node;
    }
    let plain = |node: &Node| matches!(node.kind, Kind::Plain(_)) && node.default.is_none();
    let mut ruled = variants.iter().filter(|node| !plain(node));
    let (first, second) = (ruled.next(), ruled.next());
    let others = variants.iter().filter(|node| plain(node)).fold(Types::NONE, |all, node| all.or(node.types()));
    let all = variants.iter().fold(Types::NONE, |all, node| all.or(node.types()));
    let mergeable = match first {
        None => true,
        Some(node) => {
            let disjoint = node.default.is_none() && second.is_none() && !node.types().meets(others);
            disjoint
                && (matches!(node.kind, Kind::Typed(_))
                    || matches!(node.kind, Kind::Literals(_)) && others == Types::one(NULL))
        }
    };
    if !mergeable {
        return Node::new(Kind::Union(Box::new(Union::new(variants))), None);
    }
    match variants.into_iter().find(|node| !plain(node)) {
        None => Node::new(Kind::Plain(all), None),
        Some(mut node) => {
            if let Kind::Typed(typed) = &mut node.kind {
                typed.types = all;
                node
            } else {
                nullable(node)
            }
        }
    }
}

/// OpenAPI's discriminator: what its mapping, and the names of the variants, say about the values of a property.
pub(super) fn discriminator(variants: &[Value], tag: &Value) -> Option<Discriminator> {
    let property = tag.get("propertyName")?.as_str()?;
    let last = |reference: &str| reference.rsplit('/').next().unwrap_or(reference).to_owned();
    let name = |variant: &Value| variant.get("$ref").and_then(Value::as_str).map(last);
    let named: Vec<(String, u32)> =
        variants.iter().zip(0u32..).filter_map(|(variant, index)| Some((name(variant)?, index))).collect();
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    for (name, index) in &named {
        numbers.entry(name).or_insert(*index);
    }
    let number = |target: &Value| numbers.get(last(target.as_str()?).as_str()).copied();
    let mapping = tag.get("mapping").and_then(Value::as_object).into_iter().flatten();
    let mapping = mapping.filter_map(|(value, target)| Some((value.as_str().into(), number(target)?))).collect();
    let names = named.iter().map(|(name, index)| (crate::pointer::unescaped(name).into(), *index)).collect();
    let otherwise = tag.get("defaultMapping").and_then(number);
    (!named.is_empty()).then(|| Discriminator { property: property.into(), mapping, names, otherwise })
}
