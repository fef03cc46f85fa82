//! Changes of how the fields of a form, or the parts of a multipart body, are written.

use serde_json::{Value, json};

use super::{ADD, changes, shop};

/// The properties of a body whose encoding changes, of those that are told.
fn told(media: &str, old: &Value, new: &Value) -> Vec<String> {
    let with = |encoding: &Value| {
        let properties = json!({
            "name": { "type": ["string", "null"] },
            "tags": { "$ref": "#/components/schemas/Tags" },
            "more": { "anyOf": [{ "type": "object" }, { "type": "null" }] },
            "file": { "type": "string", "format": "binary" },
            "files": { "type": "array", "items": { "$ref": "#/components/schemas/File" } },
        });
        let schema = json!({ "$ref": "#/components/schemas/New" });
        shop(&[
            ("/components/schemas/New", json!({ "type": "object", "properties": properties })),
            ("/components/schemas/Tags", json!({ "type": "array", "items": { "type": "string" } })),
            ("/components/schemas/File", json!({ "type": "string", "format": "binary" })),
            (&format!("{ADD}/requestBody/content"), json!({ media: { "schema": schema, "encoding": encoding } })),
        ])
    };
    let changes = changes(&with(old), &with(new));
    let name = |change: String| {
        let rest = change.strip_prefix("breaking: request of `shop.add`: body /properties/").unwrap().to_owned();
        rest.strip_suffix(": the field is written in another way now").unwrap().to_owned()
    };
    changes.iter().map(|change| name(change.to_string())).collect()
}

#[test]
fn an_encoding_that_comes_or_goes_is_a_change() {
    const FORM: &str = "application/x-www-form-urlencoded";
    const PARTS: &str = "multipart/form-data";
    let none = json!({});
    for (media, encoding, expected) in [
        (FORM, json!({ "tags": { "style": "form", "explode": false } }), vec!["tags"]),
        (FORM, json!({ "tags": { "style": "spaceDelimited", "explode": false } }), vec!["tags"]),
        (FORM, json!({ "tags": { "contentType": "application/json" } }), vec!["tags"]),
        (FORM, json!({ "more": { "style": "form", "explode": true } }), vec!["more"]),
        (PARTS, json!({ "tags": { "style": "form", "explode": false } }), vec!["tags"]),
        (PARTS, json!({ "more": { "contentType": "application/xml" } }), vec!["more"]),
        // The default, in as many words.
        (FORM, json!({ "tags": { "style": "form", "explode": true } }), vec![]),
        (FORM, json!({ "more": { "style": "deepObject", "explode": true } }), vec![]),
        (PARTS, json!({ "more": { "contentType": "application/json" } }), vec![]),
        (PARTS, json!({ "file": { "contentType": "application/octet-stream" } }), vec![]),
        // A text is the same in any style.
        (FORM, json!({ "name": { "style": "form", "explode": false } }), vec![]),
        // No such property.
        (FORM, json!({ "gone": { "style": "form", "explode": false } }), vec![]),
    ] {
        assert_eq!(told(media, &none, &encoding), expected, "{media} {encoding}");
        assert_eq!(told(media, &encoding, &none), expected, "{media} without {encoding}");
        assert_eq!(told(media, &encoding, &encoding), [""; 0], "{media} {encoding}");
    }
    let (comma, space) = (json!({ "tags": { "explode": false } }), json!({ "tags": { "style": "spaceDelimited" } }));
    assert_eq!(told(FORM, &comma, &space), ["tags"]);
}

#[test]
fn more_types_of_a_part_are_no_break() {
    let types = |name: &str, types: &str| json!({ name: { "contentType": types } });
    let (none, png) = (json!({}), types("file", "image/png"));
    for (old, new) in [
        (&png, &none),
        (&png, &types("file", "image/jpeg, image/png")),
        (&png, &types("file", "image/*")),
        (&none, &types("file", "application/*")),
        (&types("files", "image/png"), &none),
        (&none, &types("name", "text/*")),
    ] {
        assert_eq!(told("multipart/form-data", old, new), [""; 0], "{old} {new}");
    }
    for (old, new, name) in [
        (&none, &png, "file"),
        (&types("file", "image/*"), &png, "file"),
        (&none, &types("files", "image/png"), "files"),
        (&types("name", "application/json"), &none, "name"),
    ] {
        assert_eq!(told("multipart/form-data", old, new), [name], "{old} {new}");
    }
}
