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
    let mut refer = |reference: &mut Value| {
        if let Value::String(reference) = reference
            && let Some(path) = reference.strip_prefix(pointer::DEFINITIONS)
        {
            let name = path.split_once('/').map_or(path, |(name, _)| name);
            names.push(pointer::unescaped(name).into_owned());
            *reference = format!("#/$defs/{namespace}.{path}");
        }
    };
    if let Some(reference) = object.get_mut("$ref") {
        refer(reference);
    }
    // A discriminator.
    if object.get("propertyName").is_some_and(Value::is_string) {
        if let Some(Value::Object(mapping)) = object.get_mut("mapping") {
            mapping.values_mut().for_each(&mut refer);
        }
        if let Some(other) = object.get_mut("defaultMapping") {
            refer(other);
        }
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
        Definition::new(
            "Stay",
            r##"{"oneOf":[{"$ref":"#/$defs/Pet/properties/in"}],"discriminator":{"propertyName":"kind","mapping":{"pet":"#/$defs/Pet"},"defaultMapping":"#/$defs/Cage"}}"##,
        ),
    ];

    struct Pet;
    struct Stay;

    crate::__json_schemas!("shop", DEFINITIONS { Pet = "Pet", Stay = "Stay", });

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

    #[test]
    fn discriminators_and_parts_lead_to_what_is_there() {
        let settings = schemars::generate::SchemaSettings::draft2020_12();
        let schema = settings.into_generator().into_root_schema_for::<Vec<Stay>>().to_value();
        let stay = &schema["$defs"]["shop.Stay"];
        assert_eq!(stay["oneOf"][0]["$ref"], "#/$defs/shop.Pet/properties/in");
        assert_eq!(stay["discriminator"]["mapping"]["pet"], "#/$defs/shop.Pet");
        assert_eq!(stay["discriminator"]["defaultMapping"], "#/$defs/shop.Cage");
        for name in ["shop.Pet", "shop.Cage", "shop.Stay"] {
            assert!(schema["$defs"][name].is_object(), "{schema}");
        }
    }
}
