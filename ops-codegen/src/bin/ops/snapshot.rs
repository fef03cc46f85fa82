//! `ops snapshot`: saves the tools of MCP servers to files.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use ops_codegen::write_if_changed;
use ops_runtime::mcp::{self, ReadOptions, Snapshot};
use ops_runtime::openapi;
use ops_runtime::spec::{Api, Diagnostic};
use serde_json::Value;

use crate::arguments::SnapshotArguments;
use crate::failure::Failure;
use crate::modules::runtime;
use crate::progress::Progress;
use crate::report::{Reporter, clean, json, print};
use crate::server::Server;

pub(crate) fn run(arguments: &SnapshotArguments) -> Result<(), Failure> {
    let servers = arguments.server.servers(&arguments.credentials)?;
    let targets = targets(arguments, &servers)?;
    if !arguments.check && !arguments.force {
        keep_foreign(targets.iter().flatten())?;
    }
    let runtime = runtime()?;
    let (mut failed, mut unreadable) = (Vec::new(), 0);
    for (server, target) in servers.iter().zip(targets) {
        let progress = Progress::start("asking the server");
        let taken = runtime.block_on(server.snapshot(arguments.timeout));
        drop(progress);
        let done = taken.and_then(|snapshot| match &target {
            // The same values, whose texts cannot control a terminal.
            None => print(&json(&snapshot.to_string())),
            Some(path) if arguments.check => check(path, &snapshot),
            Some(path) => write(path, &snapshot),
        });
        match done {
            Ok(()) => {}
            // One server that fails, or that the file has wrong, does not stop the others, nor does a file that is not there yet.
            Err(Failure::Failed(message) | Failure::Usage(message)) => failed.push(message),
            Err(Failure::Unreadable(diagnostics)) if servers.len() > 1 => {
                Reporter::default().print_list(&diagnostics);
                unreadable += 1;
            }
            Err(other) => return Err(other),
        }
    }
    Failure::of_unreadable(unreadable, Some(failed.join("\n")).filter(|message| !message.is_empty()))
}

/// The file for the snapshot of each server; `None` for standard output.
fn targets(arguments: &SnapshotArguments, servers: &[Server]) -> Result<Vec<Option<PathBuf>>, Failure> {
    let output = &arguments.output;
    if output == Path::new("-") {
        if arguments.check {
            return Err(Failure::Usage(
                "`--check` needs the snapshot to compare with: name it by `-o FILE`".to_owned(),
            ));
        }
        return match servers {
            [_] => Ok(vec![None]),
            _ => Err(Failure::Usage(format!(
                "there are {} servers: name a folder by `-o DIR`, or one server by `--server NAME`",
                servers.len()
            ))),
        };
    }
    let is_folder = output.is_dir() || output.extension().is_none();
    let targets = match servers {
        [_] if !is_folder => Ok(vec![Some(output.clone())]),
        _ if !is_folder => {
            let message = format!("`{}` is one file, and there are {} servers", output.display(), servers.len());
            Err(Failure::Usage(format!("{message}: name a folder, or one server by `--server NAME`")))
        }
        _ => servers
            .iter()
            .map(|server| match server.namespace() {
                Some(name) => Ok(Some(output.join(format!("{name}.json")))),
                None => Err(Failure::Usage(format!("`{}` is a folder: name a file", output.display()))),
            })
            .collect(),
    }?;
    differ(servers, &targets)?;
    Ok(targets)
}

/// Fails if two servers have one file, which some disks have also for names that differ in case.
fn differ(servers: &[Server], targets: &[Option<PathBuf>]) -> Result<(), Failure> {
    let mut known = BTreeMap::new();
    for (server, target) in servers.iter().zip(targets) {
        let Some(path) = target else { continue };
        if let Some(other) = known.insert(path.to_string_lossy().to_lowercase(), server) {
            return Err(Failure::Usage(format!(
                "the snapshots of `{}` and `{}` would both be `{}`: name one server by `--server NAME`, and its file by `-o`",
                other.label(),
                server.label(),
                path.display()
            )));
        }
    }
    Ok(())
}

fn write(path: &Path, snapshot: &Snapshot) -> Result<(), Failure> {
    write_if_changed(path, &snapshot.to_string()).map_err(|error| Failure::Failed(error.to_string()))?;
    tell(&format!("{}: {} tools", path.display(), snapshot.tools().len()));
    Ok(())
}

/// Fails if this command did not write one of the files.
fn keep_foreign<'a>(mut targets: impl Iterator<Item = &'a PathBuf>) -> Result<(), Failure> {
    let is_ours = |bytes: &[u8]| bytes.is_empty() || std::str::from_utf8(bytes).is_ok_and(is_snapshot);
    let is_foreign = |path: &&PathBuf| std::fs::read(path).is_ok_and(|bytes| !is_ours(&bytes));
    match targets.find(is_foreign) {
        Some(path) => {
            let message = format!("`{}` is no snapshot of an MCP server", path.display());
            Err(Failure::Failed(format!("{message}: name another file, or pass `--force` to overwrite it")))
        }
        None => Ok(()),
    }
}

/// True if this command wrote a text.
fn is_snapshot(text: &str) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return false };
    let is_ours = || Snapshot::of(&value).is_ok_and(|snapshot| snapshot.to_string() == text);
    mcp::is_tool_list(&value) && (value.get("serverInfo").is_some_and(Value::is_object) || is_ours())
}

/// Reports the changes since the snapshot in the file.
fn check(path: &Path, now: &Snapshot) -> Result<(), Failure> {
    let label = path.display().to_string();
    let unreadable = |error: Diagnostic| Failure::Unreadable(vec![error.with_document(&label)]);
    let text = std::fs::read_to_string(path)
        .map_err(|error| unreadable(Diagnostic::error("", format!("the snapshot cannot be read: {error}"))))?;
    let before = Snapshot::of(&openapi::parse(&text).map_err(unreadable)?).map_err(unreadable)?;
    let api = |snapshot: &Snapshot| -> Result<Api, Failure> {
        snapshot.read(&ReadOptions::new()).map(|(api, _)| api).map_err(unreadable)
    };
    let changes = mcp::changes(&api(&before)?, &api(now)?);
    let lines: String =
        changes.iter().map(|change| format!("{}\n", clean(&change.to_string()).replace('\n', " "))).collect();
    print(&lines)?;
    let breaking = changes.iter().filter(|change| change.breaks).count();
    if before.tools() == now.tools() {
        tell(&format!("{label}: the server's {} tools are as they were", now.tools().len()));
        return Ok(());
    }
    let message = match (changes.len(), breaking) {
        (0, _) => "the server's tools are described in other words, which changes no operation".to_owned(),
        (all, 0) => format!("{all} changes, none of which breaks callers"),
        (all, breaking) => format!("{all} changes, of which {breaking} break callers"),
    };
    let with = if is_snapshot(&text) { "" } else { ", and with `--force`" };
    Err(Failure::Failed(format!("{label}: {message}\nrun the command without `--check`{with} to write it anew")))
}

fn tell(line: &str) {
    // If standard error is closed, there is no way to report it.
    let _ = writeln!(std::io::stderr().lock(), "{}", clean(line));
}
