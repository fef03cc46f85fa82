//! The default reading: schemas of all dialects to one canonical form.

mod conditional;
mod conditions;
mod limits;
mod members;
mod union;

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::budget::Budget;
use super::definitions::{CompiledDefinitions, Pool};
use super::draft::Draft;
use super::equal::{copy, weight};
use super::findings::{Problem, Problems};
use super::node::{ArrayRules, Intersect, Kind, Literals, NULL, Node, ObjectRules, Target, Typed, Types, Unit};
use super::pattern::size::Allowance;
use super::reference::{Anchors, Found, Home, Raw};
use conditional::has_conditions;
use limits::{Holds, Visited, parts};
use union::{can_narrow, discriminator, merge_variants, narrow, nullable};

/// Keywords that constrain values. A schema with only one of these means just that keyword.
const ASSERTIONS: [&str; 29] = [
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "required",
    "type",
    "unevaluatedProperties",
];

/// The keywords that refer to a schema. Of several in one schema, the first is followed.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Compiles a schema and everything inside it that it refers to.
///
/// `key` is the schema's own key in the table, if it is a definition.
pub(super) fn compile(
    schema: &Value,
    key: Option<&str>,
    definitions: &CompiledDefinitions,
    patterns: &Allowance,
    problems: &mut Problems,
) -> Unit {
    let fetched = Pool::new();
    let home = if key.is_some() { Home::Table } else { Home::Schema };
    let root = Raw::root(schema, home);
    let mut lowering = Lowering {
        root,
        key,
        definitions,
        patterns,
        fetched: &fetched,
        keys: HashMap::new(),
        anchors: Anchors::default(),
        locals: Vec::new(),
        queue: Vec::new(),
        known: HashMap::new(),
        holds: Holds::default(),
        budget: Budget::new(),
        problems,
    };
    let root = lowering.schema(root, 0);
    while let Some((id, schemas)) = lowering.queue.pop() {
        let node = lowering.all(&schemas);
        if let Some(slot) = lowering.locals.get_mut(id as usize) {
            *slot = Some(node);
        }
    }
    let locals = lowering.locals.into_iter().map(|node| node.unwrap_or_else(Node::any)).collect();
    Unit { root, locals }
}

struct Lowering<'s, 'p> {
    root: Raw<'s>,
    key: Option<&'s str>,
    definitions: &'s CompiledDefinitions,
    patterns: &'s Allowance,
    /// Definitions of the table that are merged into this unit.
    fetched: &'s Pool<Value>,
    keys: HashMap<String, &'s OnceLock<Value>>,
    anchors: Anchors<'s>,
    locals: Vec<Option<Node>>,
    queue: Vec<(u32, Vec<Raw<'s>>)>,
    known: HashMap<Vec<usize>, u32>,
    holds: Holds,
    /// For the rules that the values of enums have to follow.
    budget: Budget,
    problems: &'p mut Problems,
}

impl<'s> Lowering<'s, '_> {
    /// True if the limits allow another schema.
    fn affords(&mut self, depth: u32) -> bool {
        self.holds.affords(depth, self.problems)
    }

    /// True if the limits allow so many more parts of schemas.
    fn holds(&mut self, parts: usize) -> bool {
        self.holds.takes(parts, self.problems)
    }

    fn schema(&mut self, raw: Raw<'s>, depth: u32) -> Node {
        let Value::Object(map) = raw.schema else {
            return Node::new(if raw.schema == &Value::Bool(false) { Kind::Never } else { Kind::Any }, None);
        };
        if !self.affords(depth) {
            return Node::any();
        }
        let mut assertions = map.keys().filter(|key| ASSERTIONS.binary_search(&key.as_str()).is_ok());
        let sole = match (assertions.next().map(String::as_str), assertions.next()) {
            // What is declared under a condition is declared beside it.
            _ if has_conditions(map) => None,
            (Some("$ref" | "$dynamicRef" | "$recursiveRef"), None) => Some(self.reference(raw, map)),
            (Some(keyword @ ("allOf" | "anyOf" | "oneOf")), None) => {
                match map.get(keyword).and_then(Value::as_array).map(Vec::as_slice) {
                    Some([member]) => Some(self.schema(raw.to(member), depth + 1)),
                    _ => None,
                }
            }
            _ => None,
        };
        let Some(mut node) = sole else {
            let draft = self.draft(raw, &mut Visited::default(), depth);
            return self.finish(draft, depth);
        };
        if map.get("nullable") == Some(&Value::Bool(true)) {
            node = nullable(node);
        }
        let default = map.get("default").filter(|default| self.holds(weight(default)));
        node.or_default(default.and_then(copy))
    }

    /// The conjunction of several schemas.
    fn all(&mut self, schemas: &[Raw<'s>]) -> Node {
        if let [one] = schemas {
            return self.schema(*one, 0);
        }
        let mut visited = Visited::default();
        let mut draft = boxed(Draft::default);
        for raw in schemas {
            let member = self.draft(*raw, &mut visited, 0);
            self.merge(&mut draft, member);
        }
        self.finish(draft, 0)
    }

    /// A schema, or a conjunction of some. Conjunctions are compiled once each, separately: recursive ones repeat.
    fn each(&mut self, schemas: &[Raw<'s>], depth: u32) -> Node {
        match schemas {
            [] => Node::any(),
            [one] => self.schema(*one, depth + 1),
            many => self.local(many),
        }
    }

    /// The same, with schemas that declare parts of the same value under a condition.
    fn each_with(&mut self, schemas: &[Raw<'s>], conditional: &[Raw<'s>], depth: u32) -> Node {
        // Where nothing is declared without a condition, everything stays.
        if schemas.is_empty() || conditional.is_empty() {
            return self.each(schemas, depth);
        }
        self.local(&[schemas, conditional].concat())
    }

    fn local(&mut self, schemas: &[Raw<'s>]) -> Node {
        let mut key: Vec<usize> = schemas.iter().map(|raw| raw.address()).collect();
        key.sort_unstable();
        key.dedup();
        if let Some(id) = self.known.get(&key) {
            return Node::new(Kind::Ref(Target::Local(*id)), None);
        }
        let Ok(id) = u32::try_from(self.locals.len()) else { return Node::any() };
        self.locals.push(None);
        let mut seen = HashSet::new();
        self.queue.push((id, schemas.iter().filter(|raw| seen.insert(raw.address())).copied().collect()));
        self.known.insert(key, id);
        Node::new(Kind::Ref(Target::Local(id)), None)
    }

    fn resolve(&mut self, raw: Raw<'s>, map: &'s Map<String, Value>) -> Option<(&'s str, Found<'s>)> {
        let (keyword, reference) = REFERENCES.iter().find_map(|key| Some((*key, map.get(*key)?)))?;
        let reference = reference.as_str()?;
        if self.anchors.is_dynamic(raw, keyword, reference) {
            return Some((reference, Found::Nowhere));
        }
        let found = match self.anchors.resolve(raw, reference) {
            Found::Shared(_) if self.definitions.is_empty() => Found::Nowhere,
            found => found,
        };
        if let Found::Nowhere = found {
            self.problems.add(Problem::nowhere(reference));
        }
        Some((reference, found))
    }

    fn reference(&mut self, raw: Raw<'s>, map: &'s Map<String, Value>) -> Node {
        match self.resolve(raw, map) {
            Some((_, Found::Here(target))) => self.local(&[target]),
            Some((_, Found::Shared(key))) => match self.definitions.id(&key) {
                Some(id) => Node::new(Kind::Ref(Target::Shared(id)), None),
                None => Node::any(),
            },
            Some((_, Found::Nowhere)) | None => Node::any(),
        }
    }

    /// The schema behind a reference, to be merged with the members beside the reference.
    fn target(&mut self, raw: Raw<'s>, map: &'s Map<String, Value>) -> Option<Raw<'s>> {
        let target = match self.resolve(raw, map)?.1 {
            Found::Here(target) => Some(target),
            Found::Shared(key) if self.key == Some(&key) => Some(self.root),
            Found::Shared(key) => {
                let place = match self.keys.get(&key) {
                    Some(place) => *place,
                    None => {
                        let place = self.fetched.slot(u32::try_from(self.keys.len()).ok()?)?;
                        match self.definitions.schema(&key) {
                            Some(schema) => place.get_or_init(|| schema),
                            None => {
                                self.problems.add(Problem::nowhere(&key));
                                return None;
                            }
                        };
                        self.keys.insert(key, place);
                        place
                    }
                };
                place.get().map(|schema| Raw::root(schema, Home::Table))
            }
            Found::Nowhere => None,
        };
        target.map(|target| Raw { is_conditional: raw.is_conditional, ..target })
    }

    /// All constraints of a schema on one value. Schemas in `visited` are already part of them.
    // Drafts are boxed and kept out of the frames of what recurses: a schema may be nested as deep as it is allowed to be
    // on a thread with 2 MB of stack, without optimisation, too.
    fn draft(&mut self, raw: Raw<'s>, visited: &mut Visited, depth: u32) -> Box<Draft<'s>> {
        let map = match raw.schema {
            Value::Object(map) => map,
            Value::Bool(false) if !raw.is_conditional => return boxed(Draft::never),
            _ => return boxed(Draft::default),
        };
        if raw.is_conditional {
            let mut draft = boxed(Draft::default);
            self.conditions(raw, map, &mut draft);
            return draft;
        }
        if visited.contains(raw.address()) {
            return boxed(Draft::default);
        }
        if !self.affords(depth) || !self.holds(parts(map)) {
            return boxed(|| Draft { unknown: true, ..Draft::default() });
        }
        let mark = visited.mark();
        visited.add(raw.address());
        let mut draft = boxed(|| Draft::read(raw, map));
        self.conditions(raw, map, &mut draft);
        let references = references(map);
        if references > 0 {
            draft.unknown |= references > 1;
            match self.target(raw, map) {
                Some(target) => {
                    let target = self.draft(target, visited, depth + 1);
                    self.merge(&mut draft, target);
                }
                None => draft.unknown = true,
            }
        }
        for member in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            let member = self.draft(raw.to(member), visited, depth + 1);
            self.merge(&mut draft, member);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(variants) = map.get(keyword).and_then(Value::as_array).filter(|list| !list.is_empty()) {
                // A base that lists its children, merged into one of them, adds nothing.
                if variants.iter().any(|variant| self.is_among(raw.to(variant), visited)) {
                    continue;
                }
                if let [variant] = variants.as_slice() {
                    let variant = self.draft(raw.to(variant), visited, depth + 1);
                    self.merge(&mut draft, variant);
                    continue;
                }
                let mut union = self.union(raw, variants, map.get("discriminator"), depth);
                if let Kind::Union(union) = &mut union.kind {
                    union.overlaps = keyword == "anyOf";
                }
                draft.unions.push(union);
            }
        }
        draft.settle();
        if map.get("nullable") == Some(&Value::Bool(true)) {
            // A part merged here is optional as a whole, so it must be merged again where it is not optional.
            visited.back_to(mark);
            draft = self.nullable(draft, depth);
        }
        draft
    }

    /// Adds another schema to a draft. If that grows too much, what it asks is not checked.
    #[inline(never)]
    fn merge(&mut self, draft: &mut Draft<'s>, other: Box<Draft<'s>>) {
        if self.holds(draft.growth(&other)) {
            draft.and(*other);
        } else {
            draft.unknown = true;
        }
    }

    /// True if a schema is, or refers to, one of these.
    fn is_among(&mut self, raw: Raw<'s>, visited: &Visited) -> bool {
        let reference = raw.schema.get("$ref").and_then(Value::as_str);
        let address = match reference.map(|reference| self.anchors.resolve(raw, reference)) {
            None => Some(raw.address()),
            Some(Found::Here(target)) => Some(target.address()),
            Some(Found::Shared(key)) if self.key == Some(&key) => Some(self.root.address()),
            Some(Found::Shared(key)) => {
                self.keys.get(&key).and_then(|place| place.get()).map(|schema| std::ptr::from_ref(schema).addr())
            }
            Some(Found::Nowhere) => None,
        };
        address.is_some_and(|address| visited.contains(address))
    }

    /// The schema or null.
    fn nullable(&mut self, mut draft: Box<Draft<'s>>, depth: u32) -> Box<Draft<'s>> {
        if draft.never || !draft.unions.is_empty() {
            let default = draft.default.take();
            let node = nullable(self.finish(draft, depth));
            return boxed(|| Draft { unions: vec![node], default, ..Draft::default() });
        }
        draft.types = draft.types.map(|types| types.or(Types::one(NULL)));
        if let Some(values) = draft.literals.as_mut().filter(|values| !values.contains(&Value::Null)) {
            values.push(Value::Null);
        }
        draft
    }

    fn union(&mut self, raw: Raw<'s>, variants: &'s [Value], tag: Option<&'s Value>, depth: u32) -> Node {
        let mut nodes: Vec<Node> = Vec::with_capacity(variants.len());
        for variant in variants {
            nodes.push(self.schema(raw.to(variant), depth + 1));
        }
        let discriminator = tag.and_then(|tag| discriminator(variants, tag));
        let mut node = merge_variants(nodes);
        if let Kind::Union(union) = &mut node.kind {
            union.discriminator = discriminator;
        }
        node
    }

    fn finish(&mut self, mut draft: Box<Draft<'s>>, depth: u32) -> Node {
        let default = draft.default.take();
        let mut unions = std::mem::take(&mut draft.unions);
        let base = self.base(draft, !unions.is_empty(), depth);
        match (base.kind, unions.pop()) {
            (kind, None) => Node::new(kind, default),
            (Kind::Any, Some(union)) if unions.is_empty() => union.or_default(default),
            (Kind::Plain(types), Some(mut union)) if unions.is_empty() && can_narrow(&union) => {
                narrow(&mut union, types);
                union.or_default(default)
            }
            (kind, Some(union)) => {
                let mut members = vec![Node::new(kind, None)];
                members.append(&mut unions);
                members.push(union);
                members.retain(|node| !matches!(node.kind, Kind::Any));
                Node::new(Kind::Intersect(Box::new(Intersect { members, sealed: false })), default)
            }
        }
    }

    /// The draft without its unions and its default.
    fn base(&mut self, mut draft: Box<Draft<'s>>, among_unions: bool, depth: u32) -> Node {
        let types = draft.types.unwrap_or(Types::ALL);
        let kind = if draft.never {
            Kind::Never
        } else if let Some(values) = draft.literals.take() {
            let values = self.literals(values, types, &draft);
            if values.is_empty() { Kind::Never } else { Kind::Literals(values) }
        } else if types.is_none() {
            Kind::Never
        } else {
            draft.keep_only(types);
            // Beside unions, what is declared under a condition may be undeclared in their variants.
            let array = draft.array.take().filter(|array| array.is_ruled() || among_unions);
            let array = array.map(|array| self.array(&array, depth));
            let object = draft.object.take().filter(|object| object.is_ruled() || among_unions);
            let object = object.map(|object| self.object(object, among_unions, draft.unknown, depth));
            draft.string.patterns.iter().for_each(|pattern| _ = self.reads(pattern));
            typed(types, draft, array, object)
        };
        Node::new(kind, None)
    }

    /// The values of an enum that follow the rules beside it for numbers and texts. Those for lists and objects are not
    /// looked at.
    fn literals(&mut self, mut values: Vec<Value>, types: Types, draft: &Draft<'s>) -> Literals {
        // `type: string` beside the numbers of an enum is a slip, not a contradiction.
        if values.iter().any(|value| types.admits(value)) {
            values.retain(|value| types.admits(value));
        }
        let (number, string) = (&draft.number, &draft.string);
        if values.iter().any(Value::is_string) {
            string.patterns.iter().for_each(|pattern| _ = self.reads(pattern));
        }
        let checks_numbers = self.holds(values.len().saturating_mul(number.multiple_of.len()) / 64);
        self.budget.grow(values.len());
        values.retain(|value| match value {
            Value::Number(value) => !checks_numbers || number.check(value),
            // If the steps ran out, it is not known.
            Value::String(text) => string.check(text, &self.budget) || self.budget.is_dry(),
            _ => true,
        });
        values.into_iter().collect()
    }
}

/// How many keywords of a schema refer to others.
fn references(map: &Map<String, Value>) -> usize {
    REFERENCES.iter().filter(|key| map.contains_key(**key)).count()
}

/// Makes a draft where no frame of what recurses holds it.
#[inline(never)]
fn boxed<'s>(make: impl FnOnce() -> Draft<'s>) -> Box<Draft<'s>> {
    Box::new(make())
}

/// What is asked of values of these types.
#[inline(never)]
fn typed(types: Types, draft: Box<Draft<'_>>, array: Option<ArrayRules>, object: Option<ObjectRules>) -> Kind {
    let Draft { number, string, .. } = *draft;
    let has_string =
        string.min.is_some() || string.max.is_some() || !string.patterns.is_empty() || string.format.is_some();
    let (number, string) = ((!number.is_empty()).then_some(number), has_string.then_some(string));
    let ruled = number.is_some() || string.is_some() || array.is_some() || object.is_some();
    match (ruled, types.is_all()) {
        (true, _) => Kind::Typed(Box::new(Typed { types, number, string, array, object })),
        (false, true) => Kind::Any,
        (false, false) => Kind::Plain(types),
    }
}

impl Node {
    fn or_default(self, default: Option<Value>) -> Node {
        if default.is_some() { Node::new(self.kind, default) } else { self }
    }
}
