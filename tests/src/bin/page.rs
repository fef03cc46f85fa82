//! Servers with the page `/docs` for `tests/page`: one of 40 operations, one of a large document, one of a hostile one.
//!
//! Prints their URLs as JSON, and ends when its standard input does.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use ops_runtime::access::Identity;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::serve::{HttpServer, Unauthorized};
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{CallError, Context, Registry, operation};
use ops_tests::corpus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// How long the description of a hostile operation is.
const LONG: usize = 2 << 20;

/// Adds value-added tax to a price.
///
/// The rate is that of the country, `percent` of the price.
#[operation(namespace = "till", kind = query)]
async fn with_tax(
    /// The price without tax, in euros.
    #[schemars(range(min = 0), example = 100.0)]
    price: f64,
    /// The rate.
    #[input(default = 19.0)]
    percent: f64,
) -> f64 {
    price * (1.0 + percent / 100.0)
}

/// What is sold.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(example = Sale { item: "leash".to_owned(), count: 2 })]
struct Sale {
    /// The name of the item.
    item: String,
    /// How many.
    count: u32,
}

/// Sells an item.
#[operation(namespace = "till", errors(SoldOut = 409))]
async fn sell(#[input] sale: Sale) -> Result<u32, CallError> {
    match sale.count {
        0..=5 => Ok(sale.count),
        _ => Err(CallError::new("SoldOut", format!("there are only five of {}", sale.item))),
    }
}

/// Takes an item back.
#[operation(namespace = "till", http = "PUT /sales/{id}/returned")]
async fn take_back(
    id: u32,
    sale: Sale,
    #[input(header = "X-Reason")]
    #[schemars(length(min = 3))]
    reason: Option<String>,
) -> Value {
    json!([id, sale.item, sale.count, reason])
}

/// Adds to the stock.
#[operation(namespace = "till", http = "POST /stock")]
async fn restock(item: String, count: u32) -> Value {
    json!([item, count])
}

/// The hours of the till.
#[operation(namespace = "till", kind = query)]
async fn hours() -> Vec<String> {
    vec!["9 to 12".to_owned(), "14 to 18".to_owned()]
}

/// Counts on, from 1 or behind the event that was seen last.
#[operation(namespace = "till")]
async fn ticks(
    context: &Context,
    /// How long to wait before each, in milliseconds.
    #[input(default = 50)]
    #[schemars(range(min = 1, max = 10_000))]
    milliseconds: u64,
) -> impl Stream<Item = u64> + use<> {
    let last = context.metadata().and_then(|metadata| metadata.get("lastEventId")?.as_str()?.parse::<u64>().ok());
    stream::iter(last.unwrap_or(0) + 1..).then(move |number| async move {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        number
    })
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime.map_err(|error| error.to_string()).and_then(|runtime| runtime.block_on(run())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), String> {
    let fixtures = corpus::root().join("tests/fixtures/page");
    let registry = sample(&fixtures.join("shop.yaml"))?;
    let sample = serve(registry.clone()).await?;
    let nested = serve_below("/api", registry).await?;
    let mut hostile = corpus::try_parse(&fixtures.join("hostile.json"))?;
    *hostile.pointer_mut("/paths/~1deep/post/description").ok_or("there is no description")? =
        Value::String("<b>long</b> `".repeat(LONG / 13));
    let specs = read(&hostile, "<img src=x onerror=alert(0)>")?;
    let hostile = serve(stubs(specs)?).await?;
    let large = match std::env::var_os("OPS_SPECS") {
        Some(_) => Some(serve(stubs(read(&largest()?, "large")?)?).await?),
        None => None,
    };
    println!("{}", json!({ "sample": sample, "nested": nested, "hostile": hostile, "large": large }));
    // The servers have threads of their own.
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).map_err(|error| error.to_string())?;
    Ok(())
}

/// The largest document of the directory in `OPS_SPECS`.
fn largest() -> Result<Value, String> {
    let directory = corpus::directory("OPS_SPECS", "openapi");
    let mut files = corpus::below(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    files.sort_by_key(|file| std::cmp::Reverse(file.metadata().map_or(0, |data| data.len())));
    // Other files of the directory are skipped without a message, because the first printed line must have the URLs.
    let mut documents = files.iter().filter_map(|file| corpus::try_parse(file).ok().filter(corpus::is_document));
    documents.next().ok_or_else(|| format!("no documents in {}", directory.display()))
}

/// Serves a registry with its page; the URL.
async fn serve(registry: Registry) -> Result<String, String> {
    let (listener, url) = listen().await?;
    tokio::spawn(server(registry).serve_listener(listener));
    Ok(url)
}

/// Serves a registry below a prefix of a program's own router; the URL with the prefix.
async fn serve_below(prefix: &str, registry: Registry) -> Result<String, String> {
    let (listener, url) = listen().await?;
    let app = axum::Router::new().nest(prefix, server(registry).into_router());
    tokio::spawn(axum::serve(listener, app).into_future());
    Ok(url + prefix)
}

async fn listen() -> Result<(TcpListener, String), String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
    let url = format!("http://{}", listener.local_addr().map_err(|error| error.to_string())?);
    Ok((listener, url))
}

fn server(registry: Registry) -> HttpServer {
    HttpServer::new(registry).with_docs().with_authenticator(authenticate)
}

/// Knows one token and one key.
fn authenticate(
    parts: &http::request::Parts,
) -> impl Future<Output = Result<Option<Identity>, Unauthorized>> + Send + use<> {
    let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (token, key) = (header("authorization"), header("x-shop-key"));
    async move {
        match (token.as_deref(), key.as_deref()) {
            (None, None) => Ok(None),
            (Some("Bearer t0ken"), _) => Ok(Some(Identity::new("ann").with_scope("orders:read"))),
            (None, Some("k3y")) => Ok(Some(Identity::new("bob").with_scope("orders:read"))),
            _ => Err(Unauthorized::bearer()),
        }
    }
}

fn read(document: &Value, namespace: &str) -> Result<Vec<OperationSpec>, String> {
    let options = ReadOptions::new().with_namespace(namespace);
    let (api, _) = openapi::read(document, &options).map_err(|error| error.to_string())?;
    Ok(api.operations)
}

/// 40 operations: functions, those of a document with every kind of input, and others that make a list long.
fn sample(document: &Path) -> Result<Registry, String> {
    let registry = Registry::new();
    let put = |all: Vec<Registration>| registry.register_all(all).map_err(|error| error.to_string());
    put(vec![WithTax.into(), Sell.into(), TakeBack.into(), Restock.into(), Hours.into(), Ticks.into()])?;
    let shop = read(&corpus::try_parse(document)?, "shop")?;
    put(shop.into_iter().map(|spec| Registration::new(spec.clone(), Handler::dynamic(shop_handler(&spec)))).collect())?;
    for number in registry.list().len()..40 {
        let spec = OperationSpec::new(OperationKind::Query, "reports", &format!("report{number}"));
        let mut spec = spec.map_err(|error| error.to_string())?;
        spec.description = format!("The figures of month {number}.").into();
        put(vec![Registration::new(spec, Handler::dynamic(|_, _| async { Ok(json!({ "turnover": 12 })) }))])?;
    }
    Ok(registry)
}

/// What the shop answers: as its document says, but for a price that is a text.
fn shop_handler(
    spec: &OperationSpec,
) -> impl Fn(Value, Context) -> std::future::Ready<Result<Value, CallError>> + Send + Sync + 'static {
    let name = spec.name().to_owned();
    move |input, context| {
        let pet = json!({ "id": 9_007_199_254_740_993_i64, "name": "Rex", "kind": "dog", "price": "120.5" });
        std::future::ready(Ok(match name.as_str() {
            "listPets" => json!({ "pets": [pet], "next": null }),
            "showPet" if input["petId"] == 404 => {
                return std::future::ready(Err(CallError::new("NotFound", "there is no pet 404")));
            }
            "showPet" => pet,
            "addPet" => {
                let mut pet = input["body"].clone();
                pet["id"] = json!(7);
                pet
            }
            "renamePet" => input["body"]["name"].clone(),
            "uploadPhoto" => {
                let photo: Option<ops_runtime::Body> = serde_json::from_value(input["body"]["photo"].clone()).ok();
                let bytes = photo.and_then(|photo| photo.as_bytes().map(<[u8]>::len));
                json!({ "bytes": bytes, "caption": input["body"]["caption"] })
            }
            "downloadPhoto" => json!("iVBORw0KGgo="),
            "listOrders" => json!([context.identity().map(|identity| identity.id.clone())]),
            _ => Value::Null,
        }))
    }
}

/// Operations that answer nothing.
fn stubs(specs: Vec<OperationSpec>) -> Result<Registry, String> {
    let registry = Registry::new();
    let stub = |spec: OperationSpec| {
        let handler = match spec.kind {
            OperationKind::Subscription => Handler::dynamic_stream(|_, _| async { Ok(stream::empty()) }),
            _ => Handler::dynamic(|_, _| async { Ok(Value::Null) }),
        };
        Registration::new(spec, handler)
    };
    registry.register_all(specs.into_iter().map(stub)).map_err(|error| error.to_string())?;
    Ok(registry)
}
