//! The command `ops`: typed operations from API documents and MCP servers, from a shell.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod arguments;
mod call;
mod failure;
mod generate;
mod input;
mod inspect;
mod modules;
mod progress;
mod report;
mod server;
mod snapshot;
mod summary;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::arguments::{Arguments, Command};
use crate::failure::Failure;

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Call(arguments) => call::run(&arguments),
        Command::Snapshot(arguments) => snapshot::run(&arguments),
        Command::Completions { shell } => completions(shell),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "ops", &mut script);
    std::io::stdout().write_all(&script).map_err(Failure::output)
}
