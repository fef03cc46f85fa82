//! Reads the file: every error is collected, with the key and its line.

use std::ops::Range;
use std::path::PathBuf;

use ops_runtime::nearest::{nearest, question};
use ops_runtime::spec::Diagnostic;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Config, Document};
use crate::types::Format;
use crate::{Error, Generator};

const TOP: [&str; 2] = ["generate", "documents"];
const GENERATE: [&str; 5] = ["out", "runtime", "formats", "methods", "only_used"];
const DOCUMENT: [&str; 16] = [
    "path",
    "source",
    "sha256",
    "overlays",
    "include",
    "exclude",
    "explicit_null",
    "schemas",
    "types",
    "rename",
    "rename_fields",
    "derives",
    "rust_types",
    "formats",
    "methods",
    "server",
];

/// The crates by which formats are named, and their formats.
const FORMATS: [(&str, &[Format]); 3] =
    [("chrono", &[Format::DateTime, Format::Date]), ("uuid", &[Format::Uuid]), ("url", &[Format::Uri])];

type Value<'t> = Spanned<DeValue<'t>>;

/// Reads a file; all errors in it become one error.
pub(super) fn config(path: PathBuf, text: &str) -> Result<Config, Error> {
    let mut reader = Reader { location: path.display().to_string(), text, faults: Vec::new() };
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        reader.fault(error.span().unwrap_or_default(), error.message().to_owned());
    }
    let mut config = Config { path, out: None, only_used: false, documents: Vec::new() };
    if errors.is_empty() {
        reader.config(root.get_ref(), &mut config);
    }
    let Reader { mut faults, .. } = reader;
    faults.sort_by_key(|fault| fault.position);
    Diagnostic::bound(&mut faults);
    if faults.is_empty() { Ok(config) } else { Err(Error::Document { diagnostics: faults }) }
}

struct Reader<'t> {
    location: String,
    text: &'t str,
    faults: Vec<Diagnostic>,
}

/// Settings for every document without its own.
#[derive(Default)]
struct General {
    runtime: Option<String>,
    formats: Vec<Format>,
    methods: Option<bool>,
}

/// A value, and the keys that lead to it.
struct Entry<'v, 't> {
    /// The last key.
    key: &'v str,
    /// All keys, as they are written with dots.
    place: String,
    value: &'v Value<'t>,
}

impl Entry<'_, '_> {
    fn span(&self) -> Range<usize> {
        self.value.span()
    }
}

impl<'t> Reader<'t> {
    fn fault(&mut self, span: Range<usize>, message: String) {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let (line, column) = (before.matches('\n').count() + 1, before.get(start..).map_or(0, |l| l.chars().count()));
        let fault = Diagnostic::error("", message).with_document(&self.location);
        self.faults.push(fault.with_position(line, column + 1));
    }

    /// Notes that a value has the wrong type.
    fn wrong<T>(&mut self, entry: &Entry<'_, 't>, wanted: &str) -> Option<T> {
        let found = match entry.value.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "`true` or `false`",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.fault(entry.span(), format!("`{}` is {wanted}, not {found}", entry.place));
        None
    }

    /// Notes an error of a setting.
    fn checked<T>(&mut self, entry: &Entry<'_, 't>, result: Result<T, Error>) -> Option<T> {
        result.map_err(|error| self.fault(entry.span(), format!("`{}`: {error}", entry.place))).ok()
    }

    fn config(&mut self, root: &DeTable<'t>, config: &mut Config) {
        let mut general = General::default();
        let root = self.entries(root, "", &TOP);
        for entry in root.iter().filter(|entry| entry.key == "generate") {
            for entry in self.table(entry, &GENERATE) {
                match entry.key {
                    "out" => config.out = self.string(&entry),
                    "runtime" => {
                        general.runtime = self.string(&entry);
                        if let Some(path) = &general.runtime {
                            let result = Generator::new().with_runtime(path);
                            general.runtime = self.checked(&entry, result).and(general.runtime);
                        }
                    }
                    "formats" => general.formats = self.formats(&entry),
                    "methods" => general.methods = self.flag(&entry),
                    _ => config.only_used = self.flag(&entry).unwrap_or(false),
                }
            }
        }
        for entry in root.iter().filter(|entry| entry.key == "documents") {
            for entry in self.table(entry, &[]) {
                let document = self.document(&entry, &general, config);
                config.documents.extend(document);
            }
        }
    }

    // This function and the next are not inlined into their only caller: one large function would take longer to compile.
    #[inline(never)]
    fn document(&mut self, entry: &Entry<'_, 't>, general: &General, config: &Config) -> Option<Document> {
        let mut document = Document { name: entry.key.to_owned(), ..Document::default() };
        if let Err(Error::Settings(message)) = crate::directory::check_namespace(entry.key) {
            self.fault(entry.span(), format!("`{}`: {message}", entry.place));
        }
        let (mut formats, mut methods) = (general.formats.clone(), general.methods);
        let mut generator = Generator::new();
        if let Some(runtime) = &general.runtime {
            generator = generator.with_runtime(runtime).unwrap_or_default();
        }
        let before = self.faults.len();
        let entries = self.table(entry, &DOCUMENT);
        let has_path = entries.iter().any(|entry| entry.key == "path");
        if !has_path && matches!(entry.value.get_ref(), DeValue::Table(_)) && self.faults.len() == before {
            let message = format!("`{}` has no `path`: that of the document, relative to this file", entry.place);
            self.fault(entry.span(), message);
        }
        let mut overlays = None;
        for entry in entries {
            match entry.key {
                "path" => document.path = self.path(&entry).unwrap_or_default(),
                "source" => document.source = self.string(&entry),
                "sha256" => document.sha256 = self.string(&entry),
                "overlays" => {
                    document.overlays = self.strings(&entry);
                    overlays = Some(entry);
                }
                "include" => document.include = self.strings(&entry),
                "exclude" => document.exclude = self.strings(&entry),
                "formats" => formats = self.formats(&entry),
                "methods" => methods = self.flag(&entry),
                _ => generator = self.generator_setting(&entry, generator),
            }
        }
        let is_folder = has_path && !document.path.is_empty() && config.resolve(&document.path).is_dir();
        if let Some(entry) = overlays.filter(|_| is_folder) {
            self.fault(entry.span(), format!("`{}` change one document, not a folder", entry.place));
        }
        generator = formats.into_iter().fold(generator, Generator::with_format);
        document.generator = if methods == Some(false) { generator.without_methods() } else { generator };
        Some(document)
    }

    /// The generator with a setting of its own.
    #[inline(never)]
    fn generator_setting(&mut self, entry: &Entry<'_, 't>, mut generator: Generator) -> Generator {
        match entry.key {
            "explicit_null" => self.strings(entry).into_iter().fold(generator, Generator::with_explicit_null),
            "schemas" => self.strings(entry).into_iter().fold(generator, Generator::with_schema),
            "types" => {
                for entry in self.table(entry, &[]) {
                    let Some(path) = self.string(&entry) else { continue };
                    let result = generator.clone().with_type(entry.key, &path);
                    generator = self.checked(&entry, result).unwrap_or(generator);
                }
                generator
            }
            "rename" => {
                for entry in self.table(entry, &[]) {
                    let Some(name) = self.string(&entry) else { continue };
                    let result = generator.clone().with_renamed_type(entry.key, name);
                    generator = self.checked(&entry, result).unwrap_or(generator);
                }
                generator
            }
            "rename_fields" => {
                for schema in self.table(entry, &[]) {
                    for entry in self.table(&schema, &[]) {
                        let Some(name) = self.string(&entry) else { continue };
                        let result = generator.clone().with_renamed_field(schema.key, entry.key, name);
                        generator = self.checked(&entry, result).unwrap_or(generator);
                    }
                }
                generator
            }
            "derives" => {
                for entry in self.table(entry, &[]) {
                    for derive in self.strings(&entry) {
                        let result = generator.clone().with_derive(entry.key, &derive);
                        generator = self.checked(&entry, result).unwrap_or(generator);
                    }
                }
                generator
            }
            "rust_types" => match self.flag(entry) {
                Some(true) => generator.with_rust_types(),
                _ => generator,
            },
            "server" => self.server(entry, generator),
            _ => generator,
        }
    }

    /// The members of a table, in the order of the file; unknown ones are errors, unless no names are given.
    fn table<'v>(&mut self, entry: &Entry<'v, 't>, known: &[&str]) -> Vec<Entry<'v, 't>> {
        match entry.value.get_ref() {
            DeValue::Table(table) => self.entries(table, &entry.place, known),
            _ => self.wrong(entry, "a table").unwrap_or_default(),
        }
    }

    fn entries<'v>(&mut self, table: &'v DeTable<'t>, place: &str, known: &[&str]) -> Vec<Entry<'v, 't>> {
        let mut entries = Vec::new();
        for (key, value) in table {
            let name: &str = key.get_ref();
            let is_bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
            let written = if is_bare { name.to_owned() } else { format!("{name:?}") };
            let place = if place.is_empty() { written } else { format!("{place}.{written}") };
            if known.is_empty() || known.contains(&name) {
                entries.push((key.span().start, Entry { key: name, place, value }));
                continue;
            }
            let meant = match nearest(name, known.iter().copied(), 2) {
                names if names.is_empty() => format!(": there are {}", listed(known)),
                names => question(&names),
            };
            self.fault(key.span(), format!("`{place}` is no setting{meant}"));
        }
        entries.sort_by_key(|(start, _)| *start);
        entries.into_iter().map(|(_, entry)| entry).collect()
    }

    fn string(&mut self, entry: &Entry<'_, 't>) -> Option<String> {
        match entry.value.get_ref() {
            DeValue::String(text) => Some(text.clone().into_owned()),
            _ => self.wrong(entry, "a text"),
        }
    }

    fn path(&mut self, entry: &Entry<'_, 't>) -> Option<String> {
        let path = self.string(entry)?;
        if path.contains("://") {
            let message = format!("`{}` is no file: `ops add {path}` fetches it", entry.place);
            self.fault(entry.span(), message);
        } else if path.is_empty() {
            self.fault(entry.span(), format!("`{}` is empty", entry.place));
        }
        Some(path)
    }

    fn flag(&mut self, entry: &Entry<'_, 't>) -> Option<bool> {
        match entry.value.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            _ => self.wrong(entry, "`true` or `false`"),
        }
    }

    fn server(&mut self, entry: &Entry<'_, 't>, generator: Generator) -> Generator {
        match entry.value.get_ref() {
            DeValue::Boolean(true) => return generator.with_server(),
            DeValue::Boolean(false) => {}
            DeValue::String(text) if text == "partial" => return generator.with_partial_server(),
            DeValue::String(text) => {
                self.fault(entry.span(), format!("`{}` is `true`, `false` or \"partial\", not {text:?}", entry.place));
            }
            _ => {
                let _: Option<()> = self.wrong(entry, "`true`, `false` or \"partial\"");
            }
        }
        generator
    }

    fn strings(&mut self, entry: &Entry<'_, 't>) -> Vec<String> {
        let DeValue::Array(items) = entry.value.get_ref() else {
            return self.wrong(entry, "a list of texts").unwrap_or_default();
        };
        let mut strings = Vec::new();
        for (index, value) in items.iter().enumerate() {
            let place = format!("{}[{index}]", entry.place);
            strings.extend(self.string(&Entry { key: "", place, value }));
        }
        strings
    }

    /// The formats with types of their own: `true` for all, or the names of crates.
    fn formats(&mut self, entry: &Entry<'_, 't>) -> Vec<Format> {
        let items = match entry.value.get_ref() {
            DeValue::Boolean(true) => return all_formats(),
            DeValue::Boolean(false) => return Vec::new(),
            DeValue::Array(items) => items,
            _ => return self.wrong(entry, "`true` or a list of crates").unwrap_or_default(),
        };
        let mut found = Vec::new();
        for (index, value) in items.iter().enumerate() {
            let entry = Entry { key: "", place: format!("{}[{index}]", entry.place), value };
            let Some(name) = self.string(&entry) else { continue };
            match FORMATS.iter().find(|(known, _)| *known == name) {
                Some((_, formats)) => found.extend_from_slice(formats),
                None => {
                    let known = listed(&FORMATS.map(|(name, _)| name));
                    self.fault(
                        entry.span(),
                        format!("`{}`: `{name}` is no crate of formats: there are {known}", entry.place),
                    );
                }
            }
        }
        found
    }
}

/// Every format.
pub(super) fn all_formats() -> Vec<Format> {
    FORMATS.iter().flat_map(|(_, formats)| formats.iter().copied()).collect()
}

/// Names as a list.
fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
