use ops_runtime::operation;

use futures_core::Stream;
use ops_runtime::Registry;

#[operation(namespace = "shop")]
pub async fn watch() -> impl Stream<Item = u64> {
    futures_util::stream::empty()
}

#[operation(namespace = "shop")]
pub async fn find() {}

pub async fn run(registry: &Registry) {
    let _ = registry.execute::<Watch>(WatchInput {}).await;
    let _ = registry.subscribe::<Find>(FindInput {}).await;
}

fn main() {}
