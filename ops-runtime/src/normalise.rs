//! Repairing values by their schema.
#![allow(missing_docs)]
use crate::Definitions;
use serde_json::Value;
use std::sync::Arc;
pub enum Reading {
    Default,
}
pub struct CompiledDefinitions;
impl CompiledDefinitions {
    pub fn new(_: Definitions, _: Reading) -> Self {
        Self
    }
}
pub struct CompiledSchema;
pub struct Repair {
    pub pointer: String,
    pub expected: String,
    pub found: &'static str,
}
pub struct Violation {
    pub pointer: String,
    pub message: String,
}
impl CompiledSchema {
    pub fn new(_: &Value, _: &Arc<CompiledDefinitions>) -> Self {
        Self
    }
    pub fn normalise(&self, v: Value) -> (Value, Vec<Repair>) {
        (v, vec![])
    }
    pub fn violations(&self, _: &Value) -> Vec<Violation> {
        vec![]
    }
}
