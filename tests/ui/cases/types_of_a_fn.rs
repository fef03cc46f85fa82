use ops_runtime::operation;

#[operation(namespace = "shop", input = u64, output = u64)]
async fn find(id: u64) -> u64 {
    id
}

fn main() {}
