use ops_runtime::operation;

#[operation(namespace = "shop")]
async fn find(#[input(rename = "x")] id: u64, #[cfg(unix)] limit: u32, #[input(default = )] page: u32) {
    let _ = (id, limit, page);
}

fn main() {}
