//! The book in `docs`: its pages, and the sources that some of them are made of.
//!
//! The build script makes a module of each block of Rust that is not included from a file, and `tests/snippets.rs` compiles
//! them. A block with `fn main()` is a program; any other is the body of an async function, whose arguments stand in the build
//! script. Lines that begin with `# ` are compiled and not shown, as in documentation. `rust,run` is also run, as a test.

pub mod pages;
pub mod sources;
