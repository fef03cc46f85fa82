//! Prints the module of a document, or writes it to a folder: `cargo run --example generate petstore.yaml [folder]
//! [--server]`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let document = arguments.next().ok_or("name a document")?;
    let (flags, rest): (Vec<String>, Vec<String>) = arguments.partition(|argument| argument == "--server");
    let builder = ops_codegen::Builder::new().document(&document);
    let modules = if flags.is_empty() { builder } else { builder.with_server() }.generate()?;
    let folder = rest.first();
    for module in modules {
        for diagnostic in &module.generated.diagnostics {
            eprintln!("{diagnostic}");
        }
        match folder {
            Some(folder) => {
                let path = std::path::Path::new(folder).join(format!("{}.rs", module.namespace));
                ops_codegen::write_if_changed(&path, &module.generated.source)?;
            }
            None => print!("{}", module.generated.source),
        }
    }
    Ok(())
}
