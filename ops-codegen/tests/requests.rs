//! The types of requests: where a caller can say `null`, and what is no property of a request.
#![allow(clippy::unwrap_used)]

#[path = "../../tests/src/corpus/document.rs"]
#[allow(unreachable_pub, reason = "it is public in the library of the tests")]
mod document;
#[path = "../../tests/src/corpus/known.rs"]
#[allow(dead_code, unreachable_pub, reason = "the other tests need more of it")]
mod known;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ops_codegen::{Builder, Generator};
use ops_runtime::binding::{Binding, McpBinding, McpOutput};
use ops_runtime::openapi::FileSource;
use ops_runtime::openapi::{ReadOptions, load, parse, read};
use ops_runtime::spec::{Api, Definitions, OperationSpec};
use serde_json::{Value, json};
use syn::{GenericArgument, Item, PathArguments, Type};

/// A body with a property that may be `null`, for an operation of some method and content type.
fn document(method: &str, content_type: &str) -> Value {
    let text = json!({ "type": ["string", "null"] });
    let body =
        json!({ "type": "object", "properties": { "note": text, "inner": { "$ref": "#/components/schemas/Inner" } } });
    let parameter = json!({ "name": "page", "in": "query", "schema": text });
    let answer = json!({ "type": "object", "properties": { "said": text } });
    json!({
        "openapi": "3.1.0", "info": { "title": "x", "version": "1" },
        "paths": { "/a": { method: {
            "operationId": "change", "parameters": [parameter],
            "requestBody": { "content": { content_type: { "schema": body } } },
            "responses": { "200": { "description": "x", "content": { "application/json": { "schema": answer } } } },
        } } },
        "components": { "schemas": { "Inner": { "type": "object", "properties": { "deep": text } } } },
    })
}

/// The fields of a module with two places for `null`, by their names.
fn doubled(source: &str) -> Vec<String> {
    let fields = source.lines().filter(|line| line.contains("Option<Option<"));
    fields.filter_map(|line| line.trim().strip_prefix("pub ")?.split(':').next().map(str::to_owned)).collect()
}

#[test]
fn callers_say_null_where_they_may_have_to() {
    for (method, content_type, pattern, expected) in [
        ("post", "application/json", None, &[][..]),
        ("put", "multipart/form-data", None, &[]),
        ("patch", "application/json", None, &["note", "deep"]),
        ("patch", "application/x-www-form-urlencoded", None, &["note", "deep"]),
        ("post", "application/merge-patch+json", None, &["note", "deep"]),
        ("put", "Application/Merge-Patch+JSON; charset=utf-8", None, &["note", "deep"]),
        ("post", "application/json-patch+json", None, &[]),
        ("post", "application/json", Some("api.change"), &["note", "deep"]),
        ("post", "application/json", Some("ch*"), &["note", "deep"]),
        ("post", "application/json", Some("POST /a"), &["note", "deep"]),
        ("post", "application/json", Some("PUT /a"), &[]),
    ] {
        let (api, _) = read(&document(method, content_type), &ReadOptions::new().with_namespace("api")).unwrap();
        let generator = pattern.into_iter().fold(Generator::new(), Generator::with_explicit_null);
        let source = generator.generate(&api).source;
        assert_eq!(doubled(&source), expected, "{method} {content_type} {pattern:?}");
        assert!(source.contains("pub page: Option<String>,") && source.contains("pub said: Option<String>,"));
    }
}

#[test]
fn a_body_says_which_alternative_it_is() {
    let of = |kind: &str| json!({ "schema": { "type": "object", "properties": { "n": { "type": kind } } } });
    for (form, expected) in [("string", Some(1)), ("integer", None)] {
        let content = json!({ "application/json": of("integer"), "application/x-www-form-urlencoded": of(form) });
        let document = json!({
            "openapi": "3.1.0", "info": { "title": "x", "version": "1" },
            "paths": { "/send": { "post": {
                "operationId": "send", "requestBody": { "content": content }, "responses": { "204": { "description": "x" } },
            } } },
        });
        let (api, _) = read(&document, &ReadOptions::new().with_namespace("api")).unwrap();
        let source = Generator::new().generate(&api).source;
        let body = r#"ops::HttpBody::new("application/x-www-form-urlencoded")"#;
        assert!(source.contains(body), "{source}");
        let says = source.contains(&format!("{body}.with_variant(1)"));
        assert_eq!(says.then_some(1), expected, "{source}");
    }
}

/// A server of ours calls the body of a call by id as the function calls its input.
#[test]
fn a_body_keeps_its_name() {
    let weight = json!({ "type": "object", "required": ["grams"], "properties": { "grams": { "type": "integer" } } });
    let body = |name: &str| {
        let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        json!({ "required": true, "content": { "application/json": { "schema": schema } } })
    };
    let done = json!({ "204": { "description": "x" } });
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "x", "version": "1" },
        "paths": {
            "/weigh": { "post": { "operationId": "weigh", "requestBody": body("WeighInput"), "responses": done } },
            "/send": { "post": { "operationId": "send", "requestBody": body("Parcel"), "responses": done } },
        },
        "components": { "schemas": { "WeighInput": weight, "Parcel": weight } },
    });
    let (api, _) = read(&document, &ReadOptions::new().with_namespace("api")).unwrap();
    let generated = Generator::new().generate(&api);
    assert!(generated.diagnostics.is_empty(), "{:?}", generated.diagnostics);
    let structs = generated.source.lines().filter_map(|line| line.strip_prefix("pub struct "));
    let mut structs: Vec<&str> = structs.filter_map(|rest| rest.strip_suffix(" {")).collect();
    structs.sort_unstable();
    assert_eq!(structs, ["Parcel", "SendInput", "WeighInput", "WeighRequest"]);
    assert!(generated.source.contains("pub body: WeighInput,"), "{}", generated.source);
    assert!(generated.source.contains("type Input = WeighRequest;"), "{}", generated.source);
}

#[test]
fn a_pattern_that_asks_for_nothing_is_an_error() {
    let (api, _) = read(&document("post", "application/json"), &ReadOptions::new().with_namespace("api")).unwrap();
    let builder = Builder::new().api("api", api, Vec::new());
    let modules = builder.clone().with_explicit_null("change").generate().unwrap();
    assert_eq!(doubled(&modules[0].generated.source), ["note", "deep"]);
    // The generator may be named before or after.
    let builder = builder.with_explicit_null("change").with_generator(Generator::new().with_explicit_null("gone"));
    let error = builder.generate().unwrap_err().to_string();
    assert!(error.contains("`gone`"), "{error}");
}

#[test]
fn a_tool_takes_what_its_schema_says() {
    let input = json!({
        "type": "object", "required": ["path"],
        "properties": {
            "path": { "type": "string", "readOnly": true },
            "depth": { "type": ["integer", "null"], "default": 3 },
            "filter": { "type": "object", "properties": { "name": { "type": ["string", "null"], "readOnly": true } } },
        },
    });
    let mut tool = OperationSpec::query("files.find").with_input(input.into());
    tool.binding = Binding::Mcp(McpBinding::new("find", McpOutput::Content));
    let api = Api::new(Definitions::EMPTY, vec![tool]);
    let source = Generator::new().generate(&api).source;
    for field in ["pub path: String,", "pub depth: Option<i64>,", "pub name: Option<String>,", "Default: `3`."] {
        assert!(source.contains(field), "{field} in {source}");
    }
    assert!(!source.contains("Only in answers"), "{source}");
    let source = Generator::new().with_explicit_null("find").generate(&api).source;
    assert_eq!(doubled(&source), ["depth", "name"]);
}

/// What the types of a module hold, and what its operations take, by names.
#[derive(Default)]
struct Names {
    aliases: BTreeSet<String>,
    held: BTreeMap<String, Vec<Type>>,
    /// The input of each operation, by the operation's id.
    inputs: BTreeMap<String, String>,
}

impl Names {
    fn of(source: &str) -> Self {
        let mut names = Self::default();
        for item in syn::parse_file(source).unwrap().items {
            match item {
                Item::Struct(item) => {
                    let types = item.fields.into_iter().map(|field| field.ty).collect();
                    names.held.insert(item.ident.to_string(), types);
                }
                Item::Enum(item) => {
                    let types = item.variants.into_iter().flat_map(|variant| variant.fields).map(|field| field.ty);
                    names.held.insert(item.ident.to_string(), types.collect());
                }
                Item::Type(item) => {
                    names.aliases.insert(item.ident.to_string());
                    names.held.insert(item.ident.to_string(), vec![*item.ty]);
                }
                _ => {}
            }
        }
        let mut input = "";
        for line in source.lines() {
            if let Some(type_) = line.strip_prefix("    type Input = ") {
                input = type_.trim_end_matches(';');
            } else if let Some((_, id)) = line.strip_prefix("static ").and_then(|line| line.split_once("(\"")) {
                names.inputs.insert(id.split('"').next().unwrap().to_owned(), input.to_owned());
            }
        }
        names
    }

    /// The type that a name stands for, and what is inside its angle brackets.
    fn resolve<'t>(&'t self, mut type_: &'t Type) -> (String, Vec<&'t Type>) {
        loop {
            let Type::Path(path) = type_ else { return (String::new(), parts(type_)) };
            let last = path.path.segments.last().unwrap();
            let name = last.ident.to_string();
            match self.held.get(&name).and_then(|held| held.first()) {
                Some(target) if path.path.segments.len() == 1 && self.aliases.contains(&name) => type_ = target,
                _ => return (name, parts(type_)),
            }
        }
    }

    /// Whether a type has two places for `null` in one, names looked through.
    fn is_doubled(&self, type_: &Type) -> bool {
        let (name, inside) = self.resolve(type_);
        let nested = inside.iter().any(|inner| self.resolve(inner).0 == "Option");
        name == "Option" && nested || parts(type_).iter().any(|inner| self.is_doubled(inner))
    }

    /// The named types that a name reaches, itself among them.
    fn reached(&self, root: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut open = vec![root.to_owned()];
        while let Some(name) = open.pop() {
            let Some((name, types)) = self.held.get_key_value(&name).filter(|(name, _)| found.insert(name.as_str()))
            else {
                continue;
            };
            assert!(!name.is_empty());
            let mut types: Vec<&Type> = types.iter().collect();
            while let Some(type_) = types.pop() {
                if let Type::Path(path) = type_ {
                    open.push(path.path.segments.last().unwrap().ident.to_string());
                }
                types.extend(parts(type_));
            }
        }
        found
    }
}

/// The types inside a type as it is written.
fn parts(type_: &Type) -> Vec<&Type> {
    match type_ {
        Type::Tuple(tuple) => tuple.elems.iter().collect(),
        Type::Path(path) => match &path.path.segments.last().unwrap().arguments {
            PathArguments::AngleBracketed(inside) => {
                let types = inside.args.iter().filter_map(|inside| match inside {
                    GenericArgument::Type(type_) => Some(type_),
                    _ => None,
                });
                types.collect()
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Whether a caller of the operation may have to say `null`.
fn changes(spec: &OperationSpec) -> bool {
    let Some(http) = spec.http() else { return false };
    let merges = |content_type: &str| content_type.to_ascii_lowercase().starts_with("application/merge-patch+json");
    http.method == "PATCH" || http.bodies.iter().any(|body| merges(&body.content_type))
}

/// The documents of the folder, and one of ours. The largest take a minute in a debug build, so they need `OPS_FULL`.
fn documents() -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/openapi");
    let folder = std::env::var_os("OPS_SPECS").map_or(fixtures, PathBuf::from);
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let ending = |path: &PathBuf| path.extension().is_some_and(|e| e == "json" || e == "yaml" || e == "yml");
    let mut documents: Vec<_> = entries.filter(ending).collect();
    if std::env::var_os("OPS_FULL").is_none() {
        let all = documents.len();
        documents.retain(|path| path.metadata().unwrap().len() < 1 << 21);
        println!("{} large documents are left out: OPS_FULL asks for them", all - documents.len());
    }
    let is_document = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        known::is_known(path) || parse(&text).is_ok_and(|value| document::is_document(&value))
    };
    let (mut documents, others): (Vec<_>, Vec<_>) = documents.into_iter().partition(is_document);
    println!("{} files are no documents: {others:?}", others.len());
    documents.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/requests.json"));
    documents.sort();
    documents
}

/// Outside what changes reach, no type has two places for `null`; and where nothing changes anything, none at all.
#[test]
fn two_places_for_null_are_in_changes_only() {
    // `syn` takes some 60 KB of stack for each type in a type, and a fixture nests them 38 deep.
    let with_room = std::thread::Builder::new().stack_size(16 << 20).spawn(check_places_for_null);
    with_room.unwrap().join().unwrap();
}

fn check_places_for_null() {
    let (mut modules, mut fields, mut doubles, mut operations) = (0, 0, 0, 0);
    for document in documents() {
        let name = document.file_name().unwrap().to_string_lossy().into_owned();
        let (api, _) = load(&document.display().to_string(), &FileSource::new(), &ReadOptions::new())
            .unwrap_or_else(|error| panic!("{}: {error}", document.display()));
        let source = Generator::new().generate(&api).source;
        let names = Names::of(&source);
        let changing: Vec<&OperationSpec> = api.operations.iter().filter(|spec| changes(spec)).collect();
        let inputs = changing.iter().filter_map(|spec| names.inputs.get(spec.id.as_ref()));
        let reached: BTreeSet<&str> = inputs.flat_map(|input| names.reached(input)).collect();
        for (owner, types) in &names.held {
            let found = types.iter().filter(|type_| names.is_doubled(type_)).count();
            assert!(found == 0 || reached.contains(owner.as_str()), "{owner} of {name} is in no change");
            doubles += found;
            fields += types.len();
        }
        // The same without these operations: nothing is left for which a caller could have to say `null`.
        let others = api.operations.len() - changing.len();
        let (source, names) = if changing.is_empty() {
            (source, names)
        } else {
            let mut rest = api.clone();
            rest.operations.retain(|spec| !changes(spec));
            let source = Generator::new().generate(&rest).source;
            let names = Names::of(&source);
            (source, names)
        };
        assert!(!source.contains("Option<Option<"), "{name}");
        let found = names.held.iter().find(|(_, types)| types.iter().any(|type_| names.is_doubled(type_)));
        assert_eq!(found.map(|(owner, _)| owner), None, "{name}");
        modules += 1;
        operations += others;
    }
    println!(
        "{modules} modules: {doubles} of {fields} fields have two places for null, all in what changes reach; \
         none of {operations} other operations has any"
    );
    // Our own document has fields and operations of both kinds.
    assert!(modules > 0 && doubles > 0 && operations > 0);
}

#[test]
fn what_a_request_may_hold_has_a_place_in_its_type() {
    let model = json!({ "anyOf": [{ "type": "string" }, { "type": "string", "enum": ["only"] }] });
    let mut document = document("post", "application/json");
    let body = json!({
        "type": "object", "required": ["model", "undescribed", "model", "undescribed"], "properties": { "model": model },
    });
    document["paths"]["/a"]["post"]["requestBody"]["content"]["application/json"]["schema"] = body;
    let (api, _) = read(&document, &ReadOptions::new().with_namespace("api")).unwrap();
    let source = Generator::new().generate(&api).source;
    // One text that is named says nothing about the others.
    assert!(source.contains("pub model: String,"), "{source}");
    // What is required and not described can be sent.
    assert_eq!(source.matches("pub undescribed: Option<ops::Value>,").count(), 1, "{source}");
}
