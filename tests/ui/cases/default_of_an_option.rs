use ops_runtime::operation;

#[operation(namespace = "shop", http = "GET /pets")]
async fn find(
    #[input(default = Some(7))] limit: Option<u8>,
    #[input(header = "X-Page", default = Some(1))] page: Option<u8>,
    #[input(cookie)] #[serde(default = "first")] shop: Option<u8>,
    // It is `None`.
    #[input(default)] owner: Option<u64>,
) {
    let _ = (limit, page, shop, owner);
}

fn main() {}
