//! Requests as a server of ours receives them, compared member by member with what their document says.
//!
//! Values for parameters and bodies are made from the raw document, twice for each operation: only what is required, and
//! everything. What must arrive is computed from the raw document and these values. Of the project's own reading only two
//! things are used: the names of the input's properties, which differ from the document's where two clash, and which of
//! several content types is sent. So whatever is lost, added or written in another way shows.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use ops_runtime::openapi::FileSource;
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::{Diagnostic, OperationKind, OperationSpec};
use ops_runtime::{CallError, HttpClient, HttpConfig, Registry};
use serde_json::Value;
use tokio::time::timeout;

use crate::corpus;
use crate::sample::Extent;

mod compare;
mod document;
mod exceptions;
mod expected;
mod form;
pub mod hand;
mod media;
mod package;
mod parameters;
mod schema;
mod server;
mod style;
mod swagger;
mod switch;
#[cfg(test)]
mod tests;
mod typed;
mod value;

pub use compare::Difference;
use document::{Document, Operation};
pub use exceptions::Exceptions;
use expected::Sample;
pub use server::{Arrived, Recorder};
pub use typed::{Source, Typed};

/// A path that everything is below, so that one which is lost shows.
const BASE: &str = "/base/v1";

/// How a program begins to say that a type takes no such input.
const REFUSED: &str = "the type refuses it: ";

/// A call may take this long.
const PATIENCE: Duration = Duration::from_secs(20);

/// What became of a document.
#[derive(Debug, Default)]
pub struct Report {
    /// Why nothing was sent, if nothing was.
    pub failure: Option<String>,
    /// How many operations the document has.
    pub operations: usize,
    /// How many of them a diagnostic says were left out.
    pub left_out: usize,
    /// How many requests there were to send by id, and how many typed.
    pub by_id: Count,
    /// See `by_id`.
    pub typed: Count,
    /// What was wrong.
    pub faults: Vec<Fault>,
}

/// How many requests there were, and how many were right.
#[derive(Debug, Default, Clone, Copy)]
pub struct Count {
    /// How many there were.
    pub requests: usize,
    /// How many held what they must.
    pub agreed: usize,
}

/// What was wrong with a request.
#[derive(Debug)]
pub struct Fault {
    /// The name of the operation.
    pub operation: String,
    /// `by id` or `typed`, and the input.
    pub way: String,
    /// What was wrong.
    pub difference: Difference,
}

/// Sends two requests of every operation of a document by id, and typed if there is a program for that.
pub async fn exchange(path: &Path, namespace: &str, typed: Option<&mut Typed>) -> Report {
    let prepared = Exchange::prepare(path, namespace).await;
    match prepared {
        Ok((exchange, document)) => exchange.run(&document, typed).await,
        Err(error) => Report { failure: Some(error), ..Report::default() },
    }
}

/// An operation of a document with an input that was made for it.
#[derive(Debug, Clone)]
pub struct Made {
    /// The operation.
    pub spec: OperationSpec,
    /// How much of the input is filled in.
    pub extent: Extent,
    /// The input.
    pub input: Value,
    /// True if every value fits its schema to the letter.
    pub fits: bool,
}

/// All operations of a document, and two inputs for each: with only what is required, and with everything.
///
/// # Errors
/// If the document can't be read.
pub fn inputs(path: &Path, namespace: &str) -> Result<(Vec<OperationSpec>, Vec<Made>), String> {
    let document = corpus::try_parse(path)?;
    let options = ReadOptions::new().with_namespace(namespace);
    let read = openapi::load(path.to_str().ok_or("the path is no text")?, &FileSource::new(), &options);
    let (api, _) = read.map_err(|error| error.to_string())?;
    let document = Document::new(&document);
    let mut specs = by_request(api.operations.clone());
    let mut made = Vec::new();
    for operation in document.operations() {
        let queue = specs.entry(request(&operation.method, &operation.path)).or_default();
        let found = queue.pop_front();
        let is_plain = found.as_ref().is_some_and(|found| found.kind != OperationKind::Subscription);
        let twin = queue.pop_front_if(|next| is_plain && next.kind == OperationKind::Subscription);
        for spec in found.into_iter().chain(twin) {
            for extent in [Extent::Required, Extent::Everything] {
                let Sample { input, fits, .. } = expected::sample(&document, &operation, &spec, extent);
                made.push(Made { spec: spec.clone(), extent, input, fits });
            }
        }
    }
    Ok((api.operations, made))
}

struct Exchange {
    recorder: Recorder,
    registry: Registry,
    specs: Vec<OperationSpec>,
    diagnostics: Vec<Diagnostic>,
    report: Report,
}

impl Exchange {
    async fn prepare(path: &Path, namespace: &str) -> Result<(Self, Value), String> {
        let document = corpus::try_parse(path)?;
        let recorder = Recorder::start().await.map_err(|error| error.to_string())?;
        let location = path.to_str().ok_or("the path is no text")?;
        let options = ReadOptions::new().with_namespace(namespace);
        let read = openapi::load(location, &FileSource::new(), &options);
        let (api, diagnostics) = read.map_err(|error| error.to_string())?;
        let config = HttpConfig::new().with_base_url(format!("{}{BASE}", recorder.url())).with_timeout(PATIENCE);
        let client = HttpClient::new(config).map_err(|error| error.to_string())?;
        let registry = Registry::new();
        let specs = api.operations.clone();
        let bound = client.bind(api.operations).map_err(|error| error.to_string())?;
        registry.register_all(bound).map_err(|error| error.to_string())?;
        Ok((Self { recorder, registry, specs, diagnostics, report: Report::default() }, document))
    }

    async fn run(mut self, document: &Value, mut typed: Option<&mut Typed>) -> Report {
        let document = Document::new(document);
        let operations = document.operations();
        self.report.operations = operations.len();
        let mut specs = by_request(std::mem::take(&mut self.specs));
        for operation in &operations {
            if self.is_left_out(operation) {
                self.report.left_out += 1;
                continue;
            }
            let queue = specs.entry(request(&operation.method, &operation.path)).or_default();
            let found = queue.pop_front();
            let twin = queue.pop_front_if(|next| {
                let is_plain = found.as_ref().is_some_and(|found| found.kind != OperationKind::Subscription);
                is_plain && next.kind == OperationKind::Subscription
            });
            if twin.is_some() != operation.has_twin() {
                let difference = Difference::new("operation", "one for each kind of answer", "another number");
                self.fault(&operation.pointer, "read", difference);
            }
            if found.is_none() {
                self.fault(&operation.pointer, "read", Difference::new("operation", "an operation", "nothing"));
            }
            for spec in found.iter().chain(&twin) {
                self.operation(&document, operation, spec, typed.as_deref_mut()).await;
            }
        }
        for spec in specs.into_values().flatten() {
            self.fault(spec.name(), "read", Difference::new("operation", "nothing", "an operation"));
        }
        self.report
    }

    /// Whether a diagnostic says that the operation was left out.
    fn is_left_out(&self, operation: &Operation) -> bool {
        let says = |diagnostic: &Diagnostic| {
            let message = format!("`{} {}` was left out", operation.method, operation.path);
            diagnostic.pointer == operation.pointer && diagnostic.message == message
        };
        self.diagnostics.iter().any(says)
    }

    fn fault(&mut self, operation: &str, way: &str, difference: Difference) {
        self.report.faults.push(Fault { operation: operation.to_owned(), way: way.to_owned(), difference });
    }

    async fn operation(
        &mut self,
        document: &Document<'_>,
        operation: &Operation,
        spec: &OperationSpec,
        mut typed: Option<&mut Typed>,
    ) {
        for (extent, name) in [(Extent::Required, "only what is required"), (Extent::Everything, "everything")] {
            let sample = expected::sample(document, operation, spec, extent);
            let way = format!("by id, {name}");
            self.report.by_id.requests += 1;
            let sent = send(&self.registry, spec, sample.input.clone()).await;
            let refusal = sent.as_ref().err().map(refusal).unwrap_or_default();
            let (arrived, mut differences) = self.judge(&sample, sent.map_err(|error| told(&error))).await;
            if arrived.is_none() && !sample.fits && !refusal.is_empty() {
                // Both judges of the input agree that it is none.
                differences = vec![Difference::new("input", "what the schema accepts", refusal)];
            }
            self.report.by_id.agreed += usize::from(differences.is_empty());
            differences.into_iter().for_each(|difference| self.fault(spec.name(), &way, difference));
            if let Some(typed) = typed.as_deref_mut() {
                self.typed(&sample, spec, name, typed).await;
            }
        }
    }

    /// Sends an input typed, and what the type made of it by id as well: both must be the same to the byte.
    async fn typed(&mut self, sample: &Sample, spec: &OperationSpec, name: &str, typed: &mut Typed) {
        self.report.typed.requests += 1;
        let way = format!("typed, {name}");
        let url = format!("{}{BASE}", self.recorder.url());
        let reply = timeout(PATIENCE, typed.send(&url, &spec.id, &sample.input)).await;
        let reply = reply.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        let (input, said) = match reply {
            Ok((input, said)) => (Some(input), Ok(said)),
            Err(error) => (None, Err(error)),
        };
        // The judge of the schema and the type agree that the input is none.
        let refused = said.as_ref().err().filter(|error| !sample.fits && error.starts_with(REFUSED)).cloned();
        let (arrived, mut differences) = self.judge(sample, said).await;
        if let Some(refused) = refused {
            differences = vec![Difference::new("input", "what the schema accepts", refused)];
        }
        if let (Some(input), Some(arrived)) = (input, arrived) {
            let again = send(&self.registry, spec, input.clone()).await;
            let others = self.recorder.take();
            match others.as_slice() {
                [other] => compare::raw(&arrived, other, &mut differences),
                // What a type can hold is sent; that the schema refuses it is right.
                [] if !sample.fits && again.as_ref().is_err_and(|error| !refusal(error).is_empty()) => {}
                _ => {
                    let problem =
                        again.err().map(|error| told(&error)).unwrap_or_else(|| format!("{} requests", others.len()));
                    differences.push(Difference::new("the same by id", "one request", format!("{problem}: {input}")));
                }
            }
        }
        self.report.typed.agreed += usize::from(differences.is_empty());
        differences.into_iter().for_each(|difference| self.fault(spec.name(), &way, difference));
    }

    /// What arrived since, and what is wrong with it.
    async fn judge(&self, sample: &Sample, sent: Result<String, String>) -> (Option<Arrived>, Vec<Difference>) {
        let arrived = self.recorder.take();
        let problems = sample.problems.iter();
        let mut found: Vec<Difference> =
            problems.map(|(place, problem)| Difference::new(place, "a value that is sent", problem)).collect();
        let [request] = arrived.as_slice() else {
            let problem = match sent {
                Err(error) | Ok(error) if arrived.is_empty() => format!("not sent: {error} for {}", sample.input),
                _ => format!("{} requests", arrived.len()),
            };
            found.push(Difference::new("request", "one request", problem));
            return (None, found);
        };
        found.extend(compare::differences(&sample.expected, request, BASE).await);
        let authority = self.recorder.url().trim_start_matches("http://").to_owned();
        let host = request.header("host").map(|host| String::from_utf8_lossy(host).into_owned()).collect::<Vec<_>>();
        if host != [authority.clone()] {
            found.push(Difference::new("header `host`", authority, host.join(" and ")));
        }
        (Some(request.clone()), found)
    }
}

/// Sends by id.
///
/// # Errors
/// What the call said, in any case: the server answers nothing else.
async fn send(registry: &Registry, spec: &OperationSpec, input: Value) -> Result<String, CallError> {
    let call = async {
        if spec.kind == OperationKind::Subscription {
            let mut stream = registry.stream(&spec.id, input).await?;
            return stream.next().await.unwrap_or_else(|| Err(CallError::execution("no item")));
        }
        registry.call(&spec.id, input).await
    };
    let late = || Err(CallError::execution("no answer in time"));
    timeout(PATIENCE, call).await.unwrap_or_else(|_| late()).map(|_| "an answer".to_owned())
}

/// The violations that an input was refused for; nothing if it was not.
fn refusal(error: &CallError) -> String {
    let violations = error.details().get("violations").and_then(Value::as_array).into_iter().flatten();
    let text = |key: &str, violation: &Value| violation[key].as_str().unwrap_or_default().to_owned();
    let violations =
        violations.map(|violation| format!("{} {}", text("pointer", violation), text("message", violation)));
    violations.collect::<Vec<_>>().join("; ")
}

fn told(error: &CallError) -> String {
    format!("{}: {} {}", error.code(), error.message(), error.details())
}

/// What tells operations apart in a document, but for queries and fragments.
fn request(method: &str, path: &str) -> (String, String) {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    (method.to_owned(), path.to_owned())
}

fn by_request(specs: Vec<OperationSpec>) -> BTreeMap<(String, String), VecDeque<OperationSpec>> {
    let mut found: BTreeMap<_, VecDeque<OperationSpec>> = BTreeMap::new();
    for spec in specs {
        if let Some(http) = spec.http() {
            found.entry(request(&http.method, &http.path)).or_default().push_back(spec);
        }
    }
    found
}
