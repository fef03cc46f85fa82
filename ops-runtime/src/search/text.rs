//! What an operation says of itself, by where it says it.

mod properties;

use std::borrow::Cow;

pub(super) use self::properties::Known;
use crate::binding::Binding;
use crate::model::cut::start;
use crate::spec::OperationSpec;

/// Where a word of an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Name,
    /// The namespace, and the host of the API.
    Namespace,
    Title,
    /// The segments of the path that are no parameters.
    Path,
    Tags,
    /// The first sentence of the description.
    Lead,
    Description,
    /// Names of parameters and properties.
    Parameter,
    /// The first words of what is said of them.
    About,
    /// Words that mean what the method and the kind mean.
    Action,
}

impl Field {
    pub(super) const ALL: [Self; 10] = [
        Self::Name,
        Self::Namespace,
        Self::Title,
        Self::Path,
        Self::Tags,
        Self::Lead,
        Self::Description,
        Self::Parameter,
        Self::About,
        Self::Action,
    ];

    /// How much a word there counts.
    pub(super) const fn weight(self) -> f32 {
        match self {
            Self::Name => 7.0,
            Self::Namespace => 7.0,
            Self::Title => 7.0,
            Self::Path => 4.5,
            Self::Tags => 2.5,
            Self::Lead => 3.0,
            Self::Description => 1.0,
            Self::Parameter => 1.0,
            Self::About => 0.2,
            Self::Action => 4.0,
        }
    }

    /// So many words are usual there: among more, each counts less.
    pub(super) const fn usual(self) -> f32 {
        match self {
            Self::Name | Self::Path => 4.0,
            Self::Namespace | Self::Tags | Self::Action => 3.0,
            Self::Title => 5.0,
            Self::Lead => 12.0,
            Self::Description => 40.0,
            Self::Parameter => 15.0,
            Self::About => 60.0,
        }
    }

    /// A bit for the words there.
    pub(super) const fn bit(self) -> u8 {
        match self {
            Self::Name => 1,
            Self::Namespace => 2,
            Self::Title => 4,
            Self::Path => 8,
            Self::Tags => 16,
            Self::Lead => 32,
            Self::Description => 64,
            Self::Parameter | Self::About => 128,
            Self::Action => 0,
        }
    }

    /// True if words without meaning are left out there.
    pub(super) const fn is_prose(self) -> bool {
        matches!(self, Self::Lead | Self::Description | Self::About)
    }

    /// True if the words there are a part of what the operation means. A title that was taken from the description is not, as
    /// the description says it again.
    pub(super) const fn has_meaning(self, spec: &OperationSpec) -> bool {
        match self {
            Self::Name | Self::Namespace | Self::Lead => true,
            Self::Title => spec.title.is_some(),
            _ => false,
        }
    }
}

/// How much of an operation is read, in bytes of a text.
const MAX_NAME: usize = 300;
const MAX_TEXT: usize = 3_000;
const MAX_LEAD: usize = 200;
const MAX_TAGS: usize = 8;

/// Calls `take` with each text of an operation, cut to a bounded length.
pub(super) fn texts(spec: &OperationSpec, known: &mut Known, mut take: impl FnMut(Field, &str)) {
    take(Field::Name, start(spec.name(), MAX_NAME));
    take(Field::Namespace, start(spec.namespace(), MAX_NAME));
    if let Some(title) = &spec.title {
        take(Field::Title, start(title, MAX_NAME));
    }
    for tag in spec.tags.iter().take(MAX_TAGS) {
        take(Field::Tags, start(tag, MAX_NAME));
    }
    if let Binding::Http(http) = &spec.binding {
        for segment in segments(&http.path) {
            take(Field::Path, segment);
        }
        if let Some(server) = &http.server {
            take(Field::Namespace, host(start(server, MAX_NAME)));
        }
    }
    let description = without_tags(start(&spec.description, MAX_TEXT));
    let description = description.as_ref();
    let lead = lead(description);
    if spec.title.is_none() {
        // Tools of MCP servers have no other.
        take(Field::Title, start(lead, MAX_LEAD / 2));
    }
    take(Field::Lead, lead);
    take(Field::Description, description.get(lead.len()..).unwrap_or_default());
    properties::properties(spec, known, take);
}

/// A text without the tags of HTML in it, which some documents have.
fn without_tags(text: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, tag)) = rest.split_once('<') {
        let is_tag = tag.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
        let after = tag.split_once('>').filter(|_| is_tag).map(|(_, after)| after);
        kept.push_str(before);
        kept.push(' ');
        rest = after.unwrap_or(tag);
    }
    if kept.is_empty() {
        return Cow::Borrowed(text);
    }
    kept.push_str(rest);
    Cow::Owned(kept.trim_start().to_owned())
}

/// The segments of a path that are no parameters.
pub(super) fn segments(path: &str) -> impl Iterator<Item = &str> {
    start(path, MAX_NAME).split('/').filter(|segment| !segment.is_empty() && !segment.starts_with('{'))
}

/// A host's name without its last part: `api.stripe` of `https://api.stripe.com/v1`.
fn host(url: &str) -> &str {
    let host = url.split_once("://").map_or("", |(_, rest)| rest);
    let host = host.split(['/', ':', '?']).next().unwrap_or_default();
    if host.starts_with(|c: char| c.is_ascii_digit() || c == '{') {
        return "";
    }
    host.rsplit_once('.').map_or("", |(own, _)| own)
}

/// The first sentence or paragraph.
fn lead(text: &str) -> &str {
    let text = start(text, MAX_LEAD);
    let ends = [text.find(". "), text.find(".\n"), text.find("\n\n")];
    ends.into_iter().flatten().min().and_then(|end| text.get(..end)).unwrap_or(text)
}
