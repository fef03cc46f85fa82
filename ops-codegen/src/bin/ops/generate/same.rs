//! True for files that differ in layout only: `cargo fmt` lays out generated code in its own way.
//!
//! Sources are compared token by token. What `rustfmt` does to tokens is undone on both sides: a comma before a closing
//! bracket comes and goes, and declarations that stand side by side are sorted.

use proc_macro2::{Delimiter, TokenStream, TokenTree, token_stream};

/// True if a file has the source, in this layout or another, and the same comments.
pub(crate) fn is_same(found: &[u8], source: &str) -> bool {
    if found == source.as_bytes() {
        return true;
    }
    let Ok(found) = std::str::from_utf8(found) else { return false };
    comments(found) == comments(source)
        && tokens(found).is_some_and(|found| tokens(source).is_some_and(|source| source == found))
}

/// The lines that are comments, which are no tokens, and how many others there may be: those in texts are the same in any
/// layout.
fn comments(source: &str) -> (Vec<&str>, [usize; 2]) {
    let lines = source.lines().map(str::trim).filter(|line| line.starts_with("//") && !line.starts_with("///"));
    (lines.collect(), ["//", "/*"].map(|opening| source.matches(opening).count()))
}

/// The tokens of a source; `None` if it has none.
fn tokens(source: &str) -> Option<Vec<String>> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let mut out: Vec<String> = Vec::new();
    // Groups that are open, and whether a single comma means something in them.
    let mut open: Vec<(token_stream::IntoIter, Delimiter, bool)> = Vec::new();
    let mut inside = source.parse::<TokenStream>().ok()?.into_iter();
    loop {
        match inside.next() {
            Some(TokenTree::Group(group)) => {
                let delimiter = group.delimiter();
                let is_tuple = delimiter == Delimiter::Parenthesis && !is_call(&out);
                out.push(brackets(delimiter).0.to_owned());
                open.push((std::mem::replace(&mut inside, group.stream().into_iter()), delimiter, is_tuple));
            }
            Some(token) => {
                let token = token.to_string();
                // The end of type arguments.
                if token == ">" && out.last().is_some_and(|last| last == ",") {
                    out.pop();
                }
                out.push(token);
            }
            None => {
                let Some((around, delimiter, is_tuple)) = open.pop() else { break };
                if out.last().is_some_and(|last| last == ",") && !(is_tuple && has_one_item(&out)) {
                    out.pop();
                }
                out.push(brackets(delimiter).1.to_owned());
                inside = around;
            }
        }
    }
    sort_uses(&mut out);
    Some(out)
}

fn brackets(delimiter: Delimiter) -> (&'static str, &'static str) {
    match delimiter {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    }
}

/// Words that an expression or a pattern in parentheses may follow.
const BEFORE_VALUES: &[&str] =
    &["as", "break", "const", "else", "if", "in", "let", "match", "mut", "ref", "return", "while"];

/// True if parentheses after these tokens hold arguments, and no tuple.
fn is_call(before: &[String]) -> bool {
    let mut before = before.iter().rev().map(String::as_str);
    let Some(last) = before.next() else { return false };
    match last {
        // The end of type arguments, or of `->` and `=>`.
        ">" => !matches!(before.next(), Some("-" | "=")),
        ")" | "]" | "!" => true,
        word => word.starts_with(|c: char| c.is_alphabetic() || c == '_') && !BEFORE_VALUES.contains(&word),
    }
}

/// True if the comma at the end of these tokens is the only one of its brackets: that of a tuple of one item.
fn has_one_item(tokens: &[String]) -> bool {
    let mut depth = 0_usize;
    for token in tokens.iter().rev().skip(1) {
        match token.as_str() {
            ")" | "}" | "]" => depth += 1,
            "(" | "{" | "[" if depth == 0 => return true,
            "(" | "{" | "[" => depth -= 1,
            "," if depth == 0 => return false,
            _ => {}
        }
    }
    true
}

/// Sorts `use` declarations that stand side by side.
fn sort_uses(tokens: &mut Vec<String>) {
    let mut sorted = Vec::with_capacity(tokens.len());
    let mut uses: Vec<Vec<String>> = Vec::new();
    let mut left = std::mem::take(tokens).into_iter();
    while let Some(token) = left.next() {
        if token == "use" {
            let mut one = vec![token];
            for token in left.by_ref() {
                let is_last = token == ";";
                one.push(token);
                if is_last {
                    break;
                }
            }
            uses.push(one);
        } else {
            uses.sort();
            sorted.extend(uses.drain(..).flatten());
            sorted.push(token);
        }
    }
    uses.sort();
    sorted.extend(uses.into_iter().flatten());
    *tokens = sorted;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_makes_no_difference_and_all_else_does() {
        let same = [
            ("pub struct A { a: u8, b: Vec<u8>, }", "pub struct A {\n    a: u8,\n    b: Vec<u8>\n}\r\n"),
            ("f(a, b);", "f(\n    a,\n    b,\n);"),
            ("f::<u8>(a)(b,);", "f::<u8>(a,)(b);"),
            ("fn f(a: A<B>) {}", "fn f(\n    a: A<\n        B,\n    >,\n) {\n}"),
            ("use b::x; use a::y; mod c { use e; use d; }", "use a::y;\nuse b::x;\nmod c {\nuse d;\nuse e;\n}"),
            ("const A: (u8,) = (1,);", "const A: (u8,) = (\n    1,\n);"),
            ("/// Says it.\nfn f() {}", "/// Says it.\nfn f() {\n}"),
            ("fn f() -> (u8, u8) {}", "fn f() -> (u8, u8,) {}"),
        ];
        for (one, other) in same {
            assert!(is_same(format!("// a\n{one}").as_bytes(), &format!("// a\n{other}")), "{one} | {other}");
        }
        let different = [
            ("pub struct A;", "pub struct B;"),
            ("const A: &str = \"a b\";", "const A: &str = \"a  b\";"),
            ("const A: (u8,) = a;", "const A: (u8) = a;"),
            ("fn f() -> (u8,) {}", "fn f() -> (u8) {}"),
            ("fn f() { return (a,) }", "fn f() { return (a) }"),
            ("/// Says it.\nfn f() {}", "/// Says so.\nfn f() {}"),
            ("/// Says it.\nfn f() {}", "fn f() {}"),
            ("pub struct A; pub struct B;", "pub struct B; pub struct A;"),
            ("use a;", "pub use a;"),
            ("use a;", "use a;\n// b"),
            ("use a;\n// b", "use a;\n// c"),
            ("use a;", "use a; // b"),
            ("use a;", "use /* b */ a;"),
            ("fn f() {}", "fn f() {"),
            ("fn f() {", "fn f() { "),
        ];
        for (one, other) in different {
            assert!(!is_same(format!("// a\n{one}").as_bytes(), &format!("// a\n{other}")), "{one} | {other}");
        }
        assert!(!is_same(b"// a\nfn f() {}", "// b\nfn f() {}"), "another first line");
        assert!(!is_same(b"\xff", "") && is_same(b"fn {", "fn {"));
    }
}
