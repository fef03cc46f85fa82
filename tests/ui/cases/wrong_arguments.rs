use ops_runtime::operation;

#[operation(
    namespce = "shop",
    namespace = "shop.eu",
    name = "",
    kind = "query",
    version = 2,
    timeout = "5 seconds",
    tags(),
    resource(type = "pet"),
    errors(NotFound = 40, "x" = 404, Gone = "410"),
    title = "a" "b",
    scopes = "a",
    description = "pings",
    deprecated = true,
)]
async fn ping() {}

fn main() {}
