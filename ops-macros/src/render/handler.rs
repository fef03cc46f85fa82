//! Prints the handler: a closure that calls the fn and turns what it gives into a reply.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Ident;

use crate::model::{Argument, Form, Handler, Operation, Source, Stream};

pub(crate) fn render(operation: &Operation, handler: &Handler) -> TokenStream {
    // Located at the fn's name, so that a future which is not `Send` is reported there, but not a name of the user's:
    // a fn called `input` is not shadowed by the closure's parameter.
    let at = Span::mixed_site().located_at(handler.name.span());
    let input = used(handler, at, |source| !matches!(source, Source::Context), "input");
    let is_context = |source: &Source| matches!(source, Source::Context);
    let takes_context = handler.arguments.iter().any(|argument| is_context(&argument.source));
    let context = used(handler, at, is_context, "context");
    let call = call(operation, handler, at);
    let state = &operation.arguments.state;
    match operation.output.stream {
        None => {
            let reply = reply(operation, at, &call);
            let made = match takes_context {
                true => quote_spanned!(at=> call::<Self, _, _>(|#input, #context| async move { #reply })),
                false => quote_spanned!(at=> function::<Self, _, _>(|#input| async move { #reply })),
            };
            quote_spanned! {at=>
                __ops::Registration::#made
                    #(.requires::<#state>())*
            }
        }
        Some(stream) => {
            let items = match stream {
                Stream::Plain => call,
                Stream::Fallible(error) => quote_spanned!(at.located_at(error)=> __ops::opened(#call)?),
            };
            let item = Ident::new("item", at.located_at(operation.output.form_span));
            let reply = reply(operation, at, &item);
            quote_spanned! {at=>
                __ops::Registration::subscription::<Self, _, _, _>(|#input, #context| {
                    __ops::generate(move |sink| async move { sink.send_all(#items, |#item| #reply).await })
                })
                #(.requires::<#state>())*
            }
        }
    }
}

/// The closure's parameter, or `_` if the fn has no use for it.
fn used(handler: &Handler, at: Span, is_it: fn(&Source) -> bool, name: &str) -> TokenStream {
    if handler.arguments.iter().any(|argument| is_it(&argument.source)) {
        Ident::new(name, at).to_token_stream()
    } else {
        quote!(_)
    }
}

/// `add(input.a, &context).await`.
///
/// Located at the error type, so that one without a conversion is reported there.
fn call(operation: &Operation, handler: &Handler, at: Span) -> TokenStream {
    let location = match operation.output.stream {
        Some(Stream::Fallible(error)) => error,
        _ => operation.output.form_span,
    };
    let mut name = handler.name.clone();
    name.set_span(name.span().located_at(location));
    let (input, context) = (Ident::new("input", at), Ident::new("context", at));
    let arguments = handler.arguments.iter().map(|Argument { source, by_reference }| {
        let reference = by_reference.then(|| quote!(&));
        let value = match source {
            Source::Context => quote!(#context),
            Source::Field(field) => quote!(#input.#field),
            Source::WholeInput => quote!(#input),
        };
        quote!(#reference #value)
    });
    quote_spanned!(at.located_at(location)=> #name(#(#arguments),*).await)
}

/// The call of the helper that turns one result into a reply.
fn reply(operation: &Operation, at: Span, result: &impl ToTokens) -> TokenStream {
    let at = at.located_at(operation.output.form_span);
    match operation.output.form {
        Form::Value => quote_spanned!(at=> __ops::value(#result)),
        Form::Result => quote_spanned!(at=> __ops::result(#result)),
        Form::Envelope => quote_spanned!(at=> __ops::envelope(#result)),
        Form::ResultEnvelope => quote_spanned!(at=> __ops::result_envelope(#result)),
    }
}
