//! Turns the stock's document into typed operations.

fn main() -> Result<(), ops_codegen::Error> {
    ops_codegen::Builder::new().openapi("stock.yaml").build()
}
