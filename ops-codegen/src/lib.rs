//! Typed operations from API documents.
