//! Reads the return type of the fn: what one result is, and how it is given.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{GenericArgument, Path, PathArguments, ReturnType, Type, TypeParamBound, parse_quote};

use crate::errors::Errors;
use crate::model::{Form, Output, Stream};
use crate::types;

impl Output {
    /// The output of a fn that gives nothing, and of one whose return type has a mistake.
    pub(crate) fn unit(span: Span) -> Self {
        Self { ty: parse_quote!(()), form: Form::Value, stream: None, span }
    }

    pub(crate) fn value(ty: Type) -> Self {
        Self { span: ty.span(), ty, form: Form::Value, stream: None }
    }

    pub(crate) fn parse(return_type: &ReturnType, name: Span, errors: &mut Errors) -> Self {
        let ReturnType::Type(_, ty) = return_type else { return Self::unit(name) };
        let span = ty.span();
        let ok = result(ty);
        let (item, stream) = match ok.map_or_else(|| stream_item(ty), stream_item) {
            Some(Ok(item)) => (item, Some(if ok.is_some() { Stream::Fallible } else { Stream::Plain })),
            Some(Err(error)) => {
                errors.take::<()>(Err(error));
                return Self { stream: Some(Stream::Plain), ..Self::unit(span) };
            }
            None => (&**ty, None),
        };
        let (ty, form) = match (result(item), envelope(item)) {
            (Some(ok), _) => match envelope(ok) {
                Some(data) => (data, Form::ResultEnvelope),
                None => (ok, Form::Result),
            },
            (None, Some(data)) => (data, Form::Envelope),
            (None, None) => (item, Form::Value),
        };
        if let Some(token) = types::unnamed(ty) {
            errors.tokens(token, "name the type: an operation gives one type that callers can name");
            return Self { stream, ..Self::unit(span) };
        }
        if let Some(token) = types::reference(ty) {
            errors.tokens(token, "an operation gives owned data, such as a `String`");
            return Self { stream, ..Self::unit(span) };
        }
        Self { ty: ty.clone(), form, stream, span }
    }
}

/// The `T` of `Result<T, E>`, or of an alias that is called `Result` and has the error built in.
fn result(ty: &Type) -> Option<&Type> {
    match types::arguments_of(ty, "Result")?.as_slice() {
        [ok] | [ok, _] => Some(ok),
        _ => None,
    }
}

fn envelope(ty: &Type) -> Option<&Type> {
    match types::arguments_of(ty, "ResponseEnvelope")?.as_slice() {
        [data] => Some(data),
        _ => None,
    }
}

/// The `I` of `impl Stream<Item = I>`, if it is a stream.
fn stream_item(ty: &Type) -> Option<syn::Result<&Type>> {
    let Type::ImplTrait(stream) = types::peel(ty) else { return None };
    let bound = stream.bounds.iter().find_map(|bound| match bound {
        TypeParamBound::Trait(bound) => bound.path.segments.last().filter(|last| last.ident == "Stream").map(|_| bound),
        _ => None,
    })?;
    Some(
        item_of(&bound.path)
            .ok_or_else(|| syn::Error::new_spanned(&bound.path, "say what the stream gives: `impl Stream<Item = ..>`")),
    )
}

fn item_of(stream: &Path) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &stream.segments.last()?.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::AssocType(item) if item.ident == "Item" => Some(&item.ty),
        _ => None,
    })
}
