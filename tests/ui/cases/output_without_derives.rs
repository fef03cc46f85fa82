use ops_runtime::operation;

use futures_core::Stream;

pub struct Pet;

#[operation(namespace = "shop")]
pub async fn find(id: u64) -> Result<Pet, String> {
    Err(id.to_string())
}

#[operation(namespace = "shop")]
pub async fn watch() -> impl Stream<Item = Pet> {
    futures_util::stream::empty()
}

fn main() {}
