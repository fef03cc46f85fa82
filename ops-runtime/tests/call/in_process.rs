//! The suite within the process.

use ops_runtime::Identity;
use ops_runtime::call::{CallHandler, InProcess, Remote, Worker};

use crate::harness::{Harness, Working};

pub(crate) struct InProcessHarness(InProcess);

impl Harness for InProcessHarness {
    const NAME: &'static str = "in-process";

    type Worker = Worker;

    async fn start() -> Self {
        Self(InProcess::new())
    }

    async fn worker(&self, handler: CallHandler) -> Worker {
        self.0.serve(handler)
    }

    async fn caller(&self) -> Remote {
        self.0.remote()
    }

    fn identity_of(claimed: Option<Identity>) -> Option<Identity> {
        claimed
    }
}

impl Working for Worker {
    fn running(&self) -> usize {
        Self::running(self)
    }

    async fn announce(&self) {
        Self::announce(self);
    }

    async fn stop(self) {
        Self::stop(self).await;
    }

    async fn kill(self) {
        drop(self);
    }
}
