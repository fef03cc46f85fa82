//! The face for `build.rs`: documents in, one file for each in `$OUT_DIR`, and what cargo needs to know.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::source::FileSource;
use ops_runtime::{Diagnostic, Severity};

use crate::output::write_if_changed;
use crate::{Error, Generated, Generator};

/// So many warnings are shown for a document; a line says how many there are more.
const SHOWN: usize = 20;

/// Generates modules from documents.
///
/// ```no_run
/// // build.rs
/// fn main() -> Result<(), ops_codegen::Error> {
///     ops_codegen::Builder::new().openapi("petstore.yaml").build()
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Builder {
    documents: Vec<Document>,
    out_dir: Option<PathBuf>,
    generator: Generator,
}

#[derive(Debug, Clone)]
struct Document {
    location: String,
    namespace: Option<String>,
}

impl Builder {
    /// A builder without documents.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an OpenAPI document, by its path: relative to the package in a build script.
    ///
    /// Its namespace is the name of the file without its ending.
    #[must_use]
    pub fn openapi(mut self, path: impl AsRef<Path>) -> Self {
        let location = path.as_ref().to_string_lossy().replace('\\', "/");
        self.documents.push(Document { location, namespace: None });
        self
    }

    /// Names the namespace of the document added last, and with it the file that is written.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        if let Some(document) = self.documents.last_mut() {
            document.namespace = Some(namespace.into());
        }
        self
    }

    /// Names the folder to write to, instead of `$OUT_DIR`.
    #[must_use]
    pub fn out_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(path.into());
        self
    }

    /// Names the generator, for settings of its own.
    #[must_use]
    pub fn generator(mut self, generator: Generator) -> Self {
        self.generator = generator;
        self
    }

    /// Generates every module and writes nothing.
    ///
    /// # Errors
    /// If a document cannot be read or is no OpenAPI document, or if two have one namespace.
    pub fn generate(&self) -> Result<Vec<Module>, Error> {
        let mut taken = BTreeSet::new();
        let mut modules = Vec::new();
        for document in &self.documents {
            let module = self.module(document)?;
            if !taken.insert(module.namespace.to_lowercase()) {
                let message =
                    format!("two documents have the namespace `{}`: name another with `namespace`", module.namespace);
                return Err(Error::Settings(message));
            }
            modules.push(module);
        }
        Ok(modules)
    }

    fn module(&self, document: &Document) -> Result<Module, Error> {
        let namespace = document.namespace.clone().unwrap_or_else(|| stem(&document.location));
        if namespace.is_empty() || !namespace.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-')) {
            let message = format!("`{namespace}` is no namespace: use letters, digits, `_` and `-`");
            return Err(Error::Settings(message));
        }
        let source = FileSource::new();
        let options = ReadOptions::new().with_namespace(&namespace);
        let (api, mut diagnostics) = openapi::load(&document.location, &source, &options)
            .map_err(|diagnostic| Error::Document { diagnostics: vec![diagnostic] })?;
        let generated = self.generator.generate(&api)?;
        diagnostics.extend(generated.diagnostics.into_iter().map(|diagnostic| match diagnostic.document {
            Some(_) => diagnostic,
            None => diagnostic.with_document(&document.location),
        }));
        Ok(Module { namespace, generated: Generated { diagnostics, ..generated }, files: source.files() })
    }

    /// Generates every module into a file of its own, `<namespace>.rs`, and tells cargo what it read.
    ///
    /// A file whose content would not change is not touched. Warnings about the documents become warnings of cargo.
    ///
    /// # Errors
    /// If nothing could be generated, or if a file cannot be written.
    pub fn build(&self) -> Result<(), Error> {
        let out_dir = match (&self.out_dir, std::env::var_os("OUT_DIR")) {
            (Some(path), _) => path.clone(),
            (None, Some(path)) => PathBuf::from(path),
            (None, None) => {
                return Err(Error::Settings("`OUT_DIR` is not set: name a folder with `out_dir`".to_owned()));
            }
        };
        let modules = self.generate()?;
        let files: BTreeSet<&PathBuf> = modules.iter().flat_map(|module| &module.files).collect();
        for file in files.into_iter().filter(|file| file.exists()) {
            println!("cargo:rerun-if-changed={}", file.display());
        }
        for module in &modules {
            write_if_changed(&out_dir.join(format!("{}.rs", module.namespace)), &module.generated.source)?;
            for line in warnings(&module.generated.diagnostics) {
                println!("cargo:warning={line}");
            }
        }
        Ok(())
    }
}

/// A generated module.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Module {
    /// The namespace of its operations.
    pub namespace: String,
    /// Its source, and what there is to say about it.
    pub generated: Generated,
    /// The files that were read for it.
    pub files: Vec<PathBuf>,
}

/// The name of a file without its ending, as a namespace.
fn stem(location: &str) -> String {
    let file = location.rsplit('/').next().unwrap_or(location);
    let stem = file.split_once('.').map_or(file, |(stem, _)| stem);
    stem.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// The warnings as single lines, as cargo shows them.
fn warnings(diagnostics: &[Diagnostic]) -> Vec<String> {
    let warnings: Vec<&Diagnostic> = diagnostics.iter().filter(|d| d.severity >= Severity::Warning).collect();
    let mut lines: Vec<String> = warnings
        .iter()
        .take(SHOWN)
        .map(|diagnostic| {
            let text = diagnostic.to_string();
            let lines = text.lines().map(str::trim).map(|line| line.strip_prefix("warning: ").unwrap_or(line));
            lines.collect::<Vec<_>>().join(" ")
        })
        .collect();
    if let Some(more) = warnings.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        let document = warnings.first().and_then(|diagnostic| diagnostic.document.as_deref()).unwrap_or("the document");
        lines.push(format!("{more} more warnings about {document}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_come_from_files() {
        for (location, namespace) in [
            ("petstore.yaml", "petstore"),
            ("specs/pet-store.v1.json", "pet-store"),
            ("a b.json", "a_b"),
            (".yaml", ""),
        ] {
            assert_eq!(stem(location), namespace);
        }
    }

    #[test]
    fn warnings_are_lines_and_few() {
        let diagnostics: Vec<Diagnostic> = (0..30)
            .flat_map(|i| {
                let pointer = format!("/paths/{i}");
                [
                    Diagnostic::warning(&pointer, "odd\nindeed").with_help("left out"),
                    Diagnostic::note(pointer, "renamed"),
                ]
            })
            .collect();
        let lines = warnings(&diagnostics);
        assert_eq!(lines.len(), SHOWN + 1);
        assert_eq!(lines[0], "odd indeed at /paths/0 = left out");
        assert_eq!(lines[SHOWN], "10 more warnings about the document");
    }
}
