//! The interface through which programs call operations.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

use crate::model::protocol::tool_failed;
use crate::run::first_items::first_items;
use crate::run::registry::Exact;
use crate::{BoxFuture, CallError, CallOptions, CallPolicy, Caller, Decision, OperationKind, OperationSpec};

/// Runs the calls of a program, and decides which of them are allowed.
pub trait Host: Send + Sync {
    /// Calls an operation.
    fn call<'a>(&'a self, id: &'a str, input: Value) -> BoxFuture<'a, Result<Value, CallError>>;

    /// Calls an operation that [`decide`](Self::decide) asked about, and to whose call with this input the user has agreed. The
    /// default calls it like any other.
    fn call_approved<'a>(&'a self, id: &'a str, input: Value) -> BoxFuture<'a, Result<Value, CallError>> {
        self.call(id, input)
    }

    /// Decides if the operation may run with this input.
    ///
    /// When a program goes on, this is asked again for each call without a result, since rules change while programs
    /// wait. An approval or a refusal that was given to the call stays, unless the host denies the call by now.
    fn decide(&self, id: &str, input: &Value) -> Decision;

    /// Checks the input of a call before the user is asked to approve it. The default accepts every input.
    ///
    /// # Errors
    /// The error that the call itself would fail with.
    fn check(&self, id: &str, input: &Value) -> Result<(), CallError> {
        let _ = (id, input);
        Ok(())
    }

    /// True if the operation changes nothing, so that it may be repeated if its result was lost: see
    /// [`OperationSpec::may_change`].
    fn is_query(&self, id: &str) -> bool;

    /// Implements `search(words, limit)`; `None`, the default, if programs have no such function.
    fn search(&self) -> Option<&dyn Search> {
        None
    }

    /// Implements `describe(id, detail)`; `None`, the default, if programs have no such function.
    fn describe(&self) -> Option<&dyn Describe> {
        None
    }
}

/// Finds operations for programs.
pub trait Search: Send + Sync {
    /// The operations that match the words, as JSON; at most `limit`, if that is given.
    fn search<'a>(&'a self, words: &'a str, limit: Option<usize>) -> BoxFuture<'a, Result<Value, CallError>>;
}

/// Describes operations to programs.
pub trait Describe: Send + Sync {
    /// A description of the operation, as JSON. The detail is the program's second argument.
    fn describe<'a>(&'a self, id: &'a str, detail: &'a Value) -> BoxFuture<'a, Result<Value, CallError>>;
}

/// A host that calls a registry, a scoped registry, or another caller.
///
/// Programs get the data of results, and of a subscription a list of its first items: at most 100, and those of 20 seconds. A
/// failed item is an object with the member `error`. A subscription that stays open with fewer items is collected for all of
/// the 20 seconds, which count as time of the program ([`Limits::time`](super::Limits::time)): collect several at once, by
/// `Promise.all`.
///
/// A member of an input that the operation would ignore is a `VALIDATION_ERROR`: it is a misspelt one. If the operation runs in
/// another process, so is each member that its schema neither declares nor allows by `additionalProperties`.
///
/// ```
/// # use ops_runtime::{Registry, access::Identity};
/// use ops_runtime::access::CallPolicy;
/// use ops_runtime::program::CallerHost;
///
/// # let registry = Registry::new();
/// let specs = registry.list();
/// let ann = registry.scoped(Identity::new("ann"));
/// let host = CallerHost::new(ann.clone(), specs.iter().map(|spec| &**spec), &CallPolicy::new());
/// // Inputs are checked before the user is asked to approve a call.
/// let host = host.with_check(move |id, input| ann.check_input(id, input));
/// ```
pub struct CallerHost<C> {
    caller: C,
    operations: HashMap<String, Known>,
    check: Option<Check>,
}

/// The facts that a host knows about an operation.
struct Known {
    decision: Decision,
    is_stream: bool,
    may_change: bool,
}

/// Tells which inputs would be refused.
type Check = Box<dyn Fn(&str, &Value) -> Result<(), CallError> + Send + Sync>;

impl<C: Caller> CallerHost<C> {
    /// A host that calls these operations, as far as the policy allows.
    pub fn new<'a>(caller: C, specs: impl IntoIterator<Item = &'a OperationSpec>, policy: &CallPolicy) -> Self {
        let known = |spec: &OperationSpec| Known {
            decision: policy.decide(spec),
            is_stream: spec.kind == OperationKind::Subscription,
            may_change: spec.may_change(),
        };
        let operations = specs.into_iter().map(|spec| (spec.id.clone().into_owned(), known(spec)));
        Self { caller, operations: operations.collect(), check: None }
    }

    /// Checks inputs before the user is asked to approve a call: see [`Host::check`].
    #[must_use]
    pub fn with_check(mut self, check: impl Fn(&str, &Value) -> Result<(), CallError> + Send + Sync + 'static) -> Self {
        self.check = Some(Box::new(check));
        self
    }
}

impl<C: Caller> Host for CallerHost<C> {
    fn call<'a>(&'a self, id: &'a str, input: Value) -> BoxFuture<'a, Result<Value, CallError>> {
        Box::pin(async move {
            let mut options = CallOptions::new();
            options.extensions.insert_own(Exact);
            if self.operations.get(id).is_some_and(|known| known.is_stream) {
                let stream = self.caller.stream_with(id, input, options).await?;
                let first = first_items(stream, |error| error).await?;
                return Ok(Value::Array(first.items));
            }
            let envelope = self.caller.call_with(id, input, options).await?;
            if envelope.meta.is_error() {
                return Err(tool_failed().with_details(envelope.data));
            }
            Ok(envelope.data)
        })
    }

    fn decide(&self, id: &str, _: &Value) -> Decision {
        self.operations.get(id).map_or(Decision::Deny, |known| known.decision)
    }

    fn check(&self, id: &str, input: &Value) -> Result<(), CallError> {
        self.check.as_ref().map_or(Ok(()), |check| check(id, input))
    }

    fn is_query(&self, id: &str) -> bool {
        self.operations.get(id).is_some_and(|known| !known.may_change)
    }
}

impl<C: fmt::Debug> fmt::Debug for CallerHost<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerHost").field("caller", &self.caller).finish_non_exhaustive()
    }
}
