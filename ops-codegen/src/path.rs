//! Rust paths and identifiers from settings and documents: only valid ones become code.

use crate::names::is_reserved;

/// How deep the arguments of a generic type are nested.
const DEEPEST: usize = 16;

/// The longest text that is read.
const LONGEST: usize = 1_000;

/// Types without a path.
const PRIMITIVES: &[&str] = &[
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128",
    "usize",
];

/// The type at a path, as generated code names it in any module; `None` if the text is none.
///
/// A path begins with `crate` or the name of a crate, and may have types as arguments.
pub(crate) fn type_path(text: &str) -> Option<String> {
    let text = text.trim();
    if text.len() > LONGEST {
        return None;
    }
    let mut rest = text;
    let path = read_type(&mut rest, 0)?;
    rest.is_empty().then_some(path)
}

/// The path of a crate or of a module, as generated code names it in any module; `None` if the text is none.
///
/// A path begins with `crate` or the name of a crate.
pub(crate) fn module_path(text: &str) -> Option<String> {
    let mut rest = text;
    let (names, is_absolute) = read_names(&mut rest).filter(|_| text.len() <= LONGEST)?;
    if rest.is_empty() { from_root(&names, is_absolute) } else { None }
}

/// The path of an item, such as a derive macro; `None` if the text is none.
pub(crate) fn item_path(text: &str) -> Option<String> {
    let path = type_path(text)?;
    (!path.contains('<') && path.contains("::")).then_some(path)
}

fn read_type(rest: &mut &str, depth: usize) -> Option<String> {
    let (names, is_absolute) = read_names(rest)?;
    let mut path = rooted(&names, is_absolute)?;
    *rest = rest.trim_start();
    if let Some(more) = rest.strip_prefix('<').filter(|_| depth < DEEPEST) {
        *rest = more;
        let mut arguments = Vec::new();
        loop {
            *rest = rest.trim_start();
            arguments.push(read_type(rest, depth + 1)?);
            if let Some(more) = rest.strip_prefix('>') {
                *rest = more.trim_start();
                break;
            }
            *rest = rest.strip_prefix(',')?;
        }
        path.push_str(&format!("<{}>", arguments.join(", ")));
    }
    Some(path)
}

/// The names of a path; true if it begins with `::`.
fn read_names<'t>(rest: &mut &'t str) -> Option<(Vec<&'t str>, bool)> {
    let is_absolute = rest.starts_with("::");
    if is_absolute {
        *rest = rest.get(2..)?;
    }
    let mut names = vec![read_name(rest)?];
    while let Some(more) = rest.strip_prefix("::") {
        *rest = more;
        names.push(read_name(rest)?);
    }
    Some((names, is_absolute))
}

fn read_name<'t>(rest: &mut &'t str) -> Option<&'t str> {
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (name, more) = rest.split_at_checked(end)?;
    *rest = more;
    (!name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())).then_some(name)
}

/// The path of a type.
fn rooted(names: &[&str], is_absolute: bool) -> Option<String> {
    match (names, is_absolute) {
        (["String"], false) => Some("::std::string::String".to_owned()),
        ([only], false) if PRIMITIVES.contains(only) => Some((*only).to_owned()),
        ([_] | [], _) => None,
        _ => from_root(names, is_absolute),
    }
}

/// The path from `crate` or from the root of all crates, so that no name around the module changes its meaning.
fn from_root(names: &[&str], is_absolute: bool) -> Option<String> {
    let is_local = names.first() == Some(&"crate") && !is_absolute;
    let named = if is_local { names.get(1..)? } else { names };
    if named.iter().any(|name| is_reserved(name)) {
        return None;
    }
    Some(format!("{}{}", if is_local { "" } else { "::" }, names.join("::")))
}

/// True if a type can have this name and rustc does not warn of it.
pub(crate) fn is_type_name(name: &str) -> bool {
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let mut parts = name.match_indices('_').map(|(at, _)| name.split_at(at));
    is_identifier(name)
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && parts.all(|(before, after)| is_digit(before.chars().next_back()) && is_digit(after.chars().nth(1)))
}

/// True if a field can have this name and rustc does not warn of it.
pub(crate) fn is_field_name(name: &str) -> bool {
    is_identifier(name) && !name.contains("__") && !name.contains(|c: char| c.is_ascii_uppercase())
}

fn is_identifier(name: &str) -> bool {
    name.len() <= LONGEST
        && name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
        && !is_reserved(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_types() {
        for (text, path) in [
            ("crate::Pet", Some("crate::Pet")),
            ("chrono::NaiveDate", Some("::chrono::NaiveDate")),
            (" ::chrono::NaiveDate ", Some("::chrono::NaiveDate")),
            ("u64", Some("u64")),
            ("String", Some("::std::string::String")),
            (
                "std::collections::HashMap<String, crate::Pet>",
                Some("::std::collections::HashMap<::std::string::String, crate::Pet>"),
            ),
            ("std::vec::Vec< std::vec::Vec<u8>, >", None),
            ("std::vec::Vec<std::vec::Vec<u8> >", Some("::std::vec::Vec<::std::vec::Vec<u8>>")),
            ("Pet", None),
            ("::Pet", None),
            ("crate", None),
            ("::crate::Pet", None),
            ("super::Pet", None),
            ("self::Pet", None),
            ("crate::self::Pet", None),
            ("crate::fn", None),
            ("crate::Pet;", None),
            ("crate::Pet, u8", None),
            ("crate::Pet<", None),
            ("crate::Pet<'a>", None),
            ("crate::Pet<{ 1 }>", None),
            ("crate :: Pet", None),
            ("crate::Pet> fn", None),
            ("crate::\u{202e}Pet", None),
            ("crate::7", None),
            ("", None),
        ] {
            assert_eq!(type_path(text).as_deref(), path, "{text:?}");
            if let Some(path) = path {
                syn::parse_str::<syn::Type>(path).unwrap();
            }
        }
        assert_eq!(type_path(&"std::vec::Vec<".repeat(40)), None);
        assert_eq!(item_path("schemars::JsonSchema").as_deref(), Some("::schemars::JsonSchema"));
        for text in ["Eq", "u8", "a::B<u8>", "a::B)] struct Evil; #[derive(a::C"] {
            assert_eq!(item_path(text), None, "{text}");
        }
    }

    #[test]
    fn paths_of_modules() {
        for (text, path) in [
            ("::ops_runtime", Some("::ops_runtime")),
            ("ops_runtime", Some("::ops_runtime")),
            ("facade::ops", Some("::facade::ops")),
            ("crate::ops", Some("crate::ops")),
            ("crate", Some("crate")),
            ("::crate::ops", None),
            ("super::ops", None),
            ("self::ops", None),
            ("crate::super::ops", None),
            ("crate::type", None),
            ("fn", None),
            ("_", None),
            ("crate::ops;", None),
            ("crate::ops<u8>", None),
            ("crate::", None),
            ("::", None),
            ("", None),
        ] {
            assert_eq!(module_path(text).as_deref(), path, "{text:?}");
        }
        assert_eq!(module_path(&"a::".repeat(LONGEST)), None);
    }

    #[test]
    fn names_that_rustc_accepts() {
        for (name, is_type, is_field) in [
            ("Pet", true, false),
            ("HTTPServer", true, false),
            ("V1_0", true, false),
            ("V1_a", false, false),
            ("Pet_Tag", false, false),
            ("pet_tag", false, true),
            ("_pet", false, true),
            ("pet__tag", false, false),
            ("type", false, false),
            ("Self", false, false),
            ("None", false, false),
            ("r#type", false, false),
            ("", false, false),
            ("1a", false, false),
            ("Größe", false, false),
        ] {
            assert_eq!((is_type_name(name), is_field_name(name)), (is_type, is_field), "{name}");
        }
    }
}
