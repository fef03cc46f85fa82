use ops_runtime::operation;

#[operation(namespace = "shop")]
pub async fn list(#[input(default = "ten")] limit: f64, #[input(default = 10)] name: &str) {
    let _ = (limit, name);
}

fn main() {}
