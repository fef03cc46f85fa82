//! The description of an operation: what its doc comment says.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Expr, Meta};

use crate::signature::string_literal;

/// A part of a description.
enum Part<'d> {
    /// The lines of comments that follow each other.
    Text(String),
    /// What only the compiler reads, such as `include_str!("add.md")`.
    Expr(&'d Expr),
}

/// The description as an expression; nothing if the comment says nothing.
pub(crate) fn description(docs: &[Attribute]) -> Option<TokenStream> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    for doc in docs {
        let Meta::NameValue(pair) = &doc.meta else { continue };
        let Some(text) = string_literal(&pair.value) else {
            parts.push(Part::Expr(&pair.value));
            continue;
        };
        let lines = lines(&text.value());
        match parts.last_mut() {
            Some(Part::Text(before)) => {
                before.push('\n');
                before.push_str(&lines);
            }
            _ => parts.push(Part::Text(lines)),
        }
    }
    match parts.as_slice() {
        [] => None,
        [Part::Text(text)] => Some(text.trim()).filter(|text| !text.is_empty()).map(|text| quote!(#text)),
        parts => {
            let parts = parts.iter().map(|part| match part {
                Part::Text(text) => quote!(#text),
                Part::Expr(expr) => quote!(#expr),
            });
            Some(quote!(::core::concat!(#(#parts, "\n"),*).trim_ascii()))
        }
    }
}

/// The lines of one comment, without the space that each begins with, and without the stars of `/** .. */`.
fn lines(text: &str) -> String {
    let stars = stars(text);
    let plain = |(at, line): (usize, &str)| {
        let line = stars.filter(|_| at > 0).and_then(|end| line.get(end..)).unwrap_or(line);
        line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()
    };
    text.split('\n').enumerate().map(plain).collect::<Vec<_>>().join("\n")
}

/// Where the text of further lines begins in a comment such as `/** .. */`: behind spaces and a star, which stand at the same
/// place in all of them.
///
/// The items of a list begin with a star, too. So a text that begins with a word keeps its stars: it is that of a
/// `#[doc = ".."]`, since a space or a new line follows the `/**` of a comment.
fn stars(text: &str) -> Option<usize> {
    if !text.starts_with(char::is_whitespace) {
        return None;
    }
    let mut ends = text.split('\n').skip(1).filter(|line| !line.trim().is_empty()).map(|line| {
        let written = line.trim_start();
        let column = line.len() - written.len();
        (column > 0 && written.starts_with('*')).then_some(column + 1)
    });
    let first = ends.next()??;
    ends.all(|end| end == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(docs: &[Attribute]) -> String {
        description(docs).unwrap_or_default().to_string().split_whitespace().collect()
    }

    #[test]
    fn stars_of_a_comment_are_no_text() {
        for (text, wanted) in [
            (" Adds.\n * Twice. ", "Adds.\nTwice."),
            ("\n     * Adds.\n     *\n     *   Twice.\n     ", "\nAdds.\n\n  Twice.\n"),
            ("\n * Adds:\n * * one\n", "\nAdds:\n* one\n"),
            (" Adds:\n* one\n* two", "Adds:\n* one\n* two"),
            ("Sorts by:\n * name\n * age", "Sorts by:\n* name\n* age"),
            ("", ""),
            (" Adds.\n * Twice.\n Or not.", "Adds.\n* Twice.\nOr not."),
            (" Adds.", "Adds."),
        ] {
            assert_eq!(lines(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn what_only_the_compiler_reads_is_part_of_it() {
        let one: [Attribute; 1] = [syn::parse_quote!(#[doc = include_str!("add.md")])];
        assert_eq!(described(&one), r#"::core::concat!(include_str!("add.md"),"\n").trim_ascii()"#);
        let some: [Attribute; 4] = [
            syn::parse_quote!(#[doc = " Adds."]),
            syn::parse_quote!(#[doc = ""]),
            syn::parse_quote!(#[doc = include_str!("add.md")]),
            syn::parse_quote!(#[doc = ("Twice.")]),
        ];
        let wanted = r#"::core::concat!("Adds.\n","\n",include_str!("add.md"),"\n","Twice.","\n").trim_ascii()"#;
        assert_eq!(described(&some), wanted);
        let none: [Attribute; 2] = [syn::parse_quote!(#[doc = " "]), syn::parse_quote!(#[doc(hidden)])];
        assert!(description(&none).is_none());
    }
}
