//! Facts about compiled schemas: which of them lead to each other, and how variants are distinguished.

use serde_json::Value;

use super::keyword::{ANY, Id, Keyword, Properties, Rules, Schema, Tag, Union, by_name};
use crate::normalise::node::{Literals, OBJECT};

/// How many references may lead to references.
const MAX_HOPS: usize = 32;
/// How many properties are tried as the tag of a union.
const MAX_CANDIDATES: usize = 8;

pub(super) fn finish(schemas: &mut [Schema], root: &mut Id, anchors: &[Vec<(u32, Id)>]) {
    // With dynamic names, a result depends on the way.
    if anchors.is_empty() {
        shorten(schemas, root);
    }
    count(schemas, *root);
    circles(schemas, anchors);
    for id in 0..schemas.len() {
        tag(schemas, id);
    }
}

fn rules(schemas: &[Schema], id: Id) -> Option<&Rules> {
    match schemas.get(id as usize) {
        Some(Schema::Rules(rules)) => Some(rules),
        _ => None,
    }
}

/// Shortens chains of references to their last target.
fn shorten(schemas: &mut [Schema], root: &mut Id) {
    let end = |mut id: Id| {
        for _ in 0..MAX_HOPS {
            match rules(schemas, id).map(|rules| rules.keywords.as_slice()) {
                Some([Keyword::Ref(next)]) if *next == id => return ANY,
                Some([Keyword::Ref(next)]) => id = *next,
                _ => break,
            }
        }
        id
    };
    let ends: Vec<Id> = (0..schemas.len()).map(|id| Id::try_from(id).map_or(ANY, end)).collect();
    let end = |id: &mut Id| *id = ends.get(*id as usize).copied().unwrap_or(*id);
    end(root);
    for schema in schemas {
        if let Schema::Rules(rules) = schema {
            rules.keywords.iter_mut().for_each(|keyword| keyword.each(|id, _| end(id)));
        }
    }
}

/// Finds schemas with several keywords leading to them, and those that may be visited again for what they evaluate.
fn count(schemas: &mut [Schema], root: Id) {
    let mut leads = vec![0u32; schemas.len()];
    let mut add = |id: Id, times: u32| {
        leads.iter_mut().skip(id as usize).take(1).for_each(|count| *count = count.saturating_add(times));
    };
    add(root, 1);
    for schema in schemas.iter_mut() {
        let Schema::Rules(rules) = schema else { continue };
        for keyword in &mut rules.keywords {
            let again =
                matches!(keyword, Keyword::Any(_) | Keyword::One(_) | Keyword::If { .. } | Keyword::DynamicRef { .. });
            keyword.each(|id, _| add(*id, if again { 2 } else { 1 }));
        }
    }
    for (schema, leads) in schemas.iter_mut().zip(leads) {
        if let Schema::Rules(rules) = schema {
            rules.is_shared = leads > 1;
        }
    }
}

/// Finds schemas that lead back to themselves for the same value: at least one in each cycle.
fn circles(schemas: &mut [Schema], anchors: &[Vec<(u32, Id)>]) {
    // Behind the schemas come the names of dynamic references: each leads to all its targets, and is led to by any number
    // of schemas.
    let count = schemas.len();
    let name = |number: u32| count + number as usize;
    let mut edges: Vec<Vec<usize>> = schemas
        .iter_mut()
        .map(|schema| {
            let mut edges = Vec::new();
            if let Schema::Rules(rules) = schema {
                for keyword in &mut rules.keywords {
                    keyword.each(|id, same| edges.extend(same.then_some(*id as usize)));
                    if let Keyword::DynamicRef { name: number, .. } = keyword {
                        edges.push(name(*number));
                    }
                }
            }
            edges
        })
        .collect();
    let names = anchors.iter().flatten().map(|(number, _)| *number as usize + 1).max().unwrap_or(0);
    edges.resize(count + names, Vec::new());
    for (number, id) in anchors.iter().flatten() {
        edges.iter_mut().skip(name(*number)).take(1).for_each(|edges| edges.push(*id as usize));
    }
    // 0: not seen, 1: on the way, 2: done.
    let mut state = vec![0u8; edges.len()];
    let set = |state: &mut Vec<u8>, id: usize, to: u8| state.iter_mut().skip(id).take(1).for_each(|at| *at = to);
    for start in 0..count {
        if state.get(start) != Some(&0) {
            continue;
        }
        let mut way = vec![(start, 0usize)];
        set(&mut state, start, 1);
        while let Some((at, edge)) = way.last_mut() {
            let Some(next) = edges.get(*at).and_then(|edges| edges.get(*edge)).copied() else {
                set(&mut state, *at, 2);
                way.pop();
                continue;
            };
            *edge += 1;
            match state.get(next) {
                Some(0) => {
                    set(&mut state, next, 1);
                    way.push((next, 0));
                }
                Some(1) => {
                    // Only schemas lead to names.
                    let in_cycle = if next < count { next } else { *at };
                    if let Some(Schema::Rules(rules)) = schemas.get_mut(in_cycle) {
                        rules.is_cyclic = true;
                    }
                }
                _ => {}
            }
        }
    }
}

/// Finds the tags of a schema's unions.
fn tag(schemas: &mut [Schema], id: usize) {
    let found: Vec<Option<Tag>> = match schemas.get(id) {
        Some(Schema::Rules(rules)) => rules.keywords.iter().map(|keyword| of_union(schemas, keyword)).collect(),
        _ => return,
    };
    if let Some(Schema::Rules(rules)) = schemas.get_mut(id) {
        for (keyword, tag) in rules.keywords.iter_mut().zip(found) {
            if let Keyword::Any(union) | Keyword::One(union) = keyword {
                union.tag = tag;
            }
        }
    }
}

fn of_union(schemas: &[Schema], keyword: &Keyword) -> Option<Tag> {
    let (Keyword::Any(Union { variants, .. }) | Keyword::One(Union { variants, .. })) = keyword else { return None };
    if variants.len() < 2 {
        return None;
    }
    let mut objects = Vec::new();
    for id in variants {
        let rules = target(schemas, *id)?;
        let refuses =
            rules.keywords.iter().any(|keyword| matches!(keyword, Keyword::Types(types) if !types.has(OBJECT)));
        if !refuses {
            objects.push((*id, rules));
        }
    }
    let (_, first) = objects.first()?;
    let has_constant = |(_, id): &&(Box<str>, Id)| literals(schemas, *id).is_some();
    let candidates = properties(first).flat_map(|properties| &properties.named).filter(has_constant);
    candidates.take(MAX_CANDIDATES).find_map(|(name, _)| {
        let mut tagged: Vec<(Box<str>, Id)> = Vec::new();
        for (id, rules) in &objects {
            let property = properties(rules).find_map(|properties| properties.find(name))?;
            let mut texts: Vec<&str> = literals(schemas, property)?.iter().map(Value::as_str).collect::<Option<_>>()?;
            // An enum may name a value twice, and `oneOf` counts the schemas that a value names.
            texts.sort_unstable();
            texts.dedup();
            tagged.extend(texts.into_iter().map(|text| (text.into(), *id)));
        }
        by_name(&mut tagged);
        Some(Tag { property: name.clone(), variants: tagged })
    })
}

/// The values that a schema allows.
fn literals(schemas: &[Schema], id: Id) -> Option<&Literals> {
    target(schemas, id)?.keywords.iter().find_map(|keyword| match keyword {
        Keyword::Literals(literals) => Some(literals),
        _ => None,
    })
}

/// The rules of a schema, behind references without other keywords.
fn target(schemas: &[Schema], id: Id) -> Option<&Rules> {
    let mut rules_of = rules(schemas, id)?;
    for _ in 0..MAX_HOPS {
        match rules_of.keywords.as_slice() {
            [Keyword::Ref(next)] => rules_of = rules(schemas, *next)?,
            _ => return Some(rules_of),
        }
    }
    None
}

fn properties(rules: &Rules) -> impl Iterator<Item = &Properties> {
    rules.keywords.iter().filter_map(|keyword| match keyword {
        Keyword::Properties(properties) => Some(&**properties),
        _ => None,
    })
}
