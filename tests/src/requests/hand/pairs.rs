//! Types of generated code beside the schemas of the document that they were made of.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use ops_runtime::binding::HttpBinding;
use ops_runtime::spec::OperationSpec;
use serde_json::{Map, Value, json};

use super::super::document::{Document, Operation, Parameter, Place};
use super::super::media::Media;
use super::super::schema::{self, Leniency};
use super::super::switch::{Switch, switch, without};
use super::super::{expected, value};
use super::code::{Code, Record, Shape, Type};
use crate::sample::merged;

/// Says that a schema was made of a variant and of what stands beside its union.
const JOINED: &str = "x-joined";

/// True if a variant of a union only says that there may be nothing.
fn is_null(variant: &Value) -> bool {
    variant["type"] == "null" || variant.as_object().is_some_and(|own| own.len() == 1 && own.contains_key("nullable"))
}

/// Unions in unions are looked into so deep.
const DEPTH: usize = 8;

/// What the document says of a record.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    /// The schema, and what holds all that it refers to; `None` for the input of an operation.
    pub(super) schema: Option<(Value, Rc<Value>)>,
    /// The properties in the order of the document; empty if several parts of a schema order them.
    pub(super) properties: Vec<String>,
    /// Those that a request must hold.
    pub(super) required: BTreeSet<String>,
}

/// The pairs of a module.
#[derive(Debug)]
pub(super) struct Pairs<'c> {
    code: &'c Code,
    pub(super) found: BTreeMap<String, Pair>,
}

impl<'c> Pairs<'c> {
    pub(super) fn new(code: &'c Code) -> Self {
        Self { code, found: BTreeMap::new() }
    }

    /// Adds the types that the input of an operation reaches.
    pub(super) fn add(&mut self, document: &Document<'_>, operation: &Operation, spec: &OperationSpec, input: &Type) {
        let fallback = HttpBinding::new("", "");
        let binding = spec.http().unwrap_or(&fallback);
        let Some((name, record)) = self.code.record(input) else { return };
        let switch = switch(document, operation);
        let (mut properties, mut required) = (Vec::new(), BTreeSet::new());
        let mut schemas = Vec::new();
        let mut parameters: Vec<&Parameter> = operation.parameters.iter().collect();
        // Those of the path are read first, wherever the document has them.
        let place = |parameter: &Parameter| (parameter.name.clone(), expected::place_name(parameter.place).to_owned());
        parameters.sort_by_key(|parameter| operation.listed.iter().position(|listed| *listed == place(parameter)));
        for parameter in parameters {
            let is_switch = parameter.place == Place::Query && switch == Switch::Query(parameter.name.clone());
            let Some(property) = expected::property(binding, parameter).filter(|_| !is_switch) else { continue };
            if parameter.required {
                required.insert(property.clone());
            }
            schemas.push((property.clone(), parameter.schema.clone()));
            properties.push(property);
        }
        if let Some(chosen) = binding.bodies.first() {
            let property = chosen.property.clone().into_owned();
            if operation.body_required {
                required.insert(property.clone());
            }
            let each = operation.contents.iter().map(|content| {
                let lines = matches!(Media::of(&content.content_type), Media::Lines | Media::Sequence);
                let lines = if lines { value::lines(document, &content.schema) } else { None };
                match &switch {
                    Switch::Body(name) => without(document, &content.schema, name, 8),
                    _ => lines.unwrap_or_else(|| content.schema.clone()),
                }
            });
            let mut bodies: Vec<Value> = Vec::new();
            each.for_each(|body| {
                if !bodies.contains(&body) {
                    bodies.push(body)
                }
            });
            let body = if bodies.len() == 1 { bodies.remove(0) } else { json!({ "anyOf": bodies }) };
            schemas.push((property.clone(), body));
            properties.push(property);
        }
        // What says which content type is sent has a field, and is in no document.
        properties.extend(binding.content_type.as_deref().map(str::to_owned));
        self.found.entry(name.to_owned()).or_insert(Pair { schema: None, properties, required });
        for (property, schema) in schemas {
            let Some((_, type_)) = record.field(&property) else { continue };
            let closed = Rc::new(schema::closed(document, &schema, Leniency::Meant));
            let root = schema::root(&closed).clone();
            self.walk(type_, &root, &closed);
        }
    }

    fn walk(&mut self, type_: &Type, schema: &Value, root: &Rc<Value>) {
        match self.code.resolve(type_) {
            Type::Option(inner) => self.walk(&inner.clone(), schema, root),
            Type::List(inner) => {
                for view in views(schema, root, DEPTH) {
                    if let Some(items) = view.get("items").filter(|items| items.is_object()) {
                        self.walk(inner, items, root);
                        break;
                    }
                }
            }
            Type::Tuple(types) => {
                for view in views(schema, root, DEPTH) {
                    let items = view.get("prefixItems").and_then(Value::as_array);
                    items.into_iter().flatten().zip(types).for_each(|(item, type_)| self.walk(type_, item, root));
                }
            }
            Type::Map(inner) => {
                for view in views(schema, root, DEPTH) {
                    let patterns = view.get("patternProperties").and_then(Value::as_object);
                    let values = view.get("additionalProperties").into_iter();
                    let mut values = values.chain(patterns.into_iter().flat_map(Map::values));
                    if let Some(values) = values.find(|values| values.is_object()) {
                        self.walk(inner, &values.clone(), root);
                        break;
                    }
                }
            }
            Type::Named(name) => self.named(name, schema, root),
            _ => {}
        }
    }

    fn named(&mut self, name: &str, schema: &Value, root: &Rc<Value>) {
        if self.found.contains_key(name) {
            return;
        }
        let code = self.code;
        match code.types.get(name) {
            Some(Shape::Newtype(inner)) => {
                // Recursive: it is no record, so that this marks it and no more.
                let pair = Pair { schema: None, properties: Vec::new(), required: BTreeSet::new() };
                self.found.insert(name.to_owned(), pair);
                self.walk(inner, schema, root);
            }
            Some(Shape::Record(record)) => self.record(name, record, schema, root),
            Some(Shape::Union(variants, _)) => {
                let pair = Pair { schema: None, properties: Vec::new(), required: BTreeSet::new() };
                self.found.insert(name.to_owned(), pair);
                let branches = branches(schema, root, DEPTH);
                for (_, type_) in variants {
                    match code.record(type_) {
                        // Of the parts of a union, one with the properties of the type is its schema.
                        Some((name, record)) => {
                            let each = branches.iter().filter(|branch| view(record, branch, root).is_some());
                            let mut each: Vec<&Value> = each.collect();
                            each.sort_by_cached_key(|branch| rank(name, record, branch, root));
                            if let Some(branch) = each.first() {
                                self.walk(type_, branch, root);
                            }
                        }
                        // What is a union again has parts of this one.
                        None => self.walk(type_, schema, root),
                    }
                }
            }
            _ => {}
        }
    }

    fn record(&mut self, name: &str, record: &Record, schema: &Value, root: &Rc<Value>) {
        let Some((view, is_whole)) = view(record, schema, root) else { return };
        let required = required(&view, root);
        // A variant and what stands beside it have no order.
        let is_ordered = is_whole && schema.get(JOINED).is_none();
        let properties = view["properties"].as_object().filter(|_| is_ordered).into_iter().flatten();
        let properties = properties.map(|(name, _)| name.clone()).collect();
        let pair = Pair { schema: Some((schema.clone(), root.clone())), properties, required };
        self.found.insert(name.to_owned(), pair);
        for (field, type_) in &record.fields {
            let property = record.property(field);
            let part = match property {
                Some(property) => view["properties"].get(property).cloned(),
                None => view.get("additionalProperties").filter(|part| part.is_object()).cloned(),
            };
            let Some(part) = part else { continue };
            match (property, type_) {
                (None, Type::Map(inner)) => self.walk(inner, &part, root),
                _ => self.walk(type_, &part, root),
            }
        }
    }
}

/// The view of a schema with the properties of a record; of several, one that requires what the record asks for.
///
/// Gives also if it is the schema itself, not one of its variants.
fn view(record: &Record, schema: &Value, root: &Value) -> Option<(Value, bool)> {
    let mut views: Vec<(Value, bool)> =
        views(schema, root, DEPTH).into_iter().enumerate().map(|(at, view)| (view, at == 0)).collect();
    views.retain(|(view, _)| is_of(record, view, root));
    let at = views.iter().position(|(view, _)| asks_the_same(record, view, root));
    (!views.is_empty()).then(|| views.swap_remove(at.unwrap_or_default()))
}

/// How well a part of a union fits a record with its properties; the least is the best.
fn rank(name: &str, record: &Record, branch: &Value, root: &Value) -> (bool, bool) {
    let folded = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let own = branch["$ref"].as_str().and_then(|text| text.rsplit('/').next()).map(folded);
    let is_same = view(record, branch, root).is_some_and(|(view, _)| asks_the_same(record, &view, root));
    (own != Some(folded(name)), !is_same)
}

fn asks_the_same(record: &Record, view: &Value, root: &Value) -> bool {
    let asked = record.new.iter().flatten().filter_map(|(field, _)| record.property(field)).collect::<BTreeSet<&str>>();
    let required = required(view, root);
    let required: BTreeSet<&str> =
        required.iter().map(String::as_str).filter(|name| record.field(name).is_some()).collect();
    asked == required
}

/// The properties that a request must hold; without those that are required and nowhere described, which types do not
/// demand: such names are mostly left from another version.
fn required(view: &Value, root: &Value) -> BTreeSet<String> {
    let names = view["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let names = names.filter(|name| view["properties"].get(*name).is_some());
    names.filter(|name| !is_read_only(&view["properties"][*name], root)).map(str::to_owned).collect()
}

fn is_read_only(schema: &Value, root: &Value) -> bool {
    merged(schema, root, 0)["readOnly"] == true
}

/// True if a record has the properties of a schema, but for those that only responses hold.
fn is_of(record: &Record, view: &Value, root: &Value) -> bool {
    let own: BTreeSet<&str> = record.properties.iter().map(String::as_str).collect();
    let properties = view["properties"].as_object().into_iter().flatten();
    let mut properties = properties.filter(|(_, schema)| **schema != Value::Bool(false));
    let required: BTreeSet<&str> =
        view["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    // A property may be required without being described.
    own.iter().all(|name| view["properties"].get(name).is_some() || required.contains(name))
        && properties.all(|(name, schema)| own.contains(name.as_str()) || is_read_only(schema, root))
        && record.constants().iter().zip(&record.values).all(|(name, value)| {
            let property = merged(&view["properties"][name.as_str()], root, 0);
            let listed = property["enum"].as_array().is_none_or(|values| values.contains(value));
            listed && property.get("const").is_none_or(|own| own == value)
        })
}

/// The schema as one that says all itself: with what it refers to, and then with the parts of its unions.
///
/// Of several variants, what a record of all of them has is in the first view: all properties, and those required that
/// each of them requires.
fn views(schema: &Value, root: &Value, depth: usize) -> Vec<Value> {
    let whole = merged(schema, root, 0);
    let Some(depth) = depth.checked_sub(1) else { return vec![whole] };
    let mut found = vec![whole.clone()];
    for keyword in ["oneOf", "anyOf"] {
        let variants: Vec<&Value> =
            whole[keyword].as_array().into_iter().flatten().filter(|variant| !is_null(variant)).collect();
        if variants.is_empty() {
            continue;
        }
        let mut base = whole.clone();
        if let Some(members) = base.as_object_mut() {
            members.remove(keyword);
        }
        let each: Vec<Vec<Value>> =
            variants.iter().map(|variant| views(&json!({ "allOf": [base, variant] }), root, depth)).collect();
        let firsts: Vec<&Value> = each.iter().filter_map(|views| views.first()).collect();
        if variants.len() > 1 {
            found.push(union_of(&firsts));
        }
        found.extend(each.into_iter().flatten());
    }
    found
}

fn union_of(views: &[&Value]) -> Value {
    let mut properties = Map::new();
    for (name, schema) in views.iter().filter_map(|view| view["properties"].as_object()).flatten() {
        properties.entry(name.clone()).or_insert(schema.clone());
    }
    let requires =
        |view: &&Value, name: &str| view["required"].as_array().into_iter().flatten().any(|required| required == name);
    let required: Vec<String> =
        properties.keys().filter(|name| views.iter().all(|view| requires(view, name))).cloned().collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// The parts of a union, and those of unions in it; the schema itself if it is none.
fn branches(schema: &Value, root: &Value, depth: usize) -> Vec<Value> {
    let whole = merged(schema, root, 0);
    let Some(depth) = depth.checked_sub(1) else { return vec![schema.clone()] };
    let lists = ["oneOf", "anyOf"].into_iter().filter_map(|keyword| Some((keyword, whole[keyword].as_array()?)));
    let mut found = Vec::new();
    for (keyword, list) in lists {
        let mut base = whole.clone();
        if let Some(members) = base.as_object_mut() {
            members.remove(keyword);
            members.remove("discriminator");
        }
        let is_bare =
            base.as_object().is_some_and(|base| !base.contains_key("properties") && !base.contains_key("required"));
        for variant in list.iter().filter(|variant| !is_null(variant)) {
            found.push(if is_bare { variant.clone() } else { json!({ "allOf": [base, variant], JOINED: true }) });
        }
    }
    let mapping = whole["discriminator"]["mapping"].as_object().into_iter().flatten();
    if found.is_empty() {
        found.extend(mapping.map(|(_, target)| json!({ "$ref": target })));
    }
    found.retain(|part| part != schema);
    let inner: Vec<Value> = found.iter().flat_map(|part| branches(part, root, depth)).collect();
    let new: Vec<Value> = inner.into_iter().filter(|part| !found.contains(part)).collect();
    found.extend(new);
    found.push(schema.clone());
    found
}
