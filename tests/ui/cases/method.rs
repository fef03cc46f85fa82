use ops_runtime::operation;

struct Shop;

impl Shop {
    #[operation(namespace = "shop")]
    async fn open(&self, id: u64) -> u64 {
        id
    }
}

fn main() {}
