//! Objects and arrays, member by member.

use std::collections::BTreeSet;

use serde_json::Value;

use super::compare::{Comparer, Object, inside};
use super::view::{Side, is_any, is_marked};

/// The keyword for properties that are not declared.
const OTHERS: &str = "additionalProperties";

/// The keyword for properties by patterns of their names.
const PATTERNS: &str = "patternProperties";

impl Comparer<'_> {
    pub(super) fn object(&mut self, old: &Object, new: &Object, at: &str) {
        let (none, any) = (Object::new(), Value::Bool(true));
        let properties = |node: &'_ Object| node.get("properties").and_then(Value::as_object).cloned();
        let (old_properties, new_properties) = (properties(old), properties(new));
        let (old_properties, new_properties) =
            (old_properties.as_ref().unwrap_or(&none), new_properties.as_ref().unwrap_or(&none));
        let (demanded, demands) = (required(old), required(new));
        let (old_table, new_table) = (self.old, self.new);
        let mark = self.absent;
        let is_absent = |schema: &Value, table| mark.is_some_and(|mark| is_marked(schema, mark, table));
        for (name, property) in old_properties.iter().filter(|(_, schema)| !is_absent(schema, old_table)) {
            let place = inside(at, "properties", name);
            let (was, is) = (demanded.contains(name.as_str()), demands.contains(name.as_str()));
            match new_properties.get(name).filter(|schema| !is_absent(schema, new_table)) {
                Some(new) => {
                    self.walk(property, new, &place);
                    if !was && is {
                        let message = self.say("it is required now", "it is always there now");
                        self.note(&place, message, self.side == Side::Input);
                    } else if was && !is {
                        let message = self.say("it is not required any more", "it may be absent now");
                        self.note(&place, message, self.side == Side::Output);
                    }
                }
                None => self.note_gone(&place, self.side == Side::Input || was),
            }
        }
        let is_new = |name: &str| old_properties.get(name).is_none_or(|schema| is_absent(schema, old_table));
        for (name, property) in new_properties.iter().filter(|(name, _)| is_new(name)) {
            if is_absent(property, new_table) {
                continue;
            }
            let place = inside(at, "properties", name);
            let is_required = demands.contains(name.as_str());
            let message = if is_required { "the property is new, and required" } else { "the property is new" };
            self.note(&place, message, self.side == Side::Input && is_required);
            // A type that keeps other properties takes it as one of them, and a caller may have sent it as one of them.
            let is_sent = self.side == Side::Input && is_map(old) && old.get(OTHERS) != Some(&Value::Bool(false));
            let matching = matching(old, name);
            if matching.is_empty()
                && let Some(others) = others(old).or_else(|| is_sent.then_some(&any))
            {
                self.walk(others, property, &place);
            }
            for schema in matching {
                self.walk(schema, property, &place);
            }
        }
        let is_known = |name: &&&str| old_properties.contains_key(**name) || new_properties.contains_key(**name);
        for name in demands.difference(&demanded).filter(|name| !is_known(name)) {
            self.note(&inside(at, "properties", name), "it is required now", self.side == Side::Input);
        }
        self.patterns(old, new, at);
        self.others(old, new, at);
    }

    /// The properties whose names match patterns.
    fn patterns(&mut self, old: &Object, new: &Object, at: &str) {
        let key = PATTERNS;
        let none = Object::new();
        let patterns = |node: &'_ Object| node.get(key).and_then(Value::as_object).cloned();
        let (old, new) = (patterns(old), patterns(new));
        let (old, new) = (old.as_ref().unwrap_or(&none), new.as_ref().unwrap_or(&none));
        for (pattern, schema) in old {
            match new.get(pattern) {
                Some(new) => self.walk(schema, new, &inside(at, key, pattern)),
                None => self.note(&inside(at, key, pattern), "the pattern is gone", self.side == Side::Output),
            }
        }
        for pattern in new.keys().filter(|pattern| !old.contains_key(*pattern)) {
            self.note(&inside(at, key, pattern), "the pattern is new", self.side == Side::Input);
        }
    }

    /// The properties that are not declared.
    fn others(&mut self, old: &Object, new: &Object, at: &str) {
        let place = format!("{at}/{OTHERS}");
        let any = Value::Bool(true);
        let (sent, taken) = self.ends(old.get(OTHERS), new.get(OTHERS));
        let (sender, _) = self.ends(old, new);
        let sent = sent.or_else(|| is_map(sender).then_some(&any));
        match (sent, taken) {
            (Some(sent), Some(taken)) if sent.is_object() && taken.is_object() => {
                let (old, new) = self.ends(sent, taken);
                self.walk(old, new, &place);
            }
            _ if old.get(OTHERS) == new.get(OTHERS) => {}
            // Undeclared properties are not sent, and no type keeps them.
            (None, Some(Value::Bool(false))) if self.side == Side::Input => {
                self.note(&place, "other properties are not taken any more", false);
            }
            (None | Some(Value::Bool(false)), Some(Value::Bool(false))) | (_, None) => {}
            (None, Some(_)) if self.side == Side::Input => {}
            (Some(Value::Bool(false)), Some(_)) => {}
            (_, Some(Value::Bool(false))) if self.side == Side::Output => {}
            (sent, Some(taken)) => {
                let sent = sent.unwrap_or(&any);
                let (old, new) = self.ends(sent, taken);
                self.walk(old, new, &place);
            }
        }
    }

    pub(super) fn array(&mut self, old: &Object, new: &Object, at: &str) {
        let any = Value::Bool(true);
        let list = |node: &'_ Object| node.get("prefixItems").and_then(Value::as_array).cloned().unwrap_or_default();
        let (old_list, new_list) = (list(old), list(new));
        if old_list.len() == new_list.len() {
            for (number, (old, new)) in old_list.iter().zip(&new_list).enumerate() {
                self.walk(old, new, &inside(at, "prefixItems", &number.to_string()));
            }
        } else {
            let message = format!("it has {} items of their own now, not {}", new_list.len(), old_list.len());
            self.note(at, message, true);
        }
        let (old, new) = (old.get("items").unwrap_or(&any), new.get("items").unwrap_or(&any));
        self.walk(old, new, &format!("{at}/items"));
    }
}

/// The schema of other properties; `None` if it accepts everything.
fn others(node: &Object) -> Option<&Value> {
    node.get(OTHERS).filter(|schema| schema.is_object() && !is_any(schema))
}

/// The schemas of the patterns that match the name of a property for certain.
fn matching<'s>(node: &'s Object, name: &str) -> Vec<&'s Value> {
    let patterns = node.get(PATTERNS).and_then(Value::as_object).into_iter().flatten();
    patterns.filter(|(pattern, _)| matches(pattern, name)).map(|(_, schema)| schema).collect()
}

/// True if a pattern is a text at the start, at the end or anywhere, and a name has it there. Others are not read.
fn matches(pattern: &str, name: &str) -> bool {
    let (rest, from_start) = pattern.strip_prefix('^').map_or((pattern, false), |rest| (rest, true));
    let (rest, to_end) = rest.strip_suffix('$').map_or((rest, false), |rest| (rest, true));
    let (text, to_end) = rest.strip_suffix(".*").map_or((rest, to_end), |rest| (rest, false));
    let is_plain = text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | ':' | '@' | ' '));
    match (from_start, to_end) {
        _ if !is_plain => false,
        (true, true) => name == text,
        (true, false) => name.starts_with(text),
        (false, true) => name.ends_with(text),
        (false, false) => name.contains(text),
    }
}

/// True if an object declares no properties: it can have any, and its type is a map.
fn is_map(node: &Object) -> bool {
    !node.contains_key("properties") && !node.contains_key("patternProperties")
}

fn required(node: &Object) -> BTreeSet<&str> {
    node.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}
