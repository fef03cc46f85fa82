//! Tool calls as durable jobs: tasks, which clients poll instead of waiting for a response.

mod ask;
mod config;
mod create;
mod follow;
mod list;
mod open_count;
mod pipe;
mod requests;
mod state;
pub(super) mod wire;

pub(super) use self::ask::JobPeer;
pub use self::config::{McpTasks, TaskSupport};
pub(super) use self::create::{Route, route};
pub(super) use self::pipe::Pipe;
pub(super) use self::requests::{custom, extension_cancel, extension_get, extension_update};
