//! Prints a const for each error code that an operation declares, so that a slip in one does not compile.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;

use crate::model::{ErrorCode, Operation};
use crate::names;

pub(crate) fn render(operation: &Operation) -> Option<TokenStream> {
    let Operation { ident, visibility, arguments, .. } = operation;
    let name = |error: &ErrorCode| names::upper_snake(&error.code, error.span).filter(|name| name != "SPEC");
    let names: Vec<Option<Ident>> = arguments.errors.iter().map(name).collect();
    let consts = arguments.errors.iter().zip(&names).filter_map(|(ErrorCode { code, .. }, name)| {
        // A name for two codes would stand for either.
        let name = name.as_ref().filter(|name| names.iter().flatten().filter(|other| other == name).count() == 1)?;
        let doc = format!(" The error code `{code}`.");
        Some(quote! {
            #[doc = #doc]
            #visibility const #name: &'static ::core::primitive::str = #code;
        })
    });
    let consts: Vec<_> = consts.collect();
    (!consts.is_empty()).then(|| {
        quote! {
            #[allow(dead_code)]
            impl #ident {
                #(#consts)*
            }
        }
    })
}
