//! A list of texts, which is written `&["pets", "stock"]` in a const.

use std::fmt;

use serde_core::de::{Deserialize, Deserializer};
use serde_core::ser::{Serialize, Serializer};

/// A list of texts in a spec, such as its tags: borrowed in generated code, owned in a spec that was read at run time.
///
/// ```
/// use ops_runtime::spec::TextList;
///
/// const TAGS: TextList = TextList::new(&["pets", "stock"]);
/// let read: TextList = ["pets", "stock"].into_iter().collect();
/// assert_eq!(TAGS, read);
/// assert!(TAGS.contains("pets") && TAGS.join(", ") == "pets, stock");
/// ```
#[derive(Clone)]
pub struct TextList(Texts);

#[derive(Clone)]
enum Texts {
    Static(&'static [&'static str]),
    Owned(Vec<String>),
}

impl TextList {
    /// A list that borrows.
    pub const fn new(texts: &'static [&'static str]) -> Self {
        Self(Texts::Static(texts))
    }

    /// The texts, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        (0..self.len()).map(|at| self.get(at).unwrap_or_default())
    }

    /// The text at that place, counted from 0.
    pub fn get(&self, at: usize) -> Option<&str> {
        match &self.0 {
            Texts::Static(texts) => texts.get(at).copied(),
            Texts::Owned(texts) => texts.get(at).map(String::as_str),
        }
    }

    /// How many texts there are.
    pub const fn len(&self) -> usize {
        match &self.0 {
            Texts::Static(texts) => texts.len(),
            Texts::Owned(texts) => texts.len(),
        }
    }

    /// True if there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if this text is one of them.
    pub fn contains(&self, text: &str) -> bool {
        self.iter().any(|own| own == text)
    }

    /// All texts in one, with a separator between them.
    pub fn join(&self, separator: &str) -> String {
        match &self.0 {
            Texts::Static(texts) => texts.join(separator),
            Texts::Owned(texts) => texts.join(separator),
        }
    }
}

impl Default for TextList {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl From<Vec<String>> for TextList {
    fn from(texts: Vec<String>) -> Self {
        Self(Texts::Owned(texts))
    }
}

impl From<&'static [&'static str]> for TextList {
    fn from(texts: &'static [&'static str]) -> Self {
        Self::new(texts)
    }
}

impl<S: Into<String>> FromIterator<S> for TextList {
    fn from_iter<I: IntoIterator<Item = S>>(texts: I) -> Self {
        Self(Texts::Owned(texts.into_iter().map(Into::into).collect()))
    }
}

impl PartialEq for TextList {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for TextList {}

impl<const N: usize> PartialEq<[&str; N]> for TextList {
    fn eq(&self, other: &[&str; N]) -> bool {
        self.iter().eq(other.iter().copied())
    }
}

impl fmt::Debug for TextList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for TextList {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for TextList {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Vec::<String>::deserialize(d).map(Self::from)
    }
}
