//! What a record keeps of an error beside its JSON.

use serde::{Deserialize, Serialize};

use crate::CallError;

/// The private marks of an error, which its JSON does not contain.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Marks {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    by_this_process: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    refuses_program: bool,
}

impl Marks {
    pub(in crate::durable) fn of(error: &CallError) -> Self {
        Self { by_this_process: error.is_by_this_process(), refuses_program: error.refuses_program() }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Marks an error that was read.
    pub(crate) fn put_on(&self, mut error: CallError) -> CallError {
        if self.by_this_process {
            error = error.by_this_process();
        }
        if self.refuses_program { error.refusing_program() } else { error }
    }
}
