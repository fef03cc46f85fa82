//! Unions: how their variants are distinguished, and which variants there are.

mod constants;
mod spliced;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use ops_runtime::spec::pointer;
use serde_json::Value;

use self::constants::{Constants, constants};
use self::spliced::Spliced;
use super::scalar::wish;
use super::view::{is_annotation, is_constraint, is_empty, is_null, types_of};
use super::{Lowered, Lowering, Object, Site, nullable_if, size_of, text};
use crate::kinds::NESTED;
use crate::names::upper_camel;
use crate::types::{Shape, Tagged, TaggedVariant, Type, Variant};

/// The keyword for properties that are not declared.
const OTHERS: &str = "additionalProperties";

/// A member of a union's list.
struct Member {
    schema: Value,
    view: Option<Rc<Object>>,
    /// The definition that it refers to, before anything was merged into it.
    reference: Option<String>,
    title: Option<String>,
    position: usize,
    /// The positions in the list that it comes from.
    origins: Vec<usize>,
}

impl Lowering<'_> {
    /// Lowers a union; `None` if its members only restrict a type that the rest of the schema describes.
    pub(crate) fn union(&mut self, view: &Object, key: &str, list: &[Value], site: &Site) -> Option<Lowered> {
        let mut spliced = Spliced::default();
        for (origin, schema) in list.iter().enumerate() {
            spliced.add(schema, origin, NESTED);
        }
        let mut schemas = spliced.schemas;
        let (kinds, mut nullable) = types_of(view);
        let mut has_others = |schema: Option<&Object>| {
            let null = schema.is_some_and(is_null);
            nullable |= null;
            !null
        };
        schemas.retain(|(schema, _)| has_others(schema.as_object()));
        let mut base = view.clone();
        base.shift_remove(key);
        base.retain(|key, _| !is_annotation(key) && key != "discriminator");
        // `null` in `type` makes the union nullable, and is not passed on to the members.
        if let (Some(own), [kind]) = (base.get_mut("type"), kinds.as_slice()) {
            *own = kind.as_str().into();
        }
        if schemas.iter().all(|(schema, _)| is_constraint(schema)) && !(schemas.is_empty() && base.is_empty()) {
            return None;
        }
        let members = schemas.into_iter().enumerate();
        let mut members: Vec<Member> =
            members.map(|(i, (schema, origins))| self.member(schema, i, origins, &base)).collect();
        // A member may be a reference to a schema that is only `null`.
        members.retain(|member| has_others(member.view.as_deref()));
        let members = self.with_base(base, members);
        let lowered = match members.as_slice() {
            [] => return Some(Lowered::Type(if nullable { Type::Unit } else { Type::Value })),
            [single] => self.shape(&single.schema, &site.again()),
            _ => match self.constants_of(&members) {
                Some(Constants::Named(reference)) => {
                    let place = self.source.name(&reference).map(|name| Site::of(name).pointer);
                    self.types.beside_text.extend(place);
                    Lowered::Type(self.reference(&reference, site))
                }
                Some(Constants::Text) => Lowered::Type(Type::String),
                Some(Constants::Open(constants)) => {
                    self.types.open.insert(site.pointer.clone());
                    self.enumeration(constants, site)
                }
                Some(Constants::All(constants)) => self.enumeration(constants, site),
                None => self.variants(view, key, &members, site),
            },
        };
        Some(nullable_if(nullable, lowered))
    }

    /// The constants of a union, unless one of them has a type of the user's.
    fn constants_of(&mut self, members: &[Member]) -> Option<Constants> {
        let is_custom = members.iter().any(|member| {
            let name = member.reference.as_deref().and_then(|reference| self.source.name(reference));
            name.is_some_and(|name| self.custom(name).is_some())
        });
        if is_custom { None } else { constants(members, &self.settings.formats) }
    }

    fn member(&mut self, schema: Value, position: usize, origins: Vec<usize>, base: &Object) -> Member {
        let reference = schema.as_object().and_then(|object| self.sole_reference(object)).map(|(name, _)| name);
        let title = schema.get("title").and_then(Value::as_str).map(str::to_owned);
        let mut schema = schema;
        if let (Some(object), Some(kind)) = (schema.as_object_mut(), base.get("type")) {
            // The type stands beside the list, for all members.
            if !["type", "$ref", "allOf", "oneOf", "anyOf", "const", "enum"].iter().any(|key| object.contains_key(*key))
            {
                object.insert("type".to_owned(), kind.clone());
            }
        }
        let view = self.view_of_schema(&schema);
        Member { schema, view, reference, title, position, origins }
    }

    /// Merges the keywords beside the list into each member, unless the member already has them.
    fn with_base(&mut self, mut base: Object, mut members: Vec<Member>) -> Vec<Member> {
        base.shift_remove("type");
        // `false` would forbid what the members declare, and `true` or an empty schema says nothing new.
        let adds_nothing = |others: &Value| others.is_boolean() || is_empty(others);
        if !base.contains_key("properties") && base.get(OTHERS).is_some_and(adds_nothing) {
            base.shift_remove(OTHERS);
        }
        let covered = |member: &Member| {
            let Some(view) = &member.view else { return false };
            base.iter().all(|(key, ours)| match (key.as_str(), ours, view.get(key)) {
                ("properties", Value::Object(ours), Some(Value::Object(theirs))) => {
                    ours.keys().all(|name| theirs.contains_key(name))
                }
                ("required", Value::Array(ours), Some(Value::Array(theirs))) => {
                    let theirs: HashSet<&Value> = theirs.iter().collect();
                    ours.iter().all(|name| theirs.contains(name))
                }
                ("properties" | "required", ..) => false,
                (OTHERS, ours, theirs) => adds_nothing(ours) || theirs.is_some(),
                // Limits do not affect the type.
                (key, ..) => !matches!(key, "items" | "oneOf" | "anyOf" | "enum" | "const" | "prefixItems"),
            })
        };
        if base.is_empty() || members.iter().all(covered) {
            return members;
        }
        let size = 1 + base.values().map(size_of).sum::<usize>();
        if !self.spend(size.saturating_mul(members.len())) {
            return members;
        }
        for member in &mut members {
            let own = std::mem::take(&mut member.schema);
            let parts = Value::Array(vec![Value::Object(base.clone()), own]);
            member.schema = Value::Object([("allOf".to_owned(), parts)].into_iter().collect());
            member.view = self.view_of_schema(&member.schema);
        }
        members
    }

    fn variants(&mut self, view: &Object, key: &str, members: &[Member], site: &Site) -> Lowered {
        let discriminator = view.get("discriminator").and_then(Value::as_object);
        // The variant of a success stays nullable, and `null` has no tag, so such a union is not read by tags.
        let keeps_null =
            |member: &Member| site.by_status && member.view.as_deref().is_some_and(|view| types_of(view).1);
        let tags = if members.iter().any(keeps_null) {
            None
        } else {
            discriminator
                .and_then(|discriminator| self.declared_tags(discriminator, members))
                .or_else(|| self.constant_tags(members))
        };
        let default = discriminator.and_then(|discriminator| discriminator.get("defaultMapping")?.as_str());
        let mut variants: Vec<TaggedVariant> = Vec::new();
        let mut known: HashMap<Type, usize> = HashMap::new();
        let mut counts = None;
        for (i, member) in members.iter().enumerate() {
            let tags = tags.as_ref().and_then(|(_, tags)| tags.get(i)).cloned().unwrap_or_default();
            let wish = self.name_of(member, &tags, members, &mut counts);
            let number = member.position.to_string();
            let inside = site.inside(wish.as_deref().unwrap_or("variant"), &[key, &number]);
            let type_ = self.lower(&member.schema, &inside);
            let ident = wish.unwrap_or_else(|| kind_name(&type_));
            let is_default = default.is_some() && member.reference.as_deref() == default;
            let origins = member.origins.iter().filter(|_| site.by_status);
            let successes = origins.filter_map(|origin| u16::try_from(*origin).ok());
            // The type without `null`: `null` becomes a value of the union itself.
            let bare = match &type_ {
                Type::Option(inner) if !site.by_status => (**inner).clone(),
                other => other.clone(),
            };
            match known.get(&bare).and_then(|at| variants.get_mut(*at)) {
                Some(same) => {
                    if bare != type_ {
                        same.variant.type_ = type_;
                    }
                    same.tags.extend(tags);
                    same.is_default |= is_default;
                    same.variant.successes.extend(successes);
                }
                None => {
                    known.insert(bare, variants.len());
                    let docs = text(member.schema.as_object());
                    let variant = Variant { ident, docs, type_, successes: successes.collect() };
                    variants.push(TaggedVariant { tags, is_default, variant });
                }
            }
        }
        match (tags, variants.len()) {
            (_, 1) => Lowered::Type(variants.pop().map_or(Type::Value, |only| only.variant.type_)),
            (Some((property, _)), _) => Lowered::Shape(Shape::Tagged(Tagged { property, variants })),
            (None, _) => Lowered::Shape(Shape::Union(variants.into_iter().map(|v| v.variant).collect())),
        }
    }

    /// The tags by a `discriminator`: those of its mapping, else those that a member lists, else the name of the definition.
    ///
    /// A mapping has texts as keys, so a member tells the tags itself if they are of another type.
    fn declared_tags(&mut self, discriminator: &Object, members: &[Member]) -> Option<(String, Vec<Vec<Value>>)> {
        let property = discriminator.get("propertyName").and_then(Value::as_str)?;
        let default = discriminator.get("defaultMapping").and_then(Value::as_str);
        let mapping = discriminator.get("mapping").and_then(Value::as_object);
        let mut mapped: HashMap<&str, Vec<Value>> = HashMap::new();
        for (tag, target) in mapping.into_iter().flatten() {
            if let Some(target) = target.as_str() {
                mapped.entry(last_segment(target)).or_default().push(tag.as_str().into());
            }
        }
        let listed = |member: &Member| self.tags_of(member.view.as_deref()?, property, Demand::Optional, 0);
        let lists: Vec<Option<Vec<Value>>> = members.iter().map(listed).collect();
        // The default stands for what no other member lists.
        let is_other = |member: &Member| default.is_none() || member.reference.as_deref() != default;
        let mut counts: HashMap<&Value, usize> = HashMap::new();
        for (_, list) in members.iter().zip(&lists).filter(|(member, _)| is_other(member)) {
            let list: HashSet<&Value> = list.iter().flatten().collect();
            list.into_iter().for_each(|tag| *counts.entry(tag).or_default() += 1);
        }
        let mut tags: Vec<Vec<Value>> = Vec::new();
        let mut unmapped: Vec<&Value> = Vec::new();
        for (member, list) in members.iter().zip(&lists) {
            let key = member.reference.as_deref().map(last_segment);
            let name = key.map(|key| Value::from(&*pointer::unescaped(key)));
            let mut own: Vec<Value> = key.and_then(|key| mapped.get(key)).cloned().unwrap_or_default();
            match list {
                Some(list) if !list.iter().all(Value::is_string) => own = spelled(&own, list.clone()),
                Some(list) if own.is_empty() => {
                    // What several list, as those with a common base do, is of the one that has this name.
                    let named = name.as_ref().filter(|name| list.contains(name));
                    let only = usize::from(is_other(member));
                    let is_own =
                        |tag: &&Value| counts.get(tag).copied().unwrap_or_default() == only || named == Some(*tag);
                    own.extend(list.iter().filter(is_own).cloned());
                    // If names select, the other values may be the names of schemas outside this union.
                    unmapped.extend(list.iter().filter(|_| named.is_none()));
                }
                _ => {}
            }
            if own.is_empty() {
                own.push(name?);
            }
            tags.push(own);
        }
        let records = members.iter().all(|member| member.view.as_deref().is_some_and(is_object));
        // Of a value that several list and that names none of them, only the rest of the object tells which one it is.
        let is_clear = !mapped.is_empty() || {
            let selecting: HashSet<&Value> = tags.iter().flatten().collect();
            unmapped.into_iter().all(|tag| selecting.contains(tag))
        };
        (records && is_clear && are_apart(&tags)).then(|| (property.to_owned(), tags))
    }

    /// The tags by a property that every member requires, with a different constant in each.
    fn constant_tags(&mut self, members: &[Member]) -> Option<(String, Vec<Vec<Value>>)> {
        let first = members.first()?.view.clone()?;
        for property in self.constant_properties(&first, 0) {
            let mut tags: Vec<Vec<Value>> = Vec::new();
            for member in members {
                match member.view.clone().and_then(|view| self.tags_of(&view, &property, Demand::Required, 0)) {
                    Some(own) => tags.push(own),
                    None => break,
                }
            }
            if tags.len() == members.len() && are_apart(&tags) {
                return Some((property, tags));
            }
        }
        None
    }

    fn constant_properties(&mut self, view: &Object, depth: usize) -> Vec<String> {
        if let Some(inner) = self.first_of_union(view, depth) {
            return self.constant_properties(&inner, depth + 1);
        }
        let properties = view.get("properties").and_then(Value::as_object);
        let names: Vec<String> = properties.into_iter().flat_map(|properties| properties.keys().cloned()).collect();
        names.into_iter().filter(|name| self.tags_of(view, name, Demand::Required, depth).is_some()).collect()
    }

    fn first_of_union(&mut self, view: &Object, depth: usize) -> Option<Rc<Object>> {
        if depth > NESTED {
            return None;
        }
        let members = ["oneOf", "anyOf"].iter().find_map(|key| view.get(*key).and_then(Value::as_array))?;
        let is_meant = |member: &&Value| !member.as_object().is_some_and(is_null) && !is_constraint(member);
        self.view_of_schema(members.iter().find(is_meant)?)
    }

    /// The only values of an object's property, if they are few scalars.
    fn tags_of(&mut self, view: &Object, property: &str, demand: Demand, depth: usize) -> Option<Vec<Value>> {
        if !self.spend(1) {
            return None;
        }
        if let Some(members) = ["oneOf", "anyOf"].iter().find_map(|key| view.get(*key).and_then(Value::as_array))
            && !members.iter().all(is_constraint)
        {
            if depth > NESTED {
                return None;
            }
            let mut tags = Vec::new();
            for member in members {
                let inner = self.view_of_schema(member)?;
                tags.extend(self.tags_of(&inner, property, demand, depth + 1)?);
            }
            return Some(tags);
        }
        let required = match (demand, view.get("required").and_then(Value::as_array)) {
            (Demand::Required, required) => Some(required?),
            (Demand::Optional, _) => None,
        };
        if !is_object(view) {
            return None;
        }
        let schema = view.get("properties")?.get(property)?;
        let view = self.view_of_schema(schema)?;
        if !view.contains_key("const") && !view.contains_key("enum") {
            return None;
        }
        if let Some(required) = required
            && !(self.spend(required.len() / 64) && required.iter().any(|name| name == property))
        {
            return None;
        }
        let mut tags = match (view.get("const"), view.get("enum")) {
            (Some(value), _) => vec![value.clone()],
            (None, Some(Value::Array(values))) => values.clone(),
            _ => return None,
        };
        if !self.spend(tags.len()) {
            return None;
        }
        // An optional property may be null, which selects nothing.
        tags.retain(|tag| matches!(demand, Demand::Required) || !tag.is_null());
        let scalar = |tag: &Value| tag.is_string() || tag.is_boolean() || tag.is_i64();
        (!tags.is_empty() && tags.iter().all(scalar)).then_some(tags)
    }
}

/// What is asked of a property besides its values.
#[derive(Clone, Copy)]
enum Demand {
    /// The object must require it.
    Required,
    /// It may be optional, as a discriminator names it.
    Optional,
}

/// Those of a member's constants that the keys of a mapping spell; all of them if the keys spell none.
fn spelled(keys: &[Value], constants: Vec<Value>) -> Vec<Value> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    // Python writes `True`.
    let keys: HashSet<String> = keys.iter().map(|key| text(key).to_lowercase()).collect();
    let is_spelled = |constant: &Value| keys.contains(&text(constant).to_lowercase());
    if constants.iter().any(is_spelled) { constants.into_iter().filter(is_spelled).collect() } else { constants }
}

fn is_union(view: &Object) -> bool {
    view.contains_key("oneOf") || view.contains_key("anyOf")
}

/// True if each value is an object or `null`.
fn is_object(view: &Object) -> bool {
    let (types, _) = types_of(view);
    matches!(types.as_slice(), [only] if only == "object") || types.is_empty() && is_union(view)
}

fn are_apart(tags: &[Vec<Value>]) -> bool {
    let all: Vec<&Value> = tags.iter().flatten().collect();
    let mut texts: Vec<String> = all.iter().map(ToString::to_string).collect();
    texts.sort();
    texts.dedup();
    texts.len() == all.len()
}

fn last_segment(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

/// How many members of a union have each property.
type Counts = HashMap<String, usize>;

impl Lowering<'_> {
    /// The preferred name of a variant, if its schema has one.
    fn name_of(
        &mut self,
        member: &Member,
        tags: &[Value],
        members: &[Member],
        counts: &mut Option<Counts>,
    ) -> Option<String> {
        if let [Value::String(tag)] = tags {
            return Some(upper_camel(tag));
        }
        // A title beside a reference describes this place, such as the status of a response.
        let beside = member.schema.as_object().is_some_and(|object| object.contains_key("$ref"));
        if let Some(reference) = member.reference.as_ref().filter(|_| !(beside && member.title.is_some())) {
            return Some(upper_camel(&pointer::unescaped(last_segment(reference))));
        }
        if let Some(title) = member.title.as_deref().filter(|title| title.len() <= 40) {
            return Some(upper_camel(title));
        }
        if let [tag] = tags {
            return Some(wish(None, tag));
        }
        // The first property that no other variant has.
        let counts = match counts {
            Some(counts) => counts,
            None => counts.insert(self.counts(members)),
        };
        let own = member.view.as_ref()?.get("properties")?.as_object()?;
        let own = own.keys().find(|name| counts.get(*name) == Some(&1))?;
        Some(format!("With{}", upper_camel(own)))
    }

    fn counts(&mut self, members: &[Member]) -> Counts {
        let mut counts = Counts::new();
        for member in members {
            let view = member.view.as_ref().and_then(|view| view.get("properties")?.as_object());
            let Some(properties) = view.filter(|properties| self.spend(properties.len())) else { continue };
            properties.keys().for_each(|name| *counts.entry(name.clone()).or_default() += 1);
        }
        counts
    }
}

fn kind_name(type_: &Type) -> String {
    match type_ {
        Type::Unit => "Null",
        Type::Bool => "Boolean",
        Type::I32 | Type::I64 | Type::U32 | Type::U64 => "Integer",
        Type::F64 => "Number",
        Type::String => "String",
        Type::Format(format) => format.type_name(),
        Type::Body => "Bytes",
        Type::Block => "Block",
        Type::Value => "Any",
        Type::List(_) | Type::Tuple(_) => "List",
        Type::Map(_) => "Map",
        Type::Option(inner) => return kind_name(inner),
        Type::Named(_) | Type::Boxed(_) => "Variant",
        Type::Custom(custom) => &custom.name,
    }
    .to_owned()
}
