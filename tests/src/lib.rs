//! What the tests share: where the corpora are, and values made from schemas.

pub mod corpus;
pub mod folder;
pub mod measure;
pub mod program;
pub mod requests;
pub mod sample;
pub mod serve;
pub mod typescript;
pub mod varied;
pub mod wire;
