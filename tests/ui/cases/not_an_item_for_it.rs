use ops_runtime::operation;

#[operation(namespace = "shop")]
enum Kind {
    Cat,
}

#[operation(namespace = "shop")]
static CAT: u8 = 1;

fn main() {
    let _ = (Kind::Cat, CAT);
}
