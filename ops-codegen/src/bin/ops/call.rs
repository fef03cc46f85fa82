//! `ops call`: calls one operation and prints its result.

use std::io::{IsTerminal, Read, Write};
use std::time::Duration;

use futures_util::StreamExt;
use ops_runtime::adapter::Registration;
use ops_runtime::envelope::Warning;
use ops_runtime::spec::{OperationKind, OperationSpec, SpecRef};
use ops_runtime::{CallError, CallOptions, HttpConfig, Registry, ResponseEnvelope};
use serde_json::Value;

use crate::arguments::CallArguments;
use crate::credentials::{Lack, config, guard};
use crate::failure::Failure;
use crate::modules::{Bound, bound, runtime, shown};
use crate::progress::Progress;
use crate::report::{clean, label};
use crate::server::{is_config, is_tools};

mod failed;
mod save;
mod tool;

pub(crate) use self::failed::is_of_output;
use self::failed::{failed, message};

pub(crate) fn run(arguments: &CallArguments) -> Result<(), Failure> {
    if arguments.spec == "-" && arguments.input.as_deref() == Some("-") {
        let message = "standard input cannot be both the document and the input: give one of them as a file";
        return Err(Failure::Usage(message.to_owned()));
    }
    if arguments.operation.is_none() && arguments.spec == "-" && !arguments.server.is_given() {
        // A configuration needs the name of a tool as well, and a terminal would be read until its user ends the text.
        return Err(unnamed());
    }
    let is_config = is_config(&arguments.spec)?;
    if is_config || arguments.server.is_given() {
        return tool::run(arguments, is_config);
    }
    let Some(operation) = &arguments.operation else {
        return Err(unnamed());
    };
    if is_tools(&arguments.spec) {
        let message = format!("`{}` is a snapshot: name its server as well", arguments.spec);
        return Err(Failure::Usage(format!("{message}, by `--url URL`, `--config FILE`, or its command behind `--`")));
    }
    arguments.server.refuse_name(&arguments.spec)?;
    let progress = Progress::start("reading");
    let base_url = arguments.base_url.as_deref();
    let config = config(base_url, &arguments.credentials, arguments.timeout)?;
    let lack = arguments.credentials.lack_of_document(base_url, &arguments.spec);
    let bound = bound(&arguments.spec, config.clone(), &lack)?;
    drop(progress);
    let unreadable = bound.unreadable;
    let called = call(arguments, operation, config, bound).or_else(Failure::unless_gone);
    // The other documents of a folder were taken.
    called.map_err(|failure| failure.beside(unreadable)).and(Failure::of_unreadable(unreadable, None))
}

/// Calls an operation of the documents.
fn call(arguments: &CallArguments, operation: &str, config: HttpConfig, bound: Bound) -> Result<(), Failure> {
    let Bound { registrations, others, .. } = bound;
    let base_url = arguments.base_url.as_deref();
    let has_name = |spec: &OperationSpec| spec.name() == operation;
    // If an operation of a document has the name as well, the name means that operation, because it can be called.
    let is_callable = registrations.iter().any(|registration| has_name(registration.spec()));
    let by_name = || others.iter().find(|spec| !is_callable && has_name(spec));
    if let Some(other) = others.iter().find(|spec| spec.id == operation).or_else(by_name) {
        let what = if other.mcp().is_some() { "a tool of an MCP server" } else { "an operation of a program" };
        let message = format!("`{}` is {what}, not of an HTTP API", other.id);
        return Err(Failure::Usage(format!(
            "{message}: name its server by `--url URL`, `--config FILE`, or its command behind `--`"
        )));
    }
    let spec = find(&registrations, operation, Some(&shown(&arguments.spec)))?;
    guard(base_url, &arguments.credentials, &arguments.spec, &spec)?;
    let lack = Lack::of(config, &arguments.credentials, [&*spec])?;
    let input = input(arguments, &arguments.values, &spec)?;
    let registry = Registry::new();
    registry.register_all(registrations).map_err(|error| Failure::Failed(error.to_string()))?;
    runtime()?.block_on(async {
        if spec.kind == OperationKind::Subscription {
            if arguments.output.is_some() {
                let message =
                    format!("`--output` takes one answer, and `{}` is a stream: send its output there", spec.id);
                return Err(Failure::Usage(message));
            }
            return stream(&registry, &spec, input, arguments, &lack).await;
        }
        once(&registry, &spec, input, arguments, &lack).await
    })
}

/// No operation is named.
fn unnamed() -> Failure {
    let message = "name an operation of the document: `ops inspect` shows all that there are";
    Failure::Usage(message.to_owned())
}

fn options(arguments: &CallArguments) -> CallOptions {
    CallOptions::new().with_policy(arguments.policy.into())
}

async fn once(
    registry: &Registry,
    spec: &OperationSpec,
    input: Value,
    arguments: &CallArguments,
    lack: &Lack,
) -> Result<(), Failure> {
    if let Some(file) = &arguments.output {
        save::check(file)?;
    }
    let failed = |error: CallError| lack.beside(&error, failed(&error));
    let progress = Progress::start("waiting for the answer");
    let envelope = registry.call_with(&spec.id, input, options(arguments)).await.map_err(failed)?;
    drop(progress);
    let is_error = envelope.meta.as_mcp().is_some_and(|meta| meta.is_error);
    let printed = match &arguments.output {
        // The error text of a tool is not saved to the file.
        Some(file) if !is_error => save::save(envelope, spec, file),
        _ => print(envelope, arguments, true),
    };
    printed.or_else(Failure::unless_gone)?;
    if is_error { Err(Failure::Failed("the tool says that it failed".to_owned())) } else { Ok(()) }
}

async fn stream(
    registry: &Registry,
    spec: &OperationSpec,
    input: Value,
    arguments: &CallArguments,
    lack: &Lack,
) -> Result<(), Failure> {
    let failed = |error: CallError| lack.beside(&error, failed(&error));
    let options = options(arguments).with_idle_timeout(Duration::from_secs(arguments.timeout));
    let mut stream = registry.stream_with(&spec.id, input, options).await.map_err(failed)?;
    let mut wrong: usize = 0;
    while let Some(item) = stream.next().await {
        match item {
            Ok(envelope) => print(envelope, arguments, false)?,
            // The stream goes on after an item that cannot be read.
            Err(error) => {
                wrong += 1;
                let is_silent = error.details().get("idleTimeout").is_some();
                let advice = if is_silent { ": raise `--timeout`" } else { "" };
                tell("error", &format!("{}{advice}", message(&error)));
            }
        }
    }
    match wrong {
        0 => Ok(()),
        1 => Err(Failure::Failed("an item of the stream was an error".to_owned())),
        _ => Err(Failure::Failed(format!("{wrong} items of the stream were errors"))),
    }
}

fn print(envelope: ResponseEnvelope<Value>, arguments: &CallArguments, pretty: bool) -> Result<(), Failure> {
    let text = if arguments.text { text_of(&envelope) } else { None };
    let json = if arguments.raw || arguments.text {
        tell_warnings(&envelope);
        Ok(envelope.data)
    } else {
        serde_json::to_value(&envelope)
    };
    let json = json.map_err(|error| Failure::Failed(format!("the result has no JSON: {error}")))?;
    let mut stdout = std::io::stdout().lock();
    let written = match text {
        // Parts of it could control the terminal.
        Some(text) if stdout.is_terminal() => writeln!(stdout, "{}", clean(text.trim_end())),
        Some(text) => write!(stdout, "{text}{}", if text.ends_with('\n') { "" } else { "\n" }),
        None if pretty => writeln!(stdout, "{}", crate::report::json(&format!("{json:#}"))),
        None => writeln!(stdout, "{}", crate::report::json(&json.to_string())),
    };
    written.and_then(|()| stdout.flush()).map_err(Failure::output)
}

fn tell_warnings(envelope: &ResponseEnvelope<Value>) {
    envelope.warnings.iter().for_each(|warning| tell("warning", &told(warning)));
}

/// A warning about a result, in words.
pub(crate) fn told(warning: &Warning) -> String {
    let place = if warning.pointer.is_empty() { "the data" } else { &warning.pointer };
    format!("{place} was {}, not {}", warning.found, warning.expected)
}

/// The data, if they are text.
fn text_of(envelope: &ResponseEnvelope<Value>) -> Option<String> {
    match &envelope.data {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) if envelope.meta.as_mcp().is_some() && !blocks.is_empty() => {
            let text = |block: &Value| {
                let text = block.get("text").and_then(Value::as_str);
                text.filter(|_| block.get("type").is_some_and(|kind| kind == "text")).map(str::to_owned)
            };
            blocks.iter().map(text).collect::<Option<Vec<_>>>().map(|texts| texts.join("\n"))
        }
        _ => None,
    }
}

fn tell(word: &str, message: &str) {
    // If standard error is closed, there is no way to report it.
    let _ = writeln!(anstream::stderr().lock(), "{}: {}", label(word), clean(message));
}

/// The operation among those that can be called.
fn find(registrations: &[Registration], wanted: &str, location: Option<&str>) -> Result<SpecRef, Failure> {
    let specs: Vec<&OperationSpec> = registrations.iter().map(Registration::spec).collect();
    crate::find::find(&specs, wanted, location).map(|spec| SpecRef::from(spec.clone()))
}

/// The input: the value of `--input`, with the pairs added.
fn input(arguments: &CallArguments, values: &[String], spec: &OperationSpec) -> Result<Value, Failure> {
    let given = match arguments.input.as_deref() {
        None => None,
        Some("-") => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|error| Failure::Usage(format!("the input cannot be read from standard input: {error}")))?;
            Some(text)
        }
        Some(given) => match given.strip_prefix('@') {
            Some(path) => Some(
                std::fs::read_to_string(path)
                    .map_err(|error| Failure::Usage(format!("the input cannot be read from `{path}`: {error}")))?,
            ),
            None => Some(given.to_owned()),
        },
    };
    let mut input = match given {
        Some(text) => crate::input::whole(&text).map_err(Failure::Usage)?,
        None => Value::Object(serde_json::Map::new()),
    };
    let schema = spec.input_schema();
    let schema = schema.map_err(|error| Failure::Failed(format!("the input's schema is not JSON: {error}")))?;
    let added = crate::input::add(&mut input, values, &schema);
    // The document describes the whole input of an HTTP operation.
    let checked = crate::input::check(&input, &schema, spec.http().is_some());
    let wrong: Vec<String> = [added, checked].into_iter().filter_map(Result::err).collect();
    if wrong.is_empty() { Ok(input) } else { Err(Failure::Usage(wrong.join("\n"))) }
}
