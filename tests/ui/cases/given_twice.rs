use ops_runtime::operation;

#[operation(namespace = "shop", kind = query, kind = mutation, resource(type = "a", type = "b"), errors(Gone, Gone = 410))]
async fn ping() {}

fn main() {}
