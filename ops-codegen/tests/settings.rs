//! Settings of the generator: what is wrong with them is said, all of it, and hostile text never becomes code.
#![allow(clippy::unwrap_used)]

#[path = "settings/own_types.rs"]
mod own_types;

use ops_codegen::{Builder, Error, Generator};
use ops_runtime::openapi::{ReadOptions, read};
use ops_runtime::spec::{Api, Definitions, ErrorDefinition, OperationSpec, RetryPolicy, Severity};
use serde_json::{Value, json};

/// An API whose operation `show` returns a `Pet`.
fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Zoo", "version": "1" },
        "paths": { "/pets": { "get": {
            "operationId": "show",
            "parameters": [{ "name": "page", "in": "query", "schema": { "type": "integer" } }],
            "responses": { "200": { "description": "x", "content": { "application/json": {
                "schema": { "$ref": "#/components/schemas/Pet" }
            } } } },
        } } },
        "components": { "schemas": {
            "Pet": {
                "type": "object",
                "required": ["weight"],
                "properties": {
                    "type": { "enum": ["cat", "dog"] },
                    "name": { "type": "string" },
                    "weight": { "type": "number" },
                    "owner": { "$ref": "#/components/schemas/Owner" },
                },
            },
            "Owner": { "type": "object", "properties": { "name": { "type": "string" }, "any": {} } },
            "Event": { "type": "object", "properties": { "of": { "$ref": "#/components/schemas/Show" } } },
            "Show": { "type": "object", "properties": { "at": { "type": "string" } } },
        } },
    })
}

fn api(document: &Value) -> Api {
    read(document, &ReadOptions::new().with_namespace("zoo").with_rust_types()).unwrap().0
}

fn build(generator: Generator) -> Result<String, Error> {
    let modules = Builder::new().with_generator(generator).api("zoo", api(&document()), Vec::new()).generate()?;
    Ok(modules.into_iter().next().unwrap().generated.source)
}

fn source(generator: Generator) -> String {
    build(generator).unwrap()
}

/// A settings method, and the error of it.
type Made = Result<Generator, Error>;

#[test]
fn text_that_is_no_name_is_refused_at_once() {
    let new = Generator::new;
    let evil = "crate::A; compile_error!()";
    let table: Vec<(Made, &str)> = vec![
        (new().with_type("Pet", evil), "is no path of a type for `Pet`: begin with `crate::`"),
        (new().with_type("Pet", "Animal"), "`Animal` is no path"),
        (new().with_type("Pet", "super::Animal"), "`super::Animal` is no path"),
        (
            new().with_type("Pet", "crate::A").unwrap().with_type("Pet", "crate::B"),
            "two types, `crate::A` and `crate::B`",
        ),
        (new().with_renamed_type("Pet", "an animal"), "`an animal` is no name for the type of `Pet`"),
        (new().with_renamed_type("Pet", "Self"), "`Self` is no name"),
        (new().with_renamed_type("Pet", "A").unwrap().with_renamed_type("Pet", "B"), "`Pet` has two names"),
        (new().with_renamed_field("Pet", "type", "match"), "`match` is no name for the property `type` of `Pet`"),
        (new().with_renamed_field("Pet", "type", "a: u8, b"), "is no name for the property"),
        (new().with_renamed_field("Pet", "type", "Kind"), "`Kind` is no name"),
        (new().with_derive("*", "Eq)] struct Evil; #[derive(Eq"), "is no derive: write a trait"),
        (new().with_derive("*", "JsonSchema"), "`JsonSchema` is no derive"),
        (new().with_derive("*", "serde::Serialize"), "every type has `Serialize`: leave it out"),
    ];
    for (made, expected) in table {
        let error = made.map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::Settings(_)) && error.to_string().contains(expected), "{error} / {expected}");
    }
    // The same thing said twice is no contradiction.
    new().with_type("Pet", "chrono::A").unwrap().with_type("Pet", "::chrono::A").unwrap();
}

#[test]
fn settings_that_cannot_be_applied_are_all_reported() -> Result<(), Error> {
    let new = Generator::new;
    for (generator, expected) in [
        (
            new().with_type("Pte", "crate::Pet")?.with_renamed_type("Ownr", "Keeper")?,
            &[
                "the type `crate::Pet`: there is no schema `Pte` (there is `Pet`): write its name as the document has it",
                "the name `Keeper`: there is no type `Ownr` (there is `Owner`): write a schema's name",
            ][..],
        ),
        (
            new().with_renamed_field("Pet", "typ", "kind")?.with_renamed_field("Pet", "name", "owner")?,
            &[
                "the property `name` of `Pet` can't be called `owner`: another field has that name",
                "the name `kind`: `Pet` has no property `typ` (there is `type`)",
            ],
        ),
        (
            new().with_renamed_type("Pet", "Owner")?.with_renamed_type("Owner", "Show")?,
            &["`Owner` can't be called `Show`: that name is taken"],
        ),
        (
            new().with_renamed_type("Pet", "A")?.with_renamed_type("Owner", "A")?,
            &["`Owner` can't be called `A`: that name is taken; choose another, or rename what has it"],
        ),
        (
            new().with_type("Pet", "crate::Pet")?.with_renamed_type("Pet", "Animal")?,
            &["the name `Animal`: `Pet` is not generated, because `crate::Pet` stands for it"],
        ),
        (
            new().with_renamed_type("Event", "Happening")?,
            &["the name `Happening`: `Event` is not generated: no operation has the schema"],
        ),
        (
            new().with_renamed_field("PetType", "cat", "kitty")?,
            &["`PetType` has no fields to name: it is no struct of properties"],
        ),
        (
            new().with_derive("Pot", "Eq")?.with_schema("Evnt"),
            &["the derive `Eq`: no type matches `Pot` (there is `Pet`)", "no schema matches `Evnt` (there is `Event`)"],
        ),
    ] {
        let error = build(generator.clone()).unwrap_err();
        assert!(matches!(error, Error::Settings(_)), "{error}");
        let text = error.to_string();
        for part in expected {
            assert!(text.contains(part), "{text}\n/ {part}");
        }
        assert_eq!(text.lines().count(), expected.len(), "{text}");
        // Without a builder, what is wrong is in the diagnostics, and the rest is generated.
        let generated = generator.generate(&api(&document()));
        let errors = generated.diagnostics.iter().filter(|told| told.severity == Severity::Error).count();
        assert_eq!(errors, expected.len());
        syn::parse_file(&generated.source).unwrap();
    }
    Ok(())
}

#[test]
fn operations_keep_their_names() -> Result<(), Error> {
    let feed = OperationSpec::query("zoo.feed")
        .with_errors(const { &[ErrorDefinition::new("HTTP_404").with_http_status(404)] });
    let api = Api::new(Definitions::EMPTY, vec![feed]);
    for name in ["Feed", "FeedError"] {
        let generator = Generator::new().with_renamed_type(name, "Eat")?;
        let error =
            Builder::new().with_generator(generator).api("zoo", api.clone(), Vec::new()).generate().unwrap_err();
        let wanted = format!("the name `Eat`: there is no type `{name}`: it is named after an operation");
        assert!(error.to_string().starts_with(&wanted), "{error}");
    }
    Ok(())
}

#[test]
fn names_may_be_exchanged() -> Result<(), Error> {
    let generator = Generator::new()
        .with_renamed_type("Pet", "Owner")?
        .with_renamed_type("Owner", "Pet")?
        .with_renamed_field("Pet", "name", "type_")?
        .with_renamed_field("Pet", "type", "name")?;
    let source = source(generator);
    assert!(source.contains("type Output = Owner;") && source.contains("pub owner: Option<Pet>,"), "{source}");
    assert!(source.contains("    /// `type` in JSON.\n    pub name: Option<PetType>,"), "{source}");
    assert!(source.contains("    /// `name` in JSON.\n    pub type_: Option<String>,"), "{source}");
    // A name of the prelude is written in full elsewhere.
    let generator = Generator::new().with_renamed_type("Owner", "Option")?;
    assert!(build(generator)?.contains("pub owner: ::std::option::Option<Option>,"));
    Ok(())
}

#[test]
fn a_setting_is_for_the_document_that_has_it() -> Result<(), Error> {
    let mut other = document();
    let schemas = other["components"]["schemas"].as_object_mut().unwrap();
    schemas.remove("Event");
    other["paths"]["/owners"] = other["paths"]["/pets"].clone();
    other["paths"]["/owners"]["get"]["operationId"] = json!("owners");
    let two = |builder: Builder| {
        let builder = builder.api("other", api(&other), Vec::new());
        builder.generate()
    };
    let first = || Builder::new().api("zoo", api(&document()), Vec::new());
    // One of two has it: that is noted for the other.
    let modules = two(first().with_generator(Generator::new().with_schema("Event")))?;
    assert!(modules[0].generated.source.contains("pub struct Event") && !modules[1].generated.source.contains("Event"));
    let told = &modules[1].generated.diagnostics;
    let is_told = |told: &ops_runtime::spec::Diagnostic| {
        told.severity == Severity::Note && told.message.starts_with("no schema matches `Event`")
    };
    assert!(told.iter().any(is_told) && !modules[0].generated.diagnostics.iter().any(is_told), "{told:?}");
    // What none has is an error, even if the documents lack it for different reasons.
    let bank = json!({ "openapi": "3.1.0", "info": { "title": "Bank", "version": "1" }, "paths": {
        "/pay": { "get": { "operationId": "pay", "responses": { "204": { "description": "x" } } } } } });
    let with_bank = |generator| first().with_generator(generator).api("bank", api(&bank), Vec::new()).generate();
    for (generator, expected) in [
        (Generator::new().with_renamed_field("Pet", "typ", "kind")?, "`Pet` has no property `typ` (there is `type`)"),
        (Generator::new().with_renamed_type("Event", "Happening")?, "the name `Happening`: "),
    ] {
        let error = with_bank(generator).unwrap_err().to_string();
        assert!(error.lines().count() == 1 && error.contains(expected), "{error}");
    }
    // One of them has it, however often it is said.
    with_bank(Generator::new().with_schema("Event").with_schema("Event"))?;
    // A generator of its own leaves the other document alone, and its settings are for that document only.
    let own = Generator::new().with_type("Pet", "crate::Pet")?;
    let modules = two(first().with_document_generator(own))?;
    assert!(modules[0].generated.source.contains("type Output = crate::Pet;"));
    assert!(modules[1].generated.source.contains("type Output = Pet;"));
    let builder = first().with_generator(Generator::new().with_schema("Event"));
    let error = two(builder.with_document_generator(Generator::new().with_schema("Gone"))).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 2, "{error}");
    assert!(error.contains("no schema matches `Event`") && error.contains("no schema matches `Gone`"), "{error}");
    // One of operations, too, which the other has.
    let error = two(first().with_document_generator(Generator::new().with_explicit_null("owners"))).unwrap_err();
    assert!(error.to_string().starts_with("no operation matches `owners`"), "{error}");
    // What the builder says of operations holds for all.
    two(first().with_document_generator(Generator::new()).with_explicit_null("owners"))?;
    let error = first().with_document_generator(Generator::new()).with_explicit_null("gone").generate().unwrap_err();
    assert!(error.to_string().contains("no operation matches `gone`"), "{error}");
    Ok(())
}

#[test]
fn a_document_names_types_only_if_it_may() {
    let with = |extension: Value| {
        let mut document = document();
        document["components"]["schemas"]["Owner"]["x-rust-type"] = extension;
        document
    };
    let good = with(json!({ "crate": "my-crate", "version": "1.2", "path": "my_crate::model::Owner" }));
    let generate = |document: &Value| Generator::new().with_rust_types().generate(&api(document));
    assert!(generate(&good).source.contains("pub owner: Option<::my_crate::model::Owner>,"));
    assert!(Generator::new().generate(&api(&good)).source.contains("pub owner: Option<Owner>,"));
    // So may a schema within another, also where it is in a union with `null`.
    let inner =
        json!({ "type": "string", "x-rust-type": { "crate": "std", "version": "1", "path": "std::net::IpAddr" } });
    let mut inside = document();
    inside["components"]["schemas"]["Pet"]["properties"]["name"] = json!({ "type": "array", "items": inner.clone() });
    inside["components"]["schemas"]["Owner"] = json!({ "anyOf": [inner, { "type": "null" }] });
    let source = generate(&inside).source;
    assert!(source.contains("pub name: Option<Vec<::std::net::IpAddr>>,"), "{source}");
    assert!(source.contains("pub owner: Option<::std::net::IpAddr>,"), "{source}");
    // What the user says goes before.
    let own = Generator::new().with_rust_types().with_type("Owner", "crate::Owner").unwrap();
    assert!(own.generate(&api(&good)).source.contains("pub owner: Option<crate::Owner>,"));
    for (extension, fault) in [
        (json!("my_crate::Owner"), "it has no `crate` or no `path`"),
        (json!({ "path": "my_crate::Owner" }), "it has no `crate` or no `path`"),
        (json!({ "crate": "a", "path": 1 }), "it has no `crate` or no `path`"),
        (json!({ "crate": "a", "path": "b::Owner" }), "its `path` does not begin with the name in `crate`"),
        (json!({ "crate": "crate", "path": "crate::Owner" }), "its `path` does not begin with the name in `crate`"),
        (json!({ "crate": "a", "path": "a::Owner<{ evil!() }>" }), "its `path` is no path of a type"),
        (json!({ "crate": "a", "path": "a::B; compile_error!()" }), "its `path` is no path of a type"),
        (json!({ "crate": "a", "path": "a::fn" }), "its `path` is no path of a type"),
        (json!({ "crate": "a", "path": "a::Owner", "parameters": [{ "type": "string" }] }), "it has `parameters`"),
    ] {
        let generated = generate(&with(extension.clone()));
        assert!(generated.source.contains("pub owner: Option<Owner>,"), "{extension}");
        let told: Vec<_> = generated.diagnostics.iter().filter(|told| told.message.contains("x-rust-type")).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].message.contains(fault) && told[0].severity == Severity::Warning, "{told:?}");
        syn::parse_file(&generated.source).unwrap();
    }
    // A reader that is not asked for it leaves it out of the specs.
    let (plain, _) = read(&good, &ReadOptions::new()).unwrap();
    assert!(!plain.definitions.get("Owner").unwrap().schema.to_value().unwrap().to_string().contains("my_crate"));
}

#[test]
fn schemas_without_operations_change_no_name() -> Result<(), Error> {
    let before = source(Generator::new());
    let after = source(Generator::new().with_schema("*"));
    let declared = |source: &str| -> Vec<String> {
        source
            .lines()
            .filter(|line| line.starts_with("pub ") || line.starts_with("    pub "))
            .map(str::to_owned)
            .collect()
    };
    let (before, after) = (declared(&before), declared(&after));
    assert_eq!(after[..before.len()], before[..]);
    // The operation `show` has the name already.
    assert!(after.iter().any(|line| line.starts_with("pub struct Event")));
    assert!(after.iter().any(|line| line == "    pub of: Option<Show2>,"), "{after:?}");
    // Without any operation, there are types all the same.
    let mut none = document();
    none["paths"] = json!({});
    let modules = Builder::new().with_generator(Generator::new().with_schema("Pet")).api("zoo", api(&none), Vec::new());
    let source = modules.generate()?.remove(0).generated.source;
    assert!(source.contains("pub struct Pet ") && source.contains("pub struct Owner "), "{source}");
    assert!(!source.contains("DEFINITIONS") && !source.contains("pub struct Event"), "{source}");
    Ok(())
}

#[test]
fn derives_are_left_out_where_a_type_cannot_have_them() -> Result<(), Error> {
    let generator = Generator::new()
        .with_derive("*", "Eq")?
        .with_derive("*", "std::cmp::Ord")?
        .with_derive("Pet", "strum::EnumIs")?;
    let generated = generator.generate(&api(&document()));
    let derives = |name: &str| {
        let at = generated
            .source
            .find(&format!("pub struct {name} "))
            .or_else(|| generated.source.find(&format!("pub enum {name} ")));
        let before = &generated.source[..at.unwrap()];
        let item = before.rsplit("\n\n").next().unwrap();
        item.lines().find(|line| line.starts_with("#[derive")).unwrap_or_default().to_owned()
    };
    assert_eq!(derives("Pet"), "#[derive(::strum::EnumIs)]");
    assert_eq!(derives("Owner"), "#[derive(Eq)]");
    assert_eq!(derives("ShowInput"), "#[derive(Eq, PartialOrd, Ord)]");
    assert_eq!(derives("PetType"), "#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]");
    let mut told: Vec<&str> = generated.diagnostics.iter().map(|told| told.message.as_str()).collect();
    told.sort_unstable();
    assert_eq!(
        told,
        [
            "`Owner` can't derive `Ord`: the field `any` has none",
            "`Owner` can't derive `PartialOrd`: the field `any` has none",
            "`Pet` can't derive `Eq`: the field `weight` has none",
            "`Pet` can't derive `Ord`: the field `weight` has none",
            "`Pet` can't derive `PartialOrd`: the field `owner` has none",
        ]
    );
    // What can't be derived from a field's type of the user's is the user's to know.
    let own = Generator::new().with_type("Owner", "crate::Owner")?.with_derive("Pet*", "PartialOrd")?;
    assert!(source(own).contains("#[derive(PartialOrd)]\npub struct Pet"));
    Ok(())
}

#[test]
fn formats_have_types_with_one_switch() {
    let mut document = document();
    for (at, format) in ["date-time", "date", "uuid", "uri"].iter().enumerate() {
        document["components"]["schemas"]["Owner"]["properties"][format!("f{at}")] =
            json!({ "type": "string", "format": format });
    }
    let source = Generator::new().with_typed_formats().generate(&api(&document)).source;
    for name in ["DateTime", "Date", "Uuid", "Url"] {
        assert!(source.contains(&format!("Option<ops::formats::{name}>,")), "{source}");
    }
}

#[test]
fn defaults_that_are_not_written_as_code_are_not_called_wrong() {
    let mut document = document();
    let date = json!({ "type": "string", "format": "date" });
    let with = |mut schema: Value, default: Value| {
        schema["default"] = default;
        schema
    };
    let days = json!({ "type": "array", "items": date });
    let span = json!({ "type": "object", "required": ["from"], "properties": { "from": date, "days": { "type": "integer" } } });
    let day = || json!("2024-02-29");
    document["components"]["schemas"]["Owner"]["properties"] = json!({
        "day": with(date.clone(), day()),
        "days": with(days.clone(), json!([day()])),
        "span": with(span.clone(), json!({ "from": day(), "days": 2 })),
        "spans": with(json!({ "type": "object", "additionalProperties": span.clone() }), json!({ "a": { "from": day() } })),
        "number": with(date.clone(), json!(29)),
        "numbers": with(days, json!([day(), 29])),
        "crooked": with(span, json!({ "from": day(), "days": "2" })),
    });
    let told = Generator::new().with_typed_formats().generate(&api(&document)).diagnostics;
    let told: Vec<(&str, bool, bool)> = told
        .iter()
        .filter(|told| told.message.starts_with("the default"))
        .map(|told| {
            let field = told.pointer.rsplit('/').next().unwrap();
            let is_wrong = told.message.ends_with("does not fit the type");
            (field, told.severity == Severity::Note, is_wrong)
        })
        .collect();
    let (unwritten, wrong) = ((true, false), (false, true));
    let expected = [
        ("day", unwritten),
        ("days", unwritten),
        ("span", unwritten),
        ("spans", unwritten),
        ("number", wrong),
        ("numbers", wrong),
        ("crooked", wrong),
    ];
    assert_eq!(told, expected.map(|(field, (is_note, is_wrong))| (field, is_note, is_wrong)));
}

#[test]
fn a_missing_method_of_a_server_is_an_error_unless_it_is_partial() {
    let methods = |source: &str| -> Vec<(String, bool)> {
        let file = syn::parse_file(source).unwrap();
        let servers = file.items.into_iter().filter_map(|item| match item {
            syn::Item::Trait(item) if item.ident == "Server" => Some(item),
            _ => None,
        });
        let methods = servers.flat_map(|server| server.items).filter_map(|item| match item {
            syn::TraitItem::Fn(method) => Some((method.sig.ident.to_string(), method.default.is_some())),
            _ => None,
        });
        methods.collect()
    };
    let new = Generator::new;
    assert_eq!(methods(&source(new())), []);
    assert_eq!(methods(&source(new().with_server())), [("show".to_owned(), false)]);
    assert_eq!(methods(&source(new().with_partial_server())), [("show".to_owned(), true)]);
    // Without the methods of callers, too; and of no operations there is nothing to serve.
    assert_eq!(methods(&source(new().without_methods().with_server())).len(), 1);
    let mut empty = document();
    empty["paths"] = json!({});
    assert!(!new().with_server().generate(&api(&empty)).source.contains("Server"));
}

#[test]
fn a_server_is_that_of_one_document() {
    let builder = Builder::new().with_generator(Generator::new().with_schema("Event"));
    let builder = builder.api("zoo", api(&document()), Vec::new()).with_partial_server().with_server();
    let modules = builder.api("more", api(&document()), Vec::new()).generate().unwrap();
    let has: Vec<bool> = modules.iter().map(|module| module.generated.source.contains("pub trait Server")).collect();
    assert_eq!(has, [true, false]);
    // A server makes what only responses hold.
    let new = "impl super::Pet {\n        /// Sets what is required";
    let made: Vec<bool> = modules.iter().map(|module| module.generated.source.contains(new)).collect();
    assert_eq!(made, [true, false]);
}

#[test]
fn a_retry_policy_that_a_build_script_sets() -> Result<(), Error> {
    let mut api = api(&document());
    let policy = RetryPolicy::new(5).with_code("BUSY").with_deadline(std::time::Duration::from_secs(60));
    api.operations[0].set_retry(Some(policy));
    let id = api.operations[0].id.clone();
    let modules = Builder::new().api("zoo", api, Vec::new()).generate()?;
    let source = &modules[0].generated.source;
    let spec = source.split(&format!("\"{id}\")")).nth(1).unwrap();
    let wanted = "ops::RetryPolicy::new(5).with_backoff(::std::time::Duration::from_millis(1000), \
                  ::std::time::Duration::from_millis(300000)).with_factor(2).with_codes(&[\"BUSY\"])\
                  .with_deadline(::std::time::Duration::from_millis(60000))";
    // However it is laid out.
    let flat = |text: &str| text.split_whitespace().collect::<String>().replace(",)", ")");
    let at = flat(spec).find(&format!(".with_retry(const{{&{}}})", flat(wanted)));
    assert!(at.is_some(), "{spec}");
    assert_eq!(source.matches("RetryPolicy").count(), 1);
    Ok(())
}
