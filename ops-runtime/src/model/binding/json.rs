//! The JSON of bindings, with the keywords and defaults of OpenAPI's parameters.

use std::borrow::Cow;

use serde_core::de::{Deserialize, Deserializer, Error, MapAccess};
use serde_core::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::model::json::{fields, through, words};
use crate::record::{Reader, Record, put};
use crate::{
    Binding, HttpBinding, HttpBody, HttpField, HttpFixed, HttpParameter, HttpResponse, List, Literal, McpBinding,
    McpOutput, ParameterLocation, ParameterStyle, SecurityKind, SecurityRequirement, SecurityScheme, ServerVariable,
    StatusRange, Text, TextList,
};

/// Distinguished by `type`. An unknown kind is an error: taken as a local operation, it would run the wrong thing.
impl Record for Binding {
    const NAME: &'static str = "Binding";
    const FIELDS: &'static [&'static str] = &["type"];
    crate::__opaque!();

    fn index(name: &str) -> usize {
        usize::from(name != "type")
    }

    fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
        let object = m.tagged("type")?;
        if object.is("http") {
            object.read().map(Self::Http)
        } else if object.is("mcp") {
            object.read().map(Self::Mcp)
        } else if object.is("local") {
            object.read::<Value>().map(|_| Self::Local)
        } else {
            Err(A::Error::custom("missing or unknown `type` of Binding, expected `local`, `http` or `mcp`"))
        }
    }

    fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
        match self {
            Self::Local => put(m, "type", &"local"),
            Self::Http(http) => {
                put(m, "type", &"http")?;
                http.write(m)
            }
            Self::Mcp(mcp) => {
                put(m, "type", &"mcp")?;
                mcp.write(m)
            }
        }
    }
}
crate::__record!(Binding);

fields!(HttpBinding {
    "method" => method: required,
    "path" => path: required,
    "server" => server: some,
    "serverVariables" => server_variables: filled,
    "security" => security: filled,
    "parameters" => parameters: filled,
    "bodies" => bodies: filled,
    "contentType" => content_type: some,
    "responses" => responses: filled,
});

fields!(McpBinding {
    "tool" => tool: required,
    "output" => output: required,
});

words!(McpOutput {
    "content" => Content,
    "structured" => Structured,
    "wrapped" => Wrapped,
});

words!(ParameterLocation {
    "path" => Path,
    "query" => Query,
    "header" => Header,
    "cookie" => Cookie,
    "querystring" => QueryString,
});

fields!(ServerVariable {
    "name" => name: required,
    "default" => default: required,
    "values" => values: filled,
});

fields!(SecurityRequirement {
    "schemes" => schemes: filled,
});

/// A scheme in the shape of its JSON: its kind stands in `type`, as in OpenAPI, or is the scheme of HTTP.
struct SchemeJson {
    name: Text,
    kind: Text,
    location: Option<ParameterLocation>,
    parameter: Option<Text>,
    url: Option<Text>,
    scopes: TextList,
}

fields!(SchemeJson {
    "name" => name: required,
    "type" => kind: required,
    "in" => location: some,
    "parameter" => parameter: some,
    "url" => url: some,
    "scopes" => scopes: filled,
});

through!(SecurityScheme, SchemeJson);

impl From<&SecurityScheme> for SchemeJson {
    fn from(scheme: &SecurityScheme) -> Self {
        let (kind, location, parameter, url) = match &scheme.kind {
            SecurityKind::Basic => (Cow::Borrowed("basic"), None, None, None),
            SecurityKind::Bearer => (Cow::Borrowed("bearer"), None, None, None),
            SecurityKind::ApiKey { location, name } => {
                (Cow::Borrowed("apiKey"), Some(*location), Some(name.clone()), None)
            }
            SecurityKind::OAuth2 { token_url } => (Cow::Borrowed("oauth2"), None, None, token_url.clone()),
            SecurityKind::OpenIdConnect { url } => (Cow::Borrowed("openIdConnect"), None, None, Some(url.clone())),
            SecurityKind::Other(name) => (name.clone(), None, None, None),
        };
        Self { name: scheme.name.clone(), kind, location, parameter, url, scopes: scheme.scopes.clone() }
    }
}

impl From<SchemeJson> for SecurityScheme {
    fn from(json: SchemeJson) -> Self {
        let kind = match json.kind.as_ref() {
            "basic" => SecurityKind::Basic,
            "bearer" => SecurityKind::Bearer,
            "apiKey" => SecurityKind::ApiKey {
                location: json.location.unwrap_or(ParameterLocation::Header),
                name: json.parameter.unwrap_or_else(|| json.name.clone()),
            },
            "oauth2" => SecurityKind::OAuth2 { token_url: json.url },
            "openIdConnect" => SecurityKind::OpenIdConnect { url: json.url.unwrap_or_default() },
            _ => SecurityKind::Other(json.kind),
        };
        Self { name: json.name, kind, scopes: json.scopes }
    }
}

words!(ParameterStyle {
    "simple" => Simple,
    "form" => Form,
    "label" => Label,
    "matrix" => Matrix,
    "spaceDelimited" => SpaceDelimited,
    "pipeDelimited" => PipeDelimited,
    "deepObject" => DeepObject,
    "json" => Json,
});

/// A parameter in the shape of its JSON, without OpenAPI's defaults (3.1, section 4.8.12.2).
struct ParameterJson {
    name: Text,
    location: ParameterLocation,
    property: Option<Text>,
    style: Option<ParameterStyle>,
    explode: Option<bool>,
    allow_reserved: bool,
    fixed: Option<Literal>,
}

fields!(ParameterJson {
    "name" => name: required,
    "in" => location: required,
    "property" => property: some,
    "style" => style: some,
    "explode" => explode: some,
    "allowReserved" => allow_reserved: flag,
    "fixed" => fixed: some,
});

through!(HttpParameter, ParameterJson);

fn default_style(location: ParameterLocation) -> ParameterStyle {
    match location {
        ParameterLocation::Path | ParameterLocation::Header => ParameterStyle::Simple,
        ParameterLocation::Query | ParameterLocation::Cookie | ParameterLocation::QueryString => ParameterStyle::Form,
    }
}

fn explodes(style: ParameterStyle) -> bool {
    style == ParameterStyle::Form
}

impl From<&HttpParameter> for ParameterJson {
    fn from(parameter: &HttpParameter) -> Self {
        let HttpParameter { name, property, location, style, explode, allow_reserved, fixed } = parameter;
        Self {
            name: name.clone(),
            location: *location,
            property: Some(property.clone()).filter(|property| property != name),
            style: Some(*style).filter(|style| *style != default_style(*location)),
            explode: Some(*explode).filter(|explode| *explode != explodes(*style)),
            allow_reserved: *allow_reserved,
            fixed: fixed.clone(),
        }
    }
}

impl From<ParameterJson> for HttpParameter {
    fn from(json: ParameterJson) -> Self {
        let style = json.style.unwrap_or_else(|| default_style(json.location));
        Self {
            property: json.property.unwrap_or_else(|| json.name.clone()),
            name: json.name,
            location: json.location,
            style,
            explode: json.explode.unwrap_or_else(|| explodes(style)),
            allow_reserved: json.allow_reserved,
            fixed: json.fixed,
        }
    }
}

/// A body in the shape of its JSON: `property` is left out if it is `body`, and empty if it is the rest.
struct BodyJson {
    content_type: Text,
    property: Option<Text>,
    fields: List<HttpField>,
    fixed: List<HttpFixed>,
    variant: Option<u16>,
}

fields!(BodyJson {
    "contentType" => content_type: required,
    "property" => property: some,
    "fields" => fields: filled,
    "fixed" => fixed: filled,
    "variant" => variant: some,
});

through!(HttpBody, BodyJson);

impl From<&HttpBody> for BodyJson {
    fn from(body: &HttpBody) -> Self {
        let property = Some(body.property.clone()).filter(|property| property != "body");
        Self {
            content_type: body.content_type.clone(),
            property,
            fields: body.fields.clone(),
            fixed: body.fixed.clone(),
            variant: body.variant,
        }
    }
}

impl From<BodyJson> for HttpBody {
    fn from(json: BodyJson) -> Self {
        let BodyJson { content_type, property, fields, fixed, variant } = json;
        Self { content_type, property: property.unwrap_or(Cow::Borrowed("body")), fields, fixed, variant }
    }
}

fields!(HttpFixed {
    "name" => name: required,
    "value" => value: some,
});

impl Serialize for Literal {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bool(value) => s.serialize_bool(*value),
            Self::Text(text) => s.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Literal {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match Value::deserialize(d)? {
            Value::Bool(value) => Ok(Self::Bool(value)),
            Value::String(text) => Ok(Self::Text(text.into())),
            _ => Err(D::Error::custom("a fixed value is a boolean or a text")),
        }
    }
}

/// A field in the shape of its JSON, with the keywords of OpenAPI's encoding objects.
struct FieldJson {
    name: Text,
    content_type: Option<Text>,
    style: Option<ParameterStyle>,
    explode: Option<bool>,
    allow_reserved: bool,
}

fields!(FieldJson {
    "name" => name: required,
    "contentType" => content_type: some,
    "style" => style: some,
    "explode" => explode: some,
    "allowReserved" => allow_reserved: flag,
});

through!(HttpField, FieldJson);

impl From<&HttpField> for FieldJson {
    fn from(field: &HttpField) -> Self {
        Self {
            name: field.name.clone(),
            content_type: field.content_type.clone(),
            style: field.style.map(|(style, _)| style),
            explode: field.style.filter(|(style, explode)| *explode != explodes(*style)).map(|(_, explode)| explode),
            allow_reserved: field.allow_reserved,
        }
    }
}

impl From<FieldJson> for HttpField {
    fn from(json: FieldJson) -> Self {
        let style = json.style.map(|style| (style, json.explode.unwrap_or_else(|| explodes(style))));
        Self { name: json.name, content_type: json.content_type, style, allow_reserved: json.allow_reserved }
    }
}

fields!(HttpResponse {
    "status" => status: required,
    "contentType" => content_type: some,
    "variant" => variant: some,
    "wholeEvent" => whole_event: flag,
});

/// As the keys of OpenAPI's responses: `200`, `4XX`, `default`.
impl Serialize for StatusRange {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Exact(status) => s.collect_str(status),
            Self::Class(class) => s.collect_str(&format_args!("{class}XX")),
            Self::Default => s.serialize_str("default"),
        }
    }
}

impl<'de> Deserialize<'de> for StatusRange {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(d)?;
        let class = text.strip_suffix("XX").or_else(|| text.strip_suffix("xx"));
        let range = match (text.as_ref(), class) {
            ("default", _) => Some(Self::Default),
            (_, Some(class)) => class.parse().ok().map(Self::Class),
            (exact, None) => exact.parse().ok().map(Self::Exact),
        };
        range.ok_or_else(|| D::Error::custom(format_args!("`{text}` is no status: `200`, `4XX` or `default`")))
    }
}
