use ops_runtime::operation;

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub struct Pet;

#[operation(namespace = "shop")]
pub async fn find() -> Vec<Pet> {
    vec![]
}

fn main() {}
