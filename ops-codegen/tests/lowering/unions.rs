//! Unions, their tags, and bases that list their heirs.

use ops_codegen::Generator;
use ops_runtime::binding::{Binding, HttpBinding};
use ops_runtime::spec::{Api, Definition, Definitions, OperationSpec};
use serde_json::{Value, json};

use super::{fields, generate};

/// An object with these required properties, which are texts.
pub(super) fn object(required: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        required.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

/// A union of definitions by a property, whose values are their names in lower case.
fn tagged(property: &str, variants: &[&str]) -> Value {
    let target = |name: &str| format!("#/$defs/{name}");
    let list: Vec<Value> = variants.iter().map(|name| json!({ "$ref": target(name) })).collect();
    let mapping: serde_json::Map<String, Value> =
        variants.iter().map(|name| (name.to_lowercase(), target(name).into())).collect();
    json!({ "oneOf": list, "discriminator": { "propertyName": property, "mapping": mapping } })
}

pub(super) fn to(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// A base that lists its heirs.
fn base(own: &str, heirs: &[&str]) -> Value {
    let mut base = object(&["kind", own]);
    base.as_object_mut().unwrap().extend(tagged("kind", heirs).as_object().unwrap().clone());
    base
}

fn heir(base: &str, own: &str) -> Value {
    json!({ "allOf": [to(base), object(&[own])] })
}

/// An object with properties of these types.
pub(super) fn holder(names: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), to(name))).collect();
    json!({ "type": "object", "properties": properties })
}

/// The lines of a type without comments.
pub(super) fn lines<'s>(source: &'s str, item: &str) -> Vec<&'s str> {
    let (_, body) = source.split_once(&format!("pub {item} {{\n")).unwrap_or_else(|| panic!("{item}: {source}"));
    body.lines().take_while(|line| *line != "}").map(str::trim).filter(|line| !line.starts_with("//")).collect()
}

/// A base that lists its heirs is a union where it is referred to, and an object in its heirs.
#[test]
fn an_heir_has_the_properties_of_a_base_that_lists_it() {
    let definitions = vec![
        ("Pet", base("name", &["Dog", "Cat"])),
        ("Mid", heir("Pet", "tail")),
        ("Dog", json!({ "allOf": [to("Mid")] })),
        ("Cat", heir("Pet", "lives")),
        ("One", base("title", &["Only"])),
        ("Only", heir("One", "more")),
    ];
    // In whatever order they are reached.
    for order in [["Dog", "Cat", "Mid", "Pet", "Only", "One"], ["One", "Only", "Pet", "Mid", "Cat", "Dog"]] {
        let generated = generate(definitions.clone(), holder(&order));
        let source = generated.source;
        let lines = |item: &str| lines(&source, item);
        assert_eq!(lines("struct Dog"), ["pub kind: String,", "pub name: String,", "pub tail: String,"]);
        assert_eq!(lines("struct Cat"), ["pub kind: String,", "pub name: String,", "pub lives: String,"]);
        assert_eq!(lines("struct Only"), ["pub kind: String,", "pub title: String,", "pub more: String,"]);
        assert_eq!(lines("enum Pet")[..2], ["Dog(Dog),", "Cat(Cat),"]);
        assert_eq!(lines("enum Mid").len(), lines("enum Pet").len());
        assert!(source.contains("ops::tagged!(super::Pet[\"kind\"] {"), "{source}");
        assert!(source.contains("pub type One = Only;"), "{source}");
        let told = generated.diagnostics;
        assert!(!told.iter().any(|diagnostic| diagnostic.message.contains("itself")), "{told:?}");
    }
}

/// An heir is none of the other variants, and has those of a base between.
#[test]
fn an_heir_has_the_variants_that_a_base_between_adds() {
    let own = ["pub kind: String,", "pub name: String,", "pub bark: String,"];
    for (added, item, more) in [
        (json!({ "oneOf": [object(&["x"]), object(&["y"])] }), "struct DogWithX", Some("pub x: String,")),
        // It lists some of the heirs itself.
        (tagged("kind", &["Dog", "Cat"]), "struct Dog", None),
    ] {
        let definitions = vec![
            ("Pet", base("name", &["Dog", "Cat", "Bird"])),
            ("Mid", json!({ "allOf": [to("Pet"), added] })),
            ("Dog", heir("Mid", "bark")),
            ("Cat", heir("Pet", "lives")),
            ("Bird", heir("Pet", "wings")),
        ];
        let wanted: Vec<&str> = own.into_iter().chain(more).collect();
        for order in [["Dog", "Mid", "Cat"], ["Cat", "Mid", "Dog"]] {
            let source = generate(definitions.clone(), holder(&order)).source;
            assert_eq!(lines(&source, item), wanted, "{order:?}");
            assert_eq!(lines(&source, "struct Cat"), ["pub kind: String,", "pub name: String,", "pub lives: String,"]);
        }
    }
}

/// The variants of both lists together would be too many.
#[test]
fn an_heir_has_one_of_two_lists_of_which_one_is_large() {
    let names: Vec<String> = (0..20).map(|number| format!("H{number}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let own = ["pub kind: String,", "pub name: String,", "pub bark: String,"];
    for (added, item, more) in [
        (json!({ "oneOf": [object(&["x"]), object(&["y"])] }), "struct H0WithX", Some("pub x: String,")),
        (tagged("kind", &all[..2]), "struct H0", None),
    ] {
        let mut definitions = vec![
            ("Pet", base("name", &all)),
            ("Mid", json!({ "allOf": [to("Pet"), added] })),
            ("H0", heir("Mid", "bark")),
        ];
        definitions.extend(all[1..].iter().map(|name| (*name, heir("Pet", "lives"))));
        let wanted: Vec<&str> = own.into_iter().chain(more).collect();
        for order in [["H0", "Mid", "H2"], ["H2", "Mid", "H0"]] {
            let source = generate(definitions.clone(), holder(&order)).source;
            assert_eq!(lines(&source, item), wanted, "{order:?}");
            assert_eq!(lines(&source, "struct H2"), ["pub kind: String,", "pub name: String,", "pub lives: String,"]);
        }
    }
}

/// Each base is merged once for all heirs, however many ways lead to it.
#[test]
fn bases_between_may_have_many_ways_to_the_one_that_lists_the_heir() {
    let names: Vec<[String; 2]> = (0..12).map(|number| ["m", "n"].map(|name| format!("{name}{number}"))).collect();
    let mut definitions = vec![("Pet", base("name", &["Dog"]))];
    let mut bases = vec![to("Pet")];
    for pair in &names {
        for name in pair {
            let parts: Vec<Value> = bases.iter().cloned().chain([object(&[name.as_str()])]).collect();
            definitions.push((name.as_str(), json!({ "allOf": parts })));
        }
        bases = pair.iter().map(|name| to(name)).collect();
    }
    definitions.push(("Dog", json!({ "allOf": bases })));
    let generated = generate(definitions, holder(&["Dog"]));
    assert_eq!(lines(&generated.source, "struct Dog").len(), 26, "{}", generated.source);
    let told = generated.diagnostics;
    assert!(!told.iter().any(|diagnostic| diagnostic.message.contains("too many")), "{told:?}");
}

/// One that is all of its definition but null.
#[test]
fn an_heir_that_may_be_null_has_the_properties_of_its_base() {
    let dog = heir("Pet", "bark");
    let own = ["pub kind: String,", "pub name: String,", "pub bark: String,"];
    for (schema, item) in [
        (json!({ "anyOf": [dog, { "type": "null" }] }), "struct DogValue"),
        (json!({ "oneOf": [dog] }), "struct Dog"),
        (json!({ "oneOf": [{ "oneOf": [dog] }, { "type": "null" }] }), "struct DogValue"),
    ] {
        let definitions =
            vec![("Pet", base("name", &["Dog", "Cat"])), ("Dog", schema.clone()), ("Cat", heir("Pet", "lives"))];
        let source = generate(definitions, holder(&["Dog"])).source;
        assert_eq!(lines(&source, item), own, "{schema}");
        let field = format!("pub dog: Option<{}>,", item.trim_start_matches("struct "));
        assert!(source.contains(&field), "{source}");
        assert_eq!(source.matches("pub bark: String,").count(), 1, "{source}");
    }
}

/// A union of `Made`, by several tags, and `Gone`, and what it consists of.
fn event(made: Value) -> Vec<(&'static str, Value)> {
    let target = |name: &str| format!("#/$defs/{name}");
    let mapping = json!({ "created": target("Made"), "updated": target("Made"), "gone": target("Gone") });
    let union = json!({
        "oneOf": [to("Made"), to("Gone")],
        "discriminator": { "propertyName": "type", "mapping": mapping },
    });
    vec![("Event", union), ("Made", made), ("Gone", object(&["at"]))]
}

/// Checks if each tag of an event is a variant.
fn assert_apart(source: &str, is_apart: bool) {
    let (variants, table): (&[&str], _) = if is_apart {
        let table = "\"created\" => Created,\n        \"updated\" => Updated,\n        \"gone\" => Gone,";
        (&["Created(Made),", "Updated(Made),", "Gone(Gone),", "Other(ops::Value),"], table)
    } else {
        let table = "\"created\" | \"updated\" => Made,\n        \"gone\" => Gone,";
        (&["Made(Made),", "Gone(Gone),", "Other(ops::Value),"], table)
    };
    assert_eq!(lines(source, "enum Event"), variants);
    assert!(source.contains(table), "{source}");
}

/// Of several tags of one object, each could only be written if something tells which it was.
#[test]
fn tags_that_an_object_does_not_tell_are_variants() {
    let with = |mut schema: Value, key: &str, value: Value| {
        schema[key] = value;
        schema
    };
    let (id, typed) = (object(&["id"]), object(&["id", "type"]));
    let any = || json!({ "type": "object", "additionalProperties": { "type": "string" } });
    for (made, is_apart) in [
        (id.clone(), true),
        (typed.clone(), false),
        // A property that is only required is a field, too, unless it is among the others.
        (with(id.clone(), "required", json!(["id", "type"])), false),
        (with(any(), "required", json!(["type"])), true),
        (with(id, "additionalProperties", json!(true)), true),
    ] {
        assert_apart(&generate(event(made), holder(&["Event"])).source, is_apart);
    }
    // Of a union, all that it may be have to tell it.
    let (x, y) = (object(&["kind", "x", "type"]), object(&["kind", "y", "type"]));
    for (x, y, is_apart) in
        [(&x, &y, false), (&x, &object(&["kind", "y"]), true), (&object(&["kind"]), &object(&["kind"]), true)]
    {
        let mut definitions = event(tagged("kind", &["X", "Y"]));
        definitions.extend([("X", x.clone()), ("Y", y.clone())]);
        assert_apart(&generate(definitions, holder(&["Event"])).source, is_apart);
    }
    // A request leaves out what only answers have.
    let mut typed = typed;
    typed["properties"]["type"]["readOnly"] = true.into();
    for (output, is_apart) in [(json!({}), true), (to("Event"), false)] {
        let mut operation = OperationSpec::query("test.op");
        operation.input = json!({ "type": "object", "properties": { "body": to("Event") } }).into();
        operation.output = output.into();
        operation.binding = Binding::Http(HttpBinding::new("POST", "/events"));
        let definitions = event(typed.clone()).into_iter();
        let definitions = definitions.map(|(name, schema)| Definition::from_value(name.to_owned(), schema)).collect();
        let api = Api::new(Definitions::new(definitions), vec![operation]);
        assert_apart(&Generator::new().generate(&api).source, is_apart);
    }
}

/// Unions that reach each other are looked at so often that it takes long, so there is a limit.
#[test]
fn tags_of_very_many_unions_stay_together() {
    const WIDE: usize = 10;
    const LAYERS: usize = 40;
    let names = |layer: usize| (0..WIDE).map(move |number| format!("U{layer}x{number}"));
    let target = |name: &str| json!(format!("#/$defs/{name}"));
    let mut definitions: Vec<(String, Value)> = Vec::new();
    for (layer, name) in (0..LAYERS).flat_map(|layer| names(layer).map(move |name| (layer, name))) {
        let below: Vec<String> = names(layer + 1).collect();
        let tags = below.iter().flat_map(|below| ["a", "b"].map(|tag| (format!("{tag}{below}"), target(below))));
        let discriminator = json!({ "propertyName": name, "mapping": Value::Object(tags.collect()) });
        let variants: Vec<Value> = below.iter().map(|below| to(below)).collect();
        definitions.push((name, json!({ "oneOf": variants, "discriminator": discriminator })));
    }
    // All objects but the one that is looked at last have all tags.
    let tags: Vec<&str> = definitions.iter().map(|(name, _)| name.as_str()).collect();
    let leaves: Vec<_> =
        names(LAYERS).zip(0..).map(|(name, at)| (name, object(if at == 0 { &["x"] } else { &tags }))).collect();
    let definitions = definitions.iter().chain(&leaves).map(|(name, schema)| (name.as_str(), schema.clone())).collect();
    let source = generate(definitions, holder(&["U0x0"])).source;
    let together = source.lines().filter(|line| line.contains("\"a") && line.contains("\" | \"b")).count();
    let apart = source.lines().filter(|line| line.contains("\"b") && line.contains("\" => B")).count();
    assert!(apart > 0 && together > 0, "{apart} {together}");
}

/// The keys of a mapping are texts, whatever the property is.
#[test]
fn tags_that_are_no_texts_are_those_of_the_variants() {
    let to = |name: &str| format!("#/$defs/{name}");
    let variant = |own: &str, kind: &Value, required: &Value| {
        let properties = json!({ "petType": kind, own: {} });
        json!({ "type": "object", "properties": properties, "required": required })
    };
    let is = |value: Value| json!({ "const": value });
    let of = |values: Value| json!({ "type": "integer", "enum": values });
    for (keys, [cat, dog], required, expected) in [
        (["1", "2"], [is(json!(1)), is(json!(2))], json!(["petType"]), ["1 => Cat,", "2 => Dog,"]),
        // A server that has a default for the property does not require it.
        (["1", "2"], [is(json!(1)), is(json!(2))], json!([]), ["1 => Cat,", "2 => Dog,"]),
        (["True", "False"], [is(json!(true)), is(json!(false))], json!([]), ["true => Cat,", "false => Dog,"]),
        // Both have the property of a common base.
        (["1", "2"], [of(json!([1, 2])), of(json!([1, 2]))], json!(["petType"]), ["1 => Cat,", "2 => Dog,"]),
        // Keys that spell no value of the property.
        (["x", "y"], [of(json!([1])), of(json!([2]))], json!(["petType"]), ["1 => Cat,", "2 => Dog,"]),
        // Of texts, the mapping counts.
        (["x", "y"], [is(json!("a")), is(json!("b"))], json!(["petType"]), ["\"x\" => X,", "\"y\" => Y,"]),
    ] {
        let mapping: serde_json::Map<String, Value> =
            keys.iter().zip(["Cat", "Dog"]).map(|(key, name)| ((*key).to_owned(), to(name).into())).collect();
        let list = [json!({ "$ref": to("Cat") }), json!({ "$ref": to("Dog") })];
        let union = json!({ "oneOf": list, "discriminator": { "propertyName": "petType", "mapping": mapping } });
        let definitions = vec![
            ("Cat", variant("lives", &cat, &required)),
            ("Dog", variant("barks", &dog, &required)),
            ("Pet", union),
        ];
        let source = generate(definitions, json!({ "$ref": "#/$defs/Pet" })).source;
        let (_, table) =
            source.split_once("ops::tagged!(super::Pet[\"petType\"] {").unwrap_or_else(|| panic!("{source}"));
        let lines: Vec<&str> = table.lines().map(str::trim).skip(1).take(2).collect();
        assert_eq!(lines, expected, "{keys:?}");
    }
}

/// The values that a variant lists conform to its schema; its name does, where it lists none.
#[test]
fn tags_without_a_mapping_are_those_that_the_variants_list() {
    let of = |values: Value| json!({ "type": "string", "enum": values });
    let any = || json!({ "type": "string" });
    let by_name = ["\"v1/Cat\" => V1Cat,", "\"v1/Dog\" => V1Dog,"];
    let cases: [(Value, Value, Value, &[&str]); 8] = [
        (of(json!(["cat"])), of(json!(["dog"])), json!([]), &["\"cat\" => Cat,", "\"dog\" => Dog,"]),
        (of(json!(["cat", null])), of(json!(["dog"])), json!([]), &["\"cat\" => Cat,", "\"dog\" => Dog,"]),
        (of(json!(["a", "b"])), of(json!(["c"])), json!([]), &["\"a\" | \"b\" => V1Cat,", "\"c\" => C,"]),
        (any(), any(), json!(["kind"]), &by_name),
        // Both have the property of a common base.
        (of(json!(["v1/Cat", "v1/Dog"])), of(json!(["v1/Cat", "v1/Dog"])), json!(["kind"]), &by_name),
        // The base has more variants than the union.
        (of(json!(["v1/Cat", "v1/Dog", "Cow"])), of(json!(["v1/Cat", "v1/Dog", "Cow"])), json!([]), &by_name),
        (of(json!(["cat", "dog"])), of(json!(["cat", "dog"])), json!([]), &[]),
        (of(json!(["cat", "any"])), of(json!(["dog", "any"])), json!([]), &[]),
    ];
    for (cat, dog, required, expected) in cases {
        let variant = |own: &str, kind: &Value| {
            let properties = json!({ "kind": kind, own: {} });
            json!({ "type": "object", "properties": properties, "required": required })
        };
        let list = [json!({ "$ref": "#/$defs/v1~1Cat" }), json!({ "$ref": "#/$defs/v1~1Dog" })];
        let definitions = vec![
            ("v1/Cat", variant("lives", &cat)),
            ("v1/Dog", variant("barks", &dog)),
            ("Pet", json!({ "oneOf": list, "discriminator": { "propertyName": "kind" } })),
        ];
        let source = generate(definitions, json!({ "$ref": "#/$defs/Pet" })).source;
        let table = source.split_once("ops::tagged!(super::Pet[\"kind\"] {").map_or("", |(_, table)| table);
        let lines: Vec<&str> = table.lines().map(str::trim).skip(1).take(expected.len()).collect();
        assert_eq!(lines, expected, "{source}");
        assert_eq!(table.is_empty(), expected.is_empty(), "{source}");
    }
}

/// Else a variant that has a few properties more would be taken for the likelier one, and lose the others.
#[test]
fn a_union_by_a_property_is_as_likely_as_its_variants() {
    let mut dog = object(&["petType"]);
    dog["properties"]["barks"] = json!({ "type": "boolean" });
    let definitions = vec![
        ("Cat", object(&["petType", "lives"])),
        ("Dog", dog),
        ("Pet", tagged("petType", &["Cat", "Dog"])),
        ("Note", object(&["name"])),
    ];
    let any = json!({ "oneOf": [{ "$ref": "#/$defs/Note" }, { "$ref": "#/$defs/Pet" }] });
    let source = generate(definitions, any).source;
    let shapes = r#"Object["petType"] | Object["petType", "lives"] | Object["petType"; "barks"] => Pet,"#;
    assert!(source.contains(shapes), "{source}");
}

/// The default of a union in a union, whose variant has the tags of both.
#[test]
fn a_default_keeps_the_tags_that_its_variant_declares() {
    let definitions = vec![
        ("Card", object(&["category", "method", "number"])),
        ("Bank", object(&["method"])),
        ("Refund", object(&["category"])),
        ("Payment", tagged("method", &["Card", "Bank"])),
        ("Event", tagged("category", &["Payment", "Refund"])),
    ];
    let of = |default: Value| {
        let last = json!({ "allOf": [{ "$ref": "#/$defs/Event" }], "default": default });
        fields(definitions.clone(), json!({ "type": "object", "properties": { "last": last } })).concat()
    };
    assert_eq!(of(json!({ "category": "payment", "method": "card", "number": "1" })), "last: Event");
    assert_eq!(of(json!({ "category": "payment", "method": "bank" })), "last: Event");
    assert_eq!(of(json!({ "category": "payment", "method": "card" })), "last: Option<Event>");
}

/// Bytes are no text that could be one of the constants.
#[test]
fn bytes_beside_constants_are_a_variant() {
    let either = |one: Value, other: Value| json!({ "anyOf": [one, other] });
    let file = || json!({ "type": "string", "format": "binary" });
    let mode = || json!({ "$ref": "#/$defs/Mode" });
    let object = json!({ "type": "object", "properties": {
        "mask": either(file(), mode()),
        "image": either(file(), json!({ "type": "string", "format": "uri" })),
        "text": either(json!({ "type": "string" }), mode()),
    } });
    assert_eq!(
        fields(vec![("Mode", json!({ "type": "string", "enum": ["none", "auto"] }))], object),
        ["mask: Option<BytesOrMode>", "image: Option<BytesOrString>", "text: Option<Mode>"]
    );
}

#[test]
fn other_properties_beside_a_union_are_those_of_its_variants() {
    for (others, expected) in [
        (json!({ "type": "integer" }), "    pub extra: ::std::collections::BTreeMap<String, i64>,"),
        // It says nothing that the variants do not say.
        (json!(true), ""),
        (json!({}), ""),
        // It would forbid what the variants declare.
        (json!(false), ""),
    ] {
        let variants = json!([object(&["a"]), object(&["b"])]);
        let union = json!({ "type": "object", "additionalProperties": others, "oneOf": variants });
        let source = generate(Vec::new(), union).source;
        let found: Vec<&str> = source.lines().filter(|line| line.starts_with("    pub extra: ")).collect();
        assert_eq!(found, vec![expected; if expected.is_empty() { 0 } else { 2 }], "{source}");
    }
    // The variants are what they refer to.
    for more in [
        json!({}),
        json!({ "properties": { "kind": {} } }),
        json!({ "additionalProperties": {} }),
        json!({ "additionalProperties": { "description": "any" }, "properties": { "kind": {} } }),
    ] {
        let mut union = json!({ "type": "object", "additionalProperties": true, "oneOf": [to("A"), to("B")] });
        union.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let definitions = vec![("A", object(&["kind", "a"])), ("B", object(&["kind", "b"]))];
        let source = generate(definitions, union).source;
        assert_eq!(lines(&source, "enum OpOutput")[..2], ["A(A),", "B(B),"], "{source}");
    }
}

/// As a server of ours describes a status with declared codes, with which it fails itself, too.
#[test]
fn declared_problems_are_variants_beside_any_other() {
    let problem = json!({ "$ref": "#/$defs/Problem" });
    let coded = |code: &str| {
        let own = json!({ "type": "object", "properties": { "code": { "const": code } }, "required": ["code"] });
        json!({ "allOf": [problem, own], "title": code })
    };
    let mut any = object(&["detail"]);
    any["properties"]["code"] = json!({ "type": "string" });
    let union = json!({ "anyOf": [coded("UnknownDepot"), coded("NO_ROOM"), problem] });
    let source = generate(vec![("Problem", any)], union).source;
    let (_, body) = source.split_once("pub enum OpOutput {\n").unwrap();
    let lines = body.lines().take_while(|line| *line != "}").map(str::trim);
    let variants: Vec<&str> = lines.filter(|line| !line.starts_with("//")).collect();
    let wanted = ["UnknownDepot(OpOutputUnknownDepot),", "NoRoom(OpOutputNoRoom),", "Problem(Problem),"];
    assert_eq!(variants, wanted, "{source}");
}
