//! The cases, by topic.

pub(crate) mod cancel;
pub(crate) mod dead;
pub(crate) mod engine;
pub(crate) mod keys;
pub(crate) mod retries;
pub(crate) mod schedules;
pub(crate) mod steps;
pub(crate) mod submit;
pub(crate) mod times;
pub(crate) mod workers;
