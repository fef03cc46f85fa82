use ops_runtime::operation;

#[operation(namespace = "shop")]
async fn find(#[input(rename = "x")] id: u64, #[cfg(unix)] limit: u32, #[cfg_attr(unix, serde(default))] more: u32, #[input(default = )] page: u32) {
    let _ = (id, limit, more, page);
}

fn main() {}
