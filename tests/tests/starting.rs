//! What generated modules cost a program that starts: nothing. They are statics, and schemas are compiled when they are needed.

use std::hint::black_box;

use ops_runtime::spec::OperationSpec;
use ops_runtime::{HttpClient, HttpConfig, Registry};

/// A module for each document that this crate is built with.
pub mod api {
    /// The shop's.
    pub mod petshop {
        ops_runtime::include_operations!("petshop");
    }
    /// The till's.
    pub mod till {
        ops_runtime::include_operations!("till");
    }
    /// Forty operations of all kinds.
    pub mod varied {
        ops_runtime::include_operations!("varied");
    }
    /// The shelter's.
    pub mod shelter {
        ops_runtime::include_operations!("shelter");
    }
}

/// All operations of the modules.
fn modules() -> [&'static [&'static OperationSpec]; 4] {
    [api::petshop::operations(), api::till::operations(), api::varied::operations(), api::shelter::operations()]
}

#[test]
fn modules_allocate_nothing() {
    let mut found = 0;
    let counted = allocation_counter::measure(|| {
        for spec in modules().into_iter().flatten() {
            black_box((&spec.id, &spec.input, &spec.output, &spec.binding, &spec.definitions));
            found += 1;
        }
    });
    assert!(found > 50, "{found} operations");
    assert_eq!((counted.count_total, counted.bytes_total), (0, 0), "{counted:?}");
}

/// What a registry takes for each operation is its entry: no schema is copied, parsed or compiled.
#[test]
fn a_registered_operation_takes_about_a_kilobyte() {
    let client = HttpClient::new(HttpConfig::new().with_base_url("http://127.0.0.1:9")).unwrap();
    let mut registry = None;
    let counted = allocation_counter::measure(|| {
        let made = Registry::new();
        for specs in modules() {
            made.register_all(client.bind(specs).unwrap()).unwrap();
        }
        registry = Some(made);
    });
    let specs: Vec<_> = modules().into_iter().flatten().collect();
    let each = u64::try_from(counted.bytes_current).unwrap() / specs.len() as u64;
    assert!((64..1_536).contains(&each), "{each} bytes for each of {} operations", specs.len());
    let schemas: usize =
        specs.iter().map(|spec| spec.output.to_value().map_or(0, |schema| schema.to_string().len())).sum();
    assert!(schemas > 2_000, "the schemas have {schemas} bytes");
    drop(registry);
}
