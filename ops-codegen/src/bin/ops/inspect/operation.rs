//! One operation in full.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use ops_codegen::Module;
use ops_codegen::described::{Described, describe};
use ops_runtime::binding::{HttpBinding, ParameterLocation, SecurityKind, SecurityScheme, StatusRange};
use ops_runtime::spec::{Api, OperationSpec, pointer};
use serde_json::{Value, json};

use super::example;
use crate::arguments::InspectArguments;
use crate::failure::Failure;
use crate::find::find;
use crate::input::{parts, unconditional, views};
use crate::report::{self, clean, line};
use crate::summary;

/// How many characters of a text for people are shown.
const LONGEST: usize = 1_000;

/// How many values of an enum, and how many properties of a body, are shown to people.
const MOST: usize = 50;

/// A property of the input, or of the body in it.
struct Property {
    /// The name, as `ops call` takes it: `petId`, `body.name`.
    name: String,
    /// Its place in the request.
    place: String,
    /// The schema in a few words.
    words: String,
    /// The type in Rust, if the property is a field of the input.
    rust: Option<String>,
    required: bool,
    /// The values that it may have, if they are listed.
    values: Vec<Value>,
    default: Option<Value>,
    docs: String,
}

/// The operation as text or JSON.
pub(super) fn show(
    modules: &[Module],
    wanted: &str,
    document: Option<&str>,
    arguments: &InspectArguments,
) -> Result<String, Failure> {
    let specs: Vec<&OperationSpec> = modules.iter().flat_map(|module| &module.operations).collect();
    let spec = find(&specs, wanted, document)?;
    let module = modules.iter().find(|module| module.operations.iter().any(|other| other.id == spec.id));
    let operations = module.map(|module| module.operations.clone()).unwrap_or_default();
    let described = describe(&Api::new(spec.definitions.clone(), operations));
    let input = spec.input.self_contained(&spec.definitions);
    let input = input.map_err(|error| Failure::Failed(format!("the input's schema is not JSON: {error}")))?;
    let properties = properties(spec, &input, &described);
    let names = described.operations.get(spec.id.as_ref());
    let rust = names.map(|names| names.example.clone()).unwrap_or_default();
    let shell = example::shell(spec, modules, arguments);
    let shell = shell.as_deref();
    Ok(if arguments.json {
        let value = json_of(spec, &properties, &described, &rust, shell);
        crate::report::json(&format!("{value:#}\n")).into_owned()
    } else {
        text_of(spec, &properties, &described, &rust, shell)
    })
}

/// The properties of the input; behind a body, those of the body.
fn properties(spec: &OperationSpec, input: &Value, described: &Described) -> Vec<Property> {
    let at = format!("/operations/{}/input", pointer::escaped(&spec.id));
    let fields = described.types.get(&at).map(|type_| type_.fields.as_slice()).unwrap_or_default();
    let mut found = Vec::new();
    let required = required(input, input);
    for (name, schema) in input.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let field = fields.iter().find(|field| field.json == *name);
        let place = spec.http().map_or_else(|| "input".to_owned(), |http| place(http, name));
        let is_body = place.starts_with("body");
        let mut property = property(name.clone(), place, schema, input, required.contains(name.as_str()));
        property.rust = field.map(|field| match field.is_optional {
            true => format!("Option<{}>", field.type_),
            false => field.type_.clone(),
        });
        found.push(property);
        if is_body {
            found.extend(of_body(name, schema, input));
        }
    }
    found
}

/// The properties of a body, those that are required first.
fn of_body(name: &str, schema: &Value, root: &Value) -> Vec<Property> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    let required = required(schema, root);
    // The views behind them hold under conditions: what these require is optional.
    let unconditional = unconditional(schema, root).len();
    for (at, view) in views(vec![schema], root).into_iter().enumerate() {
        for (inner, schema) in view.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let is_sent = schema.get("readOnly") != Some(&Value::Bool(true));
            if is_sent && seen.insert(inner) {
                let is_required = required.contains(inner.as_str()) || at < unconditional && requires(view, inner);
                found.push(property(format!("{name}.{inner}"), String::new(), schema, root, is_required));
            }
        }
    }
    found.sort_by_key(|property| !property.required);
    found
}

/// The properties that a schema requires, whichever of its parts says so.
fn required<'a>(schema: &'a Value, root: &'a Value) -> BTreeSet<&'a str> {
    parts(schema, root).into_iter().flat_map(names_required).collect()
}

fn requires(schema: &Value, name: &str) -> bool {
    names_required(schema).any(|required| required == name)
}

fn names_required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn property(name: String, place: String, schema: &Value, root: &Value, required: bool) -> Property {
    let views = views(vec![schema], root);
    let text = |key: &str| views.iter().find_map(|view| view.get(key).and_then(Value::as_str));
    let listed = |view: &&Value| match (view.get("enum"), view.get("const")) {
        (Some(Value::Array(values)), _) => values.clone(),
        (_, Some(value)) => vec![value.clone()],
        _ => Vec::new(),
    };
    let values: Vec<Value> = views.iter().flat_map(listed).collect();
    Property {
        name,
        place,
        words: summary::words(schema, 2),
        rust: None,
        required,
        values,
        default: views.iter().find_map(|view| view.get("default").cloned()),
        docs: schema
            .get("description")
            .and_then(Value::as_str)
            .or(text("description"))
            .unwrap_or_default()
            .trim()
            .to_owned(),
    }
}

fn place(http: &HttpBinding, property: &str) -> String {
    if let Some(parameter) = http.parameters.iter().find(|parameter| parameter.property == property) {
        let location = location(parameter.location);
        return if parameter.name == property {
            location.to_owned()
        } else {
            format!("{location} `{}`", parameter.name)
        };
    }
    if http.content_type.as_deref() == Some(property) {
        return "content type of the body".to_owned();
    }
    let types: Vec<&str> = http.bodies.iter().map(|body| body.content_type.as_ref()).collect();
    format!("body ({})", types.join(", "))
}

fn location(location: ParameterLocation) -> &'static str {
    match location {
        ParameterLocation::Path => "path",
        ParameterLocation::Query => "query",
        ParameterLocation::Header => "header",
        ParameterLocation::Cookie => "cookie",
        _ => "query string",
    }
}

fn cut(text: &str) -> String {
    report::cut(text.trim(), LONGEST)
}

/// The ways to authenticate, each with its schemes.
fn ways(spec: &OperationSpec) -> Vec<String> {
    let scheme = |scheme: &SecurityScheme| {
        let kind = match &scheme.kind {
            SecurityKind::Basic => "basic".to_owned(),
            SecurityKind::Bearer => "bearer".to_owned(),
            SecurityKind::ApiKey { location: at, name } => format!("{} `{name}`", location(*at)),
            SecurityKind::OAuth2 { .. } => "OAuth 2".to_owned(),
            SecurityKind::OpenIdConnect { .. } => "OpenID Connect".to_owned(),
            SecurityKind::Other(other) => other.to_string(),
            _ => "other".to_owned(),
        };
        let scopes: Vec<&str> = scheme.scopes.iter().map(AsRef::as_ref).collect();
        let scopes = if scopes.is_empty() { String::new() } else { format!(" for {}", scopes.join(", ")) };
        format!("{} ({kind}){scopes}", scheme.name)
    };
    let way = |schemes: &[SecurityScheme]| match schemes {
        [] => "no credentials".to_owned(),
        schemes => schemes.iter().map(scheme).collect::<Vec<_>>().join(" with "),
    };
    spec.http().map(|http| http.security.iter().map(|one| way(&one.schemes)).collect()).unwrap_or_default()
}

/// The described responses: status, content type, and true for a success.
fn responses(spec: &OperationSpec) -> Vec<(String, String, bool)> {
    let Some(http) = spec.http() else { return Vec::new() };
    let by_default = !http.responses.iter().any(|response| response.status.is_success());
    let of = |response: &ops_runtime::binding::HttpResponse| {
        let status = match response.status {
            StatusRange::Exact(status) => status.to_string(),
            StatusRange::Class(class) => format!("{class}XX"),
            _ => "default".to_owned(),
        };
        let succeeds = response.status.is_success() || by_default && response.status == StatusRange::Default;
        (status, response.content_type.as_deref().unwrap_or("no body").to_owned(), succeeds)
    };
    http.responses.iter().map(of).collect()
}

fn text_of(
    spec: &OperationSpec,
    properties: &[Property],
    described: &Described,
    rust: &str,
    shell: Option<&str>,
) -> String {
    let mut text = String::new();
    // Writing to a text does not fail.
    let mut add = |indent: usize, words: &str| _ = writeln!(text, "{:indent$}{}", "", line(words));
    let request = match (spec.http(), spec.mcp()) {
        (Some(http), _) => format!("{} {}", http.method, http.path),
        (_, Some(tool)) => format!("tool {}", tool.tool),
        _ => String::new(),
    };
    let old = if spec.deprecated { ", deprecated" } else { "" };
    add(0, format!("{}: {}{old}  {request}", spec.id, summary::kind(spec)).trim_end());
    if let Some(server) = spec.http().and_then(|http| http.server.as_deref()) {
        add(0, &format!("at {server}"));
    }
    for words in cut(&spec.description).lines() {
        add(2, words);
    }
    let names = described.operations.get(spec.id.as_ref());
    add(0, &format!("Input: {}", names.map_or("any", |names| names.input.as_str())));
    // A property of the input, and those of the body that it is.
    for group in properties.chunk_by(|_, next| next.place.is_empty()) {
        let lines = group.iter().take(MOST + 1).flat_map(lines_of);
        lines.for_each(|(indent, words)| add(indent, &words));
        if group.len() > MOST + 1 {
            add(4, &format!("and {} more: `--json` shows all", group.len() - MOST - 1));
        }
    }
    let output = names.map_or("any", |names| names.output.as_str());
    add(0, &format!("Output: {output} ({})", summary::short(&summary::output(spec))));
    let responses = responses(spec);
    for (status, content, _) in responses.iter().filter(|(_, _, succeeds)| *succeeds) {
        add(2, &format!("{status}: {content}"));
    }
    let failures: Vec<_> = responses.iter().filter(|(_, _, succeeds)| !succeeds).collect();
    if !failures.is_empty() || !spec.errors.is_empty() {
        add(0, "Errors:");
    }
    for (status, content, _) in failures {
        let error = spec.errors.iter().find(|error| code(status) == error.code);
        let words = error.and_then(|error| error.schema.to_value().ok()).map(|schema| summary::words(&schema, 1));
        let body = words.map(|words| format!(", {words}")).unwrap_or_default();
        let docs = error.map(|error| cut(&error.description)).filter(|docs| !docs.is_empty());
        let docs = docs.map(|docs| format!(": {docs}")).unwrap_or_default();
        add(2, &format!("{status}: {content}{body}{docs}"));
    }
    if spec.http().is_none() {
        for error in spec.errors.iter() {
            add(2, &format!("{}: {}", error.code, cut(&error.description)));
        }
    }
    let ways = ways(spec);
    if !ways.is_empty() {
        add(0, &format!("Security: {}", ways.join(" or ")));
    }
    add(0, "In Rust:");
    rust.lines().for_each(|words| text_line(&mut text, words));
    if let Some(shell) = shell {
        text.push_str("In a shell:\n");
        text_line(&mut text, shell);
    }
    text
}

/// A property as lines, each with its indent.
fn lines_of(property: &Property) -> Vec<(usize, String)> {
    let indent = if property.place.is_empty() { 4 } else { 2 };
    let mut parts = vec![cut(&property.words)];
    parts.extend(property.rust.iter().map(|rust| format!("`{rust}` in Rust")));
    parts.push(if property.required { "required".to_owned() } else { "optional".to_owned() });
    parts.extend(property.default.iter().map(|value| format!("default {value}")));
    if !property.values.is_empty() {
        let values: Vec<String> = property.values.iter().take(MOST).map(ToString::to_string).collect();
        let more = property.values.len().saturating_sub(MOST);
        let more = if more > 0 { format!(" and {more} more: `--json` shows all") } else { String::new() };
        parts.push(format!("one of {}{more}", values.join(" ")));
    }
    let place = if property.place.is_empty() { String::new() } else { format!(" in {}", property.place) };
    let docs = cut(&property.docs);
    let docs = docs.lines().map(|words| (indent + 4, words.to_owned()));
    std::iter::once((indent, format!("{}{place}: {}", property.name, parts.join(", ")))).chain(docs).collect()
}

fn text_line(text: &mut String, words: &str) {
    _ = writeln!(text, "  {}", clean(words));
}

/// The code of the error for a status.
fn code(status: &str) -> String {
    if status == "default" { "HTTP_ERROR".to_owned() } else { format!("HTTP_{status}") }
}

fn json_of(
    spec: &OperationSpec,
    properties: &[Property],
    described: &Described,
    rust: &str,
    shell: Option<&str>,
) -> Value {
    let names = described.operations.get(spec.id.as_ref());
    let property = |property: &Property| {
        json!({
            "name": property.name,
            "place": property.place,
            "type": property.words,
            "rust": property.rust,
            "required": property.required,
            "values": property.values,
            "default": property.default,
            "description": property.docs,
        })
    };
    let response = |(status, content, succeeds): (String, String, bool)| {
        let error = spec.errors.iter().find(|error| !succeeds && code(&status) == error.code);
        let schema = error.and_then(|error| error.schema.to_value().ok());
        json!({
            "status": status,
            "contentType": content,
            "succeeds": succeeds,
            "type": schema.map(|schema| summary::words(&schema, 1)),
            "description": error.map(|error| error.description.as_ref()),
        })
    };
    json!({
        "id": spec.id,
        "kind": summary::kind(spec),
        "method": spec.http().map(|http| &http.method),
        "path": spec.http().map(|http| &http.path),
        "server": spec.http().map(|http| &http.server),
        "tool": spec.mcp().map(|mcp| &mcp.tool),
        "title": spec.title,
        "description": spec.description,
        "tags": spec.tags,
        "deprecated": spec.deprecated,
        "input": { "rust": names.map(|names| &names.input), "properties": properties.iter().map(property).collect::<Vec<_>>() },
        "output": { "rust": names.map(|names| &names.output), "type": summary::output(spec) },
        "responses": responses(spec).into_iter().map(response).collect::<Vec<_>>(),
        "security": ways(spec),
        "example": { "rust": rust, "shell": shell },
    })
}
