use ops_runtime::operation;

#[operation(namespace = "shop", input = u64)]
struct Find;

#[operation(namespace = "shop", state(u8))]
struct Look;

fn main() {}
