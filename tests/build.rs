//! Typed operations of our own document, as a user's crate has them.

fn main() -> Result<(), ops_codegen::Error> {
    ops_codegen::Builder::new().openapi("fixtures/openapi/petshop.yaml").build()
}
