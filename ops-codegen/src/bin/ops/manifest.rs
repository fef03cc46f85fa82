//! The documents that `ops.toml` names: where each lies, where it comes from, and its digest.
//!
//! ```toml
//! [documents.shop]
//! path = "shop.yaml"                                # beside ops.toml
//! source = "https://shop.example.com/openapi.yaml"  # a URL or a file
//! sha256 = "9f86d0..."                              # of the file as it was fetched
//! ```
//!
//! The library reads the file; here it is edited: everything else in it stays as it is, comments included.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub(crate) use ops_codegen::config::NAME;
use ops_codegen::config::{Config, Document};
use toml_edit::{DocumentMut, Item, Table, value};

use crate::failure::Failure;

/// The key of the table of documents.
const DOCUMENTS: &str = "documents";

/// The file `ops.toml` of a folder.
pub(crate) struct Manifest {
    folder: PathBuf,
    config: Config,
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
        Self::read(folder, path, &text)
    }

    fn read(folder: &Path, path: PathBuf, text: &str) -> Result<Self, Failure> {
        let config = Config::parse(&path, text).map_err(Failure::config)?;
        let document = text.parse::<DocumentMut>();
        let document = document.map_err(|error| Failure::Usage(format!("`{}` is no TOML: {error}", path.display())))?;
        Ok(Self { folder: folder.to_owned(), config, document })
    }

    /// The documents, in the order of the file.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let entry = |document: &Document| Entry {
            name: document.name.clone(),
            path: document.path.clone(),
            source: document.source.clone(),
            sha256: document.sha256.clone(),
        };
        self.config.documents.iter().map(entry).collect()
    }

    /// True if the folder has the file.
    pub(crate) fn is_there(&self) -> bool {
        self.folder.join(NAME).exists()
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
        let (path, text) = (self.folder.join(NAME), self.document.to_string());
        if std::fs::read(&path).is_ok_and(|bytes| bytes == text.as_bytes()) {
            return Ok(());
        }
        // A link stays one: what it leads to is replaced.
        let written = replace(&path.canonicalize().unwrap_or_else(|_| path.clone()), &text);
        written.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))
    }
}

/// Writes a file whole beside the one that it replaces: on a disk that is full, what somebody wrote by hand stays.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let old = match OpenOptions::new().write(true).open(path) {
        Ok(old) => Some(old.metadata()?.permissions()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        // One that must not be written is not replaced either.
        Err(error) => return Err(error),
    };
    let fresh = path.with_file_name(format!(".{NAME}.{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&fresh)?;
    let filled = file.write_all(text.as_bytes()).and_then(|()| old.map_or(Ok(()), |old| file.set_permissions(old)));
    let written = filled.and_then(|()| file.sync_all()).and_then(|()| std::fs::rename(&fresh, path));
    written.inspect_err(|_| {
        // What is left of it would only take room.
        let _ = std::fs::remove_file(&fresh);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_wrote_stays() {
        let text = "# Mine\n[generate]\nout = \"src\" # here\n\n[documents.old]\npath = \"old.yaml\"   # kept\nsha256 = \"1\" # digest\nmethods = true\n";
        let mut manifest = Manifest::read(Path::new(""), PathBuf::from(NAME), text).unwrap();
        let [old] = &mut manifest.entries()[..] else { panic!() };
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

    #[cfg(unix)]
    #[test]
    fn the_file_is_replaced_whole() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = std::env::temp_dir().join(format!("ops-manifest-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("kept")).unwrap();
        let (file, link) = (folder.join("kept/own.toml"), folder.join(NAME));
        std::fs::write(&file, "# Mine\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        symlink("kept/own.toml", &link).unwrap();
        let save = |name: &str| {
            let mut manifest = Manifest::open(&folder).unwrap();
            let (name, path) = (name.to_owned(), format!("{name}.yaml"));
            manifest.set(&Entry { name, path, source: None, sha256: None }).unwrap();
            manifest.save()
        };
        save("shop").unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("# Mine") && text.contains("[documents.shop]"), "{text}");
        assert!(link.is_symlink());
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read_dir(folder.join("kept")).unwrap().count(), 1);
        // Where there is no room for another file, the old one stays as it is.
        let fresh = folder.join(format!("kept/.{NAME}.{}", std::process::id()));
        std::fs::create_dir(&fresh).unwrap();
        let Err(Failure::Failed(told)) = save("bank") else { panic!() };
        assert!(told.contains(NAME), "{told}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_no_document_is_an_error() {
        for (text, message) in [
            ("documents = 1", "`documents` is a table, not a number"),
            ("[documents]\nshop = 1", "`documents.shop` is a table, not a number"),
            ("[documents.shop]\n", "`documents.shop` has no `path`"),
            ("[documents.shop]\npath = 1", "`documents.shop.path` is a text, not a number"),
        ] {
            let result = Manifest::read(Path::new(""), PathBuf::from(NAME), text);
            let Err(Failure::Trouble(told)) = result.map(drop) else { panic!("{text}") };
            assert!(told.len() == 1 && told[0].message.starts_with(message), "{told:?}");
        }
    }
}
