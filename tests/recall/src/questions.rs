//! Questions, and the operations that answer them.

use ops_runtime::nearest::nearest;

use crate::catalogue::Catalogue;

pub(crate) struct Question {
    pub(crate) text: String,
    /// The ids of operations that answer it, of which one suffices.
    pub(crate) answers: Vec<String>,
}

/// Reads lines of a question, a tab, and ids with commas between them.
pub(crate) fn read(text: &str, catalogue: &Catalogue) -> Result<Vec<Question>, String> {
    let mut questions = Vec::new();
    let mut unknown = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (question, ids) = line.split_once('\t').ok_or(format!("line {number} has no tab"))?;
        let mut answers = Vec::new();
        for id in ids.split(',').map(str::trim).filter(|id| !id.is_empty()) {
            let found = catalogue.find(id);
            if found.is_empty() {
                unknown.push(format!("line {number}: no operation `{id}`{}", near(id, catalogue)));
            }
            answers.extend(found);
        }
        if answers.is_empty() && unknown.is_empty() {
            return Err(format!("line {number} names no operation"));
        }
        questions.push(Question { text: question.to_owned(), answers });
    }
    match unknown.as_slice() {
        [] if questions.is_empty() => Err("no questions".to_owned()),
        [] => Ok(questions),
        _ => Err(unknown.join("\n")),
    }
}

/// The ids that may have been meant: of the same namespace first, else with the same name.
fn near(id: &str, catalogue: &Catalogue) -> String {
    let namespace = id.split_once('.').map_or("", |(namespace, _)| namespace);
    let name = id.rsplit_once('.').map_or(id, |(_, name)| name);
    let is_same = |other: &&str| other.split_once('.').is_some_and(|(other, _)| other == namespace);
    let mut found = nearest(id, catalogue.ids().filter(is_same), 3);
    if found.is_empty() {
        found = catalogue
            .ids()
            .filter(|other| other.split_once('.').is_some_and(|(_, other)| other == name))
            .take(3)
            .collect();
    }
    if found.is_empty() {
        found = nearest(id, catalogue.ids(), 3);
    }
    if found.is_empty() { String::new() } else { format!("; there is `{}`", found.join("`, `")) }
}
