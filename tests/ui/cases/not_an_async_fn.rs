use ops_runtime::operation;

#[operation(namespace = "shop")]
fn plain(id: u64) -> u64 {
    id
}

#[operation(namespace = "shop")]
const unsafe extern "C" fn qualified() {}

fn main() {}
