//! What programs call.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

use crate::run::registry::Exact;
use crate::{BoxFuture, CallError, CallOptions, CallPolicy, Caller, Decision, OperationKind, OperationSpec};

/// What a program calls, and what it may call.
pub trait Host: Send + Sync {
    /// Calls an operation.
    fn call<'a>(&'a self, id: &'a str, input: Value) -> BoxFuture<'a, Result<Value, CallError>>;

    /// Decides whether the operation runs with this input.
    ///
    /// When a program goes on, this is asked again for each call that has no answer yet, since rules change while programs
    /// wait. A yes or no that somebody gave to the call stays, unless it is denied by now.
    fn decide(&self, id: &str, input: &Value) -> Decision;

    /// Checks the input of a call before the user is asked to agree to the call. By default, every input passes.
    ///
    /// # Errors
    /// The error that the call itself would fail with.
    fn check(&self, id: &str, input: &Value) -> Result<(), CallError> {
        let _ = (id, input);
        Ok(())
    }

    /// True if the operation changes nothing, so that it may be called again when its result was lost.
    fn is_query(&self, id: &str) -> bool;

    /// Answers `search(words, limit)`; `None` if programs have no such function, which is the default.
    fn search(&self) -> Option<&dyn Search> {
        None
    }

    /// Answers `describe(id, detail)`; `None` if programs have no such function, which is the default.
    fn describe(&self) -> Option<&dyn Describe> {
        None
    }
}

/// Finds operations for programs.
pub trait Search: Send + Sync {
    /// The operations that the words may mean, as JSON; at most `limit`, if that is given.
    fn search<'a>(&'a self, words: &'a str, limit: Option<usize>) -> BoxFuture<'a, Result<Value, CallError>>;
}

/// Describes operations to programs.
pub trait Describe: Send + Sync {
    /// A description of the operation, as JSON. The detail is the program's second argument.
    fn describe<'a>(&'a self, id: &'a str, detail: &'a Value) -> BoxFuture<'a, Result<Value, CallError>>;
}

/// A host over a registry, a scoped registry, or another caller.
///
/// Programs get the data of results. Subscriptions are refused, since their results have no end. A member of an input that the
/// operation would ignore is a `VALIDATION_ERROR`: it is a misspelt one.
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
    operations: HashMap<String, (Decision, OperationKind)>,
    check: Option<Check>,
}

/// What tells which inputs would be refused.
type Check = Box<dyn Fn(&str, &Value) -> Result<(), CallError> + Send + Sync>;

impl<C: Caller> CallerHost<C> {
    /// A host that calls these operations, as far as the policy lets it.
    pub fn new<'a>(caller: C, specs: impl IntoIterator<Item = &'a OperationSpec>, policy: &CallPolicy) -> Self {
        let operations = specs.into_iter().map(|spec| (spec.id.clone().into_owned(), (policy.decide(spec), spec.kind)));
        Self { caller, operations: operations.collect(), check: None }
    }

    /// Checks inputs before the user is asked to agree to a call: see [`Host::check`].
    #[must_use]
    pub fn with_check(mut self, check: impl Fn(&str, &Value) -> Result<(), CallError> + Send + Sync + 'static) -> Self {
        self.check = Some(Box::new(check));
        self
    }
}

impl<C: Caller> Host for CallerHost<C> {
    fn call<'a>(&'a self, id: &'a str, input: Value) -> BoxFuture<'a, Result<Value, CallError>> {
        Box::pin(async move {
            if let Some((_, OperationKind::Subscription)) = self.operations.get(id) {
                let message = "programs cannot read subscriptions: their results have no end";
                return Err(CallError::execution(message));
            }
            let mut options = CallOptions::new();
            options.extensions.insert_own(Exact);
            let envelope = self.caller.call_with(id, input, options).await?;
            if envelope.meta.as_mcp().is_some_and(|meta| meta.is_error) {
                return Err(CallError::new("TOOL_ERROR", "the tool says that it failed").with_details(envelope.data));
            }
            Ok(envelope.data)
        })
    }

    fn decide(&self, id: &str, _: &Value) -> Decision {
        self.operations.get(id).map_or(Decision::Deny, |(decision, _)| *decision)
    }

    fn check(&self, id: &str, input: &Value) -> Result<(), CallError> {
        self.check.as_ref().map_or(Ok(()), |check| check(id, input))
    }

    fn is_query(&self, id: &str) -> bool {
        matches!(self.operations.get(id), Some((_, OperationKind::Query)))
    }
}

impl<C: fmt::Debug> fmt::Debug for CallerHost<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerHost").field("caller", &self.caller).finish_non_exhaustive()
    }
}
