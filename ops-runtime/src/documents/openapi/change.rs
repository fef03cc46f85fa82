//! The changes between two versions of a document, and which of them break callers.
//!
//! The caller was written for the old document, the server follows the new one. A change breaks if the server may refuse
//! a request that the old document allows, if a response may not fit the type that was generated from it, or if something
//! that callers name is gone or has another name: an operation, a parameter, a property of a request, a status or content
//! type of a success, a security scheme. Webhooks and callbacks are received by callers, so they are compared as responses
//! are.
//!
//! These changes break nothing: other texts, tags and servers, deprecation, and errors that come or go. `readOnly`
//! properties belong to responses only, `writeOnly` ones to requests only. The order of properties and parameters is no
//! change, since requests do not depend on it; the constructors of generated code do.

mod binding;
mod field;
mod response;
mod security;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

use serde_json::Value;

use crate::documents::change::{Comparer, Entry, Finding, Side, value, weight};
use crate::model::text::readable;
use crate::{Api, Definitions, OperationSpec, pointer};

/// How many places are compared: a floor, and for each value of the schemas.
const BUDGET: (usize, usize) = (200_000, 8);

/// How many steps from definitions to operations are taken: a floor, and for each reference.
const STEPS: (usize, usize) = (5_000_000, 64);

/// How many operations a line names.
const SHOWN: usize = 3;

/// The part of an operation that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Part {
    /// The operation itself: its name, texts, path and security.
    Operation,
    /// What callers send: the parameters and the body.
    Request,
    /// What callers get: the responses, those of errors included, and what webhooks and callbacks send.
    Response,
}

impl Part {
    /// The part as a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Operation => "operation",
            Self::Request => "request",
            Self::Response => "response",
        }
    }
}

/// A change between two versions of a document.
///
/// A change in a definition is one change for all operations that reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The ids of the operations and webhooks that the change affects, in the order of the old document.
    ///
    /// A document can have too many to list; see [`more`](Self::more).
    pub operations: Vec<String>,
    /// True if the change affects operations that are not listed.
    pub more: bool,
    /// The part of the operations that changed.
    pub part: Part,
    /// The changed parameter, body, status, error or definition, in words; empty for the part as a whole.
    pub subject: String,
    /// The place as a JSON pointer: `/$defs/NAME/...` in the old definition, else in the old operation, such as
    /// `/input/properties/limit`.
    pub pointer: String,
    /// The change, as a sentence about the place.
    pub message: String,
    /// True if a caller that was written for the old document may fail.
    pub breaks: bool,
    effect: Effect,
    /// Where the pointer leads out of the subject.
    inside: usize,
}

impl Change {
    /// True if code that names what changed may have to change: if the change breaks, and also if no call fails by it but an
    /// optional property of a response or a declared error is gone, another error is declared, or a schema has another name.
    pub fn touches_names(&self) -> bool {
        self.effect != Effect::None
    }
}

/// What a change does to callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Effect {
    None,
    /// No call fails, but what code may name is gone or means something else, or there is more to handle.
    Names,
    Breaks,
}

impl From<bool> for Effect {
    fn from(breaks: bool) -> Self {
        if breaks { Self::Breaks } else { Self::None }
    }
}

impl From<&Finding> for Effect {
    fn from(found: &Finding) -> Self {
        if found.is_gone && !found.breaks { Self::Names } else { found.breaks.into() }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.breaks { "breaking" } else { "change" };
        write!(f, "{word}: {}", if self.part == Part::Operation { "" } else { self.part.as_str() })?;
        if self.part != Part::Operation {
            f.write_str(" of ")?;
        }
        for (at, id) in self.operations.iter().take(SHOWN).enumerate() {
            write!(f, "{}`{}`", if at == 0 { "" } else { ", " }, readable(id, 200))?;
        }
        match self.operations.len().saturating_sub(SHOWN) {
            0 if self.more => f.write_str(" and others")?,
            0 => {}
            more if self.more => write!(f, " and {more} and more others")?,
            more => write!(f, " and {more} more")?,
        }
        if !self.subject.is_empty() {
            write!(f, ": {}", readable(&self.subject, 300))?;
        }
        if let Some(inside) = self.pointer.get(self.inside..).filter(|inside| !inside.is_empty()) {
            write!(f, "{}{}", if self.subject.is_empty() { ": " } else { " " }, readable(inside, 1_000))?;
        }
        write!(f, ": {}", readable(&self.message, 1_000))
    }
}

/// The changes from one version of an API to another: those of operations and webhooks in their order, then those of
/// definitions.
///
/// Operations are matched by their names, or else by their method and path; webhooks are matched by their names. Their
/// namespaces do not matter. Operations without HTTP are compared by the schemas of their inputs, outputs and errors.
///
/// ```
/// use ops_runtime::openapi::{self, ReadOptions};
/// use serde_json::json;
///
/// let shop = |required: bool| {
///     let limit = json!({ "name": "limit", "in": "query", "required": required, "schema": { "type": "integer" } });
///     let list = json!({ "operationId": "list", "parameters": [limit], "responses": { "204": { "description": "" } } });
///     let info = json!({ "title": "Shop", "version": "1" });
///     let document = json!({ "openapi": "3.1.0", "info": info, "paths": { "/pets": { "get": list } } });
///     openapi::read(&document, &ReadOptions::new()).unwrap().0
/// };
/// let changes = openapi::changes(&shop(false), &shop(true));
/// assert_eq!(changes[0].to_string(), "breaking: request of `shop.list`: query parameter `limit`: it is required now");
/// assert_eq!((changes[0].pointer.as_str(), changes[0].breaks), ("/input/properties/limit", true));
/// assert!(openapi::changes(&shop(true), &shop(false)).iter().all(|change| !change.breaks));
/// ```
pub fn changes(old: &Api, new: &Api) -> Vec<Change> {
    let mut comparison = Comparison::new(old, new);
    let mut matched: HashSet<&str> = HashSet::new();
    let names: HashMap<&str, &OperationSpec> = new.operations.iter().map(|spec| (spec.name(), spec)).collect();
    let requests: HashMap<_, _> = new.operations.iter().rev().map(|spec| (request(spec), spec)).collect();
    let kept: HashSet<&str> = old.operations.iter().map(OperationSpec::name).collect();
    for spec in &old.operations {
        comparison.begin(spec);
        let renamed = || requests.get(&request(spec)).filter(|spec| !kept.contains(spec.name()));
        let renamed = || renamed().filter(|_| spec.http().is_some());
        match names.get(spec.name()).or_else(renamed).filter(|spec| matched.insert(spec.name())) {
            Some(new) => comparison.operation(spec, new),
            None => comparison.tell(Part::Operation, "", "", "the operation is gone", true),
        }
    }
    for spec in new.operations.iter().filter(|spec| !matched.contains(spec.name())) {
        comparison.begin(spec);
        comparison.tell(Part::Operation, "", "", "the operation is new", false);
    }
    let mut webhooks: HashMap<&str, &OperationSpec> = new.webhooks.iter().map(|spec| (spec.name(), spec)).collect();
    for spec in &old.webhooks {
        comparison.begin(spec);
        match webhooks.remove(spec.name()) {
            Some(new) => {
                let (old, new) = (value(&spec.output), value(&new.output));
                comparison.schemas(Place::Response, &old, &new, "webhook", "/output");
            }
            None => comparison.tell(Part::Operation, "", "", "the webhook is gone", true),
        }
    }
    for spec in new.webhooks.iter().filter(|spec| webhooks.contains_key(spec.name())) {
        comparison.begin(spec);
        comparison.tell(Part::Operation, "", "", "the webhook is new", false);
    }
    comparison.finish()
}

/// The request that an operation sends, without the names of path parameters.
fn request(spec: &OperationSpec) -> (crate::OperationKind, String) {
    let http = spec.http().map(|http| format!("{} {}", http.method, binding::blank(&http.path)));
    (spec.kind, http.unwrap_or_default())
}

/// The comparison of two APIs.
struct Comparison<'a> {
    /// The ids of the operations so far; the last is being compared.
    ids: Vec<String>,
    changes: Vec<Change>,
    /// The positions of changes that several operations may share.
    places: HashMap<(Part, String, String, String, Effect), usize>,
    /// Parameters, bodies and responses: each has its own properties.
    parameters: Direction<'a>,
    bodies: Direction<'a>,
    responses: Direction<'a>,
    /// The definitions of both.
    old: &'a Definitions,
    new: &'a Definitions,
    steps: usize,
}

/// What is compared in one direction, and which operations refer to which definitions.
struct Direction<'a> {
    comparer: Comparer<'a>,
    /// The operations that refer to a pair of definitions themselves.
    roots: HashMap<usize, Vec<usize>>,
}

impl<'a> Direction<'a> {
    fn new(comparer: Comparer<'a>) -> Self {
        Self { comparer, roots: HashMap::new() }
    }
}

impl<'a> Comparison<'a> {
    fn new(old: &'a Api, new: &'a Api) -> Self {
        let sizes = [old, new].map(|api| {
            let own = |spec: &OperationSpec| weight(&value(&spec.input)) + weight(&value(&spec.output));
            let operations = api.operations.iter().chain(&api.webhooks).map(own);
            let definitions = api.definitions.as_slice().iter().map(|definition| weight(&value(&definition.schema)));
            operations.chain(definitions).sum::<usize>()
        });
        let size = sizes.iter().sum::<usize>();
        let budget = size.saturating_mul(BUDGET.1).saturating_add(BUDGET.0);
        let table = |api: &'a Api| -> &'a Definitions { &api.definitions };
        let of = |side| Comparer::new(side, table(old), table(new), budget);
        Self {
            ids: Vec::new(),
            changes: Vec::new(),
            places: HashMap::new(),
            parameters: Direction::new(of(Side::Input)),
            bodies: Direction::new(of(Side::Input).without("readOnly")),
            responses: Direction::new(of(Side::Output).without("writeOnly")),
            old: table(old),
            new: table(new),
            steps: size.saturating_mul(STEPS.1).saturating_add(STEPS.0),
        }
    }

    fn begin(&mut self, spec: &OperationSpec) {
        self.ids.push(spec.id.to_string());
    }

    fn direction(&mut self, place: Place) -> &mut Direction<'a> {
        match place {
            Place::Parameter => &mut self.parameters,
            Place::Body => &mut self.bodies,
            Place::Response => &mut self.responses,
        }
    }

    /// Tells a change of the operation, at a pointer in it that is all of the subject.
    fn tell(&mut self, part: Part, subject: &str, pointer: &str, message: &str, effect: impl Into<Effect>) {
        self.tell_inside(part, subject, pointer, pointer.len(), message, effect);
    }

    fn tell_inside(
        &mut self,
        part: Part,
        subject: &str,
        pointer: &str,
        inside: usize,
        message: &str,
        effect: impl Into<Effect>,
    ) {
        let effect = effect.into();
        let key = (part, subject.to_owned(), pointer.to_owned(), message.to_owned(), effect);
        let next = self.changes.len();
        let at = *self.places.entry(key).or_insert(next);
        if at == next {
            let (subject, pointer, message) = (subject.to_owned(), pointer.to_owned(), message.to_owned());
            let (operations, more, breaks) = (Vec::new(), false, effect == Effect::Breaks);
            self.changes.push(Change { operations, more, part, subject, pointer, message, breaks, effect, inside });
        }
        if let (Some(change), Some(id)) = (self.changes.get_mut(at), self.ids.last())
            && change.operations.last() != Some(id)
        {
            change.operations.push(id.clone());
        }
    }

    /// Compares schemas of the operation; what their definitions give is told at the end.
    fn schemas(&mut self, place: Place, old: &Value, new: &Value, subject: &str, pointer: &str) {
        let now = self.ids.len().saturating_sub(1);
        for entry in self.direction(place).comparer.compare(old, new, pointer) {
            match entry {
                Entry::Found(found) => {
                    self.tell_inside(place.part(), subject, &found.pointer, pointer.len(), &found.message, &found);
                }
                Entry::Inner { pair, .. } => {
                    let roots = self.direction(place).roots.entry(pair).or_default();
                    if roots.last() != Some(&now) {
                        roots.push(now);
                    }
                }
            }
        }
    }

    fn finish(self) -> Vec<Change> {
        let Self { ids, parameters, bodies, responses, steps, mut changes, old, new, .. } = self;
        let mut steps = steps;
        let directions = [(Part::Request, parameters), (Part::Request, bodies), (Part::Response, responses)];
        let mut all: Vec<(BTreeSet<usize>, Change)> = Vec::new();
        // What a definition gives to parameters and to bodies is one change.
        let mut known: HashMap<(Part, String, String, bool), usize> = HashMap::new();
        for (part, mut direction) in directions {
            for (operations, change) in of_definitions(part, &mut direction, [old, new], &mut steps) {
                let key = (change.part, change.pointer.clone(), change.message.clone(), change.breaks);
                let at = *known.entry(key).or_insert(all.len());
                match all.get_mut(at) {
                    Some((all, same)) => {
                        all.extend(operations);
                        same.more |= change.more;
                    }
                    None => all.push((operations, change)),
                }
            }
        }
        let definition = |change: &Change| pointer::tokens(&change.pointer).nth(1).map(Cow::into_owned);
        all.sort_by_cached_key(|(_, change)| (definition(change), change.part));
        changes.extend(all.into_iter().map(|(operations, mut change)| {
            change.operations = operations.into_iter().filter_map(|at| ids.get(at).cloned()).collect();
            change
        }));
        changes
    }
}

/// Where schemas are compared.
#[derive(Debug, Clone, Copy)]
enum Place {
    Parameter,
    Body,
    Response,
}

impl Place {
    fn part(self) -> Part {
        if matches!(self, Self::Response) { Part::Response } else { Part::Request }
    }
}

/// The changes of all definitions that operations reach, with the numbers of these operations.
fn of_definitions(
    part: Part,
    direction: &mut Direction<'_>,
    [old_table, new_table]: [&Definitions; 2],
    steps: &mut usize,
) -> Vec<(BTreeSet<usize>, Change)> {
    let mut open: Vec<usize> = direction.roots.keys().copied().collect();
    open.sort_unstable();
    let mut seen: HashSet<usize> = open.iter().copied().collect();
    let mut above: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut changed = Vec::new();
    while let Some(pair) = open.pop() {
        let (old, new, entries) = direction.comparer.pair(pair);
        let subject = if old == new { format!("`{old}`") } else { format!("`{old}`, which is `{new}` now") };
        let start = format!("/$defs/{}", pointer::escaped(old));
        let mut own = Vec::new();
        // A reference may also lead to another definition that there was.
        if old != new && new_table.get(old).is_none() && old_table.get(new).is_none() {
            own.push(Change {
                operations: Vec::new(),
                more: false,
                part,
                subject: format!("`{old}`"),
                pointer: start.clone(),
                message: format!("it is called `{new}` now"),
                breaks: false,
                effect: Effect::Names,
                inside: start.len(),
            });
        }
        for entry in entries {
            match entry {
                Entry::Found(found) => own.push(Change {
                    operations: Vec::new(),
                    more: false,
                    part,
                    subject: subject.clone(),
                    pointer: format!("{start}{}", found.pointer),
                    message: found.message.clone(),
                    breaks: found.breaks,
                    effect: found.into(),
                    inside: start.len(),
                }),
                Entry::Inner { pair: inner, .. } => {
                    above.entry(*inner).or_default().push(pair);
                    if seen.insert(*inner) {
                        open.push(*inner);
                    }
                }
            }
        }
        if !own.is_empty() {
            changed.push((pair, own));
        }
    }
    let mut changes = Vec::new();
    for (pair, own) in changed {
        let (operations, more) = reaching(pair, &above, &direction.roots, steps);
        for mut change in own {
            change.more = more;
            *steps = steps.saturating_sub(operations.len());
            changes.push((operations.clone(), change));
        }
    }
    changes
}

/// The operations that reach a pair of definitions; true if there may be others.
fn reaching(
    pair: usize,
    above: &HashMap<usize, Vec<usize>>,
    roots: &HashMap<usize, Vec<usize>>,
    steps: &mut usize,
) -> (BTreeSet<usize>, bool) {
    let mut found = BTreeSet::new();
    let mut open = vec![pair];
    let mut seen = HashSet::from([pair]);
    while let Some(pair) = open.pop() {
        // At least one operation is named.
        if *steps == 0 && !found.is_empty() {
            return (found, true);
        }
        let (roots, above) = (roots.get(&pair).into_iter().flatten(), above.get(&pair).into_iter().flatten());
        found.extend(roots.inspect(|_| *steps = steps.saturating_sub(1)));
        for pair in above {
            *steps = steps.saturating_sub(1);
            if seen.insert(*pair) {
                open.push(*pair);
            }
        }
    }
    (found, false)
}

#[cfg(test)]
mod tests;
