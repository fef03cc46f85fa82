//! The selection of operations of an API.

use std::collections::{HashMap, HashSet};

use ops_runtime::spec::{Api, Diagnostic, OperationKind, OperationSpec};

use ops_runtime::spec::pointer;

/// Patterns that select operations, and notes of those that matched.
///
/// An operation is selected if an `include` matches it, or if there is none, and if no `exclude` matches it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
    /// These are only checked for matches here; the generator applies them.
    explicit_null: Vec<Pattern>,
    /// The setting that the patterns come from, if it has a name.
    origin: Option<String>,
    /// The names of all operations to select from, for suggestions.
    seen: std::collections::BTreeSet<String>,
}

/// The result of the patterns for an operation.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Choice {
    Wanted,
    Excluded,
    /// No `include` matches it.
    Unnamed,
}

#[derive(Debug, Clone)]
struct Pattern {
    text: String,
    used: bool,
}

impl Selection {
    /// A selection whose errors begin with the name of a setting.
    #[cfg(feature = "config")]
    pub(crate) fn of(origin: String) -> Self {
        Self { origin: Some(origin), ..Self::default() }
    }

    pub(crate) fn include(&mut self, pattern: String) {
        add(&mut self.include, pattern);
    }

    pub(crate) fn exclude(&mut self, pattern: String) {
        add(&mut self.exclude, pattern);
    }

    /// Adds a pattern of operations whose requests can send `null`.
    pub(crate) fn explicit_null(&mut self, pattern: String) {
        add(&mut self.explicit_null, pattern);
    }

    /// Notes the existing operations, and the patterns that match one.
    fn look_at(&mut self, api: &Api) {
        if self.include.is_empty() && self.exclude.is_empty() && self.explicit_null.is_empty() {
            return;
        }
        self.seen.extend(api.operations.iter().chain(&api.webhooks).map(|spec| spec.name().to_owned()));
        for spec in &api.operations {
            matched(&mut self.explicit_null, spec);
        }
    }

    fn choose(&mut self, spec: &OperationSpec) -> Choice {
        // Every pattern is tried, so that one without a match is noticed.
        let included = matched(&mut self.include, spec) || self.include.is_empty();
        match (matched(&mut self.exclude, spec), included) {
            (true, _) => Choice::Excluded,
            (false, true) => Choice::Wanted,
            (false, false) => Choice::Unnamed,
        }
    }

    /// True if an `include` matches.
    fn includes(&self, spec: &OperationSpec) -> bool {
        self.include.iter().any(|pattern| spec.matches(&pattern.text))
    }

    /// The beginning of messages about the document's settings; empty if they have no name.
    pub(crate) fn origin(&self) -> String {
        self.origin.as_ref().map(|origin| format!("{origin}: ")).unwrap_or_default()
    }

    /// The message about each pattern that matched nothing in all documents.
    pub(crate) fn finish(&self) -> impl Iterator<Item = String> {
        let patterns = self.include.iter().chain(&self.exclude).chain(&self.explicit_null);
        patterns.filter(|pattern| !pattern.used).map(move |Pattern { text, .. }| {
            let origin = self.origin();
            format!(
                "{origin}no operation matches `{text}`{}: write an operation's id or name, `tag:NAME`, a path, or `METHOD \
                 path`; `*` stands for any text",
                self.meant(text)
            )
        })
    }

    /// The names similar to a pattern, in brackets.
    fn meant(&self, pattern: &str) -> String {
        let name = pattern.split_once('.').map_or(pattern, |(_, name)| name);
        let seen = || self.seen.iter().map(String::as_str);
        let mut meant = ops_runtime::nearest::nearest(pattern, seen(), 3);
        if meant.is_empty() {
            meant = ops_runtime::nearest::nearest(name, seen(), 3);
        }
        let meant: Vec<String> = meant.iter().map(|name| format!("`{name}`")).collect();
        if meant.is_empty() { String::new() } else { format!(" (there is {})", meant.join(", ")) }
    }
}

/// Keeps in the API the operations that all of these select, and removes diagnostics about the others.
///
/// Each selection sees all operations, so that no pattern seems idle because of another selection. The stream of a selected
/// operation is selected, too, unless an `exclude` matches it; a diagnostic says so.
pub(crate) fn select(selections: &mut [&mut Selection], api: &mut Api, diagnostics: &mut Vec<Diagnostic>) {
    selections.iter_mut().for_each(|selection| selection.look_at(api));
    if selections.iter().all(|selection| selection.include.is_empty() && selection.exclude.is_empty()) {
        return;
    }
    let mut choices: Vec<Choice> = api.operations.iter().map(|spec| choose(selections, spec)).collect();
    let streams = streams(&api.operations, &mut choices);
    let excluded = api.operations.iter().zip(&choices).filter(|(_, choice)| **choice == Choice::Excluded);
    let is_included = |spec: &OperationSpec| selections.iter().any(|selection| selection.includes(spec));
    let is_cancelled = excluded.map(|(spec, _)| spec).any(is_included);
    let (mut kept, mut gone) = (HashSet::new(), HashSet::new());
    let mut choices = choices.into_iter();
    api.operations.retain(|spec| {
        let wanted = choices.next() == Some(Choice::Wanted);
        let places = if wanted { &mut kept } else { &mut gone };
        places.extend(place(spec));
        wanted
    });
    api.webhooks.retain(|spec| choose(selections, spec) == Choice::Wanted);
    let is_empty = api.operations.is_empty() && api.webhooks.is_empty();
    // Two operations can come from one place: one with a result, and one that streams.
    gone.retain(|place| !kept.contains(place));
    // A place is the first three steps from the root.
    let place = |pointer: &'_ str| pointer.match_indices('/').nth(3).map_or(pointer.len(), |(end, _)| end);
    diagnostics.retain(|diagnostic| {
        !diagnostic.pointer.get(..place(&diagnostic.pointer)).is_some_and(|place| gone.contains(place))
    });
    diagnostics.extend(streams);
    if is_empty && is_cancelled {
        let message = "`exclude` leaves out every operation that `include` selects";
        diagnostics.push(Diagnostic::warning("", message).with_help("remove a pattern from one of them"));
    }
}

/// The result of the patterns of several selections for an operation.
fn choose(selections: &mut [&mut Selection], spec: &OperationSpec) -> Choice {
    // Every selection is asked, so that its patterns are noted.
    let choices: Vec<Choice> = selections.iter_mut().map(|selection| selection.choose(spec)).collect();
    let has = |wanted: Choice| choices.contains(&wanted);
    if has(Choice::Excluded) {
        Choice::Excluded
    } else if has(Choice::Unnamed) {
        Choice::Unnamed
    } else {
        Choice::Wanted
    }
}

/// Adds a pattern once.
fn add(patterns: &mut Vec<Pattern>, text: String) {
    if !patterns.iter().any(|pattern| pattern.text == text) {
        patterns.push(Pattern { text, used: false });
    }
}

/// True if any pattern matches; notes all that do.
fn matched(patterns: &mut [Pattern], spec: &OperationSpec) -> bool {
    let mut any = false;
    for pattern in patterns {
        if spec.matches(&pattern.text) {
            pattern.used = true;
            any = true;
        }
    }
    any
}

/// The place of an operation in its document.
fn place(spec: &OperationSpec) -> Option<String> {
    let http = spec.http()?;
    let path = pointer::escaped(&http.path);
    Some(format!("/paths/{path}/{}", http.method.to_lowercase()))
}

/// Selects the streams of selected operations, with a diagnostic for each.
fn streams(specs: &[OperationSpec], choices: &mut [Choice]) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let wanted: Vec<bool> = choices.iter().map(|choice| *choice == Choice::Wanted).collect();
    let mut by_request: HashMap<(&str, &str), Vec<&OperationSpec>> = HashMap::new();
    for (spec, _) in specs.iter().zip(&wanted).filter(|(_, wanted)| **wanted) {
        if let Some(http) = spec.http() {
            by_request.entry((http.method.as_ref(), http.path.as_ref())).or_default().push(spec);
        }
    }
    for (spec, choice) in specs.iter().zip(choices).filter(|(_, choice)| **choice == Choice::Unnamed) {
        let http = spec.http();
        let others = http.and_then(|http| by_request.get(&(http.method.as_ref(), http.path.as_ref())));
        if let Some(of) = others.into_iter().flatten().find(|other| is_stream_of(spec, other)) {
            *choice = Choice::Wanted;
            diagnostics.push(told(spec, of));
        }
    }
    diagnostics
}

/// True if an operation streams what another gives as one result: they are two ways to call one endpoint.
fn is_stream_of(spec: &OperationSpec, other: &OperationSpec) -> bool {
    let (Some(http), Some(of)) = (spec.http(), other.http()) else { return false };
    spec.kind == OperationKind::Subscription
        && other.kind != OperationKind::Subscription
        && (&http.method, &http.path) == (&of.method, &of.path)
        && spec.name().strip_prefix(other.name()).is_some_and(|rest| rest.starts_with("_stream"))
}

/// The diagnostic that an operation was selected along with another.
fn told(stream: &OperationSpec, of: &OperationSpec) -> Diagnostic {
    let pointer = format!("/operations/{}", pointer::escaped(&stream.id));
    let message = format!("`{}` is taken along with `{}`: it gives the result as events", stream.id, of.id);
    Diagnostic::note(pointer, message).with_help(format!("exclude `{}` to leave it out", stream.name()))
}

#[cfg(test)]
mod tests {
    use ops_runtime::binding::HttpBinding;
    use ops_runtime::spec::Definitions;

    use super::*;

    fn api() -> Api {
        let operations = vec![
            OperationSpec::query("shop.listPets").with_http(HttpBinding::new("GET", "/pets")).with_tags(&["pets"]),
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
        select(&mut [&mut selection], &mut api, &mut Vec::new());
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
    fn selections_do_not_hide_operations_from_each_other() {
        let (mut file, mut line) = (Selection::default(), Selection::default());
        file.include("*Pet*".to_owned());
        file.exclude("show*".to_owned());
        line.include("GET *".to_owned());
        line.exclude("ping".to_owned());
        let mut api = api();
        select(&mut [&mut line, &mut file], &mut api, &mut Vec::new());
        let left: Vec<&str> = api.operations.iter().map(OperationSpec::name).collect();
        assert_eq!(left, ["listPets"]);
        assert_eq!(file.finish().chain(line.finish()).count(), 0);
    }

    #[test]
    fn what_is_said_about_others_is_left_out() {
        let mut selection = Selection::default();
        selection.exclude("GET /pets".to_owned());
        let pointers = ["/paths/~1pets/get/parameters/0", "/paths/~1pets/get", "/paths/~1pets/getter", "/info"];
        let mut diagnostics = pointers.map(|pointer| Diagnostic::note(pointer, "odd")).to_vec();
        select(&mut [&mut selection], &mut api(), &mut diagnostics);
        let left: Vec<_> = diagnostics.iter().map(|diagnostic| diagnostic.pointer.as_str()).collect();
        assert_eq!(left, ["/paths/~1pets/getter", "/info"]);
        assert_eq!(selection.finish().count(), 0);
        // Each that matches nothing is told, once.
        selection.include("nothing".to_owned());
        selection.exclude("pnig".to_owned());
        selection.explicit_null("pnig".to_owned());
        selection.explicit_null("pnig".to_owned());
        let told: Vec<String> = selection.finish().collect();
        assert!(told.len() == 3 && told[0].contains("`nothing`") && told[1].contains("(there is `ping`)"), "{told:?}");
    }

    #[test]
    fn patterns_that_leave_nothing_are_told() {
        for (include, exclude, is_told) in [
            (&["ping"][..], &["ping"][..], true),
            (&["GET *"], &["ping", "*Pet*"], true),
            (&["GET *"], &["ping"], false),
            (&["other"], &["ping"], false),
            // Whoever wants the schemas alone.
            (&[], &["*"], false),
        ] {
            let mut selection = Selection::default();
            include.iter().for_each(|pattern| selection.include((*pattern).to_owned()));
            exclude.iter().for_each(|pattern| selection.exclude((*pattern).to_owned()));
            let mut diagnostics = Vec::new();
            select(&mut [&mut selection], &mut api(), &mut diagnostics);
            let told: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
            let text = "`exclude` leaves out every operation that `include` selects";
            assert_eq!(
                told.iter().any(|told| told.contains(text)),
                is_told,
                "{include:?} without {exclude:?}: {told:?}"
            );
        }
    }

    #[test]
    fn streams_come_along() {
        let post = HttpBinding::new("POST", "/chat");
        let all = [
            OperationSpec::mutation("ai.chat").with_http(post.clone()),
            OperationSpec::subscription("ai.chat_stream").with_http(post.clone()),
            OperationSpec::mutation("ai.chatty").with_http(post.clone()),
            OperationSpec::subscription("ai.chatty_stream_2").with_http(post.clone()),
            OperationSpec::subscription("ai.other").with_http(post),
            OperationSpec::subscription("ai.chat_stream_too").with_http(HttpBinding::new("POST", "/other")),
        ];
        for (include, exclude, names, told) in [
            (&["chat"][..], &[][..], &["chat", "chat_stream"][..], 1),
            (&["chat", "chat_stream"], &[], &["chat", "chat_stream"], 0),
            (&["chat*"], &["chatty"], &["chat", "chat_stream", "chatty_stream_2", "chat_stream_too"], 0),
            (&["chat"], &["*_stream"], &["chat"], 0),
            (&["chat_stream"], &[], &["chat_stream"], 0),
            (&["chatty"], &[], &["chatty", "chatty_stream_2"], 1),
            (&["other"], &[], &["other"], 0),
        ] {
            let mut selection = Selection::default();
            include.iter().for_each(|pattern| selection.include((*pattern).to_owned()));
            exclude.iter().for_each(|pattern| selection.exclude((*pattern).to_owned()));
            let mut api = Api::new(Definitions::EMPTY, all.to_vec());
            let mut diagnostics = vec![Diagnostic::note("/paths/~1chat/post", "odd")];
            select(&mut [&mut selection], &mut api, &mut diagnostics);
            let chosen: Vec<&str> = api.operations.iter().map(OperationSpec::name).collect();
            assert_eq!(chosen, names, "{include:?} without {exclude:?}");
            assert_eq!(diagnostics.len(), 1 + told, "{diagnostics:?}");
        }
    }
}
