//! The generic serde of generated types.
