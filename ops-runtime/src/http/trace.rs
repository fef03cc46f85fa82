//! The trace of a call's requests (W3C Trace Context).

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::Context;
use crate::model::trace_parent::{TRACEPARENT, TRACESTATE, TraceParent};

const PARENT: HeaderName = HeaderName::from_static(TRACEPARENT);
const STATE: HeaderName = HeaderName::from_static(TRACESTATE);

/// The trace of a call: that of its metadata, or a new one.
pub(super) struct Trace {
    parent: TraceParent,
    /// Additions of tracing systems, which are passed on with the trace.
    state: Option<HeaderValue>,
}

impl Trace {
    pub(super) fn of(context: &Context) -> Self {
        let metadata = context.metadata();
        match metadata.and_then(TraceParent::of) {
            Some(parent) => {
                let state = metadata.and_then(|metadata| metadata.get(STATE.as_str())?.as_str());
                Self { parent, state: state.and_then(|state| HeaderValue::from_str(state).ok()) }
            }
            None => Self { parent: TraceParent::begin(), state: None },
        }
    }

    /// Adds the trace with a span of its own, unless the caller has set one.
    pub(super) fn put(&self, headers: &mut HeaderMap) {
        if headers.contains_key(PARENT) {
            return;
        }
        let Ok(value) = HeaderValue::from_str(&self.parent.child().to_string()) else { return };
        headers.insert(PARENT, value);
        if let Some(state) = &self.state {
            headers.entry(STATE).or_insert_with(|| state.clone());
        }
    }
}

/// True for a header that carries a trace.
pub(super) fn is_of_trace(name: &HeaderName) -> bool {
    *name == PARENT || *name == STATE
}

/// The trace and the span in a request.
pub(super) fn of_request(headers: &HeaderMap) -> Option<TraceParent> {
    TraceParent::parse(headers.get(PARENT)?.to_str().ok()?)
}
