//! The pages hang together: each is in the summary, includes are there, commands name what there is, and `llms.txt` lists them.

use std::fs;
use std::path::Path;

use ops_tests_book::pages::{self, Page};

mod golden;

#[test]
fn the_summary_names_each_page_once() {
    let summary = fs::read_to_string(pages::source().join("SUMMARY.md")).unwrap();
    for page in pages::all() {
        let count = summary.matches(&format!("]({})", page.path)).count();
        assert_eq!(count, 1, "SUMMARY.md names {} {count} times", page.path);
        assert!(!page.title.is_empty(), "{} has no heading", page.path);
    }
}

#[test]
fn the_index_of_questions_names_each_answer() {
    let index = fs::read_to_string(pages::source().join("how-to/index.md")).unwrap();
    let answers: Vec<Page> = pages::all().into_iter().filter(|page| page.path.starts_with("how-to/")).collect();
    assert!(answers.len() > 40, "{} answers", answers.len());
    for page in answers.iter().filter(|page| page.path != "how-to/index.md") {
        let name = page.path.trim_start_matches("how-to/");
        assert!(index.contains(&format!("]({name})")), "how-to/index.md does not name {name}");
        assert!(page.text.len() < 4_500, "{} is longer than a page", page.path);
    }
}

#[test]
fn every_page_is_plain_markdown_too() {
    for page in pages::all() {
        let plain = pages::plain(&page.path, &page.text).unwrap();
        assert!(!plain.contains("{{#include") && !plain.contains("ANCHOR"), "{}", page.path);
    }
}

/// What a reader sees of a page's snippets of Rust, a text for each, without comments. Whole programs are left out.
fn snippets(page: &Page) -> Vec<String> {
    let blocks = pages::blocks(&page.text).into_iter().filter(|block| block.is("rust") && !block.is_included());
    let parts = blocks.filter(|block| !block.info.contains("elsewhere") && !block.text.contains("fn main()"));
    let seen = |text: &str| -> String {
        let lines = text.lines().filter(|line| !pages::is_hidden(line));
        lines.flat_map(|line| [line.split("// ").next().unwrap(), "\n"]).collect()
    };
    parts.map(|block| seen(&block.text)).collect()
}

/// Variables that snippets use without making them.
const VARIABLES: [&str; 2] = ["client", "registry"];

/// Generated modules that snippets use.
const MODULES: [&str; 6] = ["archive", "contacts", "files", "llm", "payments", "shop"];

fn names() -> impl Iterator<Item = &'static str> {
    VARIABLES.into_iter().chain(MODULES)
}

/// True if a snippet uses a name that it does not define.
fn uses(snippet: &str, name: &str) -> bool {
    let ends: &[&str] = if VARIABLES.contains(&name) { &[".", ",", ")"] } else { &["::"] };
    let is_defined = snippet.contains(&format!("let {name} ")) || snippet.contains(&format!("{name}: "));
    let is_whole = |before: Option<char>| before.is_none_or(|c| !c.is_alphanumeric() && !"_.:\"`".contains(c));
    !is_defined
        && snippet.match_indices(name).any(|(at, _)| {
            let after = &snippet[at + name.len()..];
            is_whole(snippet[..at].chars().next_back()) && ends.iter().any(|end| after.starts_with(end))
        })
}

#[test]
fn answers_explain_the_names_in_their_snippets() {
    let index = fs::read_to_string(pages::source().join("how-to/index.md")).unwrap();
    let (_, list) = index.split_once("\n## Names in the snippets\n").unwrap();
    for name in names() {
        assert!(list.contains(&format!("`{name}`")), "how-to/index.md does not explain `{name}`");
    }
    let links = ["](index.md#names-in-the-snippets)", "](../start/api.md)"];
    for page in pages::all().iter().filter(|page| page.path.starts_with("how-to/") && page.path != "how-to/index.md") {
        let snippets = snippets(page);
        let used: Vec<&str> = names().filter(|name| snippets.iter().any(|snippet| uses(snippet, name))).collect();
        assert!(
            used.is_empty() || links.iter().any(|link| page.text.contains(link)),
            "{} does not say where {used:?} come from: link to `{}`",
            page.path,
            links[0]
        );
    }
}

/// What snippets use of `ops-runtime`, and the features that have it.
const FEATURES: [(&str, &[&str]); 13] = [
    ("HttpConfig", &["http", "compression", "gateway"]),
    ("ops_runtime::http::", &["http", "compression", "gateway"]),
    ("ops_runtime::serve::", &["http-server"]),
    ("McpServer::", &["mcp-server"]),
    ("McpPeer", &["mcp-server"]),
    ("McpClient", &["mcp", "mcp-auth"]),
    ("ops_runtime::gateway::", &["gateway"]),
    ("ops_runtime::program::", &["program"]),
    ("ops_runtime::durable::", &["durable"]),
    ("ops_runtime::call::websocket::", &["websocket"]),
    ("ops_runtime::call::nats::", &["nats"]),
    ("ops_runtime::search::", &["search"]),
    ("ops_runtime::typescript::", &["typescript"]),
];

#[test]
fn answers_name_the_features_that_they_need() {
    for page in pages::all().iter().filter(|page| page.path.starts_with("how-to/")) {
        let (snippets, prose) = (snippets(page), pages::prose(&page.text));
        for (part, features) in FEATURES {
            let is_used = snippets.iter().any(|snippet| snippet.contains(part));
            let is_named = features.iter().any(|feature| prose.contains(&format!("`{feature}`")));
            assert!(!is_used || prose.contains("feature") && is_named, "{}: {part} needs {features:?}", page.path);
        }
    }
}

/// Without an authenticator, an HTTP server refuses every call of an operation with access rules.
#[test]
fn operations_with_access_rules_are_served_to_known_callers() {
    let readme = fs::read_to_string(pages::root().join("README.md")).unwrap();
    let readme = Page { path: "README.md".to_owned(), title: String::new(), text: readme };
    for page in pages::all().iter().chain([&readme]) {
        for snippet in snippets(page) {
            let is_served = snippet.contains("HttpServer::new(");
            let has_rules = ["scopes(", "scopes_any(", "resource("].iter().any(|rule| snippet.contains(rule));
            let knows_callers = snippet.contains(".with_authenticator(");
            assert!(!is_served || !has_rules || knows_callers, "{}: nobody can call this:\n{snippet}", page.path);
        }
    }
}

/// Programs that pages name and that are not ours.
const OTHERS: [&str; 5] = [".venv/bin/nats-server", ".venv/bin/pip", "cp", "curl", "python3"];

#[test]
fn every_command_names_what_there_is() {
    let root = pages::root();
    let mut count = 0;
    let is_package = |name: &str| {
        let folders = [format!("examples/{name}"), name.to_owned()];
        folders.iter().any(|folder| {
            fs::read_to_string(root.join(folder).join("Cargo.toml"))
                .is_ok_and(|text| text.contains(&format!("name = \"{name}\"\n")))
        })
    };
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let readme = Page { path: "README.md".to_owned(), title: String::new(), text: readme };
    for page in pages::all().into_iter().chain([readme]) {
        for (line, command) in commands(&page) {
            let words: Vec<&str> = command.split_whitespace().collect();
            let is_there = match words[..] {
                ["cargo", "run", "-p", name, "--bin", bin, ..] => {
                    let bins = root.join(format!("examples/{name}/src/bin"));
                    is_package(name) && (bins.join(bin).exists() || bins.join(format!("{bin}.rs")).exists())
                }
                ["cargo", "run" | "test", "-p", name, ..] => is_package(name),
                ["cargo", "run"] | ["cargo", "run", "--", ..] | ["cargo", "new", _] => true,
                ["cargo", "new", "--lib", _] => true,
                ["cd", folder] => commands(&page).iter().any(|(_, other)| *other == format!("cargo new {folder}")),
                ["cargo", "install", "--locked", "--path", path, "--features", "cli"] => {
                    root.join(path.trim_start_matches("ops/")).join("Cargo.toml").exists()
                }
                // What the repository's own commands run.
                ["cargo", "bench", "-p", "ops-runtime", ..] => {
                    let bench = words.iter().skip_while(|word| **word != "--bench").nth(1);
                    bench.is_some_and(|name| root.join(format!("ops-runtime/benches/{name}.rs")).exists())
                }
                // `ops-codegen/src/bin/ops/arguments.rs` parses these.
                ["ops", ..] => true,
                [program, ..] if OTHERS.contains(&program) => true,
                [file, ..] => file.contains('/') && root.join(file).exists(),
                [] => continue,
            };
            assert!(is_there, "{}:{line}: `{command}`: there is no such command, package or file", page.path);
            // Files of the clone.
            for path in words.iter().map(|word| word.trim_start_matches("ops/")).filter(|w| w.starts_with("examples/"))
            {
                assert!(root.join(path).exists(), "{}:{line}: there is no {path}", page.path);
            }
            count += 1;
        }
    }
    println!("{count} commands");
}

/// The lines of shell blocks without their comments, and what stands between backticks and is a command.
fn commands(page: &Page) -> Vec<(usize, String)> {
    let mut commands = Vec::new();
    for block in pages::blocks(&page.text).iter().filter(|block| block.is("sh")) {
        for (number, line) in (block.line..).zip(block.text.lines()) {
            commands.push((number, line.split(" #").next().unwrap().trim().to_owned()));
        }
    }
    for (number, line) in (1..).zip(pages::prose(&page.text).lines()) {
        let spans = line.split('`').skip(1).step_by(2);
        let starts = ["cargo run", "cargo test", "cargo bench", "tests/", "docs/", ".ci/"];
        commands.extend(
            spans
                .filter(|span| starts.iter().any(|start| span.starts_with(start)))
                .map(|span| (number, span.to_owned())),
        );
    }
    commands
}

#[test]
fn other_blocks_are_what_they_say() {
    for page in pages::all() {
        for block in pages::blocks(&page.text).iter().filter(|block| !block.is_included()) {
            let at = format!("{}:{}", page.path, block.line);
            match block.info.split(',').next().unwrap_or_default() {
                "rust" | "sh" | "text" | "js" | "python" => {}
                "json" => {
                    drop(serde_json::from_str::<serde_json::Value>(&block.text).unwrap_or_else(|e| panic!("{at}: {e}")))
                }
                "yaml" => drop(ops_runtime::openapi::parse(&block.text).unwrap_or_else(|e| panic!("{at}: {e}"))),
                "toml" if block.text.starts_with("[documents") || block.text.starts_with("[generate]") => {
                    ops_codegen::config::Config::parse(&at, &block.text).unwrap_or_else(|error| panic!("{error}"));
                }
                // Dependencies, which `starts` compiles, and the configuration of a gateway.
                "toml" => {}
                other => panic!("{at}: nothing tests blocks of `{other}`"),
            }
        }
    }
}

/// The index of all pages for models (<https://llmstxt.org>).
#[test]
fn llms_txt() {
    let summary = fs::read_to_string(pages::source().join("SUMMARY.md")).unwrap();
    let all = pages::all();
    let mut text = String::from(
        "# ops\n\n> One typed call for everything a Rust program can invoke: its own functions, HTTP APIs described by OpenAPI, \
         tools of MCP servers, and operations of other processes.\n\nEach page is plain Markdown.\n",
    );
    for line in summary.lines() {
        if let Some(heading) = line.strip_prefix("# ").filter(|heading| *heading != "Summary") {
            text.push_str(&format!("\n## {heading}\n\n"));
        }
        let path = line.split("](").nth(1).and_then(|rest| rest.strip_suffix(')'));
        // A group of pages has no page of its own.
        let Some(path) = path.filter(|path| !path.is_empty()) else { continue };
        let page = all.iter().find(|page| page.path == path).unwrap();
        if text.ends_with("Markdown.\n") {
            text.push_str("\n## Book\n\n");
        }
        text.push_str(&format!("- [{}]({path}): {}\n", page.title, first_sentence(&page.text)));
    }
    golden::check(Path::new("docs/llms.txt"), &text);
}

/// The first sentence below the heading, without links. Empty if a block or a table stands there.
fn first_sentence(text: &str) -> String {
    let summary = pages::summary(text);
    if summary.starts_with(['|', '`', '<', '#', '-', '*', '!']) {
        return String::new();
    }
    let end = summary.find(". ").map_or(summary.len(), |at| at + 1);
    let mut sentence = summary[..end].to_owned();
    while let (Some(open), Some(close)) =
        (sentence.find("]("), sentence.find("](").and_then(|at| sentence[at..].find(')')))
    {
        sentence.replace_range(open..=open + close, "");
    }
    sentence.replace('[', "").trim_end_matches(':').to_owned()
}
