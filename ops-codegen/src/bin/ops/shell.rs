//! Words of commands that are printed to be copied.
//!
//! Documents and servers choose many of these words. None of them may become an option, or another command.

use crate::report::line;

/// A word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let word = line(word);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word } else { in_quotes(&word) }
}

/// A word for a shell, in quotes even if it needs none.
pub(crate) fn in_quotes(word: &str) -> String {
    format!("'{}'", line(word).replace('\'', r"'\''"))
}

/// True if the command would take a word as an option. Quotes do not change that.
pub(crate) fn is_option(word: &str) -> bool {
    word.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_safe_in_a_shell() {
        for (word, wanted) in [
            ("petId=7", "petId=7"),
            ("a b", "'a b'"),
            ("it's $(x)", r"'it'\''s $(x)'"),
            ("", "''"),
            ("a\u{1b}b\n", "'a\u{fffd}b '"),
        ] {
            assert_eq!(quoted(word), wanted);
        }
        assert_eq!(in_quotes("shop.removePet"), "'shop.removePet'");
        assert_eq!(in_quotes("x'; id; '\n"), r"'x'\''; id; '\'' '");
        assert!(is_option("--output=x") && is_option("-o") && !is_option("x=--output"));
    }
}
