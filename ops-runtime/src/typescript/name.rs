//! The names of operations in JavaScript.
//!
//! An identifier is made of ASCII letters, digits and `_`; a run of other characters becomes one `_`, and camel case stays:
//! `repos/list-for-org` is `repos_list_for_org`, and `createRefund` is `createRefund`.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use crate::model::text::hash;

/// The longest identifier, in bytes.
const MAX: usize = 64;

/// Words that no name may be: reserved words, and members that JavaScript finds on every object or asks promises for.
const RESERVED: &[&str] = &[
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
    "__proto__",
    "arguments",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "constructor",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "globalThis",
    "hasOwnProperty",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "isPrototypeOf",
    "let",
    "new",
    "null",
    "package",
    "private",
    "propertyIsEnumerable",
    "protected",
    "prototype",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "then",
    "this",
    "throw",
    "toJSON",
    "toLocaleString",
    "toString",
    "true",
    "try",
    "typeof",
    "undefined",
    "valueOf",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// The name of an operation in JavaScript: `ops.<namespace>.<operation>`.
///
/// Both parts are identifiers, at most 64 bytes long, and neither is a reserved word or a member that every object has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Name<'a> {
    /// The identifier of the namespace.
    pub namespace: &'a str,
    /// The identifier of the operation in its namespace.
    pub operation: &'a str,
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ops.{}.{}", self.namespace, self.operation)
    }
}

/// The names of operations in JavaScript, found by ids, and ids found by names.
///
/// A name is made of its own id. If two ids give the same name, it belongs to the one that needs no change, else to the
/// first in byte order. The name of the other ends with a hash of its id.
///
/// ```
/// use ops_runtime::typescript::Names;
///
/// let names = Names::new(["github.repos/list-for-org", "shop.createRefund", "shop.delete"]);
/// assert_eq!(names.name("github.repos/list-for-org").unwrap().to_string(), "ops.github.repos_list_for_org");
/// assert_eq!(names.name("shop.delete").unwrap().operation, "delete_");
/// assert_eq!(names.id("shop", "createRefund"), Some("shop.createRefund"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Names {
    paths: BTreeMap<String, (String, String)>,
    ids: BTreeMap<String, BTreeMap<String, String>>,
}

impl Names {
    /// The names of operations with these ids, in any order. What has no dot is an operation of the namespace `_`.
    pub fn new<I: AsRef<str>>(ids: impl IntoIterator<Item = I>) -> Self {
        let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for id in ids {
            let (namespace, _) = parts(id.as_ref());
            let group = groups.entry(namespace.to_owned()).or_default();
            group.insert(id.as_ref().to_owned());
        }
        let namespaces = given(groups.keys().map(String::as_str), |namespace| namespace);
        let mut names = Self::default();
        for ((_, ids), namespace) in groups.iter().zip(namespaces) {
            let operations = given(ids.iter().map(String::as_str), |id| parts(id).1);
            let own = names.ids.entry(namespace.clone()).or_default();
            for (id, operation) in ids.iter().zip(operations) {
                own.insert(operation.clone(), id.clone());
                names.paths.insert(id.clone(), (namespace.clone(), operation));
            }
        }
        names
    }

    /// The name of the operation with that id.
    pub fn name(&self, id: &str) -> Option<Name<'_>> {
        self.paths.get(id).map(|(namespace, operation)| Name { namespace, operation })
    }

    /// The id of the operation at `ops.<namespace>.<operation>`.
    pub fn id(&self, namespace: &str, operation: &str) -> Option<&str> {
        self.ids.get(namespace)?.get(operation).map(String::as_str)
    }

    /// All ids with their names, in the byte order of the ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, Name<'_>)> {
        self.paths.iter().map(|(id, (namespace, operation))| (id.as_str(), Name { namespace, operation }))
    }
}

/// The namespace and the name of an id.
fn parts(id: &str) -> (&str, &str) {
    id.split_once('.').unwrap_or(("", id))
}

/// An identifier for each text, no two the same, in the order of the texts.
fn given<'a>(texts: impl Iterator<Item = &'a str> + Clone, own: impl Fn(&str) -> &str) -> Vec<String> {
    let plain: Vec<(&str, String)> = texts.map(|text| (text, identifier(own(text)))).collect();
    // A text that is its own identifier keeps it, whatever else would become the same.
    let exact = plain.iter().filter(|(text, identifier)| own(text) == identifier);
    let mut taken: HashSet<String> = exact.map(|(_, identifier)| identifier.clone()).collect();
    let each = plain.iter().map(|(text, identifier)| {
        if own(text) == identifier || taken.insert(identifier.clone()) {
            return identifier.clone();
        }
        let mut attempt = 0;
        loop {
            let name = hashed(identifier, text, attempt);
            if taken.insert(name.clone()) {
                return name;
            }
            attempt += 1;
        }
    });
    each.collect()
}

/// The identifier that a text becomes by itself. One that is too long is cut and ends with a hash of the text.
pub(super) fn identifier(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
    }
    if !text.ends_with('_') && name.len() > 1 && name.ends_with('_') {
        name.pop();
    }
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    if name.len() > MAX {
        name = hashed(&name, text, 0);
    }
    if RESERVED.binary_search(&name.as_str()).is_ok() {
        name.push('_');
    }
    name
}

/// The name, cut if need be, with a hash of the text that it stands for.
fn hashed(name: &str, text: &str, attempt: u32) -> String {
    let kept: String = name.chars().take(MAX - 9).collect();
    format!("{kept}_{:08x}", hash(text, attempt))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legible_identifiers() {
        assert!(RESERVED.is_sorted());
        for (text, wanted) in [
            ("repos/list-for-org", "repos_list_for_org"),
            ("createRefund", "createRefund"),
            ("GET /pets/{petId}", "GET_pets_petId"),
            ("pets.list/all", "pets_list_all"),
            ("_own", "_own"),
            ("own_", "own_"),
            ("2fa", "_2fa"),
            ("delete", "delete_"),
            ("__proto__", "__proto___"),
            ("constructor", "constructor_"),
            ("then", "then_"),
            ("toString", "toString_"),
            ("größe ändern", "gr_e_ndern"),
            ("日本", "_"),
            ("", "_"),
            ("a();*/evil`${x}`\u{2028}", "a_evil_x"),
        ] {
            assert_eq!(identifier(text), wanted, "{text:?}");
        }
        assert_eq!(identifier(&"x".repeat(100)).len(), MAX);
    }

    #[test]
    fn names_are_unlike_however_alike_their_hashes_are() {
        let ids = crate::model::text::alike("a.x");
        let names = Names::new(&ids);
        let unlike: BTreeSet<&str> = names.iter().map(|(_, name)| name.operation).collect();
        assert_eq!(unlike.len(), ids.len());
        assert!(unlike.iter().all(|name| name.starts_with('x') && name.len() <= 10), "{unlike:?}");
    }

    #[test]
    fn names_are_unlike_and_do_not_depend_on_the_order() {
        let ids = ["a.b-c", "a.b_c", "a.b/c", "x-y.z", "x_y.z", "a.日", "a.本", "plain", "a.b-c"];
        let names = Names::new(ids);
        assert_eq!(names.iter().len(), 8);
        assert_eq!(names.name("a.b_c").unwrap().operation, "b_c", "an identifier stays");
        let other = names.name("a.b-c").unwrap().operation;
        assert!(other.starts_with("b_c_") && other.len() == 12, "{other}");
        assert_eq!(names.name("x_y.z").unwrap().namespace, "x_y");
        assert_ne!(names.name("x-y.z").unwrap().namespace, "x_y");
        assert_eq!(names.name("plain").unwrap().to_string(), "ops._.plain");
        let paths: BTreeSet<String> = names.iter().map(|(_, name)| name.to_string()).collect();
        assert_eq!(paths.len(), 8);
        for (id, name) in names.iter() {
            assert_eq!(names.id(name.namespace, name.operation), Some(id));
        }
        let turned = Names::new(ids.iter().rev());
        assert!(turned.iter().eq(names.iter()));
        assert!(names.name("a.gone").is_none() && names.id("a", "gone").is_none());
    }
}
