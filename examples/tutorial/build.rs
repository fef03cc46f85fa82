//! Turns the document of the exchange rates into typed operations.

// ANCHOR: build
fn main() -> Result<(), ops_codegen::Error> {
    ops_codegen::Builder::new().openapi("rates.yaml").with_server().build()
}
// ANCHOR_END: build
