//! Schemas that are written as TypeScript.

use ops_runtime::spec::{Api, Definition, Definitions, OperationKind, OperationSpec, Schema};
use ops_runtime::typescript::{Detail, Names, declarations, describe};
use serde_json::Value;

use super::joined;
use crate::Outcome;

/// Writes an operation with this input and these definitions, each the text of JSON.
fn written(input: &str, definitions: &str) -> Outcome {
    let read = |text: &str| serde_json::from_str::<Value>(text).map_err(|error| error.to_string());
    let definitions: Vec<Definition> = match read(definitions)? {
        Value::Object(all) => all.into_iter().map(|(name, schema)| Definition::from_value(name, schema)).collect(),
        _ => Vec::new(),
    };
    let mut spec = OperationSpec::new(OperationKind::Mutation, "a", "f").map_err(|error| error.to_string())?;
    spec.input = Schema::from(read(input)?);
    let api = Api::new(Definitions::new(definitions), vec![spec]);
    let names = Names::new(api.operations.iter().map(|spec| &spec.id));
    let short: usize = api.operations.iter().map(|spec| describe(spec, Detail::Short, &names).len()).sum();
    let whole = declarations(&api.operations, &names).len();
    if short.max(whole) > 64 << 20 {
        return Err(format!("{short} bytes in short, {whole} as a file"));
    }
    Ok(format!("{short} bytes in short, {whole} as a file"))
}

/// Properties by number, the inside of a JSON object.
fn properties(count: usize) -> String {
    joined(count, |at| format!(r#""a{at}":{{"type":"string"}}"#))
}

/// Required names, none of which the large schema beside them describes.
pub(super) fn required(size: usize) -> Outcome {
    let required = joined(size / 2 / 9, |at| format!(r#""r{at}""#));
    let part = properties(size / 2 / 26);
    written(&format!(r#"{{"type":"object","required":[{required}],"allOf":[{{"properties":{{{part}}}}}]}}"#), "{}")
}

/// Required names that are described only together, by a large schema.
pub(super) fn required_of_others(size: usize) -> Outcome {
    let required = joined(size / 2 / 9, |at| format!(r#""r{at}""#));
    let others = format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties(size / 2 / 26));
    written(&format!(r#"{{"type":"object","required":[{required}],"additionalProperties":{others}}}"#), "{}")
}

/// A required property that a part describes, and so on in that property: each of them has a type in two places.
pub(super) fn required_in_required(size: usize) -> Outcome {
    let mut schema = format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties(size / 26));
    for _ in 0..20 {
        schema = format!(r#"{{"type":"object","required":["a"],"allOf":[{{"properties":{{"a":{schema}}}}}]}}"#);
    }
    written(&schema, "{}")
}

/// Many references to one large part of a definition.
pub(super) fn references_into_a_definition(size: usize) -> Outcome {
    let large = properties(size / 2 / 26);
    let big = format!(r#"{{"Big":{{"properties":{{"x":{{"type":"object","properties":{{{large}}}}}}}}}}}"#);
    let input = joined(size / 2 / 45, |at| format!(r##""p{at}":{{"$ref":"#/$defs/Big/properties/x"}}"##));
    written(&format!(r#"{{"type":"object","properties":{{{input}}}}}"#), &big)
}

/// A union whose discriminator names each of its many variants.
pub(super) fn mapping(size: usize) -> Outcome {
    let count = size / 90;
    let variants = joined(count, |at| format!(r##"{{"$ref":"#/$defs/V{at}"}}"##));
    let mapping = joined(count, |at| format!(r##""k{at}":"#/$defs/V{at}""##));
    let definitions = joined(count, |at| format!(r#""V{at}":{{"type":"object"}}"#));
    let discriminator = format!(r#"{{"propertyName":"kind","mapping":{{{mapping}}}}}"#);
    written(&format!(r#"{{"oneOf":[{variants}],"discriminator":{discriminator}}}"#), &format!("{{{definitions}}}"))
}

/// A union whose discriminator has many values for the one definition that all its variants refer to.
pub(super) fn mapping_to_one(size: usize) -> Outcome {
    let count = size / 60;
    let variants = joined(count, |at| match at % 2 {
        0 => r##"{"$ref":"#/$defs/V"}"##.to_owned(),
        _ => format!(r##"{{"$ref":"#/$defs/V","title":"t{at}"}}"##),
    });
    let mapping = joined(count, |at| format!(r##""k{at}":"#/$defs/V""##));
    let discriminator = format!(r#"{{"propertyName":"kind","mapping":{{{mapping}}}}}"#);
    written(&format!(r#"{{"oneOf":[{variants}],"discriminator":{discriminator}}}"#), r#"{"V":{"type":"object"}}"#)
}

/// Definitions whose names have no letter that the name of a type may have.
pub(super) fn names(size: usize) -> Outcome {
    let name = |at: usize| -> String {
        at.to_string().chars().map(|digit| char::from_u32(0x3b1 - 0x30 + u32::from(digit)).unwrap_or(digit)).collect()
    };
    let count = size / 70;
    let input = joined(count, |at| format!(r##""p{at}":{{"$ref":"#/$defs/{}"}}"##, name(at)));
    let definitions = joined(count, |at| format!(r#""{}":{{"type":"string"}}"#, name(at)));
    written(&format!(r#"{{"type":"object","properties":{{{input}}}}}"#), &format!("{{{definitions}}}"))
}
