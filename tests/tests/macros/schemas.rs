//! The schemas that callers see.

use ops_runtime::{Operation, operation};
use serde_json::{Value, json};

use crate::{Pet, registry};

fn input<Op: Operation>() -> Value {
    Op::SPEC.input.to_value().unwrap().into_owned()
}

fn output<Op: Operation>() -> Value {
    Op::SPEC.output.to_value().unwrap().into_owned()
}

/// Lists pets.
#[operation(namespace = "shop", kind = query)]
async fn list(
    /// How many, at most.
    ///
    /// More than 100 are never given.
    #[input(default = 20)]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    #[input(default = "en")] language: &str,
    #[input(default)] tags: Vec<String>,
    /** Where to begin. */
    #[serde(rename = "startAt")]
    start_at: Option<u64>,
    #[input(default = Some(1.5))] weight: Option<f64>,
    r#type: String,
) -> Vec<Pet> {
    let kind = r#type;
    let name = format!("{limit} {language} {tags:?} {weight:?} {kind}");
    vec![Pet { id: start_at.unwrap_or(0), name }]
}

#[test]
fn docs_defaults_and_constraints() {
    let schema = input::<List>();
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["required"], json!(["type"]));
    for absent in ["title", "description", "$schema"] {
        assert_eq!(schema.get(absent), None, "{schema}");
    }
    let limit = &schema["properties"]["limit"];
    assert_eq!(limit["description"], "How many, at most.\n\nMore than 100 are never given.");
    assert_eq!((&limit["default"], &limit["minimum"], &limit["maximum"]), (&json!(20), &json!(1), &json!(100)));
    assert_eq!(schema["properties"]["language"], json!({ "type": "string", "default": "en" }));
    assert_eq!(schema["properties"]["tags"]["default"], json!([]));
    assert_eq!(schema["properties"]["startAt"]["description"], "Where to begin.");
    assert_eq!(schema["properties"]["weight"]["default"], 1.5);
}

#[test]
fn outputs_carry_their_definitions() {
    let schema = output::<List>();
    assert_eq!(schema["items"], json!({ "$ref": "#/$defs/Pet" }));
    assert_eq!(schema["$defs"]["Pet"]["required"], json!(["id", "name"]));
}

#[tokio::test]
async fn defaults_are_filled() {
    let output = registry(List).call("shop.list", json!({ "type": "cat", "startAt": 3 })).await.unwrap();
    assert_eq!(output.data, json!([{ "id": 3, "name": "20 en [] Some(1.5) cat" }]));
}

#[operation(namespace = "shop")]
async fn patch(note: Option<String>, shelf: Option<Option<String>>) {
    let _ = (note, shelf);
}

#[test]
fn optional_parameters_may_be_absent_or_null() {
    let schema = input::<Patch>();
    assert_eq!(schema.get("required"), None, "{schema}");
    for name in ["note", "shelf"] {
        assert_eq!(schema["properties"][name], json!({ "type": ["string", "null"] }), "{name}");
    }
    let _ = Patch;
}

#[operation(namespace = "shop")]
async fn nothing() {}

#[test]
fn no_parameters() {
    assert_eq!(input::<Nothing>(), json!({ "type": "object" }));
    assert_eq!(output::<Nothing>(), json!({ "type": "null" }));
}

#[operation(namespace = "shop")]
async fn replace(#[input] pet: Pet) -> Result<Pet, String> {
    Ok(pet)
}

#[test]
fn a_whole_input_is_its_type() {
    assert_eq!(input::<Replace>(), output::<Replace>());
    assert_eq!(input::<Replace>()["required"], json!(["id", "name"]));
    let _ = Replace;
}
