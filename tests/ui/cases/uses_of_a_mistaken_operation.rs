use ops_runtime::operation;

use ops_runtime::{CallError, Operation, Registry};

#[operation(namespace = "a.b")]
pub async fn find(id: u64, name: &'static str) -> &str {
    let _ = id;
    name
}

pub async fn run(registry: &Registry) -> Result<(), CallError> {
    registry.register(Find).unwrap();
    let _ = registry.execute::<Find>(FindInput { id: 1 }).await?;
    let _ = registry.subscribe::<Find>(FindInput { id: 1 }).await?;
    println!("{}", Find::SPEC.id);
    Ok(())
}

fn main() {}
