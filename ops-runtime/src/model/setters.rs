//! Options and their setters.

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

/// A struct of options: each has a default, and a setter with the same documentation. Those of the first block have setters
/// of their own, or none.
macro_rules! options {
    (
        $(#[$head:meta])*
        pub struct $type:ident {
            { $($(#[$own_doc:meta])* $own:ident: $own_kind:ty = $own_default:expr,)* }
            $($(#[$doc:meta])* $name:ident, $with:ident: $kind:ty = $default:expr,)*
        }
    ) => {
        $(#[$head])*
        #[non_exhaustive]
        pub struct $type {
            $($(#[$own_doc])* pub $own: $own_kind,)*
            $($(#[$doc])* pub $name: $kind,)*
        }

        impl Default for $type {
            fn default() -> Self {
                Self { $($own: $own_default,)* $($name: $default,)* }
            }
        }

        impl $type {
            $crate::model::setters::setters! {
                $($(#[$doc])* $with: $name = $kind;)*
            }
        }
    };
}

pub(crate) use {options, setters};
