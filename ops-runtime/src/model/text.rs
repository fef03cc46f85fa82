//! The building blocks of specs: text and lists that are borrowed in a const and owned in a spec loaded at run time.

use std::borrow::Cow;

/// Text of a spec: `Cow::Borrowed` in generated code, `Cow::Owned` in a spec that was read at run time.
pub type Text = Cow<'static, str>;

/// A list in a spec: `Cow::Borrowed(const { &[..] })` in generated code, `Cow::Owned` in a spec that was read at run time.
pub type List<T> = Cow<'static, [T]>;

/// Assigns to a field in a `const fn`, where a plain assignment is refused because it would drop the old value.
///
/// The old value is forgotten; the builders only ever overwrite a default that owns nothing.
pub(crate) const fn set<T>(slot: &mut T, value: T) {
    std::mem::forget(std::mem::replace(slot, value));
}

/// True if a character moves a cursor, ends a line, changes the direction of text, or is invisible.
pub(crate) fn is_control(c: char) -> bool {
    // Besides line ends and annotations, these are what Unicode calls default ignorable, without the selectors of variants:
    // they choose how the character before is drawn.
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e00ff}' | '\u{e01f0}'..='\u{e0fff}')
}

/// True if an invisible character joins those around it or keeps them apart, as some scripts and emoji need.
#[cfg(feature = "gateway")]
pub(crate) fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// True if a text can be shown unchanged.
pub(crate) fn is_harmless(text: &str) -> bool {
    !text.chars().any(is_control)
}

/// Foreign text for a message: one line, cut at `limit` characters, and without control characters.
///
/// Any run of white space becomes one space. Characters that control a terminal, or the direction of text, are escaped.
pub(crate) fn readable(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut left = limit;
    let mut after_space = true;
    for c in text.trim().chars() {
        // A terminal may treat these as the end of a line.
        let is_space = c.is_whitespace() && !matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}');
        if is_space && after_space {
            continue;
        }
        after_space = is_space;
        if left == 0 {
            out.truncate(out.trim_end().len());
            out.push_str("...");
            return out;
        }
        left -= 1;
        match c {
            _ if is_space => out.push(' '),
            c if is_control(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// True if a location is a URL rather than a path (`C:\` has a scheme of one letter).
#[cfg(any(feature = "http-server", feature = "openapi"))]
pub(crate) fn has_scheme(location: &str) -> bool {
    location.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1 && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    })
}

/// A number made of a text, for names that would be one without it: FNV-1a, the same in every build, unlike the standard
/// library's.
///
/// A hostile document can have any number of texts with the same hash. Another `attempt` gives them other hashes, which differ.
#[cfg(any(feature = "mcp-server", feature = "typescript"))]
pub(crate) fn hash(text: &str, attempt: u32) -> u32 {
    let fold = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let start = attempt.to_le_bytes().into_iter().filter(|_| attempt > 0).fold(0x811c_9dc5, fold);
    fold(text.bytes().fold(start, fold), 0)
}

/// Texts that begin with that one and have one hash, for tests: 512, each block of theirs being one of two that lead to one
/// state.
#[cfg(all(test, any(feature = "mcp-server", feature = "typescript")))]
pub(crate) fn alike(start: &str) -> Vec<String> {
    let alphabet: Vec<char> = "!#$%&()*+,:;<=>?@[]^{|}~".chars().collect();
    let mut all = vec![start.to_owned()];
    for _ in 0..9 {
        let mut seen = std::collections::HashMap::new();
        let blocks = (0..alphabet.len().pow(4))
            .map(|n| (0..4).map(|place| alphabet[n / alphabet.len().pow(place) % alphabet.len()]).collect::<String>());
        let pair = blocks.into_iter().find_map(|block| {
            let other = seen.insert(hash(&format!("{}{block}", all[0]), 0), block.clone())?;
            Some([other, block])
        });
        let pair = pair.unwrap();
        all = all.iter().flat_map(|text| pair.iter().map(move |block| format!("{text}{block}"))).collect();
    }
    assert!(all.iter().all(|text| hash(text, 0) == hash(&all[0], 0)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_one_harmless_line() {
        for (text, limit, wanted) in [
            ("  fine \r\n\t then  ", 20, "fine then"),
            ("\u{1b}[2J\u{202e}x", 20, "\\u{1b}[2J\\u{202e}x"),
            ("a\u{ad}\u{e0041}\u{3164}\u{ffa0}", 20, "a\\u{ad}\\u{e0041}\\u{3164}\\u{ffa0}"),
            ("a\u{34f}\u{115f}\u{180e}\u{fff9}", 20, "a\\u{34f}\\u{115f}\\u{180e}\\u{fff9}"),
            ("\u{2764}\u{fe0f} \u{845b}\u{e0100}", 20, "\u{2764}\u{fe0f} \u{845b}\u{e0100}"),
            ("four and more", 4, "four..."),
            ("four and more", 5, "four..."),
            ("four", 4, "four"),
            ("", 4, ""),
            ("x", 0, "..."),
        ] {
            assert_eq!(readable(text, limit), wanted, "{text:?}");
        }
    }
}
