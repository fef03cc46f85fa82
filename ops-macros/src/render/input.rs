//! Prints the type that the parameters become.

use std::collections::BTreeSet;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, Ident};

use super::construct;
use crate::model::{DefaultValue, Field, Input, Operation};
use crate::{names, signature, types};

pub(crate) fn render(operation: &Operation) -> Option<TokenStream> {
    let Input::Fields(name, fields) = &operation.input else { return None };
    let visibility = &operation.visibility;
    let krate = operation.krate();
    let private = quote!(#krate::__private);
    let alias = alias(operation, name);
    let import = alias.as_ref().map(|alias| quote!(use #private as #alias;));
    let named = alias.map_or_else(|| private.clone(), |alias| quote!(#alias));
    let (serde, schemars) = (path_text(&quote!(#named::serde)), path_text(&quote!(#named::schemars)));
    let doc = format!("The input of [`{}`].", operation.ident);
    let properties = fields.iter().map(|field| {
        let Field { ident, ty, attributes, default, .. } = field;
        let default = default.as_ref().map(|default| match default {
            DefaultValue::OfType => quote!(#[serde(default)]),
            DefaultValue::Expr(_) => {
                let path = format!("{name}::{}", names::default_fn(ident));
                quote!(#[serde(default = #path)])
            }
        });
        let optional = optional(field, &named);
        quote!(#(#attributes)* #default #optional #visibility #ident: #ty)
    });
    let defaults = defaults(name, fields);
    let checks = checks(fields, &private);
    let construct = construct::render(name, visibility, fields);
    // The empty description keeps the doc comment, which is for readers of Rust, out of the schema.
    Some(quote! {
        #checks
        #import
        #[doc = #doc]
        #[derive(
            ::core::fmt::Debug,
            ::core::clone::Clone,
            #private::serde::Serialize,
            #private::serde::Deserialize,
            #private::schemars::JsonSchema,
        )]
        #[serde(crate = #serde)]
        #[schemars(crate = #schemars, description = "")]
        #[allow(missing_docs)]
        #visibility struct #name {
            #(#properties,)*
        }
        #defaults
        #construct
    })
}

/// How an optional parameter is written and read: `None` is left out, and for an `Option<Option<_>>`, `null` is `Some(None)`.
///
/// A parameter with a declared default is written even if it is `None`, because most defaults would replace what is left out.
/// That of an `Option<Option<_>>` may be the type's own, which is `None`; with another, it does not tell absence from `null`.
fn optional(field: &Field, named: &TokenStream) -> Option<TokenStream> {
    let inner = types::optional(&field.ty)?;
    if field.has_own_form() || field.has_serde_default_fn() || matches!(field.default, Some(DefaultValue::Expr(_))) {
        return None;
    }
    let has_default = field.default.is_some() || field.has_serde("default");
    let skip = quote!(#[serde(skip_serializing_if = "::core::option::Option::is_none")]);
    if types::optional(inner).is_none() {
        return (!has_default).then_some(skip);
    }
    // With a function that reads it, serde takes an absent property for an error unless there is a default.
    let default = (!has_default).then(|| quote!(#[serde(default)]));
    let present = path_text(&quote!(#named::present));
    Some(quote!(#default #skip #[serde(deserialize_with = #present)]))
}

/// Asks of each type that was not made for it whether it can be data, ahead of the derives, whose errors are many and
/// partly point at the attribute.
fn checks(fields: &[Field], private: &TokenStream) -> TokenStream {
    let mut seen = BTreeSet::new();
    let types = fields
        .iter()
        .map(|field| &field.ty)
        .filter(|ty| !types::is_plain(ty) && seen.insert(ty.to_token_stream().to_string()));
    quote!(#(const _: () = #private::is_parameter::<#types>();)*)
}

/// The fns that give the defaults: serde takes no expression, but the path of a fn.
fn defaults(name: &Ident, fields: &[Field]) -> Option<TokenStream> {
    let functions: Vec<_> = fields
        .iter()
        .filter_map(|Field { ident, ty, default, .. }| {
            let Some(DefaultValue::Expr(expr)) = default else { return None };
            let function = names::default_fn(ident);
            let value = converted(expr);
            Some(quote! {
                fn #function() -> #ty {
                    #value
                }
            })
        })
        .collect();
    (!functions.is_empty()).then(|| quote!(impl #name { #(#functions)* }))
}

/// A string literal becomes what the property is, mostly a `String`; anything else is already.
fn converted(expr: &Expr) -> TokenStream {
    match signature::string_literal(expr) {
        Some(text) => quote_spanned!(text.span()=> ::core::convert::From::from(#text)),
        None => quote!(#expr),
    }
}

/// The name by which attributes reach a runtime whose path begins with the `$crate` of a `macro_rules!`: they take a path as
/// text, in which that means nothing.
fn alias(operation: &Operation, input: &Ident) -> Option<Ident> {
    let first = operation.arguments.krate.as_ref()?.segments.first()?;
    (first.ident == "$crate").then(|| Ident::new(&format!("__{input}"), Span::call_site()))
}

/// A path as serde and schemars want it: in a string, without spaces.
fn path_text(path: &TokenStream) -> String {
    path.to_string().split_whitespace().collect()
}
