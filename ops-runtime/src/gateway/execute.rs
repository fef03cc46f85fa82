//! The tool `execute`: one program instead of many calls.

mod told;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::runtime::Handle;

use self::told::{Stays, ended, unasked, waits};
use super::approval::{self, OWN_KEYS};
use super::core::Core;
use super::host::{ModelHost, Noted};
use super::programs::Programs;
use super::rules::{MadeBy, caller_of};
use super::tool_result::{answer, drop_unsaid, text_of, wrong};
use crate::mcp::McpPeer;
use crate::model::random;
use crate::program::{Ask, Host, JournalStore, Outcome, Program, StoredJournal};
use crate::run::context::now;
use crate::run::principal::Principal;
use crate::{
    BoxFuture, CallError, Context, Endpoint, ErrorCode, Handler, OperationSpec, Payload, Registration,
    ResponseEnvelope, Schema,
};

pub(super) static EXECUTE: OperationSpec = OperationSpec::mutation("gateway.execute")
    .with_description(
        "Runs a JavaScript program, the body of an async function, and gives what it returns. It has \
         `ops.<namespace>.<operation>(input)` for each operation, as `describe` shows them: each gives the data itself, and \
         throws an Error with `code`, `message` and `details`. Whole numbers beyond 2^53 are BigInts, \
         also in inputs: `9007199254740993n`. Also `search(words)`, `describe(id, detail)` and `console.log`. No network, no \
         files, no timers. Call in parallel by `Promise.all`, and return only what you need. A call that changes something may \
         stop the program until the user agrees. A result that is too long is cut; its last line says how to read on.",
    )
    .with_input(Schema::text(
        r#"{"type":"object","additionalProperties":false,"properties":{
            "code":{"type":["string","null"],"description":"The program"},
            "resume":{"type":["string","null"],"description":"The key of a program that waited, given with the same code"},
            "approve":{"type":["array","null"],"items":{"type":"string"},"description":"The keys of its calls that the user agreed to"},
            "decline":{"type":["array","null"],"items":{"type":"string"},"description":"The keys of those that the user refused"},
            "read":{"type":["object","null"],"description":"In place of `code`: reads on in a result that was cut","properties":{
                "cursor":{"type":["string","null"],"description":"As the result came with it"},
                "pointer":{"type":["string","null"],"description":"The JSON pointer of another place"},
                "from":{"type":["integer","null"],"description":"How many items or characters of it to leave out"}}}}}"#,
    ));

/// The prefix of the key of a program's question, after that of all questions of the gateway.
const QUESTION: &str = "program-";

/// The tool, for one kind of caller.
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
            let Value::Object(mut input) = input else {
                return Err(CallError::new(ErrorCode::ValidationError, "an object is needed"));
            };
            drop_unsaid(&mut input, &["resume", "approve", "decline", "read"]);
            execute(&core, principal, &input, context).await
        })
    }
}

/// The longest time by which a program ends before the deadline of its call, so that its report can be sent.
const REPORT: Duration = Duration::from_secs(1);

/// The time at which a program must end or stop to wait. If it ran until the deadline of its call, the model would learn
/// neither what the program has changed nor its key. `None` if the call has no deadline.
fn reports_by(context: &Context) -> Option<Instant> {
    let deadline = context.deadline()?;
    let left = deadline.saturating_duration_since(now());
    deadline.checked_sub(REPORT.min(left / 10))
}

/// True if there is a program. Where there is none, models also write `null` or an empty text.
fn has_code(input: &Map<String, Value>) -> bool {
    input.get("code").and_then(Value::as_str).is_some_and(|code| !code.is_empty())
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
        // A model would assume that a program beside it was run.
        let is_alone = !has_code(input) && input.keys().all(|name| name == "read" || name == "code");
        return if is_alone {
            core.read_on(&caller, read.clone()).await
        } else {
            Err(wrong("`read` stands alone: run `code` by itself"))
        };
    }
    if !has_code(input) && input.contains_key("resume") {
        return Err(wrong("`code` is missing: with `resume`, send the same code again"));
    }
    let source = text_of(input, "code")?;
    let peer = McpPeer::of(&context);

    // The key of a waiting program is in the input of the call, or in the questions that a client sends back when it repeats
    // the call, even without answers. Without the key, the program would run from its start, and repeat its calls.
    let answered = peer.as_ref().and_then(answered);
    let peer = peer.filter(|peer| peer.supports("elicitation"));
    let given = input.get("resume").and_then(Value::as_str).map(str::to_owned);
    let waited = answered.as_ref().map(|answered| answered.key.clone()).or(given);
    if waited.is_none() && (input.contains_key("approve") || input.contains_key("decline")) {
        // It would run from its start, and repeat its calls.
        let message = "`approve` and `decline` are for a program that waits: give its key as `resume`, too";
        return Err(CallError::new(ErrorCode::ValidationError, message));
    }
    // Before the user's answers are taken: a call that is refused here is repeated with them. And before the table of names is made,
    // which is a pass over all operations.
    let permit = programs.limiter.admit(&caller).await?;
    let view = core.view().await?;
    let (names, by) = (view.clone(), principal.clone());
    // It counts for its caller until the table is made, even if nobody waits for it any more.
    let (functions, _permit) = core.aside(move |core| (names.functions(&core.gate, &by), permit)).await?;
    let program = Program::new(source, functions).with_place(programs.place.as_str());
    let has_waited = waited.is_some();
    let key = waited.unwrap_or_else(random::key);
    // Each caller has journals of its own.
    let name = format!("{caller:?}/{key}");
    let (noted, deadline) = (Noted::default(), reports_by(&context));
    let host = ModelHost { core: core.clone(), principal, context, view, caller, noted, deadline };
    let run = Run { core, programs, source, program, host, peer, key, name };
    let declined = |ask: &Ask| run.host.declined(ask);
    let kept = if has_waited { run.resumed(input, answered.as_ref(), &declined).await? } else { Some(run.kept()) };
    let Some(kept) = kept else {
        let message = format!(
            "No program waits under the key `{}`: it has ended, or the server was started again. What it has made stays \
             made, so look before you run it from its start.",
            run.key
        );
        return Ok(answer(true, message));
    };
    Ok(run.until_done(kept, has_waited).await)
}

/// A call of the tool with a program.
struct Run<'a> {
    core: &'a Core,
    programs: &'a Programs,
    source: &'a str,
    program: Program,
    host: ModelHost,
    /// The client, if its user can be asked.
    peer: Option<McpPeer>,
    key: String,
    /// The name of the journal.
    name: String,
}

impl Run<'_> {
    fn kept(&self) -> StoredJournal<'_> {
        StoredJournal::new(&*self.programs.store, &self.name).with_deadline(self.host.deadline)
    }

    /// The journal of a program that waited, with the answers to its questions; `declined` is told of the calls that they
    /// decline. `None` if there is no such journal.
    async fn resumed<'k>(
        &'k self,
        input: &Map<String, Value>,
        answered: Option<&Answered>,
        declined: &'k (dyn Fn(&Ask) + Send + Sync),
    ) -> Result<Option<StoredJournal<'k>>, CallError> {
        let journal = self.programs.store.load(&self.name).await;
        let journal = journal.map_err(|error| CallError::execution(format!("the program cannot be read: {error}")))?;
        let Some(journal) = journal else { return Ok(None) };
        // Calls from before it waited count like those from now.
        for id in journal.started().filter(|id| !self.host.is_query(id)) {
            self.host.noted.changes(id);
        }
        let said =
            |name: &str| input.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        // The model's report of the user's answer counts only if the client can't be asked.
        let agreed = said("approve").filter(|_| self.peer.is_none() && self.core.approvals.by_answer);
        let said = agreed.map(|key| (key, true)).chain(said("decline").map(|key| (key, false)));
        let answers =
            answered.into_iter().flat_map(|answered| &answered.answers).map(|(key, is_yes)| (key.as_str(), *is_yes));
        // A program that was resumed meanwhile, and has ended, does not begin again.
        let mut kept = self.kept().existing().with_told_of_declined(declined);
        for (key, is_yes) in said.chain(answers) {
            kept = if is_yes { kept.with_approved(key) } else { kept.with_declined(key) };
        }
        Ok(Some(kept))
    }

    /// Runs the program until it ends, or until it waits for a user that cannot be asked.
    async fn until_done(&self, kept: StoredJournal<'_>, has_waited: bool) -> ResponseEnvelope<Payload> {
        let name = (!has_waited).then(|| self.name.clone());
        let mut untold = Untold { store: self.programs.store.clone(), name };
        self.rounds(kept, has_waited, &mut untold).await
    }

    async fn rounds<'k>(
        &'k self,
        mut kept: StoredJournal<'k>,
        mut has_waited: bool,
        untold: &mut Untold,
    ) -> ResponseEnvelope<Payload> {
        loop {
            let report = self.programs.sandbox.run_stored(&self.program, &kept, &self.host).await;
            let Outcome::Waiting(waiting) = &report.outcome else {
                let stays = Stays::of(&report, has_waited);
                // An ended program needs no journal; one that cannot be removed does no harm.
                if stays == Stays::No {
                    let _ = self.programs.store.remove(&self.name).await;
                }
                untold.told();
                let (caller, noted) = (&self.host.caller, self.host.noted.take());
                return ended(self.core, caller, self.source, report, noted, (stays, &self.key));
            };
            has_waited = true;
            let Some(peer) = &self.peer else {
                let (result, told) = waits(self.core, &self.key, &waiting.asks, report.logs.len());
                // The others are told of, and logged, when the program asks again.
                waiting.asks.iter().take(told).for_each(|ask| self.host.waits(ask));
                // Without a way to answer, the result has no key.
                if self.core.approvals.by_answer {
                    untold.told();
                }
                return result;
            };
            if peer.repeats() {
                // The key of the question contains the program's key, so the client has it from here on.
                untold.told();
            }
            kept = self.kept().existing();
            for ask in &waiting.asks {
                kept = match self.host.ask(peer, &question(&self.key, ask), ask).await {
                    Ok(true) => kept.with_approved(&ask.key),
                    Ok(false) => kept.with_declined(&ask.key),
                    Err(error) => {
                        // Questions with an answer are not asked again.
                        if let Err(error) = kept.keep_answers().await {
                            tracing::warn!(%error, "answers to a program could not be kept: it will ask again");
                        }
                        untold.told();
                        let (host, made_by) = (&self.host, MadeBy::new(&self.host.caller));
                        let error =
                            self.core.public(&host.principal, &made_by, error, &EXECUTE, false, &host.context.id());
                        return unasked(&self.key, ask, &error, &self.host.noted.take());
                    }
                };
            }
        }
    }
}

/// The journal of a program whose key no client or model has received. It is removed if the call ends or is dropped without
/// sending the key, because the program could not be resumed.
struct Untold {
    store: Arc<dyn JournalStore>,
    /// `None` once the key was sent.
    name: Option<String>,
}

impl Untold {
    fn told(&mut self) {
        self.name = None;
    }
}

impl Drop for Untold {
    fn drop(&mut self) {
        let (Some(name), Ok(runtime)) = (self.name.take(), Handle::try_current()) else { return };
        let store = self.store.clone();
        runtime.spawn(async move {
            if let Err(error) = store.remove(&name).await {
                tracing::warn!(%error, "the journal of a program that cannot be resumed could not be removed");
            }
        });
    }
}

/// The key of a program's question.
fn question(program: &str, ask: &Ask) -> String {
    format!("{OWN_KEYS}{QUESTION}{program}.{}", ask.key)
}

/// A program that asked the client's user, and the answers.
struct Answered {
    /// The key of the program.
    key: String,
    /// Each question's key, and true if the call is approved.
    answers: Vec<(String, bool)>,
}

/// The program that asked in earlier rounds of the call, with the answers to its questions, if there are any.
fn answered(peer: &McpPeer) -> Option<Answered> {
    let mut found: Option<Answered> = None;
    for (question, answer) in peer.earlier(approval::METHOD) {
        let own = question.strip_prefix(OWN_KEYS).and_then(|own| own.strip_prefix(QUESTION));
        let Some((key, ask)) = own.and_then(|rest| rest.split_once('.')) else { continue };
        if found.as_ref().is_none_or(|found| found.key != key) {
            found = Some(Answered { key: key.to_owned(), answers: Vec::new() });
        }
        if let (Some(found), Some(answer)) = (&mut found, answer) {
            let is_yes = answer.get("action").and_then(Value::as_str) == Some("accept");
            found.answers.push((ask.to_owned(), is_yes));
        }
    }
    found
}
