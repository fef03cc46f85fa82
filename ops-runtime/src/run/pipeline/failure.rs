//! Errors with the operation that they are of.

use crate::{CallError, OperationSpec};

/// The error of a handler, with its operation and the code that the operation declares for it.
#[cold]
pub(super) fn failed(error: CallError, spec: &OperationSpec) -> CallError {
    named(error.with_declared_code(&spec.errors), spec)
}

/// The error of a call, with its operation and the status that this declares. The operation that failed stays another one, if the
/// handler has called it.
#[cold]
pub(super) fn named(error: CallError, spec: &OperationSpec) -> CallError {
    let declared = spec.errors.iter().find(|declared| declared.code == error.code().as_str());
    let status = declared.and_then(|declared| declared.http_status);
    error.with_declared_status(status).with_operation(spec.id.clone())
}
