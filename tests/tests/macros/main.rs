//! `#[operation]` at work: every form of parameter and result, called through a registry.

mod calls;
mod discovery;
mod hygiene;
mod schemas;
mod specs;
mod streams;

use ops_runtime::adapter::Registration;
use ops_runtime::registry::RegistryError;
use ops_runtime::{CallError, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Pet {
    id: u64,
    name: String,
}

impl Pet {
    fn new(id: u64, name: &str) -> Self {
        Self { id, name: name.into() }
    }
}

/// An error type as applications have them.
#[derive(Debug)]
pub(crate) enum ShopError {
    NotFound(u64),
    Closed,
}

impl From<ShopError> for CallError {
    fn from(error: ShopError) -> Self {
        match error {
            ShopError::NotFound(id) => Self::new(calls::Find::NOT_FOUND, format!("no pet {id}")),
            ShopError::Closed => Self::new("Closed", "come back tomorrow"),
        }
    }
}

fn registry(operation: impl Into<Registration>) -> Registry {
    let registry = Registry::new();
    registry.register(operation).unwrap();
    registry
}

fn refusal(operation: impl Into<Registration>) -> RegistryError {
    Registry::new().register(operation).unwrap_err()
}

fn with_all_state() -> Registry {
    Registry::builder().with_state(calls::Greeting("hello")).with_state(streams::Shelf(Default::default())).build()
}
