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
        Self { ty: parse_quote!(()), form: Form::Value, form_span: span, stream: None, span }
    }

    pub(crate) fn value(ty: Type) -> Self {
        let span = ty.span();
        Self { ty, ..Self::unit(span) }
    }

    pub(crate) fn parse(return_type: &ReturnType, name: Span, errors: &mut Errors) -> Self {
        let ReturnType::Type(_, ty) = return_type else { return Self::unit(name) };
        let span = ty.span();
        let (item, stream) = match (stream_item(ty), result(ty).map(|(ok, error)| (stream_item(ok), error))) {
            (Some(item), _) => (item, Some(Stream::Plain)),
            (None, Some((Some(item), error))) => (item, Some(Stream::Fallible(error))),
            (None, _) => (Ok(&**ty), None),
        };
        let mistake = Self { stream, ..Self::unit(span) };
        let Some(item) = errors.take(item) else { return mistake };
        let (ty, form, form_span) = match (result(item), envelope(item)) {
            (Some((ok, error)), _) => match envelope(ok) {
                Some(data) => (data, Form::ResultEnvelope, error),
                None => (ok, Form::Result, error),
            },
            (None, Some(data)) => (data, Form::Envelope, item.span()),
            (None, None) => (item, Form::Value, item.span()),
        };
        if let Some(token) = types::unnamed(ty) {
            errors.tokens(token, "name the type: an operation gives one type that callers can name");
            return mistake;
        }
        if let Some(token) = types::boxed_stream(ty) {
            errors.tokens(token, "return the stream as `impl Stream<Item = ..>`: a boxed one is that, too");
            return Self { stream: Some(Stream::Plain), ..mistake };
        }
        if let Some(token) = types::borrowed(ty) {
            errors.tokens(token, "an operation gives owned data, such as a `String`");
            return mistake;
        }
        Self { ty: ty.clone(), form, form_span, stream, span }
    }
}

/// The `T` of `Result<T, E>` and where its `E` stands, or that of an alias which is called `Result` and has the error
/// built in.
fn result(ty: &Type) -> Option<(&Type, Span)> {
    match types::arguments_of(ty, "Result")?.as_slice() {
        [ok] => Some((ok, ty.span())),
        [ok, error] => Some((ok, error.span())),
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
