//! The names that are made from the fn's name.

use proc_macro2::Span;
use quote::format_ident;
use syn::Ident;
use syn::ext::IdentExt;

/// The name as it is spoken: `type` for `r#type`.
pub(crate) fn verbatim(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// `show_pet_by_id` as `ShowPetById`; nothing if no type can be called so.
pub(crate) fn upper_camel(ident: &Ident) -> Option<Ident> {
    let name: String = verbatim(ident).split('_').map(capitalised).collect();
    let mut type_name: Ident = syn::parse_str(&name).ok()?;
    type_name.set_span(ident.span());
    Some(type_name)
}

/// The fn of the input's type that gives a property's default.
pub(crate) fn default_fn(property: &Ident) -> Ident {
    format_ident!("__default_{}", verbatim(property), span = property.span())
}

/// `NotFound`, `not-found` and `NOT_FOUND` as `NOT_FOUND`; nothing if no const can be called so.
pub(crate) fn upper_snake(text: &str, span: Span) -> Option<Ident> {
    let mut name = String::new();
    let letters: Vec<char> = text.chars().collect();
    for (index, letter) in letters.iter().enumerate() {
        let (before, after) = (index.checked_sub(1).and_then(|before| letters.get(before)), letters.get(index + 1));
        // `soldOut`, and `HTTPError`.
        let begins = letter.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_numeric()
                    || before.is_uppercase() && after.is_some_and(|after| after.is_lowercase())
            });
        if (begins || !letter.is_alphanumeric()) && !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
        name.extend(letter.to_uppercase().filter(|letter| letter.is_alphanumeric()));
    }
    let mut name: Ident = syn::parse_str(name.trim_end_matches('_')).ok()?;
    name.set_span(span);
    Some(name)
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names() {
        let name = |ident: &str| {
            let ident: Ident = syn::parse_str(ident).unwrap();
            upper_camel(&ident).map(|ident| ident.to_string())
        };
        for (ident, expected) in [
            ("add", "Add"),
            ("show_pet_by_id", "ShowPetById"),
            ("r#type", "Type"),
            ("_hidden__name_", "HiddenName"),
            ("petById", "PetById"),
            ("v2_list_3", "V2List3"),
            ("éclair_au_thé", "ÉclairAuThé"),
        ] {
            assert_eq!(name(ident).as_deref(), Some(expected));
        }
        assert_eq!(name("__"), None);
        assert_eq!(name("_2"), None);
        assert_eq!(upper_camel(&Ident::new("self_", Span::call_site())), None);
    }

    #[test]
    fn const_names() {
        for (code, expected) in [
            ("NotFound", Some("NOT_FOUND")),
            ("sold-out", Some("SOLD_OUT")),
            ("OUT_OF_STOCK", Some("OUT_OF_STOCK")),
            ("HTTPError", Some("HTTP_ERROR")),
            ("card.declined", Some("CARD_DECLINED")),
            ("Http2Reset", Some("HTTP2_RESET")),
            ("-gone-", Some("GONE")),
            ("größe", Some("GRÖSSE")),
            ("404", None),
            ("--", None),
        ] {
            let name = upper_snake(code, Span::call_site()).map(|name| name.to_string());
            assert_eq!(name.as_deref(), expected, "{code}");
        }
    }
}
