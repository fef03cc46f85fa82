//! The trace of a call: spans on both sides, joined by W3C's `traceparent` in the metadata.
//!
//! A call continues the `traceparent` of its parent call, or of its options. Otherwise it begins a trace if its span is
//! recorded. Each span has the ids as fields (`trace_id`, `span_id`, `parent_id`).

use serde_json::{Map, Value};
use tracing::{Span, debug_span, field};

use super::CallRequest;
use crate::OperationSpec;
use crate::model::trace_parent::TraceParent;

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
    continue_trace(&span, &mut request.metadata);
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
    continue_trace(&span, &mut request.metadata);
    span
}

/// Continues the trace in a request's metadata, or begins a new one if the span is recorded.
pub(crate) fn continue_trace(span: &Span, metadata: &mut Map<String, Value>) {
    let parent = TraceParent::of(metadata);
    // A trace that is not recorded here may be recorded in another process: it is passed on unchanged.
    if span.is_disabled() {
        return;
    }
    let own = parent.clone().unwrap_or_else(TraceParent::begin).child();
    span.record("trace_id", &own.trace);
    span.record("span_id", &own.span);
    if let Some(parent) = parent {
        span.record("parent_id", &parent.span);
    }
    own.put(metadata);
}
