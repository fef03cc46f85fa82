//! Payloads of webhooks as types, checked as the results of calls are.

use crate::model::operation::Webhook;
use crate::run::pipeline;
use crate::{CallError, OutputPolicy, ResponseEnvelope};

/// Reads the payload of a webhook: the body of a request, which has been [verified](super::WebhookVerifier::verify).
///
/// The payload is treated as the result of a call is under [`OutputPolicy::Repair`]: defaults of the document are filled
/// in, and what had to be converted is listed in the envelope's `warnings`.
///
/// ```
/// use ops_runtime::spec::{OperationSpec, Schema};
/// use ops_runtime::webhooks::{self, Webhook};
///
/// // The generator makes this of a document, with a type for the payload.
/// struct StockChanged;
/// impl Webhook for StockChanged {
///     type Payload = std::collections::BTreeMap<String, i64>;
///     const SPEC: &'static OperationSpec = &OperationSpec::mutation("shop.stockChanged").with_output(Schema::text(
///         r#"{ "type": "object", "additionalProperties": { "type": "integer" } }"#,
///     ));
/// }
///
/// let stock = webhooks::decode::<StockChanged>(br#"{ "apples": 7, "pears": "3" }"#)?;
/// assert_eq!((stock.data["pears"], stock.warnings.len()), (3, 1));
/// assert!(webhooks::decode::<StockChanged>(br#"{ "apples": [] }"#).is_err());
/// # Ok::<(), ops_runtime::CallError>(())
/// ```
///
/// # Errors
/// A `VALIDATION_ERROR` if the body is not JSON or does not fit the payload's type. Its details hold the body as `raw`
/// and what is wrong with it as `violations`.
pub fn decode<W: Webhook>(body: &[u8]) -> Result<ResponseEnvelope<W::Payload>, CallError> {
    decode_with::<W>(body, OutputPolicy::default())
}

/// Reads the payload of a webhook under a policy.
///
/// # Errors
/// Those of [`decode`]; with [`OutputPolicy::Strict`], also if anything differs from the schema.
pub fn decode_with<W: Webhook>(body: &[u8], policy: OutputPolicy) -> Result<ResponseEnvelope<W::Payload>, CallError> {
    pipeline::received(W::SPEC, policy, body).map_err(|error| named(error, W::SPEC.id.as_ref()))
}

/// The error with the name of the webhook: the pipeline speaks of responses.
fn named(error: CallError, id: &'static str) -> CallError {
    let Some(rest) = error.message().strip_prefix("the response ") else { return error.with_operation(id) };
    let message = format!("the webhook's payload {}", rest.replace("the operation gives", "it should be"));
    let named = CallError::new(error.code().clone(), message).with_operation(id);
    match error.details() {
        details if details.is_null() => named,
        details => named.with_details(details.clone()),
    }
}
