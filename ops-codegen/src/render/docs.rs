//! Descriptions of the document as documentation.
//!
//! No text becomes HTML, a link to an item, a doctest or an end of the comment, and none triggers a lint.

mod markdown;

use ops_runtime::binding::Binding;
use ops_runtime::spec::OperationSpec;
use serde_json::Value;

use self::markdown::{inline, markdown, open_fence, paragraph_of, shown, wrap};
use super::text::{is_visible, visible};
use crate::types::{Constant, Default, Field, Item, Variant};
use ops_runtime::spec::pointer;

/// The documentation of a type; empty if only its name is known.
pub(super) fn of(item: &Item) -> String {
    let fallback = || if item.subject.is_empty() { subject(&item.pointer) } else { subject_of(&item.subject) };
    text_or(item.docs.as_deref(), fallback)
}

/// An operation: its description, and its address.
pub(super) fn of_operation(spec: &OperationSpec) -> String {
    let reached = match &spec.binding {
        Binding::Http(http) => code(&format!("{} {}", http.method, http.path)),
        Binding::Mcp(mcp) => format!("The tool {}.", code(&mcp.tool)),
        _ => format!("The operation {}.", code(&spec.id)),
    };
    of_spec(spec, &reached)
}

/// A webhook: its description, and its name.
pub(super) fn of_webhook(spec: &OperationSpec) -> String {
    of_spec(spec, &format!("The webhook {}.", code(spec.name())))
}

fn of_spec(spec: &OperationSpec, reached: &str) -> String {
    let mut docs = String::new();
    for text in said(spec) {
        paragraph(&mut docs, text_or(Some(text), String::new));
    }
    paragraph(&mut docs, comment(reached));
    docs
}

/// The first paragraph about an operation.
pub(super) fn first(spec: &OperationSpec) -> String {
    let docs = of_operation(spec);
    let lines: Vec<&str> = docs.lines().take_while(|line| *line != "///").collect();
    // A block of code may have an empty line: what follows here must not lie in it.
    let fence = open_fence(lines.iter().map(|line| line.strip_prefix("/// ").unwrap_or_default()));
    let mut first: String = lines.iter().map(|line| format!("{line}\n")).collect();
    first.extend(fence.map(|fence| comment(&fence)));
    first
}

/// The first words about an operation, for a list; empty if there is only its address.
pub(super) fn summary(spec: &OperationSpec) -> String {
    said(spec).into_iter().next().map(paragraph_of).unwrap_or_default()
}

/// A heading of one line.
pub(super) fn heading(text: &str) -> String {
    let text: String = shown(text).chars().take(80).collect();
    comment(&format!("# {}", inline(text.trim(), false)))
}

/// Title and description, without repetitions and without a text that is only the address.
fn said(spec: &OperationSpec) -> Vec<&str> {
    let address = spec.http().map(|http| format!("{} {}", http.method, http.path));
    let mut texts: Vec<&str> = Vec::new();
    for text in spec.title.as_deref().into_iter().chain([spec.description.as_ref()]) {
        let text = text.trim();
        let known = |other: &&str| other.trim_end_matches('.') == text.trim_end_matches('.');
        if !text.is_empty() && address.as_deref() != Some(text) && !texts.iter().any(known) {
            texts.push(text);
        }
    }
    texts
}

fn paragraph(docs: &mut String, more: String) {
    if !docs.is_empty() && !more.is_empty() {
        docs.push_str(&comment(""));
    }
    docs.push_str(&more);
}

/// The documentation of a property; empty if only its name is known.
///
/// `tags` are sentences about unions in which the property selects a variant, and `others` all fields of the record.
pub(super) fn of_field(field: &Field, tags: &[String], others: &[Field]) -> String {
    let mut docs = text_or(field.docs.as_deref(), String::new);
    let mut notes = Vec::new();
    // Of `_id` and `id`, one has the plain name, and the identifier does not tell which.
    let is_one_of_several =
        || others.iter().any(|other| other.json != field.json && plain(&other.json) == plain(&field.json));
    if !is_like(&field.ident, &field.json) || hides_sign(&field.json) && is_one_of_several() {
        notes.push(format!("{} in JSON.", code(&field.json)));
    }
    notes.extend(tags.iter().cloned());
    notes.extend(constraints(&field.says));
    if let (Default::Told(value), false) = (&field.default, field.required) {
        notes.push(format!("Default: {}.", json_code(value)));
    }
    if let Some(example) = find(&field.says, "examples").and_then(Value::as_array).and_then(|all| all.first()) {
        notes.push(format!("Example: {}.", json_code(example)));
    }
    if field.read_only {
        notes.push("Only in answers.".to_owned());
    }
    if field.write_only {
        notes.push("Only in requests.".to_owned());
    }
    if !notes.is_empty() {
        paragraph(&mut docs, text_of(&notes.join(" ")));
    }
    if field.deprecated {
        docs.push_str("#[deprecated]\n");
    }
    docs
}

/// The constraints of a value in words.
fn constraints(says: &[(&'static str, Value)]) -> Vec<String> {
    let number = |key: &str| find(says, key).filter(|value| value.is_number()).map(ToString::to_string);
    let mut notes = Vec::new();
    let mut range = |least: Option<String>, most: Option<String>, what: &str| {
        let what = if most.as_deref().or(least.as_deref()) == Some("1") { what.trim_end_matches('s') } else { what };
        notes.extend(match (least, most) {
            (Some(least), Some(most)) if least == most => Some(format!("Exactly {least}{what}.")),
            (Some(least), Some(most)) => Some(format!("{least} to {most}{what}.")),
            (Some(least), None) => Some(format!("At least {least}{what}.")),
            (None, Some(most)) => Some(format!("At most {most}{what}.")),
            (None, None) => None,
        });
    };
    let positive = |text: String| (text != "0").then_some(text);
    range(number("minimum"), number("maximum"), "");
    range(number("minLength").and_then(positive), number("maxLength"), " characters");
    range(number("minItems").and_then(positive), number("maxItems"), " items");
    notes.extend(number("exclusiveMinimum").map(|least| format!("Greater than {least}.")));
    notes.extend(number("exclusiveMaximum").map(|most| format!("Less than {most}.")));
    notes.extend(number("multipleOf").filter(|step| step != "1").map(|step| format!("A multiple of {step}.")));
    if find(says, "uniqueItems") == Some(&Value::Bool(true)) {
        notes.push("No item twice.".to_owned());
    }
    notes.extend(find(says, "pattern").map(|pattern| format!("Matches {}.", json_code(pattern))));
    let plain = ["int32", "int64", "float", "double", "binary", "byte"];
    let format = find(says, "format").and_then(Value::as_str).filter(|format| !plain.contains(format));
    notes.extend(format.map(|format| format!("Format: {}.", code(format))));
    notes
}

fn find<'s>(says: &'s [(&'static str, Value)], key: &str) -> Option<&'s Value> {
    says.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// True if an identifier tells the name in JSON: they differ in case and signs only.
fn is_like(ident: &str, json: &str) -> bool {
    let letters =
        |text: &str| -> String { text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect() };
    letters(ident) == letters(json)
}

/// True if a text has signs or white space at its ends, which no identifier shows: `-name` may be the opposite of `name`.
fn hides_sign(text: &str) -> bool {
    plain(text) != text
}

/// A text without the signs and the white space at its ends.
fn plain(text: &str) -> &str {
    text.trim_matches(|c: char| !c.is_alphanumeric())
}

/// The documentation of a value; empty if its name tells it.
pub(super) fn of_constant(constant: &Constant) -> String {
    let text = constant.value.as_str().map_or_else(|| constant.value.to_string(), str::to_owned);
    let mut docs = text_or(constant.docs.as_deref(), String::new);
    if !is_like(&constant.ident, &text) || hides_sign(&text) {
        paragraph(&mut docs, comment(&format!("{} in JSON.", value(&constant.value))));
    }
    docs
}

/// The text for a property with a single possible value.
pub(super) fn constant(name: &str, value: &serde_json::Value) -> String {
    format!("Its {} is always {}.", code(name), self::value(value))
}

/// A scalar as inline code: a string without its quotes, unless it or the white space around it would not be seen.
pub(super) fn value(value: &Value) -> String {
    match value.as_str() {
        Some(text) if text.trim() == text && !text.is_empty() => code(text),
        Some(_) => json_code(value),
        None => code(&value.to_string()),
    }
}

pub(super) fn of_variant(variant: &Variant) -> String {
    text_or(variant.docs.as_deref(), String::new)
}

/// A line of the generator's own text.
pub(super) fn line(text: &str) -> String {
    comment(text)
}

/// The generator's own text, wrapped.
pub(super) fn text_of(text: &str) -> String {
    let mut lines = Vec::new();
    wrap(text, 0, 0, &mut lines);
    lines.iter().map(|line| comment(line)).collect()
}

/// The text of the document, or the generator's own text if it has none; empty if there is neither.
fn text_or(text: Option<&str>, fallback: impl FnOnce() -> String) -> String {
    let lines = text.map(markdown).unwrap_or_default();
    if !lines.is_empty() {
        return lines.iter().map(|line| comment(line)).collect();
    }
    let fallback = fallback();
    if fallback.is_empty() { fallback } else { comment(&fallback) }
}

/// One line of documentation. Characters that end a line would end the comment; they are removed before.
fn comment(line: &str) -> String {
    let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.is_empty() { "///\n".to_owned() } else { format!("/// {line}\n") }
}

/// Documentation of something inside an item.
pub(super) fn inner(docs: &str) -> String {
    docs.lines().map(|line| format!("    {line}\n")).collect()
}

/// Any text as inline code, shortened.
pub(super) fn code(text: &str) -> String {
    let mut shown: String = text.chars().map(|c| if is_visible(c) && c != '`' { c } else { '.' }).take(80).collect();
    shown = shown.trim().to_owned();
    if shown.is_empty() { json_code(&text.into()) } else { format!("`{shown}`") }
}

/// A JSON value as inline code, shortened; nothing in it can end the code or hide in it.
fn json_code(value: &Value) -> String {
    let text = visible(&value.to_string());
    let mut shown: String = text.chars().take(80).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    let longest = shown.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let (ticks, space) = ("`".repeat(longest + 1), if longest > 0 { " " } else { "" });
    format!("{ticks}{space}{shown}{space}{ticks}")
}

fn subject_of(subject: &str) -> String {
    // The name says it already.
    if subject.starts_with("The definition `") { String::new() } else { subject.to_owned() }
}

/// A description of a hoisted type, from its place in the document; empty if its name says as much.
fn subject(pointer: &str) -> String {
    let mut keys = pointer.rsplit('/').map(|key| pointer::unescaped(key));
    let (last, before) = (keys.next().unwrap_or_default(), keys.next().unwrap_or_default());
    match (&*before, &*last) {
        (id, "input") => format!("The input of {}.", code(id)),
        (id, "output") => format!("The output of {}.", code(id)),
        (name, "payload") if pointer.starts_with("/webhooks/") => format!("The payload of the webhook {}.", code(name)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_that_a_name_hides_are_told() {
        for (ident, value, docs) in [
            ("Name", "name", ""),
            ("Name", "+name", "/// `+name` in JSON.\n"),
            ("MinusName", "-name", "/// `-name` in JSON.\n"),
            ("Name", "name ", "/// `\"name \"` in JSON.\n"),
            ("Empty", "", "/// `\"\"` in JSON.\n"),
        ] {
            let constant = Constant { ident: ident.to_owned(), value: Value::from(value), docs: None };
            assert_eq!(of_constant(&constant), docs, "{value:?}");
        }
    }

    #[test]
    fn limits_are_counted_in_words() {
        let said = |limits: &[(&'static str, u64)]| {
            let limits: Vec<_> = limits.iter().map(|(name, limit)| (*name, Value::from(*limit))).collect();
            constraints(&limits).join(" ")
        };
        for (limits, expected) in [
            (&[("minLength", 1)][..], "At least 1 character."),
            (&[("minLength", 2)], "At least 2 characters."),
            (&[("minLength", 1), ("maxLength", 80)], "1 to 80 characters."),
            (&[("minItems", 0), ("maxItems", 1)], "At most 1 item."),
            (&[("minItems", 1), ("maxItems", 1)], "Exactly 1 item."),
            (&[("minItems", 11)], "At least 11 items."),
            (&[("minimum", 1)], "At least 1."),
        ] {
            assert_eq!(said(limits), expected);
        }
    }

    #[test]
    fn a_block_of_code_is_closed() {
        let mut spec = OperationSpec::query("shop.show");
        spec.description = "```json\n{\n\n  \"a\": 1\n}\n```".into();
        assert_eq!(first(&spec), "/// ```text\n/// {\n/// ```\n");
        spec.description = "Shows it.\n\nMore.".into();
        assert_eq!(first(&spec), "/// Shows it.\n");
    }

    #[test]
    fn json_is_code() {
        use serde_json::json;
        for (value, code) in [
            (json!(20), "`20`"),
            (json!(""), r#"`""`"#),
            (json!("a`b``"), r#"``` "a`b``" ```"#),
            (json!({ "\u{202e}": "\n*/" }), r#"`{"\u202e":"\n*/"}`"#),
            (json!("x".repeat(100)), &format!("`\"{}…`", "x".repeat(79))),
        ] {
            assert_eq!(json_code(&value), code);
        }
        for (text, shown) in [("a`b", "`a.b`"), ("", r#"`""`"#), ("  ", r#"`"  "`"#)] {
            assert_eq!(code(text), shown);
        }
    }
}
