//! The command `ops`: typed operations from API documents and MCP servers, from a shell.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod advice;
mod arguments;
mod call;
mod credentials;
mod diff;
mod documents;
mod failure;
mod find;
mod generate;
mod input;
mod inspect;
mod jobs;
mod manifest;
mod missing;
mod modules;
mod patterns;
mod places;
mod progress;
mod report;
mod run;
mod serve;
mod server;
mod shell;
mod snapshot;
mod stream;
mod summary;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use crate::arguments::{Arguments, Command, InspectArguments};
use crate::failure::Failure;

fn main() -> ExitCode {
    if let Some(arguments) = help_of_operation() {
        return inspect::run(&arguments).map_or_else(|failure| failure.report("inspect"), |()| ExitCode::SUCCESS);
    }
    let command = Arguments::try_parse().unwrap_or_else(|error| with_own_tip(error).exit()).command;
    let name = command.name();
    let result = match command {
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Call(arguments) => call::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Add(arguments) => documents::add(&arguments),
        Command::Update(arguments) => documents::update(&arguments),
        Command::Jobs(arguments) => jobs::run(&arguments),
        Command::Snapshot(arguments) => snapshot::run(&arguments),
        Command::Completions { shell } => completions(shell),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(name),
    }
}

/// The error for an option that there is not, without the advice to write it behind `--`: what is there is the command of a
/// server, which would be started.
fn with_own_tip(mut error: clap::Error) -> clap::Error {
    let command = std::env::args_os().nth(1).unwrap_or_default();
    let command = command.to_str().unwrap_or_default();
    if error.kind() != ErrorKind::UnknownArgument || !["call", "inspect", "snapshot"].contains(&command) {
        return error;
    }
    error.remove(ContextKind::Suggested);
    let name = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) if command == "call" => argument.strip_prefix("--").map(str::to_owned),
        _ => None,
    };
    // A similar option is proposed already.
    if let Some(name) = name.filter(|_| error.get(ContextKind::SuggestedArg).is_none()) {
        let name = name.split('=').next().unwrap_or_default();
        let tip = StyledStr::from(format!("to give a property of the input, write `{name}=VALUE`"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// What `ops call SPEC OPERATION --help` asks to be shown; `None` for the help of the command.
fn help_of_operation() -> Option<InspectArguments> {
    let is_help = |argument: &OsString| argument == "--help" || argument == "-h";
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    // What is behind `--` is the command of a server.
    let own = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    let at = arguments.iter().take(own).position(is_help)?;
    arguments.remove(at);
    match Arguments::try_parse_from(arguments).ok()?.command {
        Command::Call(call) if call.operation.is_some() || call.server.is_given() => Some(call.into_inspect()),
        _ => None,
    }
}

fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "ops", &mut script);
    std::io::stdout().write_all(&script).map_err(Failure::output)
}
