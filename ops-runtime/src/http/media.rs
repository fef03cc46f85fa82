//! Media types: the forms of described responses, and the types that a request accepts.

use http::HeaderValue;

use super::data::{Data, data_of};
use crate::model::media::{EVENTS, Media, essence};
pub(super) use crate::model::media::{Form, charset, form, is_json, is_range};
use crate::{Definitions, HttpBinding, HttpResponse, OperationKind, OperationSpec, Schema, StatusRange};

/// The responses that a document describes.
#[derive(Debug, Clone, Default)]
pub(super) struct Described {
    responses: Vec<Response>,
    /// The schema of the output, which is read only for a response whose type does not say what it holds.
    output: Schema,
    definitions: Definitions,
}

/// A described response.
#[derive(Debug, Clone)]
struct Response {
    status: StatusRange,
    essence: Option<String>,
    /// True if the output is bytes by its schema, whatever the type.
    is_bytes: bool,
    /// The alternative of the output's union that the response is.
    variant: Option<u16>,
}

impl Response {
    /// The form by the content type; `None` if it says nothing.
    fn form(&self) -> Option<Form> {
        let essence = self.essence.as_deref()?;
        (!is_range(essence) && essence != EVENTS).then(|| form(essence))
    }
}

impl Described {
    pub(super) fn new(spec: &OperationSpec) -> Self {
        let Some(binding) = spec.http() else { return Self::default() };
        let responses = binding.responses.iter().zip(spec.gives_bytes(binding.responses.iter()));
        let responses = responses.map(|(response, is_bytes)| Response {
            status: response.status,
            essence: response.content_type.as_deref().map(essence),
            is_bytes,
            variant: response.variant,
        });
        Self { responses: responses.collect(), output: spec.output.clone(), definitions: spec.definitions.clone() }
    }

    /// The forms for a status: of the responses for that exact status, else for its class, else of the default.
    pub(super) fn forms(&self, status: u16) -> impl Iterator<Item = Form> + Clone {
        best(self.responses.iter().filter(|response| response.form().is_some()), status).filter_map(Response::form)
    }

    /// True if the output is bytes by its schema for a status, whatever the type of the response.
    pub(super) fn is_bytes(&self, status: u16) -> bool {
        best(self.responses.iter(), status).any(|response| response.is_bytes)
    }

    /// The types for a status, if all of them are JSON, so that a stream in their place is refused.
    pub(super) fn only_json(&self, status: u16) -> Option<String> {
        let types: Vec<&str> =
            best(self.responses.iter(), status).filter_map(|response| response.essence.as_deref()).collect();
        let is_json = |essence: &&str| Media::of(essence) == Media::Json && !essence.contains('*');
        (!types.is_empty() && types.iter().all(is_json)).then(|| types.join(" or "))
    }

    /// True if the output may be a text, or bytes in base64, for a status.
    pub(super) fn may_be_text(&self, status: u16) -> bool {
        let variant = best(self.responses.iter(), status).find_map(|response| response.variant);
        data_of(&self.output, variant, &self.definitions) != Data::Json
    }

    /// True if a body that is JSON is read as JSON, though its type is not specific.
    ///
    /// Where the output is text, the body is that text: as a number, `1.10` would lose a digit. A JSON string, or `null`, is
    /// JSON all the same, unless the document describes this very type. If the output is not nullable, such a `null` is an
    /// error.
    pub(super) fn is_read_as_json(&self, status: u16, essence: &str, body: &[u8]) -> bool {
        let mut typed = best(self.responses.iter().filter(|response| response.essence.is_some()), status);
        let described = typed.clone().find(|response| response.essence.as_deref() == Some(essence));
        // The reader of documents names the alternative at one content type of a status only.
        let variant =
            described.and_then(|response| response.variant).or_else(|| typed.find_map(|response| response.variant));
        let body = body.trim_ascii();
        (described.is_none() && (body.starts_with(b"\"") || body == b"null"))
            || data_of(&self.output, variant, &self.definitions) != Data::Text
    }
}

/// The responses that describe a status best.
fn best<'a>(
    responses: impl Iterator<Item = &'a Response> + Clone,
    status: u16,
) -> impl Iterator<Item = &'a Response> + Clone {
    let ranges = responses.filter(move |response| response.status.contains(status));
    // Ranges are ordered from the most to the least specific, except for the numbers inside.
    let best = ranges.clone().map(|response| response.status).min();
    ranges.filter(move |response| Some(response.status) == best)
}

/// The `Accept` header of a request.
///
/// Of the types of one success, it lists those that the output describes: JSON if there is any, else those with the
/// form of the first. Any other response would be an error. JSON is preferred if successes differ.
pub(super) fn accept(binding: &HttpBinding, kind: OperationKind) -> HeaderValue {
    if kind == OperationKind::Subscription {
        return accept_stream(binding);
    }
    let succeeds = binding.responses.iter().any(|response| response.status.is_success());
    let relevant = |response: &&HttpResponse| match succeeds {
        true => response.status.is_success(),
        false => response.status == StatusRange::Default,
    };
    let offered = binding.responses.iter().filter(relevant).filter_map(|response| {
        let content_type = response.content_type.as_deref()?.trim();
        let fits = !content_type.is_empty() && essence(content_type) != EVENTS;
        fits.then_some((response.status, content_type))
    });
    let mut types: Vec<&str> = Vec::new();
    for (status, content_type) in offered.clone() {
        let mut of_status = offered.clone().filter(|(other, _)| *other == status).map(|(_, content_type)| content_type);
        let first = of_status.clone().find(|other| Media::of(other) == Media::Json).or_else(|| of_status.next());
        if first.is_some_and(|first| is_described(first, content_type)) && !types.contains(&content_type) {
            types.push(content_type);
        }
    }
    let json = |content_type: &&str| is_json(&essence(content_type));
    let ranked = types.iter().any(json) && !types.iter().all(json);
    let mut text = String::new();
    let (first, rest): (Vec<_>, Vec<_>) = types.iter().partition(|content_type| !ranked || json(content_type));
    for (content_type, quality) in
        first.into_iter().map(|content_type| (content_type, "")).chain(rest.into_iter().map(|c| (c, ";q=0.5")))
    {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(content_type);
        text.push_str(quality);
    }
    HeaderValue::from_str(&text)
        .ok()
        .filter(|value| !value.is_empty())
        .unwrap_or_else(|| HeaderValue::from_static("*/*"))
}

/// True if the schema of the type that an output describes also applies to another type.
fn is_described(described: &str, content_type: &str) -> bool {
    let (described, other) = (essence(described), essence(content_type));
    described == other || !is_json(&described) && form(&described) == form(&other)
}

/// The stream types that a subscription accepts; server-sent events if the document names none.
fn accept_stream(binding: &HttpBinding) -> HeaderValue {
    let mut types: Vec<&str> = Vec::new();
    for response in binding.responses.iter() {
        let content_type = response.content_type.as_deref().unwrap_or_default().trim();
        let streams = Media::of(content_type).is_stream();
        if streams && !types.contains(&content_type) {
            types.push(content_type);
        }
    }
    let described = HeaderValue::from_str(&types.join(", ")).ok().filter(|value| !value.is_empty());
    described.unwrap_or_else(|| HeaderValue::from_static(EVENTS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StatusRange::{Class, Default, Exact};

    #[test]
    fn forms() {
        let table = [
            ("application/json", Form::Json),
            ("Application/Problem+JSON; charset=utf-8", Form::Json),
            ("text/json", Form::Json),
            ("text/html;charset=x", Form::Text),
            ("image/svg+xml", Form::Text),
            ("application/xml", Form::Text),
            ("application/octet-stream", Form::Bytes),
            ("image/png", Form::Bytes),
            ("nonsense", Form::Bytes),
        ];
        for (content_type, expected) in table {
            assert_eq!(form(&essence(content_type)), expected, "{content_type}");
        }
        assert_eq!(charset("text/plain; a=b; Charset=\"ISO-8859-1\""), Some("ISO-8859-1".into()));
        assert_eq!(charset("text/plain"), None);
    }

    #[test]
    fn a_request_asks_for_what_its_operation_understands() {
        let binding = HttpBinding::new("GET", "/").with_responses(
            const {
                &[
                    HttpResponse::new(Exact(200), "application/xml"),
                    HttpResponse::new(Exact(200), "text/event-stream"),
                    HttpResponse::new(Exact(200), "application/json"),
                    HttpResponse::new(Exact(201), "application/json"),
                    HttpResponse::empty(Exact(204)),
                    HttpResponse::new(Default, "application/problem+json"),
                ]
            },
        );
        assert_eq!(accept(&binding, OperationKind::Query), "application/json");
        assert_eq!(accept(&binding, OperationKind::Subscription), "text/event-stream");

        let text = HttpBinding::new("GET", "/")
            .with_responses(const { &[HttpResponse::new(Class(2), "text/csv"), HttpResponse::new(Class(2), "a/b")] });
        assert_eq!(accept(&text, OperationKind::Query), "text/csv");
        for (types, expected) in [
            (["application/json", "application/vnd.full+json", "application/pdf"], "application/json"),
            (["text/csv", "application/xml", "application/pdf"], "text/csv, application/xml"),
            (["image/png", "image/jpeg", "image/*"], "image/png, image/jpeg, image/*"),
            (
                ["application/json; charset=utf-8", "application/json", "*/*"],
                "application/json; charset=utf-8, application/json",
            ),
        ] {
            let mut binding = HttpBinding::new("GET", "/");
            binding.responses = types.map(|content_type| HttpResponse::new(Exact(200), content_type)).to_vec().into();
            assert_eq!(accept(&binding, OperationKind::Query), expected);
        }
        // Each success has its own.
        let several = HttpBinding::new("GET", "/").with_responses(
            const { &[HttpResponse::new(Exact(200), "text/csv"), HttpResponse::new(Exact(202), "application/json")] },
        );
        assert_eq!(accept(&several, OperationKind::Query), "application/json, text/csv;q=0.5");
        let default =
            HttpBinding::new("GET", "/").with_responses(const { &[HttpResponse::new(Default, "application/json")] });
        assert_eq!(accept(&default, OperationKind::Query), "application/json");
        let hostile =
            HttpBinding::new("GET", "/").with_responses(const { &[HttpResponse::new(Exact(200), "a/b\r\nX-Evil: 1")] });
        assert_eq!(accept(&hostile, OperationKind::Query), "*/*");
        assert_eq!(accept(&HttpBinding::new("GET", "/"), OperationKind::Query), "*/*");
    }

    #[test]
    fn the_most_specific_description_counts() {
        let spec = OperationSpec::query("t.x").with_http(HttpBinding::new("GET", "/").with_responses(
            const {
                &[
                    HttpResponse::new(Default, "application/json"),
                    HttpResponse::new(Class(2), "text/plain"),
                    HttpResponse::new(Exact(200), "image/png"),
                    HttpResponse::new(Exact(200), "text/event-stream"),
                    HttpResponse::new(Exact(201), "*/*"),
                ]
            },
        ));
        let forms = |status| Described::new(&spec).forms(status).collect::<Vec<_>>();
        assert_eq!(forms(200), [Form::Bytes]);
        assert_eq!(forms(204), [Form::Text]);
        assert_eq!(forms(500), [Form::Json]);
    }
}
