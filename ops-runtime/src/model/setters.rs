//! Setters of options.

/// Methods that set one field each, and return the options.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $field:ident = $kind:ty;)*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $name(mut self, $field: $kind) -> Self {
                self.$field = $field;
                self
            }
        )*
    };
}

pub(crate) use setters;
