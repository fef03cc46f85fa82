use ops_runtime::operation;

use std::rc::Rc;

#[operation(namespace = "shop")]
pub async fn find(id: u64) -> u64 {
    let shared = Rc::new(id);
    std::future::ready(()).await;
    *shared
}

fn main() {}
