//! Turns what this example names of GitHub's document into typed operations.
//!
//! The document is the one at the absolute path in `OPS_DOCUMENT`; unset, an excerpt with the same operations.

const OPERATIONS: &[&str] = &["users/get-authenticated", "repos/get", "issues/list-for-repo", "issues/create-comment"];

fn main() -> Result<(), ops_codegen::Error> {
    println!("cargo:rerun-if-env-changed=OPS_DOCUMENT");
    let document = std::env::var("OPS_DOCUMENT").unwrap_or_else(|_| "excerpt.yaml".to_owned());
    let builder = ops_codegen::Builder::new().openapi(document).with_namespace("github");
    OPERATIONS.iter().fold(builder, |builder, operation| builder.include(*operation)).only_used().build()
}
