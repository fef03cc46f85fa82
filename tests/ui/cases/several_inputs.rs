use ops_runtime::operation;

use ops_runtime::Context;

#[operation(namespace = "shop")]
async fn find(#[input] id: u64, #[input] name: String, limit: u32) {
    let _ = (id, name, limit);
}

#[operation(namespace = "shop")]
async fn look(#[input] one: &Context, two: Context, #[input] #[serde(default)] id: u64) {
    let _ = (one, two, id);
}

fn main() {}
