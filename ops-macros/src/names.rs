//! The names that are made from the fn's name.

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

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proc_macro2::Span;

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
}
