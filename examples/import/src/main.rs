//! A document that the program meets when it runs, called without generated code: `cargo run -p import`.

use std::error::Error;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use ops_runtime::openapi::from_openapi;
use ops_runtime::{ErrorCode, HttpConfig, Registry};
use serde_json::{Value, json};

/// What a service says of itself. `from_openapi_url` fetches such a document, `from_openapi_file` reads one.
const DOCUMENT: &str = "
openapi: 3.1.0
info: { title: A library, version: 1.0.0 }
paths:
  /books/{id}:
    parameters:
      - { name: id, in: path, required: true, schema: { type: integer, minimum: 1 } }
    get:
      operationId: showBook
      summary: Show one book
      responses:
        '200': { description: The book, content: { application/json: { schema: { $ref: '#/components/schemas/Book' } } } }
  /books:
    post:
      operationId: addBook
      summary: Add a book
      requestBody: { content: { application/json: { schema: { $ref: '#/components/schemas/Novel' } } } }
      responses:
        '200': { description: The book, content: { application/json: { schema: { $ref: '#/components/schemas/Book' } } } }
components:
  schemas:
    Book:
      type: object
      required: [title]
      properties: { title: { type: string }, copies: { type: integer, default: 1 } }
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let config =
        HttpConfig::new().with_namespace("library").with_base_url(format!("http://{}", listener.local_addr()?));
    let router = Router::new().route("/books/{id}", get(show)).route("/books", post(add));
    tokio::spawn(async move { axum::serve(listener, router).await });

    // No document fails because of one part of it. The document does not define `Novel`: the reader reports that, and accepts
    // any JSON.
    let imported = from_openapi(DOCUMENT, config)?;
    assert_eq!(imported.diagnostics.len(), 1);
    imported.diagnostics.iter().for_each(|diagnostic| println!("{diagnostic}"));
    let registry = Registry::new();
    registry.register_all(imported)?;
    for spec in registry.list() {
        println!("there is {}: {}\n  takes {}", spec.id, spec.description, spec.input.to_value()?);
    }

    // The server says nothing of copies: the document's default is filled in.
    let book = registry.call("library.showBook", json!({ "id": 1 })).await?;
    println!("book 1: {}, by {}", book.data, book.meta.source());
    assert_eq!(book.data, json!({ "title": "Emma", "copies": 1 }));

    let body = json!({ "title": "Persuasion", "copies": 2 });
    let added = registry.call("library.addBook", json!({ "body": body })).await?;
    println!("added: {}", added.data);
    assert_eq!(added.data, body);

    // What the server refuses, and what is refused before anything is sent.
    let error = registry.call("library.showBook", json!({ "id": 2 })).await.unwrap_err();
    println!("book 2: {error}");
    assert_eq!(error.status(), Some(404));
    let error = registry.call("library.showBook", json!({ "id": "Emma" })).await.unwrap_err();
    println!("a book without a number: {error}");
    assert_eq!((error.code(), error.status()), (&ErrorCode::ValidationError, None));
    Ok(())
}

async fn show(Path(id): Path<i64>) -> (StatusCode, Json<Value>) {
    match id {
        1 => (StatusCode::OK, Json(json!({ "title": "Emma" }))),
        _ => (StatusCode::NOT_FOUND, Json(json!({ "title": "no such book" }))),
    }
}

async fn add(Json(book): Json<Value>) -> Json<Value> {
    Json(book)
}
