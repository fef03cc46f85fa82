//! Text made from a schema: of a format, of a pattern, of a length.

use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value, json};

/// Longer text than this is not made for the sake of a length.
const LONGEST: usize = 4_096;

/// Text that a schema accepts; other text for another salt, where that is possible.
pub(super) fn string(node: &Map<String, Value>, salt: usize) -> String {
    let length = |keyword: &str| node.get(keyword).and_then(Value::as_f64).map(|n| n as usize);
    let (least, most) = (length("minLength").unwrap_or(0).min(LONGEST), length("maxLength").unwrap_or(usize::MAX));
    let formatted = node.get("format").and_then(Value::as_str).and_then(|format| of_format(format, salt));
    if let Some(pattern) = node.get("pattern").and_then(Value::as_str) {
        // Text of the format may be of the pattern as well.
        // A pattern that is none matches nothing.
        let validator = jsonschema::draft202012::new(&json!({ "pattern": pattern })).ok();
        let matches = |text: &String| validator.as_ref().is_some_and(|validator| validator.is_valid(&json!(text)));
        let has_length = |text: &String| (least..=most).contains(&text.chars().count());
        if let Some(text) = formatted.as_ref().filter(|text| has_length(text) && matches(text)) {
            return text.clone();
        }
        let made = of_pattern(pattern, least, most, salt);
        let is_made = made.as_ref().is_some_and(matches);
        if is_made {
            return made.unwrap_or_default();
        }
        // Patterns in a dialect that is not known here: somebody may have written down what they mean.
        let examples =
            node.get("example").into_iter().chain(node.get("examples").and_then(Value::as_array).into_iter().flatten());
        if let Some(example) = examples.chain(node.get("default")).find_map(Value::as_str) {
            return example.to_owned();
        }
        if let Some(text) = made {
            return text;
        }
    }
    let plain = || if salt == 0 { "text".to_owned() } else { format!("text{salt}") };
    let mut text = formatted.unwrap_or_else(plain);
    while text.chars().count() < least {
        text.push('x');
    }
    text.chars().take(most).collect()
}

fn of_format(format: &str, salt: usize) -> Option<String> {
    let digit = salt % 10;
    Some(match format {
        "date-time" => format!("2026-05-04T03:02:0{digit}Z"),
        "date" => format!("2026-05-{:02}", 1 + salt % 28),
        "time" => format!("03:02:0{digit}Z"),
        "duration" => format!("P{}D", salt + 1),
        "uuid" => format!("3f0f9a5e-5d2a-4f63-9a36-0e1c1f4f5b6{digit}"),
        "email" | "idn-email" => format!("ann{salt}@example.com"),
        "uri" | "url" | "uri-reference" | "iri" | "iri-reference" => format!("https://example.com/{salt}"),
        "uri-template" => format!("https://example.com/{{id}}/{salt}"),
        "ipv4" | "ip" => format!("192.0.2.{}", 1 + salt % 200),
        "ipv6" => format!("2001:db8::{}", 1 + salt),
        "cidr" | "ipv4-cidr" => format!("192.0.2.{}/32", salt % 200),
        "hostname" | "idn-hostname" => format!("host{salt}.example.com"),
        "byte" | "binary" | "base64" => "aGVsbG8=".to_owned(),
        "json-pointer" => format!("/a{salt}"),
        "regex" => "a+".to_owned(),
        "int32" | "int64" => format!("{}", salt + 1),
        _ => return None,
    })
}

/// Text that a regular expression matches, of at least and at most these lengths.
fn of_pattern(pattern: &str, least: usize, most: usize, salt: usize) -> Option<String> {
    // Expressions of ECMAScript escape more than those of the library.
    let pattern = pattern.replace("\\/", "/").replace("\\_", "_").replace("\\@", "@").replace("\\:", ":");
    let pattern = without_lookahead(&pattern.replace("\\Z", "$"));
    let hir = regex_syntax::Parser::new().parse(&pattern).ok()?;
    let mut longest = String::new();
    for extra in (0..=8).chain([16, 32, 64, 128, 256, least]) {
        let mut text = String::new();
        write(&hir, extra + usize::from(salt > 0), salt, &mut text);
        let length = text.chars().count();
        if (least..=most).contains(&length) && !text.is_empty() {
            return Some(text);
        }
        if length <= most && length > longest.chars().count() {
            longest = text;
        }
    }
    // What is not anchored may go on.
    let is_open = !pattern.ends_with('$') && !longest.is_empty();
    is_open.then(|| longest.chars().chain(std::iter::repeat('x')).take(least.max(longest.chars().count())).collect())
}

/// The expression without its groups that only look ahead, which the library does not know.
fn without_lookahead(pattern: &str) -> String {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(at) = ["(?!", "(?="].iter().filter_map(|group| rest.find(group)).min() {
        let mut depth = 0_usize;
        let end = rest.char_indices().skip_while(|(i, _)| *i < at).find(|(_, c)| {
            depth = match c {
                '(' => depth + 1,
                ')' => depth.saturating_sub(1),
                _ => depth,
            };
            depth == 0
        });
        out.push_str(rest.get(..at).unwrap_or_default());
        rest = end.and_then(|(end, _)| rest.get(end + 1..)).unwrap_or_default();
    }
    out + rest
}

fn write(hir: &Hir, extra: usize, salt: usize, text: &mut String) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(class) => text.extend(of_class(class, salt)),
        HirKind::Repetition(repetition) => {
            let least = repetition.min as usize;
            let most = repetition.max.map_or(usize::MAX, |most| most as usize);
            for _ in 0..least.saturating_add(extra).min(most).min(4_096) {
                write(&repetition.sub, extra.min(1), salt, text);
            }
        }
        HirKind::Capture(capture) => write(&capture.sub, extra, salt, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(part, extra, salt, text)),
        HirKind::Alternation(parts) => {
            if let Some(part) = parts.get(salt % parts.len().max(1)) {
                write(part, extra, salt, text);
            }
        }
    }
}

/// A character of a class, a harmless one if it has any.
fn of_class(class: &Class, salt: usize) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.ranges().iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => class.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect(),
    };
    let has = |c: &char| ranges.iter().any(|(start, end)| start <= c && c <= end);
    let harmless: Vec<char> =
        ('a'..='z').chain('1'..='9').chain('A'..='Z').chain(['0', '-', '_', '.']).filter(has).collect();
    harmless.get(salt % harmless.len().max(1)).copied().or_else(|| ranges.first().map(|(start, _)| *start))
}
