//! The texts about operations for a model: lists, signatures, and suggestions.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::Value;

use super::gate::Gate;
use super::summary::{name, summary};
use crate::model::nearest::{nearest, question};
use crate::run::mock::input_example;
use crate::run::principal::Principal;
use crate::run::registry::Entry;
use crate::search::SearchIndex;
use crate::typescript::{self, Detail, Names};
use crate::{CallError, Decision, OperationKind, OperationSpec};

/// Limit of the operations that a search lists.
const MOST: usize = 50;

/// How many required and how many optional properties of an input are listed.
const REQUIRED: usize = 24;
const OPTIONAL: usize = 6;

/// Limit of an example in an error, in bytes: a document may have examples of any size.
const EXAMPLE: usize = 4_000;

/// Data derived from all operations of a registry.
pub(super) struct View {
    pub(super) version: u64,
    pub(super) names: Names,
    /// The names by which programs of the owner call operations, made for the first program.
    #[cfg(feature = "program")]
    pub(super) functions: std::sync::OnceLock<Arc<crate::program::Functions>>,
    index: SearchIndex,
}

impl View {
    /// Reads all operations. It takes a while for thousands of them.
    pub(super) fn of(version: u64, entries: &[Arc<Entry>]) -> Self {
        let specs = || entries.iter().map(|entry| &*entry.spec);
        Self {
            version,
            names: Names::new(specs().map(|spec| spec.id.as_ref())),
            #[cfg(feature = "program")]
            functions: std::sync::OnceLock::new(),
            index: SearchIndex::new(specs()),
        }
    }
}

/// The operation with this id, if the caller may call it.
pub(super) fn entry(gate: &Gate, principal: &Principal, id: &str) -> Option<Arc<Entry>> {
    let table = gate.registry().table();
    table.get(id).filter(|entry| principal.sees(&entry.spec)).cloned()
}

/// The best matches for some words that the caller may call.
pub(super) fn best(
    gate: &Gate,
    view: &View,
    principal: &Principal,
    query: &str,
    namespace: Option<&str>,
    limit: usize,
) -> Vec<Arc<Entry>> {
    let limit = limit.clamp(1, MOST);
    let table = gate.registry().table();
    let mut asked = limit.saturating_mul(4);
    loop {
        let hits = view.index.search(query, asked);
        let found = hits.iter().filter_map(|hit| table.get(&hit.id));
        let shown = found.filter(|entry| {
            principal.sees(&entry.spec) && namespace.is_none_or(|namespace| entry.spec.namespace() == namespace)
        });
        let shown: Vec<Arc<Entry>> = shown.take(limit).cloned().collect();
        // Operations that the caller may not see are replaced by others.
        if shown.len() == limit || hits.len() < asked {
            return shown;
        }
        asked = asked.saturating_mul(8);
    }
}

/// The best matches for some words, a line or two each.
pub(super) fn list(
    gate: &Gate,
    view: &View,
    principal: &Principal,
    query: &str,
    namespace: Option<&str>,
    limit: usize,
) -> String {
    let found = best(gate, view, principal, query, namespace, limit);
    if found.is_empty() {
        return nothing(gate, principal, namespace);
    }
    let mut text = String::new();
    for entry in &found {
        line(&mut text, gate, &entry.spec);
    }
    text.push_str("`describe` shows the types of one; other words find others.");
    text
}

/// An overview, for a search without results.
fn nothing(gate: &Gate, principal: &Principal, namespace: Option<&str>) -> String {
    let table = gate.registry().table();
    let mut namespaces: Vec<&str> =
        table.iter().filter(|entry| principal.sees(&entry.spec)).map(|entry| entry.spec.namespace()).collect();
    namespaces.dedup();
    if namespaces.is_empty() {
        return "There are no operations.".to_owned();
    }
    let mut text = "Nothing is like that.".to_owned();
    if let Some(namespace) = namespace.filter(|namespace| !namespaces.contains(namespace)) {
        let meant = match nearest(namespace, namespaces.iter().copied(), 3).as_slice() {
            [] => ".".to_owned(),
            near => question(near),
        };
        let _ = write!(text, " There is no namespace `{}`{meant}", name(namespace));
    }
    const SHOWN: usize = 100;
    let _ = write!(
        text,
        " The namespaces are: {}",
        namespaces.iter().take(SHOWN).map(|own| name(own)).collect::<Vec<_>>().join(", ")
    );
    if let Some(more) = namespaces.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        let _ = write!(text, ", and {more} more");
    }
    text
}

/// True if the policy refuses all calls of an operation.
pub(super) fn is_denied(gate: &Gate, spec: &OperationSpec) -> bool {
    gate.rules().decide(spec) == Decision::Deny
}

/// An operation in a list: its id, its summary, and its input.
fn line(text: &mut String, gate: &Gate, spec: &OperationSpec) {
    let kind = match (spec.kind, spec.may_change()) {
        (OperationKind::Subscription, true) => " (streams, changes)",
        (OperationKind::Subscription, false) => " (streams)",
        (_, true) => " (changes)",
        (_, false) => "",
    };
    let deprecated = if spec.deprecated { " (deprecated)" } else { "" };
    let denied = if is_denied(gate, spec) { " (denied by the policy of this gateway)" } else { "" };
    let _ = writeln!(text, "{}{kind}{deprecated}{denied}: {}", name(&spec.id), summary(spec));
    let takes = takes(spec);
    if !takes.is_empty() {
        let _ = writeln!(text, "  takes {takes}");
    }
}

/// The names of the properties of an input: the required ones, and some optional ones.
fn takes(spec: &OperationSpec) -> String {
    let Ok(schema) = spec.input_schema() else { return String::new() };
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return String::new() };
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let optional: Vec<&str> = properties.keys().map(String::as_str).filter(|name| !required.contains(name)).collect();
    let mut names: Vec<String> = required.iter().take(REQUIRED).map(|own| name(own)).collect();
    if required.len() > REQUIRED {
        names.push(format!("{} more that are required", required.len() - REQUIRED));
    }
    names.extend(optional.iter().take(OPTIONAL).map(|own| format!("{}?", name(own))));
    if optional.len() > OPTIONAL {
        names.push(format!("and {} more", optional.len() - OPTIONAL));
    }
    names.join(", ")
}

/// An operation as a TypeScript signature, below a comment if it may not be called.
pub(super) fn describe(gate: &Gate, view: &View, spec: &OperationSpec, whole: bool) -> String {
    let detail = if whole { Detail::Whole } else { Detail::Short };
    let signature = typescript::describe(spec, detail, &view.names);
    match is_denied(gate, spec) {
        true => format!("// This may not be called: the policy of this gateway denies it.\n{signature}"),
        false => signature,
    }
}

/// The text for an id that belongs to no operation that the caller may call.
pub(super) fn unknown(gate: &Gate, view: &View, principal: &Principal, id: &str) -> String {
    const PROPOSED: usize = 3;
    let table = gate.registry().table();
    let known = table.iter().filter(|entry| principal.sees(&entry.spec)).map(|entry| entry.spec.id.as_ref());
    let mut text = format!("There is no operation `{}`{}", name(id), question(&nearest(id, known, PROPOSED)));
    let alike = best(gate, view, principal, id, None, PROPOSED);
    if !alike.is_empty() {
        text.push_str("\nA search for its words finds:\n");
        alike.iter().for_each(|entry| line(&mut text, gate, &entry.spec));
    }
    text
}

/// The text for a refused input: each violation, the signature, and an example.
pub(super) fn refused(gate: &Gate, view: &View, spec: &OperationSpec, error: &CallError) -> String {
    let violations = error.details().get("violations").and_then(Value::as_array).into_iter().flatten();
    let told: Vec<(&str, &str)> = violations.map(|told| (part(told, "pointer"), part(told, "message"))).collect();
    // Some messages end with the list.
    let list = told.first().map(|(place, said)| match *place {
        "" => format!(": {said}"),
        place => format!(": {place}: {said}"),
    });
    let before = list.and_then(|list| Some(error.message().split_once(&list)?.0));
    let mut text = format!("{}: {}\n", error.code(), before.unwrap_or(error.message()));
    for (place, said) in told {
        let _ = writeln!(text, "- {}: {said}", if place.is_empty() { "the input" } else { place });
    }
    let _ = write!(text, "\n{}", describe(gate, view, spec, false));
    let example = input_example(spec).to_string();
    if example.len() <= EXAMPLE {
        let _ = write!(text, "\n\nAn input that fits: {example}");
    }
    text
}

/// A text of a violation; empty if it is not there.
fn part<'v>(violation: &'v Value, name: &str) -> &'v str {
    violation.get(name).and_then(Value::as_str).unwrap_or_default()
}
