//! An HTTP API as tools, by its document and no code.

use axum::extract::Path;
use axum::http::{StatusCode, Uri};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{HttpBinding, HttpBody};
use ops_runtime::mcp::McpServer;
use ops_runtime::openapi::from_openapi;
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{HttpConfig, Registry};
use serde_json::{Value, json};

use crate::client::{Client, REVISIONS};
use crate::tools::names;

const DOCUMENT: &str = r##"{
    "openapi": "3.1.0",
    "info": { "title": "Shop", "version": "1" },
    "paths": {
        "/pets": {
            "get": {
                "operationId": "listPets",
                "summary": "Lists pets",
                "parameters": [{ "name": "limit", "in": "query", "schema": { "type": "integer" } }],
                "responses": { "200": { "description": "", "content": { "application/json": {
                    "schema": { "type": "array", "items": { "$ref": "#/components/schemas/Pet" } }
                } } } }
            }
        },
        "/pets/{petId}": {
            "get": {
                "operationId": "showPet",
                "parameters": [{ "name": "petId", "in": "path", "required": true, "schema": { "type": "integer" } }],
                "responses": {
                    "200": { "description": "", "content": { "application/json": {
                        "schema": { "$ref": "#/components/schemas/Pet" }
                    } } },
                    "404": { "description": "none", "content": { "application/json": { "schema": { "type": "object" } } } }
                }
            },
            "put": {
                "operationId": "replacePet",
                "parameters": [{ "name": "petId", "in": "path", "required": true, "schema": { "type": "integer" } }],
                "responses": { "204": { "description": "" } }
            }
        }
    },
    "components": { "schemas": { "Pet": {
        "type": "object",
        "properties": { "id": { "type": "integer" }, "name": { "type": "string" } },
        "required": ["id", "name"]
    } } }
}"##;

fn pet(id: i64) -> Value {
    json!({ "id": id, "name": "Tom" })
}

async fn list(uri: Uri) -> Json<Value> {
    let limit = uri.query().and_then(|query| query.strip_prefix("limit=")?.parse().ok()).unwrap_or(3);
    Json((1..=limit).map(pet).collect())
}

async fn show(Path(id): Path<i64>) -> impl IntoResponse {
    if id < 10 {
        (StatusCode::OK, Json(pet(id)))
    } else {
        (StatusCode::NOT_FOUND, Json(json!({ "why": "no such pet" })))
    }
}

#[tokio::test]
async fn a_document_is_a_server() {
    let app =
        Router::new().route("/pets", get(list)).route("/pets/{id}", get(show).put(|| async { StatusCode::NO_CONTENT }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });

    let registry = Registry::new();
    let config = HttpConfig::new().with_namespace("shop").with_base_url(&url);
    registry.register_all(from_openapi(DOCUMENT, config).unwrap()).unwrap();
    for revision in REVISIONS {
        let mut client = Client::connect(McpServer::new(registry.clone()), revision).await;
        assert_eq!(names(&mut client).await, ["shop_listPets", "shop_replacePet", "shop_showPet"]);
        let tools = client.request("tools/list", json!({})).await["result"]["tools"].clone();
        assert_eq!(tools[0]["annotations"], json!({ "readOnlyHint": true }));
        assert_eq!(tools[1]["annotations"], json!({ "readOnlyHint": false, "idempotentHint": true }));
        assert_eq!(tools[2]["outputSchema"]["properties"]["name"]["type"], "string");
        let pets = client.call("shop_listPets", json!({ "limit": 2 })).await;
        assert_eq!(pets["content"][0]["text"], json!([pet(1), pet(2)]).to_string());
        assert_eq!(client.call("shop_showPet", json!({ "petId": 7 })).await["structuredContent"], pet(7));
        let error = client.call("shop_showPet", json!({ "petId": 70 })).await["_meta"]["ops/error"].clone();
        let details = json!({ "statusCode": 404, "body": { "why": "no such pet" } });
        assert_eq!(error, json!({ "code": "EXECUTION_ERROR", "message": "HTTP 404: Not Found", "details": details }));
    }
}

/// The schema is all that a client knows of a tool, not that a part of it is the body of a request.
#[tokio::test]
async fn a_tool_requires_nothing_that_only_the_server_sets() {
    let pet = |required: Value| {
        let properties = json!({ "id": { "type": "integer", "readOnly": true }, "name": { "type": "string" } });
        let pet = json!({ "type": "object", "required": required, "properties": properties });
        let body = json!({ "$ref": "#/$defs/Pet" });
        json!({ "type": "object", "required": ["body"], "properties": { "body": body }, "$defs": { "Pet": pet } })
    };
    let echo = || Handler::dynamic(|input, _| async move { Ok(input) });
    let http = HttpBinding::new("POST", "/pets").with_bodies(const { &[HttpBody::new("application/json")] });
    let spec = OperationSpec::mutation("shop.add").with_input(Schema::from(pet(json!(["id", "name"])))).with_http(http);
    let registry = Registry::new();
    registry.register(Registration::new(spec, echo())).unwrap();
    let (input, wrong) = (json!({ "body": { "name": "Tom" } }), json!({ "body": {} }));
    for revision in REVISIONS {
        let mut client = Client::connect(McpServer::new(registry.clone()), revision).await;
        let tool = client.request("tools/list", json!({})).await["result"]["tools"][0].clone();
        assert_eq!(tool["inputSchema"], pet(json!(["name"])));
        assert_eq!(client.call("shop_add", input.clone()).await["structuredContent"], input);
        assert_eq!(client.call("shop_add", wrong.clone()).await["isError"], true);
        // A client checks by what is listed.
        let far = Registry::new();
        let spec = OperationSpec::mutation("far.add").with_input(Schema::from(tool["inputSchema"].clone()));
        far.register(Registration::new(spec, echo())).unwrap();
        assert_eq!(far.call("far.add", input.clone()).await.unwrap().data, input);
        far.call("far.add", wrong.clone()).await.unwrap_err();
    }
}
