//! The keys that are used; see the module's page.

/// Makes keys that begin alike.
#[derive(Debug, Clone)]
pub(super) struct Keys(pub(super) String);

impl Keys {
    /// The stream of requests for an operation.
    pub(super) fn requests(&self, operation: &str) -> String {
        [&self.0, ":call:", operation].concat()
    }

    /// The stream of what a caller is told.
    pub(super) fn caller(&self, id: &str) -> String {
        [&self.0, ":caller:", id].concat()
    }

    /// The stream of what a worker is told.
    pub(super) fn worker(&self, id: &str) -> String {
        [&self.0, ":worker:", id].concat()
    }

    /// The hash of what a worker serves, which is there as long as the worker is.
    pub(super) fn serves(&self, worker: &str) -> String {
        [&self.0, ":serves:", worker].concat()
    }

    /// The set of the workers.
    pub(super) fn workers(&self) -> String {
        [&self.0, ":workers"].concat()
    }

    /// The stream of the workers that have changed what they serve.
    pub(super) fn changes(&self) -> String {
        [&self.0, ":changes"].concat()
    }
}

/// The consumer group of all workers.
pub(super) const GROUP: &str = "workers";

/// The field of a frame, as JSON.
pub(super) const FRAME: &str = "frame";

/// The field of who has written an entry, with its numbers: an [`Author`](super::entry::Author).
pub(super) const FROM: &str = "from";
