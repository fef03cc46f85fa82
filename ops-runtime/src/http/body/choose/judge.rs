//! Decides if a schema refuses a value, as far as its kind and the names of its members tell.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde_json::{Map, Value};

use self::Verdict::{Refused, Taken, Unknown};
use crate::model::keywords::certain;
use crate::{Definitions, pointer};

/// How deep references and combined schemas are followed.
const DEPTH: usize = 64;

/// Limit of the visited schemas for one body.
const ROOM: usize = 500;

/// Limits of visits to members of a value for one [`Look`], for all bodies together: `LOOKS` for each part of the value, plus
/// `FEW`.
const LOOKS: usize = 64;
const FEW: usize = 100_000;

/// The result of a schema for a value. Of combined schemas the least counts, of variants the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Refused,
    /// The schema is too large or too deep to tell.
    Unknown,
    Taken,
}

/// The part of a value that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Its kind and the names of its members. Keywords about anything else count as satisfied.
    Names,
    /// Its kind, and the kinds of all values in it. Names and listed values refuse nothing here: another part of the schema may
    /// allow a name, and the remote may know more values.
    Kinds,
    /// All of it, to decide if a condition holds. Unsupported keywords leave that unknown.
    All,
}

/// The keywords that are supported, or that require nothing.
const READ: &[&str] = &[
    "$comment",
    "$defs",
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "discriminator",
    "else",
    "enum",
    "example",
    "examples",
    "if",
    "not",
    "nullable",
    "oneOf",
    "patternProperties",
    "properties",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedProperties",
    "writeOnly",
];

struct Judged<'v> {
    verdict: Verdict,
    /// The members that the schema evaluates, which `unevaluatedProperties` leaves alone.
    names: HashSet<&'v str>,
    /// `Taken` if the schema evaluates all other members as well, `Refused` if none of them.
    others: Verdict,
}

impl<'v> Judged<'v> {
    fn new(verdict: Verdict) -> Self {
        Self { verdict, names: HashSet::new(), others: if verdict == Unknown { Unknown } else { Refused } }
    }

    /// Adds what another schema evaluates.
    fn evaluate(&mut self, other: Self) {
        self.names.extend(other.names);
        self.others = self.others.max(other.others);
    }

    /// Adds a schema that applies as well.
    fn and(&mut self, other: Self) {
        self.verdict = self.verdict.min(other.verdict);
        self.evaluate(other);
    }
}

/// Judges a value by the schemas of several bodies.
pub(super) struct Judge<'a> {
    definitions: &'a Definitions,
    /// The parsed definitions, each once; `None` for a missing one.
    known: RefCell<HashMap<String, Option<Rc<Cow<'a, Value>>>>>,
    room: Cell<usize>,
    /// How many members may be visited for one body, and how many of them are left.
    share: usize,
    left: Cell<usize>,
}

impl<'a> Judge<'a> {
    /// A judge whose work is bounded in proportion to the value.
    pub(super) fn new(definitions: &'a Definitions, value: &Value, bodies: usize) -> Self {
        let share = FEW.saturating_add(size(value).saturating_mul(LOOKS)) / bodies.max(1);
        Self { definitions, known: RefCell::default(), room: Cell::new(0), share, left: Cell::new(0) }
    }

    /// Judges the value by a schema.
    pub(super) fn verdict(&self, schema: &Value, value: &Value) -> Verdict {
        self.look_at(schema, value, Look::Names)
    }

    /// True if a schema refuses the kind of any member of the value.
    pub(super) fn refuses(&self, schema: &Value, value: &Value) -> bool {
        self.look_at(schema, value, Look::Kinds) == Refused
    }

    fn look_at(&self, schema: &Value, value: &Value, look: Look) -> Verdict {
        self.room.set(ROOM);
        self.left.set(self.share);
        self.judge(schema, value, look, DEPTH).verdict
    }

    /// Counts a visit of a schema and of the members of a value; `None` if the limit is reached.
    fn look(&self, members: usize, depth: usize) -> Option<usize> {
        self.room.set(self.room.get().checked_sub(1)?);
        self.left.set(self.left.get().checked_sub(members)?);
        depth.checked_sub(1)
    }

    fn judge<'v>(&self, schema: &Value, value: &'v Value, look: Look, depth: usize) -> Judged<'v> {
        let Some(schema) = schema.as_object() else {
            return Judged::new(if *schema == Value::Bool(false) { Refused } else { Taken });
        };
        let members = value.as_object().map_or(0, Map::len);
        let Some(depth) = self.look(members, depth) else { return Judged::new(Unknown) };
        if value.is_null() && schema.get("nullable") == Some(&Value::Bool(true)) {
            return Judged::new(Taken);
        }
        let mut found = Judged::new(of_itself(schema, value, look));
        if let Some(members) = value.as_object() {
            if look != Look::Kinds {
                found.verdict = found.verdict.min(self.requires(schema, members, depth));
            }
            self.declare(&mut found, schema, members, look, depth);
        }
        // A refusal is final.
        if found.verdict == Refused {
            return found;
        }
        self.combine(&mut found, schema, value, look, depth);
        self.condition(&mut found, schema, value, look, depth);
        if let (Some(rest), Some(members)) = (schema.get("unevaluatedProperties"), value.as_object())
            && members.keys().any(|name| !found.names.contains(name.as_str()))
        {
            match rest {
                Value::Bool(false) if look != Look::Kinds => found.verdict = found.verdict.min(found.others),
                Value::Object(_) if look == Look::All => found.verdict = found.verdict.min(Unknown),
                _ => {}
            }
            found.others = Taken;
        }
        found
    }

    /// Decides if an object has its required members.
    fn requires(&self, schema: &Map<String, Value>, members: &Map<String, Value>, depth: usize) -> Verdict {
        let properties = schema.get("properties");
        let mut verdict = Taken;
        for name in list(schema.get("required")).filter_map(Value::as_str).filter(|name| !members.contains_key(*name)) {
            // A request does not contain properties of responses only.
            let property = properties.and_then(|properties| properties.get(name));
            verdict = verdict.min(property.map_or(Refused, |property| self.is_read_only(property, depth)));
        }
        for (name, others) in named(schema, "dependentRequired") {
            let lacks = |other: &str| !members.contains_key(other);
            if members.contains_key(name) && list(Some(others)).filter_map(Value::as_str).any(lacks) {
                verdict = Refused;
            }
        }
        verdict
    }

    /// `Taken` if only responses have a property.
    fn is_read_only(&self, schema: &Value, depth: usize) -> Verdict {
        if schema.get("readOnly") == Some(&Value::Bool(true)) {
            return Taken;
        }
        let Some(depth) = self.look(0, depth) else { return Unknown };
        let target = schema.get("$ref").map_or(Refused, |reference| {
            self.target(reference, |target| self.is_read_only(target, depth)).unwrap_or(Unknown)
        });
        let parts = certain(schema).map(|part| self.is_read_only(part, depth));
        parts.fold(target, Verdict::max)
    }

    /// Notes which members an object declares, and refuses others if it is closed.
    fn declare<'v>(
        &self,
        found: &mut Judged<'v>,
        schema: &Map<String, Value>,
        members: &'v Map<String, Value>,
        look: Look,
        depth: usize,
    ) {
        for (name, property) in named(schema, "properties") {
            let Some((name, member)) = members.get_key_value(name) else { continue };
            found.names.insert(name);
            if look != Look::Names || property.is_boolean() {
                found.verdict = found.verdict.min(self.judge(property, member, look, depth).verdict);
            }
        }
        // Names may match the patterns, which are not evaluated.
        let by_pattern = if named(schema, "patternProperties").next().is_some() { Unknown } else { Refused };
        if look == Look::All && by_pattern == Unknown && !members.is_empty() {
            found.verdict = found.verdict.min(Unknown);
        }
        found.others = found.others.max(by_pattern);
        let has_others = members.keys().any(|name| !found.names.contains(name.as_str()));
        match schema.get("additionalProperties") {
            None => {}
            Some(Value::Bool(false)) if has_others && look != Look::Kinds => {
                found.verdict = found.verdict.min(by_pattern);
            }
            Some(Value::Bool(false)) => {}
            Some(rest) => {
                if look == Look::All && has_others && *rest != Value::Bool(true) {
                    found.verdict = found.verdict.min(Unknown);
                }
                found.others = Taken;
            }
        }
    }

    /// Adds the schemas that apply as well, and the variants.
    fn combine<'v>(
        &self,
        found: &mut Judged<'v>,
        schema: &Map<String, Value>,
        value: &'v Value,
        look: Look,
        depth: usize,
    ) {
        if let Some(reference) = schema.get("$ref") {
            let judged = self.target(reference, |target| self.judge(target, value, look, depth));
            found.and(judged.unwrap_or_else(|| Judged::new(Unknown)));
        }
        for part in list(schema.get("allOf")) {
            found.and(self.judge(part, value, look, depth));
        }
        for variants in ["anyOf", "oneOf"].iter().filter_map(|keyword| schema.get(*keyword)?.as_array()) {
            let mut any = Judged::new(if variants.is_empty() { Taken } else { Refused });
            for variant in variants {
                let judged = self.judge(variant, value, look, depth);
                if judged.verdict != Refused {
                    any.verdict = any.verdict.max(judged.verdict);
                    any.evaluate(judged);
                }
            }
            found.and(any);
        }
    }

    /// Adds the schemas that apply under conditions.
    fn condition<'v>(
        &self,
        found: &mut Judged<'v>,
        schema: &Map<String, Value>,
        value: &'v Value,
        look: Look,
        depth: usize,
    ) {
        for (name, then) in named(schema, "dependentSchemas") {
            if value.get(name).is_some() {
                found.and(self.judge(then, value, look, depth));
            }
        }
        let known = |verdict| if verdict == Unknown && look == Look::Names { Taken } else { verdict };
        if let Some(not) = schema.get("not") {
            let verdict = match self.judge(not, value, Look::All, depth).verdict {
                Refused => Taken,
                Taken => Refused,
                Unknown => known(Unknown),
            };
            found.verdict = found.verdict.min(verdict);
        }
        let Some(condition) = schema.get("if") else { return };
        let condition = self.judge(condition, value, Look::All, depth);
        let met = condition.verdict;
        if met != Refused {
            found.evaluate(condition);
        }
        let branch = |keyword: &str| {
            schema.get(keyword).map_or_else(|| Judged::new(Taken), |branch| self.judge(branch, value, look, depth))
        };
        match met {
            Taken => found.and(branch("then")),
            Refused => found.and(branch("else")),
            Unknown => {
                let (then, other) = (branch("then"), branch("else"));
                let verdict = if then.verdict == other.verdict { then.verdict } else { known(Unknown) };
                found.verdict = found.verdict.min(verdict);
                found.evaluate(then);
                found.evaluate(other);
            }
        }
    }

    /// Reads the target schema of a reference; `None` if there is none.
    fn target<T>(&self, reference: &Value, read: impl FnOnce(&Value) -> T) -> Option<T> {
        let reference = reference.as_str()?;
        let schema = self.definition(&pointer::definition(reference).unwrap_or(reference.into()))?;
        schema.pointer(pointer::within_definition(reference)).map(read)
    }

    /// The definition of that name.
    fn definition(&self, name: &str) -> Option<Rc<Cow<'a, Value>>> {
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        let read = self.definitions.get(name).and_then(|definition| definition.schema.to_value().ok()).map(Rc::new);
        self.known.borrow_mut().insert(name.to_owned(), read.clone());
        read
    }
}

/// The number of values in a value.
fn size(value: &Value) -> usize {
    let (mut size, mut pending) = (0_usize, vec![value]);
    while let Some(value) = pending.pop() {
        size = size.saturating_add(1);
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => pending.extend(members.values()),
            _ => {}
        }
    }
    size
}

/// The result of the keywords about the whole value.
fn of_itself(schema: &Map<String, Value>, value: &Value, look: Look) -> Verdict {
    let is_own = |named: &Value| named.as_str().is_some_and(|named| is_kind(named, value));
    let takes = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is_own),
        Some(named) => is_own(named),
        // Documents leave the type out where the properties tell it.
        None if look == Look::Names => value.is_object() || !schema.contains_key("properties"),
        None => true,
    };
    let is_const = schema.get("const").is_none_or(|only| is_same(only, value));
    let is_listed =
        schema.get("enum").and_then(Value::as_array).is_none_or(|all| all.iter().any(|it| is_same(it, value)));
    let is_known = look == Look::Kinds || is_const && is_listed;
    if !(takes && is_known) {
        return Refused;
    }
    let is_read = |keyword: &String| READ.contains(&keyword.as_str()) || keyword.starts_with("x-");
    if look != Look::All || schema.keys().all(is_read) { Taken } else { Unknown }
}

fn is_kind(named: &str, value: &Value) -> bool {
    match value {
        Value::Null => named == "null",
        Value::Bool(_) => named == "boolean",
        Value::Number(number) => {
            let is_whole = || number.as_f64().is_none_or(|number| number.fract() == 0.0);
            named == "number" || named == "integer" && is_whole()
        }
        Value::String(_) => named == "string",
        Value::Array(_) => named == "array",
        Value::Object(_) => named == "object",
    }
}

/// True if two values are the same, however their numbers are written.
fn is_same(a: &Value, b: &Value) -> bool {
    a == b || a.is_number() && a.as_f64() == b.as_f64()
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

fn named<'s>(schema: &'s Map<String, Value>, keyword: &str) -> impl Iterator<Item = (&'s String, &'s Value)> + use<'s> {
    schema.get(keyword).and_then(Value::as_object).into_iter().flatten()
}
