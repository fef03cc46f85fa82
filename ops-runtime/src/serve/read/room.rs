//! Limits and file storage for reading a multipart body.

use crate::Bodies;

/// The limit of values in the parts of a multipart body, and the destination of its files.
pub(crate) struct Room<'r> {
    /// Reserves so many values, if there is room for them.
    pub(super) hold: &'r mut (dyn FnMut(usize) -> bool + Send),
    /// The files, each with a placeholder in the input; `None` if they are JSON in the input.
    pub(super) files: Option<Bodies>,
}

impl<'r> Room<'r> {
    /// For values that are counted, with unchanged files.
    pub(crate) fn counted(hold: &'r mut (dyn FnMut(usize) -> bool + Send)) -> Self {
        Self { hold, files: Some(Bodies::default()) }
    }

    /// For values that were counted before, with files as JSON.
    pub(crate) fn known(hold: &'r mut (dyn FnMut(usize) -> bool + Send)) -> Self {
        Self { hold, files: None }
    }

    pub(crate) fn into_files(self) -> Bodies {
        self.files.unwrap_or_default()
    }
}
