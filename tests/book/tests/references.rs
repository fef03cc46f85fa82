//! Pages of the reference that are read from the code: features, errors, diagnostics, `ops.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use ops_tests_book::pages::root;
use ops_tests_book::sources::{Source, sources};
use syn::visit::{self, Visit};
use syn::{Expr, ExprMethodCall, Lit, Member, Pat, Stmt};

mod golden;

fn page(name: &str, text: &str) {
    golden::check(&Path::new("docs/src/reference").join(name), text);
}

#[test]
fn features() {
    let mut text = String::from(
        "# Features\n\nMade from the manifests. *Crates* is the number of crates in a build of the package with this \
         feature alone, the package included. No feature removes or changes anything.\n",
    );
    for package in ["ops-runtime", "ops-codegen"] {
        let manifest = fs::read_to_string(root().join(package).join("Cargo.toml")).unwrap();
        let section = manifest.split("\n[features]\n").nth(1).unwrap().split("\n[").next().unwrap();
        write!(text, "\n## {package}\n\n| feature | brings | with it | crates |\n|---|---|---|--:|\n").unwrap();
        writeln!(text, "| (none) | | | {} |", crates(package, "")).unwrap();
        let (mut comment, mut open, mut told) = (String::new(), None::<(String, String)>, String::new());
        for line in section.lines() {
            if let Some(words) = line.strip_prefix("# ") {
                comment = if comment.is_empty() { words.to_owned() } else { format!("{comment} {words}") };
                continue;
            }
            if let Some((_, values)) = &mut open {
                values.push_str(line);
            } else if let Some((name, values)) = line.split_once(" = [") {
                open = Some((name.to_owned(), values.to_owned()));
                // A comment may stand above several features.
                if !comment.is_empty() {
                    told = std::mem::take(&mut comment);
                }
            }
            if !line.trim_end().ends_with(']') {
                continue;
            }
            let Some((name, values)) = open.take() else { continue };
            let own: Vec<String> = values
                .split(&[',', '"', ']', '[', ' '])
                .filter(|value| !value.is_empty() && !value.contains([':', '/']))
                .map(|value| format!("`{value}`"))
                .collect();
            let told = if name == "default" { "What is on unless you turn it off." } else { told.trim_end() };
            writeln!(text, "| `{name}` | {told} | {} | {} |", own.join(", "), crates(package, &name)).unwrap();
        }
    }
    text.push_str(
        "\nA build script that depends on `ops-codegen` without features runs nothing and serves nothing: it has no tokio and no \
         HTTP client. The page of [benchmarks](../benchmarks.md#compile-time) says how long it takes to compile them.\n",
    );
    page("features.md", &text);
}

/// How many crates a build has.
fn crates(package: &str, feature: &str) -> usize {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", package, "--no-default-features", "--features", feature])
        .args(["--edges", "normal", "--prefix", "none", "--locked", "--offline", "--format", "{p}"])
        .args(["--target", "x86_64-unknown-linux-gnu"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<&str> = text.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    lines.sort_unstable();
    lines.dedup();
    lines.len()
}

/// The codes that are not standard: the feature that gives each, and when.
const CODES: [(&str, &str, &str); 9] = [
    ("APPROVAL_NEEDED", "gateway", "The call needs the user's consent, and the client cannot ask the user."),
    ("JOB_CANCELLED", "durable", "The job was cancelled."),
    ("JOB_NOT_FOUND", "durable", "There is no job with this id: it never was, or its retention has ended."),
    ("KEY_CONFLICT", "durable", "A job with this key has another input."),
    ("NOT_CONNECTED", "gateway", "The MCP server of the operation cannot be reached; the message says why."),
    ("NOT_DESCRIBED", "registry", "A mock was asked for a status that the document does not describe."),
    ("NOT_IMPLEMENTED", "http-server", "A server made by `with_partial_server` has no handler for the operation."),
    (
        "OUTCOME_UNKNOWN",
        "program",
        "The process ended during this call of a program, so it may have been carried out: find out before it is made again.",
    ),
    ("TOO_MANY_REQUESTS", "gateway", "The caller has used up its limit; the message says when to try again."),
];

#[test]
fn errors() {
    let mut text = String::from(
        "# Errors\n\nMade from the code. An error of a call is a `CallError`: a code, a message, details. `error.code()` gives the \
         code, `error.code().as_str()` its text.\n\n## Standard codes\n\n| code | variant of `ErrorCode` | when |\n|---|---|---|\n",
    );
    let source = fs::read_to_string(root().join("ops-runtime/src/model/error.rs")).unwrap();
    let list = source.split("\nerror_codes! {\n").nth(1).unwrap().split("\n}").next().unwrap();
    let mut doc = String::new();
    for line in list.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("/// ") {
            doc = format!("{doc} {words}").trim().to_owned();
        } else if let Some((name, code)) = line.split_once(" = ") {
            let code = code.trim_matches(['"', ',']);
            writeln!(text, "| `{code}` | `{name}` | {} |", std::mem::take(&mut doc)).unwrap();
        }
    }
    text.push_str("\nWhat to do:\n\n");
    text.push_str(
        "- `VALIDATION_ERROR`: the details have each violation with a JSON pointer, and for a response the response as `raw`. See \
         [Handle a response that does not fit](../how-to/misfit.md) and [Check the input](../how-to/input-checks.md).\n\
         - `EXECUTION_ERROR` with a status is an error response: \
         [Handle an error of the API](../how-to/declared-error.md). `error.is_retryable()` says if the call can be repeated.\n\
         - `ACCESS_DENIED`: [Decide who may call](../how-to/access.md).\n\
         - `OPERATION_NOT_FOUND`: the message names similar ids if your program makes the call itself. The calls of a handler, and \
         callers over HTTP and MCP, do not get them. If `error.is_retryable()`, the operation is one of another process, and no \
         worker serves it now.\n\
         - `TIMEOUT` and `ABORTED`: the call may have been executed. A query can be repeated. `error.is_retryable()` is true for a \
         timeout and for a worker or a connection that was lost, and false for a call that was cancelled. It is also false if an \
         HTTP client may have sent a request that is not safe to repeat, such as a POST without an idempotency key; but it is \
         true if a subscription by such a request, once it is open, ends by its own deadline or idle timeout. \
         [Repeat it safely](../how-to/idempotency-key.md), or make it [a job](../how-to/job.md).\n\
         - `TOOL_ERROR`: `error.mcp_meta()` has the tool's whole result.\n\
         - `UNKNOWN_ERROR`: a panic. The log has its text and its operation.\n",
    );
    text.push_str("\n## Codes of single features\n\n| code | feature | when |\n|---|---|---|\n");
    let mut codes: BTreeSet<String> = BTreeSet::new();
    for Source { text: source, .. } in sources(&root().join("ops-runtime/src"), &[".rs"]) {
        let body = source.split("\n#[cfg(test)]\nmod tests").next().unwrap();
        let body: String =
            body.lines().filter(|line| !line.trim_start().starts_with("//")).flat_map(|l| [l, "\n"]).collect();
        // All pieces, since texts with quotation marks in them hide which are texts.
        for piece in body.split('"') {
            let is_code =
                piece.len() > 4 && piece.contains('_') && piece.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
            let standard = text.contains(&format!("| `{piece}` |"));
            if is_code && !standard && is_code_there(&body, piece) {
                codes.insert(piece.to_owned());
            }
        }
    }
    let told: BTreeSet<String> = CODES.iter().map(|(code, ..)| (*code).to_owned()).collect();
    assert_eq!(codes, told, "the codes in the code, and those that are explained");
    for (code, feature, when) in CODES {
        writeln!(text, "| `{code}` | `{feature}` | {when} |").unwrap();
    }
    text.push_str("\n## Over HTTP\n\nThe status of each failure of a served operation (the module `serve`):\n\n");
    let serve = fs::read_to_string(root().join("ops-runtime/src/serve.rs")).unwrap();
    for line in serve.lines().filter_map(|line| line.strip_prefix("//! ")).filter(|line| line.starts_with('|')) {
        writeln!(text, "{line}").unwrap();
    }
    text.push_str(
        "\nA document declares a status by itself, by its class (`4XX`) or by `default`: \
         [Access](../concepts/access.md) says which statuses the last two declare.\n",
    );
    text.push_str(
        "\nAn `HttpClient` gives an error the code that the operation declares for it. Any other failure is an \
         `EXECUTION_ERROR` with the status, as from any API: `error.details()[\"body\"][\"code\"]` is the code of the \
         server, such as `ACCESS_DENIED`. In the items of a stream, standard codes arrive, too.\n",
    );
    text.push_str("\nThe tests of these are `ops-runtime/tests/http_server` and `ops-runtime/tests/call`.\n");
    page("errors.md", &text);
}

/// True if a text is the code of an error where it stands: a const, or the argument of one.
fn is_code_there(body: &str, code: &str) -> bool {
    let quoted = format!("\"{code}\"");
    ["CallError::new(", "ErrorCode::of(", "ErrorCode::from(", "Self::new(", "error(", ": &str = "].iter().any(|start| {
        body.contains(&format!("{start}{quoted}")) || body.contains(&format!("{start}\n                {quoted}"))
    })
}

#[test]
fn settings() {
    let source = fs::read_to_string(root().join("ops-codegen/src/config.rs")).unwrap();
    let docs: Vec<&str> = source.lines().filter_map(|line| line.trim().strip_prefix("///")).collect();
    let start = docs.iter().position(|line| line.trim() == "```toml").unwrap();
    let example: Vec<&str> = docs[start + 1..].iter().take_while(|line| line.trim() != "```").copied().collect();
    let example: String = example.iter().flat_map(|line| [line.strip_prefix(' ').unwrap_or(line), "\n"]).collect();
    // Every key that the reader knows is shown.
    let read = fs::read_to_string(root().join("ops-codegen/src/config/read.rs")).unwrap();
    for list in ["const GENERATE", "const DOCUMENT"] {
        let keys = read.split(list).nth(1).unwrap().split("];").next().unwrap();
        for key in keys.split('"').skip(1).step_by(2) {
            assert!(example.contains(key), "the documentation of `Builder::from_config` does not show `{key}`");
        }
    }
    let text = format!(
        "# ops.toml\n\nMade from the documentation of `Builder::from_config`. The file keeps the documents of a project with their \
         settings. `ops generate` reads it, `ops generate --check` too, and a build script with \
         `Builder::from_config(\"ops.toml\")?.build()` (feature `config` of `ops-codegen`). All make the same modules.\n\n\
         ```toml\n{}```\n\nNothing is required but the `path` of each document. Paths are relative to the file. A key or a value that \
         is wrong is an error with its line.\n\nThe tests are `ops-codegen/src/config/tests.rs` and \
         `ops-codegen/tests/cli_config.rs`.\n",
        // As the test of blocks reads it: a key has one value.
        example.replace(
            "formats = true                          # in place",
            "# formats = true                        # in place"
        )
    );
    page("config.md", &text);
}

#[test]
fn examples() {
    let mut text = String::from(
        "# Examples\n\nMade from the programs in `examples`. Each is a crate of its own that `.ci/run` builds, and runs if it ends by \
         itself.\n\n| example | what it shows |\n|---|---|\n",
    );
    let folders = fs::read_dir(root().join("examples")).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = folders.filter(|path| path.join("Cargo.toml").exists()).collect();
    folders.sort();
    let about = |path: &Path| -> Option<String> {
        let source = fs::read_to_string(path).ok()?;
        let doc = source.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
        Some(doc.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" "))
    };
    for folder in &folders {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let main = ["src/main.rs", "src/lib.rs"].iter().find_map(|file| about(&folder.join(file))).unwrap();
        writeln!(text, "| [{name}](../../../examples/{name}) | {main} |").unwrap();
        // Further programs of the example that are more than a file.
        let others = fs::read_dir(folder.join("src/bin")).into_iter().flatten().map(|entry| entry.unwrap().path());
        let mut others: Vec<_> = others.filter(|path| path.join("main.rs").exists()).collect();
        others.sort();
        for other in others {
            let own = other.file_name().unwrap().to_str().unwrap();
            let about = about(&other.join("main.rs")).unwrap();
            writeln!(text, "| [{name}, `{own}`](../../../examples/{name}/src/bin/{own}) | {about} |").unwrap();
        }
    }
    assert!(folders.len() > 15, "{} examples", folders.len());
    page("examples.md", &text);
}

/// A diagnostic, as found in the source: words in capitals stand for the parts that depend on the document.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    message: String,
    severity: &'static str,
    help: String,
}

/// Finds the diagnostics of a function, with texts that are bound to names.
#[derive(Default)]
struct Finder {
    texts: BTreeMap<String, Vec<String>>,
    found: Vec<Told>,
}

impl Finder {
    /// The texts that an expression can be.
    fn texts(&self, expression: &Expr) -> Vec<String> {
        match expression {
            Expr::Lit(lit) => match &lit.lit {
                Lit::Str(text) => vec![text.value()],
                _ => Vec::new(),
            },
            Expr::Macro(call) if call.mac.path.is_ident("format") => {
                let tokens = call.mac.tokens.to_string();
                let list = syn::parse_str::<syn::ExprArray>(&format!("[{tokens}]")).ok();
                let parts: Vec<Expr> = list.into_iter().flat_map(|list| list.elems).collect();
                let Some((first, arguments)) = parts.split_first() else { return Vec::new() };
                self.texts(first).iter().flat_map(|text| self.filled(text, arguments)).collect()
            }
            Expr::MethodCall(call) => self.texts(&call.receiver),
            Expr::Reference(inner) => self.texts(&inner.expr),
            Expr::Paren(inner) => self.texts(&inner.expr),
            Expr::Path(path) => {
                path.path.get_ident().and_then(|name| self.texts.get(&name.to_string())).cloned().unwrap_or_default()
            }
            Expr::If(branch) => {
                let mut texts = self.last_of(&branch.then_branch.stmts);
                if let Some((_, other)) = &branch.else_branch {
                    texts.extend(self.texts(other));
                }
                texts
            }
            Expr::Block(block) => self.last_of(&block.block.stmts),
            Expr::Match(found) => found.arms.iter().flat_map(|arm| self.texts(&arm.body)).collect(),
            _ => Vec::new(),
        }
    }

    /// The texts of a format string, with words in place of its arguments.
    fn filled(&self, text: &str, arguments: &[Expr]) -> Vec<String> {
        let (mut filled, mut arguments) = (vec![String::new()], arguments.iter());
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let pieces = match c {
                '{' | '}' if chars.next_if_eq(&c).is_some() => vec![c.to_string()],
                '{' => {
                    let inside: String = chars.by_ref().take_while(|c| *c != '}').collect();
                    let named = syn::parse_str::<Expr>(inside.split(':').next().unwrap()).ok();
                    let argument = named.as_ref().or_else(|| arguments.next());
                    argument.map_or_else(|| vec!["NAME".to_owned()], |argument| self.words(argument))
                }
                c => vec![c.to_string()],
            };
            let continued = |start: &String| pieces.iter().map(|piece| format!("{start}{piece}")).collect::<Vec<_>>();
            filled = filled.iter().flat_map(continued).collect();
        }
        filled
    }

    /// The words for an argument of a format string: the texts that it can be, if these are known, or a word for its kind.
    fn words(&self, argument: &Expr) -> Vec<String> {
        let name = name_of(argument).unwrap_or_default();
        let is_const = name.len() > 1 && !name.contains(|c: char| c.is_ascii_lowercase());
        let is_text = is_const || ["fault", "help", "more", "near", "ways"].contains(&name.as_str());
        if let Some(texts) = self.texts.get(&name).filter(|texts| is_text && !texts.is_empty()) {
            return texts.clone();
        }
        let word = match (name.as_str(), argument) {
            ("kind" | "expected", _) => "TYPE",
            ("what", _) => "PLACE",
            // A closure that returns the name of a place.
            (_, Expr::Call(call)) if call.args.is_empty() => "PLACE",
            ("error" | "info" | "message" | "says", _) => "REASON",
            ("bytes" | "left_out" | "len" | "most", _) => "N",
            ("rivals", _) => "NAMES",
            // A hint at the end of a sentence is optional.
            ("hint", _) => "",
            _ if is_const => "N",
            _ => "NAME",
        };
        vec![word.to_owned()]
    }

    fn last_of(&self, statements: &[Stmt]) -> Vec<String> {
        match statements.last() {
            Some(Stmt::Expr(expression, None)) => self.texts(expression),
            _ => Vec::new(),
        }
    }

    fn tell(&mut self, severity: &'static str, message: &Expr, help: Option<&Expr>) {
        let help = help.map(|help| self.texts(help).join("; or: ")).unwrap_or_default();
        for message in self.texts(message) {
            self.found.push(Told { message, severity, help: help.clone() });
        }
    }
}

/// The name of an expression: of a variable, a const or a field, or of the function that it calls.
fn name_of(expression: &Expr) -> Option<String> {
    let name = match expression {
        Expr::Path(path) => path.path.get_ident()?,
        Expr::Field(field) => match &field.member {
            Member::Named(name) => name,
            Member::Unnamed(_) => return None,
        },
        Expr::MethodCall(call) => &call.method,
        Expr::Call(call) => return name_of(&call.func),
        _ => return None,
    };
    Some(name.to_string())
}

/// The severity and the message of `Diagnostic::warning(place, message)`.
fn made(expression: &Expr) -> Option<(&'static str, &Expr)> {
    let Expr::Call(call) = expression else {
        return match expression {
            Expr::MethodCall(call) => made(&call.receiver),
            _ => None,
        };
    };
    let Expr::Path(path) = &*call.func else { return None };
    let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let severity = match names.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["Diagnostic", "warning"] => "warning",
        ["Diagnostic", "note"] => "note",
        ["Diagnostic", "error"] => "error",
        _ => return None,
    };
    Some((severity, call.args.iter().nth(1)?))
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let (Pat::Ident(name), Some(init)) = (&local.pat, &local.init) {
            let texts = self.texts(&init.expr);
            self.texts.insert(name.ident.to_string(), texts);
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let arguments: Vec<&Expr> = call.args.iter().collect();
        match (call.method.to_string().as_str(), &arguments[..]) {
            ("warn", [_, message, help]) => self.tell("warning", message, Some(help)),
            ("note", [_, message, help]) => self.tell("note", message, Some(help)),
            ("with_help", [help]) => {
                if let Some((severity, message)) = made(&call.receiver) {
                    self.tell(severity, message, Some(help));
                    arguments.iter().for_each(|argument| self.visit_expr(argument));
                    return;
                }
            }
            _ => {}
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let expression = Expr::Call(call.clone());
        if let Some((severity, message)) = made(&expression) {
            self.tell(severity, message, None);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        let texts = self.texts(&item.expr);
        self.texts.insert(item.ident.to_string(), texts);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.ident != "tests" {
            visit::visit_item_mod(self, module);
        }
    }
}

#[test]
fn diagnostics() {
    let mut text = String::from(
        "# Diagnostics\n\nMade from the code: every message about a document, and what the reader or the generator did. Words in \
         capitals stand for what the message has there: `NAME` for a name or a value of the document, `NAMES` for several, \
         `PLACE` for a part of the document, such as a parameter, `TYPE` for a type of JSON, `N` for a number, and `REASON` for \
         an explanation. `ops inspect SPEC` shows the messages about your document, with line numbers.\n\n\
         - A **note**: something was read in a way that its author may not have meant, or has no effect.\n\
         - A **warning**: something was left out or made less precise.\n\
         - An **error**: the document could not be read.\n\n\
         What to do: nothing, if you do not need the part. Otherwise [mend the document](../how-to/overlay.md) where the pointer \
         says, or tell its author.\n",
    );
    let mut count = 0;
    for (title, folder, wanted) in [
        ("Reading", "ops-runtime/src/documents", ["openapi/", "openapi.rs", "tools/", "dir"].as_slice()),
        ("Generating", "ops-codegen/src", &["lower", "module", "rename", "overlay", "render"]),
    ] {
        write!(text, "\n## {title}\n").unwrap();
        for Source { path, text: source } in sources(&root().join(folder), &[".rs"]) {
            let is_wanted = wanted.iter().any(|start| path.starts_with(start));
            if !is_wanted || path.contains("tests") || path.contains("change") {
                continue;
            }
            let mut finder = Finder::default();
            finder.visit_file(&syn::parse_file(&source).unwrap());
            finder.found.sort();
            finder.found.dedup();
            if finder.found.is_empty() {
                continue;
            }
            let about = source.lines().next().unwrap().trim_start_matches("//! ").split([':', ',']).next().unwrap();
            let about = match about.trim_end_matches('.') {
                "Which places of the documents become definitions" => "Named schemas",
                "The shared state of the reader" => "References",
                "Passes over all types" => "Types that contain themselves, tags and constants",
                "From JSON Schemas to the canonical form" => "JSON Schema",
                "The definitions of an API as parsed JSON" => "Definitions",
                "The module to render" => "Modules",
                "The forms of lists of tools" => "Files with lists of tools",
                "Lists of tools to operations" => "Tools",
                about => about,
            };
            write!(text, "\n### {about}\n\n").unwrap();
            writeln!(text, "| | message | what was done, or what to do |\n|---|---|---|").unwrap();
            for Told { message, severity, help } in &finder.found {
                count += 1;
                let cell = |words: &str| words.replace('|', "\\|").replace('\n', " ").replace('<', "&lt;");
                writeln!(text, "| {severity} | {} | {} |", cell(message), cell(help)).unwrap();
            }
        }
    }
    assert!(count > 90, "{count} diagnostics were found");
    text.push_str("\nThe tests of these are beside the code, and in `ops-codegen/tests/golden`.\n");
    page("diagnostics.md", &text);
}
