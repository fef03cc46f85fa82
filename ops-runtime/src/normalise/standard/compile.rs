//! Compiles a document to numbered schemas, each once.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::Validator;
use super::keyword::{ANY, Id, Keyword, NEVER, Properties, Rules, Schema, Union, by_name};
use super::locate::{Document, Place, address};
use super::{plain, shape, unread};
use crate::normalise::draft::{count, most, numbers, types};
use crate::normalise::equal::copy;
use crate::normalise::findings::{Problem, Problems};
use crate::normalise::node::Literals;
use crate::normalise::pattern::Pattern;
use crate::normalise::text::StringRules;

/// How many names may be looked up by the way to a schema: what each of them leads to is kept for each such way.
const MAX_NAMES: usize = 64;

/// Compiles a schema; if it `counts_bytes`, a string of the format `binary` is as long as the bytes that it stands for.
pub(super) fn compile(schema: &Value, counts_bytes: bool) -> Validator {
    let document = Document::read(schema);
    let mut compiler = Compiler {
        document: &document,
        counts_bytes,
        schemas: vec![Schema::Any, Schema::Never],
        ids: HashMap::new(),
        queue: Vec::new(),
        names: HashMap::new(),
        problems: Problems::default(),
    };
    let mut root = compiler.schema(Place { schema, resource: 0 });
    compiler.rest();
    // All possible targets of dynamic references are compiled now that all names are known.
    let mut anchors = Vec::new();
    let names: Vec<(&str, u32)> = compiler.names.iter().map(|(name, number)| (*name, *number)).collect();
    if !names.is_empty() {
        for (resource, home) in document.resources.iter().enumerate() {
            let here = names.iter().filter_map(|(name, number)| Some((*number, *home.dynamic.get(name)?)));
            anchors.push(here.map(|(number, schema)| (number, compiler.schema(Place { schema, resource }))).collect());
        }
        compiler.rest();
    }
    let Compiler { mut schemas, mut problems, .. } = compiler;
    unread::settle(&mut schemas, &mut problems);
    shape::finish(&mut schemas, &mut root, &anchors);
    // Problems are told after a closer look, so values that conform get one, too.
    let is_plain = anchors.is_empty() && problems.is_empty() && plain::are_plain(&schemas);
    Validator { schemas, root, anchors, problems: problems.into_list(), is_plain }
}

struct Compiler<'d, 's> {
    document: &'d Document<'s>,
    counts_bytes: bool,
    schemas: Vec<Schema>,
    /// By the schema's address.
    ids: HashMap<usize, Id>,
    queue: Vec<(Id, Place<'s>)>,
    /// The names that dynamic references use.
    names: HashMap<&'s str, u32>,
    problems: Problems,
}

impl<'s> Compiler<'_, 's> {
    /// The number of a schema, which is compiled later.
    fn schema(&mut self, place: Place<'s>) -> Id {
        match place.schema {
            Value::Bool(false) => return NEVER,
            Value::Object(map) if !map.is_empty() => {}
            _ => return ANY,
        }
        let Ok(next) = Id::try_from(self.schemas.len()) else { return ANY };
        *self.ids.entry(address(place.schema)).or_insert_with(|| {
            self.schemas.push(Schema::Any);
            self.queue.push((next, place));
            next
        })
    }

    /// Compiles the schemas that have a number and are not compiled yet.
    fn rest(&mut self) {
        while let Some((id, place)) = self.queue.pop() {
            let Value::Object(map) = place.schema else { continue };
            let resource = self.document.home(place.schema, place.resource);
            let rules = self.rules(map, resource);
            if let Some(slot) = self.schemas.get_mut(id as usize).filter(|_| !rules.keywords.is_empty()) {
                *slot = Schema::Rules(Box::new(rules));
            }
        }
    }

    fn rules(&mut self, map: &'s Map<String, Value>, resource: usize) -> Rules {
        let mut keywords = Vec::new();
        values(map, self.counts_bytes, &mut keywords);
        self.properties(map, resource, &mut keywords);
        self.items(map, resource, &mut keywords);
        self.combined(map, resource, &mut keywords);
        let mut one = |keyword: &str| Some(self.schema(Place { schema: map.get(keyword)?, resource }));
        keywords.extend(one("unevaluatedItems").map(Keyword::UnevaluatedItems));
        keywords.extend(one("unevaluatedProperties").map(Keyword::UnevaluatedProperties));
        Rules { keywords, resource: u32::try_from(resource).unwrap_or(0), ..Rules::default() }
    }

    fn properties(&mut self, map: &'s Map<String, Value>, resource: usize, keywords: &mut Vec<Keyword>) {
        let object = |keyword| map.get(keyword).and_then(Value::as_object);
        let mut properties = Properties::default();
        for (name, schema) in object("properties").into_iter().flatten() {
            properties.named.push((name.as_str().into(), self.schema(Place { schema, resource })));
        }
        by_name(&mut properties.named);
        for (source, schema) in object("patternProperties").into_iter().flatten() {
            properties.patterns.push((Pattern::new(source, false), self.schema(Place { schema, resource })));
        }
        if let Some(schema) = map.get("additionalProperties") {
            properties.additional = Some(self.schema(Place { schema, resource }));
        }
        let Properties { named, patterns, additional } = &properties;
        if !named.is_empty() || !patterns.is_empty() || additional.is_some() {
            keywords.push(Keyword::Properties(Box::new(properties)));
        }
        if let Some(schema) = map.get("propertyNames") {
            keywords.push(Keyword::Names(self.schema(Place { schema, resource })));
        }
        if let Some(dependent) = object("dependentSchemas") {
            let dependent = dependent.iter();
            let of = dependent.map(|(name, schema)| (name.as_str().into(), self.schema(Place { schema, resource })));
            keywords.push(Keyword::DependentSchemas(of.collect()));
        }
    }

    fn items(&mut self, map: &'s Map<String, Value>, resource: usize, keywords: &mut Vec<Keyword>) {
        let prefix = map.get("prefixItems").and_then(Value::as_array).into_iter().flatten();
        let prefix: Vec<Id> = prefix.map(|schema| self.schema(Place { schema, resource })).collect();
        let rest = map.get("items").map(|schema| self.schema(Place { schema, resource }));
        if !prefix.is_empty() || rest.is_some() {
            keywords.push(Keyword::Items { prefix, rest });
        }
        if let Some(schema) = map.get("contains") {
            let item = self.schema(Place { schema, resource });
            let min = count(map, "minContains").unwrap_or(1);
            keywords.push(Keyword::Contains { item, min, max: most(map, "maxContains") });
        }
    }

    /// References and schemas for the same value.
    fn combined(&mut self, map: &'s Map<String, Value>, resource: usize, keywords: &mut Vec<Keyword>) {
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            match self.document.find(resource, reference) {
                Some((place, _)) => keywords.push(Keyword::Ref(self.schema(place))),
                None => self.problems.add(Problem::nowhere(reference)),
            }
        }
        if let Some(reference) = map.get("$dynamicRef").and_then(Value::as_str) {
            self.dynamic(reference, resource, keywords);
        }
        let mut some = |keyword: &str| -> Vec<Id> {
            let schemas = map.get(keyword).and_then(Value::as_array).into_iter().flatten();
            schemas.map(|schema| self.schema(Place { schema, resource })).collect()
        };
        let (all, any, one) = (some("allOf"), some("anyOf"), some("oneOf"));
        if !all.is_empty() {
            keywords.push(Keyword::All(all));
        }
        if !any.is_empty() {
            keywords.push(Keyword::Any(Union { variants: any, tag: None }));
        }
        if !one.is_empty() {
            keywords.push(Keyword::One(Union { variants: one, tag: None }));
        }
        let mut one = |keyword: &str| Some(self.schema(Place { schema: map.get(keyword)?, resource }));
        keywords.extend(one("not").map(Keyword::Not));
        if let Some(condition) = one("if") {
            let (then, otherwise) = (one("then").unwrap_or(ANY), one("else").unwrap_or(ANY));
            keywords.push(Keyword::If { condition, then, otherwise });
        }
    }

    fn dynamic(&mut self, reference: &'s str, resource: usize, keywords: &mut Vec<Keyword>) {
        let Some((place, name)) = self.document.find(resource, reference) else {
            self.problems.add(Problem::nowhere(reference));
            return;
        };
        let id = self.schema(place);
        let home = self.document.resources.get(place.resource);
        // Only dynamic anchors are looked up; any other name is an ordinary reference.
        if !home.is_some_and(|home| home.dynamic.contains_key(name)) {
            keywords.push(Keyword::Ref(id));
            return;
        }
        let next = self.names.len();
        if next >= MAX_NAMES && !self.names.contains_key(name) {
            self.problems.add(Problem::too_many_names(reference));
            keywords.push(Keyword::Ref(id));
            return;
        }
        let name = *self.names.entry(name).or_insert(u32::try_from(next).unwrap_or(u32::MAX));
        keywords.push(Keyword::DynamicRef { name, otherwise: id });
    }
}

/// The keywords that hold no schemas.
fn values(map: &Map<String, Value>, counts_bytes: bool, keywords: &mut Vec<Keyword>) {
    keywords.extend(types(map).map(Keyword::Types));
    if let Some(value) = map.get("const") {
        keywords.push(Keyword::Literals(copy(value).into_iter().collect::<Literals>()));
    }
    if let Some(values) = map.get("enum").and_then(Value::as_array) {
        keywords.push(Keyword::Literals(values.iter().filter_map(copy).collect()));
    }
    let number = numbers(map);
    if !number.is_empty() {
        keywords.push(Keyword::Number(number));
    }
    let length = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let pattern = map.get("pattern").and_then(Value::as_str);
    let text = StringRules {
        min: count(map, "minLength").map(length),
        max: most(map, "maxLength").map(length),
        patterns: pattern.map(|source| Pattern::new(source, false)).into_iter().collect(),
        is_bytes: counts_bytes && map.get("format").is_some_and(|format| format == "binary"),
        ..StringRules::default()
    };
    if text.min.is_some() || text.max.is_some() || !text.patterns.is_empty() {
        keywords.push(Keyword::Text(text));
    }
    let unique = map.get("uniqueItems") == Some(&Value::Bool(true));
    let (min, max) = (count(map, "minItems"), most(map, "maxItems"));
    if min.is_some() || max.is_some() || unique {
        keywords.push(Keyword::Array { min, max, unique });
    }
    let (min, max) = (count(map, "minProperties"), most(map, "maxProperties"));
    if min.is_some() || max.is_some() {
        keywords.push(Keyword::Object { min, max });
    }
    let names = |list: &Value| -> Vec<Box<str>> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(Box::from).collect()
    };
    if let Some(required) = map.get("required").map(names).filter(|names| !names.is_empty()) {
        keywords.push(Keyword::Required(required));
    }
    if let Some(dependent) = map.get("dependentRequired").and_then(Value::as_object) {
        let dependent = dependent.iter().map(|(name, list)| (name.as_str().into(), names(list)));
        keywords.push(Keyword::DependentRequired(dependent.collect()));
    }
}
