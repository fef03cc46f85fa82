//! Rust identifiers from any text, without clashes.

use std::collections::{BTreeSet, HashMap};

/// Longer names are cut: a document may have any text as a name.
const LONGEST: usize = 96;

/// Words that cannot be identifiers. They include `gen` and the reserved words, so that output stays valid in later
/// editions.
const KEYWORDS: &[&str] = &[
    "_", "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do",
    "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super",
    "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Constructors of the prelude in generated patterns: a unit struct of that name would replace them.
const CONSTRUCTORS: &[&str] = &["Some", "None", "Ok", "Err"];

/// A type or a variant: `UpperCamel`, starting with an upper-case letter.
pub(crate) fn upper_camel(text: &str) -> String {
    let mut name = String::new();
    for word in limited(text) {
        let mut chars = word.chars();
        if let Some(first) = chars.next() {
            // Two separate numbers stay separate: 1.0 is not 10.
            if first.is_ascii_digit() && name.ends_with(|c: char| c.is_ascii_digit()) {
                name.push('_');
            }
            name.extend(capital(first));
            name.push_str(chars.as_str());
        }
    }
    match name.chars().next() {
        Some(first) if first.is_uppercase() => {}
        Some(first) if first.is_ascii_digit() => name.insert(0, 'N'),
        _ => name.insert(0, 'T'),
    }
    usable(name)
}

/// The variant for a text of an enum: `UpperCamel`.
///
/// A sign at its start that may turn the meaning around is spelled: `-name` is `MinusName`, and `!done` is `NotDone`.
/// Otherwise `Name` would be sent as `-name`.
pub(crate) fn variant(text: &str) -> String {
    let mut chars = text.chars();
    let sign = chars.next().filter(|c| matches!(c, '-' | '!' | '<' | '>'));
    // `<none>` is in brackets.
    let is_bracketed = sign == Some('<') && text.ends_with('>');
    match sign.and_then(spelled) {
        Some(word) if !is_bracketed && chars.clone().next().is_some_and(char::is_alphanumeric) => {
            upper_camel(&format!("{word} {}", chars.as_str()))
        }
        _ => upper_camel(text),
    }
}

/// A field: `snake_case`.
pub(crate) fn snake_case(text: &str) -> String {
    let mut name = limited(text).join("_");
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, 'n');
    }
    usable(name)
}

/// A static: `SCREAMING_SNAKE_CASE`, of a name that [`upper_camel`] made.
pub(crate) fn screaming(text: &str) -> String {
    limited(text).join("_").chars().flat_map(single_upper).collect()
}

fn usable(mut name: String) -> String {
    if is_reserved(&name) {
        name.push('_');
    }
    name
}

/// True for a word that no type and no field can be called.
pub(crate) fn is_reserved(name: &str) -> bool {
    KEYWORDS.contains(&name) || CONSTRUCTORS.contains(&name)
}

/// The letter in upper case, if that is one letter (it is two for `ß`).
fn single_upper(c: char) -> Option<char> {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(upper), None) => Some(upper),
        _ => Some(c),
    }
}

fn capital(c: char) -> Option<char> {
    single_upper(c)
}

fn limited(text: &str) -> Vec<String> {
    let mut length = 0;
    let mut words = words(text);
    words.retain(|word| {
        length += word.len() + 1;
        length <= LONGEST
    });
    if words.is_empty() {
        // A single word that is too long.
        words.push(text.chars().filter(char::is_ascii_lowercase).take(LONGEST).collect());
        words.retain(|word| !word.is_empty());
    }
    if words.is_empty() { vec!["empty".to_owned()] } else { words }
}

/// The lower-case words of a text, split at signs and changes of case.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let chars: Vec<char> = text.chars().take(4 * LONGEST).collect();
    let mut flush = |word: &mut String| {
        if !word.is_empty() {
            words.push(std::mem::take(word));
        }
    };
    for (i, &c) in chars.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| chars.get(i)).copied().unwrap_or(' ');
        let after = chars.get(i + 1).copied().unwrap_or(' ');
        if is_plain(c) {
            let starts = c.is_uppercase()
                && (before.is_lowercase()
                    || before.is_ascii_digit() && after.is_lowercase()
                    || before.is_uppercase() && after.is_lowercase());
            if starts {
                flush(&mut word);
            }
            let mut lower = c.to_lowercase();
            word.extend(lower.next());
        } else if c.is_alphabetic() {
            // An identifier may have this letter, but rustc warns of it, or it looks like another one.
            flush(&mut word);
            word.push_str(&format!("u{:x}", u32::from(c)));
            flush(&mut word);
        } else {
            flush(&mut word);
            if matches!(c, '+' | '-') && after.is_ascii_digit() && !before.is_alphanumeric() {
                word.push_str(spelled(c).unwrap_or_default());
                flush(&mut word);
            }
        }
    }
    flush(&mut word);
    if words.is_empty() { signs(&chars) } else { words }
}

/// The words for a text of signs only, such as `>=`.
fn signs(chars: &[char]) -> Vec<String> {
    let word = |c: &char| spelled(*c).map_or_else(|| format!("u{:x}", u32::from(*c)), str::to_owned);
    chars.iter().take(8).map(word).collect()
}

/// Letters that make identifiers without a warning: Latin, Chinese, Japanese and Korean. All others are written as code
/// points, because rustc considers many confusable.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, 'à'..='ö' | 'ø'..='ü' | 'À'..='Ö' | 'Ø'..='Ü')
        || matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}')
        || matches!(c, '\u{ac00}'..='\u{d7a3}')
}

fn spelled(c: char) -> Option<&'static str> {
    Some(match c {
        '+' => "plus",
        '-' => "minus",
        '*' => "star",
        '/' => "slash",
        '\\' => "backslash",
        '>' => "greater",
        '<' => "less",
        '=' => "equal",
        '!' => "not",
        '%' => "percent",
        '&' => "and",
        '|' => "or",
        '~' => "tilde",
        '^' => "caret",
        '@' => "at",
        '#' => "hash",
        '$' => "dollar",
        '.' => "dot",
        ',' => "comma",
        ':' => "colon",
        ';' => "semicolon",
        '?' => "question",
        '\'' => "quote",
        '"' => "quotes",
        '`' => "backtick",
        '_' => "underscore",
        ' ' => "space",
        '(' => "open",
        ')' => "close",
        '[' => "left",
        ']' => "right",
        _ => return None,
    })
}

/// The variant for unknown values: `Other`, unless the document has an `Other` of its own.
pub(crate) fn rest<'n>(variants: impl Iterator<Item = &'n str>) -> String {
    let mut scope = Scope::default();
    variants.for_each(|variant| _ = scope.take(variant));
    if scope.has("Other") { scope.take_camel("Unknown") } else { "Other".to_owned() }
}

/// The taken names of one scope.
#[derive(Default)]
pub(crate) struct Scope {
    taken: BTreeSet<String>,
    /// The last number given to a name that was requested more than once, by the text before the number.
    last: HashMap<String, usize>,
}

impl Scope {
    /// A scope in which these names are taken.
    pub(crate) fn with(taken: &[&str]) -> Self {
        Self { taken: taken.iter().map(|name| (*name).to_owned()).collect(), last: HashMap::new() }
    }

    /// A name in lower or upper case, followed by `_2`, `_3`, … if it is taken.
    pub(crate) fn take(&mut self, name: &str) -> String {
        self.numbered(name, "_")
    }

    /// A name in `UpperCamel`, followed by `2`, `3`, … if it is taken.
    ///
    /// `_` would trigger a lint there, so it is used only after a digit.
    pub(crate) fn take_camel(&mut self, name: &str) -> String {
        let digit = name.trim_end_matches('_').ends_with(|c: char| c.is_ascii_digit());
        self.numbered(name, if digit { "_" } else { "" })
    }

    fn numbered(&mut self, name: &str, gap: &str) -> String {
        if self.taken.insert(name.to_owned()) {
            return name.to_owned();
        }
        let stem = format!("{}{gap}", name.trim_end_matches('_'));
        // Counting on from the last number keeps this linear if a whole document requests one name.
        let mut number = self.last.get(&stem).copied().unwrap_or(1);
        loop {
            number += 1;
            let given = format!("{stem}{number}");
            if self.taken.insert(given.clone()) {
                self.last.insert(stem, number);
                return given;
            }
        }
    }

    /// Gives a name free.
    pub(crate) fn release(&mut self, name: &str) {
        self.taken.remove(name);
    }

    /// True if the name is taken.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.taken.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_any_text() {
        let table = [
            ("pet", "Pet", "pet"),
            ("showPetById", "ShowPetById", "show_pet_by_id"),
            ("pets.list/all", "PetsListAll", "pets_list_all"),
            ("HTTPServer", "HttpServer", "http_server"),
            ("URL", "Url", "url"),
            ("user-id", "UserId", "user_id"),
            ("user_id", "UserId", "user_id"),
            ("X-Rate-Limit", "XRateLimit", "x_rate_limit"),
            ("OAuth2Token", "OAuth2Token", "o_auth2_token"),
            ("$ref", "Ref", "ref_"),
            ("type", "Type", "type_"),
            ("self", "Self_", "self_"),
            ("Self", "Self_", "self_"),
            ("gen", "Gen", "gen_"),
            ("some", "Some_", "some"),
            ("3d", "N3d", "n3d"),
            ("1.0", "N1_0", "n1_0"),
            ("+1", "Plus1", "plus_1"),
            ("-1", "Minus1", "minus_1"),
            ("a-1", "A1", "a_1"),
            (">", "Greater", "greater"),
            (">=", "GreaterEqual", "greater_equal"),
            ("", "Empty", "empty"),
            ("_", "Underscore", "underscore"),
            ("\u{1f600}", "U1f600", "u1f600"),
            // `ß` looks like another letter: spelled as its code point.
            ("größe", "GröUdfE", "grö_udf_e"),
            ("名前", "T名前", "名前"),
            ("имя", "U438U43cU44f", "u438_u43c_u44f"),
            ("a\u{202e}b", "AB", "a_b"),
            ("x\"; fn main() {}", "XFnMain", "x_fn_main"),
        ];
        for (text, upper, snake) in table {
            assert_eq!(upper_camel(text), upper, "{text:?}");
            assert_eq!(snake_case(text), snake, "{text:?}");
        }
        assert_eq!(screaming("ShowPetById"), "SHOW_PET_BY_ID");
        assert_eq!(screaming("N1_0"), "N1_0");
    }

    #[test]
    fn a_sign_that_turns_the_meaning_around_is_in_the_name() {
        for (text, name) in [
            ("createdAt", "CreatedAt"),
            ("-createdAt", "MinusCreatedAt"),
            ("!done", "NotDone"),
            ("<a", "LessA"),
            (">a", "GreaterA"),
            ("<18", "Less18"),
            ("-1", "Minus1"),
            (">=", "GreaterEqual"),
            ("<none>", "None_"),
            ("a-b", "AB"),
            ("-_a", "A"),
            ("+name", "Name"),
            ("_id", "Id"),
            ("", "Empty"),
        ] {
            assert_eq!(variant(text), name, "{text:?}");
        }
    }

    #[test]
    fn no_word_of_the_language_is_a_name() {
        assert!(KEYWORDS.len() > 50 && CONSTRUCTORS.len() == 4);
        for word in KEYWORDS.iter().chain(CONSTRUCTORS) {
            for name in [upper_camel(word), snake_case(word)] {
                check(&name);
                assert!(!KEYWORDS.contains(&name.as_str()) && !CONSTRUCTORS.contains(&name.as_str()), "{word}: {name}");
            }
        }
        // Every word that a parser of the language refuses is in the list.
        for word in ["as", "async", "dyn", "crate", "extern", "super", "Self", "try", "yield", "macro", "priv", "_"] {
            assert!(KEYWORDS.contains(&word), "{word}");
            assert!(syn::parse_str::<syn::Ident>(word).is_err(), "{word}");
        }
    }

    /// It is an identifier, and not too long: a first letter and a last `_` may be added to what is cut.
    fn check(name: &str) {
        assert!(syn::parse_str::<syn::Ident>(name).is_ok(), "{name:?} is no identifier");
        assert!(name.len() <= LONGEST + 2, "{name:?} has {} bytes", name.len());
    }

    /// As rustc wants types to be called.
    fn check_camel(name: &str) {
        check(name);
        let inner = name.trim_end_matches('_');
        assert!(inner.starts_with(char::is_uppercase), "{name:?}");
        for (at, _) in inner.match_indices('_') {
            let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
            let (before, after) = inner.split_at(at);
            let between = is_digit(before.chars().next_back()) && is_digit(after.chars().nth(1));
            assert!(between, "{name:?} has a `_` that is not between two numbers");
        }
    }

    /// As rustc wants fields to be called.
    fn check_snake(name: &str) {
        check(name);
        assert!(!name.starts_with('_') && !name.contains("__"), "{name:?}");
        assert!(!name.chars().any(char::is_uppercase), "{name:?}");
    }

    /// Text of all that names are made of, and that breaks them.
    fn text() -> impl Strategy<Value = String> {
        const PARTS: &[&str] = &[
            "a",
            "B",
            "Pet",
            "pet",
            "type",
            "Self",
            "none",
            "1",
            "23",
            "_",
            "-",
            "+",
            ".",
            "/",
            " ",
            "\"",
            "{",
            "ß",
            "É",
            "ö",
            "ÿ",
            "名",
            "имя",
            "ǆ",
            "İ",
            "ﬁ",
            "\u{301}",
            "\u{202e}",
            "\0",
            "\n",
            "\u{1f600}",
            "r#",
            "'a",
            "wwwwwwwwwwwwwwwwwwww",
        ];
        let built = prop::collection::vec(prop::sample::select(PARTS), 0..24).prop_map(|parts| parts.concat());
        let long = ("[a-zA-Z0-9ö ]{1,3}", 1..400_usize).prop_map(|(word, times)| word.repeat(times));
        prop_oneof![3 => built, 2 => any::<String>(), 1 => long]
    }

    proptest! {
        #![proptest_config(crate::seeded::config(500))]

        #[test]
        fn any_text_gives_names(text in text()) {
            let (upper, snake) = (upper_camel(&text), snake_case(&text));
            check_camel(&upper);
            check_snake(&snake);
            for name in [&upper, &snake] {
                let name = name.as_str();
                prop_assert!(!KEYWORDS.contains(&name) && !CONSTRUCTORS.contains(&name), "{text:?} gives {name}");
            }
            let name = screaming(&upper);
            check(&name);
            prop_assert!(!name.chars().any(char::is_lowercase), "{text:?} gives {name}");
        }

        #[test]
        fn no_name_is_given_twice(texts in prop::collection::vec(text(), 1..12), times in 1..4_usize) {
            let (mut types, mut fields, mut seen) = (Scope::default(), Scope::with(&["self_"]), BTreeSet::new());
            let mut fields_seen = BTreeSet::from(["self_".to_owned()]);
            for text in texts.iter().cycle().take(texts.len() * times) {
                let (wish, field) = (upper_camel(text), snake_case(text));
                let (is_free, is_free_field) = (!types.has(&wish), !fields.has(&field));
                let (name, field_name) = (types.take_camel(&wish), fields.take(&field));
                check_camel(&name);
                check_snake(&field_name);
                prop_assert_eq!(is_free, name == wish);
                prop_assert_eq!(is_free_field, field_name == field);
                prop_assert!(types.has(&name) && seen.insert(name), "{:?} gives a type's name twice", text);
                prop_assert!(fields_seen.insert(field_name), "{:?} gives a field's name twice", text);
            }
        }

        #[test]
        fn the_rest_is_no_variant(texts in prop::collection::vec(prop_oneof![text(), "Other[23]?|Unknown[23]?".prop_map(|text| text)], 0..8)) {
            let mut scope = Scope::default();
            let variants: Vec<String> = texts.iter().map(|text| scope.take_camel(&upper_camel(text))).collect();
            let rest = rest(variants.iter().map(String::as_str));
            check_camel(&rest);
            prop_assert!(!variants.contains(&rest), "{} of {:?}", rest, variants);
        }
    }

    #[test]
    fn taken_names_get_a_number() {
        let mut scope = Scope::with(&["Pet2"]);
        let mut camel = |name: &str| scope.take_camel(name);
        assert_eq!((camel("Pet"), camel("Pet"), camel("Pet2")), ("Pet".into(), "Pet3".into(), "Pet2_2".into()));
        assert_eq!(
            (camel("A"), camel("A"), camel("None_"), camel("None_")),
            ("A".into(), "A2".into(), "None_".into(), "None2".into())
        );
        assert_eq!(scope.take("name"), "name");
        assert_eq!(scope.take("name"), "name_2");
        assert_eq!(scope.take("type_"), "type_");
        assert_eq!(scope.take("type_"), "type_2");
        assert_eq!(scope.take("SHOW_PET"), "SHOW_PET");
        assert_eq!(scope.take("SHOW_PET"), "SHOW_PET_2");
    }
}
