//! A write of a message, with its condition. It is made once and sent as often as it takes.

use async_nats::header::{HeaderName, NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_MESSAGE_TTL};
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::{HeaderMap, HeaderValue};
use bytes::Bytes;

use crate::durable::retry::LONGEST;

/// By whom a message was written, so that a repeated write knows its own, and after a space, for a job, where its submitter
/// hears of its end.
const WRITER: HeaderName = HeaderName::from_static("Ops-Writer");
const EXPECTED_SUBJECT: HeaderName = HeaderName::from_static("Nats-Expected-Last-Subject-Sequence-Subject");

/// A message that is to be written.
pub(super) struct Write {
    pub(super) subject: String,
    pub(super) payload: Bytes,
    /// Of which subjects which message is the last if the write goes through; 0 if there is none.
    after: Option<(String, u64)>,
    writer: String,
    /// For how many seconds it is kept.
    keep: Option<u64>,
    more: Vec<(HeaderName, String)>,
}

impl Write {
    /// A write that always goes through.
    pub(super) fn new(subject: String, payload: Bytes) -> Self {
        Self { subject, payload, after: None, writer: String::new(), keep: None, more: Vec::new() }
    }

    /// Only goes through if that message is the last of these subjects, which may have wildcards; 0 if there must be none.
    ///
    /// `writer` is that of no other write.
    pub(super) fn after(self, subjects: String, sequence: u64, writer: String) -> Self {
        Self { after: Some((subjects, sequence)), writer, ..self }
    }

    /// Says where the submitter hears of the job's end.
    pub(super) fn note(mut self, inbox: &str) -> Self {
        self.writer.push(' ');
        self.writer.push_str(inbox);
        self
    }

    /// Keeps the message for that many milliseconds, in whole seconds: at least one, and as many as the server can count.
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
            headers.insert(EXPECTED_SUBJECT, subjects.as_str());
            headers.insert(WRITER, self.writer.as_str());
        }
        if let Some(seconds) = self.keep {
            headers.insert(NATS_MESSAGE_TTL, format!("{seconds}s"));
        }
        for (name, value) in &self.more {
            headers.insert(name.clone(), value.as_str());
        }
        PublishMessage::build().payload(self.payload.clone()).headers(headers)
    }

    /// True if the message is what this wrote.
    pub(super) fn is(&self, message: &StreamMessage) -> bool {
        message.headers.get(WRITER).is_some_and(|writer| writer.as_str() == self.writer)
    }
}

/// Where the submitter of a job that was written hears of its end.
pub(super) fn note(headers: &HeaderMap) -> Option<&str> {
    headers.get(WRITER)?.as_str().split_once(' ').map(|(_, inbox)| inbox)
}
