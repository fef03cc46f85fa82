//! The interface for `build.rs`: documents in, one file for each in `$OUT_DIR`, and the lines that cargo needs.

use std::path::{Path, PathBuf};

use ops_runtime::spec::{Api, Diagnostic, OperationSpec};
use serde_core::Serialize;
use serde_json::Value;

use crate::directory::Form;
use crate::select::Selection;
use crate::settings::Serving;
use crate::{Error, Generated, Generator};

mod build;
mod claim;
mod included;
mod place;
mod run;
mod used;

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
    /// The generator of the documents without their own; `None` for the default one.
    generator: Option<Generator>,
    selection: Selection,
    explicit_null: Vec<String>,
    only_used: bool,
    /// The methods that were called before there was a document for them.
    early: Vec<&'static str>,
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
    /// Its namespace is the name of the file up to the first dot: `shop.v2.yaml` is `shop`.
    /// [`with_namespace`](Self::with_namespace) sets another.
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
    /// If the value cannot be written as JSON. If it is not an OpenAPI document, that is an error of
    /// [`build`](Self::build) and [`generate`](Self::generate).
    pub fn openapi_value(mut self, namespace: impl Into<String>, document: &impl Serialize) -> Result<Self, Error> {
        let namespace = namespace.into();
        let value = serde_json::to_value(document).map_err(|error| {
            Error::Settings(format!("the document for `{namespace}` can't be written as JSON: {error}"))
        })?;
        self.inputs.push(Input { namespace: Some(namespace), ..Input::new(Kind::Value(value)) });
        Ok(self)
    }

    /// Adds the tools of an MCP server, by the path of a snapshot from `ops snapshot`, or of another list of tools: a
    /// server's response to `tools/list`.
    ///
    /// ```no_run
    /// // build.rs
    /// fn main() -> Result<(), ops_codegen::Error> {
    ///     ops_codegen::Builder::new().mcp("filesystem.json").build()
    /// }
    /// ```
    ///
    /// Their namespace is the name of the file up to the first dot: `files.v2.json` is `files`.
    /// [`with_namespace`](Self::with_namespace) sets another.
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

    /// The input that was added last, for a method that configures it.
    fn last(&mut self, method: &'static str) -> Option<&mut Input> {
        if self.inputs.is_empty() {
            self.early.push(method);
        }
        self.inputs.last_mut()
    }

    /// Adds a directory: every OpenAPI document and every list of an MCP server's tools in it and in the folders below,
    /// and every spec of an operation (the JSON of an [`OperationSpec`]).
    ///
    /// The namespace of a document is its path below the directory, up to the first dot of the file's name, with `_`
    /// between the parts: `v1/pets.json` is `v1_pets`. Documents that would have the same one get more of their file names in it, and a
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
        if let Some(input) = self.last("with_namespace") {
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
        if let Some(input) = self.last("with_overlay") {
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
    /// The build script reads the identifiers in the files below `src`, `tests`, `examples` and `benches`, those of code in
    /// documentation included, but not in other comments on lines of their own. An operation is generated if the crate names
    /// its type, its method or its errors. A type is generated if the crate names it, or if a generated operation or type
    /// needs it. A field that the crate does not name holds any JSON, unless its type tells the variants of a union apart. So
    /// the build time depends on the used part of a large document. To use another part costs one more run of the build
    /// script. Generated items have the same names as without this setting.
    ///
    /// Cargo looks at those of the four folders that are there. After you add one of them, such as the first `tests`, save a
    /// file of `src` again, or cargo does not run the build script.
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
    ///
    /// Files there that ops-codegen did not write are kept: [`build`](Self::build) fails instead of overwriting one.
    #[must_use]
    pub fn with_out_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(path.into());
        self
    }

    /// Sets the generator of the documents that have none of their own, by
    /// [`with_document_generator`](Self::with_document_generator) or `ops.toml`. It is an error if there is no such document.
    #[must_use]
    pub fn with_generator(mut self, generator: Generator) -> Self {
        self.generator = Some(generator);
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
        if let Some(input) = self.last("with_document_generator") {
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
        if let Some(input) = self.last("with_server") {
            input.server = Some(Serving::All);
        }
        self
    }

    /// Like [`with_server`](Self::with_server), but methods may be left out; see [`Generator::with_partial_server`].
    #[must_use]
    pub fn with_partial_server(mut self) -> Self {
        if let Some(input) = self.last("with_partial_server") {
            input.server = Some(Serving::Some);
        }
        self
    }
}

/// The location of a file.
fn location(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
}

/// A generated module.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Module {
    /// The namespace of its operations.
    pub namespace: String,
    /// The chosen operations, as they were read.
    pub operations: Vec<OperationSpec>,
    /// The chosen requests that the API sends, webhooks and callbacks, as they were read.
    pub webhooks: Vec<OperationSpec>,
    /// Its source and diagnostics.
    pub generated: Generated,
    /// The files that were read for it.
    pub files: Vec<PathBuf>,
    /// The files that its document refers to and that are not there, so that what refers to them takes any JSON.
    pub missing: Vec<PathBuf>,
    /// The ids of all operations that were read, chosen or not, so that names do not depend on the choice.
    #[doc(hidden)]
    pub ids: Vec<String>,
}

impl Module {
    /// The file that the source includes, which lies beside it, and its text; `None` if it includes none.
    #[doc(hidden)]
    pub fn included(&self) -> Option<(String, &str)> {
        let text = self.generated.others.as_deref()?;
        Some((format!("{}.others.json", self.namespace), text))
    }
}
