//! The actions of an overlay, as they are written.

use ops_runtime::nearest::{nearest, question};
use ops_runtime::spec::Diagnostic;
use ops_runtime::spec::pointer;
use serde_json::{Map, Value};

use crate::jsonpath::Query;

/// One change.
#[derive(Debug)]
pub(super) struct Action<'v> {
    /// Its place in the list.
    pub(super) index: usize,
    pub(super) target: Query,
    pub(super) change: Change<'v>,
    /// True for version 1.0, which updates no values but objects and lists.
    pub(super) is_old: bool,
}

#[derive(Debug)]
pub(super) enum Change<'v> {
    Update(&'v Value),
    Copy(Query),
    Remove,
}

/// Reads an overlay; its faults are added to the diagnostics.
pub(super) fn actions<'v>(overlay: &'v Value, told: &mut Vec<Diagnostic>) -> Vec<Action<'v>> {
    let version = match overlay.get("overlay") {
        Some(Value::String(version)) => Some(version.clone()),
        // YAML reads `1.0` as a number.
        Some(Value::Number(version)) => Some(version.to_string()),
        _ => None,
    };
    let Some(version) = version else {
        let error = Diagnostic::error("", "the file is no overlay: it has no `overlay` with its version");
        told.push(error.with_help("begin it with `overlay: 1.1.0`"));
        return Vec::new();
    };
    // Patches are not to be told apart, and need not be said.
    let is =
        |wanted: &str| version.strip_prefix(wanted).is_some_and(|patch| patch.is_empty() || patch.starts_with('.'));
    let is_old = is("1.0");
    if !is_old && !is("1.1") {
        let message = format!("overlays of version `{version}` are not known");
        told.push(Diagnostic::error("/overlay", message).with_help("1.0 and 1.1 are: `overlay: 1.1.0`"));
        return Vec::new();
    }
    if let Some(members) = overlay.as_object() {
        unknown(members, &["overlay", "info", "extends", "actions"], "", told);
    }
    let Some(list) = overlay.get("actions").and_then(Value::as_array) else {
        told.push(Diagnostic::error("", "the overlay has no list of `actions`"));
        return Vec::new();
    };
    list.iter().enumerate().filter_map(|(index, action)| one(index, action, is_old, told)).collect()
}

fn one<'v>(index: usize, action: &'v Value, is_old: bool, told: &mut Vec<Diagnostic>) -> Option<Action<'v>> {
    let place = format!("/actions/{index}");
    let at = |field: &str| format!("{place}/{field}");
    let Some(members) = action.as_object() else {
        told.push(Diagnostic::error(place, "an action is an object with a `target`"));
        return None;
    };
    let known = ["target", "description", "update", "remove", "copy"];
    unknown(members, if is_old { known.get(..4).unwrap_or(&known) } else { &known }, &place, told);
    let target = match members.get("target") {
        Some(Value::String(text)) => query(text, at("target"), told),
        Some(_) => {
            told.push(Diagnostic::error(at("target"), "a target is a text: a JSONPath, such as `$.paths.*.get`"));
            None
        }
        None => {
            told.push(Diagnostic::error(&*place, "the action has no `target`"));
            None
        }
    };
    let (update, copy) = (members.get("update"), members.get("copy").filter(|_| !is_old));
    let change = match (members.get("remove"), update, copy) {
        (Some(Value::Bool(true)), ..) => Some(Change::Remove),
        (Some(remove), ..) if !remove.is_boolean() => {
            told.push(Diagnostic::error(at("remove"), "`remove` is `true` or `false`"));
            None
        }
        (_, Some(_), Some(_)) => {
            told.push(Diagnostic::error(&*place, "an action has `update` or `copy`, not both"));
            None
        }
        (_, Some(update), None) => Some(Change::Update(update)),
        (_, None, Some(Value::String(text))) => query(text, at("copy"), told).map(Change::Copy),
        (_, None, Some(_)) => {
            told.push(Diagnostic::error(at("copy"), "`copy` is a text: a JSONPath that selects one node"));
            None
        }
        (_, None, None) => {
            let ways = if is_old { "`update` or `remove`" } else { "`update`, `remove` or `copy`" };
            told.push(Diagnostic::warning(place, format!("the action changes nothing: it has no {ways}")));
            None
        }
    };
    Some(Action { index, target: target?, change: change?, is_old })
}

fn query(text: &str, place: String, told: &mut Vec<Diagnostic>) -> Option<Query> {
    match Query::parse(text) {
        Ok(query) => Some(query),
        Err(error) => {
            let rest: String = text.chars().skip(error.at).take(20).collect();
            let near = if rest.is_empty() { "at its end".to_owned() } else { format!("at `{rest}`") };
            let help = "it is a JSONPath of RFC 9535, such as `$.paths['/pets'].get`";
            told.push(Diagnostic::error(place, format!("{near}: {}", error.message)).with_help(help));
            None
        }
    }
}

/// Warns about members that have no meaning; those with `x-` are anybody's.
fn unknown(members: &Map<String, Value>, known: &[&str], place: &str, told: &mut Vec<Diagnostic>) {
    for name in members.keys().filter(|name| !known.contains(&name.as_str()) && !name.starts_with("x-")) {
        let hint = question(&nearest(name, known.iter().copied(), 1));
        let mut at = place.to_owned();
        pointer::push(&mut at, name);
        told.push(Diagnostic::warning(at, format!("`{name}` means nothing here{hint}")));
    }
}
