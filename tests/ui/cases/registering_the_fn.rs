use ops_runtime::operation;

#[operation(namespace = "shop")]
pub async fn find() {}

fn main() {
    let _ = ops_runtime::Registry::new().register(find);
}
