//! Durable calls: a call that outlives its caller and its worker, is not done twice, and can be asked for tomorrow.

pub mod engine;
mod id;
pub mod record;
mod retry;

pub use self::id::{InvalidJobId, JobId};
pub use self::retry::RetryPolicy;
