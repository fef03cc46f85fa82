//! Reads the parameters of the fn: which become the input, and what the handler passes for each.

use proc_macro2::Span;
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, FnArg, Ident, Lit, LitStr, Meta, Pat, PatType, Safety, Signature, Token, Type};

use crate::errors::Errors;
use crate::model::{Argument, DefaultValue, Field, Input, Location, Placed, Source};
use crate::types;

/// Blames everything before the parameters that an operation can't have.
pub(crate) fn qualifiers(signature: &Signature, errors: &mut Errors) {
    if signature.asyncness.is_none() {
        errors.tokens(signature.fn_token, "an operation is an `async fn`");
    }
    if let Some(token) = &signature.constness {
        errors.tokens(token, "an operation cannot be `const`");
    }
    if let Safety::Unsafe(token) = &signature.safety {
        errors.tokens(token, "an operation cannot be `unsafe`: callers can pass any input");
    }
    if let Some(abi) = &signature.abi {
        errors.tokens(abi, "an operation cannot be `extern`");
    }
    if !signature.generics.params.is_empty() {
        let message = "an operation cannot be generic: its input and output are one type each";
        errors.tokens(&signature.generics, message);
    } else if let Some(clause) = &signature.generics.where_clause {
        errors.tokens(clause, "an operation cannot have a `where` clause");
    }
    if let Some(variadic) = &signature.variadic {
        errors.tokens(variadic, "an operation cannot be variadic");
    }
}

/// The input, and the arguments of the call; a parameter with a mistake is left out.
pub(crate) fn parameters(signature: &Signature, input_name: Ident, errors: &mut Errors) -> (Input, Vec<Argument>) {
    let is_conditional =
        |attribute: &&Attribute| ["cfg", "cfg_attr"].iter().any(|name| attribute.path().is_ident(name));
    let (mut fields, mut arguments) = (Vec::new(), Vec::new());
    let mut whole: Option<(Type, Span)> = None;
    for parameter in &signature.inputs {
        let parameter = match parameter {
            FnArg::Typed(parameter) => parameter,
            FnArg::Receiver(receiver) => {
                errors.tokens(receiver, "an operation is a free fn: state is reached through a `Context`");
                continue;
            }
        };
        for cfg in parameter.attrs.iter().filter(is_conditional) {
            errors.tokens(cfg, "a parameter of an operation cannot depend on `cfg`");
        }
        let Some((ty, by_reference)) = owned(&parameter.ty, errors) else { continue };
        let marks: Vec<_> = parameter.attrs.iter().filter(|attribute| attribute.path().is_ident("input")).collect();
        let source = if types::last_segment(&ty).is_some_and(|segment| segment.ident == "Context") {
            if arguments.iter().any(|argument: &Argument| matches!(argument.source, Source::Context)) {
                errors.tokens(parameter, "there is one context; take it once");
            }
            if let Some(mark) = marks.first() {
                errors.tokens(mark, "the context is not part of the input");
            }
            Source::Context
        } else if let Some(mark) = marks.iter().find(|mark| matches!(mark.meta, Meta::Path(_))) {
            for other in parameter.attrs.iter().filter(|a| crate::item::is_ours(a) && !matches!(a.meta, Meta::Path(_)))
            {
                errors.tokens(other, "this belongs on the type: with `#[input]` the parameter is the whole input");
            }
            if whole.replace((ty, mark.pound_token.span)).is_some() {
                errors.tokens(mark, "there is one input; mark one parameter");
            }
            Source::WholeInput
        } else {
            let Some(field) = field(parameter, ty, &marks, errors) else { continue };
            let ident = field.ident.clone();
            fields.push((field, parameter));
            Source::Field(ident)
        };
        arguments.push(Argument { source, by_reference });
    }
    match whole {
        Some((ty, _)) => {
            for (_, parameter) in fields {
                errors.tokens(
                    parameter,
                    "the parameter marked `#[input]` is the whole input; make this one of its fields",
                );
            }
            (Input::Whole(ty), arguments)
        }
        None => (Input::Fields(input_name, fields.into_iter().map(|(field, _)| field).collect()), arguments),
    }
}

/// The type that the input owns for a parameter of this type, and whether it is lent to the fn.
fn owned(ty: &Type, errors: &mut Errors) -> Option<(Type, bool)> {
    let (owned, by_reference) = match types::peel(ty) {
        Type::Reference(reference) => {
            if let Some(token) = &reference.mutability {
                errors.tokens(token, "an operation owns its input: take the value");
                return None;
            }
            if let Some(lifetime) = &reference.lifetime {
                errors.tokens(lifetime, "the input lives as long as the call: leave the lifetime out");
                return None;
            }
            let owned = match types::peel(&reference.elem) {
                Type::Slice(slice) => {
                    let item = &slice.elem;
                    syn::parse_quote!(::std::vec::Vec<#item>)
                }
                Type::Path(path) if path.path.is_ident("str") => syn::parse_quote!(::std::string::String),
                elem => elem.clone(),
            };
            (owned, true)
        }
        ty => (ty.clone(), false),
    };
    if let Some(token) = types::unnamed(&owned) {
        errors.tokens(token, "an operation cannot be generic: name the type");
        return None;
    }
    if let Some(token) = types::borrowed(&owned) {
        errors.tokens(token, "the input owns its data: take an owned type here, such as `Option<String>`");
        return None;
    }
    Some((owned, by_reference))
}

fn field(parameter: &PatType, ty: Type, marks: &[&Attribute], errors: &mut Errors) -> Option<Field> {
    let ident = match &*parameter.pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => pat.ident.clone(),
        pat => {
            let message = "a parameter of an operation needs a name, which becomes the name of a property";
            // As extractors of servers are written.
            let hint = if matches!(pat, Pat::TupleStruct(_)) { "; state is reached through a `Context`" } else { "" };
            errors.tokens(pat, format!("{message}{hint}"));
            return None;
        }
    };
    let (mut default, mut place) = (None, None);
    for mark in marks {
        errors.take(says(mark, &mut default, &mut place));
    }
    let is_forwarded = |a: &&Attribute| crate::item::is_ours(a) && !a.path().is_ident("input");
    let attributes = parameter.attrs.iter().filter(is_forwarded).cloned().collect();
    Some(Field { ident, ty, attributes, default, place })
}

/// What stands in `#[input(..)]`: a default, with its value or without, and a place in an HTTP request.
fn says(mark: &Attribute, default: &mut Option<DefaultValue>, place: &mut Option<Placed>) -> syn::Result<()> {
    mark.parse_nested_meta(|meta| {
        if meta.path.is_ident("default") {
            let own = if meta.input.peek(Token![=]) {
                DefaultValue::Expr(meta.value()?.parse()?)
            } else {
                DefaultValue::OfType
            };
            if default.replace(own).is_some() {
                return Err(meta.error("a parameter has one default"));
            }
            return Ok(());
        }
        let Some((word, location)) = meta.path.get_ident().and_then(|word| Some((word, Location::of(word)?))) else {
            let known = "expected `default = ..`, `query`, `header = \"..\"` or `cookie`";
            return Err(meta.error(format!("{known}; for the rest there is `#[serde(..)]`")));
        };
        let span = word.span();
        let name = match meta.input.peek(Token![=]) {
            true => Some(meta.value()?.parse::<LitStr>()?),
            false if location == Location::Header => {
                return Err(meta.error("a header needs a name: `header = \"If-None-Match\"`"));
            }
            false => None,
        };
        let name = name.map(|name| (name.value(), name.span()));
        if place.replace(Placed { location, name, span }).is_some() {
            return Err(meta.error("a parameter has one place"));
        }
        Ok(())
    })
}

/// The string literal that an expression is, without parentheses and the invisible groups that `macro_rules!` puts around
/// a fragment.
pub(crate) fn string_literal(mut expr: &Expr) -> Option<&LitStr> {
    loop {
        match expr {
            Expr::Group(group) => expr = &group.expr,
            Expr::Paren(paren) => expr = &paren.expr,
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => return Some(text),
            _ => return None,
        }
    }
}

/// True if the operation's type of this name would hide something that the code beside it names.
///
/// That is a constructor of the prelude, which would mean the type in every pattern of the module, or a type or a trait of
/// the signature.
pub(crate) fn hides(ident: &Ident, signature: &Signature) -> bool {
    const CONSTRUCTORS: [&str; 4] = ["Ok", "Err", "Some", "None"];
    CONSTRUCTORS.iter().any(|known| ident == known)
        || takes(signature, ident)
        || types::begins_with(signature.output.to_token_stream(), ident)
}

/// True if the type of a parameter names this.
pub(crate) fn takes(signature: &Signature, ident: &Ident) -> bool {
    signature.inputs.iter().any(|parameter| match parameter {
        FnArg::Typed(parameter) => types::begins_with(parameter.ty.to_token_stream(), ident),
        FnArg::Receiver(_) => false,
    })
}

/// The names that a signature declares for itself, which mean nothing outside of it.
pub(crate) fn generic_names(signature: &Signature) -> Vec<Ident> {
    let parameters: &Punctuated<_, _> = &signature.generics.params;
    let name = |parameter: &syn::GenericParam| match parameter {
        syn::GenericParam::Lifetime(lifetime) => lifetime.lifetime.ident.clone(),
        syn::GenericParam::Type(ty) => ty.ident.clone(),
        syn::GenericParam::Const(constant) => constant.ident.clone(),
    };
    parameters.iter().map(name).collect()
}
