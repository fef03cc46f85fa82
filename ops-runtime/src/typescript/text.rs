//! Foreign text in TypeScript: literals, property names and comments.

use serde_json::Value;

/// Text as a string literal, which means the same in JavaScript and JSON.
///
/// `<` is escaped because the text may stand in a page, and what ends a line or hides text is escaped.
pub(super) fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '<' => out.push_str("\\u003C"),
            c if crate::model::text::is_control(c) => {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04X}")));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// JSON as the type that has this value alone.
pub(super) fn constant(value: &Value) -> String {
    match value {
        Value::String(text) => literal(text),
        Value::Array(items) => format!("[{}]", items.iter().map(constant).collect::<Vec<_>>().join(", ")),
        Value::Object(members) if members.is_empty() => "{ [key: string]: never }".to_owned(),
        Value::Object(members) => {
            let each = members.iter().map(|(name, value)| format!("{}: {}", property(name), constant(value)));
            format!("{{ {} }}", each.collect::<Vec<_>>().join("; "))
        }
        other => other.to_string(),
    }
}

/// The name of a property, quoted unless it is an identifier.
pub(super) fn property(name: &str) -> String {
    let is_start = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$');
    let is_identifier = name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_ascii_digit());
    // In a literal of an object, this one alone would set the prototype.
    if is_identifier && name != "__proto__" { name.to_owned() } else { literal(name) }
}

/// Foreign text for a comment: its lines, without what could end the comment, hide text or begin a tag.
pub(super) fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = comment(line);
        // One empty line between paragraphs.
        if !line.is_empty() || lines.last().is_some_and(|last| !last.is_empty()) {
            lines.push(line);
        }
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// One line of foreign text for a comment.
pub(super) fn comment(line: &str) -> String {
    let line = line.trim_end();
    let mut out = String::with_capacity(line.len());
    for (at, c) in line.char_indices() {
        match c {
            '/' if out.ends_with('*') || out.ends_with('<') && names_script(line, at + 1) => out.push_str("\\/"),
            // It would begin a comment of HTML, in which a script ends elsewhere.
            '!' if out.ends_with('<') => out.push_str("\\!"),
            '@' if out.trim_start().is_empty() => out.push_str("\\@"),
            '\t' => out.push(' '),
            c if crate::model::text::is_control(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// True if the name of the tag `script` stands there: HTML does not care for case.
fn names_script(line: &str, at: usize) -> bool {
    let name = line.get(at..).and_then(|rest| rest.get(.."script".len()));
    name.is_some_and(|name| name.eq_ignore_ascii_case("script"))
}

/// The first sentences of a text in one line: as many as asked for, if they fit into so many characters. The first is cut if
/// it does not fit. True if that is not all of the text.
pub(super) fn sentences(text: &str, most: usize, limit: usize) -> (String, bool) {
    let paragraph = text.trim().split("\n\n").next().unwrap_or_default();
    let mut line = String::new();
    // Where the last whole sentence ends, and how many there are.
    let (mut end, mut count) = (0, 0);
    for word in paragraph.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.chars().count() > limit {
            if end > 0 {
                line.truncate(end);
            }
            break;
        }
        if word.ends_with(['.', '!', '?', '。']) && !ABBREVIATIONS.iter().any(|short| word.ends_with(short)) {
            (end, count) = (line.len(), count + 1);
            if count == most {
                break;
            }
        }
    }
    let is_whole = line.len() >= text.split_whitespace().map(|word| word.len() + 1).sum::<usize>().saturating_sub(1);
    match line.char_indices().nth(limit) {
        Some((end, _)) => {
            let kept = line.get(..end).unwrap_or_default();
            let kept = kept.rsplit_once(' ').map_or(kept, |(kept, _)| kept);
            (comment(&format!("{kept}...")), true)
        }
        None => (comment(&line), !is_whole),
    }
}

/// What ends with a full stop and ends no sentence.
const ABBREVIATIONS: &[&str] = &["e.g.", "i.e.", "etc.", "vs.", "cf.", "approx.", "No."];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        assert_eq!(
            literal("a\"b\\c\u{2028}</script>\n\u{202e}`${x}`"),
            r#""a\"b\\c\u2028\u003C/script>\n\u202E`${x}`""#
        );
        assert_eq!(property("a$_1"), "a$_1");
        assert_eq!(property("1a"), "\"1a\"");
        assert_eq!(property("__proto__"), "\"__proto__\"");
        assert_eq!(property("größe"), "\"größe\"");
        assert_eq!(property(""), "\"\"");
        assert_eq!(lines("a */ b\n\n\n@evil\n</script>\u{2028}x\n\n"), ["a *\\/ b", "", "\\@evil", "<\\/script> x"]);
        assert_eq!(comment("**/"), "**\\/");
        assert_eq!(comment("</SCRIPT><script></p> <!-- a<b"), "<\\/SCRIPT><script></p> <\\!-- a<b");
        assert_eq!(
            constant(&json!({ "a b": [1, "x", null, -2.5], "c": {} })),
            r#"{ "a b": [1, "x", null, -2.5]; c: { [key: string]: never } }"#
        );
    }

    #[test]
    fn sentences_are_found() {
        for (text, most, limit, wanted, is_cut) in [
            ("One. Two.", 1, 50, "One.", true),
            ("One,\n  e.g. two.", 1, 50, "One, e.g. two.", false),
            ("One two three", 1, 9, "One two...", true),
            ("One\n\nTwo", 1, 50, "One", true),
            ("", 1, 50, "", false),
            ("One. Two. Three.", 2, 50, "One. Two.", true),
            ("One. Two three.", 3, 50, "One. Two three.", false),
            ("One. Two three.", 3, 10, "One.", true),
            ("One two three. Four.", 3, 9, "One two...", true),
        ] {
            assert_eq!(sentences(text, most, limit), (wanted.to_owned(), is_cut), "{text:?}");
        }
    }
}
