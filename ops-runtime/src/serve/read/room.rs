//! What reading a body takes beside the input that it becomes.

use crate::Bodies;

/// What the parts of a multipart body may take, and where its files go.
pub(crate) struct Room<'r> {
    /// Holds so many values, if there is room for them.
    pub(super) hold: &'r mut (dyn FnMut(usize) -> bool + Send),
    /// The files, for each of which a text stands in the input; `None` if they are JSON in the input.
    pub(super) files: Option<Bodies>,
}

impl<'r> Room<'r> {
    /// Room for values that are counted, and files as they are.
    pub(crate) fn counted(hold: &'r mut (dyn FnMut(usize) -> bool + Send)) -> Self {
        Self { hold, files: Some(Bodies::default()) }
    }

    /// Room for what was counted before, with files as JSON.
    pub(crate) fn known(hold: &'r mut (dyn FnMut(usize) -> bool + Send)) -> Self {
        Self { hold, files: None }
    }

    pub(crate) fn into_files(self) -> Bodies {
        self.files.unwrap_or_default()
    }
}
