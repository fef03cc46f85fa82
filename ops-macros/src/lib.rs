//! The attribute `#[operation]`; documented where `ops-runtime` re-exports it.
