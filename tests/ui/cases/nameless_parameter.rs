use ops_runtime::operation;

#[operation(namespace = "shop")]
async fn find((id, name): (u64, String), _: u8, ref by: u8) -> u64 {
    let _ = (name, by);
    id
}

struct State(u8);

#[operation(namespace = "shop")]
async fn count(State(pool): State) -> u8 {
    pool
}

fn main() {}
