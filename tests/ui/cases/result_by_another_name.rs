use ops_runtime::{ResponseEnvelope, operation};

use futures_core::Stream;

type ShopResult<T> = Result<T, String>;

#[operation(namespace = "shop")]
pub async fn price() -> ShopResult<f64> {
    Err("closed".to_owned())
}

#[operation(namespace = "shop")]
pub async fn prices() -> impl Stream<Item = ShopResult<f64>> {
    futures_util::stream::empty()
}

/// As a task that was waited for gives it.
#[operation(namespace = "shop")]
pub async fn waited() -> Result<Result<f64, String>, String> {
    Ok(Err("closed".to_owned()))
}

#[operation(namespace = "shop")]
pub async fn enveloped() -> ResponseEnvelope<ShopResult<f64>> {
    unimplemented!()
}

#[operation(namespace = "shop")]
pub async fn first() -> Option<Result<f64, String>> {
    None
}

fn main() {}
