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
        let names = path.strip_prefix("::").unwrap_or(path).split("::");
        let is_name = |name: &str| {
            name.chars().enumerate().all(|(i, c)| c == '_' || c.is_ascii_alphabetic() || i > 0 && c.is_ascii_digit())
                && !name.is_empty()
        };
        if !names.into_iter().all(is_name) {
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
    #[must_use]
    pub fn generate(&self, api: &Api) -> Generated {
        let mut diagnostics = Vec::new();
        let module = module(api, &self.formats, &mut diagnostics);
        let source = render(&module, &self.runtime);
        Generated { source, diagnostics }
    }
}
