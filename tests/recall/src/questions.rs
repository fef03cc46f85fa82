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

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Catalogue {
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/");
        Catalogue::read(&["openapi", "mcp/tools"].map(|folder| format!("{fixtures}{folder}"))).unwrap()
    }

    #[test]
    fn a_line_is_a_question_and_the_ids_that_answer_it() {
        let text = "# which pets\n\nall pets\tpetshop.listPets, swagger.listPets\ncount\twarehouse.count\n";
        let questions = read(text, &catalogue()).unwrap();
        let read: Vec<_> =
            questions.iter().map(|question| (question.text.as_str(), question.answers.join(" "))).collect();
        let pets = "petshop.listPets swagger.listPets".to_owned();
        assert_eq!(read, [("all pets", pets), ("count", "warehouse.count".to_owned())]);
    }

    #[test]
    fn mistakes_are_told_with_their_lines() {
        let catalogue = catalogue();
        for (text, wanted) in [
            (
                "a\tpetshop.listPet\nb\tshop.count",
                "line 1: no operation `petshop.listPet`; there is `petshop.listPets`",
            ),
            ("a\tpetshop.listPet\nb\tshop.count", "line 2: no operation `shop.count`; there is `warehouse.count`"),
            ("all pets petshop.listPets", "line 1 has no tab"),
            ("all pets\t", "line 1 names no operation"),
            ("# nothing\n", "no questions"),
        ] {
            let error = read(text, &catalogue).map(|_| ()).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
