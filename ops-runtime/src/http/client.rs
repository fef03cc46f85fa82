//! The client: an endpoint of the registry, and a caller on its own.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tracing::{Instrument, Span, debug, debug_span, field};
use url::Url;

use super::HttpConfig;
use super::config::Settings;
use super::engine::{EngineResponse, RequestBody};
use super::events::{self, Data};
use super::media::Described;
use super::redirect::{Answer, send};
use super::request::encode;
use super::response;
use crate::handler::BoxFuture;
use crate::{
    CallError, Context, Endpoint, ErrorCode, Handler, HttpBinding, OperationSpec, Payload, PayloadStream, Registration,
    Registry, RegistryError, ResponseEnvelope, SpecRef,
};

/// A client of one service, which runs every operation that is bound to HTTP.
///
/// A clone is the same client. Put its operations into a registry with [`bind`](Self::bind), or run them with the
/// client's own `execute` and `subscribe`:
///
/// ```no_run
/// # use ops_runtime::{Call, CallError, Operation};
/// # async fn show<ShowPetById: Call>(input: ShowPetById::Input) -> Result<ShowPetById::Output, CallError> {
/// use ops_runtime::http::{HttpClient, HttpConfig};
///
/// let client = HttpClient::new(HttpConfig::new().with_base_url("https://pets.example.com/v1"))?;
/// let pet = client.execute::<ShowPetById>(input).await?;
/// # Ok(pet.into_data()) }
/// ```
#[derive(Clone)]
pub struct HttpClient {
    pub(super) remote: Remote,
    /// The operations that the client was given, or that it has run.
    pub(super) registry: Registry,
}

impl HttpClient {
    /// A client of a service.
    ///
    /// # Errors
    /// A `VALIDATION_ERROR` that names the part of the configuration that cannot be, such as a URL that is not absolute
    /// or a header with a line break; an `EXECUTION_ERROR` if the built-in engine cannot be set up.
    pub fn new(config: HttpConfig) -> Result<Self, CallError> {
        let registry = Registry::builder().policy(config.policy()).build();
        Ok(Self { remote: Remote(Arc::new(Settings::new(config)?)), registry })
    }

    /// The operations with this client as their handler, ready for `registry.register_all(..)`.
    pub fn bind<S: Into<SpecRef>>(&self, specs: impl IntoIterator<Item = S>) -> Vec<Registration> {
        let handler = Handler::endpoint(self.remote.clone());
        specs.into_iter().map(|spec| Registration::new(spec, handler.clone())).collect()
    }

    /// Adds operations that the client can run by their id; those run by their type need not be added.
    ///
    /// # Errors
    /// If an id is taken, or not an id.
    pub fn add<S: Into<SpecRef>>(&self, specs: impl IntoIterator<Item = S>) -> Result<(), RegistryError> {
        self.registry.register_all(self.bind(specs))
    }

    #[cfg(feature = "openapi")]
    pub(super) fn settings(&self) -> &Settings {
        &self.remote.0
    }

    /// The operations that the client can run by their id, in the order of their ids.
    pub fn list(&self) -> Vec<SpecRef> {
        self.registry.list()
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.remote.0.base_url.as_ref().and_then(Url::host_str);
        f.debug_struct("HttpClient").field("host", &host).finish_non_exhaustive()
    }
}

/// The service as an endpoint: what a registration holds, without the client's own operations.
#[derive(Clone)]
pub(super) struct Remote(Arc<Settings>);

impl Endpoint for Remote {
    fn call(
        &self,
        spec: &OperationSpec,
        input: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let (settings, binding) = (self.0.clone(), bound(spec));
        let request = binding.and_then(|binding| encode(binding, spec.kind, &settings, &input));
        let described = binding_forms(spec);
        Box::pin(
            async move {
                let exchange = async {
                    let response = answer(&settings, request?).await?;
                    response::read(response, &described, settings.max_response).await
                };
                limited(settings.timeout, exchange).await
            }
            .instrument(span(spec)),
        )
    }

    fn subscribe(
        &self,
        spec: &OperationSpec,
        input: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<PayloadStream, CallError>> {
        let (settings, binding) = (self.0.clone(), bound(spec));
        let request = binding.and_then(|binding| encode(binding, spec.kind, &settings, &input));
        let (described, data) = (binding_forms(spec), Data::of(spec));
        Box::pin(
            async move {
                let exchange = async {
                    let response = answer(&settings, request?).await?;
                    events::open(response, data, &described, &settings).await
                };
                limited(settings.timeout, exchange).await
            }
            .instrument(span(spec)),
        )
    }
}

impl Endpoint for HttpClient {
    fn call(
        &self,
        spec: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        self.remote.call(spec, input, context)
    }

    fn subscribe(
        &self,
        spec: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<PayloadStream, CallError>> {
        self.remote.subscribe(spec, input, context)
    }
}

fn bound(spec: &OperationSpec) -> Result<&HttpBinding, CallError> {
    spec.http().ok_or_else(|| CallError::execution(format!("`{}` is not bound to HTTP", spec.id)))
}

fn binding_forms(spec: &OperationSpec) -> Described {
    spec.http().map(Described::new).unwrap_or_default()
}

/// What a log may know of a request: the path's template, but no value of the input.
fn span(spec: &OperationSpec) -> Span {
    let (method, path) = spec.http().map_or(("", ""), |binding| (binding.method.as_ref(), binding.path.as_ref()));
    debug_span!("http", operation = %spec.id, method, path, status = field::Empty)
}

async fn answer(settings: &Settings, request: http::Request<RequestBody>) -> Result<EngineResponse, CallError> {
    let Answer { response, url } = send(settings, request).await?;
    let status = response.status().as_u16();
    Span::current().record("status", status);
    debug!(status, redirected = url.is_some(), "response");
    Ok(response)
}

/// Gives up after the service's timeout.
pub(super) async fn limited<T>(
    timeout: Option<Duration>,
    work: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    let Some(timeout) = timeout else { return work.await };
    tokio::time::timeout(timeout, work).await.unwrap_or_else(|_| {
        let milliseconds = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let message = format!("the server did not answer within {timeout:?}");
        Err(CallError::new(ErrorCode::Timeout, message).with_details(json!({ "timeout": milliseconds })))
    })
}

#[cfg(test)]
mod tests;
