//! Operations as methods: what the methods of generated traits return.
//!
//! ```
//! use ops_runtime::mock::MockCaller;
//! use ops_runtime::registry::Execute;
//! use ops_runtime::spec::OperationSpec;
//! use ops_runtime::{Call, CallOptions, Caller, Operation};
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
//! let soon = CallOptions::new().with_timeout(Duration::from_secs(1));
//! assert_eq!(shop.show_pet("8").with_options(soon).await?.data, "pet 8");
//! # Ok(()) }
//! ```

use std::fmt;

use crate::model::futures::BoxFuture;
use crate::{Call, CallError, CallOptions, Caller, EnvelopeStream, Operation, ResponseEnvelope, Subscribe};

macro_rules! method {
    ($(#[$doc:meta])* $name:ident, $kind:ident, $run:ident -> $result:ty) => {
        $(#[$doc])*
        pub struct $name<'c, C, Op: Operation> {
            caller: &'c C,
            input: Op::Input,
            options: CallOptions,
        }

        impl<'c, C: Caller, Op: $kind> $name<'c, C, Op> {
            /// An operation, its input, and who runs it.
            pub fn new(caller: &'c C, input: impl Into<Op::Input>) -> Self {
                Self { caller, input: input.into(), options: CallOptions::default() }
            }

            /// Sets the options of the call, in place of those set before.
            pub fn with_options(mut self, options: CallOptions) -> Self {
                self.options = options;
                self
            }
        }

        impl<'c, C: Caller, Op: $kind> IntoFuture for $name<'c, C, Op> {
            type Output = Result<$result, CallError>;
            type IntoFuture = BoxFuture<'c, Self::Output>;

            fn into_future(self) -> Self::IntoFuture {
                Box::pin(self.caller.$run::<Op>(self.input, self.options))
            }
        }

        impl<C, Op: Operation> fmt::Debug for $name<'_, C, Op> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // An input may hold secrets.
                f.debug_struct(stringify!($name)).field("operation", &Op::SPEC.id).finish_non_exhaustive()
            }
        }
    };
}

method! {
    /// A query or a mutation that is ready to be run: await it, or set its options first.
    #[must_use = "an operation runs when this is awaited"]
    Execute, Call, execute_with -> ResponseEnvelope<Op::Output>
}

method! {
    /// A subscription that is ready to be opened: await it for its stream, or set its options first.
    #[must_use = "a subscription opens when this is awaited"]
    Open, Subscribe, subscribe_with -> EnvelopeStream<Op::Output>
}

#[cfg(feature = "http")]
impl<'c, C, Op: Operation> Execute<'c, C, Op> {
    /// Who runs the operation, its input, and the options of the call.
    pub(crate) fn into_parts(self) -> (&'c C, Op::Input, CallOptions) {
        (self.caller, self.input, self.options)
    }
}
