//! Every public module opens with what it is for and an example that runs, and the names that people come with are found.

use std::fs;
use std::path::Path;

use ops_tests_book::pages::root;
use syn::{Attribute, Expr, Item, Lit, Meta, Visibility};

/// The documentation of attributes; that of `cfg_attr` counts as well.
fn documentation(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes {
        match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => {
                if let Expr::Lit(lit) = &pair.value
                    && let Lit::Str(line) = &lit.lit
                {
                    text.push_str(&line.value());
                    text.push('\n');
                }
            }
            Meta::List(list) if list.path.is_ident("cfg_attr") => text.push_str(&list.tokens.to_string()),
            _ => {}
        }
    }
    text
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("doc") && list.tokens.to_string() == "hidden",
        _ => false,
    })
}

/// Checks the modules of a file, whose own modules are in a folder; returns how many there are.
fn check(folder: &Path, file: &Path, name: &str, problems: &mut Vec<String>) -> usize {
    let parsed = syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap();
    let mut count = 0;
    for item in &parsed.items {
        let Item::Mod(module) = item else { continue };
        if !matches!(module.vis, Visibility::Public(_)) || is_hidden(&module.attrs) {
            continue;
        }
        let own = format!("{name}::{}", module.ident);
        let mut text = documentation(&module.attrs);
        count += 1;
        if module.content.is_none() {
            let file = folder.join(format!("{}.rs", module.ident));
            text.push_str(&documentation(&syn::parse_file(&fs::read_to_string(&file).unwrap()).unwrap().attrs));
            count += check(&folder.join(module.ident.to_string()), &file, &own, problems);
        }
        if !text.contains("```") {
            problems.push(format!("{own} has no example"));
        }
    }
    count
}

#[test]
fn modules_have_examples() {
    let (mut problems, mut count) = (Vec::new(), 0);
    for package in ["ops-runtime", "ops-codegen"] {
        let folder = root().join(package).join("src");
        count += check(&folder, &folder.join("lib.rs"), package, &mut problems);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count > 20, "{count} modules");
}

/// The names of the options in a file, which the macro `options!` makes a struct of.
fn fields(file: &str, name: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let body = text.split(&format!("\n    pub struct {name} {{\n")).nth(1);
    let body = body.unwrap_or_else(|| panic!("{file} has no options {name}")).split("\n    }\n").next().unwrap();
    let options = body.lines().map(str::trim).filter(|line| !line.starts_with("//") && line.contains(" = "));
    options.filter_map(|line| line.split([',', ':']).next()).map(str::to_owned).collect()
}

/// Finds the public setters of bounds and timeouts in a folder, each with its type. A setter in a macro has an empty type.
fn bounds(folder: &Path, found: &mut Vec<(String, String)>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            bounds(&path, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let word =
            |text: &str| -> String { text.chars().take_while(|c| *c == '_' || c.is_ascii_alphanumeric()).collect() };
        let mut of = String::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("impl") {
                let generic = if rest.starts_with('<') { rest.split_once("> ") } else { rest.split_once(' ') };
                of = generic.map(|(_, rest)| word(rest)).unwrap_or_default();
            } else if line == "}" {
                of.clear();
            }
            let setter = line.trim().strip_prefix("pub ").and_then(|rest| rest.split_once("fn with_"));
            let Some(name) = setter.map(|(_, rest)| word(rest)) else { continue };
            if name.starts_with("max_") || ["timeout", "tolerance"].iter().any(|end| name.ends_with(end)) {
                found.push((of.clone(), format!("with_{name}")));
            }
        }
    }
}

/// Types whose bounds do not protect a program from others: callers and authors set them for single calls, or a transport
/// describes itself with them.
const OWN: [&str; 5] = ["CallOptions", "CallRequest", "Open", "OperationSpec", "TransportInfo"];

#[test]
fn security_has_each_bound() {
    let security = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let mut all = Vec::new();
    bounds(&root().join("ops-runtime/src"), &mut all);
    // Setters that a macro makes of the fields of options are none of these: the fields are looked at below.
    let mut count = all.len();
    for (heading, file, name, prefix, others) in [
        ("\n## HTTP server\n", "serve/options.rs", "HttpServerOptions", "", &["expose_errors"][..]),
        (
            "\n### MCP server over HTTP (`McpServerOptions`)\n",
            "mcp/server/options.rs",
            "McpServerOptions",
            "",
            &["name", "version", "instructions", "page_size", "list_ttl", "expose_errors"],
        ),
        ("\n## Programs in the sandbox\n", "program/limits.rs", "Limits", "with_", &[]),
    ] {
        let section = security.split(heading).nth(1).unwrap().split("\n## ").next().unwrap();
        let fields = fields(&format!("ops-runtime/src/{file}"), name);
        assert!(fields.len() > 10, "{name}: {fields:?}");
        count += fields.len();
        for field in fields.iter().filter(|field| !others.contains(&field.as_str())) {
            assert!(
                section.contains(&format!("`{prefix}{field}`")),
                "SECURITY.md does not have `{prefix}{field}` below{heading}"
            );
            all.retain(|(of, setter)| of != name || *setter != format!("with_{field}"));
        }
    }
    assert!(count > 100, "{count} bounds");
    // SECURITY.md must name a setter in a line that names its type, or in the section of that type: several types may have
    // setters of the same name.
    let sections: Vec<&str> = security.split("\n#").collect();
    for (of, setter) in all.iter().filter(|(of, _)| !OWN.contains(&of.as_str())) {
        let is_told = sections.iter().any(|section| {
            let is_own = section.contains(&format!("Options without a type belong to `{of}`"));
            let has = |line: &str| {
                let is_of_it = line.contains(of.as_str()) || is_own && line.contains(&format!("`{setter}`"));
                is_of_it && line.contains(&format!("{setter}`"))
            };
            section.lines().any(has)
        });
        assert!(is_told, "SECURITY.md does not have `{setter}` of `{of}`");
    }
}

/// Bounds without an option: where each is, its value, the row of SECURITY.md that has it, and how.
#[rustfmt::skip]
const CONSTANTS: [(&str, &str, &str, &str, &str); 39] = [
    ("ops-runtime/src/http/auth/token.rs", "TIMEOUT", "Duration::from_secs(30)", "a request for a token", "30 s"),
    ("ops-runtime/src/http/auth/token.rs", "MAX_ANSWER", "256 * 1024", "the response to a request for", "256 KiB"),
    ("ops-runtime/src/http/auth/exchange.rs", "MAX_TOKEN", "16 * 1024", "the response to a request for", "16 KiB"),
    ("ops-runtime/src/http/auth/exchange.rs", "MAX_TOKENS", "4_096", "exchanged tokens that", "4,096"),
    ("ops-runtime/src/http/config.rs", "TIMEOUT", "Duration::from_secs(600)", "time to fetch one file", "10 min"),
    ("ops-runtime/src/http/fetch.rs", "TIMEOUT", "Duration::from_secs(60)", "time to fetch one file", "60 s"),
    ("ops-runtime/src/mcp/ask.rs", "MAX_REQUESTS", "32", "requests of the server in one", "32"),
    ("ops-runtime/src/mcp/server/peer.rs", "STATE_TTL", "Duration::from_secs(3_600)", "the client's call with the response", "1 h"),
    ("ops-runtime/src/mcp/server/tasks/ask.rs", "MAX", "100", "questions of an MCP task", "100"),
    ("ops-runtime/src/serve/read/multipart.rs", "MAX_PARTS", "10_000", "parts of a multipart body", "10,000"),
    ("ops-runtime/src/call/broker/workers.rs", "MAX_WORKERS", "10_000", "workers that a caller over", "10,000"),
    ("ops-runtime/src/durable/schedule.rs", "MAX_PATTERN", "256", "a cron pattern", "256 bytes"),
    ("ops-runtime/src/http/import.rs", "ROUNDS", "16", "rounds of fetching", "16"),
    ("ops-runtime/src/documents/openapi/text.rs", "MAX_DEPTH", "512", "nesting of values", "512 levels"),
    ("ops-runtime/src/documents/openapi/yaml.rs", "ALIASED", "(1 << 20, 16)", "what YAML aliases", "1 MB + 16 bytes a byte"),
    ("ops-runtime/src/documents/openapi/copies.rs", "LARGE", "16 << 10", "a schema without a name", "16 KB"),
    ("ops-runtime/src/documents/openapi/copies.rs", "COPIED", "(4 << 20, 8)", "a schema without a name", "4 MB + 8 bytes a byte"),
    ("ops-runtime/src/documents/openapi/copies.rs", "SPECS", "(1 << 20, 16)", "specs of all operations", "1 MB + 16 bytes a byte"),
    ("ops-runtime/src/documents/openapi/operation.rs", "MAX_REPEATED", "10_000", "operations of path items", "10,000"),
    ("ops-runtime/src/documents/openapi/document.rs", "STEPS", "(16 << 20, 64)", "bytes of references", "16 MB + 64 bytes a byte"),
    ("ops-runtime/src/documents/openapi/document.rs", "MAX_HOPS", "64", "hops of one reference", "64"),
    ("ops-codegen/src/lower.rs", "BUDGET", "(1_000_000, 16)", "values of schemas after", "1,000,000 + 16 a value"),
    ("ops-codegen/src/lower/depth.rs", "DEEPEST", "112", "chains of types", "112"),
    ("ops-runtime/src/model/diagnostic.rs", "MOST", "1_000", "diagnostics", "1,000 of each"),
    ("ops-runtime/src/model/diagnostic.rs", "MOST_POINTER", "2_000", "a pointer, a message", "2,000 bytes"),
    ("ops-runtime/src/documents/change/compare.rs", "MOST", "500", "changes between two lists", "500 a schema"),
    ("ops-runtime/src/documents/tools/change.rs", "BUDGET", "20_000", "changes between two lists", "20,000 places"),
    ("ops-runtime/src/normalise/budget.rs", "STEPS_PER_UNIT", "512", "work for a value", "512 steps"),
    ("ops-runtime/src/normalise/budget.rs", "FLOOR", "1 << 18", "work for a value", "2^18"),
    ("ops-runtime/src/normalise/check.rs", "MAX_REMEMBERED", "1 << 20", "results remembered", "2^20 entries"),
    ("ops-runtime/src/normalise/check.rs", "MAX_DEPTH", "288", "nesting of a value, own", "288 levels"),
    ("ops-runtime/src/normalise/standard/keyword.rs", "MAX_DEPTH", "448", "nesting of schemas inside", "448"),
    ("ops-runtime/src/normalise/lower/limits.rs", "MAX_SCHEMAS", "100_000", "nesting of a schema;", "100,000"),
    ("ops-runtime/src/normalise/report.rs", "MAX_TOLD", "1000", "violations of a value", "1,000 listed"),
    ("ops-runtime/src/normalise/pattern.rs", "MAX_BACKTRACKS", "20_000", "backtracking of a", "20,000 steps"),
    ("ops-runtime/src/normalise/pattern.rs", "SIZE_LIMIT", "2 << 20", "size of a compiled", "2 MB"),
    ("ops-runtime/src/normalise/pattern/size.rs", "ALLOWANCE", "64 << 20", "all large patterns", "64 MB"),
    ("ops-runtime/src/normalise/findings.rs", "MAX_PROBLEMS", "1 << 15", "problems of a schema", "32,768"),
    ("ops-runtime/src/normalise/text.rs", "MAX_CREATED", "1 << 16", "what `Cast` makes up", "65,536"),
];

#[test]
fn security_has_each_constant_as_it_is() {
    let security = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    for (file, name, value, row, words) in CONSTANTS {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let rest = text.split(&format!("const {name}: ")).nth(1).unwrap_or_else(|| panic!("{file} has no `{name}`"));
        let found = rest.split([';', '\n']).next().unwrap().split_once(" = ").unwrap().1;
        assert_eq!(found, value, "{file}: `{name}` is new: say so in SECURITY.md, in the row \"{row}\", and here");
        let row = security.lines().find(|line| line.starts_with(&format!("| {row}")));
        let bound =
            row.and_then(|row| row.split(" | ").nth(1)).unwrap_or_else(|| panic!("SECURITY.md has no row of `{name}`"));
        assert!(bound.contains(words), "SECURITY.md has `{bound}` for `{name}`, which is {value}");
    }
}

#[test]
fn the_crate_tells_its_features() {
    let manifest = fs::read_to_string(root().join("ops-runtime/Cargo.toml")).unwrap();
    let section = manifest.split("\n[features]\n").nth(1).unwrap().split("\n[").next().unwrap();
    let source = fs::read_to_string(root().join("ops-runtime/src/lib.rs")).unwrap();
    let list: String =
        source.split("//! # Features").nth(1).unwrap().lines().take_while(|line| !line.starts_with("#!")).collect();
    let names: Vec<&str> = section.lines().filter_map(|line| Some(line.split_once(" = [")?.0)).collect();
    assert!(names.len() > 25 && names[0] == "default", "{names:?}");
    for name in &names[1..] {
        assert!(list.contains(&format!("`{name}`")), "ops-runtime/src/lib.rs does not tell of the feature `{name}`");
    }
}

#[test]
fn known_names_are_aliases() {
    let aliases = [
        ("PendingRequestMap", "ops-runtime/src/call/remote.rs"),
        ("FromOpenAPI", "ops-runtime/src/http/import.rs"),
        ("FromSchema", "ops-runtime/src/model/schema.rs"),
        ("createMCPClient", "ops-runtime/src/mcp/client.rs"),
        ("buildEnv", "ops-runtime/src/run/caller.rs"),
        ("scanOperations", "ops-runtime/src/expand/discover.rs"),
        ("FastMCP", "ops-runtime/src/mcp/server.rs"),
    ];
    let names = fs::read_to_string(root().join("docs/src/from/index.md")).unwrap();
    for (name, file) in aliases {
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(&format!("#[doc(alias = \"{name}\")]")), "{file} does not have the alias {name}");
        assert!(names.contains(&format!("`{name}`")), "docs/src/from/index.md does not tell where {name} is");
    }
}
