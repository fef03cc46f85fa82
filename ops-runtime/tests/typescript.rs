//! Operations as TypeScript, against files that are reviewed; `UPDATE_GOLDEN=1` writes them. That the compiler accepts them
//! is proven by `tests/typescript`, for all operations of the corpora.
#![cfg(all(feature = "openapi", feature = "typescript"))]

use ops_runtime::binding::{HttpBinding, HttpBody};
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::{Api, Definition, Definitions, ErrorDefinition, OperationKind, OperationSpec, Schema};
use ops_runtime::typescript::{Detail, Names, declarations, describe};
use serde_json::{Value, json};

/// Compares a text with a file.
fn golden(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/typescript").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, wanted, "{name} differs: run the test with UPDATE_GOLDEN=1 and read the difference");
}

fn names(specs: &[OperationSpec]) -> Names {
    Names::new(specs.iter().map(|spec| &spec.id))
}

/// An API with a bit of all that schemas say.
fn shop() -> Vec<OperationSpec> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/typescript/shop.json");
    let text = std::fs::read_to_string(path).unwrap();
    let document = openapi::parse(&text).unwrap();
    openapi::read(&document, &ReadOptions::new().with_namespace("shop")).unwrap().0.operations
}

/// An operation whose input has one property, of that schema, with these definitions.
fn taking(schema: Value, definitions: Value) -> OperationSpec {
    let mut spec = OperationSpec::new(OperationKind::Mutation, "a", "f").unwrap();
    spec.input = Schema::from(json!({ "type": "object", "required": ["x"], "properties": { "x": schema } }));
    let all = definitions.as_object().unwrap().iter();
    let definitions = all.map(|(name, schema)| Definition::from_value(name.clone(), schema.clone())).collect();
    Api::new(Definitions::new(definitions), vec![spec]).operations.remove(0)
}

/// What is written of an operation between the braces of its namespace.
fn body(spec: &OperationSpec, detail: Detail) -> String {
    let text = describe(spec, detail, &Names::default());
    let inner = text.strip_prefix("declare namespace ops.a {\n").unwrap().strip_suffix("\n}\n").unwrap();
    inner.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn descriptions_are_as_reviewed() {
    let specs = shop();
    let names = names(&specs);
    for (detail, file) in [(Detail::Short, "short.ts"), (Detail::Whole, "whole.ts")] {
        let all: Vec<String> = specs.iter().map(|spec| describe(spec, detail, &names)).collect();
        golden(file, &all.join("\n"));
    }
}

#[test]
fn declarations_are_as_reviewed_and_do_not_depend_on_the_order() {
    let mut specs = shop();
    let text = declarations(&specs, &names(&specs));
    golden("declarations.d.ts", &text);
    specs.reverse();
    assert_eq!(declarations(&specs, &names(&specs)), text);
    specs.extend(shop());
    assert_eq!(declarations(&specs, &names(&specs)), text, "each id once");
}

#[test]
fn schemas_become_types() {
    for (schema, wanted) in [
        (json!(true), "unknown"),
        (json!(false), "never"),
        (json!({}), "unknown"),
        (json!({ "type": "integer" }), "number"),
        (json!({ "type": ["string", "null"] }), "string | null"),
        (json!({ "type": "string", "nullable": true }), "string | null"),
        (json!({ "enum": ["a", 1, null, true] }), "\"a\" | 1 | null | true"),
        (json!({ "type": "string", "enum": ["a", 1] }), "\"a\""),
        (json!({ "type": "string", "enum": [1, 2] }), "1 | 2"),
        (json!({ "const": { "a b": [1] } }), "{ \"a b\": [1] }"),
        (json!({ "type": "array" }), "unknown[]"),
        (json!({ "type": "array", "items": { "type": ["string", "null"] } }), "(string | null)[]"),
        (json!({ "prefixItems": [{ "type": "string" }, {}], "minItems": 1 }), "[string, unknown?, ...unknown[]]"),
        (json!({ "items": [{ "type": "string" }], "additionalItems": false }), "[string?]"),
        (json!({ "type": "object" }), "{ [key: string]: unknown }"),
        (json!({ "type": "object", "additionalProperties": false }), "{ [key: string]: never }"),
        (json!({ "additionalProperties": { "type": "number" } }), "{ [key: string]: number }"),
        (
            json!({ "patternProperties": { "^a": { "type": "number" }, "^b": { "type": "string" } } }),
            "{ [key: string]: unknown /* number | string */ }",
        ),
        (
            json!({ "patternProperties": { "^a": { "type": "number" } }, "additionalProperties": false }),
            "{ [key: string]: number }",
        ),
        (
            json!({ "patternProperties": { "^a": { "type": "number" } }, "required": ["b"] }),
            "{\n    b: unknown;\n    [key: string]: unknown; // number\n  }",
        ),
        (
            json!({ "properties": { "a": { "type": "string" } }, "additionalProperties": { "type": "number" } }),
            "{\n    a?: string;\n    [key: string]: unknown; // number\n  }",
        ),
        (json!({ "properties": { "a": {} }, "required": ["b"] }), "{ a?: unknown; b: unknown }"),
        (json!({ "anyOf": [{ "type": "string" }, { "type": "string" }] }), "string"),
        (json!({ "oneOf": [{ "type": "string" }, { "enum": ["a"] }, { "type": "null" }] }), "string | null"),
        (json!({ "type": "string", "anyOf": [{ "enum": ["a"] }, { "const": "b" }] }), "\"a\" | \"b\""),
        (json!({ "type": "null", "oneOf": [{ "type": "number" }] }), "number | null"),
        (json!({ "allOf": [{ "properties": { "a": { "type": "string" } } }, { "required": ["a"] }] }), "{ a: string }"),
        (
            json!({ "properties": { "a": {}, "b": {} }, "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
            "{ a?: unknown; b?: unknown } & ({ a: unknown } | { b: unknown })",
        ),
        // To null and to texts, names of properties mean nothing.
        (
            json!({
                "type": ["object", "null"], "properties": { "a": {} },
                "anyOf": [{ "required": ["a"] }, { "required": ["b"] }],
            }),
            "({ a?: unknown } | null) & ({ a: unknown } | { b: unknown } | null)",
        ),
        (
            json!({ "type": ["string", "object"], "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
            "string | { [key: string]: unknown }",
        ),
        (
            json!({ "properties": { "a": {} }, "anyOf": [{ "required": ["a"] }, { "type": "null" }] }),
            "({ a?: unknown } | null) & ({ a: unknown } | null)",
        ),
        (json!({ "type": "string", "not": { "const": "a" } }), "string"),
        (json!({ "$ref": "#/$defs/Gone" }), "unknown"),
    ] {
        let text = body(&taking(schema.clone(), json!({})), Detail::Whole);
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("/**"));
        let lines = lines.collect::<Vec<_>>().join("\n");
        let on_one = lines.strip_prefix("function f(input: { x: ");
        let on_one = on_one.and_then(|rest| rest.strip_suffix(" }): Promise<unknown>;"));
        let broken = lines.strip_prefix("function f(input: {\n  x: ");
        let broken = broken.and_then(|rest| rest.strip_suffix(";\n}): Promise<unknown>;"));
        assert_eq!(on_one.or(broken), Some(wanted), "{schema}: {text}");
    }
}

#[test]
fn definitions_may_be_circular_and_have_any_name() {
    let node = json!({ "Node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/Node" } } } });
    let text = body(&taking(json!({ "$ref": "#/$defs/Node" }), node), Detail::Whole);
    assert_eq!(text, "function f(input: {\n  x: Node;\n}): Promise<unknown>;\ntype Node = {\n  next?: Node;\n};");

    // What is only made of itself is cut open.
    let circle = json!({
        "A": { "anyOf": [{ "$ref": "#/$defs/A" }, { "type": "string" }] },
        "B": { "anyOf": [{ "$ref": "#/$defs/C" }, { "type": "string" }] },
        "C": { "allOf": [{ "$ref": "#/$defs/B" }] },
    });
    let all = json!({ "prefixItems": [{ "$ref": "#/$defs/A" }, { "$ref": "#/$defs/B" }, { "$ref": "#/$defs/C" }] });
    let text = body(&taking(all, circle), Detail::Whole);
    assert!(text.contains("type A = string;") && text.contains("type B = C | string;"), "{text}");
    assert!(text.contains("type C = unknown;"), "{text}");

    // What is named may be null, to which the names of properties beside it mean nothing.
    let pet = json!({ "Pet": { "type": ["object", "null"], "properties": { "id": { "type": "number" } } } });
    for schema in [
        json!({ "$ref": "#/$defs/Pet", "required": ["id"] }),
        json!({ "allOf": [{ "$ref": "#/$defs/Pet" }], "required": ["id"] }),
    ] {
        let text = body(&taking(schema, pet.clone()), Detail::Whole);
        let (one, other) = ("Pet & ({ id: number } | null)", "({ id: number } | null) & Pet");
        assert!(text.contains(one) || text.contains(other), "{text}");
    }

    // Names that are alike, forbidden, or attacks.
    let hostile = json!({
        "a b": { "type": "string" }, "a-b": { "type": "number" }, "Promise": { "type": "boolean" },
        "}; evil(); type X = {": { "type": "null" }, "__proto__": { "type": "string" },
    });
    let all: Vec<Value> = hostile
        .as_object()
        .unwrap()
        .keys()
        .map(|name| json!({ "$ref": ops_runtime::spec::pointer::reference(name) }))
        .collect();
    let text = body(&taking(json!({ "prefixItems": all }), hostile), Detail::Whole);
    assert!(text.contains("x: [AB?, AB2?, Promise_?, EvilTypeX?, Proto?, ...unknown[]];"), "{text}");
    assert!(text.contains("type AB = string;") && text.contains("type AB2 = number;"), "{text}");
}

#[test]
fn hostile_words_stay_words() {
    let mut spec = taking(
        json!({ "description": "a */ }\n@evil\u{2028}</script>", "enum": ["\"*/", "\u{2028}", "`${x}`", "</script>"] }),
        json!({}),
    );
    spec.id = "a.*/ evil(); /*".into();
    spec.description = "*/ declare var evil: any; /*\r\n\u{202e}*/".into();
    spec.errors = vec![ErrorDefinition::owned("*/evil")].into();
    spec.input = Schema::from(
        json!({ "type": "object", "required": ["x", "__proto__", "a-b", "*/", "\u{2028}"], "properties": { "x": spec.input.to_value().unwrap()["properties"]["x"] } }),
    );
    for detail in [Detail::Short, Detail::Whole] {
        let text = body(&spec, detail);
        // What ends a comment began as one, or is in a string.
        let outside = text.replace("\"*/\"", "").replace("\"\\\"*/\"", "");
        assert_eq!(outside.matches("/**").count(), outside.matches("*/").count(), "{text}");
        assert!(!text.contains('\u{2028}') && !text.contains('\u{202e}') && !text.contains("</script"), "{text}");
        assert!(text.contains("function evil(") && text.contains("\"__proto__\": unknown;"), "{text}");
        assert!(text.contains("\"\\u2028\": unknown;") && text.contains("| \"\\u2028\" |"), "{text}");
    }
    let all = declarations([&spec], &Names::new([&spec.id]));
    assert!(all.contains("\"a.*/ evil(); /*\": Call<typeof ops.a.evil>;"), "{all}");
}

#[test]
fn what_is_too_much_is_cut_in_the_short_form_and_told() {
    let values: Vec<String> = (0..3_000).map(|number| format!("value-{number}")).collect();
    let spec = taking(json!({ "enum": values }), json!({}));
    let short = body(&spec, Detail::Short);
    assert!(short.contains("x: string /* \"value-0\" | ") && short.contains("| ... 2992 more */"), "{short}");
    assert!(
        short.contains("Cut: to describe it with the detail \"whole\" gives all of it.") && short.len() < 500,
        "{short}"
    );
    let whole = body(&spec, Detail::Whole);
    assert!(whole.contains("| \"value-999\" | ... 2000 more */"), "{whole}");
    // To ask for it whole once more would give no more.
    assert!(whole.contains("Cut: it is too large to be shown whole.") && !whole.contains("gives all of it"), "{whole}");
    let few = body(&taking(json!({ "enum": values[..1000] }), json!({})), Detail::Whole);
    assert!(few.contains("\"value-999\";") && !few.contains("Cut:"), "{few}");

    // A chain of `allOf` does not double, and a product of unions stays one that the compiler takes.
    let mut chain = json!({ "D0": { "properties": { "a": { "type": "string" } } } });
    for number in 1..=30 {
        let before = json!({ "$ref": format!("#/$defs/D{}", number - 1) });
        chain[format!("D{number}")] = json!({ "allOf": [before, before] });
    }
    let text = body(&taking(json!({ "$ref": "#/$defs/D30" }), chain), Detail::Whole);
    assert!(
        text.contains("type D30 = D29;") && text.contains("type D0 = { a?: string };") && text.len() < 2_000,
        "{text}"
    );
    let union = |of: &str| json!({ "anyOf": (0..50).map(|number| json!({ "type": "object", "properties": { of: { "const": number } } })).collect::<Vec<_>>() });
    let product = json!({ "allOf": [union("a"), union("b"), union("c"), union("d")] });
    let text = body(&taking(product, json!({})), Detail::Whole);
    assert!(text.contains("b?: 49") && !text.contains("d?: 0"), "{text}");
    let named = json!({ "A": union("a"), "B": union("b"), "C": union("c"), "D": union("d") });
    let all = ["A", "B", "C", "D"].map(|name| json!({ "$ref": format!("#/$defs/{name}") }));
    let product = json!({ "allOf": all });
    let text = body(&taking(product, named), Detail::Whole);
    assert!(text.contains("x: A & B;") && !text.contains("type C ="), "{text}");

    // Neither do references into definitions, each of which holds several others.
    let many: Vec<Value> = (0..20).map(|_| json!({ "$ref": "#/$defs/P/properties/p" })).collect();
    let inner = json!({ "P": { "properties": { "p": { "prefixItems": many } } } });
    let text = body(&taking(json!({ "$ref": "#/$defs/P/properties/p" }), inner), Detail::Whole);
    assert!(text.len() < 200_000 && text.contains("unknown?"), "{}", text.len());

    // What is nested deeper than anybody writes ends somewhere.
    let mut deep = json!({ "type": "string" });
    for _ in 0..500 {
        deep = json!({ "type": "array", "items": deep });
    }
    assert!(body(&taking(deep, json!({})), Detail::Whole).contains("unknown[][]"));
}

#[test]
fn a_description_of_a_few_short_sentences_stays_whole() {
    let words = "The next depot. Without one, the parcel goes to its recipient.";
    let short =
        |words: &str| body(&taking(json!({ "type": "string", "description": words }), json!({})), Detail::Short);
    let with = |cut: &str, said: &str| {
        format!("{cut}function f(input: {{\n  /** {said} */\n  x: string;\n}}): Promise<unknown>;")
    };
    assert_eq!(short(words), with("", words));
    let cut = "/** Cut: to describe it with the detail \"whole\" gives all of it. */\n";
    assert_eq!(short("One. Two. Three. Four."), with(cut, "One. Two. Three."));
    // The second is too long.
    assert_eq!(short(&format!("One. {}.", "two ".repeat(40).trim())), with(cut, "One."));
}

/// Servers may send structured content of which their tools say nothing.
#[cfg(feature = "mcp-schema")]
#[test]
fn what_a_tool_without_an_output_schema_gives_is_unknown() {
    use ops_runtime::mcp;

    let input = json!({ "type": "object", "required": ["x"], "properties": { "x": { "type": "string" } } });
    let list = json!({ "tools": [{ "name": "f", "inputSchema": input }] });
    let (api, _) = mcp::read(&list, &mcp::ReadOptions::new().with_namespace("a")).unwrap();
    for detail in [Detail::Short, Detail::Whole] {
        assert_eq!(
            body(&api.operations[0], detail),
            "/** Gives content blocks, such as `[{ type: \"text\", text }]`, or any other value: see what comes. */\n\
             function f(input: { x: string }): Promise<unknown>;"
        );
    }
}

#[test]
fn what_is_required_is_never_cut() {
    let words = "Words that take room. ".repeat(20);
    let mut properties = serde_json::Map::new();
    for number in 0..200 {
        let inner = json!({ "type": "object", "description": words, "required": ["b"], "properties": {
            "a": { "type": "string" }, "b": { "type": "array", "items": { "$ref": "#/$defs/Item" } } } });
        properties.insert(format!("p{number}"), inner);
    }
    let item = json!({ "Item": { "type": "object", "required": ["id"], "properties": { "id": { "type": "integer" }, "other": {} } } });
    let required: Vec<String> = (0..20).map(|number| format!("p{number}")).collect();
    let mut spec = taking(json!({}), item);
    spec.input = Schema::from(json!({ "type": "object", "properties": properties, "required": required }));
    let text = body(&spec, Detail::Short);
    assert_eq!(text.matches("b: Item[];").count(), 20, "{text}");
    assert!(text.contains("id: number;") && text.contains("p19: {") && !text.contains("p20: {"), "{text}");
    assert!(text.contains("Cut: to describe it"), "{text}");
}

#[test]
fn directions_make_two_types_of_a_definition_where_they_differ() {
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "a", "version": "1" },
        "components": { "schemas": {
            "Pet": { "type": "object", "required": ["id", "name"], "properties": {
                "id": { "type": "integer", "readOnly": true }, "name": { "type": "string" },
                "secret": { "type": "string", "writeOnly": true }, "kind": { "$ref": "#/components/schemas/Kind" } } },
            "Kind": { "enum": ["cat", "dog"] },
        } },
        "paths": { "/pets": { "post": { "operationId": "add", "requestBody": { "required": true, "content": {
            "application/json": { "schema": { "$ref": "#/components/schemas/Pet" } } } },
            "responses": { "200": { "description": "ok", "content": {
                "application/json": { "schema": { "$ref": "#/components/schemas/Pet" } } } } } } } },
    });
    let api = openapi::read(&document, &ReadOptions::new().with_namespace("a")).unwrap().0;
    let text = body(&api.operations[0], Detail::Whole);
    assert!(text.contains("type PetInput = {\n  name: string;\n  secret?: string;\n  kind?: Kind;\n};"), "{text}");
    assert!(text.contains("type Pet = {\n  id: number;\n  name: string;\n  kind?: Kind;\n};"), "{text}");
    assert_eq!(text.matches("type Kind = ").count(), 1, "{text}");
}

#[test]
fn what_is_for_the_other_side_is_not_required_of_this_one() {
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "a", "version": "1" },
        "components": { "schemas": {
            "Stored": { "type": "object", "properties": { "id": { "type": "integer", "readOnly": true } } },
            "When": { "type": "string", "readOnly": true },
        } },
        "paths": { "/pets": { "post": { "operationId": "add", "requestBody": { "required": true, "content": {
            "application/json": { "schema": { "required": ["id", "name", "made"],
                "properties": {
                    "name": { "type": "string" },
                    "made": { "anyOf": [{ "$ref": "#/components/schemas/When" }, { "type": "null" }] },
                },
                "allOf": [{ "$ref": "#/components/schemas/Stored" }] } } } },
            "responses": { "204": { "description": "ok" } } } } },
    });
    let api = openapi::read(&document, &ReadOptions::new().with_namespace("a")).unwrap().0;
    let text = body(&api.operations[0], Detail::Whole);
    assert!(text.contains("name: string") && !text.contains("id") && !text.contains("made"), "{text}");
}

#[test]
fn parameters_and_bodies_themselves_are_sent() {
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "a", "version": "1" },
        "components": { "schemas": {
            "PetId": { "type": "integer", "readOnly": true },
            "Pet": { "type": "object", "required": ["made", "name"], "properties": {
                "made": { "type": "string", "readOnly": true }, "name": { "type": "string" } } },
        } },
        "paths": { "/pets/{id}": {
            "parameters": [
                { "name": "id", "in": "path", "required": true, "schema": { "$ref": "#/components/schemas/PetId" } } ],
            "get": { "operationId": "get", "parameters": [
                { "name": "filter", "in": "query", "style": "deepObject",
                    "schema": { "$ref": "#/components/schemas/Pet" } } ],
                "responses": { "204": { "description": "ok" } } },
            "put": { "operationId": "put", "requestBody": { "required": true, "content": {
                "application/json": { "schema": { "$ref": "#/components/schemas/Pet" } } } },
                "responses": { "204": { "description": "ok" } } },
        } },
    });
    let api = openapi::read(&document, &ReadOptions::new().with_namespace("a")).unwrap().0;
    for (spec, given) in api.operations.iter().zip(["filter?: ", "body: "]) {
        let text = body(spec, Detail::Whole);
        assert!(text.contains("id: ") && text.contains(given), "{text}");
        assert!(text.contains("name: string") && !text.contains("made"), "{text}");
    }
}

/// A function takes all that its type requires, however it is bound.
#[test]
fn a_function_is_given_what_is_read_only() {
    let mut spec = taking(json!({}), json!({}));
    spec.input = Schema::make(|| {
        let id = json!({ "type": "integer", "readOnly": true });
        let body = json!({ "type": "object", "required": ["id"], "properties": { "id": id } });
        json!({ "type": "object", "required": ["body"], "properties": { "body": body } })
    });
    let spec = spec.with_http(HttpBinding::new("PUT", "/").with_bodies(const { &[HttpBody::new("application/json")] }));
    let text = body(&spec, Detail::Whole);
    assert!(text.contains("id: number"), "{text}");
    // A body that is the rest of the input is the place of all.
    let bodies = const { &[HttpBody::new("application/json").with_rest()] };
    let mut map = spec.with_http(HttpBinding::new("PUT", "/").with_bodies(bodies));
    map.input = Schema::from(json!({ "type": "object", "additionalProperties": { "type": "string" } }));
    assert_eq!(body(&map, Detail::Whole), "function f(input?: { [key: string]: string }): Promise<unknown>;");
}

#[test]
fn a_variant_that_may_be_null_has_its_tag() {
    let cat = json!({ "Cat": { "type": ["object", "null"], "properties": { "lives": { "type": "number" } } } });
    let pet = json!({
        "oneOf": [{ "$ref": "#/$defs/Cat" }],
        "discriminator": { "propertyName": "kind", "mapping": { "cat": "#/$defs/Cat" } },
    });
    let text = body(&taking(pet, cat), Detail::Whole);
    assert!(text.contains("Cat & ({ kind?: \"cat\" } | null)"), "{text}");
}

/// One type that several functions hold in their schemas is one type; another of the same name is another.
#[test]
fn definitions_inside_schemas_are_shared_where_they_are_alike() {
    let own = |pet: Value| json!({ "$ref": "#/$defs/Pet", "$defs": { "Pet": pet } });
    let pet = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let spec = |name: &str, schema: Value| {
        let mut spec = OperationSpec::new(OperationKind::Query, "a", name).unwrap();
        spec.output = Schema::from(schema);
        spec
    };
    let specs = [
        spec("one", own(pet.clone())),
        spec("two", own(pet)),
        spec("three", own(json!({ "type": "string" }))),
        spec("tree", json!({ "type": "object", "properties": { "below": { "$ref": "#" } } })),
    ];
    let text = declarations(&specs, &names(&specs));
    for wanted in [
        "function one(input?: unknown): Promise<Pet>;",
        "function two(input?: unknown): Promise<Pet>;",
        "function three(input?: unknown): Promise<Pet2>;",
        "type Pet2 = string;",
        "below?: Root;",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert_eq!(text.matches("type Pet = ").count(), 1, "{text}");
}

#[test]
fn a_part_without_variants_stays_however_much_was_looked_at() {
    // More names than may be looked for.
    let names: Vec<String> = (0..60_000).map(|at| format!("r{at}")).collect();
    let much = json!({ "type": "object", "required": names, "allOf": [{ "type": "object" }] });
    let dog = json!({ "allOf": [{ "$ref": "#/$defs/Animal" }, { "properties": { "bark": { "type": "string" } } }] });
    let animal = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let input = json!({ "type": "object", "properties": { "a": much, "dog": { "$ref": "#/$defs/Dog" } } });
    let spec = taking(input, json!({ "Animal": animal, "Dog": dog }));
    let text = declarations([&spec], &Names::default());
    let dog = &text[text.find("type Dog").unwrap()..];
    assert!(dog.starts_with("type Dog = Animal & { bark?: string };"), "{}", &dog[..dog.len().min(200)]);
}

#[test]
fn names_that_are_described_together_have_that_type_unless_it_is_too_much() {
    let few = json!({ "required": ["a", "b"], "additionalProperties": { "type": "number" } });
    let text = body(&taking(few, json!({})), Detail::Whole);
    assert!(text.contains("a: number;") && text.contains("b: number;"), "{text}");
    let names: Vec<String> = (0..1_000).map(|at| format!("r{at}")).collect();
    let all: serde_json::Map<String, Value> = (0..1_000).map(|at| (format!("a{at}"), json!({}))).collect();
    let others = json!({ "type": "object", "properties": all });
    let many = json!({ "type": "object", "required": names, "additionalProperties": others });
    let text = body(&taking(many, json!({})), Detail::Whole);
    assert!(text.contains("r999: unknown;") && text.len() < 4 << 20, "{} bytes", text.len());
}

/// What many definitions lead to is read once: that a large one was read for each took minutes, and gigabytes.
#[test]
fn definitions_that_lead_to_a_large_one_cost_little() {
    let large = json!({ "type": "object", "description": "Long words. ".repeat(40_000), "properties": { "a": {} } });
    let mut definitions = serde_json::Map::from_iter([("Large".to_owned(), large)]);
    let mut properties = serde_json::Map::new();
    for number in 0..2_000 {
        let leads = json!({ "properties": { "large": { "$ref": "#/$defs/Large" }, "number": { "const": number } } });
        definitions.insert(format!("Small{number}"), leads);
        properties.insert(format!("p{number}"), json!({ "$ref": format!("#/$defs/Small{number}") }));
    }
    let mut spec = OperationSpec::new(OperationKind::Query, "a", "f").unwrap();
    spec.input = Schema::from(json!({ "type": "object", "properties": properties, "$defs": definitions }));
    let start = std::time::Instant::now();
    for detail in [Detail::Short, Detail::Whole] {
        assert!(body(&spec, detail).contains("function f("));
    }
    assert!(start.elapsed() < std::time::Duration::from_secs(10), "{:?}", start.elapsed());
}
