//! The tool `execute`: a program of many calls in place of many calls.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::answer::{answer, blocks, text_of, wrong};
use super::approval;
use super::caller::CallerId;
use super::core::Core;
use super::find;
use super::host::{ModelHost, Noted, Noticed};
use super::rules::caller_of;
use super::summary::name;
use crate::mcp::McpPeer;
use crate::model::random;
use crate::program::{Ask, Failure, Host, Journal, Kept, Outcome, Program, Reason, Report};
use crate::run::principal::Principal;
use crate::{
    BoxFuture, CallError, ContentBlock, Context, Endpoint, ErrorCode, Handler, OperationSpec, Payload, Registration,
    ResponseEnvelope, Schema,
};

pub(super) static EXECUTE: OperationSpec = OperationSpec::mutation("gateway.execute")
    .with_description(
        "Runs a JavaScript program, the body of an async function, and gives what it returns. It has \
         `ops.<namespace>.<operation>(input)` for each operation, as `describe` shows them: each gives the data itself, and \
         throws an Error with `code`, `message` and `details`. Whole numbers beyond 2^53 are BigInts. Also `search(words)`, \
         `describe(id, detail)` and `console.log`. No network, no files, no timers. Call in parallel by `Promise.all`, and return \
         only what you need. A call that changes something may stop the program until the user agrees. A result that is too \
         long is cut; its last line says how to read on.",
    )
    .with_input(Schema::text(
        r#"{"type":"object","additionalProperties":false,"properties":{
            "code":{"type":"string","description":"The program"},
            "resume":{"type":"string","description":"The key of a program that waited, given with the same code"},
            "approve":{"type":"array","items":{"type":"string"},"description":"The keys of its calls that the user agreed to"},
            "decline":{"type":"array","items":{"type":"string"},"description":"The keys of those that the user refused"},
            "read":{"type":"object","description":"In place of `code`: reads on in a result that was cut","properties":{
                "cursor":{"type":"string","description":"As the result came with it"},
                "pointer":{"type":"string","description":"The JSON pointer of another place"},
                "from":{"type":"integer","description":"How many items or characters of it to leave out"}}}}}"#,
    ));

/// What stands before the key of a question that a program asks.
const QUESTION: &str = "program-";

/// What to say of a program that seems to have done nothing.
const NOTHING: &str = "The program returned nothing. It is the body of a function itself: what it gives stands behind `return`, and a \
                       function in it does nothing unless it is called.";

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
    let caller = caller_of(&principal);
    if let Some(read) = input.get("read") {
        // A program beside it would be one that the model takes for run.
        let is_alone = input.len() == 1;
        return if is_alone {
            Ok(core.read_on(&caller, read))
        } else {
            Err(wrong("`read` stands alone: run `code` by itself"))
        };
    }
    let source = text_of(input, "code")?;
    let view = core.view().await?;
    let peer = McpPeer::of(&context).filter(|peer| peer.supports("elicitation"));
    let functions = view.functions(&core.gate, &principal);
    let program = Program::new(source, functions);
    let noted = Noted::default();
    let host = ModelHost { core: core.clone(), principal, context, view, caller: caller.clone(), noted };

    // The key of a program that waited comes with the call, or with the answers of its client.
    let answered = peer.as_ref().and_then(answered);
    let given = input.get("resume").and_then(Value::as_str).map(str::to_owned);
    let resumed = answered.as_ref().map(|answered| answered.key.clone()).or(given);
    let key = resumed.clone().unwrap_or_else(|| random::bytes::<16>().iter().fold(String::new(), hex));
    // The journals of one caller are no other's.
    let name = format!("{caller:?}/{key}");
    let known = Kept::new(&*programs.store, &name);
    // What has been resumed meanwhile, and is done, does not begin again.
    let mut kept = if resumed.is_some() { known.existing() } else { known };
    if resumed.is_none() && (input.contains_key("approve") || input.contains_key("decline")) {
        // It would run from its start, and make once more what it has made.
        let message = "`approve` and `decline` are for a program that waits: give its key as `resume`, too";
        return Err(CallError::new(ErrorCode::ValidationError, message));
    }
    if resumed.is_some() {
        let known = programs.store.load(&name).await;
        let known = known.map_err(|error| CallError::execution(format!("the program cannot be read: {error}")))?;
        // What it did before it waited is as much done as what it does now.
        for id in known.iter().flat_map(Journal::started).filter(|id| !host.is_query(id)) {
            host.noted.changes(id);
        }
        if known.is_none() {
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
    let _permit = programs.limiter.admit(&caller).await?;
    loop {
        let report = programs.sandbox.run_kept(&program, &kept, &host).await;
        let Outcome::Waiting(waiting) = &report.outcome else {
            let is_other = |failure: &Failure| matches!(failure.reason, Reason::Differs | Reason::Journal);
            // What another program was taken for still waits. Of one that has ended, nothing is left; a journal that cannot
            // be removed does no harm.
            if !matches!(&report.outcome, Outcome::Failed(failure) if is_other(failure)) {
                let _ = programs.store.remove(&name).await;
            }
            return Ok(ended(core, &caller, source, report, host.noted.take(), resumed.is_some()));
        };
        let Some(peer) = &peer else {
            return Ok(waits(core, &key, &waiting.asks, report.logs.len()));
        };
        kept = Kept::new(&*programs.store, &name).existing();
        for ask in &waiting.asks {
            let Some(entry) = find::entry(&core.gate, &host.principal, &ask.id) else {
                kept = kept.with_no(&ask.key);
                continue;
            };
            let question = format!("{QUESTION}{key}.{}", ask.key);
            // A client of the newer revision answers with another call, and this one ends here.
            kept = match approval::ask(peer, &question, &entry, &ask.input, None).await {
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
fn ended(
    core: &Core,
    caller: &CallerId,
    source: &str,
    report: Report,
    noted: Noticed,
    resumed: bool,
) -> ResponseEnvelope<Payload> {
    let (is_error, mut content) = match report.outcome {
        Outcome::Done(value) => {
            let did_nothing = report.calls == 0 && report.logs.is_empty() || !source.contains("return");
            let hint = (value.is_null() && did_nothing).then(|| ContentBlock::text(NOTHING));
            let mut content = core.fit(caller, value);
            content.extend(hint);
            (false, content)
        }
        // It has not begun. One that has, and then does something else than before, tells so itself.
        Outcome::Failed(failure) if resumed && failure.reason == Reason::Differs && report.calls == 0 => {
            let text = "The code is not that of the program that waits under this key, to the last character. It still waits: \
                        give the same code.";
            (true, vec![ContentBlock::text(text)])
        }
        // Neither has one whose journal cannot be taken up, or has no such question.
        Outcome::Failed(failure) if resumed && failure.reason == Reason::Journal && report.calls == 0 => {
            let text = format!(
                "The program did not go on: {failure}. What it has done stays done, so do not run it from its start. To see what it \
                 asks, if it still waits, call `execute` with the same code and with `resume` alone."
            );
            (true, vec![ContentBlock::text(text)])
        }
        Outcome::Failed(failure) => {
            let mut text = failed(&failure);
            if !noted.changed.is_empty() {
                let all: Vec<String> = noted.changed.iter().map(|(id, count)| format!("`{id}` ({count})")).collect();
                let all = all.join(", ");
                let _ =
                    write!(text, "\nBefore, it called what changes something, and what was done stays done: {all}.");
            }
            (true, vec![ContentBlock::text(text)])
        }
        Outcome::Waiting(_) => (true, Vec::new()),
    };
    content.extend(noted.misfits.into_iter().map(ContentBlock::text));
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
    if let Some(details) = &failure.details {
        let _ = write!(text, "\nThe details: {details}");
    }
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
        let question = table.get(&ask.id).map(|entry| approval::question(entry, &ask.input, None));
        let _ = writeln!(text, "\n{} (key {})", question.unwrap_or_else(|| name(&ask.id)), ask.key);
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
