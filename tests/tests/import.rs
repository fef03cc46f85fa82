//! Documents met at run time: by text, by file, and by URL with the documents that they refer to.

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::IntoResponse;
use axum::routing::get;
use ops_runtime::envelope::ResponseMeta;
use ops_runtime::openapi::{Imported, from_openapi, from_openapi_file, from_openapi_url, from_openapi_value, parse};
use ops_runtime::{HttpConfig, Registry};
use ops_tests::corpus;
use serde_json::json;

const ROOT: &str = r#"
openapi: 3.1.0
info: { title: Pets, version: 1.0.0 }
servers: [{ url: /v1 }]
paths:
  /pets/{id}:
    get:
      operationId: showPet
      parameters: [{ name: id, in: path, required: true, schema: { type: integer } }]
      responses:
        '200':
          description: A pet
          content: { application/json: { schema: { $ref: './schemas/pet.yaml#/Pet' } } }
"#;

const PET: &str = r#"
Pet:
  type: object
  required: [id, kind]
  properties: { id: { type: integer }, kind: { $ref: 'kind.json' } }
"#;

const KIND: &str = r#"{ "type": "string", "default": "cat" }"#;

/// Serves the documents, and the pets that they describe.
async fn serve() -> String {
    let router = Router::new()
        .route("/docs/api.yaml", get(|| async { ROOT }))
        .route("/docs/schemas/pet.yaml", get(|| async { PET }))
        .route("/docs/schemas/kind.json", get(|| async { KIND }))
        .route("/docs/elsewhere.yaml", get(|| async { ROOT.replace("./schemas", "http://127.0.0.2:9/schemas") }))
        .route("/docs/broken.yaml", get(|| async { ROOT.replace("pet.yaml", "none.yaml") }))
        .route("/v1/pets/{id}", get(|| async { ([("content-type", "application/json")], r#"{"id":7,"more":1}"#) }));
    listen(router).await
}

async fn listen(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

#[tokio::test]
async fn a_url_brings_the_documents_that_it_refers_to() {
    let base = serve().await;
    let config = HttpConfig::new().with_namespace("pets");
    let imported = from_openapi_url(&format!("{base}/docs/api.yaml"), config).await.unwrap();
    assert_eq!(imported.diagnostics, []);
    let registry = Registry::new();
    registry.register_all(imported).unwrap();
    // The relative server is below the document's host; the schema is put together from three documents.
    let envelope = registry.call("pets.showPet", json!({ "id": 7 })).await.unwrap();
    assert_eq!(envelope.data, json!({ "id": 7, "kind": "cat" }));
    assert!(matches!(envelope.meta, ResponseMeta::Http(_)));
}

#[tokio::test]
async fn the_user_of_the_url_fetches_what_it_refers_to() {
    let guarded = |text: &'static str| {
        // Of `ann:p@w`.
        let is_ann = |headers: HeaderMap| headers.get("authorization").is_some_and(|own| own == "Basic YW5uOnBAdw==");
        get(move |headers: HeaderMap| async move {
            if is_ann(headers) { text.into_response() } else { StatusCode::UNAUTHORIZED.into_response() }
        })
    };
    let router = Router::new()
        .route("/docs/api.yaml", guarded(ROOT))
        .route("/docs/schemas/pet.yaml", guarded(PET))
        .route("/docs/schemas/kind.json", guarded(KIND));
    let base = listen(router).await.replace("http://", "http://ann:p%40w@");
    let imported = from_openapi_url(&format!("{base}/docs/api.yaml"), HttpConfig::new()).await.unwrap();
    assert_eq!(imported.diagnostics, []);
    assert_eq!(imported.registrations.len(), 1);
}

#[tokio::test]
async fn the_key_in_the_url_of_a_document_is_hidden() {
    const KEY: &str = "S3CRET-1";
    let router = Router::new()
        .route("/docs/api-2026-11-30.yaml", get(|| async { ROOT }))
        .fallback(get(|uri: Uri| async move { (StatusCode::FORBIDDEN, format!("not with {uri}")) }));
    let base = listen(router).await;
    let import = async |path: &str| from_openapi_url(&format!("{base}{path}?token={KEY}"), HttpConfig::new()).await;
    let error = import("/none.yaml").await.err().unwrap();
    assert_eq!(error.details()["body"], "not with /none.yaml?token=***");
    let imported = import("/docs/api-2026-11-30.yaml").await.unwrap();
    let told = format!("{:?}", imported.diagnostics);
    assert!(told.contains("403") && !told.contains(KEY), "{told}");
    let document = format!("{base}/docs/api-2026-11-30.yaml?token=***");
    assert_eq!(imported.diagnostics[0].document, Some(document), "{told}");
}

#[tokio::test]
async fn the_words_in_the_url_of_a_document_stay() {
    let router = Router::new()
        .route("/api.yaml", get(|| async { ROOT.replace("/pets/{id}", "/customers/{id}") }))
        .fallback(get(|uri: Uri| async move { (StatusCode::FORBIDDEN, format!("no customers at {uri}")) }));
    let base = listen(router).await;
    let url = |path: &str| format!("{base}{path}?group=customers&token=S3CRET-1&sig=0123456789abcdef");
    let error = from_openapi_url(&url("/none.yaml"), HttpConfig::new()).await.err().unwrap();
    assert_eq!(error.details()["body"], "no customers at /none.yaml?group=customers&token=***&sig=***");
    let imported = from_openapi_url(&url("/api.yaml"), HttpConfig::new()).await.unwrap();
    let diagnostic = &imported.diagnostics[0];
    let pointer = "/paths/~1customers~1{id}/get/responses/200/content/application~1json/schema";
    assert_eq!(diagnostic.pointer, pointer, "{diagnostic:?}");
    assert_eq!(diagnostic.document, Some(format!("{base}/api.yaml?group=customers&token=***&sig=***")));
}

#[tokio::test]
async fn a_reference_to_another_host_is_not_followed() {
    let base = serve().await;
    let config = HttpConfig::new().with_namespace("pets");
    let imported = from_openapi_url(&format!("{base}/docs/elsewhere.yaml"), config).await.unwrap();
    assert_eq!(imported.registrations.len(), 1, "the operation is there all the same");
    assert!(imported.diagnostics.iter().any(|d| d.message.contains("another host")), "{:?}", imported.diagnostics);
}

#[tokio::test]
async fn a_reference_to_nowhere_costs_what_needs_it() {
    let base = serve().await;
    let config = HttpConfig::new().with_namespace("pets");
    let imported = from_openapi_url(&format!("{base}/docs/broken.yaml"), config).await.unwrap();
    assert!(imported.diagnostics.iter().any(|d| d.message.contains("404")), "{:?}", imported.diagnostics);
    let registry = Registry::new();
    registry.register_all(imported).unwrap();
    let envelope = registry.call("pets.showPet", json!({ "id": 7 })).await.unwrap();
    assert_eq!(envelope.data, json!({ "id": 7, "more": 1 }));
}

#[tokio::test]
async fn what_is_no_document_is_an_error() {
    let base = serve().await;
    let error = from_openapi_url(&format!("{base}/v1/pets/1"), HttpConfig::new()).await.err().unwrap();
    assert!(error.message().contains("openapi"), "{error}");
    assert!(from_openapi_url(&format!("{base}/none"), HttpConfig::new()).await.is_err());
    assert!(from_openapi("{", HttpConfig::new()).is_err());
    assert!(from_openapi_file("no/such/file.yaml", HttpConfig::new()).is_err());
}

#[test]
fn a_file_brings_its_operations() {
    let path = corpus::root().join("examples/quickstart/shop.yaml");
    let imported = from_openapi_file(path.to_str().unwrap(), HttpConfig::new()).unwrap();
    let ids: Vec<_> = imported.registrations.iter().map(|r| r.spec().id.as_ref()).collect();
    assert_eq!(ids, ["shop.showPet", "shop.watchSales"]);
}

#[test]
fn a_value_brings_the_operations_of_its_text() {
    let text = std::fs::read_to_string(corpus::root().join("tests/fixtures/openapi/petshop.yaml")).unwrap();
    let config = || HttpConfig::new().with_namespace("pets");
    let of_text = from_openapi(&text, config()).unwrap();
    let of_value = from_openapi_value(&parse(&text).unwrap(), config()).unwrap();
    let specs = |imported: &Imported| -> Vec<String> {
        imported.registrations.iter().map(|it| serde_json::to_string(it.spec()).unwrap()).collect()
    };
    assert!(!of_text.registrations.is_empty());
    assert_eq!(specs(&of_value), specs(&of_text));

    // A type of another library, which has no text.
    let mut document = openapiv3::OpenAPI { openapi: "3.0.3".to_owned(), ..Default::default() };
    for path in ["/z", "/a"] {
        let get = openapiv3::Operation { operation_id: Some(path[1..].to_owned()), ..Default::default() };
        let item = openapiv3::PathItem { get: Some(get), ..Default::default() };
        document.paths.paths.insert(path.to_owned(), openapiv3::ReferenceOr::Item(item));
    }
    let imported = from_openapi_value(&document, config()).unwrap();
    let ids: Vec<_> = imported.registrations.iter().map(|it| it.spec().id.as_ref()).collect();
    assert_eq!(ids, ["pets.z", "pets.a"]);

    let error = from_openapi_value(&json!({ "swagger": 7 }), config()).err().unwrap();
    assert!(error.message().contains("swagger"), "{error}");
    let error = from_openapi_value(&std::collections::BTreeMap::from([((1, 2), 3)]), config()).err().unwrap();
    assert!(error.message().starts_with("the document can't be written as JSON: "), "{error}");
}
