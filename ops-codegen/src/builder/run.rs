//! One run of a builder: from what was added to modules.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ops_runtime::mcp;
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::source::FileSource;
use ops_runtime::{Api, Diagnostic, Severity};

use super::place::place;
use super::{Builder, Form, Module};
use crate::Error;
use crate::directory::contents;
use crate::select::Selection;

/// One run of a builder.
pub(super) struct Run<'a> {
    pub(super) builder: &'a Builder,
    pub(super) selection: Selection,
    pub(super) modules: Vec<Module>,
    pub(super) skipped: Vec<Diagnostic>,
}

impl Run<'_> {
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
        self.module(namespace.to_owned(), api, diagnostics, files)?;
        if let Some(module) = self.modules.last_mut() {
            let Module { operations, generated, .. } = module;
            place(&mut generated.diagnostics, operations, location);
        }
        Ok(())
    }

    /// Everything in a directory; what is wrong with one file costs that file.
    pub(super) fn directory(&mut self, path: &Path) -> Result<(), Error> {
        let contents = contents(path)?;
        self.skipped.extend(contents.skipped);
        for (file, form, namespace) in contents.documents {
            let location = file.to_string_lossy().replace('\\', "/");
            let result = check_namespace(&namespace)
                .and_then(|()| self.document(&location, form, FileSource::new().within(path), &namespace));
            self.skip(result, &location)?;
        }
        for (namespace, specs) in contents.specs {
            let files = specs.files.clone();
            let location = files.first().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
            let result = check_namespace(&namespace)
                .and_then(|()| self.module(namespace.clone(), specs.into_api(), Vec::new(), files));
            self.skip(result, &location)?;
        }
        // What a document refers to is a part of it.
        let read: BTreeSet<PathBuf> =
            self.modules.iter().flat_map(|module| &module.files).filter_map(|file| file.canonicalize().ok()).collect();
        let parts = |file: &Path| file.canonicalize().is_ok_and(|file| read.contains(&file));
        self.skipped.extend(contents.unknown.into_iter().filter(|(file, _)| !parts(file)).map(|(_, told)| told));
        Ok(())
    }

    /// Makes a diagnostic of an error that one file of a directory has.
    fn skip(&mut self, result: Result<(), Error>, location: &str) -> Result<(), Error> {
        match result {
            Err(Error::Document { diagnostics }) => {
                self.skipped.extend(diagnostics.into_iter().map(|mut diagnostic| {
                    diagnostic.severity = Severity::Warning;
                    let help = diagnostic.help.as_ref().map(|help| format!("the file was skipped: {help}"));
                    diagnostic.with_help(help.unwrap_or_else(|| "the file was skipped".to_owned()))
                }));
                Ok(())
            }
            Err(Error::Settings(message)) => {
                let diagnostic = Diagnostic::warning("", message).with_help("the file was skipped");
                self.skipped.push(diagnostic.with_document(location));
                Ok(())
            }
            other => other,
        }
    }

    pub(super) fn module(
        &mut self,
        namespace: String,
        mut api: Api,
        mut diagnostics: Vec<Diagnostic>,
        files: Vec<PathBuf>,
    ) -> Result<(), Error> {
        if self.modules.iter().any(|module| module.namespace.to_lowercase() == namespace.to_lowercase()) {
            let message = format!("two documents have the namespace `{namespace}`: name another with `namespace`");
            return Err(Error::Settings(message));
        }
        self.selection.apply(&mut api, &mut diagnostics);
        let mut generated = self.builder.generator.generate(&api);
        diagnostics.append(&mut generated.diagnostics);
        generated.diagnostics = diagnostics;
        self.modules.push(Module { namespace, operations: api.operations, generated, files });
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Vec<Module>, Error> {
        match self.modules.last_mut() {
            Some(module) => module.generated.diagnostics.append(&mut self.skipped),
            None if !self.skipped.is_empty() => return Err(Error::Document { diagnostics: self.skipped }),
            None => return Err(Error::Settings("there is no document to generate from".to_owned())),
        }
        self.selection.finish()?;
        Ok(self.modules)
    }
}

/// Whether a file is a list of tools.
fn holds_tools(location: &str) -> bool {
    // API documents are large, and few of them need to be parsed to tell.
    let text = std::fs::read_to_string(location).unwrap_or_default();
    text.contains("\"tools\"") && openapi::parse(&text).is_ok_and(|value| mcp::is_tool_list(&value))
}

/// A namespace names a file as well, so it may not lead out of a folder.
pub(super) fn check_namespace(namespace: &str) -> Result<(), Error> {
    if namespace.is_empty() || !namespace.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-')) {
        let message = format!("`{namespace}` is no namespace: use letters, digits, `_` and `-`");
        return Err(Error::Settings(message));
    }
    Ok(())
}
