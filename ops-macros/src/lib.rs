//! The attribute `#[operation]`; documented where `ops-runtime` re-exports it.
//!
//! Expansion goes through four phases, each in its own file: `arguments` and `item` parse, `signature` and `output`
//! make the plain structs of `model` (`binding` places them in an HTTP request), `check` looks at what no single part can see, `render` prints tokens.

mod arguments;
mod binding;
mod check;
mod description;
mod errors;
mod expand;
mod item;
mod model;
mod names;
mod output;
mod render;
mod signature;
mod types;

#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

#[allow(missing_docs)] // The text is on the re-export, where its examples can use the runtime.
#[proc_macro_attribute]
pub fn operation(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(arguments.into(), &item.into()).into()
}
