//! Changes of documents, in a few words, and which of them break.

mod bodies;
mod fields;
mod local;
mod names;
mod schemas;

use serde_json::{Value, json};

use super::{Change, changes};
use crate::documents::openapi::{ReadOptions, read};
use crate::{Api, Binding, Definitions, HttpBinding, HttpBody, HttpParameter, OperationKind, OperationSpec, Schema};

fn api(document: &Value) -> Api {
    read(document, &ReadOptions::new().with_namespace("shop")).unwrap().0
}

/// A shop, whose parts are changed at pointers.
fn shop(steps: &[(&str, Value)]) -> Api {
    let json = |schema: Value| json!({ "application/json": { "schema": schema } });
    let pet = json!({ "$ref": "#/components/schemas/Pet" });
    let mut document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Shop", "version": "1" },
        "servers": [{ "url": "https://shop.example.com" }],
        "paths": {
            "/pets": {
                "get": {
                    "operationId": "list",
                    "parameters": [
                        { "name": "limit", "in": "query", "schema": { "type": "integer" } },
                        { "name": "tags", "in": "query", "schema": { "type": "array", "items": { "type": "string" } } },
                    ],
                    "responses": {
                        "200": { "description": "", "content": json(json!({ "type": "array", "items": pet })) },
                        "404": { "description": "None", "content": json(json!({ "$ref": "#/components/schemas/Fault" })) },
                    },
                },
                "post": {
                    "operationId": "add",
                    "requestBody": { "content": json(pet.clone()) },
                    "responses": { "201": { "description": "", "content": json(pet.clone()) }, "202": { "description": "" } },
                },
            },
            "/pets/{id}": {
                "get": {
                    "operationId": "show",
                    "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } }],
                    "responses": { "200": { "description": "", "content": json(pet) } },
                },
            },
        },
        "components": {
            "securitySchemes": {
                "key": { "type": "apiKey", "in": "header", "name": "X-Key" },
                "token": { "type": "http", "scheme": "bearer" },
            },
            "schemas": {
                "Named": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } },
                "Pet": {
                    "allOf": [{ "$ref": "#/components/schemas/Named" }],
                    "type": "object",
                    "required": ["price"],
                    "properties": {
                        "id": { "type": "integer", "readOnly": true },
                        "price": { "type": "number" },
                        "status": { "type": "string", "enum": ["here", "sold"] },
                        "parent": { "$ref": "#/components/schemas/Pet" },
                    },
                },
                "Fault": { "type": "object", "required": ["code"], "properties": { "code": { "type": "string" } } },
            },
        },
    });
    for (pointer, value) in steps {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        match document.pointer_mut(parent).unwrap() {
            Value::Array(items) => items.push(value.clone()),
            node if value.is_null() => drop(node.as_object_mut().unwrap().shift_remove(&name.replace("~1", "/"))),
            node => node[name.replace("~1", "/")] = value.clone(),
        }
    }
    api(&document)
}

const PET: &str = "/components/schemas/Pet";
const LIST: &str = "/paths/~1pets/get";
const ADD: &str = "/paths/~1pets/post";
const SHOW: &str = "/paths/~1pets~1{id}/get";

#[track_caller]
fn check(steps: &[(&str, Value)], expected: &[&str]) {
    let (old, new) = (shop(&[]), shop(steps));
    let told: Vec<String> = changes(&old, &new).iter().map(ToString::to_string).collect();
    assert_eq!(told, expected, "{steps:?}");
}

#[track_caller]
fn one(at: &str, inside: &str, value: Value, expected: &[&str]) {
    check(&[(&format!("{at}{inside}"), value)], expected);
}

#[test]
fn definitions_change_in_both_directions() {
    check(&[], &[]);
    let all = "response of `shop.list`, `shop.add`, `shop.show`: `Pet`";
    one(
        PET,
        "/required",
        json!([]),
        &[
            "change: request of `shop.add`: `Pet` /properties/price: it is not required any more",
            &format!("breaking: {all} /properties/price: it may be absent now"),
        ],
    );
    one(
        PET,
        "/required",
        json!(["price", "status"]),
        &[
            "breaking: request of `shop.add`: `Pet` /properties/status: it is required now",
            &format!("change: {all} /properties/status: it is always there now"),
        ],
    );
    // An enum of types keeps unknown values.
    one(
        PET,
        "/properties/status/enum",
        json!(["here", "gone"]),
        &[
            "breaking: request of `shop.add`: `Pet` /properties/status: the value \"sold\" is not taken any more",
            "change: request of `shop.add`: `Pet` /properties/status: the value \"gone\" is taken now",
            &format!("change: {all} /properties/status: the value \"gone\" can come now"),
            &format!("change: {all} /properties/status: the value \"sold\" does not come any more"),
        ],
    );
    // What is only read is in no request; what others inherit changes in them.
    one(
        PET,
        "/properties/id/type",
        json!("string"),
        &[&format!("breaking: {all} /properties/id: it was integer and is string now")],
    );
    // What a property refers to may say that it is only read, and may be null.
    let made = json!({ "anyOf": [{ "$ref": "#/components/schemas/When" }, { "type": "null" }] });
    let when = json!({ "type": "string", "readOnly": true });
    let new = shop(&[("/components/schemas/When", when), ("/components/schemas/Pet/properties/made", made)]);
    let told: Vec<String> = changes(&shop(&[]), &new).iter().map(ToString::to_string).collect();
    let are_of_responses = told.iter().all(|change| change.contains("response of"));
    assert!(are_of_responses && !told.is_empty(), "{told:?}");
    one(
        "/components/schemas/Named",
        "/properties/name/type",
        json!(["string", "null"]),
        &[
            "change: request of `shop.add`: `Pet` /properties/name: null is taken now",
            &format!("breaking: {all} /properties/name: null can come now"),
        ],
    );
    one(
        "/components/schemas/Fault",
        "/required",
        json!([]),
        &["breaking: response of `shop.list`: `Fault` /properties/code: it may be absent now"],
    );
}

#[test]
fn requests() {
    let limit = &format!("{LIST}/parameters/0");
    one(
        limit,
        "/required",
        json!(true),
        &["breaking: request of `shop.list`: query parameter `limit`: it is required now"],
    );
    one(
        limit,
        "/in",
        json!("header"),
        &["breaking: request of `shop.list`: query parameter `limit`: it is a header parameter now"],
    );
    one(
        limit,
        "/schema",
        json!({ "type": "integer", "maximum": 9 }),
        &["breaking: request of `shop.list`: query parameter `limit`: `maximum` is 9 now"],
    );
    // A number is written alike, a list is not.
    one(limit, "/explode", json!(false), &[]);
    for schema in [json!({ "$ref": "#/components/schemas/Sort" }), json!({ "type": ["string", "null"] })] {
        let sort = json!({ "type": "string", "enum": ["price", "name"] });
        let with = |explode: bool| {
            shop(&[
                ("/components/schemas/Sort", sort.clone()),
                (&format!("{limit}/schema"), schema.clone()),
                (&format!("{limit}/explode"), json!(explode)),
            ])
        };
        assert_eq!(changes(&with(true), &with(false)), [], "{schema}");
    }
    one(
        &format!("{LIST}/parameters/1"),
        "/explode",
        json!(false),
        &["breaking: request of `shop.list`: query parameter `tags`: it is written in another style now"],
    );
    one(
        &format!("{LIST}/parameters"),
        "/-",
        json!({ "name": "sort", "in": "query", "schema": { "type": "string" } }),
        &["change: request of `shop.list`: query parameter `sort`: the parameter is new"],
    );
    one(
        LIST,
        "/parameters",
        json!([]),
        &[
            "breaking: request of `shop.list`: query parameter `limit`: the parameter is gone",
            "breaking: request of `shop.list`: query parameter `tags`: the parameter is gone",
        ],
    );
    one(ADD, "/requestBody/required", json!(true), &["breaking: request of `shop.add`: body: it is required now"]);
    one(ADD, "/requestBody", Value::Null, &["breaking: request of `shop.add`: body: no body is taken any more"]);
    let form = json!({ "schema": { "$ref": "#/components/schemas/Pet" } });
    one(
        ADD,
        "/requestBody/content/application~1x-www-form-urlencoded",
        form,
        &["change: request of `shop.add`: body: `application/x-www-form-urlencoded` is taken now"],
    );
    let string = json!({ "text/plain": { "schema": { "type": "string" } } });
    one(
        ADD,
        "/requestBody/content",
        string,
        &[
            "breaking: request of `shop.add`: body: `application/json` is not taken any more",
            "change: request of `shop.add`: body: `text/plain` is taken now",
            "breaking: request of `shop.add`: body: it was object and is string now",
        ],
    );
}

#[test]
fn bodies_that_are_the_rest_of_the_input() {
    let of = |input: Value, body: HttpBody| {
        let mut spec = OperationSpec::new(OperationKind::Mutation, "shop", "add").unwrap();
        spec.input = Schema::from(input);
        let mut http = HttpBinding::new("POST", "/pets/{id}");
        http.parameters = vec![HttpParameter::path("id")].into();
        http.bodies = vec![body].into();
        spec.binding = Binding::Http(http);
        Api::new(Definitions::default(), vec![spec])
    };
    let text = json!({ "type": "string" });
    let json = HttpBody::new("application/json");
    let inside = of(
        json!({ "properties": { "id": text, "body": { "properties": { "name": text } } }, "required": ["id"] }),
        json.clone(),
    );
    let rest = |required: Value| {
        of(
            json!({ "properties": { "id": text, "name": text, "age": text }, "required": required }),
            json.clone().with_rest(),
        )
    };
    let told = |old: &Api, new: &Api| changes(old, new).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(told(&rest(json!(["id"])), &rest(json!(["id"]))), Vec::<String>::new());
    assert_eq!(
        told(&rest(json!(["id"])), &rest(json!(["id", "age"]))),
        [
            "breaking: request of `shop.add`: body: it is required now",
            "breaking: request of `shop.add`: body /properties/age: it is required now",
        ]
    );
    assert_eq!(
        told(&inside, &rest(json!(["id"]))),
        [
            "breaking: request of `shop.add`: body: its properties are properties of the input now",
            "change: request of `shop.add`: body /properties/age: the property is new",
        ]
    );
}

#[test]
fn responses() {
    one(
        ADD,
        "/responses/202",
        Value::Null,
        &["breaking: response of `shop.add`: status 202: the status is not given any more"],
    );
    one(
        SHOW,
        "/responses/204",
        json!({ "description": "" }),
        &["breaking: response of `shop.show`: status 204: the status can come now, with another body"],
    );
    one(
        LIST,
        "/responses/404",
        Value::Null,
        &["change: response of `shop.list`: status 404: the error is not described any more"],
    );
    one(
        LIST,
        "/responses/500",
        json!({ "description": "" }),
        &["change: response of `shop.list`: status 500: the error is described now"],
    );
    let content = &format!("{SHOW}/responses/200/content");
    one(content, "/text~1html", json!({}), &["change: response of `shop.show`: status 200: `text/html` is given now"]);
    one(
        &format!("{SHOW}/responses/200"),
        "/content",
        json!({ "text/html": { "schema": { "type": "string" } } }),
        &[
            "breaking: response of `shop.show`: status 200: `application/json` is not given any more",
            "change: response of `shop.show`: status 200: `text/html` is given now",
            "breaking: response of `shop.show`: it was object and is string now",
        ],
    );
}

#[test]
fn a_status_in_a_range_is_a_part_of_it() {
    let with = |status: &str| {
        let pet = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/Pet" } } });
        shop(&[(&format!("{SHOW}/responses"), json!({ status: { "description": "", "content": pet } }))])
    };
    for range in ["default", "2XX"] {
        assert_eq!(changes(&with(range), &with("200")), [], "{range}");
    }
    let told: Vec<String> = changes(&with("201"), &with("200")).iter().map(ToString::to_string).collect();
    assert_eq!(told[0], "breaking: response of `shop.show`: status 201: the status is not given any more");
}

#[test]
fn a_parameter_in_a_path_is_what_stands_at_its_place() {
    let with = |path: &str| {
        let parameter =
            |name: &str| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } });
        let parameters = json!([parameter("from"), parameter("to")]);
        let get =
            json!({ "operationId": "carry", "parameters": parameters, "responses": { "204": { "description": "" } } });
        shop(&[(path, json!({ "get": get }))])
    };
    let new = with("/paths/~1carry~1{to}~1{from}");
    let told: Vec<String> =
        changes(&with("/paths/~1carry~1{from}~1{to}"), &new).iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "breaking: request of `shop.carry`: path parameter `from`: it is called `to` now",
            "breaking: request of `shop.carry`: path parameter `to`: it is called `from` now",
        ]
    );
}

#[test]
fn operations() {
    one(SHOW, "/operationId", json!("get"), &["breaking: `shop.show`: it is called `get` now"]);
    one(SHOW, "/deprecated", json!(true), &["change: `shop.show`: it is deprecated now"]);
    one(
        SHOW,
        "/summary",
        json!("Shows"),
        &["change: `shop.show`: title: it changed", "change: `shop.show`: description: it changed"],
    );
    one("/paths", "/~1pets~1{id}", Value::Null, &["breaking: `shop.show`: the operation is gone"]);
    let answers = json!({ "204": { "description": "" } });
    one(
        "/paths",
        "/~1toys",
        json!({ "get": { "operationId": "toys", "responses": answers } }),
        &["change: `shop.toys`: the operation is new"],
    );
    let renamed = json!({ "get": {
        "operationId": "show",
        "parameters": [{ "name": "petId", "in": "path", "required": true, "schema": { "type": "integer" } }],
        "responses": { "200": { "description": "", "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Pet" } } } } },
    } });
    check(
        &[("/paths/~1pets~1{id}", Value::Null), ("/paths/~1pets~1{petId}", renamed.clone())],
        &["breaking: request of `shop.show`: path parameter `id`: it is called `petId` now"],
    );
    check(
        &[("/paths/~1pets~1{id}", Value::Null), ("/paths/~1animals~1{petId}", renamed)],
        &[
            "breaking: `shop.show`: it is `GET /animals/{petId}` now, not `GET /pets/{id}`",
            "breaking: request of `shop.show`: path parameter `id`: it is called `petId` now",
        ],
    );
    check(
        &[("/servers", json!([{ "url": "https://other.example.com" }]))],
        &["change: `shop.list`, `shop.add`, `shop.show`: server: it is https://other.example.com now"],
    );
}

#[test]
fn security() {
    let key = json!([{ "key": [] }]);
    let told = |old: &Value, new: &Value| -> Vec<String> {
        let with = |ways: &Value| shop(&[(&format!("{SHOW}/security"), ways.clone())]);
        changes(&with(old), &with(new)).iter().map(ToString::to_string).collect()
    };
    let both = json!([{ "key": [], "token": [] }]);
    let either = json!([{ "key": [] }, { "token": [] }]);
    for (old, new, expected) in [
        (
            json!([]),
            key.clone(),
            vec!["breaking: `shop.show`: security: it needs credentials now: `key` (the header `X-Key`)"],
        ),
        (key.clone(), json!([]), vec!["change: `shop.show`: security: it needs no credentials any more"]),
        (
            key.clone(),
            json!([{ "key": [] }, {}]),
            vec!["change: `shop.show`: security: it needs no credentials any more"],
        ),
        (key.clone(), either.clone(), vec!["change: `shop.show`: security: `token` (bearer) suffices now"]),
        (
            either,
            key.clone(),
            vec![
                "breaking: `shop.show`: security: `token` (bearer) does not suffice any more, but `key` (the header `X-Key`)",
            ],
        ),
        (
            key.clone(),
            both.clone(),
            vec![
                "breaking: `shop.show`: security: `key` (the header `X-Key`) does not suffice any more, but \
                 `key` (the header `X-Key`) with `token` (bearer)",
            ],
        ),
        (both, key, vec!["change: `shop.show`: security: `key` (the header `X-Key`) suffices now"]),
    ] {
        assert_eq!(told(&old, &new), expected, "{old} -> {new}");
    }
}

#[test]
fn two_faults_are_two_changes() {
    check(
        &[(&format!("{LIST}/parameters/0/required"), json!(true)), (&format!("{PET}/properties/parent"), Value::Null)],
        &[
            "breaking: request of `shop.list`: query parameter `limit`: it is required now",
            "breaking: request of `shop.add`: `Pet` /properties/parent: the property is gone",
            "change: response of `shop.list`, `shop.add`, `shop.show`: `Pet` /properties/parent: the property is gone",
        ],
    );
}

/// A document of `size` definitions that all refer to each other's unions, and as many operations.
fn hostile(size: usize, leaf: &str) -> Api {
    let all: Vec<Value> = (0..size).map(|at| json!({ "$ref": format!("#/components/schemas/S{at}") })).collect();
    let schema = |at: usize| {
        let next = json!({ "$ref": format!("#/components/schemas/S{}", (at + 1) % size) });
        let few = &all[..size.min(12)];
        let parts = json!([{ "$ref": format!("#/components/schemas/S{}", at / 2) }, { "properties": { format!("p{at}"): {} } }]);
        let own =
            json!({ "next": next, "any": { "anyOf": few }, "leaf": { "type": leaf }, "both": { "allOf": parts } });
        (format!("S{at}"), json!({ "type": "object", "properties": own }))
    };
    let answer =
        |at: usize| json!({ "200": { "description": "", "content": { "application/json": { "schema": all[at] } } } });
    let path = |at: usize| (format!("/p{at}"), json!({ "get": { "responses": answer(at) } }));
    api(&json!({
        "openapi": "3.1.0",
        "info": { "title": "Hostile", "version": "1" },
        "paths": (0..size).map(path).collect::<serde_json::Map<_, _>>(),
        "components": { "schemas": (0..size).map(schema).collect::<serde_json::Map<_, _>>() },
    }))
}

#[test]
fn a_hostile_document_ends() {
    let (old, new) = (hostile(150, "string"), hostile(150, "number"));
    let told: Vec<Change> = changes(&old, &new);
    let leaves: Vec<&Change> = told.iter().filter(|change| change.pointer.ends_with("/properties/leaf")).collect();
    assert!(leaves.len() >= 150, "{}", leaves.len());
    let odd = leaves.iter().find(|change| !change.breaks || change.operations.len() != 150);
    assert_eq!(odd, None);
    assert_eq!(changes(&old, &old), []);
}

#[test]
fn what_documents_say_is_one_harmless_line() {
    let bad = "a\u{1b}[2J\n\u{202e}b";
    let steps = |description: &str| [(format!("{PET}/properties/{bad}"), json!({ "type": description }))];
    let old = shop(&steps("string").each_ref().map(|(at, value)| (at.as_str(), value.clone())));
    let new = shop(&steps("integer").each_ref().map(|(at, value)| (at.as_str(), value.clone())));
    let told = changes(&old, &new);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|change| !change.to_string().contains(char::is_control)), "{told:?}");
}
