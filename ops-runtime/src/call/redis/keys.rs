//! The keys that are used; see the module's page.

/// Makes keys with a prefix.
#[derive(Debug, Clone)]
pub(super) struct Keys(pub(super) String);

impl Keys {
    /// The stream of requests for an operation.
    pub(super) fn requests(&self, operation: &str) -> String {
        [&self.0, ":call:", operation].concat()
    }

    /// The stream of frames to a caller.
    pub(super) fn caller(&self, id: &str) -> String {
        [&self.0, ":caller:", id].concat()
    }

    /// The stream of frames to a worker.
    pub(super) fn worker(&self, id: &str) -> String {
        [&self.0, ":worker:", id].concat()
    }

    /// The hash of a worker's operations, which expires with the worker.
    pub(super) fn serves(&self, worker: &str) -> String {
        [&self.0, ":serves:", worker].concat()
    }

    /// The set of the workers.
    pub(super) fn workers(&self) -> String {
        [&self.0, ":workers"].concat()
    }

    /// The stream of the workers whose operations have changed.
    pub(super) fn changes(&self) -> String {
        [&self.0, ":changes"].concat()
    }
}

/// The consumer group of all workers.
pub(super) const GROUP: &str = "workers";

/// The field of a frame, as JSON.
pub(super) const FRAME: &str = "frame";

/// The field of an entry's author, with its numbers: an [`Author`](super::entry::Author).
pub(super) const FROM: &str = "from";
