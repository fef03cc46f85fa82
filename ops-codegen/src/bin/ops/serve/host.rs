//! `ops serve --print-config`: the configuration with which an MCP host starts the command.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

use clap::{Args, ValueHint};
use serde_json::json;

use crate::arguments::{ServeArguments, Transport};
use crate::failure::Failure;
use crate::missing::absent;
use crate::report::label;

/// Prints the entry of this very command. Paths are absolute, because hosts start their servers anywhere.
///
/// # Errors
/// If a file is missing, or if the command would not be an MCP server.
pub(super) fn print(arguments: &ServeArguments, is_mock_server: bool) -> Result<(), Failure> {
    let is_stdio = arguments.mcp == Some(Transport::Stdio) || (arguments.mcp.is_none() && arguments.http.is_none());
    if is_mock_server || !is_stdio {
        let message =
            "a host can't start this command: it would serve HTTP; add `--mcp stdio`, or for a mock `--tools search`";
        return Err(Failure::Usage(message.to_owned()));
    }
    let read = arguments.spec.iter().map(String::as_str).filter(|spec| !is_url(spec)).map(Path::new);
    let read =
        read.chain([&arguments.config, &arguments.credentials.bearer_file].into_iter().flatten().map(AsRef::as_ref));
    let missing: Vec<String> = read.filter(|path| !path.exists()).map(absent).collect();
    if !missing.is_empty() {
        return Err(Failure::Usage(missing.join("; ")));
    }
    super::gateway::check(arguments)?;
    if !arguments.credentials.header.is_empty() {
        let warning = "the configuration below holds what `--header` says: a secret is better named by `--bearer-env` or \
                       `--bearer-file`, or in a file for `--config`";
        // If standard error is closed, there is no way to report it.
        let _ = writeln!(anstream::stderr().lock(), "{}: {warning}", label("warning"));
    }
    let unknown = |error: std::io::Error| Failure::Failed(format!("the path of this command is unknown: {error}"));
    let command = std::env::current_exe().map_err(unknown)?;
    let command = text(command.into_os_string())?;
    let arguments = std::env::args_os().skip(1).map(text).collect::<Result<Vec<_>, _>>()?;
    let arguments = absolute(arguments.into_iter().filter(|argument| argument != "--print-config"))?;
    let server = json!({ "command": command, "args": arguments });
    let config = json!({ "mcpServers": { "ops": server } });
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{config:#}").and_then(|()| stdout.flush()).map_err(Failure::output)
}

fn is_url(text: &str) -> bool {
    text.contains("://")
}

/// The text of an argument or a path.
fn text(name: OsString) -> Result<String, Failure> {
    name.into_string().map_err(|name| {
        let name = name.display();
        Failure::Usage(format!("`{name}` is not UTF-8, as the text of a configuration has to be: name it otherwise"))
    })
}

/// The arguments with absolute paths. The value of an option is a path only if the option says so; behind `--` there are no
/// options.
///
/// # Errors
/// If the path of the working folder is no text.
fn absolute(arguments: impl Iterator<Item = String>) -> Result<Vec<String>, Failure> {
    let serve = ServeArguments::augment_args(clap::Command::new("serve"));
    let is_path = |hint: ValueHint| matches!(hint, ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath);
    let of = |name: &str| {
        let names = |option: &&clap::Arg| option.get_long_and_visible_aliases().is_some_and(|all| all.contains(&name));
        serve
            .get_arguments()
            .find(names)
            .map(|option| (option.get_action().takes_values(), is_path(option.get_value_hint())))
    };
    let absolute = |name: String| match std::path::absolute(&name) {
        Ok(path) if !is_url(&name) => text(path.into_os_string()),
        _ => Ok(name),
    };
    // The first is the name of the subcommand. What the next one is, if an option has said so.
    let (mut next, mut has_ended, mut all) = (Some(false), false, Vec::new());
    for argument in arguments {
        let made = match (next.take(), argument.strip_prefix("--")) {
            (Some(true), _) => absolute(argument)?,
            (Some(false), _) => argument,
            (None, Some("")) if !has_ended => {
                has_ended = true;
                argument
            }
            (None, _) if has_ended => absolute(argument)?,
            (None, Some(option)) => match option.split_once('=') {
                Some((name, value)) if of(name).is_some_and(|(_, is_path)| is_path) => {
                    format!("--{name}={}", absolute(value.to_owned())?)
                }
                Some(_) => argument,
                None => {
                    // An alias takes a value, like all options that have one.
                    next = of(option).map_or(Some(false), |(takes, is_path)| takes.then_some(is_path));
                    argument
                }
            },
            (None, None) => absolute(argument)?,
        };
        all.push(made);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_two_hyphens_all_is_a_path() {
        let here = std::env::current_dir().unwrap();
        let given = "serve --mock a.yaml --tools search -- b.yaml --audit https://x.example/c";
        let made = absolute(given.split(' ').map(str::to_owned)).ok().unwrap();
        let path = |name: &str| here.join(name).to_str().unwrap().to_owned();
        let (first, second, third) = (path("a.yaml"), path("b.yaml"), path("--audit"));
        assert_eq!(made[2..], [&*first, "--tools", "search", "--", &*second, &*third, "https://x.example/c"]);
    }
}
