//! The archive's server: it counts what it is sent, and keeps no more than that.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body, BodyDataStream};
use axum::extract::{DefaultBodyLimit, Multipart, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

/// What has happened: actions, and how many bytes they were about.
type Journal = Arc<Mutex<Vec<(&'static str, usize)>>>;

/// Serves the archive on a free port of this machine.
pub(crate) async fn start() -> std::io::Result<SocketAddr> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let router = Router::new()
        .route("/recordings", post(add))
        .route("/recordings/{id}/audio", get(download).put(replace))
        .route("/recordings/{id}/transcript", get(transcript))
        .route("/journal", get(read))
        .layer(DefaultBodyLimit::disable())
        .with_state(Journal::default());
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

fn note(journal: &Journal, action: &'static str, bytes: usize) {
    journal.lock().unwrap_or_else(PoisonError::into_inner).push((action, bytes));
}

async fn add(State(journal): State<Journal>, mut form: Multipart) -> Result<(StatusCode, Json<Value>), StatusCode> {
    let bad = |_| StatusCode::BAD_REQUEST;
    let mut recording = json!({ "id": 1 });
    while let Some(mut field) = form.next_field().await.map_err(bad)? {
        if field.name() == Some("title") {
            recording["title"] = field.text().await.map_err(bad)?.into();
            continue;
        }
        recording["fileName"] = field.file_name().into();
        recording["contentType"] = field.content_type().into();
        let mut bytes = 0;
        while let Some(piece) = field.chunk().await.map_err(bad)? {
            bytes += piece.len();
        }
        note(&journal, "added", bytes);
        recording["bytes"] = bytes.into();
    }
    Ok((StatusCode::CREATED, Json(recording)))
}

async fn replace(State(journal): State<Journal>, body: Body) -> Result<Json<Value>, StatusCode> {
    let mut stream: BodyDataStream = body.into_data_stream();
    let mut bytes = 0;
    while let Some(piece) = stream.next().await {
        bytes += piece.map_err(|_| StatusCode::BAD_REQUEST)?.len();
    }
    note(&journal, "replaced", bytes);
    Ok(Json(json!({ "id": 1, "title": "A talk", "bytes": bytes })))
}

async fn download(State(journal): State<Journal>) -> impl IntoResponse {
    note(&journal, "downloaded", 400_000);
    let pieces = stream::iter((0..40).map(|_| Ok::<_, Infallible>(Bytes::from_static(&[1; 10_000]))));
    ([(header::CONTENT_TYPE, "audio/wav")], Body::from_stream(pieces))
}

async fn transcript() -> impl IntoResponse {
    let events = [
        json!({ "kind": "words", "at": 0.5, "text": "good" }),
        json!({ "kind": "words", "at": 0.9, "text": "evening" }),
        json!({ "kind": "done", "words": 2 }),
    ];
    let events = events.map(|event| Ok::<_, Infallible>(format!("data: {event}\n\n")));
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream::iter(events)))
}

async fn read(State(journal): State<Journal>) -> impl IntoResponse {
    let entries = journal.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let lines = entries.into_iter().map(|(action, bytes)| format!("{}\n", json!({ "action": action, "bytes": bytes })));
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(stream::iter(lines.map(Ok::<_, Infallible>))))
}
