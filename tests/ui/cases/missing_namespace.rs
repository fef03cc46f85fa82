use ops_runtime::operation;

#[operation(kind = query)]
async fn ping() {}

fn main() {}
