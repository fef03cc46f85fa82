//! Where specs live.
//!
//! ```
//! use ops_runtime::spec::{OperationSpec, SpecRef};
//!
//! static ECHO: OperationSpec = OperationSpec::query("demo.echo");
//! let (of_a_program, met): (SpecRef, SpecRef) = ((&ECHO).into(), OperationSpec::query("demo.met").into());
//! assert_eq!((&*of_a_program.id, &*met.id), ("demo.echo", "demo.met"));
//! ```

use std::ops::Deref;
use std::sync::Arc;

use crate::OperationSpec;

/// A spec that lives in a `static` or is shared.
#[derive(Debug, Clone)]
pub enum SpecRef {
    /// A spec of generated code.
    Static(&'static OperationSpec),
    /// A spec loaded at run time.
    Shared(Arc<OperationSpec>),
}

impl Deref for SpecRef {
    type Target = OperationSpec;

    // Inlined, since every call reads its spec.
    #[inline]
    fn deref(&self) -> &OperationSpec {
        match self {
            Self::Static(spec) => spec,
            Self::Shared(spec) => spec,
        }
    }
}

impl From<&'static OperationSpec> for SpecRef {
    fn from(spec: &'static OperationSpec) -> Self {
        Self::Static(spec)
    }
}

impl From<&&'static OperationSpec> for SpecRef {
    fn from(spec: &&'static OperationSpec) -> Self {
        Self::Static(spec)
    }
}

impl From<OperationSpec> for SpecRef {
    fn from(spec: OperationSpec) -> Self {
        Self::Shared(Arc::new(spec))
    }
}

impl From<Arc<OperationSpec>> for SpecRef {
    fn from(spec: Arc<OperationSpec>) -> Self {
        Self::Shared(spec)
    }
}
