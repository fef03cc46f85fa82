use ops_runtime::operation;

type Number = u64;

#[operation(namespace = "shop", http = "HEAD /pets")]
pub async fn count() -> Number {
    7
}

#[operation(namespace = "shop", http = "HEAD /pets/{id}", status = 200)]
pub async fn find(id: u64) -> Result<Option<()>, String> {
    let _ = id;
    Ok(None)
}

#[operation(namespace = "shop", http = "HEAD /ponds/{id}", errors(NoPond = 404))]
pub async fn pond(id: u64) -> Result<(), String> {
    Err(format!("NoPond: {id}"))
}

fn main() {}
