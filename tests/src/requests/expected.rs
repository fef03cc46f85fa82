//! What a request must hold, computed from the raw document and the values that were made for it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ops_runtime::binding::{HttpBinding, ParameterLocation};
use ops_runtime::spec::{OperationKind, OperationSpec};
use serde_json::{Map, Value, json};

use super::document::{Content, Document, Operation, Parameter, Place, is_same};
use super::form::{form, make_whole, parts, query_string};
use super::media::{Media, essence};
use super::style::{self, Byte, Text};
use super::switch::{Switch, switch, switch_schema, without};
use super::value::Made;
use super::{schema, value};
use crate::sample::Extent;

/// What must arrive.
#[derive(Debug, Clone, Default)]
pub(super) struct Expected {
    pub(super) method: String,
    pub(super) path: Vec<Byte>,
    pub(super) query: Vec<Text>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) cookies: Vec<Text>,
    /// The content types that are accepted.
    pub(super) accept: Vec<String>,
    pub(super) body: Option<Body>,
}

/// A body that must arrive, under its content type.
#[derive(Debug, Clone)]
pub(super) struct Body {
    pub(super) content_type: String,
    pub(super) holds: Holds,
}

/// What a body holds.
#[derive(Debug, Clone)]
pub(super) enum Holds {
    Json(Value),
    Form(Vec<Text>),
    Parts(Vec<Part>),
    Text(String),
    /// JSON texts, each on a line.
    Lines(Vec<Value>),
    Bytes(Vec<u8>),
}

/// A part of a multipart body.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    pub(super) name: Option<String>,
    /// True if it has the name of a file.
    pub(super) is_file: bool,
    /// `None` if that goes without saying.
    pub(super) content_type: Option<String>,
    pub(super) content: PartContent,
}

/// What a part holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PartContent {
    Json(Value),
    Bytes(Vec<u8>),
}

/// An input, and the request that it must become.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) input: Value,
    pub(super) expected: Expected,
    /// What the operation's input has no place for: each a place and a problem.
    pub(super) problems: Vec<(String, String)>,
    /// True if every value fits its schema to the letter; where parts of a schema contradict each other, none does.
    pub(super) fits: bool,
}

/// Makes an input of some extent, and what must be sent for it.
pub(super) fn sample(document: &Document<'_>, operation: &Operation, spec: &OperationSpec, extent: Extent) -> Sample {
    let fallback = HttpBinding::new("", "");
    let binding = spec.http().unwrap_or(&fallback);
    let is_stream = spec.kind == OperationKind::Subscription;
    let switch = switch(document, operation);
    let mut maker = Maker {
        document,
        operation,
        binding,
        extent,
        is_stream,
        switch,
        input: Map::new(),
        problems: Vec::new(),
        fits: true,
    };
    let mut expected = Expected {
        method: operation.method.clone(),
        accept: if is_stream { &operation.streams } else { &operation.plain }.clone(),
        ..Expected::default()
    };
    let values = maker.parameters(&mut expected);
    maker.target(&values, &mut expected);
    expected.body = maker.body();
    let Maker { input, problems, fits, .. } = maker;
    Sample { input: Value::Object(input), expected, problems, fits }
}

struct Maker<'a> {
    document: &'a Document<'a>,
    operation: &'a Operation,
    binding: &'a HttpBinding,
    extent: Extent,
    is_stream: bool,
    switch: Switch,
    input: Map<String, Value>,
    problems: Vec<(String, String)>,
    fits: bool,
}

impl<'a> Maker<'a> {
    /// Makes a value for each parameter; gives those of the path.
    fn parameters(&mut self, expected: &mut Expected) -> Vec<(&'a Parameter, Value)> {
        let mut in_path = Vec::new();
        let operation = self.operation;
        for parameter in &operation.parameters {
            if parameter.place == Place::Query && self.switch == Switch::Query(parameter.name.clone()) {
                if let Some(value) = self.switched(&parameter.schema, parameter.required) {
                    expected.query.extend(style::pieces(parameter, &value));
                }
                continue;
            }
            if !parameter.required && self.extent == Extent::Required {
                continue;
            }
            let place = format!("{} parameter `{}`", place_name(parameter.place), parameter.name);
            let Some(property) = property(self.binding, parameter) else {
                self.problems.push((place, "the operation's input has no property for it".to_owned()));
                continue;
            };
            let Made { value, fits } = value::of_parameter(self.document, parameter, self.extent);
            if !fits && !parameter.required {
                // No value fits, so that nobody can set it.
                continue;
            }
            self.fits &= fits;
            self.input.insert(property, value.clone());
            match parameter.place {
                Place::Path | Place::Template => in_path.push((parameter, value)),
                Place::Query => expected.query.extend(style::pieces(parameter, &value)),
                Place::QueryString => expected.query.extend(query_string(parameter, &value)),
                Place::Cookie => expected.cookies.extend(style::pieces(parameter, &value)),
                Place::Header => {
                    let pieces = style::pieces(parameter, &value);
                    let text = pieces.iter().map(Text::plain).collect::<Vec<_>>().join(",");
                    if pieces.is_empty() {
                        continue;
                    }
                    if parameter.name.eq_ignore_ascii_case("cookie") {
                        let pairs = text.split("; ");
                        let pairs = pairs.map(|pair| Text::Bytes(pair.bytes().map(Byte::Either).collect()));
                        expected.cookies.extend(pairs);
                    } else {
                        expected.headers.push((parameter.name.to_lowercase(), text));
                    }
                }
            }
        }
        in_path
    }

    /// The path, and the query that stands in the template itself.
    fn target(&self, values: &[(&Parameter, Value)], expected: &mut Expected) {
        let template = self.operation.path.split('#').next().unwrap_or_default();
        let (path, query) = template.split_once('?').map_or((template, None), |(path, query)| (path, Some(query)));
        expected.path = filled(path, values);
        let pairs = query.into_iter().flat_map(|query| query.split('&')).filter(|pair| !pair.is_empty());
        // A pair goes with the value of its parameter.
        let has_values = |pair: &&str| {
            super::parameters::names(pair).iter().all(|name| values.iter().any(|(p, _)| p.name == **name))
        };
        let pairs = pairs.filter(has_values);
        let fixed: Vec<Text> = pairs.map(|pair| Text::Bytes(filled(pair, values))).collect();
        expected.query.splice(0..0, fixed);
    }

    fn body(&mut self) -> Option<Body> {
        let operation = self.operation;
        let switch = match &self.switch {
            Switch::Body(name) => Some(name.clone()),
            _ => None,
        };
        let is_given = operation.body_required || self.extent == Extent::Everything;
        if operation.contents.is_empty() || (!is_given && switch.is_none()) {
            return None;
        }
        // Which of several content types is sent is for the binding to say.
        let Some(chosen) = self.binding.bodies.first() else {
            self.problems.push(("body".to_owned(), "the operation has none".to_owned()));
            return None;
        };
        let exact = operation.contents.iter().find(|content| content.content_type == chosen.content_type);
        let content =
            exact.or_else(|| operation.contents.iter().find(|c| is_same(&c.content_type, &chosen.content_type)));
        let content = content.or(operation.contents.first())?;
        let mut described = content.clone();
        if let Some(name) = &switch {
            described.schema = without(self.document, &content.schema, name, 8);
        }
        let media = Media::of(&content.content_type);
        if matches!(media, Media::Form | Media::Multipart) {
            described.schema = value::form(self.document, described.schema, media);
        }
        let is_lines = matches!(media, Media::Lines | Media::Sequence);
        let lines = if is_lines { value::lines(self.document, &content.schema) } else { None };
        let nameless = if media == Media::Multipart { value::nameless(self.document, content) } else { None };
        let mut made = match media {
            _ if lines.is_some() => {
                value::of_body(self.document, lines.as_ref().unwrap_or(&Value::Null), media, self.extent)
            }
            _ if nameless.is_some() => value::of_body(
                self.document,
                &nameless.as_ref().map(|(_, s)| s.clone()).unwrap_or_default(),
                media,
                self.extent,
            ),
            Media::Json | Media::Form | Media::Multipart => {
                value::of_body(self.document, &described.schema, media, self.extent)
            }
            Media::Bytes => Made { value: json!(STANDARD.encode(value::BYTES)), fits: true },
            Media::Text | Media::Events | Media::Lines | Media::Sequence => {
                Made { value: json!(value::TEXT), fits: true }
            }
        };
        if matches!(media, Media::Form | Media::Multipart) {
            make_whole(self.document, content, &described.schema, media, &mut made);
        }
        let Made { value, fits } = made;
        self.fits &= fits || !is_given;
        let concrete = concrete(&content.content_type, media);
        if is_given {
            self.input.insert(chosen.property.clone().into_owned(), value.clone());
            if let Some(property) = self.binding.content_type.as_deref().filter(|_| self.extent == Extent::Everything) {
                self.input.insert(property.to_owned(), json!(concrete));
            }
        }
        let mut sent = value;
        if let Some(name) = &switch
            && let Some(members) = sent.as_object_mut()
            && let Some((schema, is_required)) = switch_schema(self.document, &content.schema, name, 8)
            && let Some(value) = self.switched(&schema, is_required)
        {
            members.insert(name.clone(), value);
        }
        if !is_given && sent.as_object().is_none_or(Map::is_empty) {
            return None;
        }
        let holds = match media {
            _ if lines.is_some() => Holds::Lines(sent.as_array().cloned().unwrap_or_else(|| vec![sent.clone()])),
            _ if nameless.is_some() => {
                let name = nameless.map(|(name, _)| name).unwrap_or_default();
                let whole = json!({ "type": "object", "properties": { &name: content.schema } });
                let named = Content { schema: whole, ..content.clone() };
                Holds::Parts(parts(self.document, &named, &json!({ name: sent })))
            }
            Media::Json => Holds::Json(sent),
            Media::Form => Holds::Form(form(content, &sent)),
            Media::Multipart => Holds::Parts(parts(self.document, content, &sent)),
            Media::Bytes => Holds::Bytes(value::BYTES.to_vec()),
            _ => Holds::Text(value::TEXT.to_owned()),
        };
        Some(Body { content_type: concrete, holds })
    }

    /// What the operation itself says by the switch; `None` if it leaves it out.
    fn switched(&self, schema: &Value, is_required: bool) -> Option<Value> {
        let by_default = schema::any(self.document, schema, 8, &|part| part["default"] == true);
        match (self.is_stream, by_default || is_required) {
            (true, _) => Some(json!(true)),
            (false, true) => Some(json!(false)),
            (false, false) => None,
        }
    }
}

/// The property of the input that holds a parameter: where names clash, only the reader knows it.
pub(super) fn property(binding: &HttpBinding, parameter: &Parameter) -> Option<String> {
    let location = match parameter.place {
        Place::Path => ParameterLocation::Path,
        Place::Query | Place::Template => ParameterLocation::Query,
        Place::Header => ParameterLocation::Header,
        Place::Cookie => ParameterLocation::Cookie,
        Place::QueryString => ParameterLocation::QueryString,
    };
    let is_named = |name: &str| match parameter.place {
        Place::Header => name.eq_ignore_ascii_case(&parameter.name),
        _ => name == parameter.name,
    };
    let found = binding.parameters.iter().find(|own| own.location == location && is_named(&own.name));
    found.map(|found| found.property.clone().into_owned())
}

pub(super) fn place_name(place: Place) -> &'static str {
    match place {
        Place::Path => "path",
        Place::Query | Place::Template => "query",
        Place::Header => "header",
        Place::Cookie => "cookie",
        Place::QueryString => "querystring",
    }
}

/// A template with its values.
fn filled(template: &str, values: &[(&Parameter, Value)]) -> Vec<Byte> {
    let literal = |text: &str| {
        let bytes = style::unescaped(text.as_bytes());
        bytes.into_iter().map(|b| if b"/,;=&".contains(&b) { Byte::Delimiter(b) } else { Byte::Either(b) }).collect()
    };
    let mut text: Vec<Byte> = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        text.extend::<Vec<Byte>>(literal(before));
        if let Some((parameter, value)) = values.iter().find(|(parameter, _)| parameter.name == name) {
            text.extend(style::path(parameter, value));
        }
        rest = after;
    }
    text.extend::<Vec<Byte>>(literal(rest));
    text
}

/// The content type that is sent for one that the document may have as a range.
fn concrete(content_type: &str, media: Media) -> String {
    match essence(content_type).as_str() {
        "*/*" | "application/*" => "application/json".to_owned(),
        "text/*" => "text/plain".to_owned(),
        range if range.ends_with("/*") && media == Media::Bytes => "application/octet-stream".to_owned(),
        _ => content_type.to_owned(),
    }
}
