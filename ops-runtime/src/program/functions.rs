//! The names by which programs call operations.

use std::collections::BTreeMap;

use crate::model::nearest::nearest;
use crate::model::text::readable;

/// How many names an error suggests.
const SUGGESTED: usize = 3;

/// The names by which programs call operations: `ops.namespace.name(input)`.
///
/// ```
/// use ops_runtime::program::Functions;
///
/// let functions: Functions = [("shop", "showPet", "shop.showPet")].into_iter().collect();
/// assert_eq!(functions.find("shop", "showPet").unwrap(), "shop.showPet");
/// assert_eq!(functions.find("shop", "showPets").unwrap_err(), "there is no ops.shop.showPets; nearest: showPet");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Functions(BTreeMap<String, BTreeMap<String, String>>);

impl Functions {
    /// Makes an empty table of names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an operation: the two identifiers, and its id. It replaces an operation with the same identifiers.
    pub fn insert(&mut self, namespace: impl Into<String>, name: impl Into<String>, id: impl Into<String>) {
        self.0.entry(namespace.into()).or_default().insert(name.into(), id.into());
    }

    /// The id of `ops.namespace.name`.
    ///
    /// # Errors
    /// If there is none: a text for the program, with the nearest names.
    pub fn find(&self, namespace: &str, name: &str) -> Result<&str, String> {
        let names = self.names(namespace)?;
        match names.get(name) {
            Some(id) => Ok(id),
            None => Err(missing(&format!("ops.{namespace}.{name}"), name, names.keys())),
        }
    }

    /// True if `ops.namespace` or `ops.namespace.name` exists.
    pub(crate) fn has(&self, path: &[String]) -> bool {
        match path {
            [namespace] => self.0.contains_key(namespace),
            [namespace, name] => self.0.get(namespace).is_some_and(|names| names.contains_key(name)),
            _ => false,
        }
    }

    /// Checks that `ops.namespace` exists.
    pub(crate) fn check(&self, namespace: &str) -> Result<(), String> {
        self.names(namespace).map(drop)
    }

    fn names(&self, namespace: &str) -> Result<&BTreeMap<String, String>, String> {
        let found = self.0.get(namespace);
        found.ok_or_else(|| missing(&format!("ops.{namespace}"), namespace, self.0.keys()))
    }
}

fn missing<'a>(path: &str, wanted: &str, names: impl Iterator<Item = &'a String>) -> String {
    let found = nearest(wanted, names.map(String::as_str), SUGGESTED);
    let path = readable(path, 200);
    if found.is_empty() {
        return format!("there is no {path}");
    }
    format!("there is no {path}; nearest: {}", found.join(", "))
}

impl<A: Into<String>, B: Into<String>, C: Into<String>> FromIterator<(A, B, C)> for Functions {
    fn from_iter<I: IntoIterator<Item = (A, B, C)>>(names: I) -> Self {
        let mut functions = Self::new();
        for (namespace, name, id) in names {
            functions.insert(namespace, name, id);
        }
        functions
    }
}
