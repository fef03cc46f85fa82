//! The tool `execute`: a program of many calls in place of many calls.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::answer::{answer, blocks, text_of};
use super::approval::{self, Approved};
use super::caller::CallerId;
use super::core::Core;
use super::find::{self, View};
use super::rules::{MadeBy, caller_of};
use crate::mcp::McpPeer;
use crate::model::random;
use crate::program::{Ask, Describe, Failure, Host, Kept, Outcome, Program, Reason, Report, Search};
use crate::run::pipeline;
use crate::run::principal::Principal;
use crate::{
    BoxFuture, CallError, CallOptions, ContentBlock, Context, Decision, Endpoint, ErrorCode, Handler, OperationKind,
    OperationSpec, Payload, Registration, ResponseEnvelope, Schema,
};

pub(super) static EXECUTE: OperationSpec = OperationSpec::mutation("gateway.execute")
    .with_description(
        "Runs a JavaScript program, the body of an async function, and gives what it returns. It has \
         `ops.<namespace>.<operation>(input)` for each operation, as `describe` shows them: each gives the data itself, and \
         throws an Error with `code`, `message` and `details`. Also `search(words)`, `describe(id, detail)` and `console.log`. No \
         network, no files, no timers. Call in parallel by `Promise.all`, and return only what you need. A call that changes \
         something may stop the program until the user agrees.",
    )
    .with_input(Schema::text(
        r#"{"type":"object","additionalProperties":false,"required":["code"],"properties":{
            "code":{"type":"string","description":"The program"},
            "resume":{"type":"string","description":"The key of a program that waited, given with the same code"},
            "approve":{"type":"array","items":{"type":"string"},"description":"The keys of its calls that the user agreed to"},
            "decline":{"type":"array","items":{"type":"string"},"description":"The keys of those that the user refused"}}}"#,
    ));

/// What stands before the key of a question that a program asks.
const QUESTION: &str = "program-";

/// The tool, for one kind of callers.
pub(super) fn registration(core: &Arc<Core>, unknown_is_owner: bool) -> Registration {
    Registration::new(&EXECUTE, Handler::endpoint(Tool { core: core.clone(), unknown_is_owner }))
}

struct Tool {
    core: Arc<Core>,
    unknown_is_owner: bool,
}

impl Endpoint for Tool {
    fn call(
        &self,
        _: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let (core, principal) = (self.core.clone(), Principal::of(&context, self.unknown_is_owner));
        Box::pin(async move {
            let Value::Object(input) = input else {
                return Err(CallError::new(ErrorCode::ValidationError, "an object is needed"));
            };
            execute(&core, principal, &input, context).await
        })
    }
}

async fn execute(
    core: &Arc<Core>,
    principal: Principal,
    input: &Map<String, Value>,
    context: Context,
) -> Result<ResponseEnvelope<Payload>, CallError> {
    let Some(programs) = &core.programs else { return Err(CallError::execution("there is no sandbox")) };
    let source = text_of(input, "code")?;
    let view = core.view().await?;
    let caller = caller_of(&principal);
    let peer = McpPeer::of(&context).filter(|peer| peer.supports("elicitation"));
    let functions = view.functions(&core.gate, &principal);
    let program = Program::new(source, functions);
    let host = ModelHost { core: core.clone(), principal, context, view, caller: caller.clone() };

    // The key of a program that waited comes with the call, or with the answers of its client.
    let answered = peer.as_ref().and_then(answered);
    let given = input.get("resume").and_then(Value::as_str).map(str::to_owned);
    let resumed = answered.as_ref().map(|answered| answered.key.clone()).or(given);
    let key = resumed.clone().unwrap_or_else(|| random::bytes::<16>().iter().fold(String::new(), hex));
    // The journals of one caller are no other's.
    let name = format!("{caller:?}/{key}");
    let mut kept = Kept::new(&*programs.store, &name);
    if resumed.is_some() {
        let known = programs.store.load(&name).await;
        if known.map_err(|error| CallError::execution(format!("the program cannot be read: {error}")))?.is_none() {
            return Ok(answer(
                true,
                format!(
                    "No program waits under the key `{key}`: it has ended, or the server was started again. What it has made stays \
                 made, so look before you run it from its start."
                ),
            ));
        }
        let said =
            |name: &str| input.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        // What the model says the user said counts only where the client can't be asked.
        if peer.is_none() && core.approvals.by_answer {
            kept = said("approve").fold(kept, Kept::with_yes);
        }
        kept = said("decline").fold(kept, Kept::with_no);
        for (ask, is_yes) in answered.into_iter().flat_map(|answered| answered.answers) {
            kept = if is_yes { kept.with_yes(ask) } else { kept.with_no(ask) };
        }
    }
    loop {
        let report = programs.sandbox.run_kept(&program, &kept, &host).await;
        let Outcome::Waiting(waiting) = &report.outcome else {
            let is_other = |failure: &Failure| matches!(failure.reason, Reason::Differs | Reason::Journal);
            // What another program was taken for still waits. Of one that has ended, nothing is left; a journal that cannot
            // be removed does no harm.
            if !matches!(&report.outcome, Outcome::Failed(failure) if is_other(failure)) {
                let _ = programs.store.remove(&name).await;
            }
            return Ok(ended(core, &caller, report));
        };
        let Some(peer) = &peer else {
            return Ok(waits(core, &key, &waiting.asks, report.logs.len()));
        };
        kept = Kept::new(&*programs.store, &name);
        for ask in &waiting.asks {
            let Some(entry) = find::entry(&core.gate, &host.principal, &ask.id) else {
                kept = kept.with_no(&ask.key);
                continue;
            };
            let question = format!("{QUESTION}{key}.{}", ask.key);
            // A client of the newer revision answers with another call, and this one ends here.
            kept = match approval::ask(peer, &question, &entry.spec, &ask.input).await {
                Ok(()) => kept.with_yes(&ask.key),
                Err(error) if *error.code() == ErrorCode::AccessDenied => kept.with_no(&ask.key),
                Err(error) => return Err(error),
            };
        }
    }
}

fn hex(mut text: String, byte: &u8) -> String {
    let _ = write!(text, "{byte:02x}");
    text
}

/// What the user of a client said to the questions of a program.
struct Answered {
    key: String,
    /// Each question's key, and whether the answer is yes.
    answers: Vec<(String, bool)>,
}

/// The answers to the questions of the program that asked last.
fn answered(peer: &McpPeer) -> Option<Answered> {
    let mut found: Option<Answered> = None;
    for (question, answer) in peer.answers() {
        let Some((key, ask)) = question.strip_prefix(QUESTION).and_then(|rest| rest.split_once('.')) else { continue };
        let said = (ask.to_owned(), answer.get("action").and_then(Value::as_str) == Some("accept"));
        match &mut found {
            Some(found) if found.key == key => found.answers.push(said),
            _ => found = Some(Answered { key: key.to_owned(), answers: vec![said] }),
        }
    }
    found
}

/// The answer of a program that has ended.
fn ended(core: &Core, caller: &CallerId, report: Report) -> ResponseEnvelope<Payload> {
    let (is_error, mut content) = match report.outcome {
        Outcome::Done(value) => (false, core.fit(caller, value)),
        Outcome::Failed(failure) => (true, vec![ContentBlock::text(failed(&failure))]),
        Outcome::Waiting(_) => (true, Vec::new()),
    };
    if !report.logs.is_empty() {
        let lines: Vec<String> = report.logs.iter().map(|log| format!("{}: {}", log.level, log.text)).collect();
        let console = core.fit(caller, Value::String(lines.join("\n")));
        content.push(ContentBlock::text("The console:"));
        content.extend(console);
    }
    content.extend(report.warnings.into_iter().map(ContentBlock::text));
    blocks(is_error, content)
}

fn failed(failure: &Failure) -> String {
    let mut text = format!("The program failed: {failure}");
    if !failure.stack.is_empty() {
        let _ = write!(text, "\n{}", failure.stack);
    }
    text
}

/// The answer of a program that waits, where the client can't be asked.
fn waits(core: &Core, key: &str, asks: &[Ask], logs: usize) -> ResponseEnvelope<Payload> {
    let mut text = String::from("The program waits.\n");
    for ask in asks {
        let table = core.gate.registry().table();
        let question = table.get(&ask.id).map(|entry| approval::question(&entry.spec, &ask.input));
        let _ = writeln!(text, "\n{} (key {})", question.unwrap_or_else(|| ask.id.clone()), ask.key);
    }
    if logs > 0 {
        let _ = writeln!(text, "\nIts console is shown when it ends.");
    }
    if core.approvals.by_answer {
        let _ = write!(
            text,
            "\nAsk the user about each. Then call `execute` again with the same code, \"resume\": \"{key}\", and the keys \
             under \"approve\" or \"decline\": it goes on where it is, and repeats no call."
        );
        return answer(false, text);
    }
    let _ = write!(text, "\nThis client cannot ask its user (elicitation), so the program cannot go on.");
    answer(true, text)
}

/// What a program of a model reaches: what its caller may call, by the gateway's rules.
struct ModelHost {
    core: Arc<Core>,
    principal: Principal,
    context: Context,
    view: Arc<View>,
    caller: CallerId,
}

impl Host for ModelHost {
    fn call<'a>(&'a self, id: &'a str, input: Value) -> BoxFuture<'a, Result<Value, CallError>> {
        Box::pin(async move {
            let unknown = || CallError::new(ErrorCode::OperationNotFound, format!("there is no operation `{id}`"));
            let entry = find::entry(&self.core.gate, &self.principal, id).ok_or_else(unknown)?;
            // The sandbox has asked already, where there was something to ask.
            let options = CallOptions::new().with_extension(Approved).with_extension(MadeBy(self.caller.clone()));
            let invocation = self.principal.forward(&self.context, self.core.gate.registry(), options);
            let request = invocation.context.id();
            let result = if entry.spec.kind == OperationKind::Subscription {
                Box::pin(super::core::collect(invocation, id, input)).await
            } else {
                pipeline::answer(invocation, &entry, input).await
            };
            let envelope = result.map_err(|error| self.core.public(&self.principal, error, &entry.spec, &request))?;
            match envelope.meta.as_mcp() {
                Some(meta) if meta.is_error => {
                    Err(CallError::new("TOOL_ERROR", "the tool says that it failed").with_details(envelope.data))
                }
                _ => Ok(envelope.data),
            }
        })
    }

    fn decide(&self, id: &str, _: &Value) -> Decision {
        let entry = find::entry(&self.core.gate, &self.principal, id);
        entry.map_or(Decision::Deny, |entry| self.core.gate.rules().decide(&entry.spec))
    }

    fn check(&self, id: &str, input: &Value) -> Result<(), CallError> {
        let Some(entry) = find::entry(&self.core.gate, &self.principal, id) else { return Ok(()) };
        entry.schemas.check_input(&entry.spec, input)?;
        let invocation = self.principal.forward(&self.context, self.core.gate.registry(), CallOptions::new());
        let request = invocation.context.id();
        let checked = match &entry.handler {
            Some(handler) => handler.erased.check(&entry.spec, input, &invocation.context),
            None => Ok(()),
        };
        checked.map_err(|error| self.core.public(&self.principal, error, &entry.spec, &request))
    }

    fn is_query(&self, id: &str) -> bool {
        find::entry(&self.core.gate, &self.principal, id)
            .is_some_and(|entry| entry.spec.kind != OperationKind::Mutation)
    }

    fn search(&self) -> Option<&dyn Search> {
        Some(self)
    }

    fn describe(&self) -> Option<&dyn Describe> {
        Some(self)
    }
}

impl Search for ModelHost {
    fn search<'a>(&'a self, words: &'a str, limit: Option<usize>) -> BoxFuture<'a, Result<Value, CallError>> {
        let found = find::best(&self.core.gate, &self.view, &self.principal, words, None, limit.unwrap_or(8));
        let listed = found.iter().map(|entry| {
            json!({ "id": entry.spec.id, "function": self.view.function(&entry.spec.id), "summary": find::summary(&entry.spec) })
        });
        let listed = listed.collect();
        Box::pin(async move { Ok(listed) })
    }
}

impl Describe for ModelHost {
    fn describe<'a>(&'a self, id: &'a str, detail: &'a Value) -> BoxFuture<'a, Result<Value, CallError>> {
        let described = match find::entry(&self.core.gate, &self.principal, id) {
            Some(entry) => Ok(Value::from(find::describe(&self.view, &entry.spec, detail == "whole"))),
            None => {
                let text = find::unknown(&self.core.gate, &self.view, &self.principal, id);
                Err(CallError::new(ErrorCode::OperationNotFound, text))
            }
        };
        Box::pin(async move { described })
    }
}
