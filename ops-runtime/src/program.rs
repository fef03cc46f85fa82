//! Running untrusted JavaScript programs, such as those that models write.
//!
//! A program is the body of an async function. It has `ops.namespace.operation(input)` for each of its operations,
//! `input`, `console`, and `search` and `describe` if the host has them. It has nothing else: no network, no files, no
//! modules, no timers, and a clock that advances only when it gets the results of calls. It runs in an engine of its
//! own, in memory of its own, under [`Limits`].
//!
//! Values are passed as JSON. Whole numbers of 64 bits are exact: those beyond 2^53 are `BigInt`s in a program. A call
//! with one of them as a number, which JavaScript has rounded, is an error. A value that cannot be JSON, such as `NaN` or
//! a `Map`, is an error of the call or of the program. A caught error becomes an object with its name, message, code and
//! details.
//!
//! ```
//! # #[cfg(feature = "macros")] mod example {
//! use ops_runtime::program::{CallerHost, Functions, Outcome, Program, Sandbox};
//! use ops_runtime::access::CallPolicy;
//! use ops_runtime::{Registry, operation};
//! use serde_json::json;
//!
//! /// The price of a pet.
//! #[operation(namespace = "shop", kind = query)]
//! async fn price(pet: String) -> i64 {
//!     if pet == "Rex" { 20 } else { 5 }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = Registry::new();
//! registry.register(Price)?;
//! let specs = registry.list();
//! let host = CallerHost::new(registry, specs.iter().map(|spec| &**spec), &CallPolicy::new());
//!
//! let functions: Functions = [("shop", "price", "shop.price")].into_iter().collect();
//! let source = "
//!     const prices = await Promise.all(input.map(pet => ops.shop.price({ pet })));
//!     return prices.reduce((sum, price) => sum + price, 0);
//! ";
//! let program = Program::new(source, functions).with_input(json!(["Rex", "Tom"]));
//! let report = Sandbox::default().run(&program, &host).await;
//! assert!(matches!(report.outcome, Outcome::Done(sum) if sum == 25));
//! # Ok(()) }
//! # }
//! # #[cfg(feature = "macros")] example::main().unwrap();
//! ```
//!
//! # Approval
//!
//! A [`Host`] decides for each call if it is made, refused, or needs approval:
//! [`CallPolicy`](crate::access::CallPolicy) does so by patterns and kinds. A program that needs approval stops
//! ([`Outcome::Waiting`]), after the calls in flight have ended. With the answers in its [`Journal`],
//! [`Sandbox::resume`] runs it again from its start. Calls with a result in the journal are not made again; about the
//! others, the host decides anew. With a [`JournalStore`], this works across processes as well: [`Sandbox::run_stored`].

mod engine;
mod exact;
mod functions;
mod guest;
mod host;
mod journal;
mod late;
mod limits;
mod outcome;
mod run;
mod sandbox;
mod store;

pub use self::functions::Functions;
pub use self::host::{CallerHost, Describe, Host, Search};
pub use self::journal::{InvalidJournal, Journal, UnknownAsk};
pub use self::limits::Limits;
pub use self::outcome::{Ask, Failure, Log, Outcome, Reason, Report, Waiting};
pub use self::sandbox::{Program, Sandbox};
pub use self::store::{FolderStore, Hold, JournalStore, MemoryStore, StoredJournal};
