use ops_runtime::operation;

#[derive(Debug, Clone)]
pub struct Filter;

#[operation(namespace = "shop")]
pub async fn find(limit: u32, filter: &Filter) {
    let _ = (limit, filter);
}

fn main() {}
