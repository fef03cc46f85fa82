//! What the suite needs to know of a transport.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ops_runtime::access::Identity;
use ops_runtime::call::{CallHandler, Remote};

use crate::operations::Probe;

/// Longer than any case takes, in milliseconds.
pub(crate) const LONG: u64 = 600_000;

/// A transport that is up, with its servers if it has any.
pub(crate) trait Harness: Send + Sync + 'static {
    /// What it is called in reports.
    const NAME: &'static str;

    type Worker: Working;

    /// Starts whatever the transport needs.
    fn start() -> impl Future<Output = Self> + Send;

    /// Starts a worker. The transport says of callers that they are [`ANN`](ann), if it authenticates them itself.
    fn worker(&self, handler: CallHandler) -> impl Future<Output = Self::Worker> + Send;

    /// A caller.
    fn caller(&self) -> impl Future<Output = Remote> + Send;

    /// Does some harm, of a kind that `choice` picks, and makes it good again; for the run of random faults.
    fn disturb(&self, choice: u64) -> impl Future<Output = ()> + Send {
        let _ = choice;
        std::future::ready(())
    }

    /// Who a caller is for a worker, when it says that it is `claimed`.
    fn identity_of(claimed: Option<Identity>) -> Option<Identity>;
}

/// A worker of a transport.
pub(crate) trait Working: Send + 'static {
    /// How many requests it runs.
    fn running(&self) -> usize;

    /// Announces what its registry has got or lost.
    fn announce(&self) -> impl Future<Output = ()> + Send;

    /// Lets it finish what it runs.
    fn stop(self) -> impl Future<Output = ()> + Send;

    /// Ends it as a crash would.
    fn kill(self) -> impl Future<Output = ()> + Send;
}

/// Whoever is allowed to do everything.
pub(crate) fn ann() -> Identity {
    Identity::new("ann").with_scope("vault:open")
}

/// A transport with one worker that serves the test operations, and a caller.
pub(crate) struct Set<H: Harness> {
    pub(crate) harness: H,
    pub(crate) worker: H::Worker,
    pub(crate) remote: Remote,
    pub(crate) probe: Arc<Probe>,
}

impl<H: Harness> Set<H> {
    pub(crate) async fn start() -> Self {
        let harness = H::start().await;
        let probe = Arc::new(Probe::default());
        let worker = harness.worker(CallHandler::new(crate::operations::registry(&probe))).await;
        let remote = harness.caller().await;
        eventually("the operations are announced", || remote.list().len() >= crate::operations::COUNT).await;
        Self { harness, worker, remote, probe }
    }

    /// Checks that nothing is left of the calls so far: no pending request, no task, no handler.
    pub(crate) async fn settled(&self) {
        eventually("no request is pending", || self.remote.in_flight() == 0).await;
        eventually("no task is left", || self.worker.running() == 0).await;
        eventually("no handler is left", || self.probe.alive() == 0).await;
    }
}

/// Starts another worker with operations and a probe of its own.
pub(crate) async fn another<H: Harness>(harness: &H) -> (H::Worker, Arc<Probe>) {
    let probe = Arc::new(Probe::default());
    (harness.worker(CallHandler::new(crate::operations::registry(&probe))).await, probe)
}

/// Waits for a condition; the machine may be slow.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("after 30 s still not: {what}");
}

/// Stops something that has to wait for its handlers, and lets them end meanwhile.
pub(crate) async fn stopped(probe: &Probe, stop: impl Future<Output = ()>) {
    let end = async {
        // Time for what does not wait for them to drop them.
        tokio::time::sleep(Duration::from_millis(300)).await;
        probe.let_go();
    };
    tokio::join!(stop, end);
}

/// Runs a case, which must not hang.
pub(crate) async fn limited(case: impl Future<Output = ()>) {
    tokio::time::timeout(Duration::from_secs(120), case).await.expect("the case hangs");
}
