//! `ops run`: runs a JavaScript program that calls operations, in a sandbox.

use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ops_runtime::access::{CallPolicy, Decision};
use ops_runtime::adapter::BoxFuture;
use ops_runtime::adapter::Registration;
use ops_runtime::program::{
    Ask, CallerHost, FolderStore, Functions, Host, JournalStore, Limits, MemoryStore, Outcome, Program, Reason, Report,
    Sandbox, StoredJournal,
};
use ops_runtime::spec::OperationSpec;
use ops_runtime::typescript::Names;
use ops_runtime::{CallError, ErrorCode, Registry, mock};
use serde_json::{Value, json};

use crate::arguments::RunArguments;
use crate::credentials::{Lack, config, guard};
use crate::failure::Failure;
use crate::modules::{Bound, bound, is_url, runtime, shown};
use crate::patterns::{Patterns, joined};
use crate::progress::Progress;
use crate::report::{clean, label, line};
use crate::shell::in_quotes;
use crate::stream::read_stdin;

mod watched;

use self::watched::{Notes, Watched, left, others};

pub(crate) fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let mut unreadable = 0;
    let ran = run_with(arguments, &mut unreadable).or_else(Failure::unless_gone);
    // The other documents of a folder were taken.
    ran.map_err(|failure| failure.beside(unreadable)).and(Failure::of_unreadable(unreadable, None))
}

/// Runs the program, and counts the files that could not be read.
fn run_with(arguments: &RunArguments, unreadable: &mut usize) -> Result<(), Failure> {
    let program = program(arguments)?;
    let patterns = Patterns::new(arguments.rules.each());
    let registry = Registry::new();
    let (specs, names) = register(arguments, &registry, unreadable)?;
    let idle = patterns.without_effect(&specs);
    if !idle.is_empty() {
        return Err(Failure::Usage(joined(&idle)));
    }
    let program = Program::new(program, functions(&specs, &names));
    let program = program.with_input(input(arguments)?).with_place(place(arguments, &specs));
    let policy = arguments.rules.add_to(CallPolicy::new());
    let notes = Arc::<Notes>::default();
    let host = CallerHost::new(Watched::new(registry.clone(), &specs, notes.clone()), &specs, &policy);
    let host = host.with_check(move |id, input| registry.check_input(id, input));
    let time = Duration::from_secs(arguments.timeout);
    let sandbox = Sandbox::new(Limits::new().with_time(time).with_cpu(time));
    if arguments.dry_run {
        let host = DryRun::new(host, &specs)?;
        let report = runtime()?.block_on(sandbox.run(&program, &host));
        tell_logs(&report, 0);
        notes.tell_rest();
        return finish(report);
    }
    let store: Box<dyn JournalStore> = match &arguments.journal {
        Some(folder) => Box::new(journals(folder)?),
        None => Box::new(MemoryStore::new()),
    };
    let runtime = runtime()?;
    let ended = runtime.block_on(async {
        let name = journal_of(&arguments.script, &*store).await;
        if let Some(folder) = &arguments.journal
            && let Some(told) = others(folder, &*store, &name).await
        {
            tell("note", &told);
        }
        tokio::select! {
            ended = drive(arguments, &name, &sandbox, &program, &host, &*store) => ended,
            failure = interrupted() => {
                tell_left(arguments, &*store, &name, &host, false).await;
                Err(failure)
            }
        }
    });
    // Waits for writes to the journal, for a limited time: a question that is not answered blocks its thread for ever.
    runtime.shutdown_timeout(LAST);
    notes.tell_rest();
    if !matches!(ended, Ok(()) | Err(Failure::Gone)) {
        notes.tell_changed();
    }
    ended
}

/// The store of a folder, which is created if it is missing: otherwise this would fail only when a call is to be kept.
pub(crate) fn journals(folder: &Path) -> Result<FolderStore, Failure> {
    let unusable = |error: std::io::Error| {
        Failure::Usage(format!("`{}` cannot be the folder of a journal: {error}", folder.display()))
    };
    std::fs::create_dir_all(folder).map_err(unusable)?;
    Ok(FolderStore::new(folder))
}

/// How long an interrupted run waits for writes to its journal.
const LAST: Duration = Duration::from_secs(1);

/// Waits until the user interrupts the run, and returns the failure for that.
async fn interrupted() -> Failure {
    match tokio::signal::ctrl_c().await {
        Ok(()) => Failure::Failed("the run was interrupted".to_owned()),
        // Without a handler for the signal, an interrupt ends the process as usual.
        Err(_) => std::future::pending().await,
    }
}

/// The name of a program's journal: the path of its script.
///
/// A script that is named by a link has a journal under the path of the link, so that the journal is found even if the link
/// leads to another script later. If there is no such journal, but one under the path of the script itself, that one is used.
async fn journal_of(script: &str, store: &dyn JournalStore) -> String {
    let whole = whole(script);
    let Some(real) = std::fs::canonicalize(script).ok().filter(|_| script != "-") else { return whole };
    let real = real.to_string_lossy().into_owned();
    let is_missing = async |name: &str| matches!(store.load(name).await, Ok(None));
    if real != whole && is_missing(&whole).await && !is_missing(&real).await { real } else { whole }
}

/// The absolute path of a script, without `.` and `..`. Links are not followed.
fn whole(script: &str) -> String {
    let Some(path) = std::path::absolute(script).ok().filter(|_| script != "-") else { return script.to_owned() };
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = whole.pop(),
            part => whole.push(part),
        }
    }
    whole.to_string_lossy().into_owned()
}

/// Runs the program, and asks where it asks, until it ends.
async fn drive(
    arguments: &RunArguments,
    name: &str,
    sandbox: &Sandbox,
    program: &Program,
    host: &dyn Host,
    store: &dyn JournalStore,
) -> Result<(), Failure> {
    let mut told = 0;
    let mut kept = StoredJournal::new(store, name);
    loop {
        let report = sandbox.run_stored(program, &kept, host).await;
        tell_logs(&report, told);
        told = told.max(report.logs.len());
        let Outcome::Waiting(waiting) = report.outcome else {
            let is_done = matches!(report.outcome, Outcome::Done(_));
            let differs = matches!(&report.outcome, Outcome::Failed(failed) if failed.reason == Reason::Differs);
            let finished = finish(report);
            // Until its result has arrived, a run that is repeated for it makes no call again.
            if is_done && matches!(finished, Ok(()) | Err(Failure::Gone)) {
                let stays = |error: std::io::Error| Failure::Failed(format!("the journal cannot be removed: {error}"));
                store.remove(name).await.map_err(stays)?;
            } else {
                tell_left(arguments, store, name, host, differs).await;
            }
            return finished;
        };
        kept = StoredJournal::new(store, name);
        for ask in &waiting.asks {
            kept = match answered(kept, ask, arguments).await {
                Ok(kept) => kept,
                Err(failure) => {
                    tell_left(arguments, store, name, host, false).await;
                    return Err(failure);
                }
            };
        }
    }
}

/// The journal with the user's answer to a question. The answer is saved at once, because the run may end at the next question.
async fn answered<'a>(
    kept: StoredJournal<'a>,
    ask: &Ask,
    arguments: &RunArguments,
) -> Result<StoredJournal<'a>, Failure> {
    let is_approved = is_approved(ask, arguments).await?;
    let kept = if is_approved { kept.with_approved(&ask.key) } else { kept.with_declined(&ask.key) };
    let unsaved = |error: std::io::Error| Failure::Failed(format!("the answer cannot be saved: {error}"));
    kept.keep_answers().await.map_err(unsaved)?;
    Ok(kept)
}

/// Tells the user what a run that did not succeed has left in its journal.
async fn tell_left(arguments: &RunArguments, store: &dyn JournalStore, name: &str, host: &dyn Host, differs: bool) {
    if let Some(folder) = &arguments.journal
        && let Some(told) = left(folder, store, name, host, differs).await
    {
        tell("note", &told);
    }
}

/// Asks on the terminal. The id is shown on one line: a document may name an operation with any text, and line breaks could
/// make it look like another question that was answered already.
async fn is_approved(ask: &Ask, arguments: &RunArguments) -> Result<bool, Failure> {
    let id = line(&ask.id);
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() || arguments.script == "-" {
        let call = line(&format!("{id} {}", brief(&ask.input)));
        // As a pattern, an id with these characters may be that of other operations, too.
        let is_plain = id == ask.id && !id.contains(['*', '?']);
        let hint = if is_plain { format!(": `--allow {}` lets it run", in_quotes(&id)) } else { String::new() };
        let message = format!("the program asks for `{call}`, and there is no terminal to ask on{hint}");
        return Err(Failure::Failed(message));
    }
    let asked = format!("{id} {}\nRun it? [y/N] ", clean(&format!("{:#}", brief(&ask.input))));
    let mut stderr = anstream::stderr().lock();
    write!(stderr, "{asked}").and_then(|()| stderr.flush()).map_err(Failure::output)?;
    drop(stderr);
    // Reads on another thread, so that an interrupt is noticed while it waits.
    let read = tokio::task::spawn_blocking(|| {
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).map(|_| answer)
    });
    let read = read.await.map_err(std::io::Error::other).flatten();
    let answer = read.map_err(|error| Failure::Failed(format!("the answer cannot be read: {error}")))?;
    // The terminal is gone. Nobody has said no, which a journal would keep.
    if answer.is_empty() {
        return Err(Failure::Failed(format!("nobody has answered whether `{id}` may run")));
    }
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// How much of a text in an input is shown in a question, in characters.
const SHOWN: usize = 500;

/// An input whose long texts, such as those of files, are cut, so that all else is seen.
fn brief(input: &Value) -> Value {
    let mut shown = input.clone();
    let mut pending = vec![&mut shown];
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => pending.extend(members.values_mut()),
            Value::String(text) => {
                if let Some((end, _)) = text.char_indices().nth(SHOWN) {
                    let more = text.chars().count() - SHOWN;
                    text.truncate(end);
                    text.push_str(&format!("... and {more} characters more"));
                }
            }
            _ => {}
        }
    }
    shown
}

/// Prints what the program returned, or says why it did not.
fn finish(report: Report) -> Result<(), Failure> {
    for warning in &report.warnings {
        tell("warning", warning);
    }
    match report.outcome {
        Outcome::Done(value) => {
            let mut stdout = std::io::stdout().lock();
            let written = writeln!(stdout, "{}", crate::report::json(&format!("{value:#}")));
            written.and_then(|()| stdout.flush()).map_err(Failure::output)
        }
        Outcome::Failed(failure) => {
            let details = failure.details.as_deref().map(|details| format!("the details: {details}"));
            let stack = Some(failure.stack.clone()).filter(|stack| !stack.is_empty());
            let told: Vec<String> = std::iter::once(failure.to_string()).chain(details).chain(stack).collect();
            Err(Failure::Failed(told.join("\n")))
        }
        _ => Err(Failure::Failed("the program waits for an answer".to_owned())),
    }
}

/// Prints what the program wrote to the console, after what was printed already.
fn tell_logs(report: &Report, told: usize) {
    for log in report.logs.iter().skip(told) {
        // If standard error is closed, there is no way to report it.
        let _ = writeln!(anstream::stderr().lock(), "{}", clean(&log.text));
    }
}

fn tell(word: &str, message: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{}: {}", label(word), line(message));
}

fn program(arguments: &RunArguments) -> Result<String, Failure> {
    if arguments.script == "-" {
        return read_stdin();
    }
    let read = std::fs::read_to_string(Path::new(&arguments.script));
    read.map_err(|error| Failure::Usage(format!("`{}` cannot be read: {error}", arguments.script)))
}

fn input(arguments: &RunArguments) -> Result<Value, Failure> {
    let Some(text) = &arguments.input else { return Ok(Value::Null) };
    crate::input::whole(text).map_err(Failure::Usage)
}

/// Registers the operations of all documents, and returns them with the names for their ids.
fn register(
    arguments: &RunArguments,
    registry: &Registry,
    unreadable: &mut usize,
) -> Result<(Vec<OperationSpec>, Names), Failure> {
    let RunArguments { spec: documents, credentials, base_url, .. } = arguments;
    let is_for_one = credentials.is_given() || base_url.is_some();
    let for_one = || {
        let message = "credentials and `--base-url` go to all operations: name one document with them";
        Failure::Usage(message.to_owned())
    };
    if documents.len() > 1 && is_for_one {
        return Err(for_one());
    }
    let progress = Progress::start("reading");
    let (mut specs, mut all) = (Vec::new(), Vec::new());
    for document in documents {
        if document == "-" {
            return Err(Failure::Usage("a document for a program is a file or a URL, not standard input".to_owned()));
        }
        let config = config(base_url.as_deref(), credentials, arguments.timeout)?;
        let lack = credentials.lack_of_document(base_url.as_deref(), document);
        let Bound { registrations, others, ids, unreadable: unread } = bound(document, config.clone(), &lack)?;
        *unreadable += unread;
        all.extend(ids);
        if !others.is_empty() {
            let number = others.len();
            tell(
                "warning",
                &format!(
                    "`{}`: of its operations, {number} are of no HTTP API: programs cannot call them",
                    shown(document)
                ),
            );
        }
        for registration in &registrations {
            guard(base_url.as_deref(), credentials, document, registration.spec())?;
            specs.push(registration.spec().clone());
        }
        Lack::of(config, credentials, registrations.iter().map(Registration::spec))?;
        let registered = registry.register_all(registrations);
        registered.map_err(|error| Failure::Usage(format!("`{}`: {error}", shown(document))))?;
    }
    drop(progress);
    let namespaces: BTreeSet<&str> = specs.iter().map(OperationSpec::namespace).collect();
    if namespaces.len() > 1 && is_for_one {
        return Err(for_one());
    }
    Ok((specs, Names::new(all)))
}

/// Where the operations lead: where their documents are, and the servers that are called.
fn place(arguments: &RunArguments, specs: &[OperationSpec]) -> String {
    let documents = arguments.spec.iter().map(|document| match std::path::absolute(document) {
        Ok(path) if !is_url(document) => path.to_string_lossy().into_owned(),
        _ => shown(document),
    });
    // With what their variables stand for.
    let server = |spec: &OperationSpec| {
        let http = spec.http()?;
        let variables = http.server_variables.iter().map(|variable| format!(" {}={}", variable.name, variable.default));
        Some(variables.fold(http.server.as_deref()?.to_owned(), |all, variable| all + &variable))
    };
    let servers: BTreeSet<String> = match &arguments.base_url {
        Some(url) => [url.clone()].into(),
        None => specs.iter().filter_map(server).collect(),
    };
    json!([documents.collect::<Vec<_>>(), servers]).to_string()
}

/// The names by which the program calls the operations, as `ops generate --lang ts` declares them.
fn functions(specs: &[OperationSpec], names: &Names) -> Functions {
    let named = specs.iter().filter_map(|spec| Some((names.name(&spec.id)?, &spec.id)));
    named.map(|(name, id)| (name.namespace.to_owned(), name.operation.to_owned(), id.to_string())).collect()
}

/// Makes the calls that change nothing and need no approval, and returns examples for all other calls.
struct DryRun {
    host: CallerHost<Watched>,
    examples: CallerHost<Registry>,
    /// So that lines are whole.
    output: Mutex<()>,
}

impl DryRun {
    fn new(host: CallerHost<Watched>, specs: &[OperationSpec]) -> Result<Self, Failure> {
        let examples = Registry::new();
        let registered = examples.register_all(specs.iter().cloned().map(mock::examples));
        registered.map_err(|error| Failure::Failed(error.to_string()))?;
        let examples = CallerHost::new(examples, specs, &CallPolicy::new());
        Ok(Self { host, examples, output: Mutex::default() })
    }
}

impl Host for DryRun {
    fn call<'a>(&'a self, id: &'a str, input: Value) -> BoxFuture<'a, Result<Value, CallError>> {
        if self.is_query(id) && self.host.decide(id, &input) == Decision::Allow {
            return self.host.call(id, input);
        }
        // That a document names no server is no fault of the program.
        if let Err(refused) = self.host.check(id, &input)
            && *refused.code() == ErrorCode::ValidationError
        {
            return Box::pin(async move { Err(refused) });
        }
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        tell("would call", &format!("{id} {input}"));
        drop(output);
        self.examples.call(id, input)
    }

    fn decide(&self, id: &str, input: &Value) -> Decision {
        // A call that needs approval is not made, so nothing has to be asked.
        match self.host.decide(id, input) {
            Decision::Ask => Decision::Allow,
            other => other,
        }
    }

    fn is_query(&self, id: &str) -> bool {
        self.host.is_query(id)
    }
}
