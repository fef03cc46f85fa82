//! The one engine behind `build.rs` : an API in, source out.

use std::collections::HashSet;

use ops_runtime::spec::{Api, Definitions, Diagnostic, OperationSpec};
use serde_json::{Map, Value, json};

use crate::Error;
use crate::module::module;
use crate::render::render;
use crate::types::{Format, Settings};

/// Renders APIs as Rust modules.
#[derive(Debug, Clone)]
pub struct Generator {
    runtime: String,
    settings: Settings,
}

/// A rendered module, and its diagnostics.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Generated {
    /// The source of the module: a plain module body, without inner attributes.
    pub source: String,
    /// Diagnostics of what was left out, made less precise, or renamed.
    pub diagnostics: Vec<Diagnostic>,
    /// The operations that were left out because nothing names them, as JSON: the file that the source includes.
    pub(crate) others: Option<String>,
    /// Every identifier by which a crate can name a part of the module; only if something may be left out.
    pub(crate) names: HashSet<String>,
}

impl Default for Generator {
    fn default() -> Self {
        Self { runtime: "::ops_runtime".to_owned(), settings: Settings { methods: true, ..Settings::default() } }
    }
}

impl Generator {
    /// A generator whose output uses the runtime as `::ops_runtime`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets another path for the runtime, such as `crate::ops` if a crate re-exports it.
    ///
    /// # Errors
    /// If the text is no path.
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

    /// Gives strings of a format a type of its own; by default they are text.
    ///
    /// The crate that uses the module needs the runtime's feature for the type's crate: `chrono`, `uuid` or `url`. A
    /// string that does not fit its format is then an error; text accepts anything.
    #[must_use]
    pub fn with_format(mut self, format: Format) -> Self {
        self.settings.formats.push(format);
        self
    }

    /// Leaves out the trait `Methods`, whose methods run the operations: `client.show_pet(7)`.
    #[must_use]
    pub fn without_methods(mut self) -> Self {
        self.settings.methods = false;
        self
    }

    /// Lets requests of the operations that match this pattern send `null` for a property that may be absent.
    ///
    /// Such a property is an `Option<Option<_>>` in the operation's body, and in all types that the body reaches:
    /// `None` sends nothing, `Some(None)` sends `null`. Bodies of `PATCH` and merge patches
    /// (`application/merge-patch+json`) always have such properties. Elsewhere they are an `Option<_>`, and `null` is
    /// not sent. For an operation that is no HTTP request, the whole input is the body.
    ///
    /// The pattern is that of [`Builder::include`](crate::Builder::include), such as an operation's id or name.
    ///
    /// ```
    /// use ops_codegen::Generator;
    /// use ops_runtime::spec::{Api, Definitions, OperationSpec, Schema};
    ///
    /// let schema = Schema::text(r#"{"type":"object","properties":{"owner":{"type":["string","null"]}}}"#);
    /// let api = Api::new(Definitions::EMPTY, vec![OperationSpec::mutation("zoo.edit").with_input(schema)]);
    /// assert!(Generator::new().generate(&api).source.contains("pub owner: Option<String>,"));
    /// let generator = Generator::new().with_explicit_null("zoo.edit");
    /// assert!(generator.generate(&api).source.contains("pub owner: Option<Option<String>>,"));
    /// ```
    #[must_use]
    pub fn with_explicit_null(mut self, pattern: impl Into<String>) -> Self {
        self.settings.explicit_null.push(pattern.into());
        self
    }

    /// The patterns of the operations whose requests can send `null`.
    pub(crate) fn explicit_null(&self) -> &[String] {
        &self.settings.explicit_null
    }

    /// Leaves out what these identifiers do not name.
    pub(crate) fn with_only(mut self, used: HashSet<String>) -> Self {
        self.settings.only = Some(used);
        self
    }

    /// Renders an API.
    #[must_use]
    pub fn generate(&self, api: &Api) -> Generated {
        let mut diagnostics = Vec::new();
        let mut module = module(api, &self.settings, &mut diagnostics);
        let source = render(&module, &self.runtime);
        Diagnostic::bound(&mut diagnostics);
        let others = module.others.take().map(|specs| others(api, specs));
        Generated { source, diagnostics, others, names: module.names }
    }
}

/// Operations, and the definitions that they share, as JSON.
fn others(api: &Api, specs: Vec<OperationSpec>) -> String {
    let definitions = api.definitions.as_slice().iter();
    let definitions: Map<String, Value> =
        definitions.filter_map(|it| Some((it.name.to_string(), it.schema.to_value().ok()?.into_owned()))).collect();
    // With its definitions, each spec would repeat them.
    let specs = specs.into_iter().filter_map(|mut spec| {
        spec.definitions = Definitions::EMPTY;
        serde_json::to_value(spec).ok()
    });
    let specs: Vec<Value> = specs.collect();
    json!({ "definitions": definitions, "operations": specs }).to_string()
}
