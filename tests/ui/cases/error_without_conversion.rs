use ops_runtime::operation;

use futures_core::Stream;

pub struct ShopError;

#[operation(namespace = "shop")]
pub async fn find(id: u64) -> Result<u64, ShopError> {
    Ok(id)
}

#[operation(namespace = "shop")]
pub async fn watch() -> Result<impl Stream<Item = u64>, ShopError> {
    Ok(futures_util::stream::empty())
}

#[operation(namespace = "shop")]
pub async fn follow() -> impl Stream<Item = Result<u64, ShopError>> {
    futures_util::stream::empty()
}

fn main() {}
