//! Typed operations of our own document, as a user's crate has them, and of the toy adapter's.

use std::path::Path;

#[path = "adapter/mod.rs"]
mod adapter;

fn main() -> Result<(), ops_codegen::Error> {
    let description = Path::new("adapter/sums.txt");
    println!("cargo:rerun-if-changed={}", description.display());
    let text = std::fs::read_to_string(description).unwrap_or_default();
    let (api, diagnostics) = adapter::read(&text, "sums");
    ops_codegen::Builder::new()
        .openapi("fixtures/openapi/petshop.yaml")
        .openapi("fixtures/answers/till.yaml")
        .openapi("fixtures/webhooks/orders.yaml")
        .openapi("fixtures/varied/varied.json")
        .openapi("fixtures/serve/shelter.yaml")
        .with_server()
        .openapi("fixtures/serve/shelter.yaml")
        .with_namespace("kennel")
        .with_partial_server()
        .api("sums", api, diagnostics)
        .build()
}
