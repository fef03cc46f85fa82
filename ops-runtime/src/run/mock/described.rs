//! Operations that return examples from their document.

use std::future::ready;
use std::sync::{Arc, OnceLock};

use futures_util::{StreamExt, stream};
use serde_json::Value;

use super::example::{example, fitting};
use crate::model::spec_ref::SpecRef;
use crate::normalise::Validator;
use crate::run::handler::{Endpoint, Handler, Registration};
use crate::run::payload::{Payload, PayloadFuture, PayloadStream};
use crate::{
    BoxFuture, CallError, Context, ErrorResponse, HttpMeta, HttpResponse, OperationKind, OperationSpec,
    ResponseEnvelope, Schema, StatusRange,
};

/// Number of items of a subscription.
const ITEMS: usize = 3;

/// An operation that returns an example of its first success, the same each time; a subscription has three items.
///
/// Examples are made as for [`MockCaller::on_example`](super::MockCaller::on_example). A caller can prefer another
/// response of the document: by `code=404` in the metadata `prefer` of the call, in which an HTTP server puts the
/// header `Prefer` (RFC 7240). A status that is not described is an error (`NOT_DESCRIBED`).
///
/// ```
/// use ops_runtime::spec::{OperationSpec, Schema};
/// use ops_runtime::{Registry, mock};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let schema = Schema::text(r#"{"type":"object","properties":{"name":{"type":"string","examples":["Rex"]}}}"#);
/// let registry = Registry::new();
/// registry.register(mock::examples(OperationSpec::query("shop.showPet").with_output(schema)))?;
/// assert_eq!(registry.call("shop.showPet", json!({})).await?.data, json!({ "name": "Rex" }));
/// # Ok(()) }
/// ```
pub fn examples(spec: impl Into<SpecRef>) -> Registration {
    let spec = spec.into();
    let streams = Some(spec.kind == OperationKind::Subscription);
    Registration::new(spec, Handler::of(Arc::new(Examples::default()), None, streams))
}

/// The examples of an operation that were made so far.
#[derive(Default)]
struct Examples {
    /// For callers without a preference.
    usual: OnceLock<Answer>,
}

/// Data, and the response that it belongs to if the operation has several.
#[derive(Clone)]
struct Answer(Value, Option<HttpMeta>);

impl Answer {
    fn into_envelope(self, spec: &OperationSpec) -> ResponseEnvelope<Payload> {
        match self {
            Self(data, Some(meta)) => ResponseEnvelope::http(Payload::Value(data), meta),
            Self(data, None) => ResponseEnvelope::local(Payload::Value(data), spec.id.clone()),
        }
    }
}

impl Examples {
    fn answer(&self, spec: &OperationSpec, preferred: Option<u16>) -> Result<ResponseEnvelope<Payload>, CallError> {
        let answer = match preferred {
            None => self.usual.get_or_init(|| usual(spec)).clone(),
            Some(status) => preferring(spec, status)?,
        };
        Ok(answer.into_envelope(spec))
    }
}

impl Endpoint for Examples {
    fn call(&self, spec: &OperationSpec, _: Value, context: Context) -> PayloadFuture {
        Box::pin(ready(self.answer(spec, preferred(&context))))
    }

    fn subscribe(
        &self,
        spec: &OperationSpec,
        _: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<PayloadStream, CallError>> {
        let preferred = preferred(&context).filter(|status| status / 100 != 2);
        let item = self.answer(spec, preferred);
        let stream = item.map(|item| stream::iter(vec![item; ITEMS]).map(Ok).boxed() as PayloadStream);
        Box::pin(ready(stream))
    }
}

/// The status that the caller prefers.
fn preferred(context: &Context) -> Option<u16> {
    let text = context.metadata()?.get("prefer")?.as_str()?;
    let mut preferences = text.split([',', ';']).filter_map(|preference| preference.split_once('='));
    let (_, status) = preferences.find(|(name, _)| name.trim().eq_ignore_ascii_case("code"))?;
    status.trim().trim_matches('"').parse().ok()
}

/// The first success.
fn usual(spec: &OperationSpec) -> Answer {
    // If successes differ, the first one that has an alternative of the output is used.
    let with_variant = spec.http().and_then(|binding| {
        let response = binding.responses.iter().find(|response| response.variant.is_some())?;
        Some((response, binding.first_status(response)))
    });
    match with_variant {
        Some((response, status)) => success(spec, response, status),
        None => Answer(example(spec), None),
    }
}

/// The response that is described for a status.
fn preferring(spec: &OperationSpec, status: u16) -> Result<Answer, CallError> {
    // No response can end with another status.
    let binding = spec.http().filter(|_| (200..600).contains(&status));
    let Some(response) = binding.and_then(|binding| binding.response(status, "")) else {
        let responses = spec.http().into_iter().flat_map(|binding| binding.responses.iter());
        let all: Vec<String> = responses.map(|response| named(response.status)).collect();
        let message = format!("`{}` describes no response with status {status}; it has {}", spec.id, all.join(", "));
        return Err(CallError::new("NOT_DESCRIBED", message));
    };
    if status / 100 == 2 {
        return Ok(success(spec, response, status));
    }
    let of = |range: StatusRange| {
        let code = range.error_code();
        spec.errors.iter().find(|error| error.code == code)
    };
    let error = spec.errors.iter().find(|error| error.http_status == Some(status));
    let error = error.or_else(|| of(StatusRange::Class(status / 100))).or_else(|| of(StatusRange::Default));
    let body = error.map_or(Value::Null, |error| of_schema(&error.schema, spec));
    Err(ErrorResponse::new(status, body).into())
}

fn success(spec: &OperationSpec, response: &HttpResponse, status: u16) -> Answer {
    let variant = response.variant.and_then(|variant| {
        let output = spec.output.to_value().ok()?;
        Some(Schema::from(output.get("oneOf")?.get(usize::from(variant))?.clone()))
    });
    let data = variant.map_or_else(|| example(spec), |schema| of_schema(&schema, spec));
    let content_type = response.content_type.clone().unwrap_or_default();
    Answer(data, Some(HttpMeta::received(status, content_type)))
}

/// An example of a part of the output.
fn of_schema(schema: &Schema, spec: &OperationSpec) -> Value {
    let validator = schema.self_contained(&spec.definitions).map(|schema| Validator::new(&schema));
    fitting(schema, &spec.definitions, |made| validator.as_ref().is_ok_and(|validator| validator.check(made)))
}

fn named(range: StatusRange) -> String {
    match range {
        StatusRange::Exact(status) => status.to_string(),
        StatusRange::Class(class) => format!("{class}XX"),
        StatusRange::Default => "default".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;
    use crate::{CallOptions, ErrorDefinition, HttpBinding, Registry};

    const TEXT: Schema = Schema::text(r#"{"type":"string","minLength":3,"examples":["x"]}"#);

    fn spec() -> OperationSpec {
        let of = |range| HttpResponse::new(range, "application/json");
        let responses = vec![
            of(StatusRange::Exact(201)).with_variant(1),
            of(StatusRange::Class(4)),
            of(StatusRange::Exact(202)).with_variant(0),
        ];
        let output = json!({ "oneOf": [{ "type": "integer", "multipleOf": 4 }, { "type": "array", "minItems": 2, "uniqueItems": true, "items": { "type": "integer", "maximum": 0 } }] });
        let mut spec = OperationSpec::query("shop.show").with_output(TEXT);
        spec.output = Schema::from(output);
        spec.errors = vec![ErrorDefinition::new("HTTP_4XX").with_schema(TEXT)].into();
        let mut binding = HttpBinding::new("GET", "/");
        binding.responses = responses.into();
        spec.binding = crate::Binding::Http(binding);
        spec
    }

    #[test]
    fn a_status_chooses_the_response() {
        let registry = Registry::new();
        registry.register(examples(spec())).unwrap();
        let call = |prefer: &str| {
            let options = CallOptions::new().with_metadata("prefer", prefer);
            registry.call_with("shop.show", json!({}), options).now_or_never().unwrap()
        };
        for (prefer, status, data) in [
            ("", 201, json!([0, 1])),
            ("respond-async, code=202", 202, json!(4)),
            ("CODE=\"202\"; x", 202, json!(4)),
            ("code=x", 201, json!([0, 1])),
        ] {
            let found = call(prefer).unwrap();
            assert_eq!((found.meta.as_http().unwrap().status_code, found.data), (status, data), "{prefer}");
        }
        let error = call("code=404").unwrap_err();
        // The example of the document is too short, so another is made.
        assert_eq!((error.status(), &error.details()["body"]), (Some(404), &json!("text")));
        let error = call("code=500").unwrap_err();
        assert_eq!(error.code().as_str(), "NOT_DESCRIBED");
        assert!(error.message().ends_with("no response with status 500; it has 201, 4XX, 202"), "{error}");
    }

    #[test]
    fn a_range_of_successes_has_a_status_of_its_own() {
        let of = |range| HttpResponse::new(range, "application/json");
        let mut spec = spec();
        let mut binding = HttpBinding::new("GET", "/");
        binding.responses =
            vec![of(StatusRange::Class(2)).with_variant(1), of(StatusRange::Exact(200)).with_variant(0)].into();
        spec.binding = crate::Binding::Http(binding);
        let registry = Registry::new();
        registry.register(examples(spec)).unwrap();
        let found = registry.call("shop.show", json!({})).now_or_never().unwrap().unwrap();
        assert_eq!((found.meta.as_http().unwrap().status_code, found.data), (201, json!([0, 1])));
    }

    #[test]
    fn a_default_describes_no_status_that_cannot_be_sent() {
        let mut spec = spec();
        let mut binding = HttpBinding::new("GET", "/");
        binding.responses = vec![HttpResponse::new(StatusRange::Default, "application/json")].into();
        spec.binding = crate::Binding::Http(binding);
        spec.errors = vec![ErrorDefinition::new("HTTP_ERROR").with_schema(TEXT)].into();
        let registry = Registry::new();
        registry.register(examples(spec)).unwrap();
        let call = |status: u16| {
            let options = CallOptions::new().with_metadata("prefer", format!("code={status}"));
            registry.call_with("shop.show", json!({}), options).now_or_never().unwrap().unwrap_err()
        };
        for status in [0, 99, 101, 150, 199, 600, 999] {
            assert_eq!(call(status).code().as_str(), "NOT_DESCRIBED", "{status}");
        }
        for status in [300, 404, 599] {
            assert_eq!(call(status).status(), Some(status));
        }
    }
}
