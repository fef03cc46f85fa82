//! Subscriptions.

use std::sync::Arc;

use futures_core::Stream;
use futures_util::{StreamExt, TryStreamExt, stream};
use ops_runtime::envelope::HttpMeta;
use ops_runtime::{CallError, Context, ErrorCode, Registry, ResponseEnvelope, operation};
use serde_json::json;

use crate::{Pet, ShopError, registry};

#[operation(namespace = "math")]
async fn count(to: u32) -> impl Stream<Item = u32> {
    stream::iter(1..=to)
}

#[tokio::test]
async fn typed_and_dynamic() {
    let registry = registry(Count);
    let items = registry.subscribe::<Count>(CountInput { to: 3 }).await.unwrap();
    let items: Vec<u32> = items.map_ok(ResponseEnvelope::into_data).try_collect().await.unwrap();
    assert_eq!(items, [1, 2, 3]);
    let items = registry.stream("math.count", json!({ "to": 2 })).await.unwrap();
    let items: Vec<_> = items.map_ok(ResponseEnvelope::into_data).try_collect().await.unwrap();
    assert_eq!(items, [json!(1), json!(2)]);
    assert_eq!(count(3).await.count().await, 3);
}

pub(crate) struct Shelf(pub(crate) Arc<Vec<Pet>>);

#[operation(namespace = "shop", state(Shelf))]
async fn browse(names: &[String], context: &Context) -> Result<impl Stream<Item = Pet>, CallError> {
    let Shelf(pets) = context.state()?;
    if names.is_empty() {
        return Err(CallError::new("NoNames", "name some"));
    }
    let found = pets.iter().filter(|pet| names.contains(&pet.name));
    Ok(stream::iter(found).then(|pet| async move {
        tokio::task::yield_now().await;
        pet.clone()
    }))
}

#[tokio::test]
async fn a_stream_that_borrows_input_and_state() {
    let pets = Arc::new(vec![Pet::new(1, "Tom"), Pet::new(2, "Kit"), Pet::new(3, "Tom")]);
    let registry = Registry::builder().with_state(Shelf(pets.clone())).build();
    registry.register(Browse).unwrap();
    let items = registry.subscribe::<Browse>(BrowseInput { names: vec!["Tom".into()] }).await.unwrap();
    // It owns what it borrows from: the registry may go.
    drop(registry);
    let ids: Vec<u64> = items.map_ok(|pet| pet.data.id).try_collect().await.unwrap();
    assert_eq!(ids, [1, 3]);
    assert_eq!(Arc::strong_count(&pets), 1);
}

#[tokio::test]
async fn an_error_before_the_first_item_is_that_of_the_call() {
    let registry = Registry::builder().with_state(Shelf(Arc::default())).build();
    registry.register(Browse).unwrap();
    let error = registry.subscribe::<Browse>(BrowseInput { names: vec![] }).await.err().unwrap();
    assert_eq!(error.code(), &ErrorCode::Domain("NoNames".into()));
}

#[operation(namespace = "shop", errors(NotFound = 404))]
async fn look_up(ids: Vec<u64>) -> impl Stream<Item = Result<Pet, ShopError>> + Send {
    stream::iter(ids).map(|id| if id < 10 { Ok(Pet::new(id, "Tom")) } else { Err(ShopError::NotFound(id)) })
}

#[tokio::test]
async fn an_error_among_the_items() {
    let registry = registry(LookUp);
    let items = registry.subscribe::<LookUp>(LookUpInput { ids: vec![1, 20, 3] }).await.unwrap();
    let items: Vec<_> = items.map(|item| item.map(|pet| pet.data.id).map_err(|e| e.code().to_string())).collect().await;
    assert_eq!(items, [Ok(1), Err("NotFound".into()), Ok(3)]);
}

#[operation(namespace = "http", kind = subscription)]
async fn pages(context: Context) -> impl Stream<Item = ResponseEnvelope<String>> {
    stream::iter([200, 206]).map(move |status| {
        ResponseEnvelope::http(format!("{}", context.is_trusted()), HttpMeta::new(status, "text/plain"))
    })
}

#[operation(namespace = "http")]
async fn checked_pages() -> Result<impl Stream<Item = Result<ResponseEnvelope<u8>, String>>, ShopError> {
    let page = |n| ResponseEnvelope::http(n, HttpMeta::new(200, "text/plain"));
    Ok(stream::iter([Ok(page(1)), Err("torn".into())]))
}

#[tokio::test]
async fn envelopes_of_their_own() {
    let items = registry(Pages).subscribe::<Pages>(PagesInput {}).await.unwrap();
    let items: Vec<_> = items.try_collect().await.unwrap();
    let statuses: Vec<_> = items.iter().map(|item| item.meta.as_http().unwrap().status_code).collect();
    assert_eq!(statuses, [200, 206]);
    let items = registry(CheckedPages).subscribe::<CheckedPages>(CheckedPagesInput {}).await.unwrap();
    let items: Vec<_> = items.collect().await;
    assert_eq!(items[0].as_ref().unwrap().meta.source(), "http");
    assert_eq!(items[1].as_ref().unwrap_err().message(), "torn");
}

#[tokio::test]
async fn dropping_the_stream_drops_the_handler() {
    let pets = Arc::new(vec![Pet::new(1, "Tom")]);
    let registry = Registry::builder().with_state(Shelf(pets.clone())).build();
    registry.register(Browse).unwrap();
    let items = registry.subscribe::<Browse>(BrowseInput { names: vec!["Tom".into()] }).await.unwrap();
    drop(registry);
    assert_eq!(Arc::strong_count(&pets), 2);
    drop(items);
    assert_eq!(Arc::strong_count(&pets), 1);
}
