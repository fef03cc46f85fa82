//! The interface for `build.rs`: documents in, one file for each in `$OUT_DIR`, and the lines that cargo needs.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use ops_runtime::openapi::FileSource;
use ops_runtime::spec::{Api, Diagnostic, OperationSpec, Severity};
use serde_core::Serialize;
use serde_json::Value;

use self::included::include;
use self::run::Run;
use self::used::{Kept, Made, Note, Sources};
use crate::directory::{Form, check_namespace, stem};
use crate::output::write_if_changed;
use crate::select::Selection;
use crate::settings::Serving;
use crate::{Error, Generated, Generator};

mod included;
mod place;
mod run;
mod used;

/// How many warnings are shown for a document; a line gives the number of the rest.
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
#[doc(alias = "FromOpenAPI")]
#[doc(alias = "FromSchema")]
pub struct Builder {
    inputs: Vec<Input>,
    out_dir: Option<PathBuf>,
    generator: Generator,
    selection: Selection,
    explicit_null: Vec<String>,
    only_used: bool,
    /// The file that the settings come from, if they do.
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Clone)]
struct Input {
    kind: Kind,
    namespace: Option<String>,
    /// The generator for it; `None` for the builder's.
    generator: Option<Generator>,
    /// The server to generate; `None` for what the generator says.
    server: Option<Serving>,
    /// The overlays of a document, by their locations.
    overlays: Vec<String>,
    /// What is selected of it, beside the builder's selection.
    selection: Option<Selection>,
}

impl Input {
    fn new(kind: Kind) -> Self {
        Self { kind, namespace: None, generator: None, server: None, overlays: Vec::new(), selection: None }
    }
}

#[derive(Debug, Clone)]
enum Kind {
    /// A document, by its location.
    Document(String, Form),
    Directory(PathBuf),
    /// An OpenAPI document.
    Value(Value),
    /// An API, and the diagnostics of its reader.
    Api(Api, Vec<Diagnostic>),
}

impl Builder {
    /// A builder without documents.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an OpenAPI document by its path, which is relative to the package in a build script.
    ///
    /// Its namespace is the name of the file without its ending.
    #[must_use]
    pub fn openapi(mut self, path: impl AsRef<Path>) -> Self {
        self.add(path.as_ref(), Form::OpenApi);
        self
    }

    /// Adds an OpenAPI document that is a value, under a namespace: anything that serialises to a document, such as
    /// `openapiv3::OpenAPI`, what `utoipa` makes, or a `serde_json::Value`.
    ///
    /// So a build script can change a document before it generates from it:
    ///
    /// ```no_run
    /// // build.rs
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     println!("cargo:rerun-if-changed=shop.json");
    ///     let mut document: serde_json::Value = serde_json::from_str(&std::fs::read_to_string("shop.json")?)?;
    ///     document["servers"] = serde_json::json!([{ "url": "https://shop.example.com/v2" }]);
    ///     ops_codegen::Builder::new().openapi_value("shop", &document)?.build()?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// Operations and properties have the order in which the value writes them. Diagnostics have JSON pointers, but no
    /// file. References to other documents are not followed, because a value has no location; a warning names each.
    ///
    /// # Errors
    /// If the value can't be written as JSON. One that is no OpenAPI document is an error of [`build`](Self::build) and
    /// [`generate`](Self::generate).
    pub fn openapi_value(mut self, namespace: impl Into<String>, document: &impl Serialize) -> Result<Self, Error> {
        let namespace = namespace.into();
        let value = serde_json::to_value(document).map_err(|error| {
            Error::Settings(format!("the document for `{namespace}` can't be written as JSON: {error}"))
        })?;
        self.inputs.push(Input { namespace: Some(namespace), ..Input::new(Kind::Value(value)) });
        Ok(self)
    }

    /// Adds the tools of an MCP server, by the path of a snapshot from `ops snapshot`, or of another list of tools: a
    /// server's answer to `tools/list`.
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

    /// Adds an OpenAPI document or a list of tools, depending on its content; see [`openapi`](Self::openapi) and
    /// [`mcp`](Self::mcp).
    #[must_use]
    pub fn document(mut self, path: impl AsRef<Path>) -> Self {
        self.add(path.as_ref(), Form::Any);
        self
    }

    fn add(&mut self, path: &Path, form: Form) {
        self.inputs.push(Input::new(Kind::Document(location(path), form)));
    }

    /// Adds a directory: every OpenAPI document and every list of an MCP server's tools in it and in the folders below,
    /// and every spec of an operation (the JSON of an [`OperationSpec`]).
    ///
    /// The namespace of a document is its path below the directory without the ending, with `_` between the parts:
    /// `v1/pets.json` is `v1_pets`. Documents that would have the same one get more of their file names in it, and a
    /// warning names both: see [`dir_namespaces`](ops_runtime::openapi::dir_namespaces). A spec has its own. A file
    /// that cannot be read is skipped, and reported by a diagnostic with the severity `Error`.
    #[must_use]
    pub fn dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.inputs.push(Input::new(Kind::Directory(path.into())));
        self
    }

    /// Adds an API from another source, and the diagnostics of its reader, under a namespace.
    #[must_use]
    pub fn api(mut self, namespace: impl Into<String>, api: Api, diagnostics: Vec<Diagnostic>) -> Self {
        let input = Input::new(Kind::Api(api, diagnostics));
        self.inputs.push(Input { namespace: Some(namespace.into()), ..input });
        self
    }

    /// Sets the namespace of the document added last, and with it the name of the file to write.
    #[must_use]
    pub fn with_namespace(mut self, namespace: impl Into<String>) -> Self {
        if let Some(input) = self.inputs.last_mut() {
            input.namespace = Some(namespace.into());
        }
        self
    }

    /// Changes the document added last by an overlay (OpenAPI Overlay Specification 1.0 or 1.1), by its path.
    ///
    /// Its actions are applied in their order, to the document as it is written: before references are followed, and not to
    /// files that it refers to. Several overlays are applied in the order in which they are added. A diagnostic about a part
    /// that an overlay put there names the place in the overlay; a target that matches nothing is a warning.
    ///
    /// ```no_run
    /// // build.rs
    /// fn main() -> Result<(), ops_codegen::Error> {
    ///     ops_codegen::Builder::new().openapi("shop.yaml").with_overlay("shop.overlay.yaml").build()
    /// }
    /// ```
    ///
    /// A target is a `JSONPath` (RFC 9535). Regular expressions in it know no Unicode classes (`\p{..}`).
    #[cfg(feature = "overlays")]
    #[must_use]
    pub fn with_overlay(mut self, path: impl AsRef<Path>) -> Self {
        if let Some(input) = self.inputs.last_mut() {
            input.overlays.push(location(path.as_ref()));
        }
        self
    }

    /// Selects from the document or directory added last, beside what is selected from all.
    #[cfg(feature = "config")]
    pub(crate) fn with_selection(mut self, selection: Selection) -> Self {
        if let Some(input) = self.inputs.last_mut() {
            input.selection = Some(selection);
        }
        self
    }

    /// Generates only operations that match this pattern or another `include`, and what they reach.
    ///
    /// A pattern is an operation's id or name, `tag:NAME`, a path, or a method and a path; `*` stands for any text, `?`
    /// for any character: `pets.*`, `tag:Billing`, `/pets/*`, `GET /pets`. It applies to all documents. It is an error
    /// if it matches no operation of any of them.
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

    /// Lets requests of the operations that match this pattern send `null` for a property that may be absent; see
    /// [`Generator::with_explicit_null`].
    ///
    /// The pattern is that of an [`include`](Self::include). It applies to all documents. It is an error if it matches
    /// no operation of any of them.
    #[must_use]
    pub fn with_explicit_null(mut self, pattern: impl Into<String>) -> Self {
        self.explicit_null.push(pattern.into());
        self
    }

    /// Generates only what the crate's own sources name: operations, types, and the types of fields.
    ///
    /// The build script reads the identifiers in the files below `src`, `tests`, `examples` and `benches`. An operation is
    /// there if its type, its method or its errors are named; a type if it is named, or if an operation or another type
    /// that is there needs it. A field that nothing names holds any JSON. So a large document costs a build what is used
    /// of it; naming something new costs one more run of the build script. What is generated is called as it is without
    /// this.
    ///
    /// Operations that are left out can be called by id: the module's `other_operations` reads them, for
    /// `client.bind(..)`.
    ///
    /// ```no_run
    /// // build.rs
    /// fn main() -> Result<(), ops_codegen::Error> {
    ///     ops_codegen::Builder::new().openapi("large.json").only_used().build()
    /// }
    /// ```
    #[must_use]
    pub fn only_used(mut self) -> Self {
        self.only_used = true;
        self
    }

    /// Sets the folder to write to, instead of `$OUT_DIR`.
    #[must_use]
    pub fn with_out_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(path.into());
        self
    }

    /// Sets the generator, which has settings of its own.
    #[must_use]
    pub fn with_generator(mut self, generator: Generator) -> Self {
        self.generator = generator;
        self
    }

    /// Sets the generator of the document, directory or API added last; the others have the builder's.
    ///
    /// ```no_run
    /// // build.rs
    /// use ops_codegen::{Builder, Generator};
    ///
    /// fn main() -> Result<(), ops_codegen::Error> {
    ///     let generator = Generator::new().with_type("Pet", "crate::Pet")?;
    ///     Builder::new().openapi("shop.yaml").with_document_generator(generator).openapi("bank.yaml").build()
    /// }
    /// ```
    #[must_use]
    pub fn with_document_generator(mut self, generator: Generator) -> Self {
        if let Some(input) = self.inputs.last_mut() {
            input.generator = Some(generator);
        }
        self
    }

    /// Adds the trait `Server` to the modules of the document, directory or API added last, by which the program serves its
    /// operations; see [`Generator::with_server`].
    ///
    /// ```no_run
    /// // build.rs
    /// fn main() -> Result<(), ops_codegen::Error> {
    ///     ops_codegen::Builder::new().openapi("shop.yaml").with_server().openapi("bank.yaml").build()
    /// }
    /// ```
    #[must_use]
    pub fn with_server(mut self) -> Self {
        if let Some(input) = self.inputs.last_mut() {
            input.server = Some(Serving::All);
        }
        self
    }

    /// As [`with_server`](Self::with_server), but methods may be left out; see [`Generator::with_partial_server`].
    #[must_use]
    pub fn with_partial_server(mut self) -> Self {
        if let Some(input) = self.inputs.last_mut() {
            input.server = Some(Serving::Some);
        }
        self
    }

    /// Generates every module, without writing files.
    ///
    /// The diagnostics of skipped files of a directory are those of the last module.
    ///
    /// # Errors
    /// If a document cannot be read or is of the wrong kind, if two have one namespace, if a pattern matches nothing, or
    /// if a setting of a generator names nothing in all of its documents or can't be applied. An invalid file of a directory is no error: see [`dir`](Self::dir).
    pub fn generate(&self) -> Result<Vec<Module>, Error> {
        let folder = self.config.as_ref().and_then(|path| path.parent());
        let used = match folder {
            _ if !self.only_used => None,
            // The sources beside the file; in a build script, those of its package.
            Some(folder) => Some(Sources::below(folder)?.names),
            None => Some(Sources::read()?.names),
        };
        self.generate_for(used)
    }

    fn generate_for(&self, used: Option<HashSet<String>>) -> Result<Vec<Module>, Error> {
        let mut run = Run::new(self, used);
        for (at, input) in self.inputs.iter().enumerate() {
            run.use_generator_of(at);
            if !input.overlays.is_empty() && !matches!(input.kind, Kind::Document(..)) {
                return Err(Error::Settings("an overlay changes a document: add it behind one".to_owned()));
            }
            run.select_by(input.selection.clone());
            match &input.kind {
                Kind::Document(location, form) => {
                    let namespace = match &input.namespace {
                        Some(namespace) => namespace.clone(),
                        None => stem(location.rsplit('/').next().unwrap_or(location)),
                    };
                    check_namespace(&namespace)?;
                    run.document(location, *form, FileSource::new(), &input.overlays, &namespace)?;
                }
                Kind::Directory(path) => match &input.namespace {
                    None => run.directory(path)?,
                    Some(_) => {
                        let message =
                            format!("`{}` is a directory: its files have their own namespaces", path.display());
                        return Err(Error::Settings(message));
                    }
                },
                Kind::Value(document) => {
                    let namespace = input.namespace.clone().unwrap_or_default();
                    check_namespace(&namespace)?;
                    run.value(document, &namespace)?;
                }
                Kind::Api(api, diagnostics) => {
                    let namespace = input.namespace.clone().unwrap_or_default();
                    check_namespace(&namespace)?;
                    run.module(namespace, api.clone(), diagnostics.clone(), Vec::new(), "")?;
                }
            }
        }
        run.finish()
    }

    /// Generates every module into a file of its own, `<namespace>.rs`, and tells cargo which files it read.
    ///
    /// In `$OUT_DIR`, these are the modules that `include_operations!` finds: it lists them for any other name.
    ///
    /// A file is written only if its content changes. Warnings about the documents become warnings of cargo.
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
        if !self.only_used {
            let modules = self.generate_for(None)?;
            rerun(self.read_by(&modules));
            let (written, lines) = self.write(&out_dir, &modules)?;
            include(&written);
            warn(&lines);
            return Ok(());
        }
        let sources = Sources::read()?;
        rerun(sources.folders.iter());
        // Any edit of the sources leads here; most name nothing new.
        let files_only = self.inputs.iter().all(|input| matches!(input.kind, Kind::Document(..) | Kind::Value(_)));
        let note = Note::new(&format!("{self:?}"), files_only, &out_dir);
        if let Some(Kept { files, modules, lines }) = note.unchanged(&sources.names) {
            rerun(files.iter());
            include(&modules);
            warn(&lines);
            return Ok(());
        }
        let modules = self.generate_for(Some(sources.names.clone()))?;
        rerun(self.read_by(&modules));
        let (written, lines) = self.write(&out_dir, &modules)?;
        let known = modules.iter().flat_map(|module| &module.generated.names).collect();
        let made = Made { files: self.read_by(&modules).into_iter().cloned().collect(), known, written, lines };
        note.write(&sources.names, &made);
        include(&made.written);
        warn(&made.lines);
        Ok(())
    }

    /// The files that the modules were made of, and the directories: in them, cargo also notices added files.
    fn read_by<'m>(&'m self, modules: &'m [Module]) -> BTreeSet<&'m PathBuf> {
        let directories = self.inputs.iter().filter_map(|input| match &input.kind {
            Kind::Directory(path) => Some(path),
            _ => None,
        });
        modules.iter().flat_map(|module| &module.files).chain(directories).chain(&self.config).collect()
    }

    /// Writes the modules; returns the files, and the warnings about the documents.
    fn write(&self, out_dir: &Path, modules: &[Module]) -> Result<(Vec<PathBuf>, Vec<String>), Error> {
        let (mut written, mut lines) = (Vec::new(), Vec::new());
        for module in modules {
            let source = (format!("{}.rs", module.namespace), module.generated.source.as_str());
            for (name, text) in std::iter::once(source).chain(module.included()) {
                let path = out_dir.join(name);
                write_if_changed(&path, text)?;
                written.push(path);
            }
            lines.extend(warnings(&module.generated.diagnostics));
        }
        Ok((written, lines))
    }
}

/// The location of a file.
fn location(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
}

/// Tells cargo to run the build script again when one of these changes.
fn rerun<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) {
    for path in paths.into_iter().filter(|path| path.exists()) {
        let path = path.display().to_string();
        // A line break in the name of a referenced document would begin a new line for cargo.
        if !path.contains(char::is_control) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
}

fn warn(lines: &[String]) {
    lines.iter().for_each(|line| println!("cargo:warning={line}"));
}

/// A generated module.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Module {
    /// The namespace of its operations.
    pub namespace: String,
    /// The chosen operations, as they were read.
    pub operations: Vec<OperationSpec>,
    /// Its source and diagnostics.
    pub generated: Generated,
    /// The files that were read for it.
    pub files: Vec<PathBuf>,
}

impl Module {
    /// The file that the source includes, which lies beside it, and its text; `None` if it includes none.
    #[doc(hidden)]
    pub fn included(&self) -> Option<(String, &str)> {
        let text = self.generated.others.as_deref()?;
        Some((format!("{}.others.json", self.namespace), text))
    }
}

/// The warnings as single lines, for cargo.
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
