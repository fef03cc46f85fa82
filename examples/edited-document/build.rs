//! Puts a document right, and turns it into typed operations.

use std::error::Error;

use openapiv3::{NumberType, OpenAPI, ReferenceOr, SchemaKind, Type};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=weather.json");
    let mut document: OpenAPI = serde_json::from_str(&std::fs::read_to_string("weather.json")?)?;
    edit(&mut document).ok_or("weather.json has changed: look at the edits of build.rs again")?;
    ops_codegen::Builder::new().openapi_value("weather", &document)?.build()?;
    Ok(())
}

/// What the service does otherwise than its document says; `None` if there is no place for an edit.
fn edit(document: &mut OpenAPI) -> Option<()> {
    // An endpoint that is not for us.
    document.paths.paths.shift_remove("/internal/reset")?;
    // An operation without a name.
    let ReferenceOr::Item(path) = document.paths.paths.get_mut("/reports/{city}")? else { return None };
    path.get.as_mut()?.operation_id = Some("showReport".to_owned());
    // A number that is called text, and is always there.
    let ReferenceOr::Item(report) = document.components.as_mut()?.schemas.get_mut("Report")? else { return None };
    let SchemaKind::Type(Type::Object(report)) = &mut report.schema_kind else { return None };
    let ReferenceOr::Item(celsius) = report.properties.get_mut("celsius")? else { return None };
    celsius.schema_kind = SchemaKind::Type(Type::Number(NumberType::default()));
    report.required.push("celsius".to_owned());
    Some(())
}
