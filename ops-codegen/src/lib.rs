//! Typed operations from API documents.
//!
//! A build script turns documents into modules:
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), ops_codegen::Error> {
//!     ops_codegen::Builder::new().openapi("petstore.yaml").build()
//! }
//! ```
//!
//! ```ignore
//! // src/lib.rs
//! pub mod petstore {
//!     ops_runtime::include_operations!("petstore");
//! }
//! ```
//!
//! A module holds a type and a static spec for each operation, a type for each definition that the operations reach, and
//! `operations()`, the list of all specs. It is a plain module body that compiles without a warning wherever it is
//! included, and its bytes depend on nothing but the document and this crate.
//!
//! Anything that can be read into an [`Api`](ops_runtime::spec::Api) can be rendered:
//!
//! ```
//! use ops_codegen::Generator;
//! use ops_runtime::spec::{Api, Definitions, OperationSpec, Schema};
//!
//! let show = OperationSpec::query("zoo.show").with_output(Schema::text(r#"{"type":"array","items":{"type":"string"}}"#));
//! let generated = Generator::new().generate(&Api::new(Definitions::EMPTY, vec![show]));
//! assert!(generated.source.contains("pub struct Show;"));
//! assert!(generated.source.contains("type Output = Vec<String>;"));
//! ```
//!
//! # How schemas become types
//!
//! | schema | type |
//! |---|---|
//! | `object` with properties | a struct; other properties are kept in a field `extra` if the schema speaks of them |
//! | `object` without | `BTreeMap<String, _>` |
//! | `array`, `prefixItems` | `Vec<_>`, a tuple |
//! | `string` in any format | `String` |
//! | `integer` | `i64`; `i32`, `u32` and `u64` by `format`, and `u64` if the limits ask for it |
//! | `number` | `f64` |
//! | `enum`, `const` | an enum that keeps values it does not know |
//! | `oneOf`, `anyOf`, `type: [..]` | `Option<_>` for `null`, an enum by tag, or an enum by shape |
//! | `allOf` | one type that satisfies all |
//! | `$ref` | the type of the definition, boxed where it would hold itself |
//! | anything else | any JSON: `serde_json::Value` |
//!
//! A property that need not be there is an `Option`. Where requests hold it, `None` is not sent, and a default stands in
//! the documentation: the server applies it. In types that only answers have, a default that fits its type takes the
//! place of what is absent.
//!
//! A property that may be absent or `null` is an `Option` as well. In bodies of `PATCH` and in merge patches, in what these
//! reach, and where [`Generator::with_explicit_null`] asks for it, it is an `Option<Option<_>>`: `Some(None)` sends `null`.
//!
//! What only answers hold (`readOnly`) is no property of a type that only requests have, and where both have the type it
//! is not demanded. What only requests hold is not demanded of an answer.
//!
//! Names that are taken get a number, in the order in which the operations reach their types: what is added to the end
//! of a document changes no name before it. What is left out, made less precise or renamed is named in a
//! [diagnostic](ops_runtime::spec::Diagnostic).
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod builder;
mod directory;
mod error;
mod generate;
mod lower;
mod module;
mod names;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod nearest;
mod output;
mod render;
#[doc(hidden)]
pub mod report;
mod select;
mod types;

pub use builder::{Builder, Module};
pub use error::Error;
pub use generate::{Generated, Generator};
pub use output::{is_generated, write_if_changed};
pub use types::Format;
