//! A caller for tests, which answers without a server.
//!
//! ```
//! use ops_runtime::mock::MockCaller;
//! use ops_runtime::{Call, CallError, Caller, Operation};
//! use ops_runtime::spec::OperationSpec;
//! use serde_json::json;
//!
//! struct ShowPet;
//! impl Operation for ShowPet {
//!     type Input = u64;
//!     type Output = String;
//!     const SPEC: &'static OperationSpec = &OperationSpec::query("pets.show");
//! }
//! impl Call for ShowPet {}
//!
//! /// The code under test, which takes any caller.
//! async fn greeting(caller: &impl Caller) -> Result<String, CallError> {
//!     Ok(format!("hi {}", caller.execute::<ShowPet>(7_u64).await?.data))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), CallError> {
//! let mock = MockCaller::new().on::<ShowPet>(|id| Ok(format!("pet {id}")));
//! assert_eq!(greeting(&mock).await?, "hi pet 7");
//! assert_eq!(mock.calls()[0].input, json!(7));
//! # Ok(()) }
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream;
use serde_core::Serialize;
use serde_json::Value;

use crate::model::body::handover;
use crate::run::caller::{Target, impl_caller};
use crate::run::pipeline::{self, Invocation};
use crate::{
    Call, CallError, CallOptions, Handler, OperationKind, OperationSpec, Registration, Registry, Reply, Subscribe,
};

/// A caller that answers with functions, and keeps what it was called with.
///
/// What it was not told how to answer is an error that lists what it can. A clone is the same caller.
#[derive(Debug, Clone, Default)]
pub struct MockCaller {
    registry: Registry,
    calls: Arc<Mutex<Vec<MockCall>>>,
}

/// A call that a [`MockCaller`] was asked for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MockCall {
    /// The operation.
    pub id: String,
    /// The input as JSON; the bodies in it are not to be seen.
    pub input: Value,
}

impl MockCaller {
    /// A caller that knows no operation yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers an operation, by its type as by its id.
    ///
    /// # Panics
    /// If the operation's id is no id.
    #[must_use]
    pub fn on<Op: Call>(
        self,
        answer: impl Fn(Op::Input) -> Result<Op::Output, CallError> + Send + Sync + 'static,
    ) -> Self {
        let calls = self.calls.clone();
        let answer = Arc::new(answer);
        self.with(Registration::call::<Op, _, _>(move |input, _| {
            record(&calls, &Op::SPEC.id, &input);
            let answer = answer.clone();
            async move { answer(input).map(Reply::Value) }
        }))
    }

    /// Answers a subscription with these items, by its type as by its id.
    ///
    /// # Panics
    /// If the operation's id is no id.
    #[must_use]
    pub fn on_stream<Op: Subscribe>(
        self,
        answer: impl Fn(Op::Input) -> Result<Vec<Result<Op::Output, CallError>>, CallError> + Send + Sync + 'static,
    ) -> Self {
        let calls = self.calls.clone();
        let answer = Arc::new(answer);
        self.with(Registration::subscription::<Op, _, _, _>(move |input, _| {
            record(&calls, &Op::SPEC.id, &input);
            let answer = answer.clone();
            async move { Ok(stream::iter(answer(input)?.into_iter().map(|item| item.map(Reply::Value)))) }
        }))
    }

    /// Answers a query or a mutation that is known by its id only, with any JSON.
    ///
    /// # Panics
    /// If the id is no id: `namespace.name`.
    #[must_use]
    pub fn on_id(self, id: &str, answer: impl Fn(Value) -> Result<Value, CallError> + Send + Sync + 'static) -> Self {
        let (namespace, name) = id.split_once('.').unwrap_or((id, ""));
        let (calls, answer, own) = (self.calls.clone(), Arc::new(answer), id.to_owned());
        let handler = Handler::dynamic(move |input, _| {
            record(&calls, &own, &input);
            let answer = answer.clone();
            async move { answer(input) }
        });
        match OperationSpec::new(OperationKind::Mutation, namespace, name) {
            Ok(spec) => self.with(Registration::new(spec, handler)),
            Err(error) => wrong(&error),
        }
    }

    fn with(self, registration: Registration) -> Self {
        match self.registry.replace(registration) {
            Ok(()) => self,
            Err(error) => wrong(&error),
        }
    }

    /// The calls so far, in the order in which they were answered.
    pub fn calls(&self) -> Vec<MockCall> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The inputs of the calls of one operation so far.
    pub fn calls_of(&self, id: &str) -> Vec<Value> {
        self.calls().into_iter().filter(|call| call.id == id).map(|call| call.input).collect()
    }

    fn invoke(&self, options: Option<CallOptions>, target: Target<'_>) -> Result<Invocation, CallError> {
        let id = target.id();
        if self.registry.table().get(id).is_none() {
            let known: Vec<_> = self.registry.list().iter().map(|spec| format!("`{}`", spec.id)).collect();
            let known = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
            return Err(pipeline::not_found(id, &format!("the mock answers {known}, and was not told how to answer")));
        }
        Ok(match options {
            None => Invocation::plain(&self.registry),
            Some(options) => Invocation::with(&self.registry, options),
        })
    }
}

// A mistake in the test itself, which the test should stop at.
#[allow(clippy::panic)]
fn wrong(error: &dyn std::error::Error) -> ! {
    panic!("the mock cannot answer this: {error}")
}

fn record(calls: &Mutex<Vec<MockCall>>, id: &str, input: &impl Serialize) {
    let (input, _) = handover::scoped(|| serde_json::to_value(input));
    let call = MockCall { id: id.to_owned(), input: input.unwrap_or_default() };
    calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
}

impl_caller!(MockCaller, MockCaller::invoke);

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};
    use serde_json::json;

    use super::*;
    use crate::Operation;

    struct Double;
    impl Operation for Double {
        type Input = u64;
        type Output = u64;
        const SPEC: &'static OperationSpec = &OperationSpec::query("math.double");
    }
    impl Call for Double {}

    struct Count;
    impl Operation for Count {
        type Input = u64;
        type Output = u64;
        const SPEC: &'static OperationSpec = &OperationSpec::subscription("math.count");
    }
    impl Subscribe for Count {}

    #[test]
    fn answers_by_type_and_by_id() {
        let mock = MockCaller::new()
            .on::<Double>(|n| n.checked_mul(2).ok_or_else(|| "too much".into()))
            .on_stream::<Count>(|n| Ok((0..n).map(Ok).chain([Err("over".into())]).collect()))
            .on_id("any.thing", Ok);
        assert_eq!(mock.execute::<Double>(21_u64).now_or_never().unwrap().unwrap().data, 42);
        assert_eq!(mock.call("math.double", json!(4)).now_or_never().unwrap().unwrap().data, 8);
        assert_eq!(mock.execute::<Double>(u64::MAX).now_or_never().unwrap().unwrap_err().message(), "too much");
        assert_eq!(mock.call("any.thing", json!("x")).now_or_never().unwrap().unwrap().data, "x");
        let items = mock.subscribe::<Count>(2_u64).now_or_never().unwrap().unwrap().collect::<Vec<_>>();
        assert_eq!(items.now_or_never().unwrap().len(), 3);
        assert_eq!(mock.calls_of("math.double"), [json!(21), json!(4), json!(u64::MAX)]);
        assert_eq!(mock.calls().len(), 5);
        // The last answer counts.
        let mock = mock.on::<Double>(|_| Ok(0));
        assert_eq!(mock.execute::<Double>(21_u64).now_or_never().unwrap().unwrap().data, 0);
    }

    #[test]
    fn a_type_of_another_version_is_not_answered_for_the_first() {
        struct Text;
        impl Operation for Text {
            type Input = String;
            type Output = String;
            const SPEC: &'static OperationSpec =
                &OperationSpec::query("math.double").with_input(crate::Schema::text(r#"{"type":"string"}"#));
        }
        impl Call for Text {}
        let mock = MockCaller::new().on::<Double>(Ok);
        let error = mock.execute::<Text>("a".to_owned()).now_or_never().unwrap().unwrap_err();
        assert!(error.message().contains("Double`") && error.message().contains("Text`"), "{error}");
        // By its id, any type is answered.
        let mock = MockCaller::new().on_id("math.double", Ok);
        assert_eq!(mock.execute::<Double>(2_u64).now_or_never().unwrap().unwrap().data, 2);
        assert_eq!(mock.execute::<Text>("a".to_owned()).now_or_never().unwrap().unwrap().data, "a");
    }

    #[test]
    fn what_was_not_expected() {
        let error = MockCaller::new().execute::<Double>(1_u64).now_or_never().unwrap().unwrap_err();
        assert!(error.message().contains("the mock answers nothing"), "{error}");
        let mock = MockCaller::new().on_id("a.b", Ok).on_id("a.c", Ok);
        let error = mock.call("a.d", json!(1)).now_or_never().unwrap().unwrap_err();
        assert!(error.message().contains("`a.b`, `a.c`") && error.message().ends_with("`a.d`"), "{error}");
    }
}
