//! The command line as it is documented.

use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser};

use super::{Arguments, Command};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The texts of the README and of all pages of the book, but the page of this command, which this test makes.
fn pages() -> Vec<String> {
    let (mut texts, mut folders) = (Vec::new(), vec![root().join("docs/src")]);
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "md") && !path.ends_with("reference/command.md") {
                texts.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }
    texts.push(std::fs::read_to_string(root().join("README.md")).unwrap());
    texts
}

#[test]
fn each_command_of_the_pages_is_understood() {
    let mut count = 0;
    for page in pages() {
        // Lines of shell blocks are whole commands; in the text, a command may be only named.
        let lines = page.lines().filter(|line| line.starts_with("ops "));
        let lines: Vec<&str> = lines.map(|line| line.split(" #").next().unwrap()).collect();
        let spans = page.split('`').filter(|span| span.starts_with("ops ") && !span.contains('\n'));
        let spans: Vec<&str> = spans.filter(|span| !span.starts_with("ops help") && !lines.contains(span)).collect();
        for command in lines.into_iter().chain(spans) {
            count += 1;
            let words = words(command);
            match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["ops", "--help"] => continue,
                // Only named, perhaps with an option.
                ["ops", name] => {
                    let found = Arguments::command().find_subcommand(name).is_some();
                    assert!(found, "`{command}`: no such subcommand");
                    continue;
                }
                ["ops", name, option] if option.starts_with("--") => {
                    let all = Arguments::command();
                    let found = all.find_subcommand(name).is_some_and(|command| {
                        command.get_arguments().any(|it| it.get_long() == option.strip_prefix("--"))
                    });
                    assert!(found, "`{command}`: no such option");
                    continue;
                }
                _ => {}
            }
            Arguments::try_parse_from(&words).unwrap_or_else(|error| panic!("`{command}`: {error}"));
            let own = words.iter().filter(|word| word.starts_with("examples/"));
            own.for_each(|path| assert!(root().join(path).exists(), "`{command}`: there is no {path}"));
        }
    }
    assert!(count > 40, "{count} commands");
}

/// The words of a command, of which some stand in single quotes.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in command.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            c => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

#[test]
fn the_help_of_a_tool_is_that_of_the_first_name() {
    let folder = std::env::temp_dir().join(format!("ops-help-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let snapshot = folder.join("tools.json");
    std::fs::write(&snapshot, r#"{"tools":[{"name":"search","inputSchema":{"type":"object"}}]}"#).unwrap();
    let (folder_name, snapshot_name) = (folder.to_str().unwrap(), snapshot.to_str().unwrap());
    let url = "https://x.example/mcp";
    for (words, spec, operation) in [
        (&["--url", url, "search", "query=cats"][..], None, "search"),
        (&["search", "query=cats", "--", "npx", "server"], None, "search"),
        (&["--url", url, "search"], None, "search"),
        // A tool that has the name of a folder.
        (&["--url", url, folder_name], None, folder_name),
        (&["--url", url, snapshot_name, "search", "query=cats"], Some(snapshot_name), "search"),
        (&["shop.yaml", "showPet", "petId=7"], Some("shop.yaml"), "showPet"),
    ] {
        let Command::Call(call) = Arguments::try_parse_from([&["ops", "call"][..], words].concat()).unwrap().command
        else {
            panic!("{words:?}");
        };
        let shown = call.into_inspect();
        assert_eq!((shown.spec.as_deref(), shown.operation.as_deref()), (spec, Some(operation)), "{words:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// The page of the book with all options; `UPDATE_GOLDEN=1` writes it.
#[test]
fn the_reference_has_every_option() {
    let mut text = String::from(
        "# The command\n\nMade from the command itself: what `ops --help` and `ops COMMAND --help` print.\n\n```text\n",
    );
    let mut command = Arguments::command().term_width(100);
    command.build();
    text.push_str(&command.render_long_help().to_string());
    text.push_str("```\n");
    let names: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    for name in names.iter().filter(|name| *name != "help") {
        let sub = command.find_subcommand_mut(name).unwrap();
        text.push_str(&format!("\n## ops {name}\n\n```text\n{}```\n", sub.render_long_help()));
        let nested: Vec<String> = sub.get_subcommands().map(|it| it.get_name().to_owned()).collect();
        for of in nested.iter().filter(|of| *of != "help") {
            let help = sub.find_subcommand_mut(of).unwrap().render_long_help();
            text.push_str(&format!("\n### ops {name} {of}\n\n```text\n{help}```\n"));
        }
    }
    let text: String = text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect();
    let path = root().join("docs/src/reference/command.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "{} is not what the command says: run the test with UPDATE_GOLDEN=1", path.display());
}
