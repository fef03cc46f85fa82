//! Questions, and the operations that answer them.

use ops_runtime::nearest::nearest;

use crate::catalogue::Catalogue;

pub(crate) struct Question {
    pub(crate) text: String,
    /// The ids of operations that answer it, of which one suffices.
    pub(crate) answers: Vec<String>,
}

/// The questions of a file that can be asked.
pub(crate) struct Questions {
    pub(crate) questions: Vec<Question>,
    /// The number of questions about documents that are missing.
    pub(crate) left_out: usize,
}

/// Reads lines of a question, a tab, and ids with commas between them.
///
/// # Errors
/// If an id does not exist although its document is there, or if its document is not known at all.
pub(crate) fn read(text: &str, catalogue: &Catalogue) -> Result<Questions, String> {
    let (mut questions, mut left_out) = (Vec::new(), 0);
    let mut unknown = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (question, ids) = line.split_once('\t').ok_or(format!("line {number} has no tab"))?;
        let ids: Vec<&str> = ids.split(',').map(str::trim).filter(|id| !id.is_empty()).collect();
        if ids.is_empty() && unknown.is_empty() {
            return Err(format!("line {number} names no operation"));
        }
        let mut answers = Vec::new();
        for id in ids {
            let found = catalogue.find(id);
            if found.is_empty() && !catalogue.is_about_others(id) {
                unknown.push(format!("line {number}: no operation `{id}`{}", near(id, catalogue)));
            }
            answers.extend(found);
        }
        match answers.is_empty() {
            true => left_out += 1,
            false => questions.push(Question { text: question.to_owned(), answers }),
        }
    }
    match unknown.as_slice() {
        [] if questions.is_empty() && left_out == 0 => Err("no questions".to_owned()),
        [] => Ok(Questions { questions, left_out }),
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
        let questions = read(text, &catalogue()).unwrap().questions;
        let read: Vec<_> =
            questions.iter().map(|question| (question.text.as_str(), question.answers.join(" "))).collect();
        let pets = "petshop.listPets swagger.listPets".to_owned();
        assert_eq!(read, [("all pets", pets), ("count", "warehouse.count".to_owned())]);
    }

    #[test]
    fn questions_about_documents_that_are_not_there_are_left_out() {
        let text = "an issue\tgithub-api.issues_create\npet\tpetshop.showPetById,ollama.chat\nlog\tmcp-grafana.query_loki_logs\n";
        let Questions { questions, left_out } = read(text, &catalogue()).unwrap();
        assert_eq!(
            questions.iter().map(|question| question.answers.join(" ")).collect::<Vec<_>>(),
            ["petshop.showPetById"]
        );
        assert_eq!(left_out, 2);
        // Dots in the name of a file are `_` in a namespace.
        assert_eq!(read("a\tag-azure_com__sql-elasticPools.list", &catalogue()).unwrap().left_out, 1);
        assert!(catalogue().is_known());
    }

    #[test]
    fn only_what_is_indexed_and_not_known_lifts_the_bounds() {
        let folder = std::env::temp_dir().join(format!("recall-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/openapi").to_owned();
        let catalogue = || Catalogue::read(&[own.clone(), folder.display().to_string()]).unwrap();
        write("manifest.json", "{}");
        // The file is known by its name and size, but it has no operations.
        write("museum.yaml", &" ".repeat(23_137));
        assert!(catalogue().is_known());
        let error = read("hours\tmuseum.getMuseumHours", &catalogue()).map(|_| ()).unwrap_err();
        assert!(error.contains("no operation `museum.getMuseumHours`"), "{error}");
        write(
            "inn.json",
            r#"{ "openapi": "3.1.0", "info": { "title": "Inn", "version": "1" }, "paths": { "/rooms": { "get": {} } } }"#,
        );
        assert!(!catalogue().is_known());
        std::fs::remove_dir_all(&folder).unwrap();
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
