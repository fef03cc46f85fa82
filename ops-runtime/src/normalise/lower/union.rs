//! Unions: kept apart where they have to be, one node where a single node can express them.

use std::collections::HashMap;

use serde_json::Value;

use crate::normalise::node::{Kind, NULL, Node, Tag, Types, Union};

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

/// OpenAPI's discriminator: the values of a property that name each variant.
pub(super) fn discriminator(variants: &[Value], tag: &Value) -> Option<Tag> {
    let property = tag.get("propertyName")?.as_str()?;
    let last = |reference: &str| reference.rsplit('/').next().unwrap_or(reference).to_owned();
    let names: Vec<Option<String>> =
        variants.iter().map(|variant| variant.get("$ref").and_then(Value::as_str).map(last)).collect();
    let mut values: HashMap<String, u32> = HashMap::new();
    for (index, name) in (0u32..).zip(&names) {
        if let Some(name) = name {
            values.entry(crate::pointer::unescaped(name).into_owned()).or_insert(index);
        }
    }
    for (value, target) in tag.get("mapping").and_then(Value::as_object).into_iter().flatten() {
        let target = target.as_str().map(last);
        if let Some(index) = (0u32..).zip(&names).find(|(_, name)| name.is_some() && **name == target) {
            values.insert(value.clone(), index.0);
        }
    }
    let otherwise = tag.get("defaultMapping").and_then(Value::as_str).map(last);
    let otherwise = (0u32..).zip(&names).find(|(_, name)| name.is_some() && **name == otherwise);
    (!values.is_empty()).then(|| Tag {
        otherwise: otherwise.map(|(index, _)| index),
        ..Tag::new(property, values.into_iter().map(|(value, index)| (value.into(), index)).collect())
    })
}
