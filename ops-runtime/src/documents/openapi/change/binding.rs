//! Operations and their requests.

use std::collections::HashSet;
use std::mem::discriminant;

use serde_json::Value;

use super::{Comparison, Part, Place};
use crate::documents::change::{not_null, value};
use crate::model::media::essence;
use crate::pointer;
use crate::{HttpBinding, HttpBody, HttpParameter, OperationKind, OperationSpec, ParameterLocation};

impl Comparison<'_> {
    /// Compares an operation with its new version.
    pub(super) fn operation(&mut self, old: &OperationSpec, new: &OperationSpec) {
        if old.name() != new.name() {
            let message = format!("it is called `{}` now", new.name());
            self.tell(Part::Operation, "", "", &message, true);
        }
        let is_stream = |spec: &OperationSpec| spec.kind == OperationKind::Subscription;
        if is_stream(old) != is_stream(new) {
            let message = if is_stream(new) { "it is a stream now" } else { "it is no stream any more" };
            self.tell(Part::Operation, "", "", message, true);
        }
        if old.deprecated != new.deprecated {
            let message = if new.deprecated { "it is deprecated now" } else { "it is not deprecated any more" };
            self.tell(Part::Operation, "", "/deprecated", message, false);
        }
        for (key, changed) in [
            ("title", old.title != new.title),
            ("description", description(old) != description(new)),
            ("tags", old.tags != new.tags),
        ] {
            if changed {
                self.tell(Part::Operation, key, &format!("/{key}"), "it changed", false);
            }
        }
        let (Some(old_http), Some(new_http)) = (old.http(), new.http()) else { return self.whole(old, new) };
        let path = |http: &HttpBinding| (http.method.clone(), blank(&http.path));
        if path(old_http) != path(new_http) {
            let request = |http: &HttpBinding| format!("`{} {}`", http.method, http.path);
            let message = format!("it is {} now, not {}", request(new_http), request(old_http));
            self.tell(Part::Operation, "", "/path", &message, true);
        }
        if old_http.server != new_http.server {
            let server = new_http.server.as_deref().unwrap_or("not named");
            self.tell(Part::Operation, "server", "/server", &format!("it is {server} now"), false);
        }
        self.server_variables(old_http, new_http);
        self.security(&old_http.security, &new_http.security);
        self.parameters(old, new, old_http, new_http);
        self.bodies(old, new, old_http, new_http);
        self.outputs(old, new, old_http, new_http);
    }

    /// Compares operations of which at most one is called over HTTP: the schemas of the input and the output as a whole, and
    /// the errors by their codes.
    fn whole(&mut self, old: &OperationSpec, new: &OperationSpec) {
        if discriminant(&old.binding) != discriminant(&new.binding) {
            self.tell(Part::Operation, "", "/binding", "it is reached in another way now", true);
        }
        self.schemas(Place::Parameter, &value(&old.input), &value(&new.input), "", "/input");
        self.schemas(Place::Response, &value(&old.output), &value(&new.output), "", "/output");
        let declared = |spec: &OperationSpec| -> Vec<(String, String)> {
            spec.errors.iter().map(|error| (error.code.to_string(), format!("error `{}`", error.code))).collect()
        };
        self.errors((old, &declared(old)), (new, &declared(new)));
    }

    /// Compares the variables that both versions of the server's URL have.
    fn server_variables(&mut self, old: &HttpBinding, new: &HttpBinding) {
        for is in new.server_variables.iter() {
            let Some(was) = old.server_variables.iter().find(|was| was.name == is.name) else { continue };
            if was.default != is.default {
                let message =
                    format!("its variable `{}` is `{}` by default now, not `{}`", is.name, is.default, was.default);
                self.tell(Part::Operation, "server", "/serverVariables", &message, false);
            }
            if was.values != is.values {
                let message = format!("its variable `{}` may have other values now", is.name);
                self.tell(Part::Operation, "server", "/serverVariables", &message, false);
            }
        }
    }

    fn parameters(&mut self, old: &OperationSpec, new: &OperationSpec, old_http: &HttpBinding, new_http: &HttpBinding) {
        let (old_input, new_input) = (value(&old.input), value(&new.input));
        let (old_path, new_path) = (names(&old_http.path), names(&new_http.path));
        let by_name = |old: &HttpParameter| new_http.parameters.iter().find(|new| is_same(old, new));
        let by_place = |old: &HttpParameter| {
            let at = old_path.iter().position(|name| *name == old.name && old.location == ParameterLocation::Path)?;
            let name = new_path.get(at).filter(|_| old_path.len() == new_path.len())?;
            let is_it = |new: &&HttpParameter| new.location == ParameterLocation::Path && new.name == *name;
            new_http.parameters.iter().find(is_it)
        };
        // In the same path, a parameter is what stands at its place.
        let is_same_path = blank(&old_http.path) == blank(&new_http.path);
        let counterpart = |old: &HttpParameter| match is_same_path {
            true => by_place(old).or_else(|| by_name(old)),
            false => by_name(old).or_else(|| by_place(old)),
        };
        let (old_table, new_table) = (self.old, self.new);
        let mut met: HashSet<*const HttpParameter> = HashSet::new();
        for parameter in old_http.parameters.iter() {
            let (subject, place) = (subject(parameter), place(&parameter.property));
            let Some(found) = counterpart(parameter) else {
                let moved = new_http
                    .parameters
                    .iter()
                    .find(|new| new.name == parameter.name && !old_http.parameters.iter().any(|old| is_same(old, new)));
                let message = match moved {
                    Some(moved) => {
                        met.insert(moved);
                        format!("it is a {} parameter now", location(moved.location))
                    }
                    None => "the parameter is gone".to_owned(),
                };
                self.tell(Part::Request, &subject, &place, &message, true);
                continue;
            };
            met.insert(found);
            if found.property != parameter.property {
                let message = format!("it is called `{}` now", found.property);
                self.tell(Part::Request, &subject, &place, &message, true);
            }
            if found.fixed != parameter.fixed {
                self.tell(Part::Request, &subject, &place, "the operation sets it in another way now", true);
            }
            self.demand(&old_input, &new_input, &parameter.property, &found.property, &subject);
            let (Some(old), Some(new)) =
                (property(&old_input, &parameter.property), property(&new_input, &found.property))
            else {
                continue;
            };
            let is_written = |parameter: &HttpParameter, schema, definitions| {
                let is_scalar = is_scalar(&not_null(schema, definitions), parameter.location);
                (parameter.style, parameter.explode && !is_scalar)
            };
            if is_written(parameter, old, old_table) != is_written(found, new, new_table) {
                self.tell(Part::Request, &subject, &place, "it is written in another style now", true);
            }
            let may_hold = |schema, definitions| may_hold_reserved(&not_null(schema, definitions));
            if parameter.allow_reserved != found.allow_reserved
                && (may_hold(old, old_table) || may_hold(new, new_table))
            {
                self.tell(Part::Request, &subject, &place, "reserved characters are written in another way now", true);
            }
            self.schemas(Place::Parameter, old, new, &subject, &place);
        }
        for parameter in new_http.parameters.iter().filter(|new| !met.contains(&std::ptr::from_ref(*new))) {
            let (subject, place) = (subject(parameter), place(&parameter.property));
            let is_required = requires(&new_input, &parameter.property);
            let message = if is_required { "the parameter is new, and required" } else { "the parameter is new" };
            self.tell(Part::Request, &subject, &place, message, is_required);
        }
    }

    /// Tells whether a property of the input is required from now on, or not any more.
    fn demand(&mut self, old: &Value, new: &Value, old_name: &str, new_name: &str, subject: &str) {
        match (requires(old, old_name), requires(new, new_name)) {
            (false, true) => self.tell(Part::Request, subject, &place(old_name), "it is required now", true),
            (true, false) => self.tell(Part::Request, subject, &place(old_name), "it is not required any more", false),
            _ => {}
        }
    }

    fn bodies(&mut self, old: &OperationSpec, new: &OperationSpec, old_http: &HttpBinding, new_http: &HttpBinding) {
        let (old_input, new_input) = (value(&old.input), value(&new.input));
        let (old_first, new_first) = match (old_http.bodies.first(), new_http.bodies.first()) {
            (None, None) => return,
            (Some(old), None) => {
                return self.tell(Part::Request, "body", &place_of_body(old), "no body is taken any more", true);
            }
            (None, Some(new)) => {
                let is_required = new_http.requires_body(new, &new_input);
                let message = if is_required { "a body is taken now, and required" } else { "a body is taken now" };
                return self.tell(Part::Request, "body", &place_of_body(new), message, is_required);
            }
            (Some(old), Some(new)) => (old, new),
        };
        let at = place_of_body(old_first);
        if old_first.property != new_first.property {
            let message = match new_first.is_rest() {
                true => "its properties are properties of the input now".to_owned(),
                false => format!("it is called `{}` now", new_first.property),
            };
            self.tell(Part::Request, "body", &at, &message, true);
        }
        match (old_http.requires_body(old_first, &old_input), new_http.requires_body(new_first, &new_input)) {
            (false, true) => self.tell(Part::Request, "body", &at, "it is required now", true),
            (true, false) => self.tell(Part::Request, "body", &at, "it is not required any more", false),
            _ => {}
        }
        let schemas =
            old_http.schema_of_body(old_first, &old_input).zip(new_http.schema_of_body(new_first, &new_input));
        let (old_types, new_types) = (types_of(old_http), types_of(new_http));
        let own = schemas
            .as_ref()
            .map(|(old, new)| schemas_of((old, own_schemas(old, old_http)), (new, own_schemas(new, new_http))));
        let own_of = |old: usize, new: usize| {
            let (old_own, new_own) = own.as_ref()?;
            Some((*old_own.get(old)?, *new_own.get(new)?))
        };
        let mut pairs: Vec<(&HttpBody, (&Value, &Value))> = Vec::new();
        let found = counterparts(&old_types, &new_types);
        for ((at_old, body), found) in old_http.bodies.iter().enumerate().zip(found) {
            let is_range = |new: &HttpBody| covers(&new.content_type, &body.content_type);
            if let Some((at_new, new)) = found.and_then(|found| Some((found, new_http.bodies.get(found)?))) {
                self.both_bodies(body, new, own_of(at_old, at_new), &at);
                pairs.extend(own_of(at_old, at_new).map(|own| (body, own)));
            } else if let Some(at_new) = new_http.bodies.iter().position(is_range) {
                pairs.extend(own_of(at_old, at_new).map(|own| (body, own)));
            } else {
                let message = format!("`{}` is not taken any more", body.content_type);
                self.tell(Part::Request, "body", &at, &message, true);
            }
        }
        for body in new_http.bodies.iter() {
            if !old_http.bodies.iter().any(|old| essence(&old.content_type) == essence(&body.content_type)) {
                self.tell(Part::Request, "body", &at, &format!("`{}` is taken now", body.content_type), false);
            }
        }
        let Some((old_schema, new_schema)) = &schemas else { return };
        if pairs.is_empty() {
            return self.schemas(Place::Body, old_schema, new_schema, "body", &at);
        }
        let mut compared: HashSet<(*const Value, *const Value)> = HashSet::new();
        for (old, (old_own, new_own)) in pairs {
            if !compared.insert((std::ptr::from_ref(old_own), std::ptr::from_ref(new_own))) {
                continue;
            }
            let is_one_for_all = std::ptr::eq(old_own, old_schema) && std::ptr::eq(new_own, new_schema);
            let subject = if is_one_for_all { "body".to_owned() } else { format!("body as `{}`", old.content_type) };
            let all = old_schema.get("oneOf").and_then(Value::as_array);
            let number = all.and_then(|all| all.iter().position(|own| std::ptr::eq(own, old_own)));
            let place = number.map_or_else(|| at.clone(), |number| format!("{at}/oneOf/{number}"));
            self.schemas(Place::Body, old_own, new_own, &subject, &place);
        }
    }

    /// Compares a body of a content type with its new version.
    fn both_bodies(&mut self, old: &HttpBody, new: &HttpBody, own: Option<(&Value, &Value)>, at: &str) {
        if let Some((old_own, new_own)) = own {
            self.fields(old, new, old_own, new_own, at);
        }
        if old.fixed != new.fixed {
            self.tell(Part::Request, "body", at, "the operation sets other properties itself now", true);
        }
    }
}

/// The content types of the bodies, without a key.
fn types_of(http: &HttpBinding) -> Vec<((), &str)> {
    http.bodies.iter().map(|body| ((), &*body.content_type)).collect()
}

/// The schema for all content types, and the schema of each; `None` if it is unclear which schema a content type has.
pub(super) type Schemas<'v> = (&'v Value, Vec<Option<&'v Value>>);

/// The old and the new schema of each content type. If the schema of any content type is unclear on one side, the schema
/// for all is compared on both sides: one alternative and all alternatives are no versions of each other.
pub(super) fn schemas_of<'v>(
    (old, old_own): Schemas<'v>,
    (new, new_own): Schemas<'v>,
) -> (Vec<&'v Value>, Vec<&'v Value>) {
    let for_all = (vec![old; old_own.len()], vec![new; new_own.len()]);
    let known = |own: Vec<Option<&'v Value>>| own.into_iter().collect::<Option<Vec<_>>>();
    known(old_own).zip(known(new_own)).unwrap_or(for_all)
}

/// The schema of each body: the schema for all if the bodies share it. `None` in specs of older versions, which do not say
/// which alternative a body is.
fn own_schemas<'v>(schema: &'v Value, http: &HttpBinding) -> Vec<Option<&'v Value>> {
    let is_shared = http.bodies.len() < 2 || !schema.get("oneOf").is_some_and(Value::is_array);
    http.bodies.iter().map(|body| if is_shared { Some(schema) } else { body.alternative(schema) }).collect()
}

/// The places of the counterparts of content types among others with the same key: of an equal type, else of one with
/// other parameters, which is no counterpart yet if possible.
pub(super) fn counterparts<K: PartialEq>(types: &[(K, &str)], others: &[(K, &str)]) -> Vec<Option<usize>> {
    let is_equal =
        |one: &(K, &str), other: &(K, &str)| one.0 == other.0 && one.1.trim().eq_ignore_ascii_case(other.1.trim());
    let is_like = |one: &(K, &str), other: &(K, &str)| one.0 == other.0 && essence(one.1) == essence(other.1);
    let mut found: Vec<Option<usize>> =
        types.iter().map(|one| others.iter().position(|other| is_equal(one, other))).collect();
    let mut met: HashSet<usize> = found.iter().copied().flatten().collect();
    for (one, found) in types.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
        let like = || others.iter().enumerate().filter(|(_, other)| is_like(one, other)).map(|(at, _)| at);
        *found = like().find(|at| !met.contains(at)).or_else(|| like().next());
        met.extend(*found);
    }
    found
}

/// The description in the document: without one, it is the request.
fn description(spec: &OperationSpec) -> &str {
    let request = spec.http().map(|http| format!("{} {}", http.method, http.path));
    if request.is_some_and(|request| spec.description == request) { "" } else { &spec.description }
}

/// The path without the names of its parameters.
pub(super) fn blank(path: &str) -> String {
    let mut text = String::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        text.push_str("{}");
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    text + rest
}

/// The names of the parameters in a path.
fn names(path: &str) -> Vec<&str> {
    path.split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0)).collect()
}

/// True if both are the same parameter of a request.
fn is_same(old: &HttpParameter, new: &HttpParameter) -> bool {
    let name = match old.location {
        ParameterLocation::Header => old.name.eq_ignore_ascii_case(&new.name),
        _ => old.name == new.name,
    };
    name && old.location == new.location
}

pub(super) fn location(location: ParameterLocation) -> &'static str {
    match location {
        ParameterLocation::Path => "path",
        ParameterLocation::Query => "query",
        ParameterLocation::Header => "header",
        ParameterLocation::Cookie => "cookie",
        ParameterLocation::QueryString => "query string",
    }
}

fn subject(parameter: &HttpParameter) -> String {
    format!("{} parameter `{}`", location(parameter.location), parameter.name)
}

/// The place of a property of the input.
fn place(property: &str) -> String {
    format!("/input/properties/{}", pointer::escaped(property))
}

/// The place of a body: of a property of the input, or of the input itself.
fn place_of_body(body: &HttpBody) -> String {
    if body.is_rest() { "/input".to_owned() } else { place(&body.property) }
}

fn property<'v>(input: &'v Value, name: &str) -> Option<&'v Value> {
    input.get("properties")?.get(name)
}

fn requires(input: &Value, name: &str) -> bool {
    let names = input.get("required").and_then(Value::as_array);
    names.into_iter().flatten().any(|required| required == name)
}

/// True if a value that stands in one piece is written alike whether it is exploded or not.
pub(super) fn is_scalar(schema: &Value, location: ParameterLocation) -> bool {
    let kinds = ["string", "integer", "number", "boolean"];
    let is_plain = schema.get("type").and_then(Value::as_str).is_some_and(|kind| kinds.contains(&kind));
    is_plain && location != ParameterLocation::QueryString
}

/// True if the text of a value may have reserved characters. That of a number may: `1e+30`.
fn may_hold_reserved(schema: &Value) -> bool {
    schema.get("type").is_none_or(|kind| kind != "integer" && kind != "boolean")
}

/// True if a range of content types has another in it.
pub(super) fn covers(range: &str, content_type: &str) -> bool {
    match essence(range).split_once('/') {
        Some(("*", "*")) => true,
        Some((kind, "*")) => essence(content_type).split('/').next() == Some(kind),
        _ => false,
    }
}
