use ops_runtime::operation;

#[operation(namespace = "shop", input = u64, output = u64)]
struct Find {
    id: u64,
}

fn main() {}
