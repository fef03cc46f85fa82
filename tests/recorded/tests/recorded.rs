//! Recorded calls of real tools: generated types make every request and take every result, and errors lose nothing.
//!
//! A handler plays the server: it takes what would be sent, and answers what was recorded. Each call is made by its type
//! and by its id. A request that the tool's own schema refuses, in the judgement of another library as well, is not sent; the
//! answer that was recorded for it is then given to a request that the schema accepts.
#![allow(clippy::unwrap_used)]
// What other people write about their tools is not ours to mend.
#![allow(clippy::doc_markdown)]

use std::sync::{Arc, Mutex};

use ops_runtime::adapter::{BoxFuture, Endpoint, Handler, Payload, Registration};
use ops_runtime::binding::McpOutput;
use ops_runtime::envelope::McpMeta;
use ops_runtime::record::{from_value, to_value};
use ops_runtime::registry::OutputPolicy;
use ops_runtime::spec::OperationSpec;
use ops_runtime::{Call, CallError, Context, ErrorCode, Registry, ResponseEnvelope, mcp};
use ops_tests::sample;
use serde_json::{Map, Value, json};

include!(concat!(env!("OUT_DIR"), "/cases.rs"));

#[test]
fn every_recorded_call_is_made_and_answered_as_recorded() {
    let calls = serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/calls.json"))).unwrap();
    let mut run = Run { calls, made: 0, results: 0, errors: 0, refused: 0, wrong: Vec::new() };
    cases(&mut run);
    let Run { calls, made, results, errors, refused, wrong } = run;
    LEFT_OUT.iter().for_each(|left_out| println!("left out: {left_out}"));
    println!(
        "{FOLDER}, and our own: {made} calls: {results} results, {errors} errors; {refused} requests that their schema refuses"
    );
    assert_eq!(FAILED, [""; 0], "nothing is generated for these");
    assert_eq!(MISSING, [""; 0], "these recordings are left out, or not there");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!((made, results + errors), (calls.len(), calls.len()));
    assert!(results > 0 && errors > 0, "there is nothing to compare");
}

/// Plays the server.
struct Recorded {
    result: Value,
    sent: Arc<Mutex<Option<Value>>>,
}

impl Endpoint for Recorded {
    fn call(
        &self,
        spec: &OperationSpec,
        input: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        *self.sent.lock().unwrap() = Some(input);
        let answer = mcp::decode(spec, self.result.clone());
        Box::pin(async move { answer })
    }
}

struct Run {
    calls: Vec<Value>,
    made: usize,
    results: usize,
    errors: usize,
    refused: usize,
    wrong: Vec<String>,
}

impl Run {
    /// Makes the call of that number, of the tool that an operation stands for.
    fn call<Op: Call>(&mut self, server: &str, number: usize) {
        let call = self.calls[number].clone();
        let arguments = call["request"].get("arguments").cloned().unwrap_or_else(|| json!({}));
        let result = call["result"].clone();
        self.made += 1;
        let schema = Op::SPEC.input_schema().unwrap();
        let one = |policy| One::<Op> { policy, result: result.clone(), operation: std::marker::PhantomData };
        let is_refused = one(OutputPolicy::Repair).is_refused(&arguments);
        self.refused += usize::from(is_refused);
        // Of a schema that the other library cannot read, the server's answer tells.
        let deserves_it =
            sample::accepts(&call["schema"], &arguments).map_or(result["isError"] == true, |is_valid| !is_valid);
        if is_refused && !deserves_it {
            self.wrong
                .push(format!("{server}: {}: a request that is right is refused\n  {call}", call["request"]["name"]));
        }
        let arguments = if is_refused { sample::fitting(&schema) } else { arguments };
        // Under the strict policy whatever does not match fails the call.
        let outcome = [OutputPolicy::Repair, OutputPolicy::Strict].into_iter().try_for_each(|p| one(p).of(&arguments));
        match outcome {
            Ok(()) if result["isError"] == true => self.errors += 1,
            Ok(()) => self.results += 1,
            Err(message) => self.wrong.push(format!("{server}: {}: {message}\n  {call}", call["request"]["name"])),
        }
    }
}

impl Run {
    /// A call of a tool that the server has not: whoever sends it nevertheless is told all that was recorded.
    fn unknown(&mut self, server: &str, number: usize) {
        self.made += 1;
        let call = &self.calls[number];
        let decoded = mcp::decode(&OperationSpec::mutation("server.unknown"), call["result"].clone());
        let judged = decoded.map_err(|error| error.to_string()).and_then(|envelope| {
            let meta = envelope.meta.as_mcp().ok_or("no answer of a tool")?;
            judge_meta(&call["result"], meta)?;
            if meta.is_error { Ok(()) } else { Err("the server knows it".to_owned()) }
        });
        match judged {
            Ok(()) => self.errors += 1,
            Err(message) => self.wrong.push(format!("{server}: {message}\n  {call}")),
        }
    }
}

/// One call.
struct One<Op> {
    policy: OutputPolicy,
    result: Value,
    operation: std::marker::PhantomData<Op>,
}

impl<Op: Call> One<Op> {
    /// Whether the schema of the tool refuses a request, so that nobody sends it.
    fn is_refused(&self, arguments: &Value) -> bool {
        let (outcome, sent) = self.dynamic(arguments);
        sent.is_none() && outcome.is_err_and(|error| *error.code() == ErrorCode::ValidationError)
    }

    /// Makes a request by its type and by its id.
    fn of(&self, arguments: &Value) -> Result<(), String> {
        let input =
            from_value::<Op::Input>(arguments).map_err(|error| format!("the type refuses the request: {error}"))?;
        let (typed, sent) = self.typed(input);
        match sent {
            Some(sent) => is_request(&sent, arguments)?,
            None => return Err(format!("the typed request was not sent: {:?}", typed.err())),
        }
        self.judge_typed(typed)?;
        let (dynamic, sent) = self.dynamic(arguments);
        if sent.as_ref() != Some(arguments) {
            return Err(format!("the dynamic request is {sent:?}, {dynamic:?}"));
        }
        self.judge_dynamic(dynamic)
    }

    fn typed(&self, input: Op::Input) -> (Result<ResponseEnvelope<Op::Output>, CallError>, Option<Value>) {
        let (registry, sent) = self.registry();
        let envelope = block_on(registry.execute::<Op>(input));
        let sent = sent.lock().unwrap().take();
        (envelope, sent)
    }

    fn dynamic(&self, arguments: &Value) -> (Result<ResponseEnvelope<Value>, CallError>, Option<Value>) {
        let (registry, sent) = self.registry();
        let envelope = block_on(registry.call(&Op::SPEC.id, arguments.clone()));
        let sent = sent.lock().unwrap().take();
        (envelope, sent)
    }

    fn registry(&self) -> (Registry, Arc<Mutex<Option<Value>>>) {
        let (registry, sent) = (Registry::builder().with_policy(self.policy).build(), Arc::new(Mutex::new(None)));
        let recorded = Recorded { result: self.result.clone(), sent: sent.clone() };
        registry.register(Registration::new(Op::SPEC, Handler::endpoint(recorded))).unwrap();
        (registry, sent)
    }

    fn judge_typed(&self, outcome: Result<ResponseEnvelope<Op::Output>, CallError>) -> Result<(), String> {
        if self.result["isError"] != true {
            let envelope = outcome.map_err(|error| format!("the type refuses the result: {error}"))?;
            let data = to_value(&envelope.data).map_err(|error| error.to_string())?;
            return self.judge(&envelope.map(|_| data), true);
        }
        let error = outcome.map(|_| "the typed call gave a result").map_err(Box::new);
        let error = match error {
            Err(error) if *error.code() == ErrorCode::ToolError => error,
            other => return Err(format!("not a tool's error: {other:?}")),
        };
        let texts = self.result["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
        if error.message() != texts.collect::<Vec<_>>().join("\n") && !has_unknown(&self.result["content"]) {
            return Err(format!("the error says {:?}", error.message()));
        }
        judge_meta(&self.result, error.mcp_meta().ok_or("the error has no answer")?)
    }

    fn judge_dynamic(&self, outcome: Result<ResponseEnvelope<Value>, CallError>) -> Result<(), String> {
        let envelope = outcome.map_err(|error| format!("the dynamic call failed: {error}"))?;
        if self.result["isError"] == true {
            let meta = envelope.meta.as_mcp().ok_or("no answer of a tool")?;
            judge_meta(&self.result, meta)?;
            let blocks = serde_json::to_value(&meta.content).unwrap();
            return if envelope.data == blocks { Ok(()) } else { Err(format!("the data are {}", envelope.data)) };
        }
        self.judge(&envelope, false)
    }

    /// Nothing was repaired, and what was recorded is there.
    fn judge(&self, envelope: &ResponseEnvelope<Value>, by_type: bool) -> Result<(), String> {
        if !envelope.warnings.is_empty() {
            return Err(format!("the result was repaired: {:?}", envelope.warnings));
        }
        let meta = envelope.meta.as_mcp().ok_or("no answer of a tool")?;
        judge_meta(&self.result, meta)?;
        let structured = self.result.get("structuredContent");
        let blocks = serde_json::to_value(&meta.content).unwrap();
        let text = meta.content.first().and_then(|block| serde_json::from_str(block.as_text()?).ok());
        let expected = match (Op::SPEC.mcp().unwrap().output, structured) {
            // By type, a tool without a schema gives its blocks; by id, what it says beside them.
            (McpOutput::Content, Some(structured)) if !by_type && !structured.is_null() => structured.clone(),
            (McpOutput::Content, _) => blocks,
            (McpOutput::Wrapped, Some(structured)) => structured["result"].clone(),
            (_, Some(structured)) => structured.clone(),
            (_, None) => text.unwrap_or(blocks),
        };
        holds(&envelope.data, &expected, "")
    }
}

/// The answer holds all that was recorded.
fn judge_meta(result: &Value, meta: &McpMeta) -> Result<(), String> {
    let is_same = meta.is_error == (result["isError"] == true)
        && meta.structured_content.as_ref() == result.get("structuredContent")
        && meta.meta.as_ref() == result.get("_meta").and_then(Value::as_object);
    if !is_same {
        return Err(format!("the answer is {meta:?}"));
    }
    let recorded = result["content"].as_array().cloned().unwrap_or_default();
    if meta.content.len() != recorded.len() {
        return Err(format!("there are {} blocks, not {}", meta.content.len(), recorded.len()));
    }
    for (block, recorded) in meta.content.iter().zip(recorded) {
        let kept = serde_json::to_value(block).unwrap();
        // A block of a kind that is not known is text that holds its JSON.
        let inside = block.as_text().and_then(|text| serde_json::from_str::<Value>(text).ok());
        if kept != recorded && inside.as_ref() != Some(&recorded) {
            return Err(format!("the block {recorded} became {kept}"));
        }
    }
    Ok(())
}

fn has_unknown(content: &Value) -> bool {
    let known = ["text", "image", "audio", "resource", "resource_link"];
    content.as_array().into_iter().flatten().any(|block| !known.iter().any(|kind| block["type"] == *kind))
}

fn block_on<T>(call: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(call)
}

/// What is sent is what was recorded, but for `null` where it may be absent.
fn is_request(sent: &Value, recorded: &Value) -> Result<(), String> {
    let empty = Map::new();
    let (sent, recorded) = (sent.as_object().ok_or("it is no object")?, recorded.as_object().unwrap_or(&empty));
    for (name, value) in recorded {
        match sent.get(name) {
            Some(own) => {
                holds(own, value, name)?;
                holds(value, own, name)?;
            }
            None if value.is_null() => {}
            None => return Err(format!("the request lacks `{name}`")),
        }
    }
    match sent.iter().find(|(name, _)| !recorded.contains_key(*name)) {
        Some((name, value)) => Err(format!("the request has `{name}`, which nobody set: {value}")),
        None => Ok(()),
    }
}

/// A value holds all that another does: more members at most, and numbers that are equal.
fn holds(value: &Value, other: &Value, place: &str) -> Result<(), String> {
    let differs = || Err(format!("at `{place}` is {value}, not {other}"));
    match (value, other) {
        (Value::Object(own), Value::Object(members)) => {
            members.iter().try_for_each(|(name, member)| match own.get(name) {
                Some(own) => holds(own, member, &format!("{place}/{name}")),
                None if member.is_null() => Ok(()),
                None => Err(format!("at `{place}` there is no `{name}`")),
            })
        }
        (Value::Array(own), Value::Array(items)) if own.len() == items.len() => own
            .iter()
            .zip(items)
            .enumerate()
            .try_for_each(|(at, (own, item))| holds(own, item, &format!("{place}/{at}"))),
        (Value::Number(own), Value::Number(number)) if own.as_f64() == number.as_f64() => Ok(()),
        _ if value == other => Ok(()),
        _ => differs(),
    }
}
