//! Parses the item under the attribute: an async fn, whose body stays a token stream, or a unit struct.
//!
//! A body that is not parsed may be half typed: the fn is emitted all the same, and editors go on working in it.

use proc_macro2::TokenStream;
use quote::{ToTokens, TokenStreamExt};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, FnArg, Ident, Signature, Token, Visibility};

pub(crate) enum Item {
    Function(Box<Function>),
    Unit(Unit),
}

pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) signature: Signature,
    body: TokenStream,
}

pub(crate) struct Unit {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    struct_token: Token![struct],
    pub(crate) ident: Ident,
    /// What stands where a unit struct has its `;`.
    pub(crate) rest: TokenStream,
}

impl Parse for Item {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        if input.peek(Token![struct]) {
            let (struct_token, ident, rest) = (input.parse()?, input.parse()?, input.parse()?);
            return Ok(Self::Unit(Unit { attributes, visibility, struct_token, ident, rest }));
        }
        let fork = input.fork();
        if fork.parse::<Signature>().is_err() && !begins_fn(input) {
            return Err(
                input.error("`#[operation]` is for an async fn, or for a unit struct with `input` and `output`")
            );
        }
        let (signature, body) = (input.parse()?, input.parse()?);
        Ok(Self::Function(Box::new(Function { attributes, visibility, signature, body })))
    }
}

fn begins_fn(input: ParseStream<'_>) -> bool {
    input.peek(Token![fn])
        || input.peek(Token![async])
        || input.peek(Token![const])
        || input.peek(Token![unsafe])
        || input.peek(Token![extern])
}

/// Whether the attribute on a parameter speaks to us, or to the field that the parameter becomes.
pub(crate) fn is_ours(attribute: &Attribute) -> bool {
    ["input", "serde", "schemars", "doc"].iter().any(|name| attribute.path().is_ident(name))
}

/// The fn as it was written, without the attributes on its parameters that rustc would refuse there.
impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let mut signature = self.signature.clone();
        // What it would add has been refused.
        let stays = |attribute: &Attribute| !is_ours(attribute) && !attribute.path().is_ident("cfg_attr");
        for parameter in &mut signature.inputs {
            match parameter {
                FnArg::Typed(typed) => typed.attrs.retain(stays),
                FnArg::Receiver(receiver) => receiver.attrs.retain(stays),
            }
        }
        tokens.append_all(&self.attributes);
        self.visibility.to_tokens(tokens);
        signature.to_tokens(tokens);
        self.body.to_tokens(tokens);
    }
}

impl ToTokens for Unit {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.append_all(&self.attributes);
        self.visibility.to_tokens(tokens);
        self.struct_token.to_tokens(tokens);
        self.ident.to_tokens(tokens);
        self.rest.to_tokens(tokens);
    }
}

impl ToTokens for Item {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Function(function) => function.to_tokens(tokens),
            Self::Unit(unit) => unit.to_tokens(tokens),
        }
    }
}
