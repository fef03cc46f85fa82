//! Changes of bodies in several content types, each with its own schema, and of streams of several.

use serde_json::{Value, json};

use super::{ADD, LIST, changes, shop};
use crate::{Api, Binding};

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";
const PARTS: &str = "multipart/form-data";

fn object(required: &[&str], kind: &str) -> Value {
    json!({ "type": "object", "required": required, "properties": { "a": { "type": kind }, "z": { "type": "string" } } })
}

/// The changes of the body of `add`, of which each content type has a schema.
fn told(old: &[(&str, Value)], new: &[(&str, Value)]) -> Vec<String> {
    let with = |all: &[(&str, Value)]| {
        let content: Value = all.iter().map(|(name, schema)| (name.to_string(), json!({ "schema": schema }))).collect();
        shop(&[(&format!("{ADD}/requestBody/content"), content)])
    };
    let changes = changes(&with(old), &with(new)).into_iter();
    changes.map(|change| change.to_string().replace("request of `shop.add`: ", "")).collect()
}

#[test]
fn each_content_type_has_its_own_schema() {
    let (plain, strict, other) = (object(&[], "string"), object(&["z"], "string"), object(&[], "integer"));
    let required = "breaking: body as `application/json` /properties/z: it is required now";
    assert_eq!(
        told(&[(JSON, plain.clone())], &[(JSON, strict.clone()), (FORM, plain.clone())]),
        ["change: body: `application/x-www-form-urlencoded` is taken now", required]
    );
    assert_eq!(
        told(&[(JSON, plain.clone()), (FORM, plain.clone())], &[(JSON, strict.clone()), (FORM, plain.clone())]),
        [required]
    );
    assert_eq!(
        told(
            &[(JSON, plain.clone()), (PARTS, other.clone())],
            &[(JSON, plain.clone()), (PARTS, object(&["z"], "integer"))]
        ),
        ["breaking: body as `multipart/form-data` /properties/z: it is required now"]
    );
    // They were swapped.
    assert_eq!(
        told(&[(JSON, plain.clone()), (FORM, other.clone())], &[(JSON, other.clone()), (FORM, plain.clone())]),
        [
            "breaking: body as `application/json` /properties/a: it was string and is integer now",
            "breaking: body as `application/x-www-form-urlencoded` /properties/a: it was integer and is string now",
        ]
    );
    let both = [(JSON, plain.clone()), (FORM, other)];
    assert_eq!(told(&both, &both), [""; 0]);
    // A change of what all share is one change.
    assert_eq!(
        told(&[(JSON, plain.clone()), (FORM, plain)], &[(JSON, strict.clone()), (FORM, strict)]),
        ["breaking: body /properties/z: it is required now"]
    );
}

#[test]
fn content_types_with_parameters_are_not_crossed() {
    let (plain, strict, other) = (object(&[], "string"), object(&["z"], "string"), object(&[], "integer"));
    let (first, second) = ("application/json; v=1", "application/json; v=2");
    let both = [(first, plain.clone()), (second, other.clone())];
    assert_eq!(told(&both, &both), [""; 0]);
    assert_eq!(told(&both, &[(first, plain.clone()), ("Application/JSON; V=2", other.clone())]), [""; 0]);
    assert_eq!(
        told(&both, &[(first, strict), (second, other)]),
        ["breaking: body as `application/json; v=1` /properties/z: it is required now"]
    );
}

#[test]
fn a_schema_that_some_share_is_no_version_of_all() {
    let (plain, strict, other) = (object(&[], "string"), object(&["z"], "string"), object(&[], "integer"));
    // Two of three content types share a schema.
    let shared = [(JSON, strict.clone()), (FORM, strict.clone()), (PARTS, other.clone())];
    assert_eq!(told(&shared, &shared), [""; 0]);
    let split = told(&shared, &[(JSON, strict), (FORM, plain.clone()), (PARTS, other)]);
    assert!(!split.iter().any(|line| line.starts_with("breaking")), "{split:?}");
    let freed = "change: body as `application/x-www-form-urlencoded` /properties/z: it is not required any more";
    assert!(split.iter().any(|line| line == freed), "{split:?}");
    // The variants of the only schema, whatever their titles.
    let union = |kind: &str| {
        let titled = |title: &str, schema: Value| json!({ "title": title, "allOf": [schema] });
        json!({ "oneOf": [titled("Json", plain.clone()), titled("Dog", object(&["z"], kind))] })
    };
    let changed = told(&[(JSON, union("integer"))], &[(JSON, union("string"))]);
    assert!(changed.iter().any(|line| line.starts_with("breaking: body ")), "{changed:?}");
}

#[test]
fn specs_of_older_versions_do_not_say_which_alternative_a_body_is() {
    let with = |required: &[&str]| {
        let of = |schema: Value| json!({ "schema": schema });
        let content = json!({ JSON: of(object(&[], "integer")), FORM: of(object(required, "string")) });
        shop(&[(&format!("{ADD}/requestBody/content"), content)])
    };
    let told = |old: &Api, new: &Api| changes(old, new).iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut old = with(&[]);
    for operation in &mut old.operations {
        if let Binding::Http(http) = &mut operation.binding {
            http.bodies.to_mut().iter_mut().for_each(|body| body.variant = None);
        }
    }
    assert_eq!(told(&old, &with(&[])), [""; 0]);
    let changed = told(&old, &with(&["z"]));
    assert!(changed.iter().any(|line| line.starts_with("breaking: request of `shop.add`: body ")), "{changed:?}");
}

#[test]
fn the_place_of_a_change_is_in_the_schema_of_its_type() {
    let with = |required: &[&str]| {
        let of = |schema: Value| json!({ "schema": schema });
        let content = json!({ JSON: of(object(&[], "integer")), FORM: of(object(required, "string")) });
        shop(&[(&format!("{ADD}/requestBody/content"), content)])
    };
    let changes = changes(&with(&[]), &with(&["z"]));
    let places: Vec<&str> = changes.iter().map(|change| change.pointer.as_str()).collect();
    assert_eq!(places, ["/input/properties/body/oneOf/1/properties/z"]);
}

#[test]
fn items_of_streams_belong_to_content_types() {
    let told = |old: [&str; 2], new: [&str; 2]| {
        let with = |kinds: [&str; 2]| {
            let of = |kind: &str| json!({ "itemSchema": object(&[], kind) });
            let content = json!({ "text/event-stream": of(kinds[0]), "application/jsonl": of(kinds[1]) });
            shop(&[(&format!("{LIST}/responses/200/content"), content)])
        };
        changes(&with(old), &with(new)).iter().filter(|change| change.breaks).count()
    };
    assert_eq!(told(["string", "integer"], ["string", "integer"]), 0);
    assert_eq!(told(["string", "integer"], ["integer", "string"]), 2);
    assert_eq!(told(["string", "string"], ["string", "integer"]), 1);
}

#[test]
fn a_part_without_a_name_of_its_own_has_one() {
    let told = |old: &str, new: &str, schema: Value| {
        let with = |name: &str| {
            let media = json!({ "schema": schema, "encoding": { name: {} } });
            shop(&[(&format!("{ADD}/requestBody/content"), json!({ PARTS: media }))])
        };
        changes(&with(old), &with(new)).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let file = || json!({ "type": "string", "format": "binary" });
    for schema in [file(), json!({ "type": "array", "items": file() })] {
        let message = "breaking: request of `shop.add`: body: its part is called `b` now";
        assert_eq!(told("a", "b", schema.clone()), [message]);
        assert_eq!(told("a", "a", schema), [""; 0]);
    }
}
