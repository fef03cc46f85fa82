//! Types that can run operations: the registry, a part of it, or a client by itself.
//!
//! ```
//! use ops_runtime::{CallError, Caller};
//! use serde_json::json;
//!
//! async fn ask(caller: &impl Caller) -> Result<serde_json::Value, CallError> {
//!     Ok(caller.call("petstore.showPetById", json!({ "petId": 7 })).await?.into_data())
//! }
//! ```

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use serde_json::Value;

use crate::run::handler::Typed;
use crate::run::pipeline::{self, EnvelopeStream, Invocation, Origin};
use crate::{
    Call, CallError, CallOptions, Context, Identity, Operation, Registry, ResponseEnvelope, SpecRef, Subscribe,
};

/// A type that can run operations, by type or by id.
///
/// The types of this crate that implement it have methods with the same names, so that it need not be imported.
pub trait Caller: Send + Sync {
    /// Runs a query or a mutation by its type, with options.
    fn execute_with<Op: Call>(
        &self,
        input: impl Into<Op::Input> + Send,
        options: CallOptions,
    ) -> impl Future<Output = Result<ResponseEnvelope<Op::Output>, CallError>> + Send;

    /// Starts a subscription by its type, with options.
    fn subscribe_with<Op: Subscribe>(
        &self,
        input: impl Into<Op::Input> + Send,
        options: CallOptions,
    ) -> impl Future<Output = Result<EnvelopeStream<Op::Output>, CallError>> + Send;

    /// Runs a query or a mutation by its id, with options.
    fn call_with(
        &self,
        id: &str,
        input: Value,
        options: CallOptions,
    ) -> impl Future<Output = Result<ResponseEnvelope<Value>, CallError>> + Send;

    /// Starts a subscription by its id, with options.
    fn stream_with(
        &self,
        id: &str,
        input: Value,
        options: CallOptions,
    ) -> impl Future<Output = Result<EnvelopeStream<Value>, CallError>> + Send;

    /// Runs a query or a mutation by its type.
    fn execute<Op: Call>(
        &self,
        input: impl Into<Op::Input> + Send,
    ) -> impl Future<Output = Result<ResponseEnvelope<Op::Output>, CallError>> + Send {
        self.execute_with::<Op>(input, CallOptions::default())
    }

    /// Starts a subscription by its type.
    fn subscribe<Op: Subscribe>(
        &self,
        input: impl Into<Op::Input> + Send,
    ) -> impl Future<Output = Result<EnvelopeStream<Op::Output>, CallError>> + Send {
        self.subscribe_with::<Op>(input, CallOptions::default())
    }

    /// Runs a query or a mutation by its id.
    fn call(&self, id: &str, input: Value) -> impl Future<Output = Result<ResponseEnvelope<Value>, CallError>> + Send {
        self.call_with(id, input, CallOptions::default())
    }

    /// Starts a subscription by its id.
    fn stream(&self, id: &str, input: Value) -> impl Future<Output = Result<EnvelopeStream<Value>, CallError>> + Send {
        self.stream_with(id, input, CallOptions::default())
    }
}

/// A reference to a caller is a caller, too. An `Arc` is not: its methods would hide those of its content, whose calls
/// are admitted at once and hold no reference to their caller.
impl<C: Caller> Caller for &C {
    fn execute_with<Op: Call>(
        &self,
        input: impl Into<Op::Input> + Send,
        options: CallOptions,
    ) -> impl Future<Output = Result<ResponseEnvelope<Op::Output>, CallError>> + Send {
        C::execute_with::<Op>(self, input, options)
    }

    fn subscribe_with<Op: Subscribe>(
        &self,
        input: impl Into<Op::Input> + Send,
        options: CallOptions,
    ) -> impl Future<Output = Result<EnvelopeStream<Op::Output>, CallError>> + Send {
        C::subscribe_with::<Op>(self, input, options)
    }

    fn call_with(
        &self,
        id: &str,
        input: Value,
        options: CallOptions,
    ) -> impl Future<Output = Result<ResponseEnvelope<Value>, CallError>> + Send {
        C::call_with(self, id, input, options)
    }

    fn stream_with(
        &self,
        id: &str,
        input: Value,
        options: CallOptions,
    ) -> impl Future<Output = Result<EnvelopeStream<Value>, CallError>> + Send {
        C::stream_with(self, id, input, options)
    }
}

/// The operation of a call: by its type, or by its id.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    Type(Typed),
    Id(&'a str),
}

impl Target<'_> {
    #[inline(always)]
    pub(crate) fn of<Op: Operation>() -> Self {
        Self::Type(Typed::of::<Op>())
    }

    /// The id of the operation.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Type(typed) => &typed.spec.id,
            Self::Id(id) => id,
        }
    }
}

/// Implements [`Caller`] and methods with the same names, by one function that makes the [`Invocation`] of a call.
///
/// `$invoke` takes the caller, the options (`None` for the default), and the [`Target`]. `$execute` is the function that runs
/// a call by type: [`pipeline::execute`], or [`pipeline::execute_elsewhere`] for a client.
macro_rules! impl_caller {
    ($caller:ty, $invoke:expr) => {
        $crate::run::caller::impl_caller!($caller, $invoke, execute);
    };
    ($caller:ty, $invoke:expr, $execute:ident) => {
        impl $caller {
            /// Runs a query or a mutation by its type.
            ///
            /// The call is admitted at once, and its handler runs when the future is polled. A deadline of the options counts
            /// from when it was set, and the operation's own timeout from when its handler first waits.
            ///
            /// # Errors
            /// If there is no such operation or handler, if access is denied, if input or output do not match their
            /// schema, if the handler fails, or if the call is cancelled or times out.
            pub fn execute<Op: $crate::Call>(&self, input: impl Into<Op::Input>) -> $crate::registry::Execution<Op> {
                $crate::run::pipeline::$execute::<Op>(
                    $invoke(self, None, $crate::run::caller::Target::of::<Op>()),
                    input.into(),
                )
            }

            /// Runs a query or a mutation by its type, with options.
            ///
            /// # Errors
            /// Those of [`execute`](Self::execute).
            pub fn execute_with<Op: $crate::Call>(
                &self,
                input: impl Into<Op::Input>,
                options: $crate::CallOptions,
            ) -> $crate::registry::Execution<Op> {
                $crate::run::pipeline::$execute::<Op>(
                    $invoke(self, Some(options), $crate::run::caller::Target::of::<Op>()),
                    input.into(),
                )
            }

            /// Starts a subscription by its type.
            ///
            /// # Errors
            /// Those of [`execute`](Self::execute); later ones are items of the stream.
            pub fn subscribe<Op: $crate::Subscribe>(
                &self,
                input: impl Into<Op::Input>,
            ) -> $crate::registry::Opening<Op> {
                Box::pin($crate::run::pipeline::subscribe::<Op>(
                    $invoke(self, None, $crate::run::caller::Target::of::<Op>()).map(Into::into),
                    input.into(),
                ))
            }

            /// Starts a subscription by its type, with options.
            ///
            /// # Errors
            /// Those of [`subscribe`](Self::subscribe).
            pub fn subscribe_with<Op: $crate::Subscribe>(
                &self,
                input: impl Into<Op::Input>,
                options: $crate::CallOptions,
            ) -> $crate::registry::Opening<Op> {
                Box::pin($crate::run::pipeline::subscribe::<Op>(
                    $invoke(self, Some(options), $crate::run::caller::Target::of::<Op>()).map(Into::into),
                    input.into(),
                ))
            }

            /// Runs a query or a mutation by its id.
            ///
            /// It is admitted as by [`execute`](Self::execute), and the future holds no reference to its caller.
            ///
            /// # Errors
            /// Those of [`execute`](Self::execute).
            pub fn call(&self, id: &str, input: serde_json::Value) -> $crate::registry::CallFuture {
                let call = $invoke(self, None, $crate::run::caller::Target::Id(id)).map(Into::into);
                $crate::run::pipeline::call(call, id, input)
            }

            /// Runs a query or a mutation by its id, with options.
            ///
            /// # Errors
            /// Those of [`execute`](Self::execute).
            pub fn call_with(
                &self,
                id: &str,
                input: serde_json::Value,
                options: $crate::CallOptions,
            ) -> $crate::registry::CallFuture {
                let call = $invoke(self, Some(options), $crate::run::caller::Target::Id(id)).map(Into::into);
                $crate::run::pipeline::call(call, id, input)
            }

            /// Starts a subscription by its id.
            ///
            /// # Errors
            /// Those of [`subscribe`](Self::subscribe).
            pub async fn stream(
                &self,
                id: &str,
                input: serde_json::Value,
            ) -> Result<$crate::EnvelopeStream<serde_json::Value>, $crate::CallError> {
                let call = $invoke(self, None, $crate::run::caller::Target::Id(id)).map(Into::into);
                let call = call.map_err(|error: $crate::CallError| error.with_operation(id.to_owned()))?;
                $crate::run::pipeline::stream(call, id, input).await
            }

            /// Starts a subscription by its id, with options.
            ///
            /// # Errors
            /// Those of [`subscribe`](Self::subscribe).
            pub async fn stream_with(
                &self,
                id: &str,
                input: serde_json::Value,
                options: $crate::CallOptions,
            ) -> Result<$crate::EnvelopeStream<serde_json::Value>, $crate::CallError> {
                let call = $invoke(self, Some(options), $crate::run::caller::Target::Id(id)).map(Into::into);
                let call = call.map_err(|error: $crate::CallError| error.with_operation(id.to_owned()))?;
                $crate::run::pipeline::stream(call, id, input).await
            }
        }

        impl $crate::Caller for $caller {
            fn execute_with<Op: $crate::Call>(
                &self,
                input: impl Into<Op::Input> + Send,
                options: $crate::CallOptions,
            ) -> impl Future<Output = Result<$crate::ResponseEnvelope<Op::Output>, $crate::CallError>> + Send {
                <$caller>::execute_with::<Op>(self, input, options)
            }

            fn subscribe_with<Op: $crate::Subscribe>(
                &self,
                input: impl Into<Op::Input> + Send,
                options: $crate::CallOptions,
            ) -> impl Future<Output = Result<$crate::EnvelopeStream<Op::Output>, $crate::CallError>> + Send {
                <$caller>::subscribe_with::<Op>(self, input, options)
            }

            fn call_with(
                &self,
                id: &str,
                input: serde_json::Value,
                options: $crate::CallOptions,
            ) -> impl Future<Output = Result<$crate::ResponseEnvelope<serde_json::Value>, $crate::CallError>> + Send
            {
                <$caller>::call_with(self, id, input, options)
            }

            fn stream_with(
                &self,
                id: &str,
                input: serde_json::Value,
                options: $crate::CallOptions,
            ) -> impl Future<Output = Result<$crate::EnvelopeStream<serde_json::Value>, $crate::CallError>> + Send {
                <$caller>::stream_with(self, id, input, options)
            }
        }
    };
}
pub(crate) use impl_caller;

impl Registry {
    #[inline]
    fn invoke(&self, options: Option<CallOptions>, _: Target<'_>) -> Result<Origin<'_>, CallError> {
        Ok(match options {
            None => Origin::Owner(self, None),
            Some(options) => Invocation::with(self, options).into(),
        })
    }
}

impl_caller!(Registry, Registry::invoke);

/// A registry for one caller: every call is checked against this identity.
#[derive(Debug, Clone)]
pub struct Scoped {
    registry: Registry,
    identity: Arc<Identity>,
}

impl Registry {
    /// A registry for one caller: every call is checked against this identity.
    pub fn scoped(&self, identity: Identity) -> Scoped {
        Scoped::new(self.clone(), identity)
    }

    /// Checks an input as the call of a program does before it runs: against its schema, and whether a request can be made of it.
    ///
    /// A member that the operation would ignore is an error, too: people who are asked about a call agree to all of its input.
    /// If the operation runs in another process, so is each member that its schema neither declares nor allows by
    /// `additionalProperties`. Other calls by id of the registry's owner ignore such members.
    ///
    /// Nothing is sent or run, and no token is fetched. For others than the owner, see [`Scoped::check_input`].
    ///
    /// ```
    /// # use ops_runtime::Registry;
    /// # use ops_runtime::spec::{OperationSpec, Schema};
    /// # use serde_json::json;
    /// let input = Schema::text(r#"{ "type": "object", "required": ["a"] }"#);
    /// let registry = Registry::new();
    /// registry.register_spec(OperationSpec::query("math.add").with_input(input))?;
    /// assert!(registry.check_input("math.add", &json!({ "a": 1 })).is_ok());
    /// assert_eq!(registry.check_input("math.add", &json!({})).unwrap_err().code().as_str(), "VALIDATION_ERROR");
    /// # Ok::<(), ops_runtime::registry::RegistryError>(())
    /// ```
    ///
    /// # Errors
    /// The error that the call would fail with: an `OPERATION_NOT_FOUND`, or a `VALIDATION_ERROR` that lists what is wrong.
    pub fn check_input(&self, id: &str, input: &Value) -> Result<(), CallError> {
        pipeline::check_input(Invocation::plain(self), id, input)
    }
}

impl Scoped {
    pub(crate) fn new(registry: Registry, identity: Identity) -> Self {
        Self { registry, identity: Arc::new(identity) }
    }

    /// The identity of the caller.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Checks an input as [`Registry::check_input`] does, for a call of this identity.
    ///
    /// # Errors
    /// Those of [`Registry::check_input`], and an `ACCESS_DENIED` if the identity may not run the operation.
    pub fn check_input(&self, id: &str, input: &Value) -> Result<(), CallError> {
        let call = Invocation::scoped(&self.registry, CallOptions::new(), &self.identity);
        pipeline::check_input(call, id, input)
    }

    /// The operations that the identity may run, in the order of their ids.
    pub fn list(&self) -> Vec<SpecRef> {
        let mut specs = self.registry.list();
        specs.retain(|spec| spec.access.allows(&self.identity));
        specs
    }
}

impl_caller!(Scoped, |scoped: &Scoped, options: Option<CallOptions>, _: Target<'_>| {
    Ok::<_, CallError>(Invocation::scoped(&scoped.registry, options.unwrap_or_default(), &scoped.identity))
});

/// The operations that a handler may call on behalf of its own call.
///
/// Such calls are trusted, unless their options have an identity: access was checked when the handler was called. They
/// have the handler's request as their parent, and end with its deadline, its cancellation, or when the handler is
/// dropped.
#[derive(Debug, Clone)]
pub struct Env {
    context: Context,
    namespaces: Option<BTreeSet<String>>,
}

impl Context {
    /// The operations of the registry, to be called on behalf of this call.
    #[doc(alias = "buildEnv")]
    pub fn env(&self) -> Env {
        Env::new(self.clone(), None)
    }

    /// The operations of some namespaces of the registry, to be called on behalf of this call.
    pub fn env_of<N: Into<String>>(&self, namespaces: impl IntoIterator<Item = N>) -> Env {
        Env::new(self.clone(), Some(namespaces.into_iter().map(Into::into).collect()))
    }
}

impl Env {
    pub(crate) fn new(context: Context, namespaces: Option<BTreeSet<String>>) -> Self {
        Self { context, namespaces }
    }

    /// The operations that can be called, in the order of their ids.
    pub fn list(&self) -> Vec<SpecRef> {
        let mut specs = self.context.registry.list();
        specs.retain(|spec| self.covers(spec.namespace()));
        specs
    }

    fn covers(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|namespaces| namespaces.contains(namespace))
    }

    fn invoke(&self, options: Option<CallOptions>, target: Target<'_>) -> Result<Invocation, CallError> {
        let id = target.id();
        let namespace = id.split_once('.').map_or(id, |(namespace, _)| namespace);
        if !self.covers(namespace) {
            return Err(pipeline::not_found(id, "operation not found in this environment"));
        }
        Ok(Invocation::nested(&self.context, options.unwrap_or_default()))
    }
}

impl_caller!(Env, Env::invoke);
