//! The trace of a call: spans on both sides, joined by W3C's `traceparent` in the metadata.
//!
//! A call takes over the `traceparent` of the call that it is part of, or of its options; otherwise it begins a trace, if
//! somebody listens. Each span has the ids as fields (`trace_id`, `span_id`, `parent_id`).

use std::hash::{BuildHasher, RandomState};

use serde_json::{Map, Value};
use tracing::{Span, debug_span, field};

use super::CallRequest;
use crate::OperationSpec;

/// The member of the metadata.
const TRACEPARENT: &str = "traceparent";

/// W3C Trace Context, version 00: the ids of a trace and of a span in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TraceParent {
    trace: String,
    span: String,
    flags: String,
}

impl TraceParent {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let hex =
            |text: &str, length| text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let id = |text: &str, length| hex(text, length) && text.bytes().any(|b| b != b'0');
        // Later versions may add parts.
        let ends = version != "00" || parts.next().is_none();
        (hex(version, 2) && version != "ff" && id(trace, 32) && id(span, 16) && hex(flags, 2) && ends).then(|| Self {
            trace: trace.to_owned(),
            span: span.to_owned(),
            flags: flags.to_owned(),
        })
    }

    fn of(metadata: &Map<String, Value>) -> Option<Self> {
        Self::parse(metadata.get(TRACEPARENT)?.as_str()?)
    }

    /// A trace that begins here.
    fn begin() -> Self {
        Self { trace: format!("{:016x}{:016x}", random(), random()), span: String::new(), flags: "01".to_owned() }
    }

    /// The same trace with a span of its own.
    fn child(&self) -> Self {
        Self { span: format!("{:016x}", random()), ..self.clone() }
    }

    fn put(&self, metadata: &mut Map<String, Value>) {
        let Self { trace, span, flags } = self;
        metadata.insert(TRACEPARENT.to_owned(), format!("00-{trace}-{span}-{flags}").into());
    }
}

/// Any number but zero, unlike others: trace ids need not be secret.
fn random() -> u64 {
    RandomState::new().hash_one(0).max(1)
}

/// The span of a call at its caller.
pub(super) fn calling(operation: &str, request: &mut CallRequest) -> Span {
    let span = debug_span!(
        "call",
        "otel.kind" = "client",
        "otel.name" = operation,
        operation,
        request_id = %request.request_id,
        trace_id = field::Empty,
        span_id = field::Empty,
        parent_id = field::Empty,
    );
    continue_trace(&span, request);
    span
}

/// The span of a call at its worker, in which the handler runs.
pub(super) fn serving(spec: &OperationSpec, request: &mut CallRequest) -> Span {
    let span = debug_span!(
        "serve",
        "otel.kind" = "server",
        "otel.name" = spec.id.as_ref(),
        operation = spec.id.as_ref(),
        request_id = %request.request_id,
        trace_id = field::Empty,
        span_id = field::Empty,
        parent_id = field::Empty,
    );
    continue_trace(&span, request);
    span
}

/// Goes on with the request's trace, or begins one if somebody listens.
fn continue_trace(span: &Span, request: &mut CallRequest) {
    let parent = TraceParent::of(&request.metadata);
    // A trace that nobody listens to here may be listened to elsewhere: it passes as it is.
    if span.is_disabled() {
        return;
    }
    let own = parent.clone().unwrap_or_else(TraceParent::begin).child();
    span.record("trace_id", &own.trace);
    span.record("span_id", &own.span);
    if let Some(parent) = parent {
        span.record("parent_id", &parent.span);
    }
    own.put(&mut request.metadata);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_parents() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent = TraceParent::parse(text).unwrap();
        assert_eq!(parent.trace, "4bf92f3577b34da6a3ce929d0e0e4736");
        let child = parent.child();
        assert_eq!((&child.trace, &*child.flags), (&parent.trace, "01"));
        assert_ne!(child.span, parent.span);
        let mut metadata = Map::new();
        child.put(&mut metadata);
        assert_eq!(TraceParent::of(&metadata), Some(child));
        assert!(TraceParent::parse("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more").is_some());
        for wrong in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        ] {
            assert_eq!(TraceParent::parse(wrong), None, "{wrong}");
        }
    }
}
