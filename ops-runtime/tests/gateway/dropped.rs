//! Servers, services and registries of a gateway work on after the gateway is dropped.

use std::sync::Arc;
use std::time::Duration;

use axum::routing::get;
use axum::{Json, Router};
use ops_runtime::Registry;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::gateway::{Gateway, Tools};
use ops_runtime::http::HttpConfig;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use crate::callers::without_authentication;
use crate::client::{Client, PATIENCE, REVISIONS};
use crate::fixture::{SHOW, Shop, owner};

/// The URL of a document, whose operation is on the same server.
async fn document() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = format!("http://{}", listener.local_addr().unwrap());
    let answers = json!({ "200": { "description": "A pet.", "content": { "application/json": { "schema": {} } } } });
    let document: Value = json!({
        "openapi": "3.1.0",
        "info": { "title": "Shop", "version": "1" },
        "servers": [{ "url": own }],
        "paths": { "/pet": { "get": { "operationId": "showPet", "responses": answers } } },
    });
    let app = Router::new()
        .route("/openapi.json", get(move || async move { Json(document) }))
        .route("/pet", get(|| async { Json(json!({ "name": "Rex" })) }));
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("{own}/openapi.json")
}

/// The gateway owns the registry of the document's operations, so its servers must keep it.
#[tokio::test]
async fn the_operations_of_a_document_are_still_called() {
    let document = document().await;
    let gateway = async || Gateway::builder().with_document(&document, HttpConfig::new()).build().await.unwrap();
    let pet = json!({ "name": "Rex" });
    let server = gateway().await.owned_mcp_server();
    let mut client = Client::connect(server, REVISIONS[0]).await;
    assert_eq!(client.call("shop_showPet", json!({})).await["structuredContent"], pet);
    let mut service = gateway().await.mcp_service();
    let answer = without_authentication(&mut service, "shop_showPet", json!({})).await;
    assert!(answer.contains(r#""structuredContent":{"name":"Rex"}"#), "{answer}");
    #[cfg(feature = "http-server")]
    {
        use axum::body::Body;
        use axum::http::Request;
        use tower_service::Service;

        let mut router = gateway().await.http_server().into_router();
        let request = Request::post("/operations/shop/showPet")
            .header("host", "localhost")
            .header("content-type", "application/json");
        let response = router.call(request.body(Body::from("{}")).unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        let body = axum::body::to_bytes(response.into_body(), 1 << 16).await.unwrap();
        assert_eq!(body, r#"{"name":"Rex"}"#);
    }
    let registry = gateway().await.registry().clone();
    assert_eq!(registry.call("shop.showPet", json!({})).await.unwrap().data, pet);
}

#[tokio::test]
async fn changes_are_still_followed() {
    let shop = Shop::new();
    let gateway = shop.gateway().with_tools(Tools::All).build().await.unwrap();
    let mut client = owner(&gateway).await;
    drop(gateway);
    shop.registry.remove("shop.listPets").unwrap();
    assert_eq!(client.notification().await["method"], "notifications/tools/list_changed");
    let tools = client.request("tools/list", json!({})).await["result"]["tools"].clone();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["books_total", "shop_renamePet", "shop_showPet"]);
}

#[tokio::test]
async fn the_last_server_releases_everything() {
    let held = Arc::new(());
    let registry = Registry::builder().with_state(held.clone()).build();
    let show = Handler::dynamic(|_, _| async { Ok(json!({ "id": 7, "name": "Rex" })) });
    registry.register(Registration::new(&SHOW, show)).unwrap();
    let gateway = Gateway::builder().with_registry(registry).with_tools(Tools::All).build().await.unwrap();
    let mut client = owner(&gateway).await;
    drop(gateway);
    let shown = client.call("shop_showPet", json!({ "petId": 7 })).await;
    assert_eq!(shown["structuredContent"], json!({ "id": 7, "name": "Rex" }));
    assert_eq!(Arc::strong_count(&held), 2);
    client.close().await.unwrap().unwrap();
    let released = async {
        while Arc::strong_count(&held) > 1 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, released).await.expect("in time");
}
