//! Circles in a graph.

use std::collections::{BTreeMap, BTreeSet};

/// The circles of more than one: sets of places each of which leads to all others, in the order of their names.
pub(crate) fn circles(arrows: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        arrows.keys().map(|from| (from, reached_from(from, arrows))).collect();
    let leads = |from: &String, to: &String| reached.get(from).is_some_and(|reached| reached.contains(to));
    let mut done: BTreeSet<&String> = BTreeSet::new();
    let mut found = Vec::new();
    for from in arrows.keys() {
        if !done.contains(from) {
            let circle: BTreeSet<&String> = reached[from].iter().copied().filter(|to| leads(to, from)).collect();
            done.extend(&circle);
            if circle.len() > 1 {
                found.push(circle.into_iter().cloned().collect());
            }
        }
    }
    found
}

fn reached_from<'a>(from: &'a String, arrows: &'a BTreeMap<String, BTreeSet<String>>) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(next) = open.pop() {
        open.extend(arrows.get(next).into_iter().flatten().filter(|to| reached.insert(*to)));
    }
    reached
}
