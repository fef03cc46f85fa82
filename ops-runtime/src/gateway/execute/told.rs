//! The text for a model about a program that has ended, or that waits.

use std::fmt::Write;

use serde_json::Value;

use crate::gateway::approval;
use crate::gateway::caller::CallerId;
use crate::gateway::core::Core;
use crate::gateway::host::Noticed;
use crate::gateway::summary::name;
use crate::gateway::tool_result::{answer, blocks};
use crate::program::{Ask, Failure, Outcome, Reason, Report};
use crate::{CallError, ContentBlock, Payload, ResponseEnvelope};

/// The text for a program that seems to have done nothing.
const NOTHING: &str = "The program returned nothing. It is the body of a function itself: what it gives stands behind `return`, and a \
                       function in it does nothing unless it is called.";

/// How many operations that changed something are named.
const NAMED: usize = 20;

/// Tells if a program can go on from where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stays {
    /// It has ended.
    No,
    /// The code is that of another program, or the operations lead to other servers.
    Other,
    /// It may wait: its journal could not be read or saved.
    Perhaps,
    /// It still waits: it failed before it went on. For example there was no room for it, or an operation that it calls is
    /// missing at the moment.
    Waits,
}

impl Stays {
    /// Tells if the program of a journal can go on after a run that did not end with questions.
    pub(super) fn of(report: &Report, has_waited: bool) -> Self {
        match &report.outcome {
            Outcome::Failed(failure) if has_waited => match failure.reason {
                Reason::Differs if report.calls == 0 => Self::Other,
                // A program that has begun, and then behaves differently, reports that itself.
                Reason::Differs | Reason::Journal => Self::Perhaps,
                // Its calls are made, and its journal is the only way to go on without making them again.
                Reason::Time | Reason::Memory | Reason::Engine if !report.has_gone_on => Self::Waits,
                // Without a pending call, it failed by itself at its end, and would do so again.
                _ if !report.has_gone_on && report.had_pending => Self::Waits,
                _ => Self::No,
            },
            _ => Self::No,
        }
    }
}

/// The result of a program that has ended, or that could not go on with its key.
pub(super) fn ended(
    core: &Core,
    caller: &CallerId,
    source: &str,
    report: Report,
    noted: Noticed,
    (stays, key): (Stays, &str),
) -> ResponseEnvelope<Payload> {
    let (is_error, mut content) = match report.outcome {
        Outcome::Done(value) => {
            let did_nothing = report.calls == 0 && report.logs.is_empty() || !source.contains("return");
            let hint = (value.is_null() && did_nothing).then(|| ContentBlock::text(NOTHING));
            let mut content = core.fit(caller, value);
            content.extend(hint);
            (false, content)
        }
        Outcome::Failed(_) if stays == Stays::Other => {
            let text = "The code is not that of the program that waits under this key, to the last character, or this server \
                        calls other servers now than when the program began. It still waits: give the same code.";
            (true, vec![ContentBlock::text(text)])
        }
        Outcome::Failed(failure) if stays == Stays::Waits => {
            let text = format!(
                "The program did not go on: {failure}. It waits as before, with the answers of the user, and what it has done \
                 stays done: call `execute` again later with the same code and \"resume\": \"{key}\", and do not run it from its \
                 start."
            );
            (true, vec![ContentBlock::text(text)])
        }
        Outcome::Failed(failure) if stays == Stays::Perhaps && failure.reason == Reason::Journal => {
            let text = format!(
                "The program did not go on: {failure}. What it has done stays done, so do not run it from its start. If it still \
                 waits, it asks again or goes on where it was: call `execute` with the same code and with \"resume\": \"{key}\" \
                 alone."
            );
            (true, vec![ContentBlock::text(with_changed(text, &noted))])
        }
        Outcome::Failed(failure) => {
            let text = failed(&failure);
            let whole = Value::String(with_changed(text.clone(), &noted));
            if core.fits(&whole) {
                (true, core.fit(caller, whole))
            } else {
                let mut content = core.fit(caller, Value::String(text));
                // Beside what is cut: a model that does not read on would make the changes again.
                content.extend(changed(&noted).map(ContentBlock::text));
                (true, content)
            }
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

/// The changes made by a program that did not complete; only the first are named. `None` if there are none.
fn changed(noted: &Noticed) -> Option<String> {
    if noted.changed.is_empty() {
        return None;
    }
    let named = noted.changed.iter().take(NAMED);
    let mut all: Vec<String> = named.map(|(id, count)| format!("`{}` ({count})", name(id))).collect();
    let more = noted.changed.len().saturating_sub(NAMED);
    if more > 0 {
        all.push(format!("and {more} more"));
    }
    Some(format!("Before, it called what changes something, and what was done stays done: {}.", all.join(", ")))
}

/// A text about a program that did not complete, with its changes.
fn with_changed(text: String, noted: &Noticed) -> String {
    match changed(noted) {
        Some(changed) => format!("{text}\n{changed}"),
        None => text,
    }
}

/// The result of a program that still waits because its client could not be asked this time.
pub(super) fn unasked(key: &str, ask: &Ask, error: &CallError, noted: &Noticed) -> ResponseEnvelope<Payload> {
    let text = format!(
        "{}: {}\nThe program asks for `{}`, and waits until the user answers: call `execute` again with the same code and \
         \"resume\": \"{key}\". It asks again, and repeats no call. Do not run it from its start.",
        error.code(),
        error.message(),
        name(&ask.id)
    );
    answer(true, with_changed(text, noted))
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

/// The result of a waiting program for a client that can't be asked, and how many of its calls the result lists.
///
/// It lists the first calls, as many as have room.
pub(super) fn waits(core: &Core, key: &str, asks: &[Ask], logs: usize) -> (ResponseEnvelope<Payload>, usize) {
    let by_answer = core.approvals.by_answer;
    let mut text = String::from("The program waits.");
    // Before the questions, which may be many: without the key, the program could not go on.
    if by_answer {
        let _ = write!(
            text,
            " Ask the user about each of the calls below. Then call `execute` again with the same code, \"resume\": \"{key}\", \
             and the keys of the calls under \"approve\" or \"decline\": it goes on where it is, and repeats no call."
        );
    } else {
        text.push_str(" This client cannot ask its user (elicitation), so the program cannot go on.");
    }
    if logs > 0 {
        text.push_str(" Its console is shown when it ends.");
    }
    let table = core.gate.registry().table();
    let mut told = 0;
    for ask in asks {
        let question = table.get(&ask.id).map(|entry| approval::question(entry, &ask.input, None));
        let question = format!("\n\n{} (key {})", question.unwrap_or_else(|| name(&ask.id)), ask.key);
        // One is always told, so that the program can go on.
        if told > 0 && text.len().saturating_add(question.len()) > core.results.shown() {
            break;
        }
        text.push_str(&question);
        told += 1;
    }
    let more = asks.len().saturating_sub(told);
    if more > 0 {
        let calls = if more == 1 { "1 more call".to_owned() } else { format!("{more} more calls") };
        let then = if by_answer { ": the program asks about the rest when these are answered" } else { "" };
        let _ = write!(text, "\n\nAnd {calls}{then}.");
    }
    (answer(!by_answer, text), told)
}
