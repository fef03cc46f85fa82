//! The documents that `ops.toml` names: where each lies, where it comes from, and its digest.
//!
//! ```toml
//! [documents.shop]
//! path = "shop.yaml"                                # beside ops.toml
//! source = "https://shop.example.com/openapi.yaml"  # a URL or a file
//! sha256 = "9f86d0..."                              # of the file as it was fetched
//! ```
//!
//! Everything else in the file stays as it is, comments included.

use std::path::{Path, PathBuf};

use ops_codegen::write_if_changed;
use toml_edit::{DocumentMut, Item, Table, TableLike, value};

use crate::failure::Failure;

/// The name of the file.
pub(crate) const NAME: &str = "ops.toml";

/// The key of the table of documents.
const DOCUMENTS: &str = "documents";

/// The file `ops.toml` of a folder.
pub(crate) struct Manifest {
    folder: PathBuf,
    document: DocumentMut,
}

/// A document that the file names.
pub(crate) struct Entry {
    pub(crate) name: String,
    /// The path as the file has it.
    pub(crate) path: String,
    /// Where the document comes from; `None` if it is kept by hand.
    pub(crate) source: Option<String>,
    /// The SHA-256 of the document as it was fetched, in hexadecimal digits.
    pub(crate) sha256: Option<String>,
}

impl Manifest {
    /// Reads the file of a folder; one that does not exist is empty.
    pub(crate) fn open(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(NAME);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Failure::Failed(format!("`{}` cannot be read: {error}", path.display()))),
        };
        let document = text.parse::<DocumentMut>();
        let document = document.map_err(|error| Failure::Usage(format!("`{}` is no TOML: {error}", path.display())))?;
        Ok(Self { folder: folder.to_owned(), document })
    }

    /// The documents, in the order of the file.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, Failure> {
        let Some(documents) = self.document.get(DOCUMENTS) else { return Ok(Vec::new()) };
        let wrong = |place: &str, what: &str| Failure::Usage(format!("`{NAME}`: `{place}` is no {what}"));
        let documents = documents.as_table_like().ok_or_else(|| wrong(DOCUMENTS, "table"))?;
        let entry = |(name, item): (&str, &Item)| {
            let place = format!("{DOCUMENTS}.{name}");
            let table = item.as_table_like().ok_or_else(|| wrong(&place, "table"))?;
            let text = |table: &dyn TableLike, key: &str| match table.get(key) {
                Some(item) => item
                    .as_str()
                    .map(|text| Some(text.to_owned()))
                    .ok_or_else(|| wrong(&format!("{place}.{key}"), "text")),
                None => Ok(None),
            };
            let path = text(table, "path")?;
            let path = path.ok_or_else(|| Failure::Usage(format!("`{NAME}`: `{place}` has no `path`")))?;
            Ok(Entry { name: name.to_owned(), path, source: text(table, "source")?, sha256: text(table, "sha256")? })
        };
        documents.iter().map(entry).collect()
    }

    /// The path of an entry's document.
    pub(crate) fn path(&self, entry: &Entry) -> PathBuf {
        self.folder.join(&entry.path)
    }

    /// Adds an entry, or changes the one of that name.
    pub(crate) fn set(&mut self, entry: &Entry) -> Result<(), Failure> {
        let wrong = || Failure::Usage(format!("`{NAME}`: `{DOCUMENTS}` is no table of tables"));
        let mut tables = Table::new();
        tables.set_implicit(true);
        let documents = self.document.entry(DOCUMENTS).or_insert(Item::Table(tables));
        let documents = documents.as_table_like_mut().ok_or_else(wrong)?;
        let table = documents.entry(&entry.name).or_insert(Item::Table(Table::new()));
        let table = table.as_table_like_mut().ok_or_else(wrong)?;
        let members =
            [("path", Some(&entry.path)), ("source", entry.source.as_ref()), ("sha256", entry.sha256.as_ref())];
        for (key, text) in members.into_iter().filter_map(|(key, text)| Some((key, text?))) {
            match table.get_mut(key).and_then(Item::as_value_mut) {
                // What is written around a value stays.
                Some(old) => {
                    let around = old.decor().clone();
                    *old = text.as_str().into();
                    *old.decor_mut() = around;
                }
                None => drop(table.insert(key, value(text.as_str()))),
            }
        }
        Ok(())
    }

    /// Writes the file, if it has changed.
    pub(crate) fn save(&self) -> Result<(), Failure> {
        let written = write_if_changed(&self.folder.join(NAME), &self.document.to_string());
        written.map(drop).map_err(|error| Failure::Failed(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_wrote_stays() {
        let text = "# Mine\n[generate]\nout = \"src\" # here\n\n[documents.old]\npath = \"old.yaml\"   # kept\nsha256 = \"1\" # digest\nmore = 1\n";
        let mut manifest = Manifest { folder: PathBuf::new(), document: text.parse().unwrap() };
        let [old] = &mut manifest.entries().unwrap()[..] else { panic!() };
        assert_eq!((old.name.as_str(), old.path.as_str(), &old.source), ("old", "old.yaml", &None));
        old.sha256 = Some("2".to_owned());
        manifest.set(old).unwrap();
        let new = Entry {
            name: "new".into(),
            path: "n.json".into(),
            source: Some("https://x".into()),
            sha256: Some("3".into()),
        };
        manifest.set(&new).unwrap();
        let wanted = text.replace("\"1\"", "\"2\"")
            + "\n[documents.new]\npath = \"n.json\"\nsource = \"https://x\"\nsha256 = \"3\"\n";
        assert_eq!(manifest.document.to_string(), wanted);
    }

    #[test]
    fn what_is_no_document_is_an_error() {
        for (text, message) in [
            ("documents = 1", "`documents` is no table"),
            ("[documents]\nshop = 1", "`documents.shop` is no table"),
            ("[documents.shop]\n", "has no `path`"),
            ("[documents.shop]\npath = 1", "`documents.shop.path` is no text"),
        ] {
            let manifest = Manifest { folder: PathBuf::new(), document: text.parse().unwrap() };
            let Err(Failure::Usage(told)) = manifest.entries().map(drop) else { panic!("{text}") };
            assert!(told.contains(message), "{told}");
        }
    }
}
