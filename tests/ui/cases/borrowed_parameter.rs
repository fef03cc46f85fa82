use ops_runtime::operation;

use std::borrow::Cow;

#[operation(namespace = "shop")]
async fn find(name: &'static str, id: &mut u64, tag: Option<&str>, note: Cow<'_, str>, fine: Cow<'static, str>) {
    let _ = (name, id, tag, note, fine);
}

fn main() {}
