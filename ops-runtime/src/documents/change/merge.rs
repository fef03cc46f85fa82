//! The parts of `allOf` as one schema.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::view::{is_annotation, is_known, kind, resolve, weight};
use crate::Definitions;

type Object = Map<String, Value>;

/// How deep parts inside of parts are followed.
const DEEPEST: usize = 16;

/// The variants of an `anyOf` or `oneOf`, or of a schema whose values are of several kinds.
#[derive(Debug, Clone)]
pub(super) struct Union {
    pub(super) variants: Vec<Value>,
    /// True for `oneOf`, false for `anyOf`; `None` for a schema that is written in another way.
    pub(super) is_exclusive: Option<bool>,
    /// The `discriminator` beside the variants.
    pub(super) discriminator: Option<Value>,
}

impl Union {
    /// The union of variants that no `anyOf` or `oneOf` lists.
    pub(super) fn of(variants: Vec<Value>) -> Self {
        Self { variants, is_exclusive: None, discriminator: None }
    }
}

/// A schema as a list of conditions that a value meets together.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    /// All members that are no union.
    pub(super) node: Cow<'a, Object>,
    /// Each `anyOf` and `oneOf`.
    pub(super) unions: Vec<Union>,
}

impl<'a> Parts<'a> {
    /// The part that is no union. An object beside a union is no map, also if it may be null: the variants declare its
    /// properties.
    pub(super) fn without_unions(&self) -> Self {
        let mut node = self.node.clone();
        let is_object = match node.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
            _ => kind(&node) == "object",
        };
        if !self.unions.is_empty() && is_object {
            node.to_mut().entry("properties").or_insert_with(|| json!({}));
        }
        Parts { node, unions: Vec::new() }
    }

    /// True if there is a union beside something else.
    pub(super) fn is_mixed(&self) -> bool {
        self.unions.len() + usize::from(!self.node.is_empty()) > 1 && !self.unions.is_empty()
    }
}

/// Takes a schema apart; `None` if the budget is too small.
pub(super) fn parts<'a>(node: &'a Object, definitions: &Definitions, budget: &mut usize) -> Option<Parts<'a>> {
    let is_made_of = |key: &String| matches!(key.as_str(), "$ref" | "allOf" | "anyOf" | "oneOf");
    if !node.keys().any(is_made_of) {
        return Some(Parts { node: Cow::Borrowed(node), unions: Vec::new() });
    }
    let mut merge = Merge { definitions, budget, node: Object::new(), unions: Vec::new(), open: HashSet::new() };
    merge.add(node, 0)?;
    Some(Parts { node: Cow::Owned(merge.node), unions: merge.unions })
}

struct Merge<'m> {
    definitions: &'m Definitions,
    budget: &'m mut usize,
    node: Object,
    unions: Vec<Union>,
    /// The definitions that are parts already: one that is a part of itself adds nothing.
    open: HashSet<String>,
}

impl Merge<'_> {
    fn add(&mut self, node: &Object, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        for (key, value) in node.iter().filter(|(key, _)| !is_annotation(key)) {
            match (key.as_str(), value) {
                ("$ref", Value::String(name)) => {
                    if self.open.insert(name.clone()) {
                        self.part(&json!({ "$ref": name }), depth)?;
                    }
                }
                ("allOf", Value::Array(members)) => {
                    for member in members {
                        let name = member.get("$ref").and_then(Value::as_str);
                        if name.is_none_or(|name| self.open.insert(name.to_owned())) {
                            self.part(member, depth)?;
                        }
                    }
                }
                ("anyOf" | "oneOf", Value::Array(members)) => match members.as_slice() {
                    [only] => self.part(only, depth)?,
                    _ => {
                        self.spend(value)?;
                        let discriminator = node.get("discriminator");
                        discriminator.map_or(Some(()), |discriminator| self.spend(discriminator))?;
                        self.unions.push(Union {
                            variants: members.clone(),
                            is_exclusive: Some(key == "oneOf"),
                            discriminator: discriminator.cloned(),
                        });
                    }
                },
                _ => {
                    self.spend(value)?;
                    self.member(key, value);
                }
            }
        }
        Some(())
    }

    fn part(&mut self, schema: &Value, depth: usize) -> Option<()> {
        let definitions = self.definitions;
        let resolved = resolve(definitions, schema);
        match resolved.as_ref() {
            Value::Object(node) => self.add(node, depth + 1),
            Value::Bool(false) => {
                self.beside("not", &json!({}));
                Some(())
            }
            _ => Some(()),
        }
    }

    fn spend(&mut self, value: &Value) -> Option<()> {
        *self.budget = self.budget.checked_sub(weight(value))?;
        Some(())
    }

    /// Adds a member to those that there are.
    fn member(&mut self, key: &str, value: &Value) {
        let Some(own) = self.node.get_mut(key) else {
            self.node.insert(key.to_owned(), value.clone());
            return;
        };
        if own == value {
            return;
        }
        let numbers = (own.as_f64(), value.as_f64());
        match (key, own, value) {
            ("properties" | "patternProperties", Value::Object(own), Value::Object(more)) => {
                for (name, schema) in more {
                    match own.get_mut(name) {
                        Some(known) => both(known, schema),
                        None => drop(own.insert(name.clone(), schema.clone())),
                    }
                }
            }
            ("required", Value::Array(own), Value::Array(more)) => {
                let known: HashSet<String> = own.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                own.extend(more.iter().filter(|name| name.as_str().is_none_or(|name| !known.contains(name))).cloned());
            }
            ("enum", Value::Array(own), Value::Array(more)) => own.retain(|value| more.contains(value)),
            ("type", own, more) => {
                if let Some(kind) = common(own, more) {
                    *own = kind;
                } else {
                    self.beside(key, value);
                }
            }
            ("items" | "additionalProperties", own, more) => both(own, more),
            ("format", _, _) => {}
            (key, own, more) => match numbers {
                (Some(a), Some(b)) if key.starts_with("max") || key == "exclusiveMaximum" => {
                    if b < a {
                        *own = more.clone();
                    }
                }
                (Some(a), Some(b)) if key.starts_with("min") || key == "exclusiveMinimum" => {
                    if b > a {
                        *own = more.clone();
                    }
                }
                _ => self.beside(key, value),
            },
        }
    }

    /// Keeps a condition that cannot be merged; it can only be equal or different.
    fn beside(&mut self, key: &str, value: &Value) {
        let condition = json!({ key: value });
        match self.node.get_mut("allOf") {
            Some(Value::Array(list)) => list.push(condition),
            _ => drop(self.node.insert("allOf".to_owned(), json!([condition]))),
        }
        debug_assert!(!is_known("allOf"), "what is kept is compared by its text");
    }
}

/// Both schemas at once.
fn both(own: &mut Value, more: &Value) {
    let bare = |schema: &Value| match schema {
        Value::Bool(accepts) => *accepts,
        Value::Object(node) => node.keys().all(|key| is_annotation(key)),
        _ => true,
    };
    if *own == *more || bare(more) || *own == Value::Bool(false) {
        return;
    }
    *own = if bare(own) || *more == Value::Bool(false) { more.clone() } else { json!({ "allOf": [own.take(), more] }) };
}

/// The kinds that both name; `None` if there are none.
fn common(own: &Value, more: &Value) -> Option<Value> {
    let list = |kinds: &Value| match kinds {
        Value::Array(kinds) => kinds.clone(),
        one => vec![one.clone()],
    };
    let (own, more) = (list(own), list(more));
    let has = |kinds: &[Value], kind: &str| kinds.iter().any(|one| one == kind);
    let mut kinds: Vec<Value> = own.iter().filter(|kind| more.contains(kind)).cloned().collect();
    let whole = has(&own, "integer") && has(&more, "number") || has(&own, "number") && has(&more, "integer");
    if whole && !has(&kinds, "integer") && !has(&kinds, "number") {
        kinds.push("integer".into());
    }
    match kinds.len() {
        0 => None,
        1 => kinds.pop(),
        _ => Some(Value::Array(kinds)),
    }
}
