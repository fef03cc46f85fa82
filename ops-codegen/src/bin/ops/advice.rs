//! Converts the library's advice about methods into advice about options of the command.

use clap::CommandFactory;

use crate::arguments::Arguments;

/// What a method of the library sets, the option that sets it here, and what leads to the method in messages.
const OPTIONS: &[(&str, &str)] = &[
    // The command does not set how long a connection may take: its limit is on the whole call.
    (": no connection was made in time: raise `with_connect_timeout`", ""),
    (": raise `with_connect_timeout`", "timeout"),
    (": raise `with_total_timeout`", "timeout"),
    (": raise `with_timeout`", "timeout"),
    (" (`Limits::with_cpu`)", "timeout"),
    (" (`Limits::with_time`)", "timeout"),
    (": set one with `with_base_url`", "base-url"),
    (": set a base URL", "base-url"),
];

/// The advice if two documents have one namespace.
pub(crate) const OF_ONE_NAMESPACE: &str = ": give one of them a namespace of its own";

/// The advice if a program cannot go on with its journal.
const ANEW: &str =
    ": what was made stays made, so look at it before you run the program from its start, with an empty folder";

/// The advice if a server in a configuration file lacks credentials. Options of the command do not apply to such a server.
pub(crate) const TOKEN_IN_FILE: &str = "write a token into the file, as `\"auth\": \"${TOKEN}\"`";

/// Other advice, and its text for users of any command.
const WORDS: &[(&str, &str)] = &[
    // Only servers in configuration files are asked for OAuth.
    ("give it `with_oauth(..)` (feature `mcp-auth`)", TOKEN_IN_FILE),
    (OF_ONE_NAMESPACE, ": generate them one by one with `--namespace`, or name both in `ops.toml`"),
    (": run the program from its start, without it", ANEW),
    (". Run it from its start, without the journal", ANEW),
];

/// The beginnings of advice about methods without an option.
const LEADS: &[(&str, &str)] = &[(": raise `with_", "`"), (": allow it by `with_", "`"), (" (`Limits::with_", ")")];

/// A message of the library for users of a command, by its name.
pub(crate) fn of_command(command: &str, message: &str) -> String {
    let mut text = message.to_owned();
    for (phrase, option) in OPTIONS.iter().filter(|(phrase, _)| message.contains(phrase)) {
        let said = match (phrase.starts_with(" ("), option) {
            (_, option) if !has(command, option) => kept(phrase).to_owned(),
            (true, option) => format!(" (`--{option}`)"),
            (false, &"timeout") => ": raise `--timeout`".to_owned(),
            (false, option) => format!(": pass `--{option}`"),
        };
        text = text.replace(phrase, &said);
    }
    for (phrase, words) in WORDS {
        text = text.replace(phrase, words);
    }
    for (lead, end) in LEADS {
        while let Some(cut) = without(&text, lead, end) {
            text = cut;
        }
    }
    text
}

/// The part of a phrase beside its advice.
fn kept(phrase: &str) -> &str {
    phrase.rsplit_once(": ").map_or("", |(before, _)| before)
}

/// True if a command has that option.
fn has(command: &str, option: &str) -> bool {
    let all = Arguments::command();
    let own = all.find_subcommand(command);
    own.is_some_and(|own| own.get_arguments().any(|argument| argument.get_long() == Some(option)))
}

/// A text without the first advice that begins and ends so; `None` if it has none.
fn without(text: &str, lead: &str, end: &str) -> Option<String> {
    let (before, rest) = text.split_once(lead)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_about_options_of_the_command() {
        for (command, message, said) in [
            ("call", "no answer within 1s: raise `with_timeout`", "no answer within 1s: raise `--timeout`"),
            ("add", "no answer within 1s: raise `with_timeout`", "no answer within 1s"),
            ("snapshot", "silent: raise `with_connect_timeout`", "silent: raise `--timeout`"),
            ("inspect", "silent: raise `with_connect_timeout`", "silent"),
            (
                "call",
                "x: no connection was made in time: raise `with_connect_timeout`",
                "x: no connection was made in time",
            ),
            ("run", "it computed (`Limits::with_cpu`)", "it computed (`--timeout`)"),
            ("run", "too much (`Limits::with_memory` or `with_total_memory`): so", "too much: so"),
            ("call", "no base URL: set one with `with_base_url`", "no base URL: pass `--base-url`"),
            ("call", "larger than 20 bytes: raise `with_max_response`", "larger than 20 bytes"),
            ("call", "it said `with_timeout`", "it said `with_timeout`"),
            ("none", "a: raise `with_timeout`", "a"),
            (
                "call",
                "it asks for OAuth: give it `with_oauth(..)` (feature `mcp-auth`)",
                "it asks for OAuth: write a token into the file, as `\"auth\": \"${TOKEN}\"`",
            ),
        ] {
            assert_eq!(of_command(command, message), said);
        }
        // Not to make again what was made.
        for message in
            ["x: run the program from its start, without it", "x. Run it from its start, without the journal"]
        {
            assert_eq!(of_command("run", message), format!("x{ANEW}"));
        }
    }
}
