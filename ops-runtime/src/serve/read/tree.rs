//! Deep objects: `name[key][key]=value`, read into a tree, and the tree into a value by its schema.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::shape::{Shape, Types};
use super::style::Read;
use super::text::{Escaping, Pairs};
use crate::model::binding::MAX_DEPTH;

/// The texts of a name, and the nested trees.
#[derive(Debug, Default)]
pub(super) struct Tree {
    texts: Vec<String>,
    inside: BTreeMap<String, Self>,
}

/// Removes all pairs of a name, with or without keys after it.
pub(super) fn take(name: &str, pairs: &mut Pairs) -> Read<Tree> {
    let mut tree = Tree::default();
    let is_deep = |own: &str| own.strip_prefix(name).is_some_and(|rest| rest.is_empty() || keys(rest).is_some());
    for (own, value) in pairs.take_if(|pair| is_deep(&pair.name)) {
        let keys = own.strip_prefix(name).and_then(keys).unwrap_or_default();
        if keys.len() > MAX_DEPTH {
            return Err(format!("is nested deeper than {MAX_DEPTH} levels"));
        }
        let mut node = &mut tree;
        for key in keys {
            node = node.inside.entry(key.to_owned()).or_default();
        }
        node.texts.push(value);
    }
    Ok(tree)
}

/// The name without its keys.
pub(super) fn root(name: &str) -> &str {
    match name.find('[') {
        Some(at) if at > 0 && name.get(at..).and_then(keys).is_some() => name.get(..at).unwrap_or(name),
        _ => name,
    }
}

/// The keys of `[a][b]`, without their brackets; `None` if the text has another form.
fn keys(text: &str) -> Option<Vec<&str>> {
    let mut keys = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (key, behind) = rest.strip_prefix('[')?.split_once(']')?;
        keys.push(key);
        rest = behind;
    }
    (!keys.is_empty()).then_some(keys)
}

impl Tree {
    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.inside.is_empty()
    }

    pub(super) fn value(&self, shape: &Shape, escaping: Escaping) -> Read<Value> {
        let texts = || self.texts.iter().map(|text| escaping.undo(text));
        match (self.texts.as_slice(), self.inside.is_empty()) {
            ([text], true) if !shape.may_be(Types::ARRAY) || shape.may_be(Types::SCALAR) => {
                Ok(shape.scalar(escaping.undo(text)?))
            }
            // A list that is nested more deeply than the style allows is one text.
            ([text], true) => match shape.scalar(escaping.undo(text)?) {
                list @ Value::Array(_) => Ok(list),
                _ => list(&shape.item(), texts()),
            },
            (_, true) if shape.may_be(Types::ARRAY) || shape.types() == Types::NOTHING => list(&shape.item(), texts()),
            (_, true) => Err("is given more than once".to_owned()),
            ([], false) => self.branch(shape, escaping),
            _ => Err("is both a value and an object".to_owned()),
        }
    }

    fn branch(&self, shape: &Shape, escaping: Escaping) -> Read<Value> {
        if let Some(items) = self.items(shape) {
            let item = shape.item();
            let mut values = Vec::new();
            for tree in items {
                // `name[]=a&name[]=b`, as some clients write lists.
                match tree.texts.as_slice() {
                    [_, _, ..] if tree.inside.is_empty() => {
                        let texts = tree.texts.iter().map(|text| Ok(item.scalar(escaping.undo(text)?)));
                        values.extend(texts.collect::<Read<Vec<_>>>()?);
                    }
                    _ => values.push(tree.value(&item, escaping)?),
                }
            }
            return Ok(Value::Array(values));
        }
        let mut members = Map::new();
        let (declared, others) = (shape.names(), shape.others());
        for (key, tree) in &self.inside {
            let value = match declared.binary_search(&key.as_str()) {
                Ok(_) => tree.value(&shape.property(key), escaping)?,
                Err(_) => tree.value(&others, escaping)?,
            };
            members.insert(key.clone(), value);
        }
        Ok(Value::Object(members))
    }

    /// The items in the order of their indices, if this is a list.
    fn items(&self, shape: &Shape) -> Option<Vec<&Self>> {
        if !shape.may_be(Types::ARRAY) {
            return None;
        }
        let mut items = Vec::new();
        for (key, tree) in &self.inside {
            let index: u64 = if key.is_empty() { u64::MAX } else { key.parse().ok()? };
            items.push((index, tree));
        }
        items.sort_by_key(|(index, _)| *index);
        let is_gapless = (0_u64..).zip(&items).all(|(expected, (index, _))| expected == *index);
        // Indices are keys if it may be an object as well.
        (is_gapless || !shape.may_be(Types::OBJECT)).then(|| items.into_iter().map(|(_, tree)| tree).collect())
    }
}

fn list(item: &Shape, texts: impl Iterator<Item = Result<String, &'static str>>) -> Read<Value> {
    let items = texts.map(|text| Ok(item.scalar(text?)));
    items.collect::<Read<_>>().map(Value::Array)
}
