//! Frames of the call protocol, and what brokers put around them: nothing that comes makes us panic, and what can be read
//! is written as it was read.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use ops_runtime::call::{Announcement, Directory, Frame, Link, PendingRequests, RequestId, Unsent};

/// What the modules below use of the runtime.
mod call {
    pub use ops_runtime::call::{Frame, RequestId};
}

// The modules themselves, so that the target builds without the clients of the brokers.
#[allow(dead_code)]
#[path = "../../ops-runtime/src/model/lock.rs"]
mod lock;
mod model {
    pub(crate) use super::lock;
}

#[allow(dead_code)]
#[path = "../../ops-runtime/src/call/nats/subject.rs"]
mod subject;

#[allow(dead_code)]
#[path = "../../ops-runtime/src/call/redis/keys.rs"]
mod keys;

#[allow(dead_code)]
#[path = "../../ops-runtime/src/call/redis/entry.rs"]
mod entry;

struct Nowhere;

impl Link for Nowhere {
    fn send(&self, _: Frame) -> Result<(), Unsent> {
        Ok(())
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&kind, rest)) = input.split_first() else { return };
    match kind % 4 {
        0 | 1 => frame(rest),
        2 => nats(rest),
        _ => redis(rest),
    }
});

/// A message of a WebSocket, or the payload of a broker.
fn frame(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Frame::decode(text) {
        Ok(Some(frame)) => {
            let written = frame.encode().expect("what was read can be written");
            let again = Frame::decode(&written).expect("what was written can be read").expect("a frame");
            assert_eq!(again.encode().expect("again"), written, "{text}");
            assert_eq!(again.request_id(), frame.request_id());
            let pending = PendingRequests::new(Arc::new(Nowhere));
            match frame {
                Frame::Event(event) => pending.receive(event),
                Frame::Announce(Announcement { .. }) => {
                    let directory = Directory::new();
                    if let Frame::Announce(said) = frame.clone() {
                        directory.announce(&pending, said);
                    }
                    directory.withdraw(&pending);
                    assert!(directory.list().is_empty());
                }
                _ => {}
            }
        }
        Ok(None) => {}
        Err(malformed) => {
            assert!(malformed.message.len() <= 256, "{}", malformed.message.len());
            assert!(malformed.request_id.is_none_or(|id| id.len() <= 1_024));
        }
    }
}

/// Subjects, as a caller and a worker read them.
fn nats(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (one, other) = text.split_once('\n').unwrap_or((&text, ""));
    if let Some((worker, number, caller)) = subject::parse_control("ops", one) {
        assert_eq!(subject::parse_control("ops", &subject::control("ops", worker, number, caller)), Some((worker, number, caller)));
        assert!(worker.starts_with(subject::name(worker)));
    }
    if let Some(operation) = subject::operation_of("ops", one) {
        let back = subject::of_operation("ops", &operation);
        assert_eq!(subject::operation_of("ops", &back), Some(operation));
    }
    let id = RequestId::from(other);
    let caller = subject::caller_of(one, &id);
    assert!(one.starts_with(caller));
    let _ = subject::at_caller(caller, &Frame::Drain);
    let named = subject::of_operation("ops", one);
    assert!(named.bytes().all(|byte| byte.is_ascii_graphic()));
    assert_eq!(named.matches('.').count(), 3, "{named}");
}

/// Entries of streams: their fields in turn, each with the byte of its length before it.
fn redis(mut bytes: &[u8]) {
    let mut fields = Vec::new();
    while let Some((&length, rest)) = bytes.split_first() {
        let (field, rest) = rest.split_at(usize::from(length).min(rest.len()));
        fields.push(field.to_vec());
        bytes = rest;
    }
    let id = fields.first().map(|field| String::from_utf8_lossy(field).into_owned()).unwrap_or_default();
    let _ = entry::milliseconds_of(&id);
    let entry: entry::Entry = (id, fields);
    let mut sequences = entry::Sequences::default();
    let mut appetite = entry::Appetite::new(64);
    if let Some(author) = entry::Author::of(&entry) {
        assert!(entry::is_id(author.id) && author.id.len() <= 256);
        let first = sequences.is_new(author);
        assert!(first);
        assert_eq!(sequences.is_new(author), author.sequence.is_none());
    }
    appetite.learn(entry.1.len(), entry::size(&entry));
    assert!((1..=64).contains(&appetite.entries()));
    if let Some(text) = entry::field(&entry, keys::FRAME) {
        frame(text);
    }
}
