//! Swagger 2.0.
#![cfg(feature = "openapi")]

use std::path::Path;

use ops_runtime::binding::{HttpBinding, ParameterLocation, ParameterStyle, SecurityKind};
use ops_runtime::openapi::FileSource;
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::{Api, Diagnostic, OperationSpec};
use serde_json::{Value, json};

fn load() -> (Api, Vec<Diagnostic>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/openapi/swagger.yaml");
    openapi::load(&path.to_string_lossy(), &FileSource::new(), &ReadOptions::new()).unwrap()
}

fn operation<'a>(api: &'a Api, name: &str) -> (&'a OperationSpec, &'a HttpBinding, Value) {
    let operation = api.operations.iter().find(|operation| operation.name() == name).unwrap();
    (operation, operation.http().unwrap(), operation.input.to_value().unwrap().into_owned())
}

#[test]
fn everything_is_read() {
    let (api, diagnostics) = load();
    let names: Vec<_> = api.operations.iter().map(OperationSpec::name).collect();
    assert_eq!(names, ["listPets", "addPet", "showPet", "renamePet", "uploadPhoto", "exportPets"]);
    let told: Vec<_> = diagnostics.iter().map(|d| (d.message.as_str(), d.position.map(|at| at.0))).collect();
    assert_eq!(told, [("`tsv` is not a way to write such a list", Some(38))]);
    let schema = |name: &str| api.definitions.get(name).unwrap().schema.to_value().unwrap().into_owned();
    assert_eq!(
        schema("Pet_base"),
        json!({
            "type": "object",
            "required": ["kind"],
            "properties": {
                "kind": { "type": "string" },
                "name": { "type": ["string", "null"] },
                "mother": { "$ref": "#/$defs/Pet" },
            },
        })
    );
    assert_eq!(schema("Cat")["allOf"][0], json!({ "$ref": "#/$defs/Pet_base" }));
    assert_eq!(schema("Pet")["oneOf"], json!([{ "$ref": "#/$defs/Cat" }, { "$ref": "#/$defs/Pet_base" }]));
}

#[test]
fn parameters_and_servers() {
    let (api, _) = load();
    let (list, http, input) = operation(&api, "listPets");
    assert_eq!(http.server.as_deref(), Some("https://pets.example.com/v2"));
    assert_eq!(operation(&api, "exportPets").1.server.as_deref(), Some("http://pets.example.com/v2"));
    let row = |p: &ops_runtime::binding::HttpParameter| (p.name.to_string(), p.location, p.style, p.explode);
    use ParameterLocation::{Header, Query};
    use ParameterStyle::{Form, PipeDelimited, Simple, SpaceDelimited};
    let expected = [
        ("limit", Query, Form, true),
        ("tags", Query, Form, true),
        ("ids", Query, Form, false),
        ("words", Query, SpaceDelimited, false),
        ("sizes", Query, PipeDelimited, false),
        ("odd", Query, Form, false),
        ("X-Ids", Header, Simple, false),
    ];
    let expected = expected.map(|(name, location, style, explode)| (name.to_owned(), location, style, explode));
    assert_eq!(http.parameters.iter().map(row).collect::<Vec<_>>(), expected);
    assert_eq!(
        input["properties"]["limit"],
        json!({ "default": 10, "format": "int32", "exclusiveMaximum": 100, "type": "integer", "description": "How many." })
    );
    assert_eq!(input["properties"]["tags"], json!({ "items": { "type": "string" }, "type": "array" }));
    assert_eq!(input.get("required"), None);
    let output = list.output.to_value().unwrap().into_owned();
    assert_eq!(output, json!({ "type": "array", "items": { "$ref": "#/$defs/Pet" } }));
    assert_eq!(list.errors[0].schema.to_value().unwrap().as_ref(), &json!({ "$ref": "#/$defs/Error" }));
    assert_eq!(operation(&api, "showPet").1.parameters[0].name, "id");
}

#[test]
fn bodies_and_answers() {
    let (api, _) = load();
    let types = |http: &HttpBinding| http.bodies.iter().map(|body| body.content_type.to_string()).collect::<Vec<_>>();
    let (add, http, input) = operation(&api, "addPet");
    assert_eq!(types(http), ["application/json", "application/xml"]);
    assert_eq!(input["required"], json!(["body"]));
    assert_eq!(
        input["properties"]["body"],
        json!({ "description": "The pet.", "oneOf": [
            { "title": "Json", "$ref": "#/$defs/Pet" },
            { "title": "Text", "type": "string" },
        ] })
    );
    assert_eq!(http.content_type.as_deref(), Some("contentType"));
    assert_eq!(add.output.to_value().unwrap().as_ref(), &json!({ "type": "null" }));

    let (_, http, input) = operation(&api, "renamePet");
    assert_eq!(types(http), ["application/x-www-form-urlencoded"]);
    assert_eq!(
        input["properties"]["body"],
        json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "description": "The name." },
                "nicknames": { "items": { "type": "string" }, "type": "array" },
            },
            "required": ["name"],
        })
    );
    assert_eq!(http.bodies[0].fields[0].style, Some((ParameterStyle::Form, true)));

    let (_, http, input) = operation(&api, "uploadPhoto");
    assert_eq!(types(http), ["multipart/form-data"]);
    assert_eq!(input["properties"]["body"]["properties"]["photo"], json!({ "type": "string", "format": "binary" }));

    let (export, http, _) = operation(&api, "exportPets");
    assert_eq!(export.output.to_value().unwrap().as_ref(), &json!({ "type": "string", "format": "binary" }));
    assert_eq!(http.responses[0].content_type.as_deref(), Some("application/zip"));
}

#[test]
fn the_content_types_of_a_form_share_its_schema() {
    let document = json!({
        "swagger": "2.0", "info": { "title": "t", "version": "1" },
        "paths": { "/a": { "post": {
            "consumes": ["multipart/form-data", "application/x-www-form-urlencoded"],
            "parameters": [{ "name": "a", "in": "formData", "type": "string" }], "responses": {},
        } } },
    });
    let (api, _) = openapi::read(&document, &ReadOptions::new().with_namespace("api")).unwrap();
    let bodies = &api.operations[0].http().unwrap().bodies;
    assert_eq!(bodies.iter().map(|body| body.variant).collect::<Vec<_>>(), [None, None]);
}

#[test]
fn security() {
    let (api, _) = load();
    let kinds = |name: &str| {
        let (_, http, _) = operation(&api, name);
        http.security.iter().flat_map(|way| way.schemes.iter()).map(|scheme| scheme.kind.clone()).collect::<Vec<_>>()
    };
    let key = SecurityKind::ApiKey { location: ParameterLocation::Header, name: "X-Key".into() };
    assert_eq!(kinds("listPets"), [key]);
    assert_eq!(kinds("showPet"), []);
    let token_url = Some("https://id.example.com/token".into());
    assert_eq!(kinds("addPet"), [SecurityKind::Basic, SecurityKind::OAuth2 { token_url }]);
}

#[test]
fn without_schemes_it_is_that_of_the_document() {
    let server = |location: &str, schemes: &str| {
        let text = format!(
            r#"{{ "swagger": "2.0", "host": "api.example.com", "basePath": "/v1", {schemes} "paths": {{ "/a": {{ "get": {{}} }} }} }}"#
        );
        let source = std::collections::BTreeMap::from([(location.to_owned(), text)]);
        let (api, _) = openapi::load(location, &source, &ReadOptions::new()).unwrap();
        api.operations[0].http().unwrap().server.as_deref().unwrap().to_owned()
    };
    let (plain, secure) = ("http://api.example.com/v1", "https://api.example.com/v1");
    assert_eq!(server("http://docs.example.com/api.json", ""), plain);
    assert_eq!(server("http://docs.example.com/api.json", r#""schemes": [],"#), plain);
    assert_eq!(server("https://docs.example.com/api.json", ""), secure);
    assert_eq!(server("api.json", ""), secure);
    assert_eq!(server("http://docs.example.com/api.json", r#""schemes": ["https"],"#), secure);
    assert_eq!(server("https://docs.example.com/api.json", r#""schemes": ["http"],"#), plain);
}

#[test]
fn a_header_with_credentials_is_told_with_what_sets_it() {
    let header = serde_json::json!({ "name": "Authorization", "in": "header", "type": "string" });
    let document = json!({ "swagger": "2.0", "paths": { "/a": { "get": { "parameters": [header] } } } });
    let (api, diagnostics) = openapi::read(&document, &ReadOptions::new()).unwrap();
    assert!(api.operations[0].http().unwrap().parameters.is_empty());
    let told = diagnostics.iter().find(|told| told.message.contains("header")).unwrap();
    assert_eq!(told.message, "the header `authorization` is not a parameter");
    assert_eq!(told.help.as_deref(), Some("`with_auth` of the client sets it"));
}

#[test]
fn parts_in_other_files() {
    let api = r#"{ "swagger": "2.0", "info": { "version": "1" }, "consumes": ["application/json"], "paths": {
        "/a": { "$ref": "parts.yaml#/a" }
    } }"#;
    let parts = "a:\n  post:\n    operationId: a\n    parameters:\n      - {$ref: '#/body'}\n    responses:\n      200: {schema: {$ref: '#/definitions/Pet'}}\nbody: {in: body, name: pet, schema: {$ref: '#/definitions/Pet'}}\ndefinitions:\n  Pet: {type: object}\n";
    let source = std::collections::BTreeMap::from([
        ("api.json".to_owned(), api.to_owned()),
        ("parts.yaml".to_owned(), parts.to_owned()),
    ]);
    let (api, diagnostics) = openapi::load("api.json", &source, &ReadOptions::new()).unwrap();
    assert_eq!(diagnostics, []);
    let (a, http, input) = operation(&api, "a");
    let pet = json!({ "$ref": "#/$defs/Pet" });
    assert_eq!((&input["properties"]["body"], a.output.to_value().unwrap().as_ref()), (&pet, &pet));
    assert_eq!(http.bodies[0].content_type, "application/json");
}

#[test]
fn what_is_left_out_is_told() {
    let list = |items: Value| json!({ "name": "a", "in": "query", "type": "array", "items": items });
    let document = json!({
        "swagger": "2.0", "info": { "title": "x", "version": "1" },
        "paths": { "/a": { "post": {
            "operationId": "a", "produces": ["json", "text/csv"],
            "parameters": [
                list(json!({ "type": "array", "items": { "type": "integer" }, "collectionFormat": "pipes" })),
                { "name": "kind", "in": "query", "type": "string", "enum": [1, 2], "x-enum-varnames": ["One", "Two"] },
                { "name": "pet", "in": "body", "schema": {} },
                { "name": "photo", "in": "formData", "type": "file" },
            ],
            "responses": { "200": { "description": "It", "schema": {} } },
        } } },
    });
    let (api, diagnostics) = openapi::read(&document, &ReadOptions::new().with_namespace("x")).unwrap();
    let told: Vec<_> = diagnostics.iter().map(|told| (told.message.as_str(), told.pointer.as_str())).collect();
    let at = |rest: &str| format!("/paths/~1a/post/{rest}");
    let expected = [
        ("a field of a form stands beside a body", at("parameters/3")),
        ("`json` is not a content type", at("produces/0")),
        ("a list of lists has no way of its own to be written", at("parameters/0")),
        ("`enum` of a string holds other values than text", at("parameters/1/enum")),
    ];
    assert_eq!(told, expected.each_ref().map(|(message, at)| (*message, at.as_str())));
    let input = api.operations[0].input.to_value().unwrap();
    let kind = json!({ "type": "string", "enum": ["1", "2"], "x-enum-varnames": ["One", "Two"] });
    assert_eq!(input["properties"]["kind"], kind);
}

#[test]
fn a_file_is_no_json() {
    let document = serde_json::json!({
        "swagger": "2.0", "info": { "title": "x", "version": "1" },
        "paths": { "/report": { "get": {
            "operationId": "report", "produces": ["application/json", "application/pdf"],
            "responses": { "200": { "description": "It", "schema": { "type": "file" } } }
        } } }
    });
    let (api, _) = ops_runtime::openapi::read(&document, &ReadOptions::new().with_namespace("x")).unwrap();
    let kinds: Vec<_> =
        api.operations[0].http().unwrap().responses.iter().map(|response| response.content_type.as_deref()).collect();
    assert_eq!(kinds, [Some("application/pdf")]);
}

#[test]
fn what_is_of_openapi_3_is_read_as_it_is_meant() {
    let content = |kind: &str| json!({ "application/json": { "schema": { "type": kind } } });
    let paths = json!({
        "pets": { "post": {
            "operationId": "add",
            "requestBody": { "required": true, "content": content("object") },
            "responses": { "200": { "description": "", "content": content("string") } },
        } },
        "/pets": { "put": {
            "operationId": "put",
            "parameters": [
                { "name": "pet", "in": "body", "schema": { "type": "integer" } },
                { "name": "size", "in": "query", "required": true, "type": "object", "properties": { "max": { "type": "integer" } } },
            ],
            "requestBody": { "content": content("object") },
            "responses": { "200": { "description": "", "schema": { "type": "boolean" }, "content": content("string") } },
        } },
    });
    let document = json!({ "swagger": "2.0", "info": { "title": "a", "version": "1" }, "paths": paths });
    let (api, diagnostics) = openapi::read(&document, &ReadOptions::new().with_namespace("a")).unwrap();
    let told: Vec<_> = diagnostics.iter().map(|d| (d.pointer.as_str(), d.message.as_str())).collect();
    let add = "/paths/pets/post";
    let (body, answer) = (format!("{add}/requestBody"), format!("{add}/responses/200/content"));
    let expected = [
        ("/paths/pets", "the path `pets` does not begin with `/`"),
        (body.as_str(), "`requestBody` is of OpenAPI 3"),
        (answer.as_str(), "`content` is of OpenAPI 3"),
        ("/paths/~1pets/put/parameters/1/properties", "`properties` is of OpenAPI 3"),
    ];
    assert_eq!(told, expected);
    let (spec, http, input) = operation(&api, "add");
    assert_eq!((http.path.as_ref(), http.bodies.len()), ("/pets", 1));
    assert_eq!(input["properties"]["body"], json!({ "type": "object" }));
    assert_eq!(*spec.output.to_value().unwrap(), json!({ "type": "string" }));
    // What 2.0 itself says counts.
    let (spec, _, input) = operation(&api, "put");
    assert_eq!(input["properties"]["body"]["type"], "integer");
    let size = json!({ "type": "object", "properties": { "max": { "type": "integer" } } });
    assert_eq!((&input["properties"]["size"], &input["required"]), (&size, &json!(["size"])));
    assert_eq!(*spec.output.to_value().unwrap(), json!({ "type": "boolean" }));
}
