//! What the README says works: its snippets are compiled as they stand, its commands name what there is.
//!
//! The snippets are compiled in one crate, in `target/readme`, with the README's dependencies and build script. Each has a
//! file of its own, in which its lines have the numbers that they have in the README.

mod blocks;
mod package;

use std::path::Path;

use ops_tests::corpus::root;

use crate::blocks::{Block, Readme};
use crate::package::check;

/// How a snippet is compiled.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// The build script.
    BuildScript,
    /// A program of its own, with the README's dependencies and no others.
    Program,
    /// A part of an async function: what its file imports, and the function's arguments.
    Body(&'static str, &'static str),
}

/// The first line of each snippet, the name of its file, and what exists around it.
const SNIPPETS: &[(&str, &str, Place)] = &[
    (
        "let pet = registry.execute::<shop::ShowPet>(7).await?;   // ResponseEnvelope<Pet>",
        "one_call",
        Place::Body("crate::shop, ops_runtime::Registry", "registry: Registry"),
    ),
    ("use ops_runtime::{CallError, Context, Registry, operation};", "functions", Place::Body("", "")),
    ("fn main() -> Result<(), ops_codegen::Error> {", "build", Place::BuildScript),
    ("use ops_runtime::{HttpClient, HttpConfig, Registry};", "program", Place::Program),
    (
        "use payments::{Amount, Methods, PaymentRequest};",
        "inputs",
        Place::Body(
            "crate::payments, ops_runtime::{CallOptions, HttpClient}, std::time::Duration",
            "client: HttpClient",
        ),
    ),
    (
        "let options = CallOptions::new().with_header(\"X-Tenant\", \"t-7\").with_idempotency_key(\"order-4711\");",
        "call_options",
        Place::Body(
            "crate::payments::{Methods, PaymentRequest}, ops_runtime::{CallOptions, HttpClient}",
            "client: HttpClient, request: PaymentRequest",
        ),
    ),
    (
        "let verifier = WebhookVerifier::standard(&std::env::var(\"WEBHOOK_SECRET\")?)?;",
        "webhooks",
        Place::Body(
            "crate::payments, axum::http::HeaderMap, ops_runtime::webhooks::{self, WebhookVerifier}",
            "headers: HeaderMap, body: Vec<u8>, secret: &str",
        ),
    ),
    (
        "let config = HttpConfig::new().with_namespace(\"met\");",
        "met_at_run_time",
        Place::Body("ops_runtime::{HttpConfig, Registry}", "registry: Registry"),
    ),
    ("use ops_runtime::http::{Auth, HttpConfig, Retry};", "credentials", Place::Body("", "")),
    (
        "use ops_runtime::{CallOptions, ErrorCode};",
        "policies",
        Place::Body("crate::shop::Methods, ops_runtime::HttpClient", "client: HttpClient"),
    ),
    (
        "use archive::{AddRecordingInputBody, Methods};",
        "uploads",
        Place::Body("crate::archive, ops_runtime::{Body, HttpClient}", "client: HttpClient"),
    ),
    ("use ops_runtime::{CallError, Caller};", "mock", Place::Body("crate::shop", "")),
    ("use files::Methods;", "mcp_client", Place::Body("std::time::Duration", "")),
    (
        "use ops_runtime::mcp::{McpClients, McpConfig};",
        "mcp_clients",
        Place::Body("ops_runtime::Registry, serde_json::json", ""),
    ),
    (
        "use ops_runtime::mcp::McpServer;",
        "mcp_server",
        Place::Body(
            "axum::http::request::Parts, ops_runtime::{Registry, access::Identity, mcp::Unauthorized}, std::future::Ready",
            "registry: Registry, \
             authenticate: impl Fn(&Parts) -> Ready<Result<Identity, Unauthorized>> + Send + Sync + 'static",
        ),
    ),
    (
        "use ops_runtime::gateway::{Gateway, Tools};",
        "gateway",
        Place::Body("ops_runtime::{HttpConfig, Registry, http::Auth}", "registry: Registry, token: String"),
    ),
    (
        "use ops_runtime::serve::HttpServer;",
        "http_server",
        Place::Body(
            "axum::http::request::Parts, ops_runtime::{Registry, access::Identity, serve::Unauthorized}, std::future::Ready",
            "registry: Registry, \
             authenticate: impl Fn(&Parts) -> Ready<Result<Identity, Unauthorized>> + Send + Sync + 'static",
        ),
    ),
    (
        "/// Shows a pet: `GET /pets/7?fields=name`.",
        "http_function",
        Place::Body("ops_runtime::{CallError, operation}", ""),
    ),
    (
        "struct Shop;",
        "served_document",
        Place::Body(
            "crate::store::{self as shop, Pet, Problem, Sale, ShowPetError, ShowPetInput, Status, WatchSalesInput}, \
             futures_util::stream, \
             ops_runtime::{CallError, Context, Registry, adapter::ItemStream, registry::OutputPolicy, serve::HttpServer}",
            "",
        ),
    ),
    (
        "let mcp = McpServer::new(registry.clone()).into_service();",
        "one_port",
        Place::Body("ops_runtime::{Registry, mcp::McpServer, serve::HttpServer}", "registry: Registry"),
    ),
    (
        "let hub = Hub::new(CallHandler::new(registry)).with_forwarding();          // serves, and forwards calls to spokes",
        "hub",
        Place::Body(
            "crate::sums::{Add, AddInput}, ops_runtime::Registry, \
             ops_runtime::call::{CallHandler, websocket::{Hub, WebSocketClient, WebSocketConfig}}",
            "registry: Registry, token: String",
        ),
    ),
];

#[test]
fn every_snippet_compiles_as_it_stands() {
    let readme = Readme::read();
    let snippets: Vec<&Block> = readme.blocks("rust").collect();
    let mut problems = Vec::new();
    for snippet in &snippets {
        if !SNIPPETS.iter().any(|(first, ..)| *first == snippet.first()) {
            problems.push(format!(
                "README.md:{}: the snippet that begins with `{}` has no entry: add it to SNIPPETS, with what exists around it",
                snippet.line,
                snippet.first()
            ));
        }
    }
    let mut entries = Vec::new();
    for (first, name, place) in SNIPPETS {
        match snippets.iter().filter(|snippet| snippet.first() == *first).collect::<Vec<_>>()[..] {
            [snippet] => entries.push((*snippet, *name, *place)),
            [] => {
                problems.push(format!("SNIPPETS: no snippet begins with `{first}`: remove the entry, or mend its line"))
            }
            _ => problems.push(format!("SNIPPETS: several snippets begin with `{first}`: begin them differently")),
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    if let Err(said) = check(&readme, &entries) {
        panic!("the README does not compile; the lines are its own:\n{said}");
    }
    println!("{} snippets", entries.len());
}

#[test]
fn every_command_names_what_there_is() {
    let readme = Readme::read();
    let mut commands = 0;
    for (line, command) in readme.commands() {
        let words: Vec<&str> = command.split_whitespace().collect();
        let is_there = match words[..] {
            ["cargo", "run", "-p", name, ..] => is_example(name),
            ["cargo", "install", "--path", package, "--features", feature] => {
                let manifest = std::fs::read_to_string(root().join(package).join("Cargo.toml")).unwrap_or_default();
                manifest.lines().any(|line| line.starts_with(&format!("{feature} = [")))
            }
            // The command's own tests parse these: `ops-codegen/src/bin/ops/arguments.rs`.
            ["ops", ..] => true,
            [file, ..] => file.contains('/') && root().join(file).exists(),
            [] => false,
        };
        assert!(is_there, "README.md:{line}: `{command}`: there is no such command, package, feature or file");
        commands += 1;
    }
    for (line, language, text) in readme.all().map(|block| (block.line, block.language.as_str(), &block.text)) {
        match language {
            "rust" | "sh" => {}
            // Those of the crate are compiled.
            "toml" if text.starts_with("[dependencies]") => {}
            "toml" => {
                let config = ops_codegen::config::Config::parse("README.md", text);
                let config = config.unwrap_or_else(|error| panic!("README.md:{line}: {error}"));
                assert_eq!(config.documents.len(), 1, "README.md:{line}");
            }
            // A host's configuration, by which it starts an example.
            "json" => {
                let host: serde_json::Value = serde_json::from_str(text).unwrap();
                let server = &host["mcpServers"]["shop"];
                assert_eq!(
                    (&server["command"], &server["args"][2]),
                    (&"cargo".into(), &"-p".into()),
                    "README.md:{line}"
                );
                assert!(server["args"][3].as_str().is_some_and(is_example), "README.md:{line}");
            }
            other => panic!("README.md:{line}: nothing tests blocks of `{other}`: add it here"),
        }
    }
    println!("{commands} commands");
}

/// True if there is an example of that name.
fn is_example(name: &str) -> bool {
    let manifest = root().join(Path::new("examples")).join(name).join("Cargo.toml");
    std::fs::read_to_string(manifest).is_ok_and(|text| text.contains(&format!("name = \"{name}\"\n")))
}
