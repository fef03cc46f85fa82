//! The one engine behind `build.rs` : an API in, source out.

use ops_runtime::{Api, Diagnostic};

use crate::Error;
use crate::module::module;
use crate::render::render;
use crate::types::Format;

/// Renders APIs as Rust modules.
#[derive(Debug, Clone)]
pub struct Generator {
    runtime: String,
    formats: Vec<Format>,
}

/// A rendered module, and what there is to say about it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Generated {
    /// The source of the module: a plain module body, without inner attributes.
    pub source: String,
    /// What was left out or made less precise, and what was renamed.
    pub diagnostics: Vec<Diagnostic>,
}

impl Default for Generator {
    fn default() -> Self {
        Self { runtime: "::ops_runtime".to_owned(), formats: Vec::new() }
    }
}

impl Generator {
    /// A generator whose output names the runtime `::ops_runtime`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the runtime by another path, such as `crate::ops` where a crate re-exports it.
    ///
    /// # Errors
    /// If it is no path.
    pub fn with_runtime(mut self, path: &str) -> Result<Self, Error> {
        if syn::parse_str::<syn::Path>(path).is_err() || path.contains(['<', '(']) {
            return Err(Error::Settings(format!("`{path}` is no path to the runtime")));
        }
        path.clone_into(&mut self.runtime);
        Ok(self)
    }

    /// Gives strings of a format a type of its own; without it they are text.
    ///
    /// The crate that uses the module needs the runtime's feature of the type's crate: `chrono`, `uuid` or `url`. A
    /// string that is not of its format is then an error, where text takes anything.
    #[must_use]
    pub fn with_format(mut self, format: Format) -> Self {
        self.formats.push(format);
        self
    }

    /// Renders an API.
    ///
    /// # Errors
    /// If what was rendered is not Rust, which would be a defect of this crate.
    pub fn generate(&self, api: &Api) -> Result<Generated, Error> {
        let mut diagnostics = Vec::new();
        let module = module(api, &self.formats, &mut diagnostics);
        let source = render(&module, &self.runtime)?;
        Ok(Generated { source, diagnostics })
    }
}
