//! The view of a schema: references followed and `allOf` merged by meaning, one level deep.

use std::collections::HashSet;
use std::rc::Rc;

pub(crate) use ops_runtime::keywords::is_beside_type as is_annotation;
use serde_json::Value;

use super::condition::{self, CONDITIONAL};
use super::{Clash, Lowering, Object, size_of};
use crate::types::{DESCRIPTIONS, NAMES};

/// Chains of `allOf` and `$ref` longer than this are not followed.
const LONGEST: usize = 64;

/// The product of two unions has up to this many variants.
const PRODUCT: usize = 36;

/// The view of a definition.
pub(crate) struct View {
    pub(crate) object: Rc<Object>,
    /// How many values there are in it.
    size: usize,
    /// The definitions that its unions list, by keyword.
    heirs: Vec<(&'static str, HashSet<String>)>,
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
pub(crate) fn is_null(schema: &Value) -> bool {
    let Some(object) = schema.as_object() else { return false };
    match (object.get("type"), object.get("const"), object.get("enum")) {
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

    /// The keywords that a reference adds to the schema that it is merged into.
    fn referred(&mut self, reference: &str, depth: usize) -> Result<Object, Clash> {
        let name =
            self.source.name(reference).ok_or_else(|| Clash(format!("`{reference}` refers to no definition")))?;
        let known = self.known(name, depth)?;
        // A base that lists its heirs is not treated as a union when an heir uses it as its base.
        let lists = |heirs: &HashSet<String>| self.open.iter().any(|open| heirs.contains(open));
        let bases: Vec<&str> = known.heirs.iter().filter(|(_, heirs)| lists(heirs)).map(|(key, _)| *key).collect();
        if bases.is_empty() && !self.spend(known.size) {
            return Err(too_many());
        }
        let kept = known.object.iter().filter(|(key, _)| !bases.contains(&key.as_str()));
        let mut view: Object = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
        if !bases.is_empty() && !self.spend(size(&view)) {
            return Err(too_many());
        }
        let union = view.contains_key("oneOf") || view.contains_key("anyOf");
        view.retain(|key, _| !is_annotation(key) && (union || key != "discriminator"));
        Ok(view)
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
        let empty = Object::new();
        let schema = self.source.get(name).and_then(Value::as_object).unwrap_or(&empty);
        self.open.push(name.to_owned());
        let view = self.flatten(schema, depth + 1);
        self.open.pop();
        let object = Rc::new(view?);
        let target = |heir: &Value| Some(self.source.name(heir.get("$ref")?.as_str()?)?.to_owned());
        let heirs = ["oneOf", "anyOf"].into_iter().filter_map(|key| {
            let listed = object.get(key).and_then(Value::as_array)?;
            Some((key, listed.iter().filter_map(target).collect::<HashSet<String>>()))
        });
        let view = Rc::new(View { size: size(&object), heirs: heirs.collect(), object: Rc::clone(&object) });
        self.views.insert(name.to_owned(), Rc::clone(&view));
        Ok(view)
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

fn is_empty(schema: &Value) -> bool {
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
    if ours.len().saturating_mul(theirs.len()) > PRODUCT {
        return Err(Clash("two large unions are demanded at once".to_owned()));
    }
    Ok(ours.iter().flat_map(|ours| theirs.iter().map(|theirs| both(ours.clone(), theirs.clone()))).collect())
}

impl Lowering<'_> {
    /// True if a schema declares a property only under a condition, beside those of what it refers to.
    pub(super) fn adds_conditionally(&mut self, schema: &Object) -> bool {
        let parts = schema.get("allOf").and_then(Value::as_array);
        let mut parts = parts.into_iter().flatten().filter_map(Value::as_object);
        if !condition::has_conditions(schema) && !parts.any(condition::has_conditions) {
            return false;
        }
        let view = self.flatten(schema, 0).unwrap_or_default();
        let is_own = |name: &str| view.get("properties").is_some_and(|properties| properties.get(name).is_some());
        let conditional = view.get(CONDITIONAL).and_then(Value::as_object);
        conditional.is_some_and(|conditional| conditional.keys().any(|name| !is_own(name)))
    }

    /// Moves what a schema declares under a condition to a member that is merged as properties are.
    pub(super) fn fold_conditions(&mut self, schema: &mut Object, depth: usize) -> Result<(), Clash> {
        for keyword in condition::KEYWORDS {
            let Some(below) = schema.shift_remove(keyword) else { continue };
            let schemas = match (keyword, below) {
                ("dependentSchemas" | "dependencies", Value::Object(named)) => {
                    named.into_iter().map(|(_, it)| it).collect()
                }
                (_, one) => vec![one],
            };
            for below in schemas.iter().filter_map(Value::as_object) {
                // A condition that cannot be followed declares nothing.
                let Ok(mut view) = self.flatten(below, depth + 1) else { continue };
                let found = [view.shift_remove("properties"), view.shift_remove(CONDITIONAL)];
                for (name, found) in found.into_iter().flatten().filter_map(condition::into_object).flatten() {
                    if !self.spend(size_of(&found)) {
                        return Err(too_many());
                    }
                    // A condition asks whether a property has a value; it may have others.
                    let found = if keyword == "if" { Value::Bool(true) } else { found };
                    let all = schema.entry(CONDITIONAL).or_insert_with(|| Value::Object(Object::new()));
                    condition::add(all, name, found);
                }
            }
        }
        Ok(())
    }
}
