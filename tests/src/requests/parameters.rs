//! The parameters of an operation, read from the raw document.

use serde_json::{Value, json};

use super::document::{Document, Parameter, Place, Style, Version};
use super::media::Media;

/// Headers that a document may list and that are no parameters: other parts of it say what they hold (OpenAPI 3.1,
/// section 4.8.12.2), or the connection does (RFC 9110).
const NOT_PARAMETERS: &[&str] = &[
    "accept",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The path, with braces around parameters that stand in it as `:name`.
pub(super) fn with_braces(path: &str, nodes: &[&Value]) -> String {
    let is_parameter = |name: &str| nodes.iter().any(|node| node["in"] == "path" && node["name"] == name);
    let segment = |text: &str| match text.strip_prefix(':').filter(|name| is_parameter(name)) {
        Some(name) => format!("{{{name}}}"),
        None => text.to_owned(),
    };
    let path: Vec<String> = path.split('/').map(segment).collect();
    let path = path.join("/");
    if path.starts_with('/') { path } else { format!("/{path}") }
}

/// The names between the braces of a path, each once.
pub(super) fn names(path: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = path.split('#').next().unwrap_or_default();
    while let Some((name, after)) = rest.split_once('{').and_then(|(_, after)| after.split_once('}')) {
        if !names.contains(&name) {
            names.push(name);
        }
        rest = after;
    }
    names
}

/// The parameters that are sent: those of the path by the names that they have there, and then the others.
pub(super) fn read(document: &Document<'_>, path: &str, nodes: &[&Value]) -> Vec<Parameter> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let names = names(path);
    let in_query = self::names(query);
    let described: Vec<&str> =
        nodes.iter().filter(|node| node["in"] == "path").filter_map(|node| node["name"].as_str()).collect();
    let mut parameters = Vec::new();
    for name in &names {
        let is_named = |node: &&&Value| node["in"] == "path" && node["name"] == **name;
        // `{pet_id}` may be described as `petId`.
        let is_alike = |node: &&&Value| {
            let own = node["name"].as_str().unwrap_or_default();
            node["in"] == "path" && !described.contains(name) && !names.contains(&own) && folded(own) == folded(name)
        };
        let node = nodes.iter().find(is_named).or_else(|| nodes.iter().find(is_alike));
        let mut parameter = match node {
            Some(node) => parameter(document, node, Place::Path),
            None => plain(name),
        };
        parameter.name = (*name).to_owned();
        parameter.required = true;
        parameters.push(parameter);
    }
    for node in nodes {
        let name = node["name"].as_str().unwrap_or_default();
        let pair = query.split('&').find(|pair| pair.split('=').next() == Some(name));
        let place = match node["in"].as_str().unwrap_or_default() {
            // The path says what it is, or where it goes.
            "query" if pair.is_some_and(|pair| !pair.contains('{')) => continue,
            "query" if in_query.contains(&name) => Place::Template,
            "query" => Place::Query,
            "header" if is_token(name) && !NOT_PARAMETERS.contains(&name.to_lowercase().as_str()) => Place::Header,
            "cookie" => Place::Cookie,
            "querystring" => Place::QueryString,
            _ => continue,
        };
        parameters.push(parameter(document, node, place));
    }
    parameters
}

/// Whether a header may have this name (RFC 9110, section 5.6.2).
fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// A path parameter of which the document says nothing.
fn plain(name: &str) -> Parameter {
    let schema = json!({ "type": "string" });
    let (place, style) = (Place::Path, Style::Simple);
    Parameter { name: name.to_owned(), place, style, explode: false, is_open: false, required: true, schema }
}

/// A parameter, or a field of a form.
pub(super) fn parameter(document: &Document<'_>, node: &Value, place: Place) -> Parameter {
    let mut parameter = if document.version == Version::V20 {
        super::swagger::parameter(node, place)
    } else {
        let (style, explode, is_open) = written(node, place);
        let schema = node.get("schema").cloned().unwrap_or_else(|| json!({ "type": "string" }));
        Parameter { name: String::new(), place, style, explode, is_open, required: false, schema }
    };
    parameter.name = node["name"].as_str().unwrap_or_default().to_owned();
    parameter.required |= node["required"] == true;
    let contents = node["content"].as_object().into_iter().flatten();
    // Of several content types JSON is preferred; only the first may be text.
    let content = contents.clone().find(|(kind, _)| Media::of(kind) == Media::Json).or(contents.clone().next());
    if let Some((kind, content)) = content {
        let stays = match Media::of(kind) {
            Media::Text => true,
            Media::Form => place == Place::QueryString,
            _ => false,
        };
        if !stays {
            parameter.style = Style::Json;
        }
        parameter.schema = content.get("schema").cloned().unwrap_or_else(|| json!({ "type": "string" }));
    }
    parameter
}

/// How a value is written at a place: by `style`, `explode` and `allowReserved` of a node.
pub(super) fn written(node: &Value, place: Place) -> (Style, bool, bool) {
    let default = match place {
        Place::Path | Place::Header | Place::Template => Style::Simple,
        Place::Query | Place::Cookie | Place::QueryString => Style::Form,
    };
    let style = match (node["style"].as_str(), place) {
        (Some("label"), Place::Path) => Style::Label,
        (Some("matrix"), Place::Path) => Style::Matrix,
        (Some("spaceDelimited"), Place::Query) => Style::SpaceDelimited,
        (Some("pipeDelimited"), Place::Query) => Style::PipeDelimited,
        (Some("deepObject"), Place::Query) => Style::DeepObject,
        _ => default,
    };
    let explode = node["explode"].as_bool().unwrap_or(style == Style::Form) || style == Style::DeepObject;
    let is_raw = place == Place::Cookie && node["style"] == "cookie";
    (style, explode, node["allowReserved"] == true || is_raw)
}

fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
