//! The JSON of the model, both ways, against files that are reviewed; `UPDATE_GOLDEN=1` writes them.
// `json!` values read better as arguments than references to them.
#![allow(clippy::needless_pass_by_value)]

#[path = "golden_json/arbitrary.rs"]
mod arbitrary;
#[path = "golden_json/golden.rs"]
mod golden;
#[path = "golden_json/operations.rs"]
mod operations;
#[path = "golden_json/protocol.rs"]
mod protocol;
#[path = "golden_json/results.rs"]
mod results;
#[path = "golden_json/tolerant.rs"]
mod tolerant;
