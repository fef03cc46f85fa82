//! What every transport has to do.

pub(crate) mod calls;
pub(crate) mod limits;
pub(crate) mod subscriptions;
pub(crate) mod workers;
