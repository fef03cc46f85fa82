//! The subjects that are used; see the module's page.

use crate::call::{Frame, RequestId};

/// Limit of the bytes of a subject that others choose: the reply subject of a caller, and the name of a worker.
///
/// A server closes a connection that sends a line of more than 4,096 bytes (`max_control_line`). A line of ours has such
/// a subject twice at most.
pub(super) const LONGEST: usize = 1_536;

/// Limit of the bytes of the subject of an operation, which a line has once.
pub(super) const LONGEST_OPERATION: usize = 3_072;

/// Writes a part of an id so that it is one token of a subject: all but ASCII letters, digits, `-` and `_` as `%XX`.
fn push_token(subject: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => subject.push(char::from(byte)),
            _ => {
                use std::fmt::Write;
                let _ = write!(subject, "%{byte:02X}");
            }
        }
    }
}

/// The subject of requests for an operation: `PREFIX.call.NAMESPACE.NAME`.
pub(super) fn of_operation(prefix: &str, operation: &str) -> String {
    let (namespace, name) = operation.split_once('.').unwrap_or((operation, ""));
    let mut subject = String::with_capacity(prefix.len() + operation.len() + 16);
    subject.push_str(prefix);
    subject.push_str(".call.");
    push_token(&mut subject, namespace);
    subject.push('.');
    push_token(&mut subject, name);
    subject
}

/// The operation of a subject that [`of_operation`] made.
pub(super) fn operation_of(prefix: &str, subject: &str) -> Option<String> {
    let (namespace, name) = subject.strip_prefix(prefix)?.strip_prefix(".call.")?.split_once('.')?;
    Some(format!("{}.{}", token(namespace)?, token(name)?))
}

fn token(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                digit(rest.next()?)? * 16 + digit(rest.next()?)?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// The subject of announcements.
pub(super) fn announcements(prefix: &str) -> String {
    format!("{prefix}.announce")
}

/// The subject on which callers ask all workers for their operations.
pub(super) fn discovery(prefix: &str) -> String {
    format!("{prefix}.discover")
}

/// The subject on which a worker listens to a caller: `PREFIX.worker.WORKER.CONNECTION.NUMBER.CALLER`. `worker`
/// includes its connection; the number is that of the event that has this reply subject.
pub(super) fn control(prefix: &str, worker: &str, number: u64, caller: &str) -> String {
    format!("{prefix}.worker.{worker}.{number}.{caller}")
}

/// The worker, the number and the caller of a subject that [`control`] made.
pub(super) fn parse_control<'a>(prefix: &str, subject: &'a str) -> Option<(&'a str, u64, &'a str)> {
    let rest = subject.strip_prefix(prefix)?.strip_prefix(".worker.")?;
    let mut dots = rest.match_indices('.').map(|(at, _)| at);
    let (_, worker_ends, number_ends) = (dots.next()?, dots.next()?, dots.next()?);
    let number = rest.get(worker_ends + 1..number_ends)?.parse().ok()?;
    Some((rest.get(..worker_ends)?, number, rest.get(number_ends + 1..)?))
}

/// The worker without its connection.
pub(super) fn name(worker: &str) -> &str {
    worker.split('.').next().unwrap_or(worker)
}

/// The end of the inbox of a caller that reads more than responses.
const LISTENS: &str = ".ops";

/// The inbox of a caller: responses come to `INBOX.REQUEST`, the rest to `INBOX.link` and `INBOX.discover`.
pub(super) fn inbox(unique: &str) -> String {
    format!("{unique}{LISTENS}")
}

/// True if a caller reads more than responses.
pub(super) fn listens(caller: &str) -> bool {
    caller.ends_with(LISTENS)
}

/// The caller of a request, by its reply subject: its inbox, or the subject itself if the caller reads only responses.
pub(super) fn caller_of<'a>(reply: &'a str, request_id: &RequestId) -> &'a str {
    match reply.rsplit_once('.') {
        Some((inbox, token)) if listens(inbox) && *token == **request_id => inbox,
        _ => reply,
    }
}

/// The subject of a frame to a caller.
pub(super) fn at_caller(caller: &str, frame: &Frame) -> String {
    match frame.request_id() {
        _ if !listens(caller) => caller.to_owned(),
        Some(id) => format!("{caller}.{}", &**id),
        None => format!("{caller}.link"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations() {
        assert_eq!(of_operation("ops", "math.add"), "ops.call.math.add");
        assert_eq!(of_operation("a.b", "github.repos/get.one *>"), "a.b.call.github.repos%2Fget%2Eone%20%2A%3E");
        assert_eq!(of_operation("ops", "x.ü"), "ops.call.x.%C3%BC");
        for id in ["math.add", "github.repos/get.one *>", "x.ü", "x."] {
            assert_eq!(operation_of("ops", &of_operation("ops", id)).as_deref(), Some(id));
        }
        assert_eq!(operation_of("ops", "ops.call.x.%FF"), None);
        assert_eq!(operation_of("ops", "ops.call.x.%2"), None);
    }

    #[test]
    fn callers() {
        let id = RequestId::from("1-2");
        assert_eq!(caller_of("_INBOX.x.ops.1-2", &id), "_INBOX.x.ops");
        assert_eq!(caller_of("_INBOX.x.ops.7", &id), "_INBOX.x.ops.7");
        assert_eq!(caller_of("_INBOX.x.y", &id), "_INBOX.x.y");
        let subject = control("ops", "w.1", 7, "_INBOX.x.ops");
        assert_eq!(parse_control("ops", &subject), Some(("w.1", 7, "_INBOX.x.ops")));
        assert_eq!(name("w.1"), "w");
        for wrong in ["other.worker.w.1.7.x", "ops.worker.w.1", "ops.worker.w.1.x.y", "ops.worker."] {
            assert_eq!(parse_control("ops", wrong), None, "{wrong}");
        }
    }
}
