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

/// Tells if a program can go on from where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stays {
    /// It has ended.
    No,
    /// The code is that of another program.
    Other,
    /// It may wait: its journal could not be read.
    Perhaps,
    /// It still waits: there was no room for it, or no time, before it went on.
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
                Reason::Time | Reason::Memory | Reason::Engine if !report.has_called => Self::Waits,
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
            let text = "The code is not that of the program that waits under this key, to the last character. It still waits: \
                        give the same code.";
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
        Outcome::Failed(failure) if stays == Stays::Perhaps && report.calls == 0 => {
            let text = format!(
                "The program did not go on: {failure}. What it has done stays done, so do not run it from its start. To see what it \
                 asks, if it still waits, call `execute` with the same code and with \"resume\": \"{key}\" alone."
            );
            (true, vec![ContentBlock::text(text)])
        }
        Outcome::Failed(failure) => {
            let text = failed(&failure) + &changed(&noted);
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

/// The changes made by a program that did not complete.
fn changed(noted: &Noticed) -> String {
    if noted.changed.is_empty() {
        return String::new();
    }
    let all: Vec<String> = noted.changed.iter().map(|(id, count)| format!("`{id}` ({count})")).collect();
    format!("\nBefore, it called what changes something, and what was done stays done: {}.", all.join(", "))
}

/// The result of a program that still waits because its client could not be asked this time.
pub(super) fn unasked(key: &str, ask: &Ask, error: &CallError, noted: &Noticed) -> ResponseEnvelope<Payload> {
    let text = format!(
        "{}: {}\nThe program asks for `{}`, and waits until the user answers: call `execute` again with the same code and \
         \"resume\": \"{key}\". It asks again, and repeats no call. Do not run it from its start.{}",
        error.code(),
        error.message(),
        name(&ask.id),
        changed(noted)
    );
    answer(true, text)
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

/// The result of a waiting program, if the client can't be asked.
pub(super) fn waits(core: &Core, key: &str, asks: &[Ask], logs: usize) -> ResponseEnvelope<Payload> {
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
