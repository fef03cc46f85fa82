//! The keys that are used; see the module's page.

/// Makes keys that begin alike.
#[derive(Debug, Clone)]
pub(super) struct Keys(pub(super) String);

impl Keys {
    /// The stream of requests for an operation.
    pub(super) fn requests(&self, operation: &str) -> String {
        format!("{}:call:{operation}", self.0)
    }

    /// The stream of what a caller is told.
    pub(super) fn caller(&self, id: &str) -> String {
        format!("{}:caller:{id}", self.0)
    }

    /// The stream of what a worker is told.
    pub(super) fn worker(&self, id: &str) -> String {
        format!("{}:worker:{id}", self.0)
    }

    /// The hash of what a worker serves, which is there as long as the worker is.
    pub(super) fn serves(&self, worker: &str) -> String {
        format!("{}:serves:{worker}", self.0)
    }

    /// The set of the workers.
    pub(super) fn workers(&self) -> String {
        format!("{}:workers", self.0)
    }

    /// The stream of the workers that have changed what they serve.
    pub(super) fn changes(&self) -> String {
        format!("{}:changes", self.0)
    }
}

/// The consumer group of all workers.
pub(super) const GROUP: &str = "workers";

/// The field of a frame, as JSON.
pub(super) const FRAME: &str = "frame";

/// The field of who has sent an entry.
pub(super) const FROM: &str = "from";

/// The field of the number that an event has among those about its request.
pub(super) const NUMBER: &str = "n";

/// The field of the number that an entry has among those of its sender.
pub(super) const SEQUENCE: &str = "seq";
