use ops_runtime::operation;

use futures_core::Stream;

#[operation(namespace = "shop")]
async fn name() -> &'static str {
    "Tom"
}

#[operation(namespace = "shop")]
async fn display() -> Result<impl std::fmt::Display, String> {
    Ok("Tom")
}

#[operation(namespace = "shop")]
async fn names() -> impl Stream<Item = Option<&'static str>> {
    futures_util::stream::empty()
}

fn main() {}
