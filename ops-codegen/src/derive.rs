//! The derives that a user asks for; `derivable.rs` finds the types that can have them.

use crate::Error;
use crate::path::item_path;

/// A derive that a user asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Derive {
    Std(Trait),
    /// The path of a macro.
    Macro(String),
}

/// A trait of the standard library that can be derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trait {
    Debug,
    Clone,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Copy,
    Default,
}

impl Trait {
    pub(crate) const ALL: [(&'static str, Self); 9] = [
        ("Debug", Self::Debug),
        ("Clone", Self::Clone),
        ("PartialEq", Self::PartialEq),
        ("Eq", Self::Eq),
        ("PartialOrd", Self::PartialOrd),
        ("Ord", Self::Ord),
        ("Hash", Self::Hash),
        ("Copy", Self::Copy),
        ("Default", Self::Default),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }

    /// The traits that it needs beside those that every type has.
    pub(crate) fn needs(self) -> &'static [Self] {
        if self == Self::Ord { &[Self::Eq, Self::PartialOrd] } else { &[] }
    }
}

impl Derive {
    /// The trait, if it is one of the standard library.
    pub(crate) fn std(&self) -> Option<Trait> {
        if let Self::Std(known) = self { Some(*known) } else { None }
    }

    /// Reads a derive: the name of a trait of the standard library, or the path of a macro.
    pub(crate) fn read(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let last = text.rsplit("::").next().unwrap_or(text);
        let root = text.trim_start_matches("::").split("::").next().unwrap_or_default();
        if matches!(last, "Serialize" | "Deserialize") {
            return Err(Error::Settings(format!("every type has `{last}`: leave it out")));
        }
        let known = Trait::ALL.iter().find(|(name, _)| *name == last);
        if let Some((_, known)) = known.filter(|_| text == last || matches!(root, "std" | "core")) {
            return Ok(Self::Std(*known));
        }
        match item_path(text) {
            Some(path) => Ok(Self::Macro(path)),
            None => {
                let help = "write a trait of the standard library, such as `Hash`, or a path, such as \
                            `schemars::JsonSchema`";
                Err(Error::Settings(format!("`{text}` is no derive: {help}")))
            }
        }
    }

    /// As it is written in an attribute.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Std(known) => known.name(),
            Self::Macro(path) => path,
        }
    }
}
