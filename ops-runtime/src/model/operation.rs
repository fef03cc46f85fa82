//! Operations as types: their input, their output and the spec that describes them.
//!
//! `#[operation]` and the generator write these impls. By hand:
//!
//! ```
//! use ops_runtime::{Call, Operation};
//! use ops_runtime::spec::OperationSpec;
//!
//! struct Double;
//! impl Operation for Double {
//!     type Input = i64;
//!     type Output = i64;
//!     const SPEC: &'static OperationSpec = &OperationSpec::query("math.double");
//! }
//! impl Call for Double {}
//!
//! assert_eq!(Double::SPEC.namespace(), "math");
//! ```

use serde_core::Serialize;
use serde_core::de::DeserializeOwned;

use crate::OperationSpec;

/// A named unit of work with an input and an output type.
///
/// The type only names the operation; it is never constructed by a call.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operation",
    label = "this type names no operation",
    note = "name the type that `#[operation]` or the generator made, such as `petstore::ShowPetById`"
)]
pub trait Operation: 'static {
    /// The input of the operation: one JSON object, in Rust.
    type Input: Serialize + DeserializeOwned + Send + 'static;
    /// The output of the operation; for a subscription, one item.
    type Output: Serialize + DeserializeOwned + Send + 'static;
    /// The operation as data.
    const SPEC: &'static OperationSpec;
}

/// An operation with one result: a query or a mutation, run by `execute`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be executed",
    label = "this is not a query or a mutation",
    note = "a subscription gives a stream of results: use `subscribe::<{Self}>(input)`"
)]
pub trait Call: Operation {}

/// An operation with a stream of results, run by `subscribe`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be subscribed to",
    label = "this is not a subscription",
    note = "a query or a mutation gives one result: use `execute::<{Self}>(input)`"
)]
pub trait Subscribe: Operation {}

/// A request that an API sends to its users: a webhook, or a callback of an operation.
///
/// The generator makes a type for each one of a document. The type only names the request: `webhooks::decode` (feature
/// `webhooks`) reads what the API sent.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a webhook",
    label = "this type names no webhook",
    note = "name a type of the generated module `webhooks`, such as `shop::webhooks::NewOrder`"
)]
pub trait Webhook: 'static {
    /// What the API sends, as JSON.
    type Payload: DeserializeOwned + Send + 'static;
    /// The webhook as data: its id, its description, and the schema of its payload, which is the output.
    const SPEC: &'static OperationSpec;
}
