use ops_runtime::operation;

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

fn main() {}
