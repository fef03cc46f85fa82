//! One run of a builder: from its inputs to modules.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use ops_runtime::mcp;
use ops_runtime::openapi::FileSource;
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::{Api, Diagnostic, Severity};

use super::place::place;
use super::{Builder, Module};
use crate::directory::{Form, contents};
use crate::select::Selection;
use crate::{Error, Generator};

/// One run of a builder.
pub(super) struct Run {
    generator: Generator,
    selection: Selection,
    modules: Vec<Module>,
    /// The sources of the modules, for messages.
    sources: Vec<String>,
    skipped: Vec<Diagnostic>,
}

/// A file that could not be used, and why.
type Failed = (PathBuf, Vec<Diagnostic>);

impl Run {
    pub(super) fn new(builder: &Builder, used: Option<HashSet<String>>) -> Self {
        let add = |generator: Generator, pattern: &String| generator.with_explicit_null(pattern);
        let generator = builder.explicit_null.iter().fold(builder.generator.clone(), add);
        let generator = match used {
            Some(names) => generator.with_only(names),
            None => generator,
        };
        let mut selection = builder.selection.clone();
        generator.explicit_null().iter().for_each(|pattern| selection.explicit_null(pattern.clone()));
        Self { generator, selection, modules: Vec::new(), sources: Vec::new(), skipped: Vec::new() }
    }

    pub(super) fn document(
        &mut self,
        location: &str,
        form: Form,
        source: FileSource,
        namespace: &str,
    ) -> Result<(), Error> {
        let is_list = form == Form::Tools || form == Form::Any && holds_tools(location);
        let read = if is_list {
            mcp::load(location, &source, &mcp::ReadOptions::new().with_namespace(namespace))
        } else {
            openapi::load(location, &source, &ReadOptions::new().with_namespace(namespace))
        };
        let (api, diagnostics) = read.map_err(|diagnostic| Error::Document { diagnostics: vec![diagnostic] })?;
        let files = source.files();
        self.module(namespace.to_owned(), api, diagnostics, files, location)?;
        if let Some(module) = self.modules.last_mut() {
            let Module { operations, generated, .. } = module;
            place(&mut generated.diagnostics, operations, location);
        }
        Ok(())
    }

    /// Reads everything in a directory; a fault in one file affects only that file.
    pub(super) fn directory(&mut self, path: &Path) -> Result<(), Error> {
        let contents = contents(path)?;
        self.skipped.extend(contents.skipped);
        let mut failed: Vec<Failed> = Vec::new();
        for ((file, form), namespace) in contents.documents.into_iter().zip(contents.namespaces) {
            let location = file.to_string_lossy().replace('\\', "/");
            let told = namespace.diagnostic(&location);
            if !namespace.is_unique {
                failed.push((file, told.into_iter().collect()));
                continue;
            }
            let result = check_namespace(&namespace.name)
                .and_then(|()| self.document(&location, form, FileSource::new().within(path), &namespace.name));
            match self.modules.last_mut().filter(|_| result.is_ok()) {
                Some(module) => module.generated.diagnostics.extend(told),
                None => self.skipped.extend(told),
            }
            skip(result, file, &mut failed)?;
        }
        for (namespace, specs) in contents.specs {
            let files = specs.files.clone();
            let file = files.first().cloned().unwrap_or_default();
            let result = check_namespace(&namespace).and_then(|()| {
                self.module(namespace.clone(), specs.into_api(), Vec::new(), files, &file.to_string_lossy())
            });
            skip(result, file, &mut failed)?;
        }
        self.tell(failed, contents.unknown);
        Ok(())
    }

    /// Reports the unused files of a directory. A file that a document refers to is part of that document.
    fn tell(&mut self, failed: Vec<Failed>, unknown: Vec<(PathBuf, Diagnostic)>) {
        let read: BTreeSet<PathBuf> =
            self.modules.iter().flat_map(|module| &module.files).filter_map(|file| file.canonicalize().ok()).collect();
        let is_part = |file: &Path| file.canonicalize().is_ok_and(|file| read.contains(&file));
        for (file, diagnostics) in failed {
            let severity = if is_part(&file) { Severity::Note } else { Severity::Error };
            self.skipped.extend(diagnostics.into_iter().map(|mut diagnostic| {
                diagnostic.severity = severity;
                diagnostic
            }));
        }
        self.skipped.extend(unknown.into_iter().filter(|(file, _)| !is_part(file)).map(|(_, told)| told));
    }

    pub(super) fn module(
        &mut self,
        namespace: String,
        mut api: Api,
        mut diagnostics: Vec<Diagnostic>,
        files: Vec<PathBuf>,
        source: &str,
    ) -> Result<(), Error> {
        let is_same = |module: &Module| module.namespace.to_lowercase() == namespace.to_lowercase();
        if let Some((_, other)) = self.modules.iter().zip(&self.sources).find(|(module, _)| is_same(module)) {
            let both = format!("{other} and {} have the namespace `{namespace}`", quoted(source));
            return Err(Error::Settings(format!("{both}: give one of them a namespace of its own")));
        }
        self.selection.apply(&mut api, &mut diagnostics);
        let mut generated = self.generator.generate(&api);
        diagnostics.append(&mut generated.diagnostics);
        generated.diagnostics = diagnostics;
        self.modules.push(Module { namespace, operations: api.operations, generated, files });
        self.sources.push(quoted(source));
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Vec<Module>, Error> {
        if let Err(error) = self.selection.finish() {
            // It might match an operation of a document that could not be read.
            let unreadable = self.skipped.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
            let Error::Settings(message) = error else { return Err(error) };
            if !unreadable {
                return Err(Error::Settings(message));
            }
            self.skipped.push(Diagnostic::error("", message));
            return Err(Error::Document { diagnostics: self.skipped });
        }
        match self.modules.last_mut() {
            Some(module) => module.generated.diagnostics.append(&mut self.skipped),
            None if !self.skipped.is_empty() => return Err(Error::Document { diagnostics: self.skipped }),
            None => return Err(Error::Settings("there is no document to generate from".to_owned())),
        }
        Ok(self.modules)
    }
}

/// Keeps an error of one file of a directory.
fn skip(result: Result<(), Error>, file: PathBuf, failed: &mut Vec<Failed>) -> Result<(), Error> {
    let diagnostics = match result {
        Err(Error::Document { diagnostics }) => diagnostics,
        Err(Error::Settings(message)) => {
            let location = file.to_string_lossy().replace('\\', "/");
            vec![Diagnostic::error("", message).with_document(location)]
        }
        other => return other,
    };
    let skipped = |diagnostic: Diagnostic| {
        let help = diagnostic.help.as_ref().map(|help| format!("the file was skipped: {help}"));
        diagnostic.with_help(help.unwrap_or_else(|| "the file was skipped".to_owned()))
    };
    failed.push((file, diagnostics.into_iter().map(skipped).collect()));
    Ok(())
}

/// The source of a module, for messages.
fn quoted(source: &str) -> String {
    if source.is_empty() { "an API".to_owned() } else { format!("`{source}`") }
}

/// True if a file is a list of tools.
fn holds_tools(location: &str) -> bool {
    // API documents are large, and few of them need parsing to decide.
    let text = std::fs::read_to_string(location).unwrap_or_default();
    text.contains("\"tools\"") && openapi::parse(&text).is_ok_and(|value| mcp::is_tool_list(&value))
}

/// A namespace also names a file, so it must not lead out of a folder.
pub(super) fn check_namespace(namespace: &str) -> Result<(), Error> {
    if namespace.is_empty() || !namespace.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-')) {
        let message = format!("`{namespace}` is no namespace: use letters, digits, `_` and `-`");
        return Err(Error::Settings(message));
    }
    Ok(())
}
