//! Prints an operation: its input type, the type that names it, and what both mean to the runtime.

mod codes;
mod construct;
mod handler;
mod input;
mod spec;

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use crate::description::untested;
use crate::model::{Kind, Operation};
use crate::types;

/// Everything beside the user's own item.
pub(crate) fn operation(operation: &Operation) -> TokenStream {
    let Operation { ident, .. } = operation;
    let marker = match operation.kind {
        Kind::Query | Kind::Mutation => quote!(Call),
        Kind::Subscription => quote!(Subscribe),
    };
    let registration = operation.handler.as_ref().map(|handler| {
        let body = handler::render(operation, handler);
        quote! {
            impl __ops::Handled for #ident {
                fn registration() -> __ops::Registration {
                    #body
                }
            }
            __ops::submit!(#ident);
        }
    });
    let implementation = implementation(operation, &spec::render(operation));
    let (no_result, no_data) = (no_result(operation), no_data(operation));
    let codes = codes::render(operation);
    frame(
        operation,
        &quote! {
            #codes
            #implementation
            impl __ops::#marker for #ident {}
            #no_result
            #no_data
            #registration
        },
    )
}

/// Has the compiler find out that the data are no `Result`, by any name: its errors would be data.
fn no_result(operation: &Operation) -> Option<TokenStream> {
    let ty = &operation.output.ty;
    let at = Span::call_site().located_at(ty.span());
    types::may_be_alias(types::optional(ty).unwrap_or(ty))
        .then(|| quote_spanned!(at=> const _: () = __ops::is_data(__ops::Sent::<#ty>::IS_RESULT);))
}

/// Has the compiler find out that an operation at `HEAD` gives nothing, by any name: a response to that method has no body.
fn no_data(operation: &Operation) -> Option<TokenStream> {
    let ty = &operation.output.ty;
    let at = Span::call_site().located_at(ty.span());
    operation
        .is_head()
        .then(|| quote_spanned!(at=> const _: () = __ops::gives_nothing(__ops::Sent::<#ty>::GIVES.is_none());))
}

/// What stands for an operation with a mistake, so that code which uses it gets no errors of its own.
pub(crate) fn fallback(operation: &Operation) -> TokenStream {
    let Operation { ident, .. } = operation;
    let implementation = implementation(operation, &quote!(__ops::OperationSpec::mutation("invalid.operation")));
    let registration = operation.handler.is_some().then(|| {
        quote! {
            impl __ops::Handled for #ident {
                fn registration() -> __ops::Registration {
                    ::core::unreachable!()
                }
            }
        }
    });
    let codes = codes::render(operation).map(|codes| quote!(#[allow(dead_code)] #codes));
    frame(
        operation,
        &quote! {
            #codes
            #implementation
            impl __ops::Call for #ident {}
            impl __ops::Subscribe for #ident {}
            #registration
        },
    )
}

/// The types, and the impls in a block of their own, in which the runtime has a short name that nobody else sees.
fn frame(operation: &Operation, impls: &TokenStream) -> TokenStream {
    let Operation { ident, visibility, docs, .. } = operation;
    let definition = operation.handler.is_some().then(|| {
        let docs = untested(docs);
        quote! {
            #(#docs)*
            #visibility struct #ident;
        }
    });
    let input = input::render(operation);
    let allow = operation.deprecated.then(|| quote!(#[allow(deprecated)]));
    let krate = operation.krate();
    // Read by the consts of `Sent`, unless the types have consts of their own.
    let sent = (operation.binding.is_some() || no_result(operation).is_some()).then(|| {
        quote!(
            #[allow(unused_imports)]
            use __ops::SentAsJson as _;
        )
    });
    quote! {
        #input
        #definition
        #allow
        const _: () = {
            use #krate::__private as __ops;
            #sent
            #impls
        };
    }
}

fn implementation(operation: &Operation, spec: &TokenStream) -> TokenStream {
    let (ident, output) = (&operation.ident, &operation.output.ty);
    let input = operation.input_type();
    quote! {
        impl __ops::Operation for #ident {
            type Input = #input;
            type Output = #output;
            const SPEC: &'static __ops::OperationSpec = &#spec;
        }
    }
}
