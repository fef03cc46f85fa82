//! Which variant of a union an object names: by OpenAPI's discriminator, or by constants of the variants.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::check::{Checker, MAX_COMBINED};
use super::node::{At, Discriminator, Kind, Named, Node, OBJECT, ObjectRules, Property, Shape, Tag, Union};
use crate::model::cut::{MAX_NAME, cut};

/// How many schemas and values are read to find out what the variants of a union list. They may hold unions in turn, and
/// many unions may hold the same.
const MAX_LISTED: usize = 1 << 12;

/// How many more are read for each variant.
const MAX_LISTED_EACH: usize = 16;

/// How many values of a tag a report names.
const MAX_TOLD_TAGS: usize = 8;

/// The variant that a value names itself.
pub(super) enum Tagged<'a> {
    Variant(&'a Node),
    /// It names none that is described, and this one stands for all others. It may have properties of these.
    Default(&'a Node),
    /// It has the tag, with a value that no variant has.
    Unknown,
    /// It has OpenAPI's discriminator, with a name that no variant has. As many documents do not say what names they
    /// use, it may be of any variant, or of one that is not described.
    Undescribed(&'a Tag),
    No,
}

impl Tag {
    /// A tag: its values, each listed once.
    fn new(property: &str, mut variants: Vec<(Box<str>, Named)>) -> Self {
        variants.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Tag { property: property.into(), variants }
    }

    fn value<'v>(&self, map: &'v Map<String, Value>) -> Option<&'v str> {
        // Tags are usually written first, and comparing is cheaper than hashing.
        match map.iter().next() {
            Some((key, value)) if *key == *self.property => value.as_str(),
            _ => map.get(&*self.property)?.as_str(),
        }
    }

    /// What a value names; `None` if no variant has it.
    pub(super) fn named(&self, value: &str) -> Option<Named> {
        let found = self.variants.binary_search_by(|(tag, _)| (**tag).cmp(value)).ok()?;
        Some(self.variants.get(found)?.1)
    }

    /// The values that variants have, in the words of a report.
    pub(super) fn expectation(&self) -> String {
        let known: Vec<String> =
            self.variants.iter().take(MAX_TOLD_TAGS).map(|(value, _)| format!("'{}'", cut(value, MAX_NAME))).collect();
        let more = if self.variants.len() > known.len() { ", .." } else { "" };
        format!("one of {}{more}", known.join(", "))
    }
}

impl<'a> Checker<'a> {
    /// The variant that the value itself names.
    pub(super) fn tagged(&self, at: At<'a>, union: &'a Union, value: &Value) -> Tagged<'a> {
        let Value::Object(map) = value else { return Tagged::No };
        if self.compat {
            return Tagged::No;
        }
        let variant = |number: u32| union.variants.get(number as usize);
        let shape = self.shape(at, union);
        let mut undescribed = None;
        if let (Some(discriminator), Some(tag)) = (&union.discriminator, &shape.declared) {
            let value = tag.value(map);
            match value.and_then(|value| tag.named(value)) {
                Some(Named::One(number)) => return variant(number).map_or(Tagged::No, Tagged::Variant),
                Some(Named::Several) => {}
                None => {
                    let is_other = value.is_some() || !map.contains_key(&*tag.property);
                    if let Some(node) = discriminator.otherwise.filter(|_| is_other).and_then(variant) {
                        return Tagged::Default(node);
                    }
                    undescribed = value.map(|_| tag);
                }
            }
        }
        match shape.tag.as_ref().and_then(|tag| Some(tag.named(tag.value(map)?))) {
            Some(Some(Named::One(number))) => variant(number).map_or(Tagged::No, Tagged::Variant),
            Some(_) => Tagged::Unknown,
            None => undescribed.map_or(Tagged::No, Tagged::Undescribed),
        }
    }

    /// The tag that an object lacks, though all variants that are objects require it, or whose value no variant has.
    pub(super) fn wrong_tag(&self, at: At<'a>, union: &'a Union, value: &Value) -> Option<&'a Tag> {
        let map = value.as_object().filter(|_| !self.compat)?;
        let shape = self.shape(at, union);
        match self.tagged(at, union, value) {
            // A name that is not described may be right, as any variant may have it.
            Tagged::Variant(_) | Tagged::Default(_) | Tagged::Undescribed(_) => None,
            Tagged::Unknown => shape.tag.as_ref(),
            Tagged::No => shape.declared.iter().chain(&shape.tag).find(|tag| {
                !tag.variants.is_empty()
                    && !map.contains_key(&*tag.property)
                    && self.all_require(at, union, &tag.property)
            }),
        }
    }

    /// True if the tag of an object has a value that no variant accepts, and is of another kind than the names of variants. Its
    /// type keeps such an object whole.
    pub(super) fn has_foreign_tag(&self, at: At<'a>, union: &'a Union, value: &Value) -> bool {
        let shape = self.shape(at, union);
        let texts = shape.declared.as_ref().or(shape.tag.as_ref()).map(|tag| &tag.property);
        let (Some(map), Some(name)) = (value.as_object(), texts.or(shape.scalar_tag.as_ref())) else { return false };
        let Some(value) = map.get(&**name).filter(|value| texts.is_none() || !value.is_string()) else { return false };
        // A variant that stands for all others may declare the tag.
        if self.compat || union.discriminator.as_ref().is_some_and(|discriminator| discriminator.otherwise.is_some()) {
            return false;
        }
        let accepts = |node: &'a Node| {
            let Some(at) = self.follow(at.to(node)) else { return true };
            let Kind::Typed(typed) = &at.node.kind else { return at.node.types().has(OBJECT) };
            let property = typed.object.as_ref().and_then(|rules| rules.find(name, &mut 0));
            property.is_some_and(|property| self.check(at.to(&property.node), value, 0))
        };
        (shape.declared.is_some() || self.all_require(at, union, name)) && !union.variants.iter().any(accepts)
    }

    /// True if all variants that are objects require a property.
    fn all_require(&self, at: At<'a>, union: &'a Union, name: &str) -> bool {
        let requires = |node: &'a Node| self.property(at.to(node), name).is_some_and(|property| property.required);
        let variants = union.variants.iter().zip(&self.shape(at, union).types);
        let mut objects = variants.filter(|(_, types)| types.has(OBJECT)).map(|(node, _)| node);
        self.budget.spend(union.variants.len() as u64 / 4) && objects.all(requires)
    }

    /// A property of an object's schema, by its name.
    pub(super) fn property(&self, at: At<'a>, name: &str) -> Option<&'a Property> {
        let Kind::Typed(typed) = &self.follow(at)?.node.kind else { return None };
        typed.object.as_ref()?.find(name, &mut 0)
    }

    pub(super) fn shape(&self, at: At<'a>, union: &'a Union) -> &'a Shape {
        union.shape.get_or_init(|| {
            let nodes: Vec<At<'a>> =
                union.variants.iter().map(|node| self.follow(at.to(node)).unwrap_or(at.to(node))).collect();
            let (tag, scalar_tag) = self.tags(&nodes);
            Shape {
                types: nodes.iter().map(|at| at.node.types()).collect(),
                declared: union.discriminator.as_ref().map(|discriminator| self.declared(discriminator, &nodes)),
                tag,
                scalar_tag,
            }
        })
    }

    /// The values by which a discriminator selects variants: those of its mapping, else those that the variants list
    /// themselves, else their names.
    fn declared(&self, discriminator: &Discriminator, variants: &[At<'a>]) -> Tag {
        let mut listed: Vec<(u32, Vec<&'a str>)> = Vec::new();
        let mut left = MAX_LISTED + MAX_LISTED_EACH * variants.len();
        for (number, at) in (0u32..).zip(variants) {
            let texts = self.listed(*at, &discriminator.property, 0, &mut left);
            listed.push((number, texts.unwrap_or_default()));
        }
        let mut values: HashMap<&str, Named> = HashMap::new();
        let is_default = |number: &u32| discriminator.otherwise == Some(*number);
        for (number, texts) in listed.iter().filter(|(number, _)| !is_default(number)) {
            for text in texts {
                values.entry(text).and_modify(|named| *named = Named::Several).or_insert(Named::One(*number));
            }
        }
        // The default stands for what no other variant lists.
        for (number, texts) in listed.iter().filter(|(number, _)| is_default(number)) {
            for text in texts {
                values.entry(text).or_insert(Named::One(*number));
            }
        }
        for (name, number) in &discriminator.names {
            let named = values.entry(name).or_insert(Named::Several);
            if let Named::Several = named {
                *named = Named::One(*number);
            }
        }
        values.extend(discriminator.mapping.iter().map(|(value, number)| (&**value, Named::One(*number))));
        Tag::new(&discriminator.property, values.into_iter().map(|(value, named)| (value.into(), named)).collect())
    }

    /// The texts that a variant lists for a property, each once; `None` if it does not list them.
    fn listed(&self, at: At<'a>, property: &str, depth: u32, left: &mut usize) -> Option<Vec<&'a str>> {
        *left = left.checked_sub(1).filter(|_| depth < MAX_COMBINED)?;
        let at = self.follow(at)?;
        match &at.node.kind {
            Kind::Typed(typed) => {
                let property = typed.object.as_ref()?.find(property, &mut 0)?;
                let Kind::Literals(literals) = &self.follow(at.to(&property.node))?.node.kind else { return None };
                *left = left.checked_sub(literals.len())?;
                let mut seen = HashSet::new();
                Some(literals.iter().filter_map(Value::as_str).filter(|text| seen.insert(*text)).collect())
            }
            Kind::Union(union) => {
                let mut texts = Vec::new();
                for node in &union.variants {
                    texts.extend(self.listed(at.to(node), property, depth + 1, left).unwrap_or_default());
                }
                texts.sort_unstable();
                texts.dedup();
                (!texts.is_empty()).then_some(texts)
            }
            // What one member lists, the others may only narrow.
            Kind::Intersect(all) => {
                let lists = all.members.iter().filter_map(|node| self.listed(at.to(node), property, depth + 1, left));
                lists.min_by_key(Vec::len)
            }
            _ => None,
        }
    }

    /// Properties that have different constants in each variant that is an object: one of strings, and one of other scalars.
    fn tags(&self, variants: &[At<'a>]) -> (Option<Tag>, Option<Box<str>>) {
        let mut objects = Vec::new();
        for (index, at) in (0u32..).zip(variants) {
            match &at.node.kind {
                Kind::Typed(typed) if typed.types.has(OBJECT) => {
                    let Some(rules) = &typed.object else { return (None, None) };
                    objects.push((index, *at, rules));
                }
                Kind::Typed(_) | Kind::Never => {}
                _ if at.node.types().has(OBJECT) => return (None, None),
                _ => {}
            }
        }
        let Some((_, _, first)) = objects.first().filter(|_| objects.len() > 1) else { return (None, None) };
        let mut scalar_tag = None;
        let tag = first.properties.iter().find_map(|candidate| {
            let constants = self.constants(&objects, &candidate.name)?;
            let named = |(value, index): (&'a Value, u32)| Some((value.as_str()?, Named::One(index)));
            let texts: Option<Vec<_>> = constants.into_iter().map(named).collect();
            if texts.is_none() && scalar_tag.is_none() {
                scalar_tag = Some(candidate.name.clone());
            }
            Some(Tag::new(&candidate.name, texts?.into_iter().map(|(text, named)| (text.into(), named)).collect()))
        });
        (tag, scalar_tag)
    }

    /// The constants of a property, each with its variant. `None` if an object has none, or shares one with another object.
    fn constants(&self, objects: &[(u32, At<'a>, &'a ObjectRules)], name: &str) -> Option<Vec<(&'a Value, u32)>> {
        let mut constants = Vec::new();
        let mut seen = HashMap::new();
        for (index, at, rules) in objects {
            let property = rules.find(name, &mut 0)?;
            let Kind::Literals(literals) = &self.follow(at.to(&property.node))?.node.kind else { return None };
            for literal in literals.iter() {
                if !(literal.is_string() || literal.is_boolean() || literal.is_i64()) {
                    return None;
                }
                // An enum may name a value twice.
                match seen.insert(literal, *index) {
                    None => constants.push((literal, *index)),
                    Some(other) if other == *index => {}
                    Some(_) => return None,
                }
            }
        }
        Some(constants)
    }
}
