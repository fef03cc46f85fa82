//! Makes modules of the snippets of the book and of its starts, and the operations that they name.

#[path = "src/pages.rs"]
#[allow(dead_code, unreachable_pub, missing_docs)]
mod pages;

use std::fs;
use std::path::Path;

use ops_codegen::Builder;

/// What a snippet that is no program finds around it.
const ARGUMENTS: &str = "client: ops_runtime::HttpClient, registry: ops_runtime::Registry, url: String, token: String, \
                         secret: String, headers: axum::http::HeaderMap, body: Vec<u8>";

fn main() -> Result<(), ops_codegen::Error> {
    println!("cargo:rerun-if-changed=../../docs/src");
    println!("cargo:rerun-if-changed=../../README.md");
    for page in pages::all() {
        println!("cargo:rerun-if-changed=../../docs/src/{}", page.path);
    }
    snippets();
    Builder::new()
        .openapi("../../examples/quickstart/shop.yaml")
        .openapi("../../examples/payments/payments.yaml")
        .openapi("../../examples/contacts/contacts.yaml")
        .openapi("../../examples/llm/llm.yaml")
        .openapi("../../examples/streaming/archive.yaml")
        .openapi("../../examples/auth-and-retries/stock.yaml")
        .mcp("files.json")
        .openapi("../../examples/quickstart/shop.yaml")
        .with_server()
        .with_namespace("store")
        .build()
}

/// Writes a file for each snippet, in which its lines have the numbers that they have on the page, and a list of them.
fn snippets() {
    let folder = Path::new(&std::env::var_os("OUT_DIR").unwrap_or_default()).join("snippets");
    let mut list = String::new();
    let readme = pages::Page {
        path: "README.md".to_owned(),
        title: String::new(),
        text: fs::read_to_string(pages::root().join("README.md")).unwrap(),
    };
    for page in pages::all().into_iter().chain([readme]) {
        for block in pages::blocks(&page.text) {
            if !block.is("rust") || block.is_included() || block.info.contains("elsewhere") {
                continue;
            }
            let name =
                format!("{}_{}", page.path.trim_end_matches(".md").replace(['/', '-'], "_").to_lowercase(), block.line);
            let text = module(&block);
            let path = folder.join(format!("{name}.rs"));
            fs::create_dir_all(&folder).unwrap();
            ops_codegen::write_if_changed(&path, &text).unwrap();
            list.push_str(&format!("#[path = {path:?}]\nmod {name};\n"));
        }
    }
    ops_codegen::write_if_changed(&folder.join("all.rs"), &list).unwrap();
}

/// The module of a snippet: a program or a build script as it stands, or else the body of a function.
fn module(block: &pages::Block) -> String {
    let shown: String = block
        .text
        .lines()
        .map(|line| if pages::is_hidden(line) { line.get(2..).unwrap_or_default() } else { line })
        .flat_map(|line| [line, "\n"])
        .collect();
    let above = "\n".repeat(block.line.saturating_sub(2));
    if shown.contains("fn main()") {
        return format!("{above}\n{shown}");
    }
    let run = block.info.contains("run");
    let (attribute, arguments) = if run { ("#[tokio::test] ", "") } else { ("", ARGUMENTS) };
    // The line above the first is that of the function.
    format!(
        "{above}#[allow(unused_imports)] use crate::around::*; {attribute}async fn example({arguments}) -> Result<(), \
         Box<dyn std::error::Error>> {{\n{shown}#[allow(unreachable_code)] Ok(()) }}\n"
    )
}
