//! How documents are read, and the limits.

/// How a document is read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The namespace of the operations; by default the words of the last part of the document's location, or of its title if
    /// that part is a usual one, such as `openapi.json`. For a file, [`file_namespace`](super::file_namespace) is the name
    /// that its generated module has.
    pub namespace: Option<String>,
    /// How many documents are requested for one description: the first one and unreadable ones count; 2000 by default.
    pub max_documents: usize,
    /// Limit of all documents of one description together, in bytes; 512 MB by default.
    pub max_bytes: usize,
    /// True if schemas keep the extension `x-rust-type`, by which documents name Rust types; `false` by default. Of all
    /// extensions, only the names and descriptions of the values of an `enum` are kept otherwise.
    pub rust_types: bool,
    /// True if schemas keep the examples of the document, and outputs those of their responses; `false` by default.
    pub examples: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { namespace: None, max_documents: 2_000, max_bytes: 512 * 1024 * 1024, rust_types: false, examples: false }
    }
}

impl ReadOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the namespace of the operations. Characters that a namespace cannot have become `_`.
    #[must_use]
    pub fn with_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets how many documents are requested for one description: the first one and unreadable ones count.
    #[must_use]
    pub fn with_max_documents(mut self, documents: usize) -> Self {
        self.max_documents = documents;
        self
    }

    /// Sets the limit of all documents of one description together, in bytes.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Keeps the extension `x-rust-type` of schemas, for generators.
    #[must_use]
    pub fn with_rust_types(mut self) -> Self {
        self.rust_types = true;
        self
    }

    /// Keeps the examples of schemas, and those of responses as examples of their schemas: for mock servers.
    ///
    /// An example that is in a file of its own is left out, with a warning.
    #[must_use]
    pub fn with_examples(mut self) -> Self {
        self.examples = true;
        self
    }
}
