use ops_runtime::operation;

use futures_core::Stream;

#[operation(namespace = "shop", kind = query)]
async fn watch() -> impl Stream<Item = u64> {
    futures_util::stream::empty()
}

#[operation(namespace = "shop", kind = subscription)]
async fn find() -> Result<u64, String> {
    Ok(1)
}

#[operation(namespace = "shop", kind = subscription)]
async fn nothing() {}

fn main() {}
