//! Cycles: groups of items that reach each other, found without recursion.

use crate::types::{ItemId, Shape, Type, Types};

/// The group of each node; nodes that reach each other are in one group (Tarjan's algorithm with its own stack).
pub(crate) fn groups(edges: &[Vec<usize>]) -> Vec<usize> {
    const NEW: usize = usize::MAX;
    let mut order = vec![NEW; edges.len()];
    let mut low = vec![NEW; edges.len()];
    let mut group = vec![NEW; edges.len()];
    let (mut count, mut stack) = (0, Vec::new());
    for start in 0..edges.len() {
        if order.get(start) != Some(&NEW) {
            continue;
        }
        let mut work = vec![(start, 0)];
        while let Some((node, next)) = work.pop() {
            if next == 0 {
                set(&mut order, node, count);
                set(&mut low, node, count);
                count += 1;
                stack.push(node);
            }
            let target = edges.get(node).and_then(|targets| targets.get(next)).copied();
            if let Some(target) = target {
                work.push((node, next + 1));
                if at(&order, target) == NEW {
                    work.push((target, 0));
                } else if at(&group, target) == NEW {
                    let lower = at(&low, node).min(at(&order, target));
                    set(&mut low, node, lower);
                }
                continue;
            }
            if at(&low, node) == at(&order, node) {
                while let Some(member) = stack.pop() {
                    set(&mut group, member, node);
                    if member == node {
                        break;
                    }
                }
            }
            if let Some((parent, _)) = work.last() {
                let lower = at(&low, *parent).min(at(&low, node));
                set(&mut low, *parent, lower);
            }
        }
    }
    group
}

fn at(list: &[usize], i: usize) -> usize {
    list.get(i).copied().unwrap_or(usize::MAX)
}

fn set(list: &mut [usize], i: usize, value: usize) {
    if let Some(slot) = list.get_mut(i) {
        *slot = value;
    }
}

/// True if an edge lies on a cycle.
pub(crate) fn on_cycle(groups: &[usize], edges: &[Vec<usize>], from: ItemId, to: ItemId) -> bool {
    groups.get(from) == groups.get(to) && (from != to || edges.get(from).is_some_and(|targets| targets.contains(&to)))
}

/// Puts a pointer wherever a type would contain itself.
///
/// The variants of unions need no pointers, as no cycle has only unions, but for what a tuple in them holds.
pub(crate) fn insert_pointers(types: &mut Types) {
    let mut edges: Vec<Vec<usize>> = Vec::new();
    for item in &mut types.items {
        let held = item.shape.types_mut().into_iter().flat_map(Type::held);
        edges.push(held.filter_map(|type_| if let Type::Named(id) = type_ { Some(*id) } else { None }).collect());
    }
    let groups = groups(&edges);
    // A pointer inside an alias serves all its users, unless the alias is only another name.
    let renames: Vec<bool> =
        types.items.iter().map(|item| matches!(item.shape, Shape::Alias(Type::Named(_)))).collect();
    let aliases: Vec<bool> = types.items.iter().map(|item| matches!(item.shape, Shape::Alias(_))).collect();
    for (from, item) in types.items.iter_mut().enumerate() {
        let held: fn(&mut Type) -> Vec<&mut Type> = match &item.shape {
            Shape::Record(_) => Type::held,
            Shape::Alias(type_) if !matches!(type_, Type::Named(_)) => Type::held,
            Shape::Union(_) | Shape::Tagged(_) => Type::held_in_tuples,
            _ => continue,
        };
        for type_ in item.shape.types_mut().into_iter().flat_map(held) {
            let Type::Named(to) = *type_ else { continue };
            let served = aliases.get(to) == Some(&true) && renames.get(to) == Some(&false);
            if !served && on_cycle(&groups, &edges, from, to) {
                *type_ = Type::Boxed(to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_cycles() {
        let edges = vec![vec![1], vec![2], vec![0], vec![0], vec![4], vec![]];
        let groups = groups(&edges);
        assert!(groups[0] == groups[1] && groups[1] == groups[2]);
        assert_ne!(groups[3], groups[0]);
        assert!(on_cycle(&groups, &edges, 4, 4) && !on_cycle(&groups, &edges, 5, 5));
        assert!(on_cycle(&groups, &edges, 0, 1) && !on_cycle(&groups, &edges, 3, 0));
    }

    #[test]
    fn long_chains_need_no_stack() {
        let edges: Vec<Vec<usize>> = (0..200_000).map(|i| vec![(i + 1) % 200_000]).collect();
        let groups = groups(&edges);
        assert!(groups.iter().all(|group| *group == groups[0]));
    }
}
