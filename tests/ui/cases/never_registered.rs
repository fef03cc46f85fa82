#![deny(dead_code)]

use ops_runtime::operation;

#[operation(namespace = "shop", errors(NotFound = 404))]
async fn find(id: u64) -> u64 {
    id
}

#[operation(namespace = "shop")]
async fn look(id: u64) -> u64 {
    id
}

fn main() {
    let _ = ops_runtime::Registry::new().register(Look);
}
