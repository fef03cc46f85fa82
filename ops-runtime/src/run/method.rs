//! Operations as methods: the return types of generated traits.
//!
//! ```
//! use ops_runtime::mock::MockCaller;
//! use ops_runtime::registry::Execute;
//! use ops_runtime::spec::OperationSpec;
//! use ops_runtime::{Call, Caller, Operation};
//! use std::time::Duration;
//!
//! struct ShowPet;
//! impl Operation for ShowPet {
//!     type Input = String;
//!     type Output = String;
//!     const SPEC: &'static OperationSpec = &OperationSpec::query("pets.show");
//! }
//! impl Call for ShowPet {}
//!
//! /// As the generator writes it.
//! trait Methods: Caller + Sized {
//!     fn show_pet(&self, input: impl Into<String>) -> Execute<'_, Self, ShowPet> {
//!         Execute::new(self, input)
//!     }
//! }
//! impl<C: Caller> Methods for C {}
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ops_runtime::CallError> {
//! let shop = MockCaller::new().on::<ShowPet>(|id| Ok(format!("pet {id}")));
//! assert_eq!(shop.show_pet("7").await?.data, "pet 7");
//! assert_eq!(shop.show_pet("8").with_timeout(Duration::from_secs(1)).await?.data, "pet 8");
//!
//! // It is a future like any other, and `send` makes one for a task of its own.
//! let pets = futures_util::future::try_join_all(["1", "2"].map(|id| shop.show_pet(id))).await?;
//! assert_eq!(pets[1].data, "pet 2");
//! let pet = tokio::spawn(shop.show_pet("9").send()).await.expect("it does not panic")?;
//! assert_eq!(pet.data, "pet 9");
//! # Ok(()) }
//! ```

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use serde_json::Value;

use crate::model::futures::BoxFuture;
use crate::{
    Call, CallError, CallOptions, Caller, CancelToken, EnvelopeStream, Identity, Operation, OutputPolicy, ProgressSink,
    ResponseEnvelope, Subscribe,
};

macro_rules! method {
    ($(#[$doc:meta])* $name:ident, $kind:ident, $run:ident -> $result:ty) => {
        $(#[$doc])*
        pub struct $name<'c, C, Op: Operation> {
            caller: &'c C,
            options: CallOptions,
            /// `None` once the call runs.
            input: Option<Op::Input>,
            running: Option<BoxFuture<'c, Result<$result, CallError>>>,
        }

        impl<'c, C: Caller, Op: $kind> $name<'c, C, Op> {
            /// An operation, its input, and its caller.
            pub fn new(caller: &'c C, input: impl Into<Op::Input>) -> Self {
                Self { caller, options: CallOptions::default(), input: Some(input.into()), running: None }
            }

            /// The call as a future that owns a clone of its caller: for `tokio::spawn` and for a `JoinSet`.
            ///
            /// Like this one, it runs when it is polled. A clone of a caller is the same caller.
            pub fn send(self) -> impl Future<Output = Result<$result, CallError>> + Send + use<C, Op>
            where
                C: Clone,
            {
                let Self { options, input, .. } = self;
                let caller = self.caller.clone();
                async move { caller.$run::<Op>(input.ok_or_else(begun)?, options).await }
            }

            /// Sets the options of the call. They replace all that were set before; the other methods add to them.
            pub fn with_options(self, options: CallOptions) -> Self {
                self.map_options(|_| options)
            }

            /// Sets the timeout, from now.
            pub fn with_timeout(self, timeout: Duration) -> Self {
                self.map_options(|options| options.with_timeout(timeout))
            }

            /// Sets a token that cancels the call.
            pub fn with_cancel(self, cancel: CancelToken) -> Self {
                self.map_options(|options| options.with_cancel(cancel))
            }

            /// Sets the identity of the caller, against which the operation's access rules are checked.
            pub fn with_identity(self, identity: Identity) -> Self {
                self.map_options(|options| options.with_identity(identity))
            }

            /// Sets what happens to a result that does not match its schema.
            pub fn with_policy(self, policy: OutputPolicy) -> Self {
                self.map_options(|options| options.with_policy(policy))
            }

            /// Adds metadata for the handler under a key.
            pub fn with_metadata(self, key: impl Into<String>, value: impl Into<Value>) -> Self {
                self.map_options(|options| options.with_metadata(key, value))
            }

            /// Sets the receiver of progress reports.
            pub fn with_progress(self, progress: ProgressSink) -> Self {
                self.map_options(|options| options.with_progress(progress))
            }

            pub(crate) fn map_options(mut self, set: impl FnOnce(CallOptions) -> CallOptions) -> Self {
                self.options = set(self.options);
                self
            }
        }

        impl<C: Caller, Op: $kind> Future for $name<'_, C, Op> {
            type Output = Result<$result, CallError>;

            fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
                if let Some(input) = self.input.take() {
                    let options = std::mem::take(&mut self.options);
                    self.running = Some(Box::pin(self.caller.$run::<Op>(input, options)));
                }
                let Some(running) = &mut self.running else { return Poll::Ready(Err(begun())) };
                let result = ready!(running.as_mut().poll(task));
                self.running = None;
                Poll::Ready(result)
            }
        }

        // Only boxed parts are pinned.
        impl<C, Op: Operation> Unpin for $name<'_, C, Op> {}

        impl<C, Op: Operation> fmt::Debug for $name<'_, C, Op> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // An input may hold secrets.
                f.debug_struct(stringify!($name)).field("operation", &Op::SPEC.id).finish_non_exhaustive()
            }
        }
    };
}

method! {
    /// A query or a mutation before it runs: the future of its result, whose options can be set first.
    #[must_use = "an operation runs when this is awaited"]
    Execute, Call, execute_with -> ResponseEnvelope<Op::Output>
}

method! {
    /// A subscription before it is opened: the future of its stream, whose options can be set first.
    #[must_use = "a subscription opens when this is awaited"]
    Open, Subscribe, subscribe_with -> EnvelopeStream<Op::Output>
}

impl<C: Caller, Op: Subscribe> Open<'_, C, Op> {
    /// Sets how long a reader of the subscription may wait for the next item; then it ends with a `TIMEOUT`.
    pub fn with_idle_timeout(self, timeout: Duration) -> Self {
        self.map_options(|options| options.with_idle_timeout(timeout))
    }
}

/// The error of a call that was polled before.
#[cold]
fn begun() -> CallError {
    CallError::execution("the call has begun already")
}

#[cfg(feature = "http")]
impl<'c, C, Op: Operation> Execute<'c, C, Op> {
    /// The caller, the input, and the options of the call.
    pub(crate) fn into_parts(self) -> (&'c C, Result<Op::Input, CallError>, CallOptions) {
        (self.caller, self.input.ok_or_else(begun), self.options)
    }
}
