//! Places the parameters of a fn in an HTTP request, by their names and by `#[input(header = ..)]` and the like.

use syn::{Expr, Ident};

use crate::arguments::{Arguments, Http};
use crate::errors::Errors;
use crate::model::{Binding, Body, DefaultValue, Field, Input, Location, Placed};
use crate::types;

/// Headers that the runtime sets itself, so that no parameter can be one.
const RESERVED: [&str; 14] = [
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

/// The binding of an operation; nothing if it has none, or a mistake.
pub(crate) fn bind(arguments: &Arguments, input: &mut Input, errors: &mut Errors) -> Option<Binding> {
    let http = arguments.http.as_ref();
    match input {
        Input::Fields(_, fields) => {
            let Some(http) = http else {
                for place in fields.iter().filter_map(|field| field.place.as_ref()) {
                    errors.span(place.span, "this is a place in an HTTP request: `#[operation]` needs `http = \"..\"`");
                }
                return None;
            };
            Some(of_fields(http, fields, errors))
        }
        Input::Whole(ty) => {
            let http = http?;
            if types::is_no_object(ty) {
                let message = "the input of an HTTP request is an object, which this is not: take a struct, which may have no \
                    fields, or the value as a parameter without `#[input]`";
                errors.tokens(ty, message);
            } else if !http.names.is_empty() || !http.has_body() {
                let message = "the fields of a whole input have no names here that could stand in a path or a query: \
                    take them as parameters, or make the request a POST, PUT or PATCH whose body is the input";
                errors.span(http.span, message);
            }
            Some(Binding { parameters: Vec::new(), body: Some(Body::Rest(Vec::new())) })
        }
    }
}

fn of_fields(http: &Http, fields: &mut [Field], errors: &mut Errors) -> Binding {
    let properties: Vec<String> = fields.iter().filter_map(Field::property).collect();
    for name in http.names.iter().filter(|name| !properties.contains(name)) {
        let known: Vec<String> = properties.iter().map(|name| format!("`{name}`")).collect();
        let known = if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
        errors.span(http.span, format!("`{{{name}}}` is no parameter of the fn: {known}"));
    }
    let mut binding = Binding { parameters: Vec::new(), body: None };
    let mut rest: Vec<&mut Field> = Vec::new();
    for field in fields {
        let Some(property) = field.property() else { continue };
        let in_path = http.names.contains(&property);
        match (in_path, field.place.take()) {
            (true, Some(placed)) => errors.span(placed.span, format!("`{{{property}}}` is in the path already")),
            (true, None) => {
                if types::arguments_of(&field.ty, "Option").is_some() {
                    errors.tokens(&field.ty, "what stands in the path is in every request: it cannot be an `Option`");
                }
                let name = Some((property.clone(), field.ident.span()));
                let placed = Placed { location: Location::Path, name, span: field.ident.span() };
                place(placed, field, &property, &mut binding, errors);
            }
            (false, Some(placed)) => {
                left_out_if_empty(field);
                place(placed, field, &property, &mut binding, errors);
            }
            (false, None) => rest.push(field),
        }
    }
    // A flattened one is no value of its own: its properties are among those of the body.
    let is_body = |field: &Field| field.property().is_some_and(|property| property == "body") && !field.is_flat();
    let named_body = http.has_body() && rest.iter().any(|field| is_body(field));
    if http.has_body() && !named_body {
        binding.body = body(&rest);
        return binding;
    }
    for field in rest {
        let Some(property) = field.property() else { continue };
        if named_body && is_body(field) {
            binding.body = Some(Body::Property(property, Box::new(field.ty.clone())));
            continue;
        }
        left_out_if_empty(field);
        let placed = Placed { location: Location::Query, name: None, span: field.ident.span() };
        place(placed, field, &property, &mut binding, errors);
    }
    binding
}

/// The body of what has no other place: the value of the only parameter, or an object of all.
fn body(rest: &[&mut Field]) -> Option<Body> {
    match rest {
        [] => None,
        [only] if !types::is_scalar(&only.ty) && !only.is_flat() => {
            Some(Body::Property(only.property()?, Box::new(only.ty.clone())))
        }
        rest => {
            let strange = rest.iter().filter(|field| !types::is_plain(&field.ty));
            Some(Body::Rest(strange.map(|field| field.ty.clone()).collect()))
        }
    }
}

/// A list without items is not written in a query or a header, so that one that is not there is empty.
///
/// As a default of the type, this also holds for calls by id. For other types that can be empty, which are not known
/// here, and for lists beside the files of a body, the HTTP server does it when it reads a request (`serve/read/left_out.rs`).
fn left_out_if_empty(field: &mut Field) {
    let is_list = types::arguments_of(&field.ty, "Vec").is_some();
    if is_list && field.default.is_none() && !field.has_serde("default") {
        field.default = Some(DefaultValue::OfType);
    }
}

fn place(placed: Placed, field: &Field, property: &str, binding: &mut Binding, errors: &mut Errors) {
    let Placed { location, name, span } = placed;
    if field.is_flat() {
        let message = format!("a flattened parameter has no name that could stand in a {}", location.word());
        errors.tokens(&field.ident, message);
    }
    // The server would use the default for what is left out.
    let has_default = matches!(&field.default, Some(DefaultValue::Expr(expr)) if !is_none(expr));
    let has_default = has_default || field.has_serde_default_fn();
    if has_default && types::arguments_of(&field.ty, "Option").is_some() {
        let message = format!(
            "a {} has no text for `None`, so the default would take its place: remove the default, or the `Option`",
            location.word()
        );
        errors.tokens(&field.ty, message);
    }
    let (name, at) = name.unwrap_or_else(|| (property.to_owned(), span));
    if let Err(message) = fits(location, &name) {
        errors.span(at, message);
    }
    let is_same = |(own, known, _): &(Location, String, String)| {
        *own == location
            && if location == Location::Header { known.eq_ignore_ascii_case(&name) } else { *known == name }
    };
    if binding.parameters.iter().any(is_same) {
        let kind = if location == Location::Query { "query parameter" } else { location.word() };
        errors.span(at, format!("another parameter is the {kind} `{name}` already"));
    }
    binding.parameters.push((location, name, property.to_owned()));
}

/// True if an expression is the path `None`.
fn is_none(expr: &Expr) -> bool {
    let Expr::Path(named) = expr else { return false };
    named.path.segments.last().is_some_and(|last| last.ident == "None")
}

/// Whether a header or a cookie can have the name (RFC 9110, section 5.6.2; RFC 6265, section 4.1.1).
fn fits(location: Location, name: &str) -> Result<(), String> {
    let is_token = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
    match location {
        Location::Header | Location::Cookie if name.is_empty() => {
            Err(format!("the name of a {} cannot be empty", location.word()))
        }
        Location::Header | Location::Cookie if !is_token => {
            Err(format!("`{name}` is no name of a {}", location.word()))
        }
        Location::Header if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) => {
            Err(format!("the header `{name}` is set by the runtime itself"))
        }
        _ => Ok(()),
    }
}

impl Location {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }

    /// The place that a word in `#[input(..)]` means.
    pub(crate) fn of(word: &Ident) -> Option<Self> {
        [Self::Query, Self::Header, Self::Cookie].into_iter().find(|location| word == location.word())
    }
}

impl Field {
    /// The name of the property that the parameter is: its own, or that of `#[serde(rename = "..")]`. Nothing if serde
    /// skips it.
    pub(crate) fn property(&self) -> Option<String> {
        let mut name = Some(crate::names::verbatim(&self.ident));
        self.serde(|meta| {
            if meta.path.is_ident("rename") && meta.input.peek(syn::Token![=]) {
                name = Some(meta.value()?.parse::<syn::LitStr>()?.value());
            } else if meta.path.is_ident("rename") {
                meta.parse_nested_meta(|inner| {
                    let own = inner.value()?.parse::<syn::LitStr>()?.value();
                    if inner.path.is_ident("deserialize") {
                        name = Some(own);
                    }
                    Ok(())
                })?;
            } else if meta.path.is_ident("skip") || meta.path.is_ident("skip_deserializing") {
                name = None;
            }
            Ok(())
        });
        name
    }

    /// Whether the properties of the parameter stand beside the others.
    pub(crate) fn is_flat(&self) -> bool {
        self.has_serde("flatten")
    }

    /// Whether attributes say how the parameter is written or read, that it must be there, or what its schema is: one of another
    /// type requires it.
    pub(crate) fn has_own_form(&self) -> bool {
        const WORDS: [&str; 8] = [
            "flatten",
            "skip",
            "skip_serializing",
            "skip_deserializing",
            "skip_serializing_if",
            "with",
            "serialize_with",
            "deserialize_with",
        ];
        let mut has_own_schema = false;
        self.visit("schemars", |meta| {
            has_own_schema |= ["required", "with", "schema_with"].iter().any(|word| meta.path.is_ident(word));
            Ok(())
        });
        has_own_schema || WORDS.iter().any(|word| self.has_serde(word))
    }

    /// Whether `#[serde(default = "..")]` names a fn that gives the default.
    pub(crate) fn has_serde_default_fn(&self) -> bool {
        let mut found = false;
        self.serde(|meta| {
            found |= meta.path.is_ident("default") && meta.input.peek(syn::Token![=]);
            Ok(())
        });
        found
    }

    pub(crate) fn has_serde(&self, word: &str) -> bool {
        let mut found = false;
        self.serde(|meta| {
            found |= meta.path.is_ident(word);
            Ok(())
        });
        found
    }

    fn serde(&self, visit: impl FnMut(&syn::meta::ParseNestedMeta<'_>) -> syn::Result<()>) {
        self.visit("serde", visit);
    }

    /// Visits what the attributes of this name say. What is wrong in them, the derive tells.
    fn visit(&self, name: &str, mut visit: impl FnMut(&syn::meta::ParseNestedMeta<'_>) -> syn::Result<()>) {
        for attribute in self.attributes.iter().filter(|attribute| attribute.path().is_ident(name)) {
            let _ = attribute.parse_nested_meta(|meta| {
                visit(&meta)?;
                // What the visitor left of a value.
                if meta.input.peek(syn::Token![=]) {
                    meta.value()?.parse::<syn::Expr>()?;
                } else if meta.input.peek(syn::token::Paren) {
                    meta.input.parse::<proc_macro2::TokenTree>()?;
                }
                Ok(())
            });
        }
    }
}
