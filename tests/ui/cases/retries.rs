use ops_runtime::operation;

#[operation(namespace = "shop", retry(attempts = 0))]
async fn zero() {}

#[operation(namespace = "shop", retry(backoff = "1s"))]
async fn how_many() {}

#[operation(namespace = "shop", retry(attempts = 3, backoff = "1m", max_backoff = "1s"))]
async fn shorter() {}

#[operation(namespace = "shop", retry(attempts = 3, backoff = 5))]
async fn no_unit() {}

#[operation(namespace = "shop", retry(attempts = 3, wait = "1s"))]
async fn unknown() {}

#[operation(namespace = "shop", retry(attempts = 3, attempts = 4))]
async fn twice() {}

#[operation(namespace = "shop", retry(attempts = 3, errors(Bussy)), errors(Busy))]
async fn undeclared() {}

#[operation(namespace = "shop", retry(attempts = 3, errors(VALIDATION_ERROR)))]
async fn never() {}

#[operation(namespace = "shop", retry(attempts = 3, errors(Busy = 503)), errors(Busy))]
async fn status() {}

#[operation(namespace = "shop", kind = subscription, retry(attempts = 3), input = u64, output = u64)]
struct Watch;

#[operation(namespace = "shop", retry = 3)]
async fn number() {}

fn main() {}
