//! The operations that are linked into the program.

use crate::Registration;
use crate::private::Discovered;

/// All of them, sorted by id: the linker's order means nothing.
pub(crate) fn registrations() -> Vec<Registration> {
    let mut all: Vec<Registration> = inventory::iter::<Discovered>().map(|Discovered(make)| make()).collect();
    all.sort_by(|a, b| a.spec().id.cmp(&b.spec().id));
    all
}
