//! Sees to it that no builder of a build script overwrites what another one has written.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::Error;

/// The files that this process has written, each with the settings of its builder.
static OWNERS: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// Claims files for a builder with these settings.
///
/// # Errors
/// If another builder has claimed one of them: its module would be lost, and the errors would be about the code that uses it.
pub(super) fn claim<'p>(files: impl IntoIterator<Item = &'p Path>, settings: u64) -> Result<(), Error> {
    let mut owners = OWNERS.lock().unwrap_or_else(PoisonError::into_inner);
    for file in files {
        // Some disks take names that differ in case for one.
        let owner = *owners.entry(file.to_string_lossy().to_lowercase()).or_insert(settings);
        if owner != settings {
            return Err(Error::Settings(format!(
                "two builders of this build script write `{}`: give a document of one of them a namespace of its own, by \
                 `with_namespace`",
                file.display()
            )));
        }
    }
    Ok(())
}
