//! Variants of a union that may take the same value, as far as their kinds, values and constant properties tell.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::merge::{Union, parts};
use super::view::{exclusive, expanded, kind, kind_of, label, resolve, values};
use crate::Definitions;

/// How many pairs of variants are compared. If there are more, some are assumed to take the same value.
const MOST: usize = 1_000_000;

/// A variant of a union. A variant that is a union itself has one member for each of its own variants, and a value that fits
/// several of these members fits the variant once.
pub(super) struct Member {
    /// The number of the union's variant.
    variant: usize,
    /// The number within that variant, if the variant is a `oneOf`: a value that fits two parts does not fit the variant.
    part: usize,
    /// The label of that variant.
    outer: String,
    label: String,
    /// `None` if that cannot be told.
    taken: Option<Taken>,
}

/// The values that a variant takes.
enum Taken {
    /// Only these values, as text, and their kinds.
    Values(HashSet<String>, HashSet<String>),
    /// All values of one kind. Objects come with the properties that must have certain values, and with these values.
    Kind(String, HashMap<String, HashSet<String>>),
}

impl Member {
    /// True if no value fits both, as far as that can be told.
    fn is_apart(&self, other: &Self) -> bool {
        self.taken.as_ref().zip(other.taken.as_ref()).is_some_and(|(own, others)| own.is_apart(others))
    }
}

impl Taken {
    fn is_apart(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Values(own, _), Self::Values(others, _)) => own.is_disjoint(others),
            (Self::Values(_, kinds), Self::Kind(kind, _)) | (Self::Kind(kind, _), Self::Values(_, kinds)) => {
                !kinds.contains(kind)
            }
            (Self::Kind(own, constants), Self::Kind(other, others)) => {
                let differs = |name: &String, values: &HashSet<String>| {
                    others.get(name).is_some_and(|others| values.is_disjoint(others))
                };
                own != other || constants.iter().any(|(name, values)| differs(name, values))
            }
        }
    }
}

/// The variants of a union.
pub(super) fn members(union: &Union, definitions: &Definitions, budget: &mut usize) -> Vec<Member> {
    let mut room = *budget;
    let mut members = Vec::new();
    for (number, variant) in union.variants.iter().enumerate() {
        let outer = label(variant);
        let own = exclusive(variant, definitions).filter(|_| room > 0).unwrap_or_else(|| vec![variant.clone()]);
        for (part, inner) in own.into_iter().enumerate() {
            for inner in expanded(inner, definitions, 0, &mut room) {
                let taken = taken(&inner, definitions, budget);
                members.push(Member { variant: number, part, outer: outer.clone(), label: label(&inner), taken });
            }
        }
    }
    *budget = budget.saturating_sub(members.len());
    members
}

/// True if no value fits two of the variants.
pub(super) fn are_apart(members: &[Member]) -> bool {
    let is_apart = |(at, one): (usize, &Member)| {
        members.iter().skip(at + 1).all(|other| one.variant == other.variant || one.is_apart(other))
    };
    members.len().saturating_pow(2) / 2 <= MOST && members.iter().enumerate().all(is_apart)
}

/// True if a value that fitted exactly one old variant may now fit a new one, too. Old variants that overlap among themselves
/// are skipped, because some of their values fitted several before.
///
/// `new` has the labels of new variants. `kept` has those of the union's own variants that were there before: these are not
/// new, even if another variant contains them, too.
pub(super) fn may_take_what_others_take(members: &[Member], new: &HashSet<String>, kept: &HashSet<String>) -> bool {
    let is_new = |member: &&Member| new.contains(&member.label) && !kept.contains(&member.outer);
    let (new, others): (Vec<&Member>, Vec<&Member>) = members.iter().partition(is_new);
    let is_apart =
        |one: &Member, other: &Member| (one.variant, one.part) == (other.variant, other.part) || one.is_apart(other);
    let are_many = |some: usize| some.saturating_mul(others.len()) > MOST;
    if are_many(new.len()) {
        return true;
    }
    let taken: Vec<&Member> =
        others.iter().copied().filter(|other| new.iter().any(|new| !is_apart(new, other))).collect();
    are_many(taken.len()) || taken.iter().any(|one| others.iter().all(|other| is_apart(one, other)))
}

/// The values that a variant takes; `None` if it is a union beside something else, or may take values of several kinds.
fn taken(variant: &Value, definitions: &Definitions, budget: &mut usize) -> Option<Taken> {
    let resolved = resolve(definitions, variant);
    let merged = parts(resolved.as_object()?, definitions, budget)?;
    if !merged.unions.is_empty() {
        return None;
    }
    let node: &Map<String, Value> = &merged.node;
    if let Some(values) = values(node) {
        let kinds = values.iter().map(|value| of_numbers(kind_of(value)).to_owned());
        return Some(Taken::Values(values.iter().map(constant).collect(), kinds.collect()));
    }
    let kind = kind(node);
    if kind == "any" || node.get("type").is_some_and(Value::is_array) {
        return None;
    }
    let constants = if kind == "object" { constants(node) } else { HashMap::new() };
    Some(Taken::Kind(of_numbers(kind).to_owned(), constants))
}

/// The properties that an object requires and that have only certain values, with these values.
fn constants(node: &Map<String, Value>) -> HashMap<String, HashSet<String>> {
    let properties = node.get("properties").and_then(Value::as_object);
    let required = node.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let constants = required.filter_map(|name| {
        let values = values(properties?.get(name)?.as_object()?)?;
        Some((name.to_owned(), values.iter().map(constant).collect()))
    });
    constants.collect()
}

/// A value as text. Equal values, such as `1` and `1.0`, have the same text.
fn constant(value: &Value) -> String {
    value.as_f64().map_or_else(|| value.to_string(), |number| number.to_string())
}

/// The kind, with integers as numbers.
fn of_numbers(kind: &str) -> &str {
    if kind == "integer" { "number" } else { kind }
}
