//! The client: an endpoint for a registry, and a caller by itself.

use std::fmt;
use std::sync::Arc;

use futures_util::StreamExt;
use http::HeaderName;
use http::header::{AUTHORIZATION, USER_AGENT};
use serde_json::Value;
use url::Url;

use super::HttpConfig;
use super::config::Checked;
use super::events::{self, Items};
use super::exchange::Exchange;
use super::idempotency;
use super::media::Described;
use super::per_call::PerCall;
use super::problem::Codes;
use super::request::{api, encode};
use super::response;
use super::retry::is_safe_to_repeat;
use super::secrets::Carried;
use super::send::{Label, Sent, limited, until};
use super::trace::Trace;
use crate::model::futures::BoxFuture;
use crate::run::context::{OpeningUntil, earlier, now};
use crate::{
    Bodies, CallError, Context, Endpoint, ErrorCode, Handler, Identity, OperationSpec, Payload, PayloadStream,
    Registration, Registry, RegistryError, ResponseEnvelope, SpecRef,
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
///
/// Generated modules add a method for each operation: with `use shop::Methods`, `client.show_pet(7).await?`.
#[derive(Clone)]
pub struct HttpClient {
    pub(super) service: Service,
    /// The handler of all its operations, by which registries know that they belong to one client.
    pub(super) handler: Handler,
    /// The operations that the client was given, by id, and those that it has run by type.
    pub(super) registry: Registry,
}

impl HttpClient {
    /// A client of a service.
    ///
    /// # Errors
    /// A `VALIDATION_ERROR` that names the invalid part of the configuration, such as a URL that is not absolute or a
    /// header with a line break; an `EXECUTION_ERROR` if the built-in engine cannot be set up.
    pub fn new(config: HttpConfig) -> Result<Self, CallError> {
        let registry = Registry::builder().with_policy(config.policy()).build();
        let service = Service(Arc::new(Checked::new(config)?));
        Ok(Self { handler: Handler::endpoint(service.clone()), service, registry })
    }

    /// The operations with this client as their handler, for `registry.register_all(..)`.
    ///
    /// Results then follow the registry's policy, not [`HttpConfig::with_policy`]. A name in
    /// [`HttpConfig::with_credentials`] that is not a known security scheme is logged at the level `WARN`, as is one in
    /// [`HttpConfig::with_server_variable`] that no server has.
    ///
    /// # Errors
    /// An `EXECUTION_ERROR` that names an operation that is not bound to an HTTP endpoint, or a `VALIDATION_ERROR` that
    /// names one of another namespace than that of [`HttpConfig::with_namespace`].
    pub fn bind<S: Into<SpecRef>>(&self, specs: impl IntoIterator<Item = S>) -> Result<Vec<Registration>, CallError> {
        let specs: Vec<SpecRef> = specs.into_iter().map(Into::into).collect();
        specs.iter().try_for_each(|spec| self.service.check_namespace(spec))?;
        match specs.iter().find(|spec| spec.http().is_none()) {
            Some(spec) => Err(unbound(spec)),
            None => Ok(self.registrations(specs)),
        }
    }

    pub(super) fn registrations<S: Into<SpecRef>>(&self, specs: impl IntoIterator<Item = S>) -> Vec<Registration> {
        let specs: Vec<SpecRef> = specs.into_iter().map(Into::into).collect();
        let bindings = || specs.iter().filter_map(|spec| spec.http());
        self.service.0.credentials.meet(bindings());
        self.service.0.settings.server_variables.meet(bindings());
        specs.into_iter().map(|spec| Registration::new(spec, self.handler.clone())).collect()
    }

    /// Adds operations that the client can run by their id; those run by their type need not be added.
    ///
    /// ```
    /// use ops_runtime::{HttpClient, HttpConfig};
    ///
    /// # mod shop {
    /// #     use ops_runtime::{binding::HttpBinding, spec::OperationSpec};
    /// #     pub fn operations() -> [OperationSpec; 1] {
    /// #         [OperationSpec::query("shop.listPets").with_http(HttpBinding::new("GET", "/pets"))]
    /// #     }
    /// # }
    /// let client = HttpClient::new(HttpConfig::new().with_base_url("https://shop.example.com/v1"))?;
    /// client.add(shop::operations())?;
    /// assert_eq!(client.list()[0].id, "shop.listPets");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If an id is taken or invalid.
    pub fn add<S: Into<SpecRef>>(&self, specs: impl IntoIterator<Item = S>) -> Result<(), RegistryError> {
        self.registry.register_all(self.registrations(specs))
    }

    /// What to set, if these operations need credentials, and the configuration has none that suffice for any of them.
    ///
    /// `None` if the configuration has headers of its own, since they may be credentials.
    ///
    /// ```
    /// use ops_runtime::binding::{HttpBinding, SecurityKind, SecurityRequirement, SecurityScheme};
    /// use ops_runtime::spec::OperationSpec;
    /// use ops_runtime::{HttpClient, HttpConfig};
    ///
    /// const KEY: &[SecurityScheme] = &[SecurityScheme::new("petKey", SecurityKind::Bearer)];
    /// const BINDING: HttpBinding = HttpBinding::new("GET", "/pets").with_security(const { &[SecurityRequirement::new(KEY)] });
    /// let pets = OperationSpec::query("shop.listPets").with_http(BINDING);
    /// let client = HttpClient::new(HttpConfig::new().with_credentials_from_env("NO_SHOP"))?;
    /// let told = client.without_credentials([&pets]).expect("none are set");
    /// assert_eq!(
    ///     told,
    ///     "1 operation needs credentials, `petKey`, and they are not set: set `NO_SHOP_PET_KEY` or `NO_SHOP_TOKEN`"
    /// );
    /// # Ok::<(), ops_runtime::CallError>(())
    /// ```
    pub fn without_credentials<'a>(&self, operations: impl IntoIterator<Item = &'a OperationSpec>) -> Option<String> {
        let Checked { settings, credentials, .. } = &*self.service.0;
        // They may be credentials that the document does not describe.
        let has_own = settings.headers.keys().any(|name| name != USER_AGENT);
        if has_own { None } else { credentials.lacking(operations.into_iter().filter_map(OperationSpec::http)) }
    }

    /// The headers of the configuration that the credentials of an operation replace. Commands warn of them.
    #[doc(hidden)]
    pub fn replaced_headers(&self, operation: &OperationSpec) -> Vec<HeaderName> {
        let replaced = |binding| self.service.0.credentials.headers(&operation.id, binding);
        operation.http().map(replaced).unwrap_or_default()
    }

    /// True if the credentials of [`HttpConfig::with_auth`] are sent to an operation. Commands warn if they are not.
    #[doc(hidden)]
    pub fn sends_auth(&self, operation: &OperationSpec) -> bool {
        let sends = |binding| self.service.0.credentials.sends_default(&operation.id, binding);
        operation.http().is_some_and(sends)
    }

    #[cfg(any(feature = "jwt", feature = "openapi"))]
    pub(super) fn checked(&self) -> &Checked {
        &self.service.0
    }

    /// The operations that the client can run by their id, in the order of their ids.
    pub fn list(&self) -> Vec<SpecRef> {
        self.registry.list()
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.service.0.settings.base_url.as_ref().and_then(Url::host_str);
        f.debug_struct("HttpClient").field("host", &host).finish_non_exhaustive()
    }
}

/// The error for an operation without a binding to HTTP.
fn unbound(spec: &OperationSpec) -> CallError {
    CallError::execution(format!(
        "`{}` has no HTTP request: call it on a `Registry` in which it is registered, or give it `http = \"METHOD /path\"`",
        spec.id
    ))
}

/// The service as an endpoint for registrations; it does not have the client's own operations.
#[derive(Clone)]
pub(super) struct Service(Arc<Checked>);

impl Service {
    /// Refuses an operation of another API than the one that the client is for: its server would get the credentials.
    fn check_namespace(&self, spec: &OperationSpec) -> Result<(), CallError> {
        match self.0.settings.namespace.as_deref() {
            Some(own) if own != spec.namespace() => {
                let (id, other) = (&spec.id, spec.namespace());
                let how = "`HttpConfig::with_namespace`";
                let message = format!("`{id}` is an operation of `{other}`, and the client is for `{own}`, by {how}");
                Err(CallError::new(ErrorCode::ValidationError, message))
            }
            _ => Ok(()),
        }
    }

    /// The exchange of a call, ready to be run.
    fn exchange(&self, spec: &OperationSpec, input: &Value, context: &Context) -> Result<Exchange, CallError> {
        self.check_namespace(spec)?;
        let binding = spec.http().ok_or_else(|| unbound(spec))?;
        let none = Bodies::default();
        let bodies = context.extension::<Bodies>().unwrap_or(&none);
        let settings = self.0.settings.clone();
        let options = PerCall::of(context)?;
        let mut request = encode(spec, binding, &settings, input, bodies, &options)?;
        let plan = self.0.credentials.plan(&spec.id, binding);
        let plan = if options.headers.contains_key(AUTHORIZATION) {
            plan.unwrap_or_default().without_authorization()
        } else {
            plan?
        };
        let token = context.identity().and_then(Identity::token);
        let plan = plan.for_caller(token, request.uri(), &settings)?.below(|| api(binding, &settings).ok());
        // The client's timeout is the default of its calls. An inherited deadline is none of the call's own.
        let timeout = settings.timeout.filter(|_| !options.has_deadline);
        let trace = settings.trace_context.then(|| Trace::of(context));
        let carried = Carried::new(&self.0, plan, options.headers, options.base_url);
        let retry = options.retry.unwrap_or_else(|| settings.retry.clone());
        // A call that is not to be retried leaves what the client says of the operation as it is.
        let named = retry.as_ref().or(settings.retry.as_ref()).is_some_and(|retry| retry.repeats(spec));
        let caller_may_repeat = is_safe_to_repeat(&request, named);
        let has_new_key =
            settings.idempotency_keys && idempotency::add_new(binding, &carried.own, request.headers_mut());
        let label = Label::of(spec);
        Ok(Exchange {
            settings,
            request,
            carried,
            label,
            trace,
            retry,
            is_safe_to_repeat: caller_may_repeat || has_new_key,
            caller_may_repeat,
            timeout,
            until: context.until(),
            deadline: None,
            goes_on: false,
            sent: Sent::default(),
        })
    }
}

impl Endpoint for Service {
    fn call(
        &self,
        spec: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let exchange = self.exchange(spec, &input, &context);
        let described = Described::new(spec);
        let codes = Codes::of(spec);
        let wants_bytes = context.extension::<Bodies>().is_some_and(Bodies::wants_output);
        let streamed = spec.http().filter(|_| wants_bytes).map(|binding| binding.responses.clone());
        let id = spec.id.clone();
        Box::pin(async move {
            let mut exchange = exchange?;
            let deadline = exchange.start().filter(|_| !exchange.caller_may_repeat);
            let (settings, carried) = (exchange.settings.clone(), exchange.carried.clone());
            let answered = limited(exchange.timeout, async {
                let response = exchange.run().await?;
                if let Some(described) = streamed {
                    let (carried, outcome) = (carried.clone(), exchange.outcome());
                    let failed =
                        move |error: CallError| carried.error(outcome.judged(error.with_operation(id.clone())));
                    let (limit, idle) = (settings.max_response, settings.idle_timeout);
                    return response::stream(response, &described, limit, idle, failed).await;
                }
                response::read(response, &described, settings.max_response).await
            });
            let answered = until(deadline, answered).await;
            answered.map_err(|error| carried.error(codes.named(exchange.outcome().judged(error))))
        })
    }

    fn subscribe(
        &self,
        spec: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<PayloadStream, CallError>> {
        let exchange = self.exchange(spec, &input, &context);
        let items = Items::of(spec);
        let opening = context.extension::<OpeningUntil>().map(|until| until.0);
        Box::pin(async move {
            let mut exchange = exchange?;
            let carried = exchange.carried.clone();
            // A handler may open another subscription with its context after its own was opened.
            let opening = opening.filter(|until| *until > now());
            let deadline = earlier(exchange.start(), opening).filter(|_| !exchange.caller_may_repeat);
            let settings = exchange.settings.clone();
            let opened = limited(exchange.timeout, async {
                let response = exchange.run().await?;
                events::open(response, items, &settings).await
            });
            let opened = until(deadline, opened).await;
            let outcome = exchange.outcome();
            let judged = move |error| carried.error(outcome.judged(error));
            let opened = opened.map_err(&judged)?;
            Ok(opened(exchange).map(move |item| item.map_err(&judged)).boxed())
        })
    }

    fn check(&self, spec: &OperationSpec, input: &Value, context: &Context) -> Result<(), CallError> {
        self.exchange(spec, input, context).map(drop)
    }

    fn streams_bodies(&self) -> bool {
        true
    }
}

impl Endpoint for HttpClient {
    fn call(
        &self,
        spec: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        self.service.call(spec, input, context)
    }

    fn subscribe(
        &self,
        spec: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<PayloadStream, CallError>> {
        self.service.subscribe(spec, input, context)
    }

    fn check(&self, spec: &OperationSpec, input: &Value, context: &Context) -> Result<(), CallError> {
        self.service.check(spec, input, context)
    }

    fn streams_bodies(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
