//! Errors with the operation that they are of.

use crate::{CallError, OperationSpec};

/// The error of a handler, with its operation and the code that the operation declares for it.
#[cold]
pub(super) fn failed(error: CallError, spec: &OperationSpec) -> CallError {
    named(error.with_declared_code(&spec.errors), spec)
}

/// The error of a call, with its operation.
#[cold]
pub(super) fn named(error: CallError, spec: &OperationSpec) -> CallError {
    error.with_operation(spec.id.clone())
}
