//! Texts with wildcards.

/// True if the text matches the pattern: `*` is any text, `?` any character, any other character itself.
pub fn glob(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    // The position after the last star, and the end in the text that was tried for it.
    let mut star: Option<(usize, usize)> = None;
    while let Some(c) = text.get(t) {
        match (pattern.get(p), star) {
            (Some('*'), _) => {
                p += 1;
                star = Some((p, t));
            }
            (Some(want), _) if want == c || *want == '?' => (p, t) = (p + 1, t + 1),
            (_, Some((after, end))) => {
                (p, t) = (after, end + 1);
                star = Some((after, end + 1));
            }
            _ => return false,
        }
    }
    pattern.iter().skip(p).all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn globs() {
        for (pattern, text, is_match) in [
            ("", "", true),
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abcd", false),
            ("*b*b*", "abcb", true),
            ("a?c", "aéc", true),
            ("a", "ab", false),
            ("ab", "a", false),
            ("**", "x", true),
        ] {
            assert_eq!(glob(pattern, text), is_match, "{pattern} {text}");
        }
    }
}
