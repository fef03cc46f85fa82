//! Turns the document of the exchange rates into typed operations, and into the trait of a server that stands for it.

fn main() -> Result<(), ops_codegen::Error> {
    ops_codegen::Builder::new().openapi("rates.yaml").with_server().build()
}
