//! A caller for tests, which needs no server.
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

mod described;
mod example;
mod line;
mod pattern;
mod playback;
mod recorder;
mod tag;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_core::Stream;
use futures_util::{StreamExt, stream};
use serde_core::Serialize;
use serde_json::{Map, Value};

use self::line::{Answer, Outcome};
use crate::model::lock::lock;
use crate::run::caller::{Target, impl_caller};
use crate::run::pipeline::{self, Invocation};
use crate::{
    Call, CallError, CallOptions, Context, ErrorCode, Handler, Identity, Operation, OperationKind, OperationSpec,
    Registration, Registry, Reply, ResponseEnvelope, Subscribe,
};

pub use described::examples;
#[cfg(feature = "gateway")]
pub(crate) use example::input as input_example;
pub use recorder::Recorder;

/// A caller whose results come from functions, and which records its calls.
///
/// A call without a function fails with an error that lists the operations that have one. A clone is the same caller.
#[derive(Debug, Clone, Default)]
pub struct MockCaller {
    registry: Registry,
    calls: Arc<Mutex<Vec<MockCall>>>,
}

/// A recorded call of a [`MockCaller`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MockCall {
    /// The operation.
    pub id: String,
    /// The input as JSON, without the contents of bodies.
    pub input: Value,
    /// The metadata of the call's options.
    pub metadata: Map<String, Value>,
    /// The identity of the call's options.
    pub identity: Option<Identity>,
}

impl MockCaller {
    /// A caller without operations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the function of an operation, for calls by its type and by its id.
    ///
    /// If the function panics, such as by an assertion, the call fails with an `UNKNOWN_ERROR` that has the panic's text. Code
    /// under test may handle this error like any other, so check inputs afterwards: see [`calls_of`](Self::calls_of).
    ///
    /// # Panics
    /// If the operation's id is invalid.
    #[must_use]
    pub fn on<Op: Call>(
        self,
        answer: impl Fn(Op::Input) -> Result<Op::Output, CallError> + Send + Sync + 'static,
    ) -> Self {
        self.on_reply::<Op>(move |input, _| answer(input).map(Reply::Value))
    }

    /// Sets a function of an operation that returns an envelope, such as that of an HTTP response. The function gets
    /// the call's context, with its metadata, identity and extensions.
    ///
    /// ```
    /// # use ops_runtime::{Call, Operation, spec::OperationSpec};
    /// # struct ShowPet;
    /// # impl Operation for ShowPet {
    /// #     type Input = u64;
    /// #     type Output = String;
    /// #     const SPEC: &'static OperationSpec = &OperationSpec::query("pets.show");
    /// # }
    /// # impl Call for ShowPet {}
    /// use ops_runtime::ResponseEnvelope;
    /// use ops_runtime::envelope::HttpMeta;
    /// use ops_runtime::mock::MockCaller;
    ///
    /// let mock = MockCaller::new().on_envelope::<ShowPet>(|id, context| {
    ///     let tenant = context.metadata().map_or("none".to_owned(), |metadata| metadata["tenant"].to_string());
    ///     let meta = HttpMeta::new(203, "text/plain").with_header("x-cache", "HIT");
    ///     Ok(ResponseEnvelope::http(format!("pet {id} of {tenant}"), meta))
    /// });
    /// ```
    ///
    /// # Panics
    /// If the operation's id is invalid.
    #[must_use]
    pub fn on_envelope<Op: Call>(
        self,
        answer: impl Fn(Op::Input, &Context) -> Result<ResponseEnvelope<Op::Output>, CallError> + Send + Sync + 'static,
    ) -> Self {
        self.on_reply::<Op>(move |input, context| answer(input, context).map(Reply::from))
    }

    /// Sets the results of an operation's calls, in order; one more call is an error.
    ///
    /// # Panics
    /// If the operation's id is invalid.
    #[must_use]
    pub fn on_sequence<Op: Call>(self, answers: impl IntoIterator<Item = Result<Op::Output, CallError>>) -> Self {
        let answers: VecDeque<_> = answers.into_iter().collect();
        let (count, answers) = (answers.len(), Mutex::new(answers));
        self.on_reply::<Op>(move |_, _| {
            let next = lock(&answers).pop_front();
            let none = || format!("the mock was told {count} answers to `{}`, and gave them all", Op::SPEC.id);
            next.unwrap_or_else(|| Err(CallError::execution(none()))).map(Reply::Value)
        })
    }

    /// Makes an operation return an example of its output's schema, the same each time.
    ///
    /// Values in the schema (`const`, `default`, `examples`, `enum`) are used; others are made up. Modules that are generated
    /// from OpenAPI documents do not contain the documents' examples.
    ///
    /// # Panics
    /// If the operation's id is invalid, or if no example could be made that matches the output's type.
    #[must_use]
    pub fn on_example<Op: Call>(self) -> Self {
        let example = example_of::<Op>();
        self.on::<Op>(move |_| read_example::<Op>(&example))
    }

    /// Makes a subscription return one example of its output's schema, the same each time.
    ///
    /// # Panics
    /// As [`on_example`](Self::on_example).
    #[must_use]
    pub fn on_items_example<Op: Subscribe>(self) -> Self {
        let example = example_of::<Op>();
        self.on_items::<Op>(move |_| Ok(vec![read_example::<Op>(&example)]))
    }

    fn on_reply<Op: Call>(
        self,
        answer: impl Fn(Op::Input, &Context) -> Result<Reply<Op::Output>, CallError> + Send + Sync + 'static,
    ) -> Self {
        let calls = self.calls.clone();
        let answer = Arc::new(answer);
        self.with(Registration::call::<Op, _, _>(move |input, context| {
            let (calls, answer) = (calls.clone(), answer.clone());
            async move {
                record(&calls, &Op::SPEC.id, &input, &context)?;
                answered(|| answer(input, &context))
            }
        }))
    }

    /// Sets the items of a subscription, for calls by its type and by its id.
    ///
    /// # Panics
    /// If the operation's id is invalid.
    #[must_use]
    pub fn on_items<Op: Subscribe>(
        self,
        answer: impl Fn(Op::Input) -> Result<Vec<Result<Op::Output, CallError>>, CallError> + Send + Sync + 'static,
    ) -> Self {
        self.on_stream::<Op, _>(move |input, _| answer(input).map(stream::iter))
    }

    /// Sets the stream of a subscription, which may wait between items. The function gets the call's context, with its
    /// metadata, identity and extensions.
    ///
    /// ```
    /// # use ops_runtime::{Operation, Subscribe, spec::OperationSpec};
    /// # struct Prices;
    /// # impl Operation for Prices {
    /// #     type Input = u64;
    /// #     type Output = f64;
    /// #     const SPEC: &'static OperationSpec = &OperationSpec::subscription("shop.prices");
    /// # }
    /// # impl Subscribe for Prices {}
    /// use std::time::Duration;
    ///
    /// use futures_util::{StreamExt, stream};
    /// use ops_runtime::mock::MockCaller;
    ///
    /// let mock = MockCaller::new().on_stream::<Prices, _>(|_, _| {
    ///     let items = stream::iter([Ok(9.5), Err("the shop has closed".into())]);
    ///     Ok(items.then(|item| async {
    ///         tokio::time::sleep(Duration::from_millis(20)).await;
    ///         item
    ///     }))
    /// });
    /// ```
    ///
    /// # Panics
    /// If the operation's id is invalid.
    #[must_use]
    pub fn on_stream<Op: Subscribe, S>(
        self,
        answer: impl Fn(Op::Input, &Context) -> Result<S, CallError> + Send + Sync + 'static,
    ) -> Self
    where
        S: Stream<Item = Result<Op::Output, CallError>> + Send + 'static,
    {
        let calls = self.calls.clone();
        let answer = Arc::new(answer);
        self.with(Registration::subscription::<Op, _, _, _>(move |input, context| {
            let (calls, answer) = (calls.clone(), answer.clone());
            async move {
                record(&calls, &Op::SPEC.id, &input, &context)?;
                Ok(answered(|| answer(input, &context))?.map(|item| item.map(Reply::Value)))
            }
        }))
    }

    /// Sets the function of a query or a mutation that is known only by its id, with any JSON.
    ///
    /// # Panics
    /// If the id is invalid: it must be `namespace.name`.
    #[must_use]
    pub fn on_id(self, id: &str, answer: impl Fn(Value) -> Result<Value, CallError> + Send + Sync + 'static) -> Self {
        let (calls, answer, own) = (self.calls.clone(), Arc::new(answer), Arc::<str>::from(id));
        let handler = Handler::dynamic(move |input, context| {
            let (calls, answer, own) = (calls.clone(), answer.clone(), own.clone());
            async move {
                record(&calls, &own, &input, &context)?;
                answered(|| answer(input))
            }
        });
        self.with_id(id, OperationKind::Mutation, handler)
    }

    /// Sets the items of a subscription that is known only by its id, with any JSON.
    ///
    /// # Panics
    /// If the id is invalid: it must be `namespace.name`.
    #[must_use]
    pub fn on_items_id(
        self,
        id: &str,
        answer: impl Fn(Value) -> Result<Vec<Result<Value, CallError>>, CallError> + Send + Sync + 'static,
    ) -> Self {
        let (calls, answer, own) = (self.calls.clone(), Arc::new(answer), Arc::<str>::from(id));
        let handler = Handler::dynamic_stream(move |input, context| {
            let (calls, answer, own) = (calls.clone(), answer.clone(), own.clone());
            async move {
                record(&calls, &own, &input, &context)?;
                answered(|| answer(input)).map(stream::iter)
            }
        });
        self.with_id(id, OperationKind::Subscription, handler)
    }

    /// A caller that returns the results that a [`Recorder`] has recorded, for calls by type and by id.
    ///
    /// Calls are matched by id and input. Calls with the same input get the results in the recorded order, and then the
    /// last of them again. A call that was not recorded is an error that names the nearest recorded one.
    ///
    /// # Errors
    /// If the file cannot be read, or if a line is not a recorded call.
    pub fn playback(path: impl AsRef<Path>) -> Result<Self, CallError> {
        let mut mock = Self::new();
        for (id, (streams, tape)) in playback::read(path.as_ref())? {
            let (namespace, name) = id.split_once('.').unwrap_or((&id, ""));
            let kind = if streams { OperationKind::Subscription } else { OperationKind::Mutation };
            // Checked before `with_id`, which panics for an invalid id.
            OperationSpec::new(kind, namespace, name).map_err(|error| CallError::execution(error.to_string()))?;
            let own = id.clone();
            mock = if streams {
                mock.on_items_id(&id, move |input| items(tape.answer(&own, &input)?))
            } else {
                mock.on_id(&id, move |input| match tape.answer(&own, &input)? {
                    Answer::One(outcome) => outcome,
                    Answer::Items(_) => Err(CallError::execution(format!("`{own}` is a subscription"))),
                })
            };
        }
        Ok(mock)
    }

    fn with_id(self, id: &str, kind: OperationKind, handler: Handler) -> Self {
        let (namespace, name) = id.split_once('.').unwrap_or((id, ""));
        match OperationSpec::new(kind, namespace, name) {
            Ok(spec) => self.with(Registration::new(spec, handler)),
            Err(error) => wrong(&error),
        }
    }

    fn with(self, mut registration: Registration) -> Self {
        let spec = &registration.spec;
        // A client sends what the operation's type accepts, and its server checks the rest. A function checks it
        // itself.
        registration.handler.is_stand_in = !(spec.is_local() || spec.output.is_made());
        match self.registry.replace(registration) {
            Ok(()) => self,
            Err(error) => wrong(&error),
        }
    }

    /// The operations that it implements, to be registered with others: so calls that a function makes by
    /// [`Context::env`] are mocked and recorded, too.
    ///
    /// ```
    /// # use ops_runtime::{Call, Operation, spec::OperationSpec};
    /// # struct ShowPet;
    /// # impl Operation for ShowPet {
    /// #     type Input = u64;
    /// #     type Output = String;
    /// #     const SPEC: &'static OperationSpec = &OperationSpec::query("pets.show");
    /// # }
    /// # impl Call for ShowPet {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ops_runtime::adapter::{Handler, Registration};
    /// use ops_runtime::mock::MockCaller;
    /// use ops_runtime::{Context, Registry};
    /// use serde_json::{Value, json};
    ///
    /// let greet = |_: Value, context: Context| async move {
    ///     let pet = context.env().execute::<ShowPet>(7_u64).await?.data;
    ///     Ok(json!(format!("hi {pet}")))
    /// };
    ///
    /// let mock = MockCaller::new().on::<ShowPet>(|id| Ok(format!("pet {id}")));
    /// let registry = Registry::new();
    /// registry.register(Registration::new(OperationSpec::query("desk.greet"), Handler::dynamic(greet)))?;
    /// registry.register_all(mock.registrations())?;
    /// assert_eq!(registry.call("desk.greet", Value::Null).await?.data, "hi pet 7");
    /// assert_eq!(mock.calls_of("pets.show"), [json!(7)]);
    /// # Ok(()) }
    /// ```
    pub fn registrations(&self) -> Vec<Registration> {
        let table = self.registry.table();
        let made = table.iter().map(|entry| Some(Registration::new(entry.spec.clone(), entry.handler.clone()?)));
        made.flatten().collect()
    }

    /// The calls so far, in the order in which they began. A call begins when its future is polled first: one that was only
    /// made is none.
    pub fn calls(&self) -> Vec<MockCall> {
        lock(&self.calls).clone()
    }

    /// The inputs of the calls of one operation so far.
    ///
    /// The id of an operation without calls may be any text, so a misspelt one is not noticed. The id of a type, such as
    /// `ShowPet::SPEC.id`, cannot be misspelt.
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

// A mistake in the test itself, at which the test should stop.
#[allow(clippy::panic)]
fn wrong(error: &dyn std::error::Error) -> ! {
    panic!("the mock cannot answer this: {error}")
}

/// What a function of the test returns. The text of a panic is for the test's author, unlike that of a handler.
fn answered<T>(answer: impl FnOnce() -> Result<T, CallError>) -> Result<T, CallError> {
    catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|panic| {
        let message = format!("the mock's function panicked: {}", pipeline::panic_text(&*panic));
        Err(CallError::new(ErrorCode::UnknownError, message))
    })
}

fn items(answer: Answer) -> Result<Vec<Outcome>, CallError> {
    match answer {
        Answer::One(outcome) => Ok(vec![outcome]),
        Answer::Items(items) => items,
    }
}

fn example_of<Op: Operation>() -> Value {
    let example = example::example(Op::SPEC);
    if let Err(error) = read_example::<Op>(&example) {
        wrong(&error);
    }
    example
}

fn read_example<Op: Operation>(example: &Value) -> Result<Op::Output, CallError> {
    crate::record::from_value(example).map_err(|error| {
        let id = &Op::SPEC.id;
        CallError::execution(format!("no example of the output of `{id}` could be made: {error}; use `on`"))
    })
}

fn record(calls: &Mutex<Vec<MockCall>>, id: &str, input: &impl Serialize, context: &Context) -> Result<(), CallError> {
    let metadata = context.metadata().cloned().unwrap_or_default();
    let (input, identity) = (line::input_of(input)?, context.identity().cloned());
    let call = MockCall { id: id.to_owned(), input, metadata, identity };
    lock(calls).push(call);
    Ok(())
}

impl_caller!(MockCaller, MockCaller::invoke);
