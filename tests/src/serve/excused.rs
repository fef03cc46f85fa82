//! The list of what is excused, `tests/serve.txt`: `document | what | how many`, a line each.
//!
//! What is a cause by its name, `unsent` for inputs that cannot be sent, or `document` for differences of the server's own
//! document. A document must have exactly what its lines say, so that nothing else hides behind an excuse.

use std::collections::{BTreeMap, BTreeSet};

use super::exchange::Report;

/// The numbers of the list, by document and by what they count.
#[derive(Debug, Default)]
pub struct Excused(BTreeMap<String, BTreeMap<String, usize>>);

impl Excused {
    /// Reads the list.
    ///
    /// # Errors
    /// If a line is not like the others, or stands there twice.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut excused = Self::default();
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            let parts: Vec<&str> = line.split('|').map(str::trim).collect();
            let [document, what, count] = parts[..] else {
                return Err(format!("`{line}` is not `document | what | how many`"));
            };
            let count = count.parse().map_err(|_| format!("`{line}` has no number"))?;
            if excused.0.entry(document.to_owned()).or_default().insert(what.to_owned(), count).is_some() {
                return Err(format!("`{document} | {what}` stands there twice"));
            }
        }
        Ok(excused)
    }

    /// How a document differs from its lines.
    pub fn faults(&self, document: &str, report: &Report) -> Vec<String> {
        let (none, found) = (BTreeMap::new(), found(report));
        let listed = self.0.get(document).unwrap_or(&none);
        let names: BTreeSet<&String> = listed.keys().chain(found.keys()).collect();
        let count = |of: &BTreeMap<String, usize>, name: &String| of.get(name).copied().unwrap_or_default();
        let differs = names.into_iter().filter(|name| count(listed, name) != count(&found, name));
        differs
            .map(|name| format!("{document} | {name} | {}, not {}", count(&found, name), count(listed, name)))
            .collect()
    }
}

/// What is excused in a report, with numbers above 0.
fn found(report: &Report) -> BTreeMap<String, usize> {
    let causes = report.lost.iter().map(|(cause, count)| (format!("{cause:?}"), *count));
    let others = [("unsent", report.unsent), ("document", report.document.faults.len())];
    let others = others.map(|(what, count)| (what.to_owned(), count));
    causes.chain(others).filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::cause::Cause;

    #[test]
    fn a_document_has_what_its_lines_say() {
        let list = Excused::parse("# list\n\npets | Empty | 2\npets | unsent | 1\nown/pets | Null | 1\n").unwrap();
        let report = Report { unsent: 1, lost: [(Cause::Empty, 2)].into(), ..Report::default() };
        assert_eq!(list.faults("pets", &report), [""; 0]);
        assert_eq!(list.faults("dogs", &report), ["dogs | Empty | 2, not 0", "dogs | unsent | 1, not 0"]);
        // Fewer of one kind do not make up for more of another.
        let report = Report { lost: [(Cause::Empty, 1), (Cause::Null, 2)].into(), ..Report::default() };
        let faults = ["pets | Empty | 1, not 2", "pets | Null | 2, not 0", "pets | unsent | 0, not 1"];
        assert_eq!(list.faults("pets", &report), faults);
        for text in ["pets | Empty", "pets | Empty | many", "pets | Empty | 1\npets | Empty | 2"] {
            assert!(Excused::parse(text).is_err(), "{text}");
        }
    }
}
