use ops_runtime::operation;

#[operation(namespace = "shop")]
async fn first<'a, T: Clone>(items: Vec<T>, count: usize) -> T
where
    T: 'a,
{
    items[count].clone()
}

#[operation(namespace = "shop")]
async fn second(id: impl Into<u64>, ids: Vec<impl Into<u64>>) {
    let _ = (id, ids);
}

fn main() {}
