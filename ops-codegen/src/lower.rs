//! From JSON Schemas to the canonical form.
//!
//! Definitions are lowered one after another from a queue, so that many definitions or long chains of them need no
//! stack. Schemas inside one are lowered recursively to a bounded depth.

mod alias;
mod condition;
mod custom;
mod default;
mod depth;
mod direction;
mod endless;
mod finish;
mod fold;
mod null;
mod object;
mod order;
mod recursion;
mod roots;
mod scalar;
mod share;
mod source;
mod union;
mod view;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;

use ops_runtime::spec::Diagnostic;
use serde_json::{Map, Value};

use crate::names::upper_camel;
use crate::settings::Settings;
use crate::types::{Item, ItemId, Shape, Type, Types};
use ops_runtime::spec::pointer::escaped;

use condition::has_conditions;
pub(crate) use finish::finish;
pub(crate) use order::reached;
pub(crate) use roots::{Nulls, Root, Roots};
pub(crate) use source::{Source, parse, size_of};
use view::{View, is_flat};

/// Schemas nested deeper inside one definition are any JSON.
const DEEPEST: usize = 48;

/// How many values the schemas of any document may have after merging, and how many more for each value of a schema that is
/// reached. What comes later in a document changes nothing for what is reached before.
///
/// Beyond, the rest of the document is any JSON.
const BUDGET: (usize, usize) = (1_000_000, 16);

/// A pointer of more bytes is not extended.
const LONGEST: usize = 2_000;

/// An object of a schema.
pub(crate) type Object = Map<String, Value>;

/// The place of a schema, and the name of a type made from it.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) hint: String,
    pub(crate) pointer: String,
    pub(crate) depth: usize,
    /// The definition that the schema is, `null` aside.
    definition: Option<String>,
    /// True if the schema's `oneOf` lists the successes of an operation, one for each status or content type.
    by_status: bool,
}

impl Site {
    pub(crate) fn new(hint: impl Into<String>, pointer: impl Into<String>) -> Self {
        Self { hint: hint.into(), pointer: pointer.into(), depth: 0, definition: None, by_status: false }
    }

    /// The place of a definition.
    pub(crate) fn of(name: &str) -> Self {
        Self { definition: Some(name.to_owned()), ..Self::new(name, format!("/$defs/{}", escaped(name))) }
    }

    /// The place of the output of an operation whose successes differ.
    pub(crate) fn by_status(self, by_status: bool) -> Self {
        Self { by_status, ..self }
    }

    /// The place of a schema inside this one, at a path of keys.
    pub(crate) fn inside(&self, hint: &str, path: &[&str]) -> Self {
        let mut pointer = self.pointer.clone();
        for key in path {
            if pointer.len() + key.len() > LONGEST {
                if !pointer.ends_with("/...") {
                    pointer.push_str("/...");
                }
                break;
            }
            pointer.push('/');
            pointer.push_str(&escaped(key));
        }
        let hint = format!("{}{}", self.hint, upper_camel(hint));
        Self { hint, pointer, depth: self.depth + 1, definition: None, by_status: false }
    }

    /// The same place, one step further.
    pub(crate) fn again(&self) -> Self {
        Self { depth: self.depth + 1, by_status: false, ..self.clone() }
    }
}

/// The result of lowering a schema: a complete type, or a shape that needs a name.
pub(crate) enum Lowered {
    Type(Type),
    Shape(Shape),
    /// A shape that needs a name, or `null`.
    Nullable(Shape),
}

/// The reason why schemas cannot be combined.
pub(crate) struct Clash(pub(crate) String);

/// A schema that is being lowered, or that contains itself.
struct Merged {
    site: Site,
    /// Its type, once something inside needs it.
    item: Option<ItemId>,
}

/// The work of lowering one API.
pub(crate) struct Lowering<'a> {
    source: &'a Source,
    settings: &'a Settings,
    pub(crate) types: Types,
    by_name: BTreeMap<String, ItemId>,
    /// The user's types, by the definitions that they stand for; `None` for a definition without one.
    customs: BTreeMap<String, Option<Type>>,
    queue: VecDeque<(ItemId, String)>,
    views: BTreeMap<String, Rc<View>>,
    /// The definitions that have no view because two of their unions are too large together.
    too_large: BTreeSet<String>,
    /// What each of their heirs has of them, by the names of both.
    of_heirs: BTreeMap<(String, String), Rc<View>>,
    /// The definitions whose views are being made, the outermost first.
    open: Vec<String>,
    /// The schemas of the definition that others are merged into: those that are being lowered, and that contain themselves.
    merged: HashMap<Value, Merged>,
    /// The definitions that have added to the budget.
    counted: HashSet<String>,
    budget: usize,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl<'a> Lowering<'a> {
    pub(crate) fn new(source: &'a Source, settings: &'a Settings) -> Self {
        Self {
            source,
            settings,
            types: Types::default(),
            by_name: BTreeMap::new(),
            customs: BTreeMap::new(),
            queue: VecDeque::new(),
            views: BTreeMap::new(),
            too_large: BTreeSet::new(),
            of_heirs: BTreeMap::new(),
            open: Vec::new(),
            merged: HashMap::new(),
            counted: HashSet::new(),
            budget: BUDGET.0,
            diagnostics: Vec::new(),
        }
    }

    /// Lowers a schema, and every definition that it reaches.
    pub(crate) fn root(&mut self, schema: &Value, site: &Site) -> Type {
        self.grow(schema);
        let type_ = self.lower(schema, site);
        self.drain();
        type_
    }

    /// Lowers an object schema to a record, even if it has no properties.
    pub(crate) fn root_record(&mut self, schema: &Value, site: &Site) -> Type {
        let object = schema.as_object().filter(|object| self.sole_reference(object).is_none()).cloned();
        let bare = object.filter(|object| {
            object.get("type").and_then(Value::as_str) == Some("object")
                && is_flat(object)
                && ["oneOf", "anyOf", "additionalProperties"].iter().all(|key| !object.contains_key(*key))
        });
        match bare {
            Some(mut object) => {
                self.grow(schema);
                // What cannot be followed declares nothing.
                _ = self.fold_conditions(&mut object, 0);
                let shape = self.record(&object, site);
                let type_ = self.place(Lowered::Shape(shape), site, &object);
                self.drain();
                type_
            }
            None => self.root(schema, site),
        }
    }

    /// Adds the budget for a schema that is reached.
    fn grow(&mut self, schema: &Value) {
        self.budget = self.budget.saturating_add(size_of(schema).saturating_mul(BUDGET.1));
    }

    /// Adds the budget for a definition when it is reached for the first time.
    fn reach(&mut self, name: &str) {
        if let Some(schema) = self.source.get(name)
            && !self.counted.contains(name)
        {
            self.counted.insert(name.to_owned());
            self.grow(schema);
        }
    }

    fn drain(&mut self) {
        while let Some((id, name)) = self.queue.pop_front() {
            let Some(schema) = self.source.get(&name) else { continue };
            let site = Site::of(&name);
            self.merged.clear();
            let lowered = self.shape(schema, &site);
            self.fill(id, lowered, &site, schema.as_object());
        }
        self.merged.clear();
    }

    /// Gives an item that was added before its shape was known what its schema became.
    fn fill(&mut self, id: ItemId, lowered: Lowered, site: &Site, schema: Option<&Object>) {
        let shape = match lowered {
            Lowered::Type(type_) => Shape::Alias(type_),
            Lowered::Shape(shape) => shape,
            Lowered::Nullable(shape) => {
                let inner = self.add(shape, &site.inside("value", &[]), schema);
                Shape::Alias(Type::Named(inner).nullable())
            }
        };
        if let Some(item) = self.types.items.get_mut(id) {
            item.docs = text(schema);
            item.shape = shape;
        }
    }

    /// Lowers a schema to the type that is written at its use.
    pub(crate) fn lower(&mut self, schema: &Value, site: &Site) -> Type {
        match schema.as_object() {
            Some(object) if self.merges(object) => self.lower_merged(schema, object, site),
            object => {
                let lowered = self.shape(schema, site);
                self.place(lowered, site, object.unwrap_or(&Object::new()))
            }
        }
    }

    fn place(&mut self, lowered: Lowered, site: &Site, schema: &Object) -> Type {
        match lowered {
            Lowered::Type(type_) => type_,
            Lowered::Shape(shape) => Type::Named(self.add(shape, site, Some(schema))),
            Lowered::Nullable(shape) => Type::Named(self.add(shape, site, Some(schema))).nullable(),
        }
    }

    fn add(&mut self, shape: Shape, site: &Site, schema: Option<&Object>) -> ItemId {
        let id = self.types.items.len();
        self.types.items.push(Item {
            name: upper_camel(&site.hint),
            pointer: site.pointer.clone(),
            docs: text(schema),
            subject: String::new(),
            sent: false,
            derives: Vec::new(),
            shape,
        });
        id
    }

    /// Lowers a schema to a type, or to a shape that the caller names.
    fn shape(&mut self, schema: &Value, site: &Site) -> Lowered {
        let object = match schema {
            Value::Object(object) => object,
            Value::Bool(_) => return Lowered::Type(Type::Value),
            _ => return self.any(site, "a schema is an object or a boolean"),
        };
        if site.depth > DEEPEST {
            return self.any(site, "the schema is nested too deeply");
        }
        if !self.spend(1) {
            return self.any(site, "the document's schemas are too many");
        }
        if let Some(type_) = self.custom_in(object, site) {
            return Lowered::Type(type_);
        }
        if let Some((reference, nullable)) = self.sole_reference(object)
            && !self.adds_conditionally(object)
            && !site.definition.as_deref().is_some_and(|name| self.is_heir(name, &reference))
        {
            let type_ = self.reference(&reference, site);
            return Lowered::Type(if nullable { type_.nullable() } else { type_ });
        }
        if is_flat(object) && !has_conditions(object) {
            return self.view(object, site);
        }
        match self.flatten_of(site.definition.as_deref(), object, 0) {
            Ok(view) => self.view(&view, site),
            Err(clash) => self.any(site, &clash.0),
        }
    }

    /// Counts visited or copied values; `false` if there are too many.
    pub(crate) fn spend(&mut self, count: usize) -> bool {
        self.budget = self.budget.saturating_sub(count);
        self.budget > 0
    }

    /// Lowers a schema without `$ref` and `allOf`.
    fn view(&mut self, view: &Object, site: &Site) -> Lowered {
        if view.contains_key("const") || view.contains_key("enum") {
            return self.constants(view, site);
        }
        for key in ["oneOf", "anyOf"] {
            if let Some(Value::Array(members)) = view.get(key)
                && let Some(lowered) = self.union(view, key, members, site)
            {
                return lowered;
            }
        }
        let (types, nullable) = view::types_of(view);
        match types.as_slice() {
            [] if nullable => Lowered::Type(if view.contains_key("type") { Type::Unit } else { Type::Value }),
            [] => Lowered::Type(Type::Value),
            [single] => nullable_if(nullable, self.single(single, view, site)),
            several => {
                let members: Vec<Value> = several.iter().map(|kind| Value::Object(view::only(view, kind))).collect();
                let lowered = self.union(&Object::new(), "anyOf", &members, site);
                nullable_if(nullable, lowered.unwrap_or(Lowered::Type(Type::Value)))
            }
        }
    }

    fn single(&mut self, kind: &str, view: &Object, site: &Site) -> Lowered {
        Lowered::Type(match kind {
            "string" => scalar::string(view, &self.settings.formats),
            "boolean" => Type::Bool,
            "integer" => scalar::integer(view),
            "number" => scalar::number(view),
            "array" => self.array(view, site),
            "object" => return self.object(view, site),
            other => return self.any(site, &format!("`{other}` is no type of JSON Schema")),
        })
    }

    /// The type of a reference; its definition is lowered later.
    fn reference(&mut self, reference: &str, site: &Site) -> Type {
        match self.source.name(reference) {
            Some(name) => match self.custom(name) {
                Some(type_) => type_,
                None => Type::Named(self.definition(name)),
            },
            None => {
                let reference: String = reference.chars().take(120).collect();
                self.warn(&site.pointer, format!("`{reference}` refers to no definition"), "typed as any JSON");
                Type::Value
            }
        }
    }

    fn definition(&mut self, name: &str) -> ItemId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let site = Site::of(name);
        let id = self.add(Shape::Pending, &site, None);
        if let Some(item) = self.types.items.get_mut(id) {
            item.subject = format!("The definition `{name}`.");
        }
        self.by_name.insert(name.to_owned(), id);
        self.reach(name);
        self.queue.push_back((id, name.to_owned()));
        id
    }

    pub(crate) fn any(&mut self, site: &Site, message: &str) -> Lowered {
        self.warn(&site.pointer, message.to_owned(), "typed as any JSON");
        Lowered::Type(Type::Value)
    }

    pub(crate) fn warn(&mut self, pointer: &str, message: String, help: &str) {
        self.diagnostics.push(Diagnostic::warning(pointer, message).with_help(help));
    }

    pub(crate) fn note(&mut self, pointer: &str, message: String, help: &str) {
        self.diagnostics.push(Diagnostic::note(pointer, message).with_help(help));
    }
}

pub(crate) fn nullable_if(nullable: bool, lowered: Lowered) -> Lowered {
    match lowered {
        Lowered::Type(type_) if nullable => Lowered::Type(type_.nullable()),
        Lowered::Shape(shape) if nullable => Lowered::Nullable(shape),
        other => other,
    }
}

/// The description in a schema.
pub(crate) fn text(schema: Option<&Object>) -> Option<String> {
    let schema = schema?;
    let get = |key| schema.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    get("description").or_else(|| get("title")).map(str::to_owned)
}
