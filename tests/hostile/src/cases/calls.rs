//! Peers of the call protocol that flood, stall or lie: over WebSocket, NATS and Redis.

use crate::Case;

mod brokers;
mod doors;
mod floods;
mod serving;
mod time;

pub(crate) use serving::registry;

/// All of them.
pub(super) fn cases() -> Vec<Case> {
    [floods::CASES, doors::CASES, time::CASES, brokers::CASES].concat()
}
