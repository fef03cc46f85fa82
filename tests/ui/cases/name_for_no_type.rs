use ops_runtime::operation;

#[operation(namespace = "shop")]
#[allow(non_snake_case)]
async fn Find() {}

#[operation(namespace = "shop")]
async fn _1() {}

fn main() {}
