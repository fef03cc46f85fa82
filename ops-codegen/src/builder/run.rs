//! One run of a builder: from its inputs to modules.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use ops_runtime::mcp;
use ops_runtime::openapi::{self, FileSource, ReadOptions, Source};
use ops_runtime::spec::{Api, Diagnostic, Severity};
use serde_json::Value;

use super::place::{place, place_in_value};
use super::{Builder, Input, Module};
use crate::directory::{Form, check_namespace, contents};
#[cfg(feature = "overlays")]
use crate::overlay::Overlaid;
use crate::select::{Selection, select};
use crate::settings::{Miss, Serving, Setting};
use crate::{Error, Generator};

/// One run of a builder.
pub(super) struct Run {
    /// The builder's generator, then those of inputs that have their own.
    generators: Vec<Settled>,
    /// The generator of each input.
    by_input: Vec<usize>,
    current: usize,
    /// The servers of the inputs, where they ask for one.
    servers: Vec<Option<Serving>>,
    server: Option<Serving>,
    /// Settings of generators that cannot be applied.
    faults: Vec<String>,
    selection: Selection,
    /// The selections of inputs that have their own; the last is that of the current input.
    own: Vec<Selection>,
    has_own: bool,
    modules: Vec<Module>,
    /// The sources of the modules, for messages.
    sources: Vec<String>,
    /// The errors of documents that could not be read.
    unread: Vec<Diagnostic>,
    /// The warnings of overlays.
    overlays: Vec<Diagnostic>,
    /// Diagnostics of files of folders that were not used.
    skipped: Vec<Diagnostic>,
    /// The folders without documents, for messages.
    empty: Vec<String>,
}

/// A generator, with its settings that match nothing in some of its modules.
struct Settled {
    generator: Generator,
    /// The beginning of messages about its settings.
    origin: String,
    /// The positions of its modules.
    modules: Vec<usize>,
    /// For each such setting, the modules, and what is said of it there.
    misses: BTreeMap<Setting, BTreeMap<usize, Miss>>,
}

impl Settled {
    /// The settings that match nothing in any module.
    fn finish(self, modules: &mut [Module]) -> Vec<String> {
        let mut missing = Vec::new();
        for misses in self.misses.into_values() {
            if misses.len() == self.modules.len() {
                missing.extend(Miss::best(misses.values()).map(|message| format!("{}{message}", self.origin)));
                continue;
            }
            for (at, miss) in misses {
                if let Some(module) = modules.get_mut(at) {
                    let told = Diagnostic::note("", miss.message()).with_help("another document has it");
                    let file = module.files.first().map(|file| file.to_string_lossy().replace('\\', "/"));
                    module.generated.diagnostics.push(match file {
                        Some(file) => told.with_document(file),
                        None => told,
                    });
                }
            }
        }
        missing
    }
}

/// A file that could not be used, and why.
type Failed = (PathBuf, Vec<Diagnostic>);

impl Run {
    pub(super) fn new(builder: &Builder, used: Option<HashSet<String>>) -> Self {
        let mut selection = builder.selection.clone();
        let of_generator = builder.generator.iter().flat_map(Generator::explicit_null);
        let for_all = builder.explicit_null.iter().chain(of_generator);
        for_all.for_each(|pattern| selection.explicit_null(pattern.clone()));
        let settled = |generator: &Generator, origin: String| {
            let add = |generator: Generator, pattern: &String| generator.with_explicit_null(pattern);
            let generator = builder.explicit_null.iter().fold(generator.clone(), add);
            let generator = match &used {
                Some(names) => generator.with_only(names.clone()),
                None => generator,
            };
            Settled { generator, origin, modules: Vec::new(), misses: BTreeMap::new() }
        };
        let mut generators = vec![settled(&builder.generator.clone().unwrap_or_default(), String::new())];
        let mut by_input = Vec::new();
        for input in &builder.inputs {
            by_input.push(if input.generator.is_some() { generators.len() } else { 0 });
            let origin = input.selection.as_ref().map(Selection::origin).unwrap_or_default();
            generators.extend(input.generator.as_ref().map(|generator| settled(generator, origin)));
        }
        Self {
            generators,
            by_input,
            current: 0,
            servers: builder.inputs.iter().map(|input| input.server).collect(),
            server: None,
            faults: Vec::new(),
            selection,
            own: Vec::new(),
            has_own: false,
            modules: Vec::new(),
            sources: Vec::new(),
            unread: Vec::new(),
            overlays: Vec::new(),
            skipped: Vec::new(),
            empty: Vec::new(),
        }
    }

    /// Generates what follows by the generator of an input.
    pub(super) fn use_generator_of(&mut self, input: usize) {
        self.current = self.by_input.get(input).copied().unwrap_or(0);
        self.server = self.servers.get(input).copied().flatten();
    }

    /// Selects from what follows by the patterns of an input, too, and checks those of its generator.
    pub(super) fn select_by(&mut self, input: &Input) {
        let mut own = input.selection.clone();
        for pattern in input.generator.iter().flat_map(Generator::explicit_null) {
            own.get_or_insert_default().explicit_null(pattern.clone());
        }
        self.has_own = own.is_some();
        self.own.extend(own);
    }

    #[cfg_attr(not(feature = "overlays"), allow(unused_variables))]
    pub(super) fn document(
        &mut self,
        location: &str,
        form: Form,
        source: FileSource,
        overlays: &[String],
        namespace: &str,
    ) -> Result<(), Error> {
        let failed = |diagnostics| Error::Document { diagnostics };
        #[cfg(feature = "overlays")]
        if !overlays.is_empty() {
            let mut told = Vec::new();
            let source = Overlaid::read(location, overlays, source, &mut told).map_err(failed)?;
            self.overlays.extend(told.iter().cloned());
            let (api, diagnostics) = self.read(location, form, &source, namespace).map_err(|mut diagnostics| {
                source.place(&mut diagnostics);
                failed(diagnostics)
            })?;
            told.extend(diagnostics);
            self.module(namespace.to_owned(), api, told, source.files(), location)?;
            if let Some(Module { operations, generated, missing, .. }) = self.modules.last_mut() {
                place(&mut generated.diagnostics, operations, location, Some(source.text()));
                source.place(&mut generated.diagnostics);
                *missing = source.missing();
            }
            return Ok(());
        }
        let (api, diagnostics) = self.read(location, form, &source, namespace).map_err(failed)?;
        self.module(namespace.to_owned(), api, diagnostics, source.files(), location)?;
        if let Some(Module { operations, generated, missing, .. }) = self.modules.last_mut() {
            place(&mut generated.diagnostics, operations, location, None);
            *missing = source.missing();
        }
        Ok(())
    }

    /// The operations of a document or of a list of tools, and the diagnostics of its reader.
    fn read(
        &self,
        location: &str,
        form: Form,
        source: &dyn Source,
        namespace: &str,
    ) -> Result<(Api, Vec<Diagnostic>), Vec<Diagnostic>> {
        if form == Form::Tools || form == Form::Any && holds_tools(location) {
            let options = mcp::ReadOptions::new().with_namespace(namespace);
            return mcp::load(location, source, &options).map_err(|error| vec![error]);
        }
        openapi::load(location, source, &self.options(namespace)).map_err(|error| vec![error])
    }

    /// Reads a document that is a value.
    pub(super) fn value(&mut self, document: &Value, namespace: &str) -> Result<(), Error> {
        let read = openapi::read(document, &self.options(namespace));
        let (api, diagnostics) = read.map_err(|diagnostic| Error::Document { diagnostics: vec![diagnostic] })?;
        self.module(namespace.to_owned(), api, diagnostics, Vec::new(), "")?;
        if let Some(Module { operations, generated, .. }) = self.modules.last_mut() {
            place_in_value(&mut generated.diagnostics, operations, document);
        }
        Ok(())
    }

    /// How the current generator has a document read.
    fn options(&self, namespace: &str) -> ReadOptions {
        let options = ReadOptions::new().with_namespace(namespace);
        let settled = self.generators.get(self.current);
        if settled.is_some_and(|settled| settled.generator.takes_rust_types()) {
            options.with_rust_types()
        } else {
            options
        }
    }

    /// Reads everything in a directory; a fault in one file affects only that file.
    pub(super) fn directory(&mut self, path: &Path) -> Result<(), Error> {
        let contents = contents(path)?;
        if contents.documents.is_empty() && contents.specs.is_empty() {
            self.empty.push(quoted(&path.to_string_lossy().replace('\\', "/")));
        }
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
                .and_then(|()| self.document(&location, form, FileSource::new().within(path), &[], &namespace.name));
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
        let own = self.own.last_mut().filter(|_| self.has_own);
        let mut selections: Vec<&mut Selection> = own.into_iter().chain([&mut self.selection]).collect();
        let ids = api.operations.iter().map(|spec| spec.id.to_string()).collect();
        select(&mut selections, &mut api, &mut diagnostics);
        let Some(settled) = self.generators.get_mut(self.current) else { return Ok(()) };
        let (mut generated, faults) = settled.generator.run(&api, self.server, Some(&namespace));
        settled.modules.push(self.modules.len());
        for miss in faults.misses {
            settled.misses.entry(miss.setting.clone()).or_default().insert(self.modules.len(), miss);
        }
        self.faults.extend(faults.faults.into_iter().map(|fault| format!("{}: {fault}", quoted(source))));
        diagnostics.append(&mut generated.diagnostics);
        generated.diagnostics = diagnostics;
        let Api { operations, webhooks, .. } = api;
        self.modules.push(Module { namespace, operations, webhooks, generated, files, missing: Vec::new(), ids });
        self.sources.push(quoted(source));
        Ok(())
    }

    /// Notes the errors of a document that could not be read.
    pub(super) fn unreadable(&mut self, diagnostics: Vec<Diagnostic>) {
        self.unread.extend(diagnostics);
    }

    pub(super) fn finish(mut self) -> Result<Vec<Module>, Error> {
        let mut faults = std::mem::take(&mut self.faults);
        let error = |message| Diagnostic::error("", message);
        if !self.unread.is_empty() {
            // Settings that match nothing are most likely meant for these.
            let told = faults.into_iter().map(error);
            return Err(Error::Document {
                diagnostics: self.unread.into_iter().chain(self.skipped).chain(told).collect(),
            });
        }
        // Patterns that match nothing might be meant for a document that could not be read.
        let selections = self.own.iter().chain([&self.selection]);
        let mut missing: Vec<String> = selections.flat_map(Selection::finish).collect();
        for settled in self.generators {
            missing.extend(settled.finish(&mut self.modules));
        }
        let unreadable = self.skipped.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
        if unreadable && !missing.is_empty() {
            self.skipped.extend(faults.into_iter().chain(missing).map(error));
            return Err(Error::Document { diagnostics: self.skipped });
        }
        faults.extend(missing);
        if !faults.is_empty() && self.overlays.is_empty() {
            return Err(Error::Settings(faults.join("\n")));
        }
        if !faults.is_empty() {
            // An overlay that changes nothing may be why a setting matches nothing.
            return Err(Error::Document { diagnostics: faults.into_iter().map(error).chain(self.overlays).collect() });
        }
        match self.modules.last_mut() {
            Some(module) => module.generated.diagnostics.append(&mut self.skipped),
            None if !self.skipped.is_empty() => return Err(Error::Document { diagnostics: self.skipped }),
            None => {
                let folders =
                    if self.empty.is_empty() { String::new() } else { format!(" in {}", self.empty.join(", ")) };
                return Err(Error::Settings(format!("there is no document to generate from{folders}")));
            }
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
    let text = std::fs::read_to_string(location).unwrap_or_default();
    // API documents are large, and few of them have words of lists of tools: only those are parsed to decide. A list
    // without tools has only the key `tools`, in JSON or at the beginning of a line of YAML.
    let is_candidate = ["inputSchema", "\"tools\""].iter().any(|word| text.contains(word))
        || text.lines().any(|line| line.starts_with("tools:"));
    is_candidate && openapi::parse(&text).is_ok_and(|value| mcp::is_tool_list(&value))
}
