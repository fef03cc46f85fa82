//! The settings of a generator, and checks that the API has what they name.

use std::collections::{BTreeMap, HashSet};

use ops_runtime::nearest::nearest;

use crate::derive::Derive;
use crate::types::Format;

/// Settings of a module.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// The formats with types of their own.
    pub(crate) formats: Vec<Format>,
    /// Patterns of the operations whose requests can send `null`.
    pub(crate) explicit_null: Vec<String>,
    /// True for a trait whose methods run the operations.
    pub(crate) methods: bool,
    /// The trait by which a program serves the operations; `None` for none.
    pub(crate) server: Option<Serving>,
    /// The identifiers that are used; `None` if all is to be generated.
    pub(crate) only: Option<HashSet<String>>,
    /// The paths of the user's own types, by the definitions that they stand for.
    pub(crate) types: BTreeMap<String, String>,
    /// True if the document may name types of crates.
    pub(crate) rust_types: bool,
    /// The names of types, by their definitions or by the names that they would have.
    pub(crate) type_names: BTreeMap<String, String>,
    /// The names of fields, by their types, as above, and the names of the properties.
    pub(crate) field_names: BTreeMap<(String, String), String>,
    /// Derives, each with the pattern of the types that get it.
    pub(crate) derives: Vec<(String, Derive)>,
    /// Patterns of definitions that are generated even if no operation reaches them.
    pub(crate) schemas: Vec<String>,
}

/// The methods that an implementation of a server must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Serving {
    /// A method for every operation.
    All,
    /// Methods for some; the others return that they are not implemented.
    Some,
}

/// Errors in the settings for one API.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    /// Settings that match nothing in the API; they may be meant for another.
    pub(crate) misses: Vec<Miss>,
    /// Settings that cannot be applied.
    pub(crate) faults: Vec<String>,
}

/// A setting that names a part of an API, the same for every API.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Setting {
    /// The user's own type for a schema.
    Type(String),
    /// The name of a type.
    TypeName(String),
    /// The name of a field: of a property of a type.
    FieldName(String, String),
    /// A derive for the types that a pattern matches.
    Derive(String, String),
    /// A pattern of schemas.
    Schema(String),
}

/// A setting that matches nothing.
#[derive(Debug, Clone)]
pub(crate) struct Miss {
    pub(crate) setting: Setting,
    /// What is missing; it depends on the API.
    what: String,
    /// A suggestion, and what to do.
    help: String,
    /// True if there is a suggestion.
    suggests: bool,
}

impl Miss {
    pub(crate) fn message(&self) -> String {
        format!("{}{}", self.what, self.help)
    }

    /// The most helpful of the messages about one setting: with a suggestion, or else the longest.
    pub(crate) fn best<'m>(misses: impl Iterator<Item = &'m Miss>) -> Option<String> {
        let misses = misses.map(|miss| (miss.suggests, miss.message()));
        misses.max_by_key(|(suggests, message)| (*suggests, message.len())).map(|(_, message)| message)
    }
}

impl Faults {
    /// Notes that a setting matches none of these candidates.
    pub(crate) fn miss<'n>(
        &mut self,
        setting: Setting,
        what: String,
        name: &str,
        candidates: impl IntoIterator<Item = &'n str>,
        todo: &str,
    ) {
        let meant: Vec<String> =
            nearest(name, candidates, 3).into_iter().map(|name| format!("`{}`", readable(name))).collect();
        let suggests = !meant.is_empty();
        let meant = if suggests { format!(" (there is {})", meant.join(", ")) } else { String::new() };
        self.misses.push(Miss { setting, what, help: format!("{meant}: {todo}"), suggests });
    }

    /// All messages.
    pub(crate) fn messages(&self) -> impl Iterator<Item = String> {
        self.misses.iter().map(Miss::message).chain(self.faults.iter().cloned())
    }
}

/// A name of the document in a line of its own.
fn readable(name: &str) -> String {
    crate::report::line(name)
}
