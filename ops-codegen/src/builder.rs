//! The face for `build.rs`: documents in, one file for each in `$OUT_DIR`, and what cargo needs to know.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ops_runtime::openapi::FileSource;
use ops_runtime::spec::{Api, Diagnostic, OperationSpec, Severity};

use self::run::{Run, check_namespace};
use crate::directory::stem;
use crate::output::write_if_changed;
use crate::select::Selection;
use crate::{Error, Generated, Generator};

mod place;
mod run;

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
    inputs: Vec<Input>,
    out_dir: Option<PathBuf>,
    generator: Generator,
    selection: Selection,
    explicit_null: Vec<String>,
}

#[derive(Debug, Clone)]
struct Input {
    kind: Kind,
    namespace: Option<String>,
}

#[derive(Debug, Clone)]
enum Kind {
    /// A document, by its location.
    Document(String, Form),
    Directory(PathBuf),
    /// An API, and what its reader had to say.
    Api(Api, Vec<Diagnostic>),
}

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    OpenApi,
    /// A list of an MCP server's tools.
    Tools,
    /// One of these, by its content.
    Any,
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
        self.add(path.as_ref(), Form::OpenApi);
        self
    }

    /// Adds the tools of an MCP server, by the path of a snapshot that `ops snapshot` wrote, or of another list of tools:
    /// what the server answers to `tools/list`.
    ///
    /// ```no_run
    /// // build.rs
    /// fn main() -> Result<(), ops_codegen::Error> {
    ///     ops_codegen::Builder::new().mcp("filesystem.json").build()
    /// }
    /// ```
    ///
    /// Their namespace is the name of the file without its ending.
    #[must_use]
    pub fn mcp(mut self, path: impl AsRef<Path>) -> Self {
        self.add(path.as_ref(), Form::Tools);
        self
    }

    /// Adds an OpenAPI document or a list of tools, whichever its content is; see [`openapi`](Self::openapi) and
    /// [`mcp`](Self::mcp).
    #[must_use]
    pub fn document(mut self, path: impl AsRef<Path>) -> Self {
        self.add(path.as_ref(), Form::Any);
        self
    }

    fn add(&mut self, path: &Path, form: Form) {
        let location = path.to_string_lossy().replace('\\', "/");
        self.inputs.push(Input { kind: Kind::Document(location, form), namespace: None });
    }

    /// Adds a directory: every OpenAPI document and every list of an MCP server's tools in it and in the folders below,
    /// and every spec of an operation (the JSON of an [`OperationSpec`]).
    ///
    /// The namespace of a document is its path below the directory without the ending, with `_` between the parts:
    /// `v1/pets.json` is `v1_pets`. Documents that would have the same one have more of their file names in it, and a
    /// warning names both: [`dir_namespaces`](ops_runtime::openapi::dir_namespaces). A spec names its own. A file that
    /// cannot be read is skipped, and a diagnostic says so, with the severity `Error`.
    #[must_use]
    pub fn dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.inputs.push(Input { kind: Kind::Directory(path.into()), namespace: None });
        self
    }

    /// Adds an API that was read or made some other way, and what its reader had to say, under a namespace.
    #[must_use]
    pub fn api(mut self, namespace: impl Into<String>, api: Api, diagnostics: Vec<Diagnostic>) -> Self {
        self.inputs.push(Input { kind: Kind::Api(api, diagnostics), namespace: Some(namespace.into()) });
        self
    }

    /// Names the namespace of the document added last, and with it the file that is written.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        if let Some(input) = self.inputs.last_mut() {
            input.namespace = Some(namespace.into());
        }
        self
    }

    /// Generates only operations that match this pattern or that of another `include`, and what they reach.
    ///
    /// A pattern is an operation's id or name, `tag:NAME`, a path, or a method and a path; `*` stands for any text, `?`
    /// for any character: `pets.*`, `tag:Billing`, `/pets/*`, `GET /pets`. It holds for all documents, and it is an
    /// error if it matches no operation of any.
    #[must_use]
    pub fn include(mut self, pattern: impl Into<String>) -> Self {
        self.selection.include(pattern.into());
        self
    }

    /// Leaves out the operations that match this pattern, even those that an [`include`](Self::include) matches.
    #[must_use]
    pub fn exclude(mut self, pattern: impl Into<String>) -> Self {
        self.selection.exclude(pattern.into());
        self
    }

    /// Lets requests of the operations that match this pattern say `null` of a property that need not be there; see
    /// [`Generator::with_explicit_null`].
    ///
    /// The pattern is that of an [`include`](Self::include). It holds for all documents, and it is an error if it matches
    /// no operation of any.
    #[must_use]
    pub fn explicit_null(mut self, pattern: impl Into<String>) -> Self {
        self.explicit_null.push(pattern.into());
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
    /// What there is to say about files of a directory that were skipped stands with the last module.
    ///
    /// # Errors
    /// If a document cannot be read or is not what it is said to be, if two have one namespace, or if a pattern matches
    /// nothing. A file of a directory is no error: see [`dir`](Self::dir).
    pub fn generate(&self) -> Result<Vec<Module>, Error> {
        let mut run = Run::new(self);
        for input in &self.inputs {
            match &input.kind {
                Kind::Document(location, form) => {
                    let namespace = match &input.namespace {
                        Some(namespace) => namespace.clone(),
                        None => stem(location.rsplit('/').next().unwrap_or(location)),
                    };
                    check_namespace(&namespace)?;
                    run.document(location, *form, FileSource::new(), &namespace)?;
                }
                Kind::Directory(path) => match &input.namespace {
                    None => run.directory(path)?,
                    Some(_) => {
                        let message =
                            format!("`{}` is a directory: its files have their own namespaces", path.display());
                        return Err(Error::Settings(message));
                    }
                },
                Kind::Api(api, diagnostics) => {
                    let namespace = input.namespace.clone().unwrap_or_default();
                    check_namespace(&namespace)?;
                    run.module(namespace, api.clone(), diagnostics.clone(), Vec::new(), "")?;
                }
            }
        }
        run.finish()
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
        let mut files: BTreeSet<&PathBuf> = modules.iter().flat_map(|module| &module.files).collect();
        // Of a directory cargo sees what is added, too.
        files.extend(self.inputs.iter().filter_map(|input| match &input.kind {
            Kind::Directory(path) => Some(path),
            _ => None,
        }));
        for file in files.into_iter().filter(|file| file.exists()) {
            let path = file.display().to_string();
            // A line break in a name that a document refers to would begin a line of its own.
            if !path.contains(char::is_control) {
                println!("cargo:rerun-if-changed={path}");
            }
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
    /// The operations that were chosen, as they were read.
    pub operations: Vec<OperationSpec>,
    /// Its source, and what there is to say about it.
    pub generated: Generated,
    /// The files that were read for it.
    pub files: Vec<PathBuf>,
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
            crate::report::line(&lines.collect::<Vec<_>>().join(" "))
        })
        .collect();
    if let Some(more) = warnings.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        let document = warnings.first().and_then(|diagnostic| diagnostic.document.as_deref()).unwrap_or("the document");
        lines.push(crate::report::line(&format!("{more} more warnings about {document}")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

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
