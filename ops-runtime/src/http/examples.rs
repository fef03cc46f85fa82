//! A client's operations without its service: requests are made and dropped, and results are examples.

use std::sync::Arc;

use serde_json::Value;

use super::HttpClient;
use super::client::Service;
use crate::run::handler::Erased;
use crate::{
    BoxFuture, CallError, Context, Endpoint, Handler, OperationSpec, Payload, PayloadStream, Registration,
    ResponseEnvelope, SpecRef,
};

impl HttpClient {
    /// The operations with examples as results ([`mock::examples`](crate::mock::examples)): each request is made as
    /// this client would send it, and dropped.
    ///
    /// So an input that the client refuses before it sends anything is refused here, too: for example one with a member
    /// that has no place in the request, or bytes that are not base64.
    ///
    /// ```
    /// use ops_runtime::binding::HttpBinding;
    /// use ops_runtime::http::{HttpClient, HttpConfig};
    /// use ops_runtime::spec::{OperationSpec, Schema};
    /// use ops_runtime::Registry;
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let spec = OperationSpec::query("pets.count")
    ///     .with_http(HttpBinding::new("GET", "/pets/count"))
    ///     .with_output(Schema::text(r#"{"type":"integer","examples":[7]}"#));
    /// let client = HttpClient::new(HttpConfig::new().with_base_url("https://pets.example.com"))?;
    /// let registry = Registry::new();
    /// registry.register_all(client.bind_examples([spec]))?;
    /// assert_eq!(registry.call("pets.count", json!({})).await?.data, json!(7));
    /// let error = registry.call("pets.count", json!({ "colour": "red" })).await.unwrap_err();
    /// assert_eq!(error.code().as_str(), "VALIDATION_ERROR");
    /// # Ok(()) }
    /// ```
    pub fn bind_examples<S: Into<SpecRef>>(&self, specs: impl IntoIterator<Item = S>) -> Vec<Registration> {
        let rehearsed = |spec: S| {
            let made = crate::mock::examples(spec);
            if made.spec.http().is_none() {
                return made;
            }
            let rehearsal = Rehearsal { service: self.service.clone(), answer: made.handler.erased };
            // The handler of examples with another endpoint; the rest stays.
            let handler = Handler { erased: Arc::new(rehearsal), ..made.handler };
            Registration { handler, ..made }
        };
        specs.into_iter().map(rehearsed).collect()
    }
}

/// A service that is not there.
struct Rehearsal {
    service: Service,
    answer: Arc<dyn Erased>,
}

impl Endpoint for Rehearsal {
    fn call(
        &self,
        spec: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        match self.check(spec, &input, &context) {
            Ok(()) => self.answer.call(spec, input, context),
            Err(refused) => Box::pin(std::future::ready(Err(refused))),
        }
    }

    fn subscribe(
        &self,
        spec: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<PayloadStream, CallError>> {
        match self.check(spec, &input, &context) {
            Ok(()) => self.answer.subscribe(spec, input, context),
            Err(refused) => Box::pin(std::future::ready(Err(refused))),
        }
    }

    fn check(&self, spec: &OperationSpec, input: &Value, context: &Context) -> Result<(), CallError> {
        self.service.check(spec, input, context)
    }
}
