//! A document that is put right before it becomes types: `cargo run -p edited-document`.
//!
//! `build.rs` reads it as an `openapiv3::OpenAPI`, changes that, and generates from the value. At run time the same is
//! done with any other value that serialises to a document.

use std::error::Error;

use axum::extract::Path;
use axum::routing::get;
use axum::{Json, Router};
use ops_runtime::openapi::from_openapi_value;
use ops_runtime::{HttpClient, HttpConfig, Registry};
use serde_json::{Value, json};
use weather::Methods;

pub mod weather {
    //! What the build script made of the document.
    ops_runtime::include_operations!("weather");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let config = HttpConfig::new().with_base_url(format!("http://{}", listener.local_addr()?));
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/reports/{city}", get(report))).await });

    // The method has the name, and the field the type, that the build script gave them.
    let report = HttpClient::new(config.clone())?.show_report("Oslo").await?.data;
    println!("{}: {:.1} degrees, wind {:?}", report.city, report.celsius, report.wind);
    assert_eq!((report.celsius, report.wind), (-3.5, None));
    assert_eq!(weather::operations().len(), 1);

    // At run time, edited as JSON.
    let mut document: Value = serde_json::from_str(include_str!("../weather.json"))?;
    document["paths"]["/reports/{city}"]["get"]["operationId"] = "showReport".into();
    document["components"]["schemas"]["Report"]["properties"]["celsius"]["type"] = "number".into();
    let registry = Registry::new();
    registry.register_all(from_openapi_value(&document, config.with_namespace("edited"))?)?;
    let report = registry.call("edited.showReport", json!({ "city": "Oslo" })).await?;
    println!("edited.showReport: {}", report.data);
    assert_eq!((report.data, report.warnings), (json!({ "city": "Oslo", "celsius": -3.5 }), Vec::new()));
    Ok(())
}

async fn report(Path(city): Path<String>) -> Json<Value> {
    Json(json!({ "city": city, "celsius": -3.5 }))
}
