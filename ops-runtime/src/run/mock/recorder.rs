//! A caller that records the results of another.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use serde_core::Serialize;
use serde_json::Value;

use super::line::{Answer, Line, Outcome, input_of, outcome_of};
use crate::model::lock::lock;
use crate::run::payload::to_value;
use crate::{Call, CallError, CallOptions, Caller, EnvelopeStream, ResponseEnvelope, Subscribe};

/// A caller that forwards calls, and writes each with its result to a file, for [`MockCaller::playback`].
///
/// The file has one JSON object a line: `id`, `input` and `output` (the envelope) or `error`. A subscription has
/// `items`, or an `error` if it was not opened, and is written when it ends or is dropped. Options of calls and
/// `Set-Cookie` headers are left out, but inputs and results may contain secrets: check the file before you commit it.
/// What cannot be JSON cannot be recorded, and is an error: a result that is a stream of bytes, or a number that is not
/// finite.
///
/// ```no_run
/// use ops_runtime::mock::{MockCaller, Recorder};
/// # async fn list_pets(shop: &impl ops_runtime::Caller) -> Result<(), ops_runtime::CallError> { Ok(()) }
/// # async fn record(client: ops_runtime::Registry) -> Result<(), Box<dyn std::error::Error>> {
///
/// list_pets(&Recorder::create(client, "tests/pets.jsonl")?).await?;   // once, with the real service
/// list_pets(&MockCaller::playback("tests/pets.jsonl")?).await?;       // in each test
/// # Ok(()) }
/// ```
///
/// [`MockCaller::playback`]: super::MockCaller::playback
#[derive(Debug, Clone)]
pub struct Recorder<C> {
    caller: C,
    file: Arc<Mutex<File>>,
}

impl<C: Caller> Recorder<C> {
    /// Records the calls of a caller in a file, which is emptied first.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(caller: C, path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self { caller, file: Arc::new(Mutex::new(File::create(path)?)) })
    }

    fn keep<T: Serialize>(
        &self,
        id: &str,
        input: Value,
        result: Result<ResponseEnvelope<T>, CallError>,
    ) -> Result<ResponseEnvelope<T>, CallError> {
        let answer = Answer::One(outcome_of(&result).map_err(|error| unwritten(&error))?);
        write(&self.file, &Line { id: id.to_owned(), input, answer })?;
        result
    }

    fn keep_items<T: Serialize + Send + 'static>(
        &self,
        id: &str,
        input: Value,
        result: Result<EnvelopeStream<T>, CallError>,
    ) -> Result<EnvelopeStream<T>, CallError> {
        let mut kept = Items { file: self.file.clone(), id: id.to_owned(), input, items: Vec::new(), error: None };
        match result {
            Ok(items) => Ok(items
                .map(move |item| {
                    kept.items.push(outcome_of(&item).map_err(|error| unwritten(&error))?);
                    item
                })
                .boxed()),
            Err(error) => {
                kept.error = Some(error.clone());
                Err(error)
            }
        }
    }
}

/// An input as it is recorded, and as playback gets it: with bodies in base64, or without those that cannot be JSON.
fn recorded(input: &impl Serialize) -> Result<Value, CallError> {
    to_value(input).or_else(|_| input_of(input))
}

fn unwritten(error: &CallError) -> CallError {
    CallError::execution(format!("the result cannot be recorded: {}", error.message()))
}

fn write(file: &Mutex<File>, line: &Line) -> Result<(), CallError> {
    let text = format!("{}\n", line.to_text());
    let mut file = lock(file);
    file.write_all(text.as_bytes())
        .map_err(|error| CallError::execution(format!("the call cannot be recorded: {error}")))
}

/// The items of a subscription, written when it is over.
struct Items {
    file: Arc<Mutex<File>>,
    id: String,
    input: Value,
    items: Vec<Outcome>,
    /// Why the subscription did not start.
    error: Option<CallError>,
}

impl Drop for Items {
    fn drop(&mut self) {
        let items = std::mem::take(&mut self.items);
        let answer = Answer::Items(self.error.take().map_or(Ok(items), Err));
        let line = Line { id: std::mem::take(&mut self.id), input: std::mem::take(&mut self.input), answer };
        if let Err(error) = write(&self.file, &line) {
            tracing::warn!("{error}");
        }
    }
}

impl<C: Caller> Caller for Recorder<C> {
    async fn execute_with<Op: Call>(
        &self,
        input: impl Into<Op::Input> + Send,
        options: CallOptions,
    ) -> Result<ResponseEnvelope<Op::Output>, CallError> {
        let input = input.into();
        let kept = recorded(&input)?;
        let result = self.caller.execute_with::<Op>(input, options).await;
        self.keep(&Op::SPEC.id, kept, result)
    }

    async fn subscribe_with<Op: Subscribe>(
        &self,
        input: impl Into<Op::Input> + Send,
        options: CallOptions,
    ) -> Result<EnvelopeStream<Op::Output>, CallError> {
        let input = input.into();
        let kept = recorded(&input)?;
        let result = self.caller.subscribe_with::<Op>(input, options).await;
        self.keep_items(&Op::SPEC.id, kept, result)
    }

    async fn call_with(
        &self,
        id: &str,
        input: Value,
        options: CallOptions,
    ) -> Result<ResponseEnvelope<Value>, CallError> {
        let result = self.caller.call_with(id, input.clone(), options).await;
        self.keep(id, input, result)
    }

    async fn stream_with(
        &self,
        id: &str,
        input: Value,
        options: CallOptions,
    ) -> Result<EnvelopeStream<Value>, CallError> {
        let result = self.caller.stream_with(id, input.clone(), options).await;
        self.keep_items(id, input, result)
    }
}
