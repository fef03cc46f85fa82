//! JSON Schemas of generated types, for local operations that take or return them.

use std::borrow::Cow;

pub use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::pointer;
use crate::{Definition, Definitions};

/// The name of a definition in schemas that mix those of several APIs.
pub fn schema_name(namespace: &str, name: &str) -> Cow<'static, str> {
    Cow::Owned(format!("{namespace}.{name}"))
}

/// The schema of a definition; what it refers to is added to the generator's definitions.
pub fn json_schema(
    generator: &mut SchemaGenerator,
    namespace: &str,
    name: &str,
    definitions: &'static [Definition],
) -> Schema {
    let definitions = Definitions::Static(definitions);
    let mut names = Vec::new();
    let schema = renamed(&definitions, namespace, name, &mut names);
    while let Some(name) = names.pop() {
        let key = schema_name(namespace, &name);
        if !generator.definitions().contains_key(key.as_ref()) {
            let schema = renamed(&definitions, namespace, &name, &mut names);
            generator.definitions_mut().insert(key.into_owned(), schema);
        }
    }
    // What is neither an object nor a boolean is no schema, and can't be in generated code.
    Schema::try_from(schema).unwrap_or_default()
}

impl JsonSchema for crate::ContentBlock {
    fn schema_name() -> Cow<'static, str> {
        schema_name("mcp", "ContentBlock")
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema(generator, "mcp", "ContentBlock", crate::model::wire::CONTENT_BLOCK_DEFINITIONS)
    }
}

/// A definition whose references have the namespace in them; collects the names that it refers to.
fn renamed(definitions: &Definitions, namespace: &str, name: &str, names: &mut Vec<String>) -> Value {
    let mut schema = match definitions.get(name).map(|definition| definition.schema.to_value()) {
        Some(Ok(schema)) => schema.into_owned(),
        _ => Value::Bool(true),
    };
    let mut stack = vec![&mut schema];
    while let Some(value) = stack.pop() {
        match value {
            Value::Object(object) => {
                rename(object, namespace, names);
                stack.extend(object.values_mut());
            }
            Value::Array(items) => stack.extend(items),
            _ => {}
        }
    }
    schema
}

fn rename(object: &mut Map<String, Value>, namespace: &str, names: &mut Vec<String>) {
    if let Some(Value::String(reference)) = object.get_mut("$ref")
        && let Some(name) = reference.strip_prefix(pointer::DEFINITIONS)
    {
        names.push(pointer::unescaped(name).into_owned());
        *reference = format!("#/$defs/{namespace}.{name}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static DEFINITIONS: &[Definition] = &[
        Definition::new("Cage", r#"{"type":"string"}"#),
        Definition::new(
            "Pet",
            r##"{"type":"object","properties":{"in":{"$ref":"#/$defs/Cage"},"of":{"$ref":"#/$defs/Pet"}}}"##,
        ),
    ];

    struct Pet;

    crate::__json_schemas!("shop", DEFINITIONS { Pet = "Pet", });

    #[test]
    fn a_generated_type_brings_what_it_refers_to() {
        let schema =
            schemars::generate::SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Vec<Pet>>();
        let schema = schema.to_value();
        assert_eq!(schema["items"]["$ref"], "#/$defs/shop.Pet");
        assert_eq!(schema["$defs"]["shop.Pet"]["properties"]["in"]["$ref"], "#/$defs/shop.Cage");
        assert_eq!(schema["$defs"]["shop.Pet"]["properties"]["of"]["$ref"], "#/$defs/shop.Pet");
        assert_eq!(schema["$defs"]["shop.Cage"]["type"], "string");
    }
}
