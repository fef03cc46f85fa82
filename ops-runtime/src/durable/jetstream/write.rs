//! A conditional write of a message. It is made once and sent as often as necessary.
//!
//! The first member of a record is `by`: a number that no other write has, by which a repeated write recognises its own
//! record. For a job, a space and the submitter's inbox follow. It is not a header, because the server scans all
//! headers of a message once for each header that it knows.

use std::io::Write as _;

use async_nats::header::{HeaderName, NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_MESSAGE_TTL};
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::{HeaderMap, HeaderValue};
use bytes::Bytes;
use serde::Serialize;

use crate::CallError;
use crate::durable::retry::LONGEST;

/// How a signed record begins.
const BY: &[u8] = br#"{"by":""#;
const EXPECTED_SUBJECT: HeaderName = HeaderName::from_static("Nats-Expected-Last-Subject-Sequence-Subject");

/// A message to be written.
pub(super) struct Write {
    pub(super) subject: String,
    pub(super) payload: Bytes,
    /// The condition: the sequence of the last message of these subjects; 0 if there must be none.
    after: Option<(String, u64)>,
    /// Its time to live, in seconds.
    keep: Option<u64>,
    more: Vec<(HeaderName, String)>,
}

impl Write {
    /// A write that always goes through.
    pub(super) fn new(subject: String, payload: Bytes) -> Self {
        Self { subject, payload, after: None, keep: None, more: Vec::new() }
    }

    /// Succeeds only if that message is the last of these subjects, which may have wildcards; 0 if there must be none.
    pub(super) fn after(self, subjects: String, sequence: u64) -> Self {
        Self { after: Some((subjects, sequence)), ..self }
    }

    /// Sets the time to live in milliseconds, rounded up to seconds: at least one, and at most what the server can
    /// represent.
    pub(super) fn keep(self, millis: u64) -> Self {
        Self { keep: Some(millis.div_ceil(1_000).clamp(1, LONGEST.as_secs())), ..self }
    }

    /// Adds a header.
    pub(super) fn with(mut self, name: HeaderName, value: String) -> Self {
        self.more.push((name, value));
        self
    }

    pub(super) fn message(&self) -> PublishMessage {
        let mut headers = HeaderMap::new();
        if let Some((subjects, sequence)) = &self.after {
            headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, HeaderValue::from(*sequence));
            if *subjects != self.subject {
                headers.insert(EXPECTED_SUBJECT, subjects.as_str());
            }
        }
        if let Some(seconds) = self.keep {
            headers.insert(NATS_MESSAGE_TTL, format!("{seconds}s"));
        }
        for (name, value) in &self.more {
            headers.insert(name.clone(), value.as_str());
        }
        PublishMessage::build().payload(self.payload.clone()).headers(headers)
    }

    /// True if the message is the record that this wrote.
    pub(super) fn is(&self, message: &StreamMessage) -> bool {
        signature(&message.payload).is_some_and(|by| signature(&self.payload) == Some(by))
    }
}

/// A record as JSON, which must be an object with members, with the number of its write.
pub(super) fn signed(value: &impl Serialize, writer: u64, inbox: Option<&str>) -> Result<Bytes, CallError> {
    // Most records are smaller. For blocks of more than 1,000 bytes, glibc's allocator does additional work.
    let mut json = Vec::with_capacity(960);
    json.extend_from_slice(BY);
    // Neither contains anything that JSON escapes. Writing to memory does not fail.
    let _ = write!(json, "{writer:x}");
    if let Some(inbox) = inbox {
        json.push(b' ');
        json.extend_from_slice(inbox.as_bytes());
    }
    json.push(b'"');
    let begin = json.len();
    serde_json::to_writer(&mut json, value)
        .map_err(|error| CallError::execution(format!("a record can't be written as JSON: {error}")))?;
    if let Some(open) = json.get_mut(begin) {
        *open = b',';
    }
    Ok(json.into())
}

fn signature(payload: &[u8]) -> Option<&[u8]> {
    payload.strip_prefix(BY)?.split(|byte| *byte == b'"').next()
}

/// The inbox of the submitter of a job that was written.
pub(super) fn note(payload: &[u8]) -> Option<&str> {
    std::str::from_utf8(signature(payload)?).ok()?.split_once(' ').map(|(_, inbox)| inbox)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::record::Tries;

    #[test]
    fn a_signature() {
        let tries = Tries { attempts: 2, ..Tries::default() };
        let alone = signed(&tries, 0x1f, None).unwrap();
        assert_eq!(alone, r#"{"by":"1f","attempts":2,"passes":0}"#);
        let told = signed(&tries, 0x1f, Some("_INBOX.x")).unwrap();
        assert_eq!(told, r#"{"by":"1f _INBOX.x","attempts":2,"passes":0}"#);
        assert_eq!(serde_json::from_slice::<Tries>(&told).unwrap(), tries);
        assert_eq!((note(&told), note(&alone)), (Some("_INBOX.x"), None));
        for other in [&b"{}"[..], b"", br#"{"by":""#, b"{\"attempts\":1}"] {
            assert_eq!(note(other), None);
        }
    }
}
