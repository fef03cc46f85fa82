//! The suite over Redis, with a server of its own for each case.

use std::time::Duration;

use ops_runtime::Identity;
use ops_runtime::call::redis::{Redis, RedisConfig, RedisWorker};
use ops_runtime::call::{CallHandler, Origin, Remote};

use crate::harness::{Harness, Working};
use crate::proxy::Proxy;
use crate::servers::{Remotely, Server};

/// Quicker than usual, and still slow enough for a busy machine.
pub(crate) fn config() -> RedisConfig {
    RedisConfig::new()
        .with_origin(Origin::trusted())
        .with_heartbeat(Duration::from_millis(300))
        .with_lost_after(Duration::from_secs(3))
        .with_max_message(256 << 10)
}

pub(crate) fn at(address: std::net::SocketAddr) -> Redis {
    Redis::new(&format!("redis://{address}"), config()).unwrap()
}

pub(crate) struct RedisHarness(pub(crate) Server);

impl Harness for RedisHarness {
    const NAME: &'static str = "redis";

    type Worker = Remotely<RedisWorker>;

    async fn start() -> Self {
        Self(Server::redis(&[]).await)
    }

    async fn worker(&self, handler: CallHandler) -> Self::Worker {
        let proxy = Proxy::start(self.0.address()).await;
        let worker = at(proxy.address()).serve(handler).await.unwrap();
        Remotely { worker, proxy }
    }

    async fn caller(&self) -> Remote {
        at(self.0.address()).remote().await.unwrap()
    }

    fn identity_of(claimed: Option<Identity>) -> Option<Identity> {
        claimed
    }
}

impl Working for Remotely<RedisWorker> {
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
