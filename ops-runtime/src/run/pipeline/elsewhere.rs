//! Calls by type whose handler does not take the operation's own types: that of a client, or one that takes any JSON.
//!
//! Generic code is compiled again for each operation that a program calls. So only the parts that need the types are generic:
//! writing the input, and the place for the output. All other code is compiled once.

use std::any::TypeId;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};

use super::failure::{failed, named};
use super::guard::{Boxed, Guard};
use super::invocation::Invocation;
use super::local::Answer;
use super::typed::{self, Output};
use super::{Execution, check_typed_input, ended, failing, hand_over, start_erased};
use crate::run::ending::Ending;
use crate::run::handler::{InputForm, Typed};
use crate::run::input::{self, AnyInput};
use crate::run::payload::Payload;
use crate::run::registry::Entry;
use crate::{Body, Call, CallError, Operation, OperationSpec, OutputPolicy, ResponseEnvelope};

/// Runs a query or a mutation by its type, for a client: no handler of a client takes the operation's own types.
///
/// It does the same as [`execute`](super::execute). But that function also compiles, for each operation, the call of a handler
/// that takes its own types, which a client does not have.
pub(crate) fn execute_elsewhere<Op: Call>(call: Result<Invocation, CallError>, input: Op::Input) -> Execution<Op> {
    let started = call.and_then(|call| {
        let entry = own_entry(&call, &Typed::of::<Op>());
        start_elsewhere::<Op>(call, entry, input)
    });
    Execution(started.unwrap_or_else(failing::<Op>))
}

fn own_entry(call: &Invocation, own: &Typed) -> Option<Arc<Entry>> {
    call.context.registry.table().get_own(own).cloned()
}

/// Starts a call by type whose handler does not take the operation's own types.
#[inline(never)]
pub(super) fn start_elsewhere<Op: Call>(
    call: Invocation,
    entry: Option<Arc<Entry>>,
    input: Op::Input,
) -> Result<Answer<Op>, CallError> {
    let wants_body = TypeId::of::<Op::Output>() == TypeId::of::<Body>();
    let begun = Begun::new(call, entry, &Typed::of::<Op>(), &input, wants_body)?;
    Ok(Box::pin(Elsewhere::<Op> { begun, operation: PhantomData }))
}

/// A call that [`start_elsewhere`] has started, whose result is read into the operation's type.
struct Elsewhere<Op> {
    begun: Begun,
    operation: PhantomData<fn() -> Op>,
}

impl<Op: Operation> Future for Elsewhere<Op> {
    type Output = Result<ResponseEnvelope<Op::Output>, CallError>;

    fn poll(self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Self::Output> {
        let mut output: Option<Op::Output> = None;
        let read = ready!(self.get_mut().begun.poll(Op::SPEC, &mut output, task));
        Poll::Ready(typed::filled(read, output))
    }
}

/// A call that has started. It does not depend on the operation's types.
struct Begun {
    guard: Boxed<ResponseEnvelope<Payload>>,
    entry: Arc<Entry>,
    policy: OutputPolicy,
    ending: Option<Ending>,
}

impl Begun {
    /// Starts a call of the operation `own`. `wants_body` is true if its output is a [`Body`].
    fn new(
        mut call: Invocation,
        entry: Option<Arc<Entry>>,
        own: &Typed,
        input: &dyn AnyInput,
        wants_body: bool,
    ) -> Result<Self, CallError> {
        let (entry, handler) = call.admit(&own.spec.id, entry.as_ref())?;
        entry.check_type(own)?;
        check_typed_input(entry, handler, input)?;
        let (policy, ending) = (call.policy, call.ending(handler));
        let guard = if handler.erased.input_form() == InputForm::Value {
            let (input, bodies) = hand_over(entry, handler, input)?;
            if handler.erased.streams_bodies() {
                call.context = call.context.with_bodies(bodies.with_output(wants_body));
            }
            start_erased(call, entry, input)?
        } else {
            let text = input.to_text().map_err(|error| input::unwritten(&entry.spec, input, error))?;
            let limits = call.limits();
            let run = || handler.erased.call_payload(&entry.spec, Payload::Raw(text), call.context);
            Guard::start(limits, &entry.spec, run)?
        };
        Ok(Self { guard, entry: entry.clone(), policy, ending })
    }

    /// Reads the result into the place for it, as the output of the operation `own`.
    fn poll(
        &mut self,
        own: &OperationSpec,
        output: &mut dyn Output,
        task: &mut Task<'_>,
    ) -> Poll<Result<ResponseEnvelope<()>, CallError>> {
        let Self { guard, entry, policy, ending } = self;
        Poll::Ready(match ready!(Pin::new(guard).poll(task)) {
            Ok(mut envelope) => {
                entry.disown(&mut envelope.meta);
                let read = typed::read(entry, own, *policy, envelope, output);
                ended(ending.take(), read.map_err(|error| named(error, &entry.spec)))
            }
            Err(error) => Err(failed(error, &entry.spec)),
        })
    }
}
