use ops_runtime::operation;

use std::rc::Rc;

use futures_core::Stream;

#[operation(namespace = "shop")]
pub async fn watch(id: u64) -> impl Stream<Item = u64> {
    let shared = Rc::new(id);
    futures_util::stream::repeat_with(move || *shared)
}

fn main() {}
