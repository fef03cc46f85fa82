//! The operations that are linked into the program.

use crate::expand::private::Discovered;
use crate::{Registration, Registry, RegistryError};

impl Registry {
    /// Adds every `#[operation]` that is linked into the program.
    ///
    /// # Errors
    /// Those of [`register_all`](Self::register_all).
    #[doc(alias = "scanOperations")]
    pub fn discover(&self) -> Result<(), RegistryError> {
        let mut all: Vec<Registration> = inventory::iter::<Discovered>().map(|Discovered(make)| make()).collect();
        // The linker's order means nothing.
        all.sort_by(|a, b| a.spec().id.cmp(&b.spec().id));
        self.register_all(all)
    }
}
