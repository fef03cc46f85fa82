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
//! A module has a type and a static spec for each operation, a type for each definition that the operations reach, and
//! `operations()`, the list of all specs. For webhooks and callbacks there is a module `webhooks` with a type for each, which
//! `ops_runtime::webhooks::decode` reads. It is a plain module body that compiles without warnings wherever it is
//! included. Its bytes depend only on the document and this crate.
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
//! | `object` with properties | a struct; other properties are kept in a field `extra` if the schema mentions them |
//! | `object` without properties | `BTreeMap<String, _>`; with `additionalProperties: false`, an empty struct |
//! | `array`, `prefixItems` | `Vec<_>`, a tuple |
//! | `string` | `String`; `Body` for `format: binary`; a type for dates, UUIDs and URLs by [`Generator::with_format`] |
//! | `integer` | `i64`; `i32`, `u32` or `u64` if `format` names it; `i32` for 8 and 16 bits; `i64` if `minimum` or `maximum` exceeds an `i32` or `u32`; `u64` if `minimum` is at least 0 and `maximum` exceeds `i64` |
//! | `number` | `f64`; an integer, as above, if `format` names one |
//! | `enum`, `const` | an enum that keeps unknown values |
//! | `oneOf`, `anyOf`, `type: [..]` | `Option<_>` for `null`, an enum by tag, or an enum by shape |
//! | `allOf` | one type that satisfies all |
//! | `$ref` | the type of the definition, boxed where it would hold itself |
//! | anything else | any JSON: `serde_json::Value` |
//!
//! A property that may be absent is an `Option`. In requests, `None` is not sent, and a default is only documented: the
//! server applies it. In types that only responses have, an absent property gets its default, if that fits the type.
//!
//! A property that may be absent or `null` is an `Option`, too. In bodies of `PATCH` and merge patches, in types that
//! these reach, and if [`Generator::with_explicit_null`] says so, it is `Option<Option<_>>`: `Some(None)` sends `null`.
//!
//! A `readOnly` property is left out of types that only requests have, and optional in types that both sides have. A
//! `writeOnly` property is optional in responses.
//!
//! A [`Generator`] has settings for types: [types of your own](Generator::with_type) in place of schemas, other
//! [names](Generator::with_renamed_type), [derives](Generator::with_derive), and [schemas](Generator::with_schema) that no
//! operation has.
//!
//! Names that are taken get a number, in the order in which the operations reach their types. An operation is named before
//! the schemas that it reaches, and after those that earlier operations reach. Additions at the end of a document do not
//! change earlier names, with three exceptions. The traits `Methods` and `Server` get a number if a schema has the name. The
//! variant for unknown values is `Other`, but `Unknown` if the document has a value of that name. Nested schemas that are
//! alike share a type, until an added operation uses one of them otherwise: it receives what was only sent, sends what was
//! only received, or sends explicit nulls. If they have defaults or `readOnly`, `writeOnly` or nullable properties, that one
//! gets a type of its own. A [diagnostic](ops_runtime::spec::Diagnostic) names everything that is left out, made less precise
//! or renamed.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod builder;
#[cfg(feature = "config")]
#[doc(hidden)]
pub mod config;
mod declared_errors;
mod derivable;
mod derive;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod described;
mod directory;
mod error;
#[doc(hidden)]
pub mod folder {
    //! The files of a folder, for the command.
    pub use crate::directory::{Files, Kind, check_namespace, files, kind};
}
mod generate;
#[cfg(feature = "overlays")]
mod jsonpath;
mod kinds;
mod lower;
mod module;
mod names;
mod only;
mod output;
#[cfg(feature = "overlays")]
mod overlay;
mod path;
mod rename;
mod render;
#[doc(hidden)]
pub mod report;
#[cfg(test)]
#[path = "../../tests/src/seeded.rs"]
mod seeded;
mod select;
mod settings;
mod types;

pub use builder::{Builder, Module};
pub use error::Error;
pub use generate::{Generated, Generator};
pub use output::{is_generated, write_if_changed};
pub use types::Format;
