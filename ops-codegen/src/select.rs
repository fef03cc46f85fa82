//! Which operations of an API are wanted.

use ops_runtime::{Api, Diagnostic, OperationSpec};

use crate::Error;

/// The methods that a pattern may begin with.
const METHODS: [&str; 9] = ["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", "QUERY"];

/// Patterns that choose operations, and which of them have chosen any.
///
/// An operation is wanted if an `include` matches it, or if there is none, and no `exclude` matches it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
}

#[derive(Debug, Clone)]
struct Pattern {
    text: String,
    used: bool,
}

impl Selection {
    pub(crate) fn include(&mut self, pattern: String) {
        self.include.push(Pattern { text: pattern, used: false });
    }

    pub(crate) fn exclude(&mut self, pattern: String) {
        self.exclude.push(Pattern { text: pattern, used: false });
    }

    /// Leaves the wanted operations in the API, and among the diagnostics no message about the others.
    pub(crate) fn apply(&mut self, api: &mut Api, diagnostics: &mut Vec<Diagnostic>) {
        if self.include.is_empty() && self.exclude.is_empty() {
            return;
        }
        let (mut kept, mut gone) = (Vec::new(), Vec::new());
        api.operations.retain(|spec| {
            // Every pattern is tried, so that one that chooses nothing is noticed.
            let included = matched(&mut self.include, spec) || self.include.is_empty();
            let wanted = !matched(&mut self.exclude, spec) && included;
            let places = if wanted { &mut kept } else { &mut gone };
            places.extend(place(spec));
            wanted
        });
        // Two operations can come from one place: one that answers, and one that streams.
        gone.retain(|place| !kept.contains(place));
        let within = |pointer: &str, place: &String| {
            pointer.strip_prefix(place.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        diagnostics.retain(|diagnostic| !gone.iter().any(|place| within(&diagnostic.pointer, place)));
    }

    /// Fails if a pattern has chosen nothing of all that was read.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let mut patterns = self.include.iter().chain(&self.exclude);
        match patterns.find(|pattern| !pattern.used) {
            Some(Pattern { text, .. }) => Err(Error::Settings(format!(
                "no operation matches `{text}`: write an operation's id or name, `tag:NAME`, a path, or `METHOD path`; \
                 `*` stands for any text"
            ))),
            None => Ok(()),
        }
    }
}

/// Whether any pattern matches; notes all that do.
fn matched(patterns: &mut [Pattern], spec: &OperationSpec) -> bool {
    let mut any = false;
    for pattern in patterns {
        if matches(&pattern.text, spec) {
            pattern.used = true;
            any = true;
        }
    }
    any
}

/// The place of an operation in its document.
fn place(spec: &OperationSpec) -> Option<String> {
    let http = spec.http()?;
    let path = http.path.replace('~', "~0").replace('/', "~1");
    Some(format!("/paths/{path}/{}", http.method.to_lowercase()))
}

fn matches(pattern: &str, spec: &OperationSpec) -> bool {
    let pattern = pattern.trim();
    if let Some(tag) = pattern.strip_prefix("tag:") {
        return spec.tags.iter().any(|have| glob(tag, have));
    }
    let by_path = |path: &str| spec.http().is_some_and(|http| glob(path, &http.path));
    if pattern.starts_with('/') {
        return by_path(pattern);
    }
    if let Some((method, path)) = pattern.split_once(char::is_whitespace) {
        let method = method.to_uppercase();
        if method == "*" || METHODS.contains(&method.as_str()) {
            return spec.http().is_some_and(|http| glob(&method, &http.method)) && by_path(path.trim_start());
        }
    }
    glob(pattern, &spec.id) || glob(pattern, spec.name())
}

/// Whether the text is as the pattern says: `*` is any text, `?` any character, all else itself.
fn glob(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    // After the last star, and where in the text it was tried to end.
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
    use ops_runtime::{Definitions, HttpBinding};

    use super::*;

    fn api() -> Api {
        let operations = vec![
            OperationSpec::query("shop.listPets")
                .with_http(HttpBinding::new("GET", "/pets"))
                .with_tags(const { &[std::borrow::Cow::Borrowed("pets")] }),
            OperationSpec::query("shop.showPet").with_http(HttpBinding::new("GET", "/pets/{petId}")),
            OperationSpec::mutation("shop.pet add").with_http(HttpBinding::new("POST", "/pets")),
            OperationSpec::query("shop.ping").with_http(HttpBinding::new("GET", "/ping")),
        ];
        Api::new(Definitions::EMPTY, operations)
    }

    fn chosen(include: &[&str], exclude: &[&str]) -> Vec<String> {
        let mut selection = Selection::default();
        include.iter().for_each(|pattern| selection.include((*pattern).to_owned()));
        exclude.iter().for_each(|pattern| selection.exclude((*pattern).to_owned()));
        let mut api = api();
        selection.apply(&mut api, &mut Vec::new());
        api.operations.iter().map(|spec| spec.name().to_owned()).collect()
    }

    #[test]
    fn patterns_choose_operations() {
        for (include, exclude, names) in [
            (&[][..], &[][..], &["listPets", "showPet", "pet add", "ping"][..]),
            (&["listPets", "shop.ping"], &[], &["listPets", "ping"]),
            (&["*Pet*"], &[], &["listPets", "showPet"]),
            (&["tag:p?ts"], &[], &["listPets"]),
            (&["/pets/*"], &[], &["showPet"]),
            (&["/pets*"], &["post /pets"], &["listPets", "showPet"]),
            (&["pet add"], &[], &["pet add"]),
            (&["GET *"], &["/ping"], &["listPets", "showPet"]),
            (&["* /pets"], &[], &["listPets", "pet add"]),
            (&[], &["other.*"], &["listPets", "showPet", "pet add", "ping"]),
        ] {
            assert_eq!(chosen(include, exclude), names, "{include:?} without {exclude:?}");
        }
    }

    #[test]
    fn what_is_said_about_others_is_left_out() {
        let mut selection = Selection::default();
        selection.exclude("GET /pets".to_owned());
        let pointers = ["/paths/~1pets/get/parameters/0", "/paths/~1pets/get", "/paths/~1pets/getter", "/info"];
        let mut diagnostics = pointers.map(|pointer| Diagnostic::note(pointer, "odd")).to_vec();
        selection.apply(&mut api(), &mut diagnostics);
        let left: Vec<_> = diagnostics.iter().map(|diagnostic| diagnostic.pointer.as_str()).collect();
        assert_eq!(left, ["/paths/~1pets/getter", "/info"]);
        selection.finish().unwrap();
        selection.include("nothing".to_owned());
        assert!(selection.finish().unwrap_err().to_string().contains("`nothing`"));
    }

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
