//! Booleans that choose between one result and a stream of events: the operation sets them, so no input has them.
//!
//! This works on the schemas as they are written in specs, once all definitions are known.

mod marks;
mod narrow;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use self::marks::{Key, marks, rename};
use self::narrow::{Found, Narrower, Place, Table};
use super::media::is_range;
use super::reader::{Reader, Streaming};
use super::short::short;
use crate::model::media::{Media, essence};
use crate::{Binding, Definition, HttpBinding, HttpFixed, Literal, OperationKind, OperationSpec, Schema};

/// The names of such booleans, without regard to case and punctuation, the most usual first.
const NAMES: &[&str] = &[
    "stream",
    "streaming",
    "isstream",
    "isstreaming",
    "enablestream",
    "enablestreaming",
    "usestream",
    "usestreaming",
    "streamresponse",
    "streamevents",
    "sse",
];

/// The document's description of a boolean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Switch {
    /// True if it may be `false`.
    off: bool,
    /// True if it may be `true`.
    on: bool,
    /// True if it must be sent to be `false`.
    needs_false: bool,
}

impl<'a> Reader<'a> {
    /// Takes the booleans that choose between a result and a stream out of the inputs: the operations set them. What
    /// webhooks send keeps them.
    pub(super) fn settle_switches(&mut self, specs: &mut [OperationSpec], webhooks: &[OperationSpec]) {
        let streams = std::mem::take(&mut self.streams);
        if streams.is_empty() {
            return;
        }
        let mut definitions = std::mem::take(&mut self.definitions);
        let mut derived = self.narrow_inputs(&streams, &definitions, specs, webhooks);
        for definition in &mut definitions {
            if let Some(schema) = derived.remove(definition.name.as_ref()) {
                definition.schema = Schema::from(schema);
            }
        }
        definitions.extend(derived.into_iter().map(|(name, schema)| Definition::from_value(name, schema)));
        self.definitions = definitions;
    }

    /// Narrows the inputs, and returns the definitions that are new or changed.
    fn narrow_inputs(
        &mut self,
        streams: &[Streaming<'a>],
        definitions: &[Definition],
        specs: &mut [OperationSpec],
        webhooks: &[OperationSpec],
    ) -> BTreeMap<String, Value> {
        let table = definitions.iter().filter_map(|d| Some((d.name.as_ref(), d.schema.to_value().ok()?)));
        let table: Table<'_> = table.collect();
        let mut narrower = Narrower::new(&table, streams.len());
        let mut narrowed: Vec<usize> = Vec::new();
        for stream in streams {
            let Some(own) = specs.get_mut(stream.specs.clone()) else { continue };
            let Some(name) = settle(own, &stream.schemas, &mut narrower) else { continue };
            narrowed.extend(stream.specs.clone());
            let says = own.iter().map(|spec| format!("`{}` {}", short(spec.name()), sends(spec, &name)));
            let says = says.collect::<Vec<_>>().join(", ");
            let message = format!("`{}` chooses between one result and a stream", short(&name));
            self.note(&stream.operation, message, format!("it is not in the input: {says}"));
        }
        let forms = narrower.forms;
        let names = self.names_of(&forms, &table, specs.iter().chain(webhooks));
        for at in narrowed {
            let Some(spec) = specs.get_mut(at) else { continue };
            if let Ok(input) = spec.input.to_value() {
                let mut input = input.into_owned();
                rename(&mut input, &names);
                spec.input = Schema::from(input);
            }
        }
        let mut derived: BTreeMap<String, Value> = BTreeMap::new();
        for (key, mut schema) in forms {
            rename(&mut schema, &names);
            derived.extend(names.get(&key).map(|name| (name.clone(), schema)));
        }
        derived
    }

    /// The name of each narrowed definition: its own, if the original form is not needed.
    fn names_of<'s>(
        &mut self,
        forms: &BTreeMap<Key, Value>,
        table: &Table<'_>,
        specs: impl Iterator<Item = &'s OperationSpec>,
    ) -> BTreeMap<Key, String> {
        let differing = differing(forms);
        let mut kept: BTreeSet<&str> =
            forms.keys().map(|key| key.name.as_str()).filter(|name| !differing.contains(name)).collect();
        // The originals that narrowed schemas refer to are needed, and so are those that these refer to.
        let mut needed = BTreeSet::new();
        let mut queue: Vec<String> = Vec::new();
        for spec in specs {
            let errors = spec.errors.iter().map(|error| &error.schema);
            for schema in [&spec.input, &spec.output].into_iter().chain(errors) {
                if let Ok(value) = schema.to_value() {
                    marks::references(&value, &mut queue);
                }
            }
        }
        forms.values().for_each(|schema| marks::references(schema, &mut queue));
        while let Some(name) = queue.pop() {
            kept.remove(name.as_str());
            if needed.insert(name.clone())
                && let Some(schema) = table.get(name.as_str())
            {
                marks::references(schema, &mut queue);
            }
        }
        let mut names: BTreeMap<Key, String> = BTreeMap::new();
        for key in forms.keys() {
            let twin = names.get(&Key { on: !key.on, ..key.clone() });
            let name = match twin.filter(|_| !differing.contains(key.name.as_str())) {
                Some(name) => name.clone(),
                None if kept.contains(key.name.as_str()) => key.name.clone(),
                None if differing.contains(key.name.as_str()) && key.on => {
                    self.taken.allot(&format!("{}_for_{}", key.name, key.property))
                }
                None => self.taken.allot(&format!("{}_without_{}", key.name, key.property)),
            };
            names.insert(key.clone(), name);
        }
        names
    }
}

/// The value that an operation sends for the boolean, in words.
fn sends(spec: &OperationSpec, name: &str) -> String {
    let Some(http) = spec.http() else { return String::new() };
    let in_bodies = http.bodies.iter().flat_map(|body| body.fixed.iter()).find(|fixed| fixed.name == name);
    let in_query = http.parameters.iter().find(|parameter| parameter.name == name);
    let value = in_bodies.and_then(|fixed| fixed.value.as_ref());
    match value.or_else(|| in_query.and_then(|parameter| parameter.fixed.as_ref())) {
        Some(Literal::Bool(value)) => format!("sends `{value}`"),
        Some(Literal::Text(text)) => format!("sends `{}`", short(text)),
        None => "does not send it".to_owned(),
    }
}

/// The definitions that a result and a stream need in different forms.
fn differing(forms: &BTreeMap<Key, Value>) -> BTreeSet<&str> {
    let mut differing: BTreeSet<&str> = BTreeSet::new();
    let on = |value: &Value| value.to_string().replace(marks::OFF, marks::ON);
    let mut properties: BTreeMap<&str, &str> = BTreeMap::new();
    for (key, schema) in forms {
        // A name stands for one form: two properties of one definition make two forms.
        let first = *properties.entry(&key.name).or_insert(&key.property);
        let other = forms.get(&Key { on: !key.on, ..key.clone() });
        if first != key.property || other.is_some_and(|other| on(other) != on(schema)) {
            differing.insert(&key.name);
        }
    }
    // Definitions that refer to differing forms differ, too.
    let mut referring: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (key, schema) in forms {
        marks(schema).into_iter().for_each(|mark| referring.entry(mark.name).or_default().push(&key.name));
    }
    let mut queue: Vec<&str> = differing.iter().copied().collect();
    while let Some(name) = queue.pop() {
        let new = referring.get(name).into_iter().flatten().filter(|name| differing.insert(name));
        queue.extend(new.copied().collect::<Vec<_>>());
    }
    differing
}

/// Narrows the inputs of the specs of one operation, if there is a boolean that chooses.
fn settle(specs: &mut [OperationSpec], schemas: &[Value], narrower: &mut Narrower<'_>) -> Option<String> {
    let http = specs.first()?.http()?.clone();
    let input = specs.first()?.input.to_value().ok()?.into_owned();
    let found = narrower.find(&input, &http, schemas, NAMES)?;
    // An operation that only streams has no choice, unless the boolean can only be `true`.
    let is_twin = specs.len() > 1;
    if !found.switches().all(|switch| switch.on && switch.off == is_twin) {
        return None;
    }
    let needs_false = found.switches().any(|switch| switch.needs_false);
    // The value is sent with each variant of the body, also with one that cannot have it.
    if is_twin && needs_false && narrower.is_partial(&input, &http, &found.name) {
        return None;
    }
    let mut inputs = Vec::new();
    for spec in specs.iter() {
        let on = spec.kind == OperationKind::Subscription;
        inputs.push(narrower.input(&input, &http, &found, on)?);
    }
    for (spec, (mut input, places)) in specs.iter_mut().zip(inputs) {
        let on = spec.kind == OperationKind::Subscription;
        if let Binding::Http(http) = &mut spec.binding {
            fix(http, &found, (on || needs_false).then_some(Literal::Bool(on)));
            take_places(http, &mut input, places);
        }
        spec.input = Schema::from(input);
    }
    Some(found.name)
}

/// Writes into a binding where each body is in the narrowed input. A content type without an alternative is removed, also from
/// the property that chooses the content type. That property is removed if no choice is left.
fn take_places(http: &mut HttpBinding, input: &mut Value, places: Vec<Place>) {
    let before = http.bodies.len();
    let mut places = places.into_iter();
    http.bodies.to_mut().retain_mut(|body| match places.next() {
        Some(Place::Gone) => false,
        Some(Place::Alternative(variant)) => {
            body.variant = variant;
            true
        }
        None => true,
    });
    let properties = input.get_mut("properties").and_then(Value::as_object_mut);
    let (Some(properties), Some(property)) = (properties, http.content_type.clone()) else { return };
    if http.bodies.len() == before {
        return;
    }
    let is_left = |name: &str| http.bodies.iter().any(|body| essence(&body.content_type) == essence(name));
    let Some(choice) = properties.get_mut(&*property).and_then(Value::as_object_mut) else { return };
    if choice.get("default").and_then(Value::as_str).is_some_and(|name| !is_left(name)) {
        match http.bodies.first().filter(|first| !is_range(&first.content_type)) {
            Some(first) => choice.insert("default".to_owned(), Value::from(&*first.content_type)),
            None => choice.shift_remove("default"),
        };
    }
    let is_choice = match choice.get_mut("enum").and_then(Value::as_array_mut) {
        Some(names) => {
            names.retain(|name| name.as_str().is_some_and(is_left));
            names.len() > 1
        }
        // With a range of types, the caller names a type in the range.
        None => http.bodies.len() > 1 || http.bodies.iter().any(|body| is_range(&body.content_type)),
    };
    if !is_choice {
        properties.shift_remove(&*property);
        http.content_type = None;
    }
}

/// Writes the value that is sent for the boolean into a binding.
fn fix(http: &mut HttpBinding, found: &Found, value: Option<Literal>) {
    for (body, _) in http.bodies.to_mut().iter_mut().zip(&found.bodies).filter(|(_, found)| found.is_some()) {
        let mut fixed = HttpFixed::absent("");
        fixed.name = found.name.clone().into();
        fixed.value.clone_from(&value);
        body.fixed = vec![fixed].into();
    }
    let Some((_, property)) = &found.query else { return };
    match value {
        Some(value) => {
            for parameter in http.parameters.to_mut().iter_mut().filter(|parameter| parameter.property == *property) {
                parameter.fixed = Some(value.clone());
            }
        }
        None => http.parameters.to_mut().retain(|parameter| parameter.property != *property),
    }
}

/// True if properties of a body of this type can be set.
fn has_properties(content_type: &str) -> bool {
    matches!(Media::of(content_type), Media::Json | Media::Form | Media::Multipart)
}
