//! W3C's `traceparent`, which joins the spans of a trace across processes.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

use serde_json::{Map, Value};

/// The member of the metadata, and the header.
pub(crate) const TRACEPARENT: &str = "traceparent";

/// What tracing systems have added to a trace: the member beside [`TRACEPARENT`], and the header.
pub(crate) const TRACESTATE: &str = "tracestate";

/// W3C Trace Context, version 00: the ids of a trace and of a span in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceParent {
    pub(crate) trace: String,
    pub(crate) span: String,
    flags: String,
}

impl TraceParent {
    pub(crate) fn parse(text: &str) -> Option<Self> {
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

    pub(crate) fn of(metadata: &Map<String, Value>) -> Option<Self> {
        Self::parse(metadata.get(TRACEPARENT)?.as_str()?)
    }

    /// A trace that begins here.
    pub(crate) fn begin() -> Self {
        Self { trace: format!("{:016x}{:016x}", random(), random()), span: String::new(), flags: "01".to_owned() }
    }

    /// The same trace with a span of its own.
    pub(crate) fn child(&self) -> Self {
        Self { span: format!("{:016x}", random()), ..self.clone() }
    }

    pub(crate) fn put(&self, metadata: &mut Map<String, Value>) {
        metadata.insert(TRACEPARENT.to_owned(), self.to_string().into());
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace, span, flags } = self;
        write!(f, "00-{trace}-{span}-{flags}")
    }
}

/// Any number but zero, unlike others: trace ids need not be secret.
fn random() -> u64 {
    RandomState::new().hash_one(0).max(1)
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
