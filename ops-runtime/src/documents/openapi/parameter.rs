//! Parameters: the place of each property of the input in the request.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value, json};

use super::document::Node;
use super::reader::{Names, Reader};
use super::short::short;
use super::version::Version;
use crate::model::binding::{is_reserved_header, is_token};
use crate::model::media::Media;
use crate::{HttpField, HttpParameter, ParameterLocation, ParameterStyle};

/// A parameter, and the property of the input that holds its value.
pub(super) struct Parameter {
    pub(super) http: HttpParameter,
    pub(super) schema: Value,
    pub(super) required: bool,
}

/// A parameter as an operation or its path declares it.
struct Declared<'a> {
    location: ParameterLocation,
    node: Node<'a>,
    /// The reference to it, if there is one.
    own: Node<'a>,
}

impl<'a> Reader<'a> {
    /// The parameters of an operation, those of its path included, in the order of the document.
    pub(super) fn parameters(&mut self, items: &[Node<'a>], operation: &Node<'a>, path: &str) -> Vec<Parameter> {
        let declared = self.declared_parameters(items, operation);
        let mut places = Places::new(path, &declared);
        let mut properties = Names::default();
        let mut placed = Vec::new();
        for Declared { location, node, own } in declared {
            let Some(name) = self.placed(&node, location, &mut places) else { continue };
            let mut parameter = self.parameter(&node, location);
            parameter.schema = self.described_beside(parameter.schema, &own);
            if location == ParameterLocation::Path {
                parameter.http.name = name.to_owned().into();
                parameter.http.property = parameter.http.name.clone();
            }
            placed.push((parameter, node, name, properties.take(name)));
        }
        let left: Vec<(&str, bool)> = places.templates.left().map(|name| (name, properties.take(name))).collect();
        // No name from the document depends on a made-up one.
        let mut parameters: Vec<Parameter> = Vec::new();
        for (mut parameter, node, name, is_new) in placed {
            if !is_new {
                let property = properties.allot(&format!("{name}_{}", location_name(parameter.http.location)));
                self.note(
                    &node,
                    format!("two parameters are called `{}`", short(name)),
                    format!("this one is `{}` in the input", short(&property)),
                );
                parameter.http.property = property.into();
            }
            parameters.push(parameter);
        }
        for (name, is_new) in left {
            let message = format!("the path parameter `{}` is not described", short(name));
            self.warn(operation, message, "it is taken to be text");
            let mut http = HttpParameter::owned(ParameterLocation::Path, name.to_owned());
            http.property = if is_new { name.to_owned() } else { properties.allot(&format!("{name}_path")) }.into();
            parameters.push(Parameter { http, schema: json!({ "type": "string" }), required: true });
        }
        parameters
    }

    /// The parameters that an operation and its path declare, each once.
    fn declared_parameters(&mut self, items: &[Node<'a>], operation: &Node<'a>) -> Vec<Declared<'a>> {
        let mut declared: Vec<Declared<'a>> = Vec::new();
        let mut known: HashMap<(ParameterLocation, String), usize> = HashMap::new();
        for place in items.iter().rev().chain([operation]) {
            let shared = declared.len();
            for own in self.list(place, "parameters") {
                let Some(node) = self.resolve(&own, "the parameter") else { continue };
                if self.is_of_body(&node) {
                    continue;
                }
                let Some(key) = self.parameter_key(&node) else { continue };
                match known.get(&key).copied() {
                    // An operation's own parameter replaces its path's.
                    Some(at) if at < shared => {
                        if let Some(slot) = declared.get_mut(at) {
                            (slot.node, slot.own) = (node, own);
                        }
                    }
                    Some(_) => {
                        self.warn(&node, format!("a second parameter `{}`", short(&key.1)), "the first was taken")
                    }
                    None => {
                        declared.push(Declared { location: key.0, node, own });
                        known.insert(key, declared.len() - 1);
                    }
                }
            }
        }
        declared
    }

    /// The name of a parameter, as the path has it. `None` if the parameter has no place there, and is left out.
    fn placed<'p>(&mut self, node: &Node<'a>, location: ParameterLocation, places: &mut Places<'p>) -> Option<&'p str>
    where
        'a: 'p,
    {
        let name = node.text("name").unwrap_or_default();
        match location {
            ParameterLocation::Query => {
                if places.pairs.get(name).is_some_and(|pair| !pair.contains('{')) {
                    self.note(node, format!("the path says what `{}` is", short(name)), "the parameter was left out");
                    return None;
                }
                if places.in_query.contains(name) && !places.described.contains(name) {
                    places.templates.take(name);
                }
                Some(name)
            }
            ParameterLocation::Path => {
                // `{pet_id}` that is described as `petId`, unless the path has that as well.
                let template = places.templates.take(name);
                let Some(template) = template.or_else(|| places.templates.take_alike(name)) else {
                    let message = format!("`{}` has no `{{{}}}`", short(places.path), short(name));
                    self.warn(node, message, "the parameter was left out");
                    return None;
                };
                if template != name {
                    let message =
                        format!("the path parameter `{}` is called `{}` in the path", short(name), short(template));
                    self.note(node, message, format!("it is `{}` in the input", short(template)));
                }
                Some(template)
            }
            _ => Some(name),
        }
    }

    /// The path with braces around the parameters that stand in it as `:name`.
    pub(super) fn with_braces(&mut self, items: &[Node<'a>], operation: &Node<'a>, path: String) -> String {
        if !path.contains("/:") {
            return path;
        }
        let parameters = items.iter().rev().chain([operation]).filter_map(|place| place.get("parameters"));
        let nodes = parameters.flat_map(|list| list.items().collect::<Vec<_>>());
        let nodes: Vec<_> = nodes.filter_map(|node| self.documents.resolve(node).ok()).collect();
        let in_path = nodes.iter().filter(|node| node.text("in") == Some("path"));
        let names: HashSet<&str> = in_path.filter_map(|node| node.text("name")).collect();
        let segment = |text: &str| match text.strip_prefix(':').filter(|name| names.contains(*name)) {
            Some(name) => format!("{{{name}}}"),
            None => text.to_owned(),
        };
        let read: Vec<String> = path.split('/').map(segment).collect();
        let read = read.join("/");
        if read != path {
            let message = format!("the path `{}` has parameters without braces", short(&path));
            self.warn(operation, message, format!("it was read as `{}`", short(&read)));
        }
        read
    }

    /// Identifies a parameter; `None` if it cannot be sent.
    fn parameter_key(&mut self, node: &Node<'a>) -> Option<(ParameterLocation, String)> {
        let Some(name) = node.text("name").filter(|name| !name.is_empty()) else {
            self.warn(node, "a parameter without `name`", "it was left out");
            return None;
        };
        let location = match node.text("in") {
            Some("path") => ParameterLocation::Path,
            Some("query") => ParameterLocation::Query,
            Some("header") => ParameterLocation::Header,
            Some("cookie") => ParameterLocation::Cookie,
            Some("querystring") => ParameterLocation::QueryString,
            other => {
                let message = format!("the parameter `{}` is in `{}`", short(name), short(other.unwrap_or_default()));
                self.warn(node, message, "it was left out: it should be in `path`, `query`, `header` or `cookie`");
                return None;
            }
        };
        if location != ParameterLocation::Header {
            return Some((location, name.to_owned()));
        }
        let name = name.to_ascii_lowercase();
        if is_reserved_header(&name) {
            let help = if name == "authorization" { "`with_auth` of the client sets it" } else { "the client sets it" };
            self.note(node, format!("the header `{}` is not a parameter", short(&name)), help);
            return None;
        }
        if !is_token(&name) {
            self.warn(node, format!("no header can be called `{}`", short(&name)), "the parameter was left out");
            return None;
        }
        Some((location, name))
    }

    /// A field of a form or a part of a multipart body, by its encoding object.
    pub(super) fn field(&mut self, name: &str, encoding: &Node<'a>, media: Media) -> HttpField {
        let mut field = HttpField::owned(name.to_owned());
        field.content_type = encoding.text("contentType").map(|text| text.trim().to_owned().into());
        if ["style", "explode", "allowReserved"].iter().any(|key| encoding.get(key).is_some()) {
            // Before 3.1, these are for `application/x-www-form-urlencoded` alone (3.0.3, section 4.7.15.1). Generators write
            // the default for every part; who writes another style, as Stripe does, means it.
            let is_default = matches!(encoding.text("style"), None | Some("form"));
            if is_default && media == Media::Multipart && self.version < Version::V31 {
                let message = format!("the part `{}` has a style, which is for forms of fields", short(name));
                self.note(encoding, message, "the part is written without it");
                return field;
            }
            let written = self.written(name, encoding, ParameterLocation::Query);
            field.style = Some((written.style, written.explode));
            field.allow_reserved = written.allow_reserved;
        }
        field
    }

    fn parameter(&mut self, node: &Node<'a>, location: ParameterLocation) -> Parameter {
        let mut http = self.written(node.text("name").unwrap_or_default(), node, location);
        let schema = match self.contents(node).into_iter().next() {
            Some(content) => {
                match (location, content.media) {
                    (_, Media::Json) => http.style = ParameterStyle::Json,
                    // Forms have the style that `written` gives; text that is no list is the same in any style.
                    (ParameterLocation::QueryString, Media::Form) | (_, Media::Text) => {}
                    _ => {
                        let message = format!("a parameter cannot be written as `{}`", short(content.content_type));
                        self.warn(&content.node, message, "it is written as JSON");
                        http.style = ParameterStyle::Json;
                    }
                }
                content.node.get("schema")
            }
            None => node.get("schema"),
        };
        let schema = match schema {
            Some(schema) => self.part(&schema),
            None if self.version == Version::V20 => self.swagger_value(node),
            None if http.style == ParameterStyle::Json => {
                self.note(node, "a parameter without a schema", "any value is accepted");
                Value::Bool(true)
            }
            None => {
                self.note(node, "a parameter without a schema", "it is taken to be text");
                json!({ "type": "string" })
            }
        };
        let given = node.get("schema").and_then(|schema| self.documents.resolve(schema).ok());
        let is_object = given.is_some_and(|schema| schema.text("type") == Some("object"));
        if location == ParameterLocation::Path && is_object && node.get("style").is_none() {
            let name = node.text("name").unwrap_or_default();
            self.note(
                node,
                format!("the path parameter `{}` is an object", short(name)),
                "it is written as `key,value,key,value`",
            );
        }
        let required = location == ParameterLocation::Path || node.is("required");
        Parameter { http, schema: described(schema, node), required }
    }

    /// How a value is written, by the members `style`, `explode` and `allowReserved` of a node.
    fn written(&mut self, name: &str, node: &Node<'a>, location: ParameterLocation) -> HttpParameter {
        let (default, styles) = styles(location);
        if self.version == Version::V20 {
            return self.swagger_written(name, node, location);
        }
        let style = match node.text("style") {
            None => default,
            // The syntax of cookies themselves: `name=value`, joined by `; `, nothing escaped (3.2, section 4.12.3).
            Some("cookie") if location == ParameterLocation::Cookie => ParameterStyle::Form,
            Some(name) => match styles.iter().find(|(known, _)| *known == name) {
                Some((_, style)) => *style,
                None => {
                    self.warn(
                        node,
                        format!("`{}` is not a style of such a parameter", short(name)),
                        "the default style was taken",
                    );
                    default
                }
            },
        };
        let explode = node.value.get("explode").and_then(Value::as_bool).unwrap_or(style == ParameterStyle::Form);
        let explode = explode || style == ParameterStyle::DeepObject;
        let mut http = HttpParameter::owned(location, name.to_owned()).with_style(style, explode);
        let is_raw = location == ParameterLocation::Cookie && node.text("style") == Some("cookie");
        // Before 3.2, it is only for queries (3.1, section 4.8.12.2.1). In a path, a slash would make another one.
        let may_be_raw = match location {
            ParameterLocation::Query => true,
            ParameterLocation::Cookie => self.version >= Version::V32,
            _ => false,
        };
        http.allow_reserved = may_be_raw && node.is("allowReserved") || is_raw;
        http
    }
}

impl Reader<'_> {
    /// The schema of something that stands behind a reference, with the description beside that: from 3.1 on, it goes before
    /// the other (section 4.8.23).
    pub(super) fn described_beside(&self, schema: Value, reference: &Node<'_>) -> Value {
        if self.version < Version::V31 || reference.text("$ref").is_none() {
            return schema;
        }
        described(schema, reference)
    }
}

/// The default style at a location, and all that are possible there.
fn styles(location: ParameterLocation) -> (ParameterStyle, &'static [(&'static str, ParameterStyle)]) {
    use ParameterStyle::{DeepObject, Form, Label, Matrix, PipeDelimited, Simple, SpaceDelimited};
    match location {
        ParameterLocation::Path => (Simple, &[("simple", Simple), ("label", Label), ("matrix", Matrix)]),
        ParameterLocation::Query => (
            Form,
            &[
                ("form", Form),
                ("spaceDelimited", SpaceDelimited),
                ("pipeDelimited", PipeDelimited),
                ("deepObject", DeepObject),
            ],
        ),
        ParameterLocation::Header => (Simple, &[("simple", Simple)]),
        ParameterLocation::Cookie | ParameterLocation::QueryString => (Form, &[("form", Form)]),
    }
}

fn location_name(location: ParameterLocation) -> &'static str {
    match location {
        ParameterLocation::Path => "path",
        ParameterLocation::Query => "query",
        ParameterLocation::Header => "header",
        ParameterLocation::Cookie => "cookie",
        ParameterLocation::QueryString => "querystring",
    }
}

/// The schema with the description of the node around it, which is more specific than its own.
pub(super) fn described(schema: Value, node: &Node<'_>) -> Value {
    let description = node.text("description").filter(|text| !text.trim().is_empty());
    let deprecated = node.is("deprecated");
    if description.is_none() && !deprecated {
        return schema;
    }
    let mut schema = match schema {
        Value::Object(schema) => schema,
        Value::Bool(true) => Map::new(),
        other => return other,
    };
    if let Some(text) = description {
        schema.insert("description".into(), text.into());
    }
    if deprecated {
        schema.insert("deprecated".into(), true.into());
    }
    Value::Object(schema)
}

/// The letters and digits of a name, to find names that differ in style only.
fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The places of parameters in a path.
struct Places<'p> {
    path: &'p str,
    /// The names of the parameters that are declared for the path.
    described: HashSet<&'p str>,
    templates: Templates<'p>,
    /// The names in the braces of the query that the path has.
    in_query: HashSet<&'p str>,
    /// The pairs of that query, by their names.
    pairs: HashMap<&'p str, &'p str>,
}

impl<'p> Places<'p> {
    fn new(path: &'p str, declared: &[Declared<'p>]) -> Self {
        let in_path = declared.iter().filter(|one| one.location == ParameterLocation::Path);
        let described: HashSet<&str> = in_path.filter_map(|one| one.node.text("name")).collect();
        let templates = Templates::new(path, &described);
        let query = path.split_once('?').map_or("", |(_, query)| query);
        let in_query = template_names(query).into_iter().collect();
        let mut pairs = HashMap::new();
        for pair in query.split('&') {
            pairs.entry(pair.split('=').next().unwrap_or_default()).or_insert(pair);
        }
        Self { path, described, templates, in_query, pairs }
    }
}

/// The names in the braces of a path that nothing describes yet.
struct Templates<'p> {
    names: Vec<Option<&'p str>>,
    by_name: HashMap<&'p str, usize>,
    /// Those without a description of the same name, by their letters and digits.
    by_fold: HashMap<String, VecDeque<usize>>,
}

impl<'p> Templates<'p> {
    fn new(path: &'p str, described: &HashSet<&str>) -> Self {
        let names = template_names(path);
        let mut templates = Self { names: Vec::new(), by_name: HashMap::new(), by_fold: HashMap::new() };
        for (at, name) in names.into_iter().enumerate() {
            templates.names.push(Some(name));
            templates.by_name.insert(name, at);
            if !described.contains(name) {
                templates.by_fold.entry(folded(name)).or_default().push_back(at);
            }
        }
        templates
    }

    /// Takes the one of this name.
    fn take(&mut self, name: &str) -> Option<&'p str> {
        let at = *self.by_name.get(name)?;
        self.names.get_mut(at)?.take()
    }

    /// Takes the first that differs from this name in style only.
    fn take_alike(&mut self, name: &str) -> Option<&'p str> {
        let alike = self.by_fold.get_mut(&folded(name))?;
        while let Some(at) = alike.pop_front() {
            if let Some(template) = self.names.get_mut(at).and_then(Option::take) {
                return Some(template);
            }
        }
        None
    }

    fn left(self) -> impl Iterator<Item = &'p str> {
        self.names.into_iter().flatten()
    }
}

/// The names in the braces of a path, each once.
pub(super) fn template_names(path: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut known = HashSet::new();
    let mut rest = path;
    while let Some((_, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        if known.insert(name) {
            names.push(name);
        }
        rest = after;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_templates() {
        assert_eq!(template_names("/a/{b}/{c}.{d}/{b}"), ["b", "c", "d"]);
        assert_eq!(template_names("/a/{b"), [""; 0]);
    }
}
