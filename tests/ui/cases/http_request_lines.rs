use ops_runtime::operation;

#[operation(namespace = "shop", http = "/pets")]
async fn no_method() {}

#[operation(namespace = "shop", http = "get /pets")]
async fn lower_case() {}

#[operation(namespace = "shop", http = "GET /pets?limit={limit}")]
async fn query(limit: u64) {
    let _ = limit;
}

#[operation(namespace = "shop", http = "GET /pets/{id}/{id}")]
async fn twice(id: u64) {
    let _ = id;
}

#[operation(namespace = "shop", http = GET)]
async fn no_text() {}

#[operation(namespace = "shop", http = "POST /pets", status = 404)]
async fn no_success() {}

#[operation(namespace = "shop", status = 201)]
async fn not_over_http() {}

fn main() {}
