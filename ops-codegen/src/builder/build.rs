//! From a builder to modules, files, and the lines that cargo needs.

use std::collections::{BTreeSet, HashSet};
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

use ops_runtime::openapi::{FileSource, file_namespace};
use ops_runtime::spec::{Diagnostic, Severity};

use super::claim::claim;
use super::included::include;
use super::run::Run;
use super::used::{Kept, Made, Note, Sources};
use super::{Builder, Input, Kind, Module};
use crate::Error;
use crate::directory::check_namespace;
use crate::output::{is_generated, write_if_changed};

/// How many warnings are shown for a document; a line gives the number of the rest.
const SHOWN: usize = 20;

impl Builder {
    /// Generates every module, without writing files.
    ///
    /// The diagnostics of skipped files of a directory are those of the last module.
    ///
    /// # Errors
    /// If documents cannot be read or are of the wrong kind, if two have the same namespace, if a pattern matches
    /// nothing, if a setting of a generator matches nothing in all of its documents or cannot be applied, or if a
    /// method that configures the last added document is called before any was added. An invalid file of a directory is
    /// not an error: see [`dir`](Self::dir).
    pub fn generate(&self) -> Result<Vec<Module>, Error> {
        let folder = self.config.as_ref().and_then(|path| path.parent());
        let used = match folder {
            _ if !self.only_used => None,
            // The sources beside the file; in a build script, those of its package.
            Some(folder) => Some(Sources::below(folder).names),
            None => Some(Sources::read().names),
        };
        self.generate_for(used)
    }

    fn generate_for(&self, used: Option<HashSet<String>>) -> Result<Vec<Module>, Error> {
        if !self.early.is_empty() {
            let methods = self.early.iter().map(|method| format!("`{method}`")).collect::<Vec<_>>().join(", ");
            let message = "write such a method behind the document that it is about";
            return Err(Error::Settings(format!("before any document, there is nothing for {methods}: {message}")));
        }
        if self.generator.is_some() && !self.inputs.is_empty() && self.inputs.iter().all(|it| it.generator.is_some()) {
            let hint = match &self.config {
                Some(path) => format!("write its settings in `{}`", path.display()),
                None => "leave it out, or leave out `with_document_generator` behind a document".to_owned(),
            };
            let told = "`with_generator` is for documents without a generator of their own, and every document has one";
            return Err(Error::Settings(format!("{told}: {hint}")));
        }
        let mut run = Run::new(self, used);
        for (at, input) in self.inputs.iter().enumerate() {
            run.use_generator_of(at);
            run.select_by(input);
            // Errors of all documents are reported together.
            match Self::read(input, &mut run) {
                Err(Error::Document { diagnostics }) => run.unreadable(diagnostics),
                other => other?,
            }
        }
        run.finish()
    }

    /// Generates the modules of an input.
    fn read(input: &Input, run: &mut Run) -> Result<(), Error> {
        if !input.overlays.is_empty() && !matches!(input.kind, Kind::Document(..)) {
            return Err(Error::Settings("an overlay changes a document: add it behind one".to_owned()));
        }
        let named = || {
            let namespace = input.namespace.clone().unwrap_or_default();
            check_namespace(&namespace).map(|()| namespace)
        };
        match &input.kind {
            Kind::Document(url, _) if url.contains("://") => {
                let told = Diagnostic::error("", format!("`{url}` is no file: `ops add {url}` fetches it"));
                let help = "a build reads files, so that it is the same without a network";
                Err(Error::Document { diagnostics: vec![told.with_help(help)] })
            }
            Kind::Document(location, form) => {
                let namespace = input.namespace.clone().unwrap_or_else(|| file_namespace(Path::new(location)));
                check_namespace(&namespace)?;
                run.document(location, *form, FileSource::new(), &input.overlays, &namespace)
            }
            Kind::Directory(path) if input.namespace.is_some() => {
                let message = format!("`{}` is a directory: its files have their own namespaces", path.display());
                Err(Error::Settings(message))
            }
            Kind::Directory(path) => run.directory(path),
            Kind::Value(document) => run.value(document, &named()?),
            Kind::Api(api, diagnostics) => run.module(named()?, api.clone(), diagnostics.clone(), Vec::new(), ""),
        }
    }

    /// Generates every module into a file of its own, `<namespace>.rs`, and reports the read files to cargo.
    ///
    /// In `$OUT_DIR`, `include_operations!` can include these modules; its error for any other name lists them.
    ///
    /// A file is written only if its content changes. Warnings about the documents become warnings of cargo.
    ///
    /// # Errors
    /// If nothing could be generated, if a file cannot be written, if another builder of this process has written a module
    /// of that name, or if a module would overwrite a file of [`with_out_dir`](Self::with_out_dir) that ops-codegen did not
    /// write.
    pub fn build(&self) -> Result<(), Error> {
        let out_dir = match (&self.out_dir, std::env::var_os("OUT_DIR")) {
            (Some(path), _) => path.clone(),
            (None, Some(path)) => PathBuf::from(path),
            (None, None) => {
                return Err(Error::Settings("`OUT_DIR` is not set: name a folder with `with_out_dir`".to_owned()));
            }
        };
        let settings = self.fingerprint();
        if !self.only_used {
            let modules = self.generate_for(None)?;
            rerun(self.read_by(&modules));
            let (written, lines) = self.write(&out_dir, &modules, settings)?;
            include(&written);
            warn(&lines);
            return Ok(());
        }
        let sources = Sources::read();
        rerun(sources.folders.iter());
        // Any edit of the sources leads here; most use no new names.
        let files_only = self.inputs.iter().all(|input| matches!(input.kind, Kind::Document(..) | Kind::Value(_)));
        // Of this machine, so that it has no place among sources.
        let notes = std::env::var_os("OUT_DIR").map_or_else(|| out_dir.clone(), PathBuf::from);
        let note = Note::new(settings, files_only, &notes, &self.first_namespace(), &out_dir);
        if let Some(Kept { files, modules, lines }) = note.unchanged(&sources.names) {
            claim(modules.iter().map(PathBuf::as_path), settings)?;
            rerun(files.iter());
            include(&modules);
            warn(&lines);
            return Ok(());
        }
        let begun = note.begin();
        let modules = self.generate_for(Some(sources.names.clone()))?;
        rerun(self.read_by(&modules));
        let (written, lines) = self.write(&out_dir, &modules, settings)?;
        let known = modules.iter().flat_map(|module| &module.generated.names).collect();
        let made = Made { files: self.read_by(&modules).into_iter().cloned().collect(), known, written, lines };
        note.write(begun, &sources.names, &made);
        include(&made.written);
        warn(&made.lines);
        Ok(())
    }

    /// Writes the modules of a builder with these settings; returns the files, and the warnings about the documents.
    fn write(&self, out_dir: &Path, modules: &[Module], settings: u64) -> Result<(Vec<PathBuf>, Vec<String>), Error> {
        let files = modules.iter().flat_map(|module| {
            let source = (format!("{}.rs", module.namespace), module.generated.source.as_str());
            std::iter::once(source).chain(module.included()).map(move |(name, text)| (out_dir.join(name), text))
        });
        let files: Vec<(PathBuf, &str)> = files.collect();
        let paths = || files.iter().map(|(path, _)| path.as_path());
        claim(paths(), settings)?;
        if self.out_dir.is_some() {
            // What is in `$OUT_DIR` was left by a build.
            keep_foreign(paths())?;
        }
        for (path, text) in &files {
            write_if_changed(path, text)?;
        }
        let lines = modules.iter().flat_map(|module| warnings(&module.generated.diagnostics)).collect();
        Ok((files.into_iter().map(|(path, _)| path).collect(), lines))
    }

    /// The files that the modules were made of, those that were missing, and the directories: in them, cargo also notices
    /// added files.
    fn read_by<'m>(&'m self, modules: &'m [Module]) -> BTreeSet<&'m PathBuf> {
        let directories = self.inputs.iter().filter_map(|input| match &input.kind {
            Kind::Directory(path) => Some(path),
            _ => None,
        });
        let files = modules.iter().flat_map(|module| module.files.iter().chain(&module.missing));
        files.chain(directories).chain(&self.config).collect()
    }

    /// A number for the settings, without what is read.
    fn fingerprint(&self) -> u64 {
        struct Text(DefaultHasher);
        impl Write for Text {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                self.0.write(text.as_bytes());
                Ok(())
            }
        }
        let mut text = Text(DefaultHasher::new());
        // A document that is a value is part of it, and may be large: no text is made of it. A hasher takes all of it.
        _ = write!(text, "{self:?}");
        text.0.finish()
    }

    /// The namespace of the first module, as far as it is known before anything is read.
    fn first_namespace(&self) -> String {
        match self.inputs.first() {
            Some(Input { namespace: Some(namespace), .. }) => namespace.clone(),
            Some(Input { kind: Kind::Document(location, _), .. }) => file_namespace(Path::new(location)),
            _ => String::new(),
        }
    }
}

/// Refuses to overwrite modules that ops-codegen did not write. Only sources say who wrote them: what belongs to a module, such
/// as `shop.others.json`, is not asked.
fn keep_foreign<'p>(files: impl Iterator<Item = &'p Path>) -> Result<(), Error> {
    let is_foreign = |path: &&Path| {
        let is_module = path.extension().is_some_and(|ending| ending == "rs");
        is_module && std::fs::read(path).is_ok_and(|bytes| !bytes.is_empty() && !is_generated(&bytes))
    };
    let foreign: Vec<String> = files.filter(is_foreign).map(|path| format!("`{}`", path.display())).collect();
    if foreign.is_empty() {
        return Ok(());
    }
    Err(Error::Settings(format!(
        "ops-codegen does not overwrite what it did not write: {}; name another folder by `with_out_dir`, or another \
         namespace for the document by `with_namespace`",
        foreign.join(", ")
    )))
}

/// Tells cargo to run the build script again when one of these changes, or comes.
fn rerun<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) {
    let paths: BTreeSet<&Path> = paths.into_iter().filter_map(|path| watched(path)).collect();
    for path in paths {
        let path = path.display().to_string();
        // A line break in the name of a referenced document would begin a new line for cargo.
        if !path.contains(char::is_control) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
}

/// What cargo has to look at to notice that a file changes. If it is not there, that is the nearest folder above it that is.
///
/// In a folder with the package itself, there is something new after each build, so that cargo looks for the file instead,
/// and runs the script each time until it comes. So it does for documents alone: what has another ending, such as the
/// `com.example.Pet` of a discriminator, is mostly meant for something else than a file.
fn watched(path: &Path) -> Option<&Path> {
    if path.exists() {
        return Some(path);
    }
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if !["json", "yaml", "yml"].iter().any(|known| ending.eq_ignore_ascii_case(known)) {
        return None;
    }
    let package = std::env::current_dir().and_then(|folder| folder.canonicalize()).ok();
    let is_above =
        |folder: &Path| folder.canonicalize().is_ok_and(|folder| package.iter().any(|p| p.starts_with(&folder)));
    let there = path.ancestors().skip(1).find(|folder| folder.is_dir());
    Some(there.filter(|folder| !is_above(folder)).unwrap_or(path))
}

fn warn(lines: &[String]) {
    lines.iter().for_each(|line| println!("cargo:warning={line}"));
}

/// The warnings as single lines, for cargo.
fn warnings(diagnostics: &[Diagnostic]) -> Vec<String> {
    let warnings: Vec<&Diagnostic> = diagnostics.iter().filter(|d| d.severity >= Severity::Warning).collect();
    let mut lines: Vec<String> = warnings
        .iter()
        .take(SHOWN)
        .map(|diagnostic| {
            let text = diagnostic.to_string();
            let lines = text.lines().map(str::trim).map(|line| line.strip_prefix("warning: ").unwrap_or(line));
            crate::report::line(&lines.collect::<Vec<_>>().join(" "))
        })
        .collect();
    if let Some(more) = warnings.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        let document = warnings.first().and_then(|diagnostic| diagnostic.document.as_deref()).unwrap_or("the document");
        lines.push(crate::report::line(&format!("{more} more warnings about {document}")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_lines_and_few() {
        let diagnostics: Vec<Diagnostic> = (0..30)
            .flat_map(|i| {
                let pointer = format!("/paths/{i}");
                [
                    Diagnostic::warning(&pointer, "odd\nindeed").with_help("left out"),
                    Diagnostic::note(pointer, "renamed"),
                ]
            })
            .collect();
        let lines = warnings(&diagnostics);
        assert_eq!(lines.len(), SHOWN + 1);
        assert_eq!(lines[0], "odd indeed at /paths/0 = left out");
        assert_eq!(lines[SHOWN], "10 more warnings about the document");
    }
}
