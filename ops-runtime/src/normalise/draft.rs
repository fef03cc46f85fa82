//! A schema of the default reading while its parts are being merged.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::equal::{copy, equal};
use super::node::{ARRAY, NUMBER, Node, OBJECT, STRING, Types};
use super::number::{Num, NumberRules};
use super::pattern::Pattern;
use super::reference::Raw;
use super::text::{Format, Matcher, StringRules, has_structure};

/// The conjunction of some schemas, keyword by keyword; the schemas inside it are not compiled yet.
#[derive(Debug, Default)]
pub(super) struct Draft<'s> {
    pub(super) never: bool,
    /// True if a part could not be resolved, so that its declarations are unknown.
    pub(super) unknown: bool,
    pub(super) types: Option<Types>,
    pub(super) literals: Option<Vec<Value>>,
    pub(super) number: NumberRules,
    pub(super) string: StringRules,
    pub(super) array: Option<ArrayDraft<'s>>,
    pub(super) object: Option<ObjectDraft<'s>>,
    pub(super) unions: Vec<Node>,
    pub(super) default: Option<Value>,
}

#[derive(Debug, Default)]
pub(super) struct ArrayDraft<'s> {
    pub(super) prefix: Vec<Vec<Raw<'s>>>,
    pub(super) rest: Extra<'s>,
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    pub(super) unique: bool,
    /// What is declared of items under a condition, which asks nothing of them here.
    pub(super) conditional: Vec<Raw<'s>>,
}

#[derive(Debug, Default)]
pub(super) struct ObjectDraft<'s> {
    pub(super) properties: Vec<(&'s str, Vec<Raw<'s>>)>,
    positions: HashMap<&'s str, usize>,
    pub(super) patterns: Vec<(&'s str, Raw<'s>)>,
    pub(super) required: Vec<&'s str>,
    pub(super) additional: Extra<'s>,
    /// What `unevaluatedProperties` says, until all parts of its schema are merged.
    unevaluated: Extra<'s>,
    /// True if `additionalProperties` itself says what other properties may be.
    pub(super) sealed: bool,
    /// Properties that are declared under a condition, which asks nothing of them here, with the schemas that may declare
    /// parts of them.
    pub(super) conditional: Vec<(&'s str, Option<Raw<'s>>)>,
    /// True if a condition may declare properties that are not among these.
    pub(super) hides: bool,
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
}

/// The schema of properties or items that nothing else describes.
#[derive(Clone, Debug, Default)]
pub(super) enum Extra<'s> {
    #[default]
    Unspecified,
    Any,
    Each(Vec<Raw<'s>>),
    Never,
}

impl<'s> Extra<'s> {
    fn read(raw: Raw<'s>, schema: &'s Value) -> Self {
        match schema {
            Value::Bool(true) => Extra::Any,
            Value::Bool(false) => Extra::Never,
            Value::Object(map) if map.is_empty() => Extra::Any,
            Value::Object(_) => Extra::Each(vec![raw.to(schema)]),
            _ => Extra::Unspecified,
        }
    }

    fn and(self, other: Extra<'s>) -> Self {
        match (self, other) {
            (Extra::Never, _) | (_, Extra::Never) => Extra::Never,
            (Extra::Each(mut a), Extra::Each(b)) => {
                a.extend(b);
                Extra::Each(a)
            }
            (Extra::Each(each), _) | (_, Extra::Each(each)) => Extra::Each(each),
            (Extra::Any, _) | (_, Extra::Any) => Extra::Any,
            _ => Extra::Unspecified,
        }
    }

    fn schemas(&self) -> &[Raw<'s>] {
        if let Extra::Each(schemas) = self { schemas } else { &[] }
    }
}

impl<'s> Draft<'s> {
    pub(super) fn never() -> Self {
        Draft { never: true, ..Draft::default() }
    }

    /// The keywords of one schema, without references and combinations.
    pub(super) fn read(raw: Raw<'s>, map: &'s Map<String, Value>) -> Self {
        Draft {
            types: types(map).or_else(|| inferred(map)),
            literals: literals(map),
            number: numbers(map),
            string: strings(map),
            array: ArrayDraft::read(raw, map),
            object: ObjectDraft::read(raw, map),
            default: map.get("default").and_then(copy),
            ..Draft::default()
        }
    }

    /// Drops the rules of other types: they ask nothing, and must not begin to if the node gets the types of other variants.
    pub(super) fn keep_only(&mut self, types: Types) {
        if !types.has(NUMBER) {
            self.number = NumberRules::default();
        }
        if !types.has(STRING) {
            self.string = StringRules::default();
        }
        self.array = self.array.take().filter(|_| types.has(ARRAY));
        self.object = self.object.take().filter(|_| types.has(OBJECT));
    }

    /// What merging another schema costs beyond the parts of both: schemas for the rest of a list become those of items,
    /// and values are compared.
    pub(super) fn growth(&self, other: &Draft<'s>) -> usize {
        let items = self.array.as_ref().zip(other.array.as_ref()).map_or(0, |(a, b)| {
            let (short, long) = if a.prefix.len() < b.prefix.len() { (a, b) } else { (b, a) };
            (long.prefix.len() - short.prefix.len()).saturating_mul(short.rest.schemas().len())
        });
        let values = |draft: &Draft<'s>| draft.literals.as_ref().map_or(0, Vec::len);
        items.saturating_add(values(self).saturating_mul(values(other)) / 64)
    }

    /// Adds another schema that must also hold; a default of `self` comes first.
    pub(super) fn and(&mut self, other: Draft<'s>) {
        self.never |= other.never;
        self.unknown |= other.unknown;
        self.types = match (self.types, other.types) {
            (Some(a), Some(b)) => Some(a.and(b)),
            (a, b) => a.or(b),
        };
        self.literals = match (self.literals.take(), other.literals) {
            (Some(mut a), Some(b)) => {
                a.retain(|value| b.iter().any(|other| equal(value, other)));
                Some(a)
            }
            (a, b) => a.or(b),
        };
        self.number.and(other.number);
        self.string.min = larger(self.string.min, other.string.min);
        self.string.max = smaller(self.string.max, other.string.max);
        self.string.patterns.extend(other.string.patterns);
        self.string.format = self.string.format.take().or(other.string.format);
        self.array = match (self.array.take(), other.array) {
            (Some(a), Some(b)) => Some(a.and(b)),
            (a, b) => a.or(b),
        };
        self.object = match (self.object.take(), other.object) {
            (Some(a), Some(b)) => Some(a.and(b)),
            (a, b) => a.or(b),
        };
        self.unions.extend(other.unions);
        self.default = self.default.take().or(other.default);
    }

    /// Lets `unevaluatedProperties` decide if no part of its schema says what other properties may be. To be called when all
    /// parts are merged: what one of them has accepted is evaluated.
    pub(super) fn settle(&mut self) {
        if let Some(object) = &mut self.object {
            let unevaluated = std::mem::take(&mut object.unevaluated);
            if let Extra::Unspecified = object.additional {
                object.additional = unevaluated;
            }
        }
    }
}

impl<'s> ArrayDraft<'s> {
    fn read(raw: Raw<'s>, map: &'s Map<String, Value>) -> Option<Self> {
        let mut draft = ArrayDraft {
            min: count(map, "minItems"),
            max: most(map, "maxItems"),
            unique: map.get("uniqueItems") == Some(&Value::Bool(true)),
            ..ArrayDraft::default()
        };
        let (prefix, rest) = match map.get("items") {
            // Up to draft 7 a tuple was a list in `items`.
            Some(Value::Array(items)) => (Some(items), map.get("additionalItems")),
            items => (map.get("prefixItems").and_then(Value::as_array), items),
        };
        draft.prefix = prefix.into_iter().flatten().map(|item| vec![raw.to(item)]).collect();
        draft.rest = rest.map_or(Extra::Unspecified, |rest| Extra::read(raw, rest));
        draft.is_ruled().then_some(draft)
    }

    /// True if it says anything beside what it declares under a condition.
    pub(super) fn is_ruled(&self) -> bool {
        !self.prefix.is_empty()
            || matches!(self.rest, Extra::Never | Extra::Each(_))
            || self.min.is_some()
            || self.max.is_some()
            || self.unique
    }

    fn and(mut self, mut other: ArrayDraft<'s>) -> Self {
        let length = self.prefix.len().max(other.prefix.len());
        for draft in [&mut self, &mut other] {
            if let Extra::Never = draft.rest {
                draft.max = smaller(draft.max, Some(draft.prefix.len() as u64));
            }
            if draft.prefix.len() < length {
                let rest = draft.rest.schemas().to_vec();
                draft.prefix.resize(length, rest);
            }
        }
        for (schemas, others) in self.prefix.iter_mut().zip(other.prefix) {
            schemas.extend(others);
        }
        self.rest = self.rest.and(other.rest);
        self.min = larger(self.min, other.min);
        self.max = smaller(self.max, other.max);
        self.unique |= other.unique;
        self.conditional.extend(other.conditional);
        self
    }
}

impl<'s> ObjectDraft<'s> {
    fn read(raw: Raw<'s>, map: &'s Map<String, Value>) -> Option<Self> {
        let mut draft =
            ObjectDraft { min: count(map, "minProperties"), max: most(map, "maxProperties"), ..ObjectDraft::default() };
        let object = |keyword| map.get(keyword).and_then(Value::as_object).into_iter().flatten();
        for (name, schema) in object("properties") {
            draft.property(name, &[raw.to(schema)]);
        }
        draft.patterns = object("patternProperties").map(|(name, schema)| (name.as_str(), raw.to(schema))).collect();
        if let Some(required) = map.get("required").and_then(Value::as_array) {
            draft.required = required.iter().filter_map(Value::as_str).collect();
        }
        let extra = |keyword: &str| map.get(keyword).map_or(Extra::Unspecified, |schema| Extra::read(raw, schema));
        draft.additional = extra("additionalProperties");
        draft.unevaluated = extra("unevaluatedProperties");
        draft.sealed = map.contains_key("additionalProperties");
        draft.is_ruled().then_some(draft)
    }

    /// True if it says anything beside what it declares under a condition.
    pub(super) fn is_ruled(&self) -> bool {
        !self.properties.is_empty()
            || !self.patterns.is_empty()
            || !self.required.is_empty()
            || !matches!((&self.additional, &self.unevaluated), (Extra::Unspecified, Extra::Unspecified))
            || self.min.is_some()
            || self.max.is_some()
    }

    fn property(&mut self, name: &'s str, schemas: &[Raw<'s>]) {
        let position = *self.positions.entry(name).or_insert_with(|| {
            self.properties.push((name, Vec::new()));
            self.properties.len() - 1
        });
        if let Some((_, known)) = self.properties.get_mut(position) {
            known.extend(schemas);
        }
    }

    fn and(mut self, other: ObjectDraft<'s>) -> Self {
        for (name, schemas) in &other.properties {
            self.property(name, schemas);
        }
        self.patterns.extend(other.patterns);
        self.required.extend(other.required);
        self.additional = self.additional.and(other.additional);
        self.sealed |= other.sealed;
        self.conditional.extend(other.conditional);
        self.hides |= other.hides;
        self.min = larger(self.min, other.min);
        self.max = smaller(self.max, other.max);
        self
    }
}

fn larger<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    a.into_iter().chain(b).max()
}

fn smaller<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    a.into_iter().chain(b).min()
}

/// A lower limit in a schema, written as `2` or `2.0`.
pub(super) fn count(map: &Map<String, Value>, keyword: &str) -> Option<u64> {
    limit(map, keyword, f64::ceil)
}

/// An upper limit in a schema.
pub(super) fn most(map: &Map<String, Value>, keyword: &str) -> Option<u64> {
    limit(map, keyword, f64::floor)
}

fn limit(map: &Map<String, Value>, keyword: &str, whole: impl FnOnce(f64) -> f64) -> Option<u64> {
    let number = map.get(keyword)?.as_number()?;
    number.as_u64().or_else(|| number.as_f64().filter(|float| *float >= 0.0).map(|float| whole(float) as u64))
}

pub(super) fn types(map: &Map<String, Value>) -> Option<Types> {
    match map.get("type")? {
        Value::String(name) => Types::named(name),
        Value::Array(names) => names
            .iter()
            .map(|name| name.as_str().and_then(Types::named))
            .try_fold(Types::NONE, |all, types| Some(all.or(types?)))
            .filter(|types| !types.is_none()),
        _ => None,
    }
}

/// Many documents leave out the `type` of an object or an array.
fn inferred(map: &Map<String, Value>) -> Option<Types> {
    let composed = ["type", "$ref", "allOf", "anyOf", "oneOf", "enum", "const", "not"];
    if composed.iter().any(|keyword| map.contains_key(*keyword)) {
        return None;
    }
    let filled = |keyword: &str| map.get(keyword).and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    match (filled("properties"), map.contains_key("items") || map.contains_key("prefixItems")) {
        (true, false) => Some(Types::one(OBJECT)),
        (false, true) => Some(Types::one(ARRAY)),
        _ => None,
    }
}

fn literals(map: &Map<String, Value>) -> Option<Vec<Value>> {
    let many = map.get("enum").and_then(Value::as_array).filter(|values| !values.is_empty());
    match map.get("const") {
        Some(value) if many.is_some_and(|values| !values.iter().any(|other| equal(other, value))) => Some(Vec::new()),
        Some(value) => Some(copy(value).into_iter().collect()),
        None => many.map(|values| values.iter().filter_map(copy).collect()),
    }
}

pub(super) fn numbers(map: &Map<String, Value>) -> NumberRules {
    let number = |keyword: &str| map.get(keyword).and_then(Num::from_value);
    let flag = |keyword: &str| map.get(keyword) == Some(&Value::Bool(true));
    let mut rules = NumberRules {
        minimum: number("minimum"),
        maximum: number("maximum"),
        above: number("exclusiveMinimum"),
        below: number("exclusiveMaximum"),
        multiple_of: number("multipleOf").into_iter().filter(|unit| unit.as_f64() > 0.0).collect(),
        exact: false,
    };
    // OpenAPI 3.0 kept draft 4's flags.
    if flag("exclusiveMinimum") {
        rules.above = rules.minimum.take();
    }
    if flag("exclusiveMaximum") {
        rules.below = rules.maximum.take();
    }
    rules
}

fn strings(map: &Map<String, Value>) -> StringRules {
    let length = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let text = |keyword: &str| map.get(keyword).and_then(Value::as_str);
    StringRules {
        min: count(map, "minLength").map(length),
        max: most(map, "maxLength").map(length),
        patterns: text("pattern").map(|source| Pattern::new(source, false)).into_iter().collect(),
        format: text("format")
            .filter(|name| has_structure(name))
            .map(|name| Format { name: name.into(), matcher: Matcher::Annotation }),
        ..StringRules::default()
    }
}
