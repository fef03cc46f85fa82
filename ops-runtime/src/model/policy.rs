//! What to do with results that do not match their schema.
//!
//! ```
//! use ops_runtime::Registry;
//! use ops_runtime::registry::OutputPolicy;
//!
//! let registry = Registry::builder().with_policy(OutputPolicy::Strict).build();
//! # drop(registry);
//! ```

/// What to do with a result that does not match its schema.
///
/// Under each policy, undeclared properties are removed where the schema leaves no room for them, and declared defaults
/// are filled in. [`normalise`](crate::normalise) lists what else changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OutputPolicy {
    /// Converts what loses nothing, such as `"7"` for an integer, with a warning each; makes nothing up.
    ///
    /// What then does not fit fails a typed call with a `VALIDATION_ERROR` that keeps the response. A call by id keeps it
    /// as it came, with a warning. A response of another kind (HTML, nothing, a list for an object) fails both.
    #[default]
    Repair,
    /// Replaces every missing or wrong value by the declared default, or else by an empty value (`0`, `""`), with a
    /// warning for each.
    ///
    /// Converts nothing: `"7"` for an integer is replaced, too. This is what `Value.Cast` of TypeBox does.
    Cast,
    /// Fails the call with a `VALIDATION_ERROR` that keeps the response.
    Strict,
}
