//! The values of the arguments, each with the message that says how it is written.

use std::ops::RangeInclusive;

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Ident, LitInt, LitStr, Token, Type, parenthesized, token};

use super::parts::{ErrorCode, Kind, Resource};
use crate::names;

const RESOURCE: &str = "resource(type = \"pet\", action = \"read\")";
const DURATION: &str = "expected a whole number and a unit: \"250ms\", \"5s\", \"2m\" or \"1h\"";

/// The comma behind an argument, unless it is the last.
pub(crate) fn comma(input: ParseStream<'_>) -> syn::Result<()> {
    if input.is_empty() {
        return Ok(());
    }
    input
        .parse::<Token![,]>()
        .map(drop)
        .map_err(|error| syn::Error::new(error.span(), "expected `,` between arguments"))
}

pub(crate) fn value<T: Parse>(input: ParseStream<'_>) -> syn::Result<T> {
    input.parse::<Token![=]>()?;
    input.parse()
}

pub(crate) fn text(input: ParseStream<'_>) -> syn::Result<LitStr> {
    filled(value(input).map_err(|error| syn::Error::new(error.span(), "expected a text in quotes"))?)
}

fn filled(text: LitStr) -> syn::Result<LitStr> {
    if text.value().trim().is_empty() { Err(syn::Error::new(text.span(), "this text is empty")) } else { Ok(text) }
}

pub(crate) fn namespace(input: ParseStream<'_>) -> syn::Result<LitStr> {
    let namespace = text(input)?;
    if namespace.value().contains('.') {
        let message = "a namespace has no dot: the id `namespace.name` is split at its first one";
        return Err(syn::Error::new(namespace.span(), message));
    }
    Ok(namespace)
}

pub(crate) fn kind(input: ParseStream<'_>) -> syn::Result<(Kind, Span)> {
    input.parse::<Token![=]>()?;
    let message = "expected `query`, `mutation` or `subscription`, without quotes";
    let word = Ident::parse_any(input).map_err(|error| syn::Error::new(error.span(), message))?;
    let kind = match word.to_string().as_str() {
        "query" => Kind::Query,
        "mutation" => Kind::Mutation,
        "subscription" => Kind::Subscription,
        _ => return Err(syn::Error::new(word.span(), message)),
    };
    Ok((kind, word.span()))
}

/// Milliseconds from `"250ms"`, `"5s"`, `"2m"` or `"1h"`.
pub(crate) fn timeout(input: ParseStream<'_>) -> syn::Result<u64> {
    let text: LitStr = value(input).map_err(|error| syn::Error::new(error.span(), DURATION))?;
    match duration(&text)? {
        0 => Err(syn::Error::new(text.span(), "a timeout of 0 would fail every call")),
        milliseconds => Ok(milliseconds),
    }
}

/// Milliseconds as in [`timeout`], or none at all.
pub(crate) fn wait(input: ParseStream<'_>) -> syn::Result<u64> {
    duration(&value(input).map_err(|error| syn::Error::new(error.span(), DURATION))?)
}

fn duration(text: &LitStr) -> syn::Result<u64> {
    milliseconds(&text.value()).ok_or_else(|| syn::Error::new(text.span(), DURATION))
}

fn milliseconds(text: &str) -> Option<u64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let factor = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 60 * 60 * 1000,
        _ => return None,
    };
    text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(factor)
}

/// Says how the argument is written, by an example, if no parentheses follow its name.
pub(crate) fn in_parentheses(input: ParseStream<'_>, example: &str) -> syn::Result<()> {
    if input.peek(token::Paren) {
        return Ok(());
    }
    Err(input.error(format!("expected parentheses: write `{example}`")))
}

/// The items in parentheses, at least one.
fn list<T: Parse>(input: ParseStream<'_>, example: &str) -> syn::Result<Vec<T>> {
    in_parentheses(input, example)?;
    let content;
    let parentheses = parenthesized!(content in input);
    let items: Vec<T> = Punctuated::<T, Token![,]>::parse_terminated(&content)?.into_iter().collect();
    if items.is_empty() {
        return Err(syn::Error::new(parentheses.span.join(), "this list is empty"));
    }
    Ok(items)
}

/// The texts of the argument `key`.
pub(crate) fn texts(input: ParseStream<'_>, key: &Ident) -> syn::Result<Vec<LitStr>> {
    list(input, &format!("{key}(\"a\", \"b\")"))?.into_iter().map(filled).collect()
}

/// The types of the argument `key`.
pub(crate) fn types(input: ParseStream<'_>, key: &Ident) -> syn::Result<Vec<Type>> {
    list(input, &format!("{key}(Pool, Config)"))
}

pub(crate) fn resource(input: ParseStream<'_>) -> syn::Result<Resource> {
    struct Part(Ident, LitStr);
    impl Parse for Part {
        fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
            Ok(Self(Ident::parse_any(input)?, text(input)?))
        }
    }
    let span = input.span();
    let (mut kind, mut action) = (None, None);
    for Part(key, text) in list::<Part>(input, RESOURCE)? {
        let slot = match key.to_string().as_str() {
            "type" => &mut kind,
            "action" => &mut action,
            _ => return Err(syn::Error::new(key.span(), "expected `type` or `action`")),
        };
        if slot.replace(text).is_some() {
            return Err(syn::Error::new(key.span(), format!("`{key}` is given twice")));
        }
    }
    match (kind, action) {
        (Some(kind), Some(action)) => Ok(Resource { kind, action }),
        _ => Err(syn::Error::new(span, format!("a resource has a type and an action: `{RESOURCE}`"))),
    }
}

pub(crate) fn errors(input: ParseStream<'_>) -> syn::Result<Vec<ErrorCode>> {
    let errors: Vec<ErrorCode> = list(input, "errors(NotFound)")?;
    for (index, error) in errors.iter().enumerate() {
        if errors.iter().take(index).any(|earlier| earlier.code == error.code) {
            return Err(syn::Error::new(error.span, format!("`{}` is declared twice", error.code)));
        }
    }
    Ok(errors)
}

/// `NotFound`, `NotFound = 404` or `"not-found" = 404`.
impl Parse for ErrorCode {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let (code, span) = if input.peek(LitStr) {
            let text = filled(input.parse()?)?;
            (text.value(), text.span())
        } else {
            let ident = Ident::parse_any(input).map_err(|error| {
                syn::Error::new(error.span(), "expected an error code: `NotFound` or \"not-found\"")
            })?;
            (names::verbatim(&ident), ident.span())
        };
        let status = if input.parse::<Option<Token![=]>>()?.is_some() {
            Some(status(input, 400..=599, "expected the HTTP status of an error, from 400 to 599, without quotes")?)
        } else {
            None
        };
        Ok(Self { code, status, span })
    }
}

/// The status of a success.
pub(crate) fn success(input: ParseStream<'_>) -> syn::Result<u16> {
    input.parse::<Token![=]>()?;
    status(input, 200..=299, "expected the HTTP status of a success, from 200 to 299")
}

fn status(input: ParseStream<'_>, range: RangeInclusive<u16>, message: &str) -> syn::Result<u16> {
    let literal: LitInt = input.parse().map_err(|error| syn::Error::new(error.span(), message))?;
    match literal.base10_parse() {
        Ok(status) if range.contains(&status) => Ok(status),
        _ => Err(syn::Error::new(literal.span(), message)),
    }
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn timeouts() {
        for (text, expected) in
            [("250ms", Some(250)), ("5s", Some(5000)), ("2m", Some(120_000)), ("1h", Some(3_600_000)), ("0s", Some(0))]
        {
            assert_eq!(milliseconds(text), expected);
        }
        for text in ["", "5", "s", "1.5s", "-1s", "5 s", "5sec", "99999999999999999999ms", "18446744073709551615h"] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }
}
