//! The view of a schema: references followed and `allOf` merged by meaning, one level deep.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

pub(crate) use ops_runtime::keywords::is_beside_type as is_annotation;
use serde_json::{Value, json};

use super::condition::{self, CONDITIONAL};
use super::{Clash, Lowering, Object, size_of};
use crate::types::{DESCRIPTIONS, NAMES};

/// Chains of `allOf` and `$ref` longer than this are not followed.
const LONGEST: usize = 64;

/// The product of two unions has up to this many variants.
const PRODUCT: usize = 36;

/// The reason why a larger one is not made.
const TOO_LARGE: &str = "two large unions are demanded at once";

/// The view of a definition.
pub(crate) struct View {
    pub(crate) object: Rc<Object>,
    /// How many values there are in it.
    size: usize,
    /// The definitions that its unions list, by keyword: true for those that are a variant, false for parts of variants.
    heirs: Vec<(&'static str, HashMap<String, bool>)>,
}

/// True if a schema is its own view.
pub(crate) fn is_flat(schema: &Object) -> bool {
    !schema.contains_key("$ref") && !schema.contains_key("allOf")
}

fn size(object: &Object) -> usize {
    1 + object.values().map(size_of).sum::<usize>()
}

/// True if the schema only restricts a value whose type is given elsewhere.
pub(crate) fn is_constraint(schema: &Value) -> bool {
    match schema {
        Value::Object(object) => object.keys().all(|key| key == "required" || is_annotation(key)),
        _ => false,
    }
}

/// True if the schema accepts only `null`.
pub(crate) fn is_null(schema: &Object) -> bool {
    match (schema.get("type"), schema.get("const"), schema.get("enum")) {
        (Some(Value::String(kind)), ..) if kind == "null" => true,
        (Some(Value::Array(kinds)), ..) if matches!(kinds.as_slice(), [kind] if kind == "null") => true,
        (_, Some(Value::Null), _) => true,
        (_, None, Some(Value::Array(values))) => matches!(values.as_slice(), [Value::Null]),
        _ => false,
    }
}

/// The types that a view names or implies, without `null`, and true if `null` is allowed.
pub(crate) fn types_of(view: &Object) -> (Vec<String>, bool) {
    let mut types = type_list(view.get("type"));
    let mut nullable = view.get("nullable") == Some(&Value::Bool(true));
    types.retain(|kind| {
        nullable |= kind == "null";
        kind != "null"
    });
    if types.is_empty() && !view.contains_key("type") {
        if ["properties", "additionalProperties", "patternProperties"].iter().any(|key| view.contains_key(*key)) {
            types.push("object".to_owned());
        } else if ["items", "prefixItems"].iter().any(|key| view.contains_key(*key)) {
            types.push("array".to_owned());
        }
    }
    // `number` includes integers.
    if types.iter().any(|kind| kind == "number") {
        types.retain(|kind| kind != "integer");
    }
    (types, nullable)
}

fn type_list(types: Option<&Value>) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    let found = match types {
        Some(Value::String(kind)) => std::slice::from_ref(kind).to_vec(),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    for kind in found {
        if !list.contains(&kind) {
            list.push(kind);
        }
    }
    list
}

/// The view restricted to one of its types.
pub(crate) fn only(view: &Object, kind: &str) -> Object {
    let mut only = view.clone();
    only.retain(|key, _| !is_annotation(key));
    only.insert("type".to_owned(), kind.into());
    only
}

impl Lowering<'_> {
    /// The only reference of a schema without other content, and true if the schema adds `null`.
    pub(crate) fn sole_reference(&self, schema: &Object) -> Option<(String, bool)> {
        let mut schema = schema;
        let mut nullable = false;
        for _ in 0..LONGEST {
            nullable |= schema.get("nullable") == Some(&Value::Bool(true));
            let mut inner = None;
            for (key, value) in schema {
                match key.as_str() {
                    "type" if value == "object" => {}
                    "$ref" | "allOf" | "oneOf" | "anyOf" if inner.is_none() => inner = Some((key.as_str(), value)),
                    key if is_annotation(key) => {}
                    _ => return None,
                }
            }
            match inner? {
                ("$ref", reference) => return Some((reference.as_str()?.to_owned(), nullable)),
                (key, Value::Array(members)) => {
                    // In a union, a member that says nothing accepts any value.
                    let mut meant = members.iter().filter(|member| key != "allOf" || !is_empty(member));
                    match (meant.next(), meant.next()) {
                        (Some(Value::Object(only)), None) => schema = only,
                        _ => return None,
                    }
                }
                _ => return None,
            }
        }
        None
    }

    /// The schema as an object with neither `$ref` nor `allOf`.
    pub(crate) fn flatten(&mut self, schema: &Object, depth: usize) -> Result<Object, Clash> {
        if depth > LONGEST {
            return Err(Clash("`$ref` and `allOf` form too long a chain".to_owned()));
        }
        if !self.spend(1) {
            return Err(too_many());
        }
        if is_flat(schema) {
            let mut own = schema.clone();
            self.fold_conditions(&mut own, depth)?;
            return Ok(own);
        }
        let mut merged = Object::new();
        if let Some(Value::String(reference)) = schema.get("$ref") {
            merge(&mut merged, self.referred(reference, depth)?)?;
        }
        if let Some(Value::Array(members)) = schema.get("allOf") {
            for member in members {
                let Value::Object(member) = member else { continue };
                let mut view = self.flatten(member, depth + 1)?;
                if !self.spend(size(&view)) {
                    return Err(too_many());
                }
                view.shift_remove("nullable");
                merge(&mut merged, view)?;
            }
        }
        let mut own = schema.clone();
        own.shift_remove("$ref");
        own.shift_remove("allOf");
        self.fold_conditions(&mut own, depth)?;
        for (key, value) in &own {
            // A schema's own description goes before those of its parts.
            if is_annotation(key) {
                merged.insert(key.clone(), value.clone());
            }
        }
        own.retain(|key, _| !is_annotation(key));
        merge(&mut merged, own)?;
        Ok(merged)
    }

    /// The same for the schema of a definition, which may be an heir of its bases.
    pub(crate) fn flatten_of(
        &mut self,
        definition: Option<&str>,
        schema: &Object,
        depth: usize,
    ) -> Result<Object, Clash> {
        self.open.extend(definition.map(str::to_owned));
        let view = self.flatten(schema, depth);
        if definition.is_some() {
            self.open.pop();
        }
        view
    }

    /// The keywords that a reference adds to the schema that it is merged into.
    fn referred(&mut self, reference: &str, depth: usize) -> Result<Object, Clash> {
        let name =
            self.source.name(reference).ok_or_else(|| Clash(format!("`{reference}` refers to no definition")))?;
        let known = match self.known(name, depth) {
            Err(Clash(why)) if why == TOO_LARGE && !self.open.is_empty() => self.known_to_heir(name, depth)?,
            known => known?,
        };
        // A base that lists its heirs is not treated as a union when an heir uses it as its base.
        let listed = |(key, heirs): &(&'static str, HashMap<String, bool>)| {
            let is_variant = *heirs.get(self.open.last()?)?;
            Some((*key, is_variant))
        };
        let bases: Vec<(&str, bool)> = known.heirs.iter().filter_map(listed).collect();
        if bases.iter().all(|(_, is_variant)| !is_variant) && !self.spend(known.size) {
            return Err(too_many());
        }
        let is_base = |key: &str| bases.iter().any(|(base, _)| *base == key);
        let kept = known.object.iter().filter(|(key, _)| !is_base(key));
        let mut view: Object = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
        for (key, _) in bases.iter().filter(|(_, is_variant)| !is_variant) {
            view.insert((*key).to_owned(), self.asked(known.object.get(*key)));
        }
        if !bases.is_empty() && !self.spend(size(&view)) {
            return Err(too_many());
        }
        let union = view.contains_key("oneOf") || view.contains_key("anyOf");
        view.retain(|key, _| !is_annotation(key) && (union && bases.is_empty() || key != "discriminator"));
        Ok(view)
    }

    /// The variants of a base that have the heir that is being made as a part, without this part.
    fn asked(&self, variants: Option<&Value>) -> Value {
        let is_heir = |part: &Value| {
            let name = part.get("$ref").and_then(Value::as_str).and_then(|reference| self.source.name(reference));
            name.is_some() && name == self.open.last().map(String::as_str)
        };
        let asked = |variant: &Value| {
            let parts = variant.get("allOf").and_then(Value::as_array)?;
            let others: Vec<&Value> = parts.iter().filter(|part| !is_heir(part)).collect();
            (others.len() < parts.len()).then(|| json!({ "allOf": others }))
        };
        variants.and_then(Value::as_array).into_iter().flatten().filter_map(asked).collect()
    }

    /// The view of a definition, made once.
    pub(crate) fn view_of(&mut self, name: &str, depth: usize) -> Result<Rc<Object>, Clash> {
        self.known(name, depth).map(|view| Rc::clone(&view.object))
    }

    fn known(&mut self, name: &str, depth: usize) -> Result<Rc<View>, Clash> {
        if let Some(view) = self.views.get(name) {
            return Ok(Rc::clone(view));
        }
        if self.open.iter().any(|open| open == name) {
            return Err(Clash(format!("the definition `{name}` is part of itself")));
        }
        self.reach(name);
        let empty = Object::new();
        let schema = self.source.get(name).and_then(Value::as_object).unwrap_or(&empty);
        if self.too_large.contains(name) {
            return Err(Clash(TOO_LARGE.to_owned()));
        }
        let object = self.flatten_of(Some(name), schema, depth + 1).inspect_err(|Clash(why)| {
            if why == TOO_LARGE {
                self.too_large.insert(name.to_owned());
            }
        })?;
        let view = Rc::new(self.listing(object));
        self.views.insert(name.to_owned(), Rc::clone(&view));
        Ok(view)
    }

    /// The view of a base that is too large by itself. An heir has no list that lists it, so what is left may not be.
    fn known_to_heir(&mut self, name: &str, depth: usize) -> Result<Rc<View>, Clash> {
        let key = (self.open.last().cloned().unwrap_or_default(), name.to_owned());
        if let Some(view) = self.of_heirs.get(&key) {
            return Ok(Rc::clone(view));
        }
        let schema = self.source.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        let object = self.flatten(&schema, depth + 1)?;
        let view = Rc::new(self.listing(object));
        self.of_heirs.insert(key, Rc::clone(&view));
        Ok(view)
    }

    /// The view with the definitions that its unions list.
    fn listing(&self, object: Object) -> View {
        let target = |heir: &Value| Some(self.source.name(heir.get("$ref")?.as_str()?)?.to_owned());
        let heirs = ["oneOf", "anyOf"].into_iter().filter_map(|key| {
            let listed = object.get(key).and_then(Value::as_array)?;
            let mut heirs: HashMap<String, bool> = HashMap::new();
            for variant in listed {
                // The union of a base between makes them parts.
                let parts = match variant.get("allOf").and_then(Value::as_array) {
                    Some(parts) if variant.get("$ref").is_none() => parts.as_slice(),
                    _ => std::slice::from_ref(variant),
                };
                let is_variant = parts.iter().all(|part| Some(part) == parts.first());
                for heir in parts.iter().filter_map(target) {
                    *heirs.entry(heir).or_default() |= is_variant;
                }
            }
            Some((key, heirs))
        });
        let heirs = heirs.collect();
        View { size: size(&object), heirs, object: Rc::new(object) }
    }

    /// True if a definition that only refers to another one is listed by it: an heir that adds nothing to its base.
    pub(crate) fn is_heir(&mut self, name: &str, reference: &str) -> bool {
        let mut reference = reference.to_owned();
        for _ in 0..LONGEST {
            let Some(base) = self.source.name(&reference) else { return false };
            let schema = self.source.get(base).and_then(Value::as_object);
            match schema.and_then(|schema| self.sole_reference(schema)) {
                Some((next, _)) => reference = next,
                None => {
                    // A base that is only a union would leave nothing.
                    let lists = |base: &Rc<View>| base.heirs.iter().any(|(_, heirs)| heirs.contains_key(name));
                    return self
                        .known(base, 0)
                        .is_ok_and(|base| base.object.contains_key("properties") && lists(&base));
                }
            }
        }
        false
    }

    /// The view of any schema; `None` if it has none.
    pub(crate) fn view_of_schema(&mut self, schema: &Value) -> Option<Rc<Object>> {
        let object = schema.as_object()?;
        if let (Some(Value::String(reference)), true) =
            (object.get("$ref"), object.keys().all(|k| k == "$ref" || is_annotation(k)))
        {
            let name = self.source.name(reference)?;
            return self.view_of(name, 0).ok();
        }
        self.flatten(object, 0).ok().map(Rc::new)
    }
}

pub(super) fn too_many() -> Clash {
    Clash("the document's schemas are too many".to_owned())
}

/// True if the schema accepts everything.
pub(crate) fn is_empty(schema: &Value) -> bool {
    match schema {
        Value::Bool(accepts) => *accepts,
        Value::Object(object) => object.keys().all(|key| is_annotation(key)),
        _ => false,
    }
}

/// Combines the constraints of two views.
fn merge(into: &mut Object, mut from: Object) -> Result<(), Clash> {
    if let (Some(ours), Some(theirs)) = (into.get("enum"), from.get("enum"))
        && ours != theirs
    {
        // They are in the order of a list that is not the one that is left.
        for words in [NAMES, DESCRIPTIONS] {
            into.shift_remove(words);
            from.shift_remove(words);
        }
    }
    for (key, theirs) in from {
        let Some(ours) = into.get_mut(&key) else {
            into.insert(key, theirs);
            continue;
        };
        if *ours == theirs || is_annotation(&key) {
            continue;
        }
        match key.as_str() {
            "type" => *ours = common_types(ours, &theirs)?,
            "properties" | "patternProperties" => merge_properties(ours, theirs),
            CONDITIONAL => condition::merge(ours, theirs),
            "required" => append(ours, theirs),
            "enum" => intersect(ours, &theirs)?,
            "const" => return Err(Clash(format!("`{ours}` and `{theirs}` are demanded at once"))),
            "additionalProperties" => {
                *ours = match (ours.take(), theirs) {
                    (Value::Bool(true), other) | (other, Value::Bool(true)) => other,
                    (Value::Bool(false), _) | (_, Value::Bool(false)) => Value::Bool(false),
                    (ours, theirs) => both(ours, theirs),
                }
            }
            "items" => *ours = both(ours.take(), theirs),
            "oneOf" | "anyOf" => *ours = product(ours, &theirs)?,
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" => stricter(ours, theirs, f64::gt),
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" => stricter(ours, theirs, f64::lt),
            // Patterns and formats do not change the type.
            _ => {}
        }
    }
    Ok(())
}

/// Takes the other limit if it is stricter: both hold.
fn stricter(ours: &mut Value, theirs: Value, is_stricter: fn(&f64, &f64) -> bool) {
    if let (Some(own), Some(other)) = (ours.as_f64(), theirs.as_f64())
        && is_stricter(&other, &own)
    {
        *ours = theirs;
    }
}

fn both(mut ours: Value, theirs: Value) -> Value {
    // An earlier combination gets one more part, so that many parts are a long list and not a deep one.
    if let Some(object) = ours.as_object_mut().filter(|object| object.len() == 1)
        && let Some(Value::Array(parts)) = object.get_mut("allOf")
    {
        parts.push(theirs);
        return ours;
    }
    let mut object = Object::new();
    object.insert("allOf".to_owned(), Value::Array(vec![ours, theirs]));
    Value::Object(object)
}

fn common_types(ours: &Value, theirs: &Value) -> Result<Value, Clash> {
    let (ours, theirs) = (type_list(Some(ours)), type_list(Some(theirs)));
    let has = |list: &[String], kind: &str| list.iter().any(|k| k == kind);
    let mut common: Vec<Value> = Vec::new();
    for kind in ["null", "boolean", "integer", "number", "string", "array", "object"] {
        let by_number = kind == "integer" && (has(&ours, "number") || has(&theirs, "number"));
        let takes = |list: &[String]| has(list, kind) || by_number && has(list, "number");
        if takes(&ours) && takes(&theirs) && (has(&ours, kind) || has(&theirs, kind)) {
            common.push(kind.into());
        }
    }
    match common.pop() {
        None => Err(Clash(format!("no value is both {} and {}", ours.join(" or "), theirs.join(" or ")))),
        Some(single) if common.is_empty() => Ok(single),
        Some(last) => {
            common.push(last);
            Ok(Value::Array(common))
        }
    }
}

fn merge_properties(ours: &mut Value, theirs: Value) {
    let (Some(ours), Value::Object(theirs)) = (ours.as_object_mut(), theirs) else { return };
    for (name, theirs) in theirs {
        match ours.get_mut(&name) {
            None => {
                ours.insert(name, theirs);
            }
            Some(own) if *own == theirs || is_empty(&theirs) => {}
            Some(own) if is_empty(own) => *own = theirs,
            Some(own) => *own = both(own.take(), theirs),
        }
    }
}

fn append(ours: &mut Value, theirs: Value) {
    if let (Some(ours), Value::Array(theirs)) = (ours.as_array_mut(), theirs) {
        let known: HashSet<Value> = ours.iter().cloned().collect();
        ours.extend(theirs.into_iter().filter(|name| !known.contains(name)));
    }
}

fn intersect(ours: &mut Value, theirs: &Value) -> Result<(), Clash> {
    if let (Some(ours), Some(theirs)) = (ours.as_array_mut(), theirs.as_array()) {
        let theirs: HashSet<&Value> = theirs.iter().collect();
        ours.retain(|value| theirs.contains(value));
        if ours.is_empty() {
            return Err(Clash("two lists of allowed values have none in common".to_owned()));
        }
    }
    Ok(())
}

/// Every variant of one union together with every variant of the other.
fn product(ours: &Value, theirs: &Value) -> Result<Value, Clash> {
    let (Some(ours), Some(theirs)) = (ours.as_array(), theirs.as_array()) else {
        return Err(Clash("a union is no list".to_owned()));
    };
    if theirs.iter().all(is_constraint) {
        return Ok(Value::Array(ours.clone()));
    }
    if ours.iter().all(is_constraint) {
        return Ok(Value::Array(theirs.clone()));
    }
    // What is one of a few that are all among the others is one of the others, too.
    for (few, others) in [(theirs, ours), (ours, theirs)] {
        let others: HashSet<&Value> = others.iter().collect();
        if few.iter().all(|variant| others.contains(variant)) {
            return Ok(Value::Array(few.clone()));
        }
    }
    if ours.len().saturating_mul(theirs.len()) > PRODUCT {
        return Err(Clash(TOO_LARGE.to_owned()));
    }
    Ok(ours.iter().flat_map(|ours| theirs.iter().map(|theirs| both(ours.clone(), theirs.clone()))).collect())
}
