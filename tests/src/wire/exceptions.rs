//! The list of exceptions, `tests/wire.txt`, and how it is held against what the server says.
//!
//! A line is `document | operation | what the server says | cause`. It stands for that one operation, as long as the
//! server says just that: a line that no longer applies is a fault like an operation without a line.

use std::collections::BTreeSet;

use super::Report;

/// The exceptions.
#[derive(Debug, Default)]
pub struct Exceptions {
    lines: Vec<Line>,
}

/// One exception.
#[derive(Debug)]
struct Line {
    document: String,
    operation: String,
    said: String,
    cause: String,
}

/// What the list has to say of a complaint.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    /// The list names it, with this cause.
    Listed(String),
    /// It needs no line, for this reason.
    Excused(&'static str),
    /// It is a fault, for this reason.
    Fault(String),
}

impl Exceptions {
    /// Reads a list.
    ///
    /// # Errors
    /// If a line is no exception, or says of an operation what another one says already.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines: Vec<Line> = Vec::new();
        let mut seen = BTreeSet::new();
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            let parts: Vec<&str> = line.split('|').map(str::trim).collect();
            let [document, operation, said, cause] = parts[..] else {
                return Err(format!("`{line}` is not `document | operation | what the server says | cause`"));
            };
            if [document, operation, said, cause].contains(&"") {
                return Err(format!("`{line}` has an empty part"));
            }
            if !seen.insert((document.to_owned(), operation.to_owned())) {
                return Err(format!("`{document} | {operation}` stands there twice"));
            }
            lines.push(Line {
                document: document.to_owned(),
                operation: operation.to_owned(),
                said: said.to_owned(),
                cause: cause.to_owned(),
            });
        }
        Ok(Self { lines })
    }

    /// The verdict on each complaint of a document, in their order.
    pub fn verdicts(&self, document: &str, report: &Report) -> Vec<Verdict> {
        let verdict = |complaint: &super::Complaint| {
            let line = self.of(document).find(|line| line.operation == complaint.operation);
            match (line, complaint.excuse) {
                (Some(line), None) if line.said == complaint.said => Verdict::Listed(line.cause.clone()),
                (Some(line), None) => {
                    Verdict::Fault(format!("the list says `{}`, the server `{}`", line.said, complaint.said))
                }
                // Told with the lines that do not apply.
                (_, Some(excuse)) => Verdict::Excused(excuse),
                (None, None) => Verdict::Fault("it is not in the list".to_owned()),
            }
        };
        report.complaints.iter().map(verdict).collect()
    }

    /// What is wrong with the lines of a document that has been run, or could not be.
    pub fn stale(&self, document: &str, report: &Report) -> Vec<String> {
        let fault = |line: &Line| {
            let operation = &line.operation;
            let complaint = report.complaints.iter().find(|complaint| complaint.operation == *operation);
            if report.not_run.is_some() || report.failure.is_some() {
                return Some(format!("the list names `{operation}` of a document that was not run"));
            }
            if !report.sent.contains(operation) {
                return Some(format!("the list names `{operation}`, which the document does not have, or is not sent"));
            }
            match complaint.map(|complaint| complaint.excuse) {
                None => Some(format!("the list names `{operation}`, which is accepted")),
                Some(Some(excuse)) => Some(format!("the list names `{operation}`, which needs no line: {excuse}")),
                Some(None) => None,
            }
        };
        self.of(document).filter_map(fault).collect()
    }

    /// The lines that a document needs; the cause of one that is new is to be found out.
    pub fn record(&self, document: &str, report: &Report) -> Vec<String> {
        let needed = report.complaints.iter().filter(|complaint| complaint.excuse.is_none());
        needed
            .map(|complaint| {
                let line = self.of(document).find(|line| line.operation == complaint.operation);
                let cause = line.map_or("?", |line| &line.cause);
                format!("{document} | {} | {} | {cause}", complaint.operation, complaint.said)
            })
            .collect()
    }

    fn of<'a>(&'a self, document: &'a str) -> impl Iterator<Item = &'a Line> {
        self.lines.iter().filter(move |line| line.document == document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Complaint;

    fn report(complaints: &[(&str, &str, Option<&'static str>)]) -> Report {
        let complaint = |(operation, said, excuse): &(&str, &str, Option<&'static str>)| Complaint {
            operation: (*operation).to_owned(),
            said: (*said).to_owned(),
            what: String::new(),
            excuse: *excuse,
        };
        Report {
            sent: ["a", "b", "c", "d", "e"].map(str::to_owned).into(),
            complaints: complaints.iter().map(complaint).collect(),
            ..Report::default()
        }
    }

    #[test]
    fn a_line_applies_to_what_it_says_alone() {
        let list = "# list\n\ndoc | a | X: type at /body | why\ndoc | b | X: type at /body | why\ndoc | c | X | why\n\
                    doc | e | X | why\ndoc | * | X | why\nother | d | X | why\n";
        let list = Exceptions::parse(list).unwrap();
        let report = report(&[
            ("a", "X: type at /body", None),
            ("b", "X: type at /query", None),
            ("d", "X", None),
            ("e", "X", Some("a rule")),
        ]);
        let verdicts = list.verdicts("doc", &report);
        assert_eq!(verdicts[0], Verdict::Listed("why".to_owned()));
        assert_eq!(
            verdicts[1],
            Verdict::Fault("the list says `X: type at /body`, the server `X: type at /query`".to_owned())
        );
        assert_eq!(verdicts[2], Verdict::Fault("it is not in the list".to_owned()));
        assert_eq!(verdicts[3], Verdict::Excused("a rule"));
        // Accepted, excused by a rule, and not there: a `*` stands for itself.
        let stale = list.stale("doc", &report);
        assert_eq!(stale.len(), 3, "{stale:?}");
        assert!(stale[0].contains("`c`, which is accepted") && stale[1].contains("`e`, which needs no line"));
        assert!(stale[2].contains("`*`, which the document does not have"));
        assert_eq!(list.stale("third", &report), Vec::<String>::new());
        let record = ["doc | a | X: type at /body | why", "doc | b | X: type at /query | why", "doc | d | X | ?"];
        assert_eq!(list.record("doc", &report), record);
    }

    #[test]
    fn lines_of_a_document_that_was_not_run_are_stale() {
        let list = Exceptions::parse("doc | a | X | why").unwrap();
        let report = Report { not_run: Some("the server cannot load it".to_owned()), ..report(&[]) };
        assert_eq!(list.stale("doc", &report).len(), 1);
    }

    #[test]
    fn what_is_no_exception_is_refused() {
        for text in ["doc | a | why", "doc | a | | why", "doc | a | X | why | more", "d | a | X | w\nd | a | Y | w"] {
            assert!(Exceptions::parse(text).is_err(), "{text}");
        }
    }
}
