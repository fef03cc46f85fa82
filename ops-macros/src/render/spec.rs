//! Prints the spec, as calls of its `const` builder.

use proc_macro2::TokenStream;
use quote::{ToTokens, TokenStreamExt, format_ident, quote};
use syn::LitStr;

use super::codes;
use crate::arguments::Http;
use crate::arguments::retry::{BACKOFF, MAX_BACKOFF};
use crate::description::description;
use crate::model::{Binding, Body, Kind, Operation, Resource, Retry};

pub(crate) fn render(operation: &Operation) -> TokenStream {
    let arguments = &operation.arguments;
    let kind = match operation.kind {
        Kind::Query => quote!(query),
        Kind::Mutation => quote!(mutation),
        Kind::Subscription => quote!(subscription),
    };
    let namespace = arguments.namespace.as_ref().map(LitStr::value).unwrap_or_default();
    let name = arguments.name.as_ref().map_or_else(|| operation.default_name.clone(), LitStr::value);
    let id = format!("{namespace}.{name}");
    let mut spec = quote!(__ops::OperationSpec::#kind(#id));
    if let Some(version) = &arguments.version {
        spec.append_all(quote!(.with_version(#version)));
    }
    if let Some(title) = &arguments.title {
        spec.append_all(quote!(.with_title(#title)));
    }
    if let Some(description) = description(&operation.docs) {
        spec.append_all(quote!(.with_description(#description)));
    }
    if !arguments.tags.is_empty() {
        let tags = texts(&arguments.tags);
        spec.append_all(quote!(.with_tags(#tags)));
    }
    let (input, output) = (operation.input_type(), &operation.output.ty);
    spec.append_all(quote! {
        .with_input(__ops::input_schema::<#input>())
        .with_output(__ops::output_schema::<#output>())
    });
    if !arguments.errors.is_empty() {
        let errors = codes::definitions(operation);
        spec.append_all(quote!(.with_errors(const { &[#(#errors),*] })));
    }
    spec.append_all(access(operation));
    if let Some(timeout) = arguments.timeout {
        spec.append_all(quote!(.with_timeout(::core::time::Duration::from_millis(#timeout))));
    }
    if let Some(retry) = &arguments.retry {
        spec.append_all(quote!(.with_retry(const { &#retry })));
    }
    spec.append_all(operation.binding.as_ref().and_then(|binding| http(operation, binding)));
    if operation.deprecated {
        spec.append_all(quote!(.with_deprecated()));
    }
    spec
}

/// The HTTP binding, whose content types the types themselves decide.
fn http(operation: &Operation, binding: &Binding) -> Option<TokenStream> {
    let Http { method, path, .. } = operation.arguments.http.as_ref()?;
    let mut http = quote!(__ops::HttpBinding::new(#method, #path));
    if !binding.parameters.is_empty() {
        let parameters = binding.parameters.iter().map(|(location, name, property)| {
            let location = format_ident!("{}", location.word());
            let property = (name != property).then(|| quote!(.with_property(#property)));
            quote!(__ops::HttpParameter::#location(#name)#property)
        });
        http.append_all(quote!(.with_parameters(const { &[#(#parameters),*] })));
    }
    if let Some(body) = &binding.body {
        let body = match body {
            Body::Property(name, ty) => {
                let property = (name != "body").then(|| quote!(.with_property(#name)));
                quote!(__ops::HttpBody::new(__ops::Sent::<#ty>::TYPE)#property)
            }
            Body::Rest(types) => {
                quote!(__ops::HttpBody::new(__ops::type_of_rest(&[#(__ops::Sent::<#types>::IS_BYTES),*])).with_rest())
            }
        };
        http.append_all(quote!(.with_bodies(const { &[#body] })));
    }
    let output = &operation.output.ty;
    let responses = match (operation.kind, operation.arguments.status) {
        (Kind::Subscription, _) => quote!(__ops::ITEMS),
        (_, None) => quote!(__ops::Sent::<#output>::RESPONSES),
        (_, Some(status)) => quote!(const { &[__ops::success(#status, __ops::Sent::<#output>::GIVES)] }),
    };
    Some(quote!(.with_http(#http.with_responses(#responses))))
}

fn access(operation: &Operation) -> Option<TokenStream> {
    let arguments = &operation.arguments;
    let mut rules = TokenStream::new();
    if !arguments.scopes.is_empty() {
        let scopes = texts(&arguments.scopes);
        rules.append_all(quote!(.with_scopes(#scopes)));
    }
    if !arguments.scopes_any.is_empty() {
        let scopes = texts(&arguments.scopes_any);
        rules.append_all(quote!(.with_scopes_any(#scopes)));
    }
    if let Some(Resource { kind, action }) = &arguments.resource {
        rules.append_all(quote!(.with_resource(#kind, #action)));
    }
    (!rules.is_empty()).then(|| quote!(.with_access(__ops::AccessControl::NONE #rules)))
}

fn texts(texts: &[LitStr]) -> TokenStream {
    quote!(&[#(#texts),*])
}

impl ToTokens for Retry {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { attempts, backoff, max_backoff, factor, deadline, errors } = self;
        let duration = |milliseconds: u64| quote!(::core::time::Duration::from_millis(#milliseconds));
        tokens.append_all(quote!(__ops::RetryPolicy::new(#attempts)));
        if backoff.is_some() || max_backoff.is_some() {
            let first = duration(backoff.unwrap_or(BACKOFF));
            let longest = duration(max_backoff.unwrap_or(MAX_BACKOFF));
            tokens.append_all(quote!(.with_backoff(#first, #longest)));
        }
        if let Some(factor) = factor {
            tokens.append_all(quote!(.with_factor(#factor)));
        }
        if !errors.is_empty() {
            let codes = errors.iter().map(|error| &error.code);
            tokens.append_all(quote!(.with_codes(&[#(#codes),*])));
        }
        if let Some(deadline) = deadline {
            let deadline = duration(*deadline);
            tokens.append_all(quote!(.with_deadline(#deadline)));
        }
    }
}
