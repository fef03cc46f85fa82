//! The list of what cannot agree, and why: `document | operation | place | what is found`, a line each.
//!
//! A line explains a fault only if what is found begins with what the line says. One that explains nothing, although its
//! document was run, is a fault itself. A document of ours is called `own/NAME`.

use std::cell::Cell;
use std::path::Path;

use super::Fault;
use crate::corpus;

/// The lines of the list.
#[derive(Debug, Default)]
pub struct Exceptions(Vec<Exception>);

#[derive(Debug)]
struct Exception {
    document: String,
    operation: String,
    place: String,
    found: String,
    is_used: Cell<bool>,
}

impl Exceptions {
    /// Reads the list.
    ///
    /// # Errors
    /// If a line is not like the others.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let exception = |line: &str| match line.splitn(4, " | ").map(str::trim).collect::<Vec<_>>()[..] {
            [document, operation, place, found] if ![document, operation, place, found].contains(&"") => {
                let [document, operation, place, found] = [document, operation, place, found].map(str::to_owned);
                Ok(Exception { document, operation, place, found, is_used: Cell::new(false) })
            }
            _ => Err(format!("`{line}` is not `document | operation | place | what is found`")),
        };
        lines.map(exception).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a line explains a fault of a document.
    pub fn explain(&self, document: &Path, fault: &Fault) -> bool {
        let document = corpus::label(document);
        let fits = |exception: &&Exception| {
            exception.document == document
                && exception.operation == fault.operation
                && exception.place == fault.difference.place
                && fault.difference.found.starts_with(&exception.found)
        };
        let mut is_explained = false;
        for exception in self.0.iter().filter(fits) {
            exception.is_used.set(true);
            is_explained = true;
        }
        is_explained
    }

    /// The lines about documents that were run which explain nothing.
    pub fn idle(&self, documents: &[&Path]) -> Vec<String> {
        let documents: Vec<String> = documents.iter().map(|document| corpus::label(document)).collect();
        let ran = |exception: &&Exception| documents.contains(&exception.document);
        let idle = self.0.iter().filter(ran).filter(|exception| !exception.is_used.get());
        idle.map(|line| format!("{} | {} | {} | {}", line.document, line.operation, line.place, line.found)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Difference;
    use super::*;

    #[test]
    fn a_line_explains_what_it_says_and_nothing_else() {
        let list =
            Exceptions::parse("# why\n\npets | show | input | /a does not match \"x | y\"\npets | list | input | /b\n");
        let list = list.unwrap();
        let fault = |operation: &str, place: &str, found: &str| Fault {
            operation: operation.to_owned(),
            way: "by id".to_owned(),
            difference: Difference::new(place, "", found),
        };
        let pets = Path::new("a/pets.json");
        assert_eq!(list.idle(&[pets]).len(), 2);
        assert!(!list.explain(pets, &fault("show", "input", "/a does not match \"z\"")));
        assert!(!list.explain(pets, &fault("show", "body", "/a does not match \"x | y\"")));
        assert!(!list.explain(pets, &fault("make", "input", "/a does not match \"x | y\"")));
        assert!(!list.explain(Path::new("dogs.json"), &fault("show", "input", "/a does not match \"x | y\"")));
        assert!(list.explain(pets, &fault("show", "input", "/a does not match \"x | y\"; more")));
        assert_eq!(list.idle(&[pets]), ["pets | list | input | /b"]);
        assert!(list.idle(&[Path::new("dogs.json")]).is_empty());
        // In the list, our own document is called `own/swagger`, and any other one of this name `swagger`.
        let own = corpus::root().join("tests/fixtures/openapi/swagger.yaml");
        let list = Exceptions::parse("swagger | renamePet | input | /a").unwrap();
        assert!(list.idle(&[&own]).is_empty() && !list.explain(&own, &fault("renamePet", "input", "/a")));
        let list = Exceptions::parse("own/swagger | renamePet | input | /a").unwrap();
        assert!(list.explain(&own, &fault("renamePet", "input", "/a")) && list.idle(&[&own]).is_empty());
        assert!(!list.explain(Path::new("swagger.yaml"), &fault("renamePet", "input", "/a")));
        assert!(Exceptions::parse("pets | show | input").is_err());
        assert!(Exceptions::parse("pets | show |  | x").is_err());
    }
}
