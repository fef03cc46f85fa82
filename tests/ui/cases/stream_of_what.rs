use ops_runtime::operation;

use futures_core::Stream;

#[operation(namespace = "shop")]
async fn watch() -> impl Stream {
    futures_util::stream::empty::<u64>()
}

fn main() {}
