use ops_runtime::operation;

pub struct Filter;

#[operation(namespace = "shop")]
pub async fn find(#[input] filter: Filter) {
    let _ = filter;
}

fn main() {}
