//! What can be told of a type from its tokens.

use std::cell::Cell;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{GenericArgument, Ident, PathArguments, PathSegment, Type};

/// The type without the invisible groups that `macro_rules!` puts around a fragment, and without parentheses.
pub(crate) fn peel(mut ty: &Type) -> &Type {
    loop {
        match ty {
            Type::Group(group) => ty = &group.elem,
            Type::Paren(paren) => ty = &paren.elem,
            _ => return ty,
        }
    }
}

pub(crate) fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match peel(ty) {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

/// The type arguments of `Name<A, B>`, if the type is called so.
pub(crate) fn arguments_of<'a>(ty: &'a Type, name: &str) -> Option<Vec<&'a Type>> {
    let segment = last_segment(ty).filter(|segment| segment.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    Some(types.collect())
}

/// The `T` of the standard library's `Option<T>`, as far as the name tells.
pub(crate) fn optional(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = peel(ty) else { return None };
    let mut names = path.path.segments.iter().rev().skip(1);
    if path.qself.is_some() || !names.all(|name| ["std", "core", "option"].iter().any(|known| name.ident == known)) {
        return None;
    }
    match arguments_of(ty, "Option")?.as_slice() {
        [inner] => Some(inner),
        _ => None,
    }
}

/// The first token that the test picks, groups included.
pub(crate) fn find(tokens: impl ToTokens, test: &dyn Fn(&TokenTree) -> bool) -> Option<TokenTree> {
    fn walk(tokens: TokenStream, test: &dyn Fn(&TokenTree) -> bool) -> Option<TokenTree> {
        tokens.into_iter().find_map(|token| match token {
            TokenTree::Group(group) => walk(group.stream(), test),
            token => test(&token).then_some(token),
        })
    }
    walk(tokens.into_token_stream(), test)
}

/// The `&` of a reference inside the type, or the `'_` of another type that borrows.
pub(crate) fn borrowed(ty: &Type) -> Option<TokenTree> {
    let is_lifetime = Cell::new(false);
    find(ty, &|token| {
        let was_quote = is_lifetime.replace(matches!(token, TokenTree::Punct(punct) if punct.as_char() == '\''));
        match token {
            TokenTree::Punct(punct) => punct.as_char() == '&',
            TokenTree::Ident(ident) => was_quote && ident == "_",
            _ => false,
        }
    })
}

/// The name of a stream in a box: `BoxStream`, or what is behind `dyn`.
pub(crate) fn boxed_stream(ty: &Type) -> Option<TokenTree> {
    let is_boxed = find(ty, &|token| matches!(token, TokenTree::Ident(ident) if ident == "dyn")).is_some();
    find(ty, &|token| match token {
        TokenTree::Ident(ident) => ident == "BoxStream" || ident == "LocalBoxStream" || is_boxed && ident == "Stream",
        _ => false,
    })
}

/// The `impl` of an unnamed type.
pub(crate) fn unnamed(ty: &Type) -> Option<TokenTree> {
    find(ty, &|token| matches!(token, TokenTree::Ident(ident) if ident == "impl"))
}

const PLAIN: [&str; 25] = [
    "bool", "char", "str", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize",
    "f32", "f64", "String", "Vec", "Option", "std", "core", "string", "vec", "option",
];

/// Whether another name of a `Result` may stand here.
pub(crate) fn may_be_alias(ty: &Type) -> bool {
    last_segment(ty).is_some_and(|last| PLAIN.iter().all(|plain| last.ident != plain))
}

/// Whether the type is made of types of the standard library only, all of which can be data.
pub(crate) fn is_plain(ty: &Type) -> bool {
    let strange =
        |token: &TokenTree| matches!(token, TokenTree::Ident(ident) if PLAIN.iter().all(|plain| ident != plain));
    find(ty, &strange).is_none()
}

/// Whether the JSON of the type is no object, as far as its name tells.
pub(crate) fn is_no_object(ty: &Type) -> bool {
    if let Some([inner]) = arguments_of(ty, "Option").as_deref() {
        return is_no_object(inner);
    }
    let is_plain = |last: &PathSegment| PLAIN.iter().any(|plain| last.ident == plain);
    matches!(peel(ty), Type::Tuple(_) | Type::Array(_) | Type::Slice(_)) || last_segment(ty).is_some_and(is_plain)
}

/// Whether the type is one text, number or boolean, or may be none.
pub(crate) fn is_scalar(ty: &Type) -> bool {
    if let Some([inner]) = arguments_of(ty, "Option").as_deref() {
        return is_scalar(inner);
    }
    const LISTS: [&str; 2] = ["Vec", "Option"];
    is_plain(ty)
        && matches!(peel(ty), Type::Path(_))
        && last_segment(ty).is_some_and(|last| !LISTS.iter().any(|list| last.ident == list))
}

/// Whether a path in the tokens of types begins with the name. `Item` in `Stream<Item = u8>` is no path.
pub(crate) fn begins_with(tokens: TokenStream, name: &Ident) -> bool {
    let is = |token: Option<&TokenTree>, sign: char| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign);
    let mut before = None;
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let found = match &token {
            TokenTree::Group(group) => begins_with(group.stream(), name),
            TokenTree::Ident(ident) => ident == name && !is(before.as_ref(), ':') && !is(tokens.peek(), '='),
            _ => false,
        };
        if found {
            return true;
        }
        before = Some(token);
    }
    false
}

pub(crate) fn mentions(ty: &Type, names: &[Ident]) -> bool {
    find(ty, &|token| matches!(token, TokenTree::Ident(ident) if names.contains(ident))).is_some()
}
