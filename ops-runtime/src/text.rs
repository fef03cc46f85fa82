//! The two building blocks of specs: text and lists that are borrowed in a const and owned in a spec met at run time.

use std::borrow::Cow;

/// Text of a spec: `Cow::Borrowed` in generated code, `Cow::Owned` in a spec that was read at run time.
pub type Text = Cow<'static, str>;

/// A list in a spec: `Cow::Borrowed(const { &[..] })` in generated code, `Cow::Owned` in a spec that was read at run time.
pub type List<T> = Cow<'static, [T]>;

/// Assigns to a field in a `const fn`, where a plain assignment is refused because it would drop the old value.
///
/// The old value is forgotten; the builders only ever overwrite a default that owns nothing.
pub(crate) const fn set<T>(slot: &mut T, value: T) {
    std::mem::forget(std::mem::replace(slot, value));
}
