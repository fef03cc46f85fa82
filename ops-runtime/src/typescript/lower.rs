//! Schemas to types.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::doc;
use super::scope::{Scope, Side};
use super::text;
use super::tree::{Doc, MAX_UNION, Object, Property, Type, WEIGHT};
use crate::model::keywords::certain;
use crate::pointer;

/// What is nested deeper is `unknown`.
const DEPTH: usize = 100;

/// So many references are followed to find a property.
const HOPS: usize = 16;

/// So many schemas are looked at to tell how large a union is.
const BUDGET: usize = 1_000;

/// A tuple of more items is a list.
const MAX_TUPLE: usize = 64;

/// Makes types from the schemas of one table.
pub(super) struct Lower<'s, 'a> {
    scope: &'s mut Scope<'a>,
    table: usize,
    side: Side,
    depth: usize,
    /// True if the next schema is a part of another, which may name the type of both.
    is_part: bool,
}

type Node = Map<String, Value>;

/// The values of a discriminator, by the references of the variants that they stand for.
struct Tags<'n> {
    property: &'n str,
    values: HashMap<String, Vec<&'n str>>,
    /// The references for which they were told.
    told: HashSet<String>,
}

impl<'n> Tags<'n> {
    /// Reads the discriminator of a union; `None` if it has none.
    fn of(node: &'n Node) -> Option<Self> {
        let discriminator = node.get("discriminator")?;
        let property = discriminator.get("propertyName")?.as_str()?;
        let mut values: HashMap<String, Vec<&str>> = HashMap::new();
        let mapping = discriminator.get("mapping").and_then(Value::as_object);
        for (value, to) in mapping.into_iter().flatten() {
            let Some(to) = to.as_str() else { continue };
            // Either a reference, or the name of a definition.
            values.entry(to.to_owned()).or_default().push(value);
            values.entry(pointer::reference(to)).or_default().push(value);
        }
        Some(Self { property, values, told: HashSet::new() })
    }
}

/// What a value may be besides one of a type, to which alone some keywords mean something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Other {
    Nothing,
    Null,
    Any,
}

impl Other {
    /// By the types that a schema names; `None` if it names none.
    fn named(node: &Node, kind: &str) -> Option<Self> {
        let of = |named: &Value| match named.as_str() {
            Some("null") => Self::Null,
            Some(named) if named == kind => Self::Nothing,
            _ => Self::Any,
        };
        match node.get("type")? {
            Value::Array(named) => Some(named.iter().map(of).max().unwrap_or(Self::Nothing)),
            named @ Value::String(_) => Some(of(named)),
            _ => None,
        }
    }
}

/// A property that a schema describes.
enum Found {
    Of(Type),
    /// It is not for this side.
    Omitted,
}

impl<'s, 'a> Lower<'s, 'a> {
    pub(super) fn new(scope: &'s mut Scope<'a>, table: usize, side: Side) -> Self {
        Self { scope, table, side, depth: 0, is_part: false }
    }

    /// The type of the values that a schema accepts, or a wider one.
    pub(super) fn schema(&mut self, schema: &Value) -> Type {
        let is_part = std::mem::take(&mut self.is_part);
        if self.depth >= DEPTH {
            return Type::Unknown;
        }
        self.depth += 1;
        let type_ = match schema {
            Value::Object(node) => self.node(node, is_part),
            Value::Bool(false) => Type::Never,
            _ => Type::Unknown,
        };
        self.depth -= 1;
        type_
    }

    /// The type of the values of a property.
    fn value(&mut self, schema: &Value) -> Type {
        let outer = self.side;
        self.side = outer.within();
        let type_ = self.schema(schema);
        self.side = outer;
        type_
    }

    fn node(&mut self, node: &Node, is_part: bool) -> Type {
        let mut parts = Vec::new();
        if let Some(reference) = node.get("$ref").and_then(Value::as_str) {
            parts.push(self.reference(reference));
        }
        match values(node) {
            Some(values) => parts.push(values),
            None => parts.push(self.kinds(node, is_part)),
        }
        // Beside variants, this means that there may be no value.
        let is_null = parts.last() == Some(&Type::Null) && ["anyOf", "oneOf"].iter().any(|key| node.contains_key(*key));
        if is_null {
            parts.pop();
        }
        // Unions that are joined are multiplied out by the compiler, which refuses too many. Those that would be too many with
        // the ones before them are left out.
        let is_joined = ["allOf", "anyOf", "oneOf"].iter().any(|keyword| node.contains_key(*keyword));
        let reference = node.get("$ref").filter(|_| is_joined);
        let mut size = reference.map_or(1, |_| self.size(node, 0, &mut BUDGET.clone()));
        for part in list(node, "allOf") {
            let own = part.as_object().map_or(1, |part| self.size(part, 0, &mut BUDGET.clone()));
            let joined = size.saturating_mul(own);
            if own > 1 && size > 1 && joined > MAX_UNION {
                continue;
            }
            size = joined;
            self.is_part = true;
            parts.push(self.schema(part));
        }
        let mut tags = Tags::of(node);
        for keyword in ["anyOf", "oneOf"] {
            let is_alone = size == 1 || list(node, keyword).count().saturating_mul(size) <= MAX_UNION;
            if node.get(keyword).is_some_and(Value::is_array) && is_alone {
                let mut seen = HashSet::new();
                let different = list(node, keyword).filter(|variant| mere(variant).is_none_or(|to| seen.insert(to)));
                let variants: Vec<Type> = different.map(|variant| self.variant(variant, tags.as_mut())).collect();
                parts.push(Type::union(variants));
            }
        }
        // Names of properties mean nothing to values that are no objects.
        if is_joined && parts.iter().any(Type::is_untyped) {
            match Other::named(node, "object").unwrap_or_else(|| self.others(node, "object", 0)) {
                Other::Nothing => {}
                Other::Null => {
                    for part in parts.iter_mut().filter(|part| part.is_untyped()) {
                        *part = Type::union([std::mem::replace(part, Type::Never), Type::Null]);
                    }
                }
                Other::Any => parts.retain(|part| !part.is_untyped()),
            }
        }
        let type_ = Type::intersection(parts);
        let is_nullable = is_null || node.get("nullable") == Some(&Value::Bool(true));
        if is_nullable { Type::union([type_, Type::Null]) } else { type_ }
    }

    fn reference(&mut self, reference: &str) -> Type {
        if let Some(number) = self.scope.named(self.table, reference, self.side) {
            return Type::Named(number);
        }
        // A reference into a definition; one that leads back to itself ends at the greatest depth.
        match self.scope.target(self.table, reference) {
            // Its type is made again for each reference.
            Some(held) if self.scope.budget.affords(held.value()) => {
                self.depth += 8;
                let type_ = self.schema(held.value());
                self.depth -= 8;
                type_
            }
            _ => Type::Unknown,
        }
    }

    /// How many types there are if all unions are multiplied out, roughly: the budget ends the count.
    fn size(&self, node: &Node, depth: usize, budget: &mut usize) -> usize {
        if depth > HOPS || *budget == 0 {
            return 1;
        }
        *budget -= 1;
        let may_look = self.scope.budget.looks(1);
        if !is_composed(node) {
            return 1;
        }
        // What is not counted is taken for too large.
        if !may_look {
            return MAX_UNION + 1;
        }
        let mut of = |schema: &Value| schema.as_object().map_or(1, |node| self.size(node, depth + 1, budget));
        let mut size = list(node, "allOf").take(BUDGET).fold(1_usize, |product, part| product.saturating_mul(of(part)));
        let target = node.get("$ref").and_then(Value::as_str).and_then(|target| self.scope.target(self.table, target));
        size = size.saturating_mul(target.map_or(1, |held| of(held.value())));
        for keyword in ["anyOf", "oneOf"] {
            let sum =
                list(node, keyword).take(MAX_UNION + 1).fold(0_usize, |sum, variant| sum.saturating_add(of(variant)));
            size = size.saturating_mul(sum.max(1));
        }
        size
    }

    /// A variant of a union, with the value of the discriminator that stands for it.
    fn variant(&mut self, variant: &Value, tags: Option<&mut Tags<'_>>) -> Type {
        self.is_part = true;
        let type_ = self.schema(variant);
        let target = variant.get("$ref").and_then(Value::as_str);
        let (Some(tags), Some(target)) = (tags, target) else { return type_ };
        let tag = tags.property;
        let listed = tags.values.get(target);
        let found = self.property(variant, tag, 0);
        let other = self.others(&Map::from_iter([("$ref".to_owned(), target.into())]), "object", 0);
        let is_open = match found {
            // Values that the variant itself lists are not others.
            Some(Found::Of(found)) => found == Type::String && listed.is_some(),
            Some(Found::Omitted) => false,
            None => other != Other::Any,
        };
        if !is_open {
            return type_;
        }
        // Unlisted values are any text. So are those of many variants that refer to the same schema: each would have them all.
        let told = match listed {
            Some(values)
                if tags.told.insert(target.to_owned())
                    || self.scope.budget.looks(values.len().saturating_mul(WEIGHT)) =>
            {
                Type::union(values.iter().map(|value| Type::Literal(text::literal(value))))
            }
            _ => Type::String,
        };
        let tag = Property { name: tag.to_owned(), is_optional: true, type_: told, doc: Doc::default() };
        let tag = Type::Object(Object { properties: vec![tag], ..Object::default() });
        let null = (other == Other::Null).then_some(Type::Null);
        Type::intersection([type_, Type::union([tag].into_iter().chain(null))])
    }

    /// The type of a property, wherever a schema describes it.
    fn property(&mut self, schema: &Value, name: &str, hops: usize) -> Option<Found> {
        if hops > HOPS || !self.scope.budget.looks(1) {
            return None;
        }
        if let Some(property) = schema.get("properties").and_then(|all| all.get(name)) {
            if self.is_omitted(property, 0) {
                return Some(Found::Omitted);
            }
            // Its type is made where it is described, too. If such types nest, that doubles the work at each level.
            let type_ = if self.scope.budget.affords(property) { self.value(property) } else { Type::Unknown };
            return Some(Found::Of(type_));
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str)
            && let Some(held) = self.scope.target(self.table, target)
            && let Some(found) = self.property(held.value(), name, hops + 1)
        {
            return Some(found);
        }
        list(schema.as_object()?, "allOf").take(HOPS).find_map(|part| self.property(part, name, hops + 4))
    }

    /// The types that `type` names, or those that the keywords are for.
    fn kinds(&mut self, node: &Node, is_part: bool) -> Type {
        let named: Vec<&str> = match node.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if named.is_empty() {
            let has = |keywords: &[&str]| keywords.iter().any(|keyword| node.contains_key(*keyword));
            // By itself, a list of names says little of a type.
            let names = is_part || is_composed(node);
            let is_object = has(&["properties", "additionalProperties", "patternProperties"]);
            let kind = if is_object || names && has(&["required"]) {
                "object"
            } else if has(&["items", "prefixItems"]) {
                "array"
            } else {
                return Type::Unknown;
            };
            // What else the schema says may be for values of other types as well, to which the keywords mean nothing.
            return match self.others(node, kind, 0) {
                Other::Nothing => self.kind(kind, node),
                Other::Null => Type::union([self.kind(kind, node), Type::Null]),
                Other::Any => Type::Unknown,
            };
        }
        let kinds: Vec<Type> = named.into_iter().map(|kind| self.kind(kind, node)).collect();
        Type::union(kinds)
    }

    /// What a value may be by what stands beside the keywords for one type.
    fn others(&self, node: &Node, kind: &str, hops: usize) -> Other {
        let may_look = self.scope.budget.looks(1);
        if !is_composed(node) {
            return Other::Nothing;
        }
        if !may_look {
            return Other::Any;
        }
        let of = |schema: &Value| match schema.as_object() {
            Some(node) => Other::named(node, kind).unwrap_or_else(|| match hops < HOPS {
                true => self.others(node, kind, hops + 4),
                false => Other::Nothing,
            }),
            None => Other::Nothing,
        };
        let target = node.get("$ref").and_then(Value::as_str).and_then(|target| self.scope.target(self.table, target));
        let mut found = target.map_or(Other::Nothing, |held| of(held.value()));
        for part in ["allOf", "anyOf", "oneOf"].iter().flat_map(|keyword| list(node, keyword).take(100)) {
            if found == Other::Any {
                break;
            }
            found = found.max(of(part));
        }
        found
    }

    fn kind(&mut self, kind: &str, node: &Node) -> Type {
        match kind {
            "object" => self.object(node),
            "array" => self.array(node),
            "string" => Type::String,
            "number" | "integer" => Type::Number,
            "boolean" => Type::Boolean,
            "null" => Type::Null,
            _ => Type::Unknown,
        }
    }

    fn object(&mut self, node: &Node) -> Type {
        let required: HashSet<&str> = list(node, "required").filter_map(Value::as_str).collect();
        let described = node.get("properties").and_then(Value::as_object);
        let mut properties = Vec::new();
        for (name, schema) in described.into_iter().flatten() {
            if self.is_omitted(schema, 0) {
                continue;
            }
            properties.push(Property {
                name: name.clone(),
                is_optional: !required.contains(name.as_str()),
                type_: self.value(schema),
                doc: doc::of(schema),
            });
        }
        let patterns = node.get("patternProperties").and_then(Value::as_object);
        let patterns: Vec<&Value> = patterns.into_iter().flat_map(|patterns| patterns.values()).collect();
        let additional = node.get("additionalProperties");
        let others = match additional {
            Some(Value::Bool(false)) | None if patterns.is_empty() => None,
            additional => {
                let described = additional.filter(|schema| **schema != Value::Bool(false));
                let types: Vec<Type> = patterns.into_iter().chain(described).map(|schema| self.value(schema)).collect();
                Some(Type::union(types))
            }
        };
        // Names that match no pattern may be anything.
        let is_open = additional.is_none() && others.is_some();
        let repeated = others.as_ref().filter(|_| !is_open).map(|type_| (type_, type_.weight()));
        // Required properties without a description: they are described in another place, or have the type of all
        // others.
        let reference = node.get("$ref").map(|reference| serde_json::json!({ "$ref": reference }));
        let mut seen = HashSet::new();
        for name in list(node, "required").filter_map(Value::as_str) {
            if described.is_some_and(|all| all.contains_key(name)) || !seen.insert(name) {
                continue;
            }
            let mut aside = reference.iter().chain(list(node, "allOf").take(HOPS));
            let found = aside.find_map(|part| self.property(part, name, 1));
            let type_ = match found {
                Some(Found::Omitted) => continue,
                Some(Found::Of(type_)) => type_,
                // The type is made again for each name.
                None => match repeated {
                    Some((type_, weight)) if self.scope.budget.looks(weight) => type_.clone(),
                    _ => Type::Unknown,
                },
            };
            properties.push(Property { name: name.to_owned(), is_optional: false, type_, doc: Doc::default() });
        }
        if properties.is_empty() && others.is_none() {
            return match (additional, described) {
                // Nothing is allowed; or all that is described is for the other side.
                (Some(_), _) => Type::Object(Object { properties, others: Some(Box::new(Type::Never)), is_open }),
                _ => Type::bare_object(),
            };
        }
        Type::Object(Object { properties, others: others.map(Box::new), is_open })
    }

    /// True if a property is not for this side: it says so, or what it refers to and is part of does, null aside.
    fn is_omitted(&self, property: &Value, hops: usize) -> bool {
        if self.side.omits(property) {
            return true;
        }
        let is_more = property.as_object().is_some_and(is_composed);
        if !is_more || hops > HOPS || !self.scope.budget.looks(1) {
            return false;
        }
        let target = property.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|target| self.scope.target(self.table, target));
        target.is_some_and(|held| self.is_omitted(held.value(), hops + 4))
            || certain(property).take(HOPS).any(|part| self.is_omitted(part, hops + 4))
    }

    fn array(&mut self, node: &Node) -> Type {
        let (tuple, rest) = match (node.get("prefixItems"), node.get("items")) {
            (Some(Value::Array(items)), rest) => (items.as_slice(), rest),
            // As drafts before 2020-12 write tuples.
            (None, Some(Value::Array(items))) => (items.as_slice(), node.get("additionalItems")),
            (_, rest) => (&[][..], rest),
        };
        let rest = rest.map_or(Type::Unknown, |rest| self.schema(rest));
        if tuple.is_empty() {
            return Type::Array(Box::new(rest));
        }
        let items: Vec<Type> = tuple.iter().take(MAX_TUPLE + 1).map(|item| self.schema(item)).collect();
        if items.len() > MAX_TUPLE {
            return Type::Array(Box::new(Type::Unknown));
        }
        let least = node.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let least = usize::try_from(least).unwrap_or(usize::MAX).min(items.len());
        let rest = (rest != Type::Never).then(|| Box::new(rest));
        Type::Tuple(items, least, rest)
    }
}

/// The type of the values that a schema lists; `None` if it lists none.
fn values(node: &Node) -> Option<Type> {
    if let Some(value) = node.get("const") {
        return Some(literal(value));
    }
    let all = node.get("enum")?.as_array()?;
    let fits = |value: &&Value| is_of(value, node.get("type"));
    let fitting: Vec<Type> = all.iter().filter(fits).map(literal).collect();
    // Of values that are all of another type, the type is the mistake.
    Some(Type::union(if fitting.is_empty() { all.iter().map(literal).collect() } else { fitting }))
}

fn literal(value: &Value) -> Type {
    match value {
        Value::Null => Type::Null,
        // A number beyond those of JavaScript is written as the nearest.
        Value::Number(number) if number.as_f64().is_none_or(|number| !number.is_finite()) => Type::Number,
        value => Type::Literal(text::constant(value)),
    }
}

/// True if a value is of a type, or of one of several; of none, any is.
fn is_of(value: &Value, kind: Option<&Value>) -> bool {
    let is_one = |kind: &Value| {
        let kind = kind.as_str().unwrap_or_default();
        match value {
            Value::Null => kind == "null",
            Value::Bool(_) => kind == "boolean",
            Value::Number(_) => matches!(kind, "number" | "integer"),
            Value::String(_) => kind == "string",
            Value::Array(_) => kind == "array",
            Value::Object(_) => kind == "object",
        }
    };
    match kind {
        Some(kind @ Value::String(_)) => is_one(kind),
        Some(Value::Array(kinds)) => kinds.iter().any(is_one),
        _ => true,
    }
}

/// True if a schema may have variants, or parts that have some.
fn is_composed(node: &Node) -> bool {
    ["$ref", "allOf", "anyOf", "oneOf"].iter().any(|keyword| node.contains_key(*keyword))
}

/// The reference of a schema that says nothing else.
fn mere(schema: &Value) -> Option<&str> {
    schema.as_object().filter(|node| node.len() == 1)?.get("$ref")?.as_str()
}

fn list<'n>(node: &'n Node, keyword: &str) -> impl Iterator<Item = &'n Value> + use<'n> {
    node.get(keyword).and_then(Value::as_array).into_iter().flatten()
}
