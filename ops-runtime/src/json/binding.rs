//! The JSON of bindings: the words and the defaults of OpenAPI's parameters.

use std::borrow::Cow;

use serde::de::{Deserialize, Deserializer, Error, MapAccess};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::{fields, through, words};
use crate::record::{Reader, Record, put};
use crate::{
    Binding, HttpBinding, HttpBody, HttpParameter, HttpResponse, List, ParameterLocation, ParameterStyle, StatusRange,
    Text,
};

/// Told apart by `type`. A kind that is not known is an error: taken for a local operation it would run the wrong thing.
impl Record for Binding {
    const NAME: &'static str = "Binding";
    const FIELDS: &'static [&'static str] = &["type"];

    fn index(name: &str) -> usize {
        usize::from(name != "type")
    }

    fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
        let object = m.tagged("type")?;
        if object.is("http") {
            object.read().map(Self::Http)
        } else if object.is("local") {
            object.read::<Value>().map(|_| Self::Local)
        } else {
            Err(A::Error::custom("unknown `type` of Binding, expected `local` or `http`"))
        }
    }

    fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
        match self {
            Self::Local => put(m, "type", &"local"),
            Self::Http(http) => {
                put(m, "type", &"http")?;
                http.write(m)
            }
        }
    }
}
crate::record!(Binding);

fields!(HttpBinding {
    "method" => method: required,
    "path" => path: required,
    "server" => server: some,
    "parameters" => parameters: filled,
    "bodies" => bodies: filled,
    "responses" => responses: filled,
});

words!(ParameterLocation {
    "path" => Path,
    "query" => Query,
    "header" => Header,
    "cookie" => Cookie,
});

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

/// A parameter in the shape of its JSON, without what OpenAPI takes for granted (3.1, section 4.8.12.2).
struct ParameterJson {
    name: Text,
    location: ParameterLocation,
    property: Option<Text>,
    style: Option<ParameterStyle>,
    explode: Option<bool>,
    allow_reserved: bool,
}

fields!(ParameterJson {
    "name" => name: required,
    "in" => location: required,
    "property" => property: some,
    "style" => style: some,
    "explode" => explode: some,
    "allowReserved" => allow_reserved: flag,
});

through!(HttpParameter, ParameterJson);

fn default_style(location: ParameterLocation) -> ParameterStyle {
    match location {
        ParameterLocation::Path | ParameterLocation::Header => ParameterStyle::Simple,
        ParameterLocation::Query | ParameterLocation::Cookie => ParameterStyle::Form,
    }
}

fn explodes(style: ParameterStyle) -> bool {
    style == ParameterStyle::Form
}

impl From<&HttpParameter> for ParameterJson {
    fn from(parameter: &HttpParameter) -> Self {
        let HttpParameter { name, property, location, style, explode, allow_reserved } = parameter;
        Self {
            name: name.clone(),
            location: *location,
            property: Some(property.clone()).filter(|property| property != name),
            style: Some(*style).filter(|style| *style != default_style(*location)),
            explode: Some(*explode).filter(|explode| *explode != explodes(*style)),
            allow_reserved: *allow_reserved,
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
        }
    }
}

/// A body in the shape of its JSON: `property` is left out if it is `body`.
struct BodyJson {
    content_type: Text,
    property: Option<Text>,
    fields: List<HttpParameter>,
}

fields!(BodyJson {
    "contentType" => content_type: required,
    "property" => property: some,
    "fields" => fields: filled,
});

through!(HttpBody, BodyJson);

impl From<&HttpBody> for BodyJson {
    fn from(body: &HttpBody) -> Self {
        let property = Some(body.property.clone()).filter(|property| property != "body");
        Self { content_type: body.content_type.clone(), property, fields: body.fields.clone() }
    }
}

impl From<BodyJson> for HttpBody {
    fn from(json: BodyJson) -> Self {
        let property = json.property.unwrap_or(Cow::Borrowed("body"));
        Self { content_type: json.content_type, property, fields: json.fields }
    }
}

fields!(HttpResponse {
    "status" => status: required,
    "contentType" => content_type: some,
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
