//! Turns the API's document into typed operations.

fn main() -> Result<(), ops_codegen::Error> {
    ops_codegen::Builder::new().openapi("llm.yaml").build()
}
