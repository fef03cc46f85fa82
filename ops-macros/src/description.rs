//! The description of an operation: what its doc comment says.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Expr, LitStr, Meta};

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

/// The comment for a second item: its fenced examples are shown there, too, but are tests of the first item only.
pub(crate) fn untested(docs: &[Attribute]) -> Vec<Attribute> {
    let mut fence = None;
    let copy = |doc: &Attribute| {
        let Meta::NameValue(pair) = &doc.meta else { return doc.clone() };
        let Some(text) = string_literal(&pair.value).map(LitStr::value) else { return doc.clone() };
        let lines: Vec<String> = starless(&text).map(|line| ignored(line, &mut fence)).collect();
        let lines = lines.join("\n");
        if lines == text { doc.clone() } else { syn::parse_quote!(#[doc = #lines]) }
    };
    docs.iter().map(copy).collect()
}

/// An open block of code.
struct Fence {
    marker: String,
    /// How many quotes it is in: it ends with them.
    quotes: usize,
}

/// The line; if it opens a block of code, with `ignore` behind the language.
fn ignored(line: &str, fence: &mut Option<Fence>) -> String {
    let (quotes, written) = written(line, fence.is_some());
    if fence.as_ref().is_some_and(|open| quotes < open.quotes) {
        *fence = None;
        return ignored(line, fence);
    }
    let marker: String = match written.chars().next() {
        Some(sign @ ('`' | '~')) => written.chars().take_while(|c| *c == sign).collect(),
        _ => return line.to_owned(),
    };
    let language = written.strip_prefix(&marker).unwrap_or_default();
    match fence {
        Some(open) => {
            if quotes == open.quotes && language.is_empty() && marker.starts_with(open.marker.as_str()) {
                *fence = None;
            }
            line.to_owned()
        }
        None if marker.len() < 3 || marker.starts_with('`') && language.contains('`') => line.to_owned(),
        None => {
            *fence = Some(Fence { marker, quotes });
            let end = if language.is_empty() { "ignore" } else { ",ignore" };
            format!("{}{end}", line.trim_end())
        }
    }
}

/// How many quotes a line is in, and what it says behind their signs and, but in code, behind those of the items of lists and
/// of footnotes.
fn written(line: &str, is_code: bool) -> (usize, &str) {
    let (mut quotes, mut rest) = (0, line.trim());
    loop {
        let number = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let sign = if number.len() < rest.len() {
            number.strip_prefix(['.', ')'])
        } else {
            rest.strip_prefix(['-', '*', '+'])
        };
        let item = sign.filter(|text| text.starts_with([' ', '\t']));
        let footnote = rest.strip_prefix("[^").and_then(|text| text.split_once("]:")).map(|(_, text)| text);
        let quote = rest.strip_prefix('>');
        quotes += usize::from(quote.is_some());
        match quote.or(item.or(footnote).filter(|_| !is_code)) {
            Some(text) => rest = text.trim_start(),
            None => return (quotes, rest),
        }
    }
}

/// The lines of one comment, without the space that each begins with.
fn lines(text: &str) -> String {
    let plain = |line: &str| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned();
    starless(text).map(plain).collect::<Vec<_>>().join("\n")
}

/// The lines of one comment, without the stars of `/** .. */`.
fn starless(text: &str) -> impl Iterator<Item = &str> {
    let stars = stars(text);
    let lines = text.split('\n').enumerate();
    lines.map(move |(at, line)| stars.filter(|_| at > 0).and_then(|end| line.get(end..)).unwrap_or(line))
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
    use quote::ToTokens;

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
    fn examples_are_tests_once() {
        let docs: [Attribute; 6] = [
            syn::parse_quote!(#[doc = " Adds `1`."]),
            syn::parse_quote!(#[doc = " ```"]),
            syn::parse_quote!(#[doc = " ~~~"]),
            syn::parse_quote!(#[doc = " ```"]),
            syn::parse_quote!(#[doc = include_str!("add.md")]),
            syn::parse_quote!(#[doc = "```` rust,no_run\n```\n````\n```a```"]),
        ];
        let copy: Vec<String> = untested(&docs).iter().map(|doc| doc.meta.to_token_stream().to_string()).collect();
        assert_eq!(
            copy,
            [
                r#"doc = " Adds `1`.""#,
                r#"doc = " ```ignore""#,
                r#"doc = " ~~~""#,
                r#"doc = " ```""#,
                r#"doc = include_str ! ("add.md")"#,
                r#"doc = "```` rust,no_run,ignore\n```\n````\n```a```""#,
            ]
        );
        for (text, wanted) in [
            (" - ```\n   a\n   ```\n ```", " - ```ignore\n   a\n   ```\n ```ignore"),
            (
                " 1. * ~~~rust\n      - ~~~\n      ~~~\n2) ```",
                " 1. * ~~~rust,ignore\n      - ~~~\n      ~~~\n2) ```ignore",
            ),
            (" -```\n > ```\n > > ```\n > ```", " -```\n > ```ignore\n > > ```\n > ```"),
            // A quote ends with its last line.
            (" > + ```\n > a\n\n ```rust\n > ```\n ```", " > + ```ignore\n > a\n\n ```rust,ignore\n > ```\n ```"),
            // The stars of a comment would be items of a list, and each end the block of code in the one before.
            ("\n * Adds.\n * ```\n * a\n * ```\n ", "\n Adds.\n ```ignore\n a\n ```\n "),
            (" -\t```\n\ta\n\t```", " -\t```ignore\n\ta\n\t```"),
            (" [^1]: ```\n     a\n     ```", " [^1]: ```ignore\n     a\n     ```"),
            (" Adds.\n * * ```\n *   a\n *   ```", " Adds.\n * ```ignore\n   a\n   ```"),
        ] {
            let [copy] = &untested(&[syn::parse_quote!(#[doc = #text])])[..] else { panic!("{text:?}") };
            assert_eq!(copy.meta.to_token_stream().to_string(), quote!(doc = #wanted).to_string());
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
