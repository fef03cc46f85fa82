//! The suite over NATS, with a server of its own for each case.

use std::time::Duration;

use ops_runtime::Identity;
use ops_runtime::call::nats::{Nats, NatsConfig, NatsWorker};
use ops_runtime::call::{CallHandler, Origin, Remote};

use crate::harness::{Harness, Working};
use crate::proxy::Proxy;
use crate::servers::{Remotely, Server};

/// Quicker than usual, and still slow enough for a busy machine.
pub(crate) fn config() -> NatsConfig {
    NatsConfig::new()
        .with_origin(Origin::trusted())
        .with_heartbeat(Duration::from_millis(300))
        .with_lost_after(Duration::from_secs(4))
}

pub(crate) async fn connect(address: std::net::SocketAddr) -> Nats {
    Nats::connect(&format!("nats://{address}"), config()).await.unwrap()
}

pub(crate) struct NatsHarness(pub(crate) Server);

impl Harness for NatsHarness {
    const NAME: &'static str = "nats";

    type Worker = Remotely<NatsWorker>;

    async fn start() -> Self {
        Self(Server::nats(&[]).await)
    }

    async fn worker(&self, handler: CallHandler) -> Self::Worker {
        let proxy = Proxy::start(self.0.address()).await;
        let worker = connect(proxy.address()).await.serve(handler).await.unwrap();
        Remotely { worker, proxy }
    }

    async fn caller(&self) -> Remote {
        connect(self.0.address()).await.remote().await.unwrap()
    }

    fn identity_of(claimed: Option<Identity>) -> Option<Identity> {
        claimed
    }
}

impl Working for Remotely<NatsWorker> {
    fn running(&self) -> usize {
        self.worker.running()
    }

    async fn announce(&self) {
        self.worker.announce().await.unwrap();
    }

    async fn stop(self) {
        self.worker.stop().await;
    }

    async fn kill(self) {
        drop(self.proxy);
        drop(self.worker);
    }
}
