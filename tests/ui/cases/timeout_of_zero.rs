use ops_runtime::operation;

#[operation(namespace = "shop", timeout = "0s")]
async fn ping() {}

#[operation(namespace = "shop", timeout = 5)]
async fn pong() {}

fn main() {}
