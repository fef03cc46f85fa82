//! Prints a const for each error code that an operation declares, so that a slip in one does not compile.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;

use crate::model::{ErrorCode, Operation};
use crate::names;

/// The consts. The spec names them, so that they are used if the operation is: `#[allow(dead_code)]` would keep the lint from
/// telling that an operation is never registered.
pub(crate) fn render(operation: &Operation) -> Option<TokenStream> {
    let Operation { ident, visibility, arguments, .. } = operation;
    let consts = arguments.errors.iter().zip(names(operation)).filter_map(|(ErrorCode { code, .. }, name)| {
        let (name, doc) = (name?, format!(" The error code `{code}`."));
        Some(quote! {
            #[doc = #doc]
            #visibility const #name: &'static ::core::primitive::str = #code;
        })
    });
    let consts: Vec<_> = consts.collect();
    (!consts.is_empty()).then(|| {
        quote! {
            impl #ident {
                #(#consts)*
            }
        }
    })
}

/// The definitions of the errors.
pub(crate) fn definitions(operation: &Operation) -> impl Iterator<Item = TokenStream> {
    operation.arguments.errors.iter().zip(names(operation)).map(|(ErrorCode { code, status, .. }, name)| {
        let code = name.map_or_else(|| quote!(#code), |name| quote!(Self::#name));
        let status = status.map(|status| quote!(.with_http_status(#status)));
        quote!(__ops::ErrorDefinition::new(#code)#status)
    })
}

/// The name of each code's const, if it has one.
fn names(operation: &Operation) -> Vec<Option<Ident>> {
    let name = |error: &ErrorCode| names::upper_snake(&error.code, error.span).filter(|name| name != "SPEC");
    let names: Vec<Option<Ident>> = operation.arguments.errors.iter().map(name).collect();
    // A name for two codes would stand for either.
    let is_one = |name: &Ident| names.iter().flatten().filter(|other| *other == name).count() == 1;
    names.iter().map(|name| name.clone().filter(is_one)).collect()
}
