use ops_runtime::operation;

#[operation(namespace = "shop")]
async fn local(#[input(header = "X-Tag")] tag: String) {
    let _ = tag;
}

#[operation(namespace = "shop", http = "GET /pets/{petId}")]
async fn show(id: u64) {
    let _ = id;
}

#[operation(namespace = "shop", http = "GET /pets/{id}")]
async fn find(id: Option<u64>, #[input(header)] tag: String, #[input(header = "Host")] host: String) {
    let _ = (id, tag, host);
}

#[operation(namespace = "shop", http = "GET /pets/{id}/{name}")]
async fn name(
    #[input(query)] id: u64,
    #[input(cookie, query)] name: String,
    a: u64,
    #[input(query = "a")] b: u64,
    #[input(body)] c: u64,
) {
    let _ = (id, name, a, b, c);
}

#[operation(namespace = "shop", http = "GET /pets")]
async fn whole(#[input] filter: Extra) {
    let _ = filter;
}

#[operation(namespace = "shop", http = "POST /pets/{more}")]
async fn flat(#[serde(flatten)] more: Extra, #[input(query)] #[serde(flatten)] page: Extra) {
    let _ = (more, page);
}

#[operation(namespace = "shop", http = "POST /double")]
async fn double(#[input] n: Option<i64>) {
    let _ = n;
}

#[operation(namespace = "shop", http = "GET /now", input = (), output = u64)]
struct Now;

type Extra = std::collections::BTreeMap<String, u64>;

fn main() {}
