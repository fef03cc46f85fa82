//! Prints how callers make an input: `new` with what is required, and conversions from one or two such values, as the inputs
//! of generated operations have them.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{Attribute, ExprPath, Ident, LitStr, Token, Type, Visibility};

use crate::model::{DefaultValue, Field};
use crate::{names, types};

/// Clippy's limit for parameters.
const MANY: usize = 7;

pub(super) fn render(name: &Ident, visibility: &Visibility, fields: &[Field]) -> TokenStream {
    let values: Vec<_> = fields.iter().map(Value::of).collect();
    let inits = fields.iter().zip(&values).map(|(field, value)| init(field, value));
    let made = quote!(Self { #(#inits),* });
    let is_required = |(_, value): &(&Field, &Value)| matches!(value, Value::Required);
    let required: Vec<&Field> = fields.iter().zip(&values).filter(is_required).map(|(field, _)| field).collect();
    if required.is_empty() {
        return optional(name, &made);
    }
    let parameters = required.iter().map(|Field { ident, ty, .. }| match is_text(ty) {
        true => quote!(#ident: impl ::core::convert::Into<#ty>),
        false => quote!(#ident: #ty),
    });
    let all = required.len() == fields.len();
    let doc =
        if all { " Sets every property." } else { " Sets what is required, and leaves the rest to its defaults." };
    let many = (required.len() > MANY).then(|| quote!(#[allow(clippy::too_many_arguments)]));
    let conversion = conversion(name, &required);
    quote! {
        impl #name {
            #[doc = #doc]
            #[must_use]
            #[allow(dead_code)]
            #many
            #visibility fn new(#(#parameters),*) -> Self {
                #made
            }
        }
        #conversion
    }
}

/// What an input has of which nothing is required.
fn optional(name: &Ident, made: &TokenStream) -> TokenStream {
    quote! {
        impl ::core::default::Default for #name {
            fn default() -> Self {
                #made
            }
        }
        impl ::core::convert::From<()> for #name {
            fn from((): ()) -> Self {
                ::core::default::Default::default()
            }
        }
    }
}

/// The conversion from the one value that is required, or from the two.
fn conversion(name: &Ident, required: &[&Field]) -> Option<TokenStream> {
    let generic = |index: usize| format_ident!("__{}", ["A", "B"].get(index).copied().unwrap_or("T"));
    let types = required.iter().enumerate().map(|(index, Field { ty, .. })| match is_text(ty) {
        true => generic(index).to_token_stream(),
        false => ty.to_token_stream(),
    });
    let types: Vec<_> = types.collect();
    let texts =
        required.iter().enumerate().filter(|(_, Field { ty, .. })| is_text(ty)).map(|(index, Field { ty, .. })| {
            let generic = generic(index);
            quote!(#generic: ::core::convert::Into<#ty>)
        });
    let texts: Vec<_> = texts.collect();
    let generics = (!texts.is_empty()).then(|| quote!(<#(#texts),*>));
    let (from, made) = match &*types {
        [one] => (quote!(#one), quote!(value)),
        [_, _] => (quote!((#(#types),*)), quote!(value.0, value.1)),
        _ => return None,
    };
    Some(quote! {
        impl #generics ::core::convert::From<#from> for #name {
            fn from(value: #from) -> Self {
                Self::new(#made)
            }
        }
    })
}

/// What a property is if the caller says nothing of it.
enum Value {
    Required,
    /// `Default::default()`.
    OfType,
    /// What a fn of the input's gives.
    OfOurs,
    /// What a fn gives that `#[serde(default = "..")]` names.
    Of(ExprPath),
}

impl Value {
    // By the names of types, as serde's derive does.
    fn of(field: &Field) -> Self {
        match &field.default {
            Some(DefaultValue::Expr(_)) => Self::OfOurs,
            Some(DefaultValue::OfType) => Self::OfType,
            None => by_serde(&field.attributes).unwrap_or_else(|| match types::arguments_of(&field.ty, "Option") {
                Some(_) => Self::OfType,
                None => Self::Required,
            }),
        }
    }
}

/// What `#[serde(..)]` says of a property that is left out.
fn by_serde(attributes: &[Attribute]) -> Option<Value> {
    let mut found = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        // What is wrong, serde tells.
        let _ = attribute.parse_nested_meta(|meta| {
            let value = meta.input.peek(Token![=]).then(|| meta.value()?.parse::<LitStr>()).transpose()?;
            if ["default", "skip", "skip_deserializing"].iter().any(|name| meta.path.is_ident(name)) {
                match value.map(|path| path.parse::<ExprPath>()) {
                    Some(Ok(path)) => found = Some(Value::Of(path)),
                    Some(Err(_)) => {}
                    None => drop(found.get_or_insert(Value::OfType)),
                }
            } else if !meta.input.is_empty() && !meta.input.peek(Token![,]) {
                // Parentheses, as of `bound(..)`.
                meta.input.parse::<proc_macro2::TokenTree>()?;
            }
            Ok(())
        });
    }
    found
}

fn init(Field { ident, ty, .. }: &Field, value: &Value) -> TokenStream {
    match value {
        Value::Required if is_text(ty) => quote!(#ident: ::core::convert::Into::into(#ident)),
        Value::Required => quote!(#ident),
        Value::OfType => quote!(#ident: ::core::default::Default::default()),
        Value::OfOurs => {
            let function = names::default_fn(ident);
            quote!(#ident: Self::#function())
        }
        Value::Of(path) => quote!(#ident: #path()),
    }
}

/// True for what may be given as any text.
fn is_text(ty: &Type) -> bool {
    types::last_segment(ty).is_some_and(|last| last.ident == "String")
}
