//! `ops.toml`: documents and their settings, for both build scripts and the command.

mod read;

use std::path::{Path, PathBuf};

use crate::select::Selection;
use crate::{Builder, Error, Generator};

/// The name that the file usually has.
pub const NAME: &str = "ops.toml";

/// The content of the file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// Where it was read.
    pub path: PathBuf,
    /// The folder or file that `ops generate` writes to, as it is written; relative to the file.
    pub out: Option<String>,
    /// True if only what the crate's sources name is generated.
    pub only_used: bool,
    /// The documents, in the order of the file.
    pub documents: Vec<Document>,
}

/// A document that the file names.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Document {
    /// Its name, which is also its namespace.
    pub name: String,
    /// Its path as it is written: of a file or of a folder, relative to `ops.toml`.
    pub path: String,
    /// Its source; `None` if it is kept by hand.
    pub source: Option<String>,
    /// The SHA-256 of the file as it was fetched, in hexadecimal digits.
    pub sha256: Option<String>,
    overlays: Vec<String>,
    include: Vec<String>,
    exclude: Vec<String>,
    generator: Generator,
}

impl Builder {
    /// A builder with the documents and settings of a file, usually `ops.toml`, which `ops generate` reads, too.
    ///
    /// ```no_run
    /// // build.rs
    /// fn main() -> Result<(), ops_codegen::Error> {
    ///     ops_codegen::Builder::from_config("ops.toml")?.build()
    /// }
    /// ```
    ///
    /// ```toml
    /// [generate]                              # for all documents
    /// out = "src/api"                         # where `ops generate` writes; a build script writes to `OUT_DIR`
    /// runtime = "crate::ops"                  # `Generator::with_runtime`
    /// only_used = true                        # `Builder::only_used`
    /// formats = ["chrono", "uuid", "url"]     # strings with types of these crates; `true` for all
    /// methods = false                         # `Generator::without_methods`
    ///
    /// [documents.shop]                        # the name is the namespace
    /// path = "shop.yaml"                      # an OpenAPI document, a snapshot of an MCP server, or a folder of them
    /// source = "https://example.com/shop.yaml"    # where `ops update` fetches it; `ops add` adds the file's `sha256`
    /// overlays = ["shop.overlay.yaml"]        # `Builder::with_overlay`
    /// include = ["tag:Billing", "showPet"]    # `Builder::include`, for this document
    /// exclude = ["*Draft"]
    /// explicit_null = ["editPet"]             # `Generator::with_explicit_null`
    /// schemas = ["Webhook*"]                  # `Generator::with_schema`
    /// types = { Money = "crate::Money" }      # `Generator::with_type`
    /// rename = { PetV2 = "Pet" }              # `Generator::with_renamed_type`
    /// rename_fields = { PetV2.type = "kind" } # `Generator::with_renamed_field`
    /// derives = { "Pet*" = ["Hash"] }         # `Generator::with_derive`
    /// rust_types = true                       # `Generator::with_rust_types`
    /// server = true                           # `Builder::with_server`; "partial" for `with_partial_server`
    /// formats = true                          # in place of that of `[generate]`; so is `methods`
    /// ```
    ///
    /// Nothing is required but the `path` of each document. Paths are relative to the file. The documents of a folder have
    /// namespaces of their own, see [`dir`](Self::dir).
    ///
    /// # Errors
    /// If the file cannot be read, or if it has invalid settings or values; all of them are reported.
    pub fn from_config(path: impl AsRef<Path>) -> Result<Self, Error> {
        Config::read(path.as_ref()).map(|config| config.builder())
    }
}

impl Config {
    /// Reads the file at a path.
    ///
    /// # Errors
    /// If it cannot be read; or all errors in it, each with its line.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let text = std::fs::read_to_string(&path).map_err(|error| Error::io(&path, error))?;
        Self::parse(path, &text)
    }

    /// Reads the text of the file at a path.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub fn parse(path: impl Into<PathBuf>, text: &str) -> Result<Self, Error> {
        read::config(path.into(), text)
    }

    /// A path of the file, from the folder in which the process runs.
    #[must_use]
    pub fn resolve(&self, path: &str) -> PathBuf {
        self.folder().join(path)
    }

    /// The folder of the file; empty for the current one.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// What generates from the documents.
    #[must_use]
    pub fn builder(&self) -> Builder {
        let mut builder = Builder::new();
        builder.config = Some(self.path.clone());
        if self.only_used {
            builder = builder.only_used();
        }
        for document in &self.documents {
            let path = self.resolve(&document.path);
            builder =
                if path.is_dir() { builder.dir(path) } else { builder.document(path).with_namespace(&document.name) };
            builder = builder.with_document_generator(document.generator.clone());
            for overlay in &document.overlays {
                builder = builder.with_overlay(self.resolve(overlay));
            }
            let mut selection = Selection::of(format!("{}: `documents.{}`", self.path.display(), document.name));
            document.include.iter().for_each(|pattern| selection.include(pattern.clone()));
            document.exclude.iter().for_each(|pattern| selection.exclude(pattern.clone()));
            builder = builder.with_selection(selection);
        }
        builder
    }
}

#[cfg(test)]
mod tests;
