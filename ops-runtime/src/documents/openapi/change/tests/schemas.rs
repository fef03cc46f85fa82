//! Changes of one schema that is sent and received: unions, what a wider kind restricts, maps; and webhooks.

use serde_json::{Value, json};

use super::{PET, changes, shop};
use crate::documents::openapi::Part;

/// The changes from one version of `Pet` to another: those that break begin with `!`, and each says where values go.
fn told(old: &Value, new: &Value) -> Vec<String> {
    let kind = |own: &str| json!({ "type": "object", "required": ["kind"], "properties": { "kind": { "type": "string" }, own: {} } });
    let tagged =
        |value: &str| json!({ "type": "object", "required": ["kind"], "properties": { "kind": { "const": value } } });
    let with = |pet: &Value| {
        shop(&[
            (PET, pet.clone()),
            ("/components/schemas/Cat", kind("purrs")),
            ("/components/schemas/Kitty", kind("purrs")),
            ("/components/schemas/Dog", kind("barks")),
            ("/components/schemas/Fish", tagged("fish")),
            ("/components/schemas/Bird", tagged("bird")),
            ("/components/schemas/Newt", json!({ "type": "object", "properties": { "kind": { "const": "newt" } } })),
            ("/components/schemas/Pets", json!({ "oneOf": [to("Cat"), to("Dog")] })),
        ])
    };
    let changes = changes(&with(old), &with(new)).into_iter();
    let changes = changes.map(|change| {
        let mark = if change.breaks { "!" } else { "" };
        format!("{mark}{}: {}", change.part.as_str(), change.message)
    });
    changes.collect()
}

fn to(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// A union of definitions with a discriminator.
fn tagged(names: &[&str], discriminator: &Value) -> Value {
    let variants: Value = names.iter().map(|name| to(name)).collect();
    json!({ "oneOf": variants, "discriminator": discriminator })
}

fn mapped(first: &str, second: &str) -> Value {
    tagged(&["Cat", "Dog"], &json!({ "propertyName": "kind", "mapping": { first: "Cat", second: "Dog" } }))
}

#[test]
fn what_selects_a_variant_is_a_promise() {
    assert_eq!(told(&mapped("cat", "dog"), &mapped("cat", "dog")), [""; 0]);
    assert_eq!(
        told(&mapped("cat", "dog"), &mapped("CAT", "dog")),
        [
            "!request: `Cat` is not taken any more with \"cat\" as `kind`",
            "request: `Cat` is taken now with \"CAT\" as `kind`",
            "!response: `Cat` can come now with \"CAT\" as `kind`",
            "response: `Cat` does not come any more with \"cat\" as `kind`",
        ]
    );
    let swapped = told(&mapped("cat", "dog"), &mapped("dog", "cat"));
    assert_eq!(swapped.iter().filter(|line| line.starts_with('!')).count(), 4, "{swapped:#?}");
    // Without a mapping, the name of a definition selects it.
    let kind = json!({ "propertyName": "kind" });
    assert_eq!(
        told(&tagged(&["Cat", "Dog"], &kind), &tagged(&["Kitty", "Dog"], &kind)),
        [
            "!request: `Cat` is not taken any more with \"Cat\" as `kind`",
            "request: `Kitty` is taken now with \"Kitty\" as `kind`",
            "!response: `Kitty` can come now with \"Kitty\" as `kind`",
            "response: `Cat` does not come any more with \"Cat\" as `kind`",
        ]
    );
    // A mapping that repeats what the variants say changes nothing.
    let said = json!({ "propertyName": "kind", "mapping": { "fish": "Fish", "bird": "Bird" } });
    assert_eq!(told(&tagged(&["Fish", "Bird"], &kind), &tagged(&["Fish", "Bird"], &said)), [""; 0]);
    assert_eq!(
        told(&tagged(&["Cat", "Dog"], &kind), &tagged(&["Cat", "Dog"], &json!({ "propertyName": "type" }))),
        [
            "!request: `type` selects its variants now, not `kind`",
            "!response: `type` selects its variants now, not `kind`"
        ]
    );
    let by_default = |name: &str| tagged(&["Cat", "Dog"], &json!({ "propertyName": "kind", "defaultMapping": name }));
    assert_eq!(
        told(&by_default("Cat"), &by_default("Dog")),
        [
            "!request: `Cat` is not taken any more without a value of `kind` that is known",
            "!response: `Dog` can come now without a value of `kind` that is known",
        ]
    );
}

#[test]
fn a_discriminator_may_come_or_go() {
    let kind = json!({ "propertyName": "kind" });
    let bare = |names: &[&str]| json!({ "oneOf": names.iter().map(|name| to(name)).collect::<Value>() });
    let (with, without) = (mapped("cat", "dog"), bare(&["Cat", "Dog"]));
    assert_eq!(
        told(&with, &without),
        [
            "request: `kind` does not select its variants any more",
            "!response: `kind` does not select its variants any more",
        ]
    );
    assert_eq!(
        told(&without, &with),
        ["!request: `kind` selects its variants now", "response: `kind` selects its variants now"]
    );
    // These say their values themselves.
    let (with, without) = (tagged(&["Fish", "Bird"], &kind), bare(&["Fish", "Bird"]));
    assert_eq!(
        told(&without, &with),
        ["request: `kind` selects its variants now", "response: `kind` selects its variants now"]
    );
    // But one of them need not say it.
    assert_eq!(
        told(&bare(&["Fish", "Newt"]), &tagged(&["Fish", "Newt"], &kind)),
        ["!request: `kind` selects its variants now", "response: `kind` selects its variants now"]
    );
    // Another value is mapped to one of them.
    let mapped = json!({ "propertyName": "kind", "mapping": { "shark": "Fish", "bird": "Bird" } });
    assert!(told(&without, &tagged(&["Fish", "Bird"], &mapped))[0].starts_with('!'));
}

#[test]
fn a_new_variant_is_no_change_of_another() {
    let kind = json!({ "propertyName": "kind" });
    let mapping = |names: &[&str]| names.iter().map(|name| (name.to_lowercase(), json!(name))).collect::<Value>();
    let by_mapping = |names: &[&str]| tagged(names, &json!({ "propertyName": "kind", "mapping": mapping(names) }));
    let (two, three) = (["Cat", "Dog"], ["Cat", "Dog", "Kitty"]);
    // A kitty has all that a cat has, but for the value of its property.
    let is_new = ["request: `Kitty` is taken now", "!response: `Kitty` can come now"];
    assert_eq!(told(&tagged(&two, &kind), &tagged(&three, &kind)), is_new);
    assert_eq!(told(&by_mapping(&two), &by_mapping(&three)), is_new);
    // Unless that is what all other values select, or nothing is selected by it.
    let is_taken = ["request: `Kitty` is taken now", "response: `Kitty` can come now"];
    let by_default = |names: &[&str]| tagged(names, &json!({ "propertyName": "kind", "defaultMapping": "Cat" }));
    assert_eq!(told(&by_default(&two), &by_default(&three)), is_taken);
    let any = |names: &[&str]| json!({ "anyOf": names.iter().map(|name| to(name)).collect::<Value>() });
    assert_eq!(told(&any(&two), &any(&three)), is_taken);
    assert_eq!(
        told(&any(&three), &any(&two)),
        ["request: `Kitty` is taken as another variant now", "response: `Kitty` does not come any more"]
    );
}

#[test]
fn a_variant_may_take_what_its_values_select() {
    let by = |mapping: Value, names: &[&str]| tagged(names, &json!({ "propertyName": "kind", "mapping": mapping }));
    let one = by(json!({ "cat": "Cat", "kitty": "Cat", "dog": "Dog" }), &["Cat", "Dog"]);
    let apart = by(json!({ "cat": "Cat", "kitty": "Kitty", "dog": "Dog" }), &["Cat", "Dog", "Kitty"]);
    assert_eq!(
        told(&one, &apart),
        [
            "request: `Kitty` is taken now",
            "!request: `Cat` is not taken any more with \"kitty\" as `kind`",
            "response: `Kitty` can come now",
            "response: `Cat` does not come any more with \"kitty\" as `kind`",
        ]
    );
    assert_eq!(
        told(&apart, &one),
        [
            "request: `Kitty` is taken as another variant now",
            "request: `Cat` is taken now with \"kitty\" as `kind`",
            "response: `Kitty` does not come any more",
            "!response: `Cat` can come now with \"kitty\" as `kind`",
        ]
    );
    // A union in a union has variants of the same names.
    let kind = json!({ "propertyName": "kind" });
    assert_eq!(
        told(&tagged(&["Cat", "Dog"], &kind), &tagged(&["Cat", "Pets"], &kind)),
        ["request: `Cat` is taken now"]
    );
}

#[test]
fn one_of_several_is_less_than_any() {
    let union = |key: &str, names: [&str; 2]| json!({ key: names.map(to) });
    let (any, one) = (union("anyOf", ["Cat", "Dog"]), union("oneOf", ["Cat", "Dog"]));
    assert_eq!(
        told(&any, &one),
        [
            "!request: what fits several of its variants is not taken any more",
            "response: what comes fits only one variant now",
        ]
    );
    assert_eq!(
        told(&one, &any),
        [
            "request: what fits several of its variants is taken now",
            "response: what comes may fit several of its variants now",
        ]
    );
    // Nothing fits two of these.
    assert_eq!(told(&union("anyOf", ["Fish", "Bird"]), &union("oneOf", ["Fish", "Bird"])), [""; 0]);
    let kinds = |key: &str| json!({ key: [to("Cat"), { "type": "string" }, { "type": "null" }] });
    assert_eq!(told(&kinds("anyOf"), &kinds("oneOf")), [""; 0]);
    let many = |key: &str| json!({ key: (0..500).map(|n| json!({ "const": n })).collect::<Value>() });
    assert_eq!(told(&many("anyOf"), &many("oneOf")), [""; 0]);
    let numbers = |key: &str| json!({ key: [{ "type": "integer" }, { "type": "number" }] });
    assert_eq!(told(&numbers("anyOf"), &numbers("oneOf")).len(), 2);
}

#[test]
fn a_new_variant_of_one_of_several_may_take_what_another_takes() {
    let one = |variants: Value| json!({ "oneOf": variants });
    let of = |kind: &str| json!({ "type": kind });
    let old = one(json!([of("integer"), of("string")]));
    assert_eq!(
        told(&old, &one(json!([of("integer"), of("number"), of("string")]))),
        [
            "request: number is taken now",
            "!request: what fits several of its variants is not taken any more",
            "!response: number can come now",
        ]
    );
    // No value fits two of these variants, even if they are in a union of their own, or are made of parts.
    let is_new = ["request: boolean is taken now", "!response: boolean can come now"];
    assert_eq!(told(&old, &one(json!([of("integer"), of("string"), of("boolean")]))), is_new);
    assert_eq!(told(&old, &one(json!([of("integer"), { "anyOf": [of("string"), of("boolean")] }]))), is_new);
    let made = json!({ "allOf": [to("Bird"), { "type": "object", "properties": { "a": of("integer") } }] });
    let taken = told(&one(json!([to("Fish"), of("string")])), &one(json!([to("Fish"), of("string"), made])));
    assert!(taken.iter().all(|line| !line.starts_with("!request")), "{taken:#?}");
    // No value that was accepted before fits two new variants.
    let object = |own: &str| json!({ "type": "object", "properties": { own: {} } });
    let taken = told(&old, &one(json!([of("integer"), of("string"), object("a"), object("b")])));
    assert!(taken.iter().all(|line| !line.starts_with("!request")), "{taken:#?}");
    let overlaps = "!request: what fits several of its variants is not taken any more".to_owned();
    let taken =
        told(&one(json!([to("Fish"), of("string")])), &one(json!([to("Fish"), of("string"), to("Cat"), to("Dog")])));
    assert!(taken.contains(&overlaps), "{taken:#?}");
    // Variants that overlapped before are as they were.
    let cats = told(&one(json!([to("Cat"), to("Dog")])), &one(json!([to("Cat"), to("Dog"), of("string")])));
    assert_eq!(cats, ["request: string is taken now", "!response: string can come now"]);
    // Another overlapping variant may nevertheless take a value that fitted one variant.
    let pets = |others: &[&str]| {
        let others = others.iter().map(|kind| of(kind));
        one([to("Cat"), to("Dog")].into_iter().chain(others).collect::<Value>())
    };
    let number = ["request: number is taken now", overlaps.as_str(), "!response: number can come now"];
    assert_eq!(told(&pets(&["integer"]), &pets(&["integer", "number"])), number);
    // So may a variant within a variant, if the outer one is a `oneOf` itself.
    let within = |key: &str| one(json!([{ key: [of("integer"), of("number")] }, of("string")]));
    assert_eq!(told(&old, &within("oneOf")), number);
    assert_eq!(told(&old, &within("anyOf")), [number[0], number[2]]);
    // A value that selects a variant of a nested union fits that union once.
    let pets = tagged(&["Cat", "Dog"], &json!({ "propertyName": "kind" }));
    let with = |key: &str, others: &[&str]| {
        let others = others.iter().map(|kind| of(kind));
        json!({ key: ([pets.clone()].into_iter().chain(others).collect::<Value>()) })
    };
    assert_eq!(told(&with("oneOf", &["integer"]), &with("oneOf", &["integer", "boolean"])), is_new);
    let taken = told(&with("oneOf", &["integer"]), &with("oneOf", &["integer", "number"]));
    assert!(taken.contains(&overlaps), "{taken:#?}");
    assert_eq!(told(&with("anyOf", &["string"]), &with("oneOf", &["string"])), [""; 0]);
}

#[test]
fn variants_are_apart_only_if_no_value_fits_two() {
    let object = |required: &[&str], properties: Value| json!({ "type": "object", "required": required, "properties": properties });
    let tagged = |required: &[&str], value: &str| object(required, json!({ "kind": { "const": value } }));
    let nullable = json!({ "type": ["object", "null"], "properties": { "a": {} } });
    let more = json!({ "kind": { "const": "a" }, "version": { "const": 2 } });
    for (first, second, changes) in [
        (tagged(&["kind"], "a"), object(&["kind", "version"], more), 2),
        (object(&["a"], json!({ "a": { "const": 1 } })), object(&["b"], json!({ "b": { "const": 1 } })), 2),
        (tagged(&[], "a"), tagged(&[], "b"), 2),
        (tagged(&["kind"], "a"), object(&["kind"], json!({ "kind": { "enum": ["b", "a"] } })), 2),
        (nullable, json!({ "type": "null" }), 2),
        (json!({ "enum": ["a", 1] }), json!({ "type": "integer" }), 2),
        (json!({ "const": 1 }), json!({ "const": 1.0 }), 2),
        (tagged(&["kind"], "a"), object(&["kind"], json!({ "kind": { "enum": ["b", "c"] } })), 0),
        (json!({ "enum": ["a", "b"] }), json!({ "const": "c" }), 0),
    ] {
        let (any, one) = (json!({ "anyOf": [first, second] }), json!({ "oneOf": [first, second] }));
        assert_eq!(told(&any, &one).len(), changes, "{one}");
    }
}

#[test]
fn a_wider_kind_may_restrict_what_is_sent() {
    let of = |schema: Value| json!({ "type": "object", "properties": { "p": schema } });
    assert_eq!(
        told(&of(json!({ "type": "integer" })), &of(json!({ "type": "number", "maximum": 10, "enum": [1, 2] }))),
        [
            "request: it was integer and is number now",
            "!request: it takes only some values now",
            "!request: `maximum` is 10 now",
            "!response: it was integer and is number now",
        ]
    );
    assert_eq!(
        told(&of(json!({ "type": "string" })), &of(json!({ "minLength": 5, "minimum": 5 }))),
        [
            "request: it was string and is any now",
            "!request: `minLength` is 5 now",
            "!response: it was string and is any now",
        ]
    );
}

#[test]
fn a_map_may_be_given_anything() {
    let of = |schema: Value| json!({ "type": "object", "properties": { "p": schema } });
    let map = of(json!({ "type": "object" }));
    let with = |others: Value| of(json!({ "type": "object", "additionalProperties": others }));
    assert_eq!(told(&map, &with(json!(true))), [""; 0]);
    assert_eq!(told(&map, &with(json!({ "type": "string" }))), ["!request: it was anything and is string now"]);
    assert_eq!(told(&map, &with(json!(false))), ["!request: it was anything and is nothing now"]);
    // Of an object that declares its properties, others are not expected.
    let declared =
        |others: Value| of(json!({ "type": "object", "properties": { "a": {} }, "additionalProperties": others }));
    let open = of(json!({ "type": "object", "properties": { "a": {} } }));
    assert_eq!(told(&open, &declared(json!(false))), ["request: other properties are not taken any more"]);
}

#[test]
fn a_new_property_may_have_been_given_as_another_one() {
    let of = |schema: Value| json!({ "type": "object", "properties": { "p": schema } });
    let map = |others: Value| of(json!({ "type": "object", "additionalProperties": others }));
    let with = |others: Value| {
        let a = json!({ "a": { "type": "integer" } });
        of(json!({ "type": "object", "properties": a, "additionalProperties": others }))
    };
    let new = ["request: the property is new", "response: the property is new"];
    assert_eq!(
        told(&of(json!({ "type": "object" })), &with(json!(true))),
        [new[0], "!request: it was anything and is integer now", new[1]]
    );
    let text = json!({ "type": "string" });
    assert_eq!(
        told(&map(text.clone()), &with(text)),
        [new[0], "!request: it was string and is integer now", new[1], "!response: it was string and is integer now"]
    );
    let integer = json!({ "type": "integer" });
    assert_eq!(told(&map(integer.clone()), &with(integer)), new);
    assert_eq!(told(&map(json!(false)), &with(json!(false))), new);
    // What an object with properties does not declare is not expected.
    let declared = of(json!({ "type": "object", "properties": {} }));
    assert_eq!(told(&declared, &of(json!({ "type": "object", "properties": { "a": {} } }))), new);
    // The variants of a union declare properties, too.
    let either = || json!([to("Cat"), to("Dog")]);
    let (bare, more) = (json!({ "type": "object" }), json!({ "a": { "type": "integer" } }));
    for kinds in [json!("object"), json!(["object", "null"])] {
        assert_eq!(
            told(
                &of(json!({ "type": kinds, "oneOf": either() })),
                &of(json!({ "type": kinds, "properties": more, "oneOf": either() }))
            ),
            new,
            "{kinds}"
        );
    }
    assert_eq!(
        told(
            &of(json!({ "allOf": [bare, { "oneOf": either() }] })),
            &of(json!({ "allOf": [{ "type": "object", "properties": more }, { "oneOf": either() }] }))
        ),
        new
    );
}

#[test]
fn a_new_property_may_have_been_given_by_a_pattern() {
    let of = |schema: Value| json!({ "type": "object", "properties": { "p": schema } });
    let patterns = |pattern: &str| json!({ pattern: { "type": "string" } });
    let new = ["request: the property is new", "response: the property is new"];
    let kinds = "it was string and is integer now";
    for (pattern, is_matched) in [
        ("^x-", true),
        ("^x-.*$", true),
        ("-a$", true),
        ("-", true),
        ("^x-a$", true),
        ("^[xy]-", false),
        ("^y-", false),
        ("^a$", false),
        ("-x$", false),
        ("b", false),
    ] {
        let old = of(json!({ "type": "object", "patternProperties": patterns(pattern) }));
        let added = json!({ "x-a": { "type": "integer" } });
        let added = of(json!({ "type": "object", "properties": added, "patternProperties": patterns(pattern) }));
        let expected = match is_matched {
            true => {
                vec![new[0].to_owned(), format!("!request: {kinds}"), new[1].to_owned(), format!("!response: {kinds}")]
            }
            false => new.map(str::to_owned).to_vec(),
        };
        assert_eq!(told(&old, &added), expected, "{pattern}");
    }
    // It is unclear whether this one matches, so it may be one of the others.
    let others = |properties: Value| {
        let mut of_both = json!({ "type": "object", "patternProperties": patterns("^[xy]-") });
        of_both["additionalProperties"] = json!({ "type": "boolean" });
        of_both["properties"] = properties;
        of(of_both)
    };
    let kinds = "it was boolean and is integer now";
    assert_eq!(
        told(&others(json!({})), &others(json!({ "x-a": { "type": "integer" } }))),
        [new[0].to_owned(), format!("!request: {kinds}"), new[1].to_owned(), format!("!response: {kinds}")]
    );
}

#[test]
fn webhooks() {
    let sends = |schema: Value| {
        let content = json!({ "application/json": { "schema": schema } });
        json!({ "sold": { "post": { "requestBody": { "content": content }, "responses": {} } } })
    };
    let with = |hooks: &Value| shop(&[("/webhooks", hooks.clone())]);
    let told = |old: &Value, new: &Value| -> Vec<String> {
        changes(&with(old), &with(new)).iter().map(ToString::to_string).collect()
    };
    let of =
        |kind: &str| sends(json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": kind } } }));
    assert_eq!(told(&of("string"), &of("string")), [""; 0]);
    assert_eq!(
        told(&of("string"), &of("integer")),
        ["breaking: response of `shop.sold`: webhook /properties/a: it was string and is integer now"]
    );
    assert_eq!(told(&of("string"), &json!({})), ["breaking: `shop.sold`: the webhook is gone"]);
    assert_eq!(told(&json!({}), &of("string")), ["change: `shop.sold`: the webhook is new"]);
    // A change of a definition affects the webhooks that send it.
    let pet = |steps: &[(&str, Value)]| {
        let mut all = vec![("/webhooks", sends(to("Pet")))];
        all.extend_from_slice(steps);
        shop(&all)
    };
    let price = format!("{PET}/properties/price/type");
    let all = changes(&pet(&[]), &pet(&[(price.as_str(), json!("string"))]));
    let found = all.iter().find(|change| change.part == Part::Response).unwrap();
    assert!(found.breaks && found.operations.last().is_some_and(|id| id == "shop.sold"), "{all:#?}");
}
