use ops_runtime::operation;

use std::pin::Pin;

use futures_core::Stream;
use futures_util::stream::BoxStream;

#[operation(namespace = "shop")]
pub async fn prices() -> BoxStream<'static, f64> {
    Box::pin(futures_util::stream::empty())
}

#[operation(namespace = "shop", kind = subscription)]
pub async fn names() -> Result<Pin<Box<dyn Stream<Item = String> + Send>>, String> {
    Err("closed".to_owned())
}

fn main() {}
