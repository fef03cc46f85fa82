//! Operations as TypeScript: for models that read what they can call, and for people who write scripts and web clients.
//!
//! [`Names`] gives each operation a name, `ops.<namespace>.<operation>`. [`describe`] writes one operation as a function
//! with its types, short or whole. [`declarations`] writes all of them as a file `.d.ts`.
//!
//! ```
//! use ops_runtime::spec::{OperationSpec, Schema};
//! use ops_runtime::typescript::{Detail, Names, describe};
//!
//! static SHOW: OperationSpec = OperationSpec::query("shop.show-pet")
//!     .with_description("Shows a pet. It must be in the shop.")
//!     .with_input(Schema::text(r#"{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}"#))
//!     .with_output(Schema::text(r#"{"type":"object","properties":{"name":{"type":"string"}}}"#));
//! let names = Names::new([&SHOW.id]);
//! assert_eq!(
//!     describe(&SHOW, Detail::Whole, &names),
//!     r#"declare namespace ops.shop {
//!   /** Shows a pet. It must be in the shop. */
//!   function show_pet(input: { id: number }): Promise<{ name?: string }>;
//! }
//! "#
//! );
//! ```

mod budget;
mod declare;
mod describe;
mod doc;
mod held;
mod lower;
mod name;
mod policy;
mod print;
mod scope;
mod text;
mod tree;

pub use self::name::{Name, Names};
pub use self::policy::Detail;
use crate::OperationSpec;

/// Describes an operation as a function of TypeScript, with the types that it refers to.
///
/// The text is a declaration by itself, which the compiler accepts. What is cut is told in the function's comment. An
/// operation that `names` does not know gets the name that it would have alone.
pub fn describe(spec: &OperationSpec, detail: Detail, names: &Names) -> String {
    describe::describe(spec, detail, names)
}

/// Declares operations in TypeScript: the text of a module `.d.ts`.
///
/// It declares the functions `ops.<namespace>.<operation>`, which programs call, with the types that they share. And it
/// exports `Operations`, which maps the id of each operation to its `input` and `output`, or, of a subscription, its `item`.
/// With that, a client of the HTTP server (`ops_runtime::serve`) is typed:
///
#[doc = concat!("```ts\n", include_str!("typescript/client.ts"), "```")]
///
/// The order of the operations does not matter.
///
/// ```
/// use ops_runtime::spec::{OperationSpec, Schema};
/// use ops_runtime::typescript::{Names, declarations};
///
/// static ADD: OperationSpec = OperationSpec::query("math.add")
///     .with_input(Schema::text(r#"{"type":"array","items":{"type":"number"}}"#))
///     .with_output(Schema::text(r#"{"type":"number"}"#));
/// let text = declarations([&ADD], &Names::new([&ADD.id]));
/// assert!(text.contains("function add(input: number[]): Promise<number>;"));
/// assert!(text.contains(r#""math.add": Call<typeof ops.math.add>;"#));
/// ```
pub fn declarations<'a>(specs: impl IntoIterator<Item = &'a OperationSpec>, names: &Names) -> String {
    declare::declarations(specs.into_iter().collect(), names)
}
