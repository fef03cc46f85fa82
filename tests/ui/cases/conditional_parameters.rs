use ops_runtime::{Context, operation};

#[operation(namespace = "shop")]
async fn find(#[input] #[cfg_attr(unix, allow(unused))] id: u64, #[cfg_attr(unix, allow(unused))] context: Context) {
    let _ = (id, context);
}

#[operation(namespace = "shop")]
async fn look(#[cfg(unix)] #[input] id: u64, #[cfg(unix)] context: Context) {
    let _ = (id, context);
}

fn main() {}
