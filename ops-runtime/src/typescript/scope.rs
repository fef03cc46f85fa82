//! Definitions that schemas refer to, and the names that they get in one namespace.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use serde_json::Value;

use super::budget::Budget;
use super::held::Held;
use super::lower::Lower;
use super::tree::{Doc, Type};
use crate::model::keywords::{Holds, holds};
use crate::{Definitions, pointer};

/// Who sends the values of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Side {
    /// The caller of an HTTP operation, for its parameters and bodies themselves, which are all sent.
    Parts,
    /// The same caller, for what is in them: nothing that is `readOnly`.
    Request,
    /// The caller of any other operation, for whom `readOnly` means nothing.
    Input,
    /// The operation, which sends nothing that is `writeOnly`.
    Output,
    /// Nothing depends on it.
    Both,
}

impl Side {
    /// The side of the values of properties.
    pub(super) fn within(self) -> Self {
        if self == Self::Parts { Self::Request } else { self }
    }

    /// True if a property is not for this side.
    pub(super) fn omits(self, property: &Value) -> bool {
        let says = |keyword: &str| property.get(keyword) == Some(&Value::Bool(true));
        match self {
            Self::Request => says("readOnly"),
            Self::Output => says("writeOnly"),
            Self::Parts | Self::Input | Self::Both => false,
        }
    }
}

/// The definitions that the schemas of one API, or one schema with its own, refer to.
struct Table<'a> {
    shared: Option<&'a Definitions>,
    values: HashMap<String, Held<'a>>,
    /// What the definitions refer to.
    seen: HashMap<String, Seen>,
    /// The definitions that have a direction, or reach one that has.
    directed: HashSet<String>,
    /// The table of what this one does not have.
    parent: Option<usize>,
}

/// What is known of a schema without reading it again.
#[derive(Default)]
struct Seen {
    references: Vec<String>,
    has_direction: bool,
    has_root: bool,
    /// How many schemas it is made of.
    schemas: usize,
    /// The hash of its text, once it was asked for.
    hash: OnceCell<u128>,
}

impl Seen {
    fn of(schema: &Value) -> Self {
        let mut seen = Self::default();
        each_schema(schema, &mut |node| {
            seen.schemas += 1;
            if let Some(reference) = node.get("$ref").and_then(Value::as_str) {
                seen.has_root |= reference == ROOT;
                seen.references.extend(definition(reference));
            }
            seen.has_direction |=
                ["readOnly", "writeOnly"].iter().any(|key| node.get(*key) == Some(&Value::Bool(true)));
        });
        seen
    }
}

/// A type with a name.
pub(super) struct Item {
    pub(super) name: String,
    table: usize,
    definition: String,
    pub(super) side: Side,
    lowered: Option<Rc<Lowered>>,
    /// True if it is known to be no part of a circle.
    is_done: bool,
}

/// A type on the way through those that others are directly made of.
struct Visit {
    number: usize,
    /// The types that it is made of and that are still to be looked at.
    direct: Vec<usize>,
    /// Those that are made of it in turn.
    circular: Vec<usize>,
}

/// What a name stands for.
pub(super) struct Lowered {
    pub(super) type_: Type,
    pub(super) doc: Doc,
}

/// The types of one namespace.
#[derive(Default)]
pub(super) struct Scope<'a> {
    tables: Vec<Table<'a>>,
    items: Vec<Item>,
    numbers: HashMap<(usize, String, Side), usize>,
    taken: HashSet<String>,
    /// How many definitions have each name, before it gets a number.
    alike: HashMap<String, usize>,
    /// The numbers of definitions that a schema holds for itself, by the hashes of all that they lead to.
    closures: HashMap<u128, usize>,
    /// How many definitions and references were looked at to find which are alike.
    looked: usize,
    /// Which named types must have something.
    demanding: HashMap<usize, bool>,
    /// What may be looked at beside the schemas that types are made of.
    pub(super) budget: Budget,
}

/// The name under which a schema is found to which `#` refers.
const ROOT: &str = "#";

/// How many definitions and references are looked at to find which definitions are alike. Beyond that, each has a name of its own.
const LOOKED: usize = 1 << 21;

impl<'a> Scope<'a> {
    /// The table of the definitions that an API shares.
    pub(super) fn shared(&mut self, definitions: &'a Definitions) -> usize {
        let found = self.tables.iter().position(|table| table.shared.is_some_and(|own| own.same_table(definitions)));
        found.unwrap_or_else(|| self.push(Some(definitions), None))
    }

    fn push(&mut self, shared: Option<&'a Definitions>, parent: Option<usize>) -> usize {
        let (values, seen, directed) = Default::default();
        self.tables.push(Table { shared, values, seen, directed, parent });
        self.tables.len() - 1
    }

    /// Reads what a schema of an operation reaches. Returns the table that its references lead to.
    pub(super) fn load(&mut self, schema: &Held<'a>, shared: &'a Definitions) -> usize {
        let parent = self.shared(shared);
        let value = schema.value();
        let own = ["$defs", "definitions"].iter().filter_map(|key| value.get(*key)?.as_object());
        let own: Vec<(String, Held<'a>)> =
            own.flatten().map(|(name, value)| (name.clone(), Held::Owned(Rc::new(value.clone())))).collect();
        let seen = Seen::of(value);
        self.budget.earn(seen.schemas);
        self.reach(parent, seen.references);
        if own.is_empty() && !seen.has_root {
            return parent;
        }
        let number = self.push(None, Some(parent));
        if let Some(table) = self.tables.get_mut(number) {
            let root = seen.has_root.then(|| (ROOT.to_owned(), schema.clone()));
            for (name, held) in own.into_iter().chain(root) {
                table.seen.insert(name.clone(), Seen::of(held.value()));
                table.values.insert(name, held);
            }
        }
        number
    }

    /// Reads the definitions that a schema reaches in a shared table.
    fn reach(&mut self, table: usize, mut queue: Vec<String>) {
        let Some(table) = self.tables.get_mut(table) else { return };
        let Some(shared) = table.shared else { return };
        let mut schemas = 0;
        while let Some(name) = queue.pop() {
            if table.values.contains_key(&name) {
                continue;
            }
            if let Some(definition) = shared.get(&name) {
                let held = Held::of(&definition.schema);
                let seen = Seen::of(held.value());
                schemas += seen.schemas;
                queue.extend(seen.references.iter().filter(|name| !table.values.contains_key(*name)).cloned());
                table.seen.insert(name.clone(), seen);
                table.values.insert(name, held);
            }
        }
        self.budget.earn(schemas);
    }

    /// Finds which definitions have a direction. To be called once everything is loaded.
    pub(super) fn direct(&mut self) {
        for table in &mut self.tables {
            let mut queue: Vec<&str> =
                table.seen.iter().filter(|(_, seen)| seen.has_direction).map(|(name, _)| name.as_str()).collect();
            if queue.is_empty() {
                continue;
            }
            let mut users: HashMap<&str, Vec<&str>> = HashMap::new();
            for (name, seen) in &table.seen {
                seen.references.iter().for_each(|target| users.entry(target).or_default().push(name));
            }
            let mut directed: HashSet<&str> = HashSet::new();
            while let Some(name) = queue.pop() {
                if directed.insert(name) {
                    queue.extend(users.get(name).into_iter().flatten());
                }
            }
            table.directed = directed.into_iter().map(str::to_owned).collect();
        }
    }

    /// The table in which a name is found, and what it stands for.
    fn find(&self, table: usize, name: &str) -> Option<(usize, Held<'a>)> {
        let mut at = Some(table);
        while let Some(number) = at {
            let table = self.tables.get(number)?;
            if let Some(held) = table.values.get(name) {
                return Some((number, held.clone()));
            }
            at = table.parent;
        }
        None
    }

    /// What a `$ref` leads to; `None` if it leads nowhere.
    pub(super) fn target(&self, table: usize, reference: &str) -> Option<Held<'a>> {
        if let Some(name) = whole(reference) {
            return Some(self.find(table, &name)?.1);
        }
        let name = pointer::definition(reference)?;
        let (_, held) = self.find(table, &name)?;
        let rest = reference.strip_prefix(pointer::DEFINITIONS)?.split_once('/')?.1;
        held.part(format!("/{rest}"))
    }

    /// The type that a `$ref` names; `None` if it leads nowhere, or into a definition.
    pub(super) fn named(&mut self, table: usize, reference: &str, side: Side) -> Option<usize> {
        let definition = whole(reference)?;
        let (table, _) = self.find(table, &definition)?;
        let is_directed = self.tables.get(table).is_some_and(|table| table.directed.contains(&definition));
        let side = if is_directed { side } else { Side::Both };
        let key = (table, definition, side);
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        // Operations of Rust functions hold the definitions of their types each for itself.
        let is_own = self.tables.get(table).is_some_and(|table| table.parent.is_some());
        let closure = if is_own { self.closure(&key) } else { None };
        if let Some(number) = closure.as_ref().and_then(|closure| self.closures.get(closure)) {
            self.numbers.insert(key, *number);
            return Some(*number);
        }
        let mut plain = type_name(if key.1 == ROOT { "Root" } else { &key.1 });
        if matches!(side, Side::Parts | Side::Request | Side::Input) {
            plain.push_str("Input");
        }
        // Beginning with the last number: thousands of names may become the same.
        let alike = self.alike.entry(plain.clone()).or_default();
        let name = loop {
            *alike += 1;
            let name = match *alike {
                1 => plain.clone(),
                number if plain.ends_with(|c: char| c.is_ascii_digit()) => format!("{plain}_{number}"),
                number => format!("{plain}{number}"),
            };
            if self.taken.insert(name.clone()) {
                break name;
            }
        };
        let number = self.items.len();
        self.items.push(Item { name, table, definition: key.1.clone(), side, lowered: None, is_done: false });
        self.numbers.insert(key, number);
        self.closures.extend(closure.map(|closure| (closure, number)));
        Some(number)
    }

    /// The hash of a definition with all that it leads to: equal ones mean the same. `None` if too much was looked at already.
    fn closure(&mut self, (table, name, side): &(usize, String, Side)) -> Option<u128> {
        let (mut found, mut queue) = (BTreeMap::new(), vec![name.clone()]);
        while let Some(name) = queue.pop() {
            if found.contains_key(&name) {
                continue;
            }
            let Some((at, held)) = self.find(*table, &name) else { continue };
            let Some(seen) = self.tables.get(at).and_then(|table| table.seen.get(&name)) else { continue };
            self.looked += 1 + seen.references.len();
            if self.looked > LOOKED {
                return None;
            }
            queue.extend(seen.references.iter().cloned());
            // Many may lead to a large one, which is read once.
            let hash = *seen.hash.get_or_init(|| hash(&held.value().to_string()));
            found.insert(name, hash);
        }
        Some(hash(&(name, side, found)))
    }

    pub(super) fn item(&self, number: usize) -> Option<&Item> {
        self.items.get(number)
    }

    /// What a named type is.
    ///
    /// The compiler refuses a type that is made of itself other than by a property or a list, so such a circle is cut open.
    pub(super) fn lowered(&mut self, number: usize) -> Rc<Lowered> {
        let mut path: Vec<Visit> = Vec::new();
        let mut open = HashSet::new();
        self.visit(number, &mut path, &mut open);
        while let Some(visit) = path.last_mut() {
            if let Some(next) = visit.direct.pop() {
                if open.contains(&next) {
                    visit.circular.push(next);
                } else {
                    self.visit(next, &mut path, &mut open);
                }
                continue;
            }
            let Some(visit) = path.pop() else { break };
            open.remove(&visit.number);
            if let Some(item) = self.items.get_mut(visit.number) {
                item.is_done = true;
                if let Some(lowered) = item.lowered.as_mut().filter(|_| !visit.circular.is_empty()) {
                    let type_ = lowered.type_.clone().without(&|other| visit.circular.contains(&other), visit.number);
                    *lowered = Rc::new(Lowered { type_, doc: lowered.doc.clone() });
                }
            }
        }
        self.kept(number).unwrap_or_else(|| Rc::new(Lowered { type_: Type::Unknown, doc: Doc::default() }))
    }

    /// Goes to a type, unless it was looked at before.
    fn visit(&mut self, number: usize, path: &mut Vec<Visit>, open: &mut HashSet<usize>) {
        if self.items.get(number).is_none_or(|item| item.is_done) {
            return;
        }
        self.lower(number);
        let mut direct = Vec::new();
        if let Some(lowered) = self.kept(number) {
            lowered.type_.direct(&mut direct);
        }
        open.insert(number);
        path.push(Visit { number, direct, circular: Vec::new() });
    }

    /// The type of a schema that stands for itself.
    pub(super) fn type_of(&mut self, schema: &Value, table: usize, side: Side) -> Type {
        Lower::new(self, table, side).schema(schema)
    }

    /// True if there is something that a value of the type must have.
    pub(super) fn is_demanding(&mut self, type_: &Type, depth: usize) -> bool {
        match type_ {
            Type::Unknown => false,
            Type::Object(object) => object.properties.iter().any(|property| !property.is_optional),
            Type::Intersection(parts) => parts.iter().any(|part| self.is_demanding(part, depth + 1)),
            Type::Union(parts) => parts.iter().all(|part| self.is_demanding(part, depth + 1)),
            Type::Named(number) if depth < 32 => match self.demanding.get(number) {
                Some(known) => *known,
                None => {
                    let lowered = self.lowered(*number);
                    let is_demanding = self.is_demanding(&lowered.type_, depth + 1);
                    self.demanding.insert(*number, is_demanding);
                    is_demanding
                }
            },
            _ => true,
        }
    }

    fn kept(&self, number: usize) -> Option<Rc<Lowered>> {
        self.items.get(number)?.lowered.clone()
    }

    fn lower(&mut self, number: usize) {
        let Some(item) = self.items.get(number).filter(|item| item.lowered.is_none()) else { return };
        let (table, side) = (item.table, item.side);
        let Some((_, held)) = self.find(table, &item.definition.clone()) else { return };
        let mut lower = Lower::new(self, table, side);
        let type_ = lower.schema(held.value());
        let lowered = Rc::new(Lowered { type_, doc: super::doc::of(held.value()) });
        if let Some(item) = self.items.get_mut(number) {
            item.lowered = Some(lowered);
        }
    }
}

/// A hash that is wide enough for no two values to share one.
fn hash(value: &impl Hash) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, value).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

/// The name of the definition that a reference leads to; `None` if it leads elsewhere, or into one.
fn whole(reference: &str) -> Option<String> {
    if reference == ROOT {
        return Some(ROOT.to_owned());
    }
    let rest = reference.strip_prefix(pointer::DEFINITIONS).or_else(|| reference.strip_prefix("#/definitions/"))?;
    (!rest.contains('/')).then(|| pointer::unescaped(rest).into_owned())
}

/// The name of a type: each word of a definition's name begins with a capital letter.
pub(super) fn type_name(definition: &str) -> String {
    let mut name = String::with_capacity(definition.len());
    let mut is_start = true;
    for c in definition.chars() {
        match c {
            c if !c.is_ascii_alphanumeric() => is_start = true,
            c if is_start => {
                // Two numbers stay two.
                if c.is_ascii_digit() && name.ends_with(|c: char| c.is_ascii_digit()) {
                    name.push('_');
                }
                name.push(c.to_ascii_uppercase());
                is_start = false;
            }
            c => name.push(c),
        }
    }
    let name = super::name::identifier(&name);
    if matches!(name.as_str(), "Promise") { format!("{name}_") } else { name }
}

/// The name of the definition that a reference leads to or into.
fn definition(reference: &str) -> Option<String> {
    let old = || reference.strip_prefix("#/definitions/")?.split('/').next().map(pointer::unescaped);
    pointer::definition(reference).or_else(old).map(Cow::into_owned)
}

/// Calls a function with each schema in a schema, its own definitions among them.
fn each_schema(schema: &Value, found: &mut dyn FnMut(&serde_json::Map<String, Value>)) {
    // An explicit stack: a schema may be nested deeper than the thread's stack allows.
    let mut stack = vec![schema];
    while let Some(value) = stack.pop() {
        match value {
            Value::Object(node) => {
                found(node);
                for (keyword, value) in node {
                    match (holds(keyword), value) {
                        (Holds::Schema | Holds::Schemas, value) => stack.push(value),
                        (Holds::Named | Holds::Definitions, Value::Object(schemas)) => stack.extend(schemas.values()),
                        _ => {}
                    }
                }
            }
            Value::Array(schemas) => stack.extend(schemas),
            _ => {}
        }
    }
}
