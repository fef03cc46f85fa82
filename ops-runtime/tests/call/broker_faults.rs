//! Faults of brokers and of the ways to them, the same for NATS and Redis.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use ops_runtime::call::{CallHandler, Remote};
use ops_runtime::{CallError, CallOptions, ErrorCode};

use crate::harness::{LONG, eventually, limited};
use crate::operations::{Add, AddInput, COUNT, Count, CountInput, Probe, Wait, WaitInput, registry};
use crate::proxy::Proxy;
use crate::servers::Server;

/// A transport over a broker, one of whose participants may be anywhere.
pub(crate) trait Brokered: 'static {
    type Worker: Send;

    /// How many requests a worker takes of one caller at a time, if it refuses more: others wait for it.
    const TAKEN: Option<usize>;

    fn server() -> impl Future<Output = Server>;
    fn serve(address: SocketAddr, handler: CallHandler) -> impl Future<Output = Self::Worker>;
    fn remote(address: SocketAddr) -> impl Future<Output = Remote>;
    fn running(worker: &Self::Worker) -> usize;
}

/// A server, a worker and a caller, who reach the server each through a network that can fail.
struct Set<B: Brokered> {
    server: Server,
    to_worker: Proxy,
    to_caller: Proxy,
    worker: B::Worker,
    remote: Remote,
    probe: Arc<Probe>,
}

impl<B: Brokered> Set<B> {
    async fn start() -> Self {
        let server = B::server().await;
        let (to_worker, to_caller) = (Proxy::start(server.address()).await, Proxy::start(server.address()).await);
        let probe = Arc::new(Probe::default());
        let worker = B::serve(to_worker.address(), CallHandler::new(registry(&probe))).await;
        let remote = B::remote(to_caller.address()).await;
        let set = Self { server, to_worker, to_caller, worker, remote, probe };
        set.announced().await;
        set
    }

    async fn announced(&self) {
        eventually("the operations are announced", || self.remote.list().len() >= COUNT).await;
    }

    fn calls(&self, milliseconds: u64) -> Vec<tokio::task::JoinHandle<Result<String, CallError>>> {
        let call = |n: usize| {
            let remote = self.remote.clone();
            let input = WaitInput { key: n.to_string(), milliseconds };
            tokio::spawn(async move { Ok(remote.execute::<Wait>(input).await?.data) })
        };
        (0..100).map(call).collect()
    }

    /// Waits until a call is done again; meanwhile some may fail.
    async fn recovered(&self) {
        for n in 0..600 {
            let options = CallOptions::new().with_timeout(Duration::from_secs(5));
            match self.remote.execute_with::<Add>(AddInput { a: n, b: 1 }, options).await {
                Ok(sum) => {
                    assert_eq!(sum.data, n + 1);
                    return;
                }
                Err(error) => assert!(
                    [ErrorCode::Aborted, ErrorCode::OperationNotFound, ErrorCode::Timeout].contains(error.code()),
                    "{error}"
                ),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("calls are not done again");
    }

    async fn settled(&self) {
        eventually("no request is pending", || self.remote.in_flight() == 0).await;
        eventually("no task is left", || B::running(&self.worker) == 0).await;
        eventually("no handler is left", || self.probe.alive() == 0).await;
    }
}

/// What was answered must be right; what failed was given up.
async fn ended(calls: Vec<tokio::task::JoinHandle<Result<String, CallError>>>) -> usize {
    let mut failed = 0;
    for (n, call) in join_all(calls).await.into_iter().enumerate() {
        match call.unwrap() {
            Ok(key) => assert_eq!(key, n.to_string()),
            Err(error) => {
                assert_eq!(*error.code(), ErrorCode::Aborted, "{error}");
                failed += 1;
            }
        }
    }
    failed
}

pub(crate) async fn the_broker_is_killed_and_comes_back<B: Brokered>() {
    let mut set = Set::<B>::start().await;
    let mut items = set.remote.subscribe::<Count>(CountInput { to: u64::MAX }).await.unwrap();
    assert_eq!(items.next().await.unwrap().unwrap().data, 0);
    let calls = set.calls(600_000);
    eventually("all handlers run", || set.probe.alive() == 101).await;
    set.server.kill();
    // A call that begins while there is no broker.
    let remote = set.remote.clone();
    let begun = tokio::spawn(async move { remote.execute::<Add>(AddInput { a: 1, b: 1 }).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    set.server.restart().await;
    match begun.await.unwrap() {
        Ok(sum) => assert_eq!(sum.data, 2),
        Err(error) => {
            assert!([ErrorCode::Aborted, ErrorCode::OperationNotFound].contains(error.code()), "{error}");
        }
    }
    set.recovered().await;
    // Items may be missing, which is said; none that comes is out of order.
    let mut next = 1;
    while let Some(item) = items.next().await {
        match item {
            Ok(item) => assert_eq!(item.data, next),
            Err(error) => {
                assert_eq!(*error.code(), ErrorCode::Aborted, "{error}");
                break;
            }
        }
        next += 1;
    }
    drop(items);
    // Those that still run are given up, so that nothing is left.
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    drop(calls);
    set.settled().await;
    set.announced().await;
}

pub(crate) async fn a_worker_is_lost_without_a_word<B: Brokered>() {
    let set = Set::<B>::start().await;
    let calls = set.calls(600_000);
    eventually("all handlers run", || set.probe.alive() == 100).await;
    set.to_worker.stall();
    assert_eq!(ended(calls).await, 100);
    assert_eq!(set.remote.in_flight(), 0);
    // Another does what is asked from now on, though the first may be given something until it is missed.
    let probe = Arc::new(Probe::default());
    let other = B::serve(set.server.address(), CallHandler::new(registry(&probe))).await;
    set.recovered().await;
    // The first is there again, and hears that nobody waits.
    set.to_worker.resume();
    set.settled().await;
    assert_eq!(B::running(&other), 0);
}

pub(crate) async fn the_caller_is_cut_off<B: Brokered>() {
    let set = Set::<B>::start().await;
    let calls = set.calls(LONG);
    eventually("all handlers run", || set.probe.alive() == 100).await;
    set.to_caller.cut();
    // They end while the caller comes back.
    tokio::time::sleep(Duration::from_secs(1)).await;
    set.probe.let_go();
    // Answered or given up: none hangs, and none is answered twice.
    ended(calls).await;
    set.recovered().await;
    set.settled().await;
    assert!(set.probe.starts().values().all(|starts| *starts == 1));
}

pub(crate) async fn the_network_stalls<B: Brokered>() {
    let set = Set::<B>::start().await;
    set.to_caller.stall();
    let options = CallOptions::new().with_timeout(Duration::from_millis(500));
    let error = set.remote.execute_with::<Add>(AddInput { a: 1, b: 1 }, options).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::Timeout, "{error}");
    let calls = set.calls(1);
    tokio::time::sleep(Duration::from_millis(500)).await;
    set.to_caller.resume();
    ended(calls).await;
    set.recovered().await;
    set.settled().await;
}

pub(crate) async fn a_caller_goes_away<B: Brokered>() {
    let set = Set::<B>::start().await;
    let proxy = Proxy::start(set.server.address()).await;
    let other = B::remote(proxy.address()).await;
    eventually("the operations are announced", || other.list().len() >= COUNT).await;
    let calls: Vec<_> = (0..20)
        .map(|n: u32| {
            let (remote, input) = (other.clone(), WaitInput { key: n.to_string(), milliseconds: 600_000 });
            tokio::spawn(async move { remote.execute::<Wait>(input).await })
        })
        .collect();
    let items = other.subscribe::<Count>(CountInput { to: u64::MAX }).await.unwrap();
    eventually("all handlers run", || set.probe.alive() == 21).await;
    // Its process is gone, and its connection with it.
    drop(proxy);
    eventually("what it asked for is given up", || set.probe.alive() == 0).await;
    set.settled().await;
    set.recovered().await;
    drop((calls, items, other));
}

pub(crate) async fn a_client_floods<B: Brokered>() {
    const CALLS: usize = 20_000;
    let set = Set::<B>::start().await;
    let calls = (0..CALLS).map(|n| {
        let (remote, n) = (set.remote.clone(), i64::try_from(n).unwrap());
        async move {
            match remote.execute::<Add>(AddInput { a: n, b: 1 }).await {
                Ok(sum) => {
                    assert_eq!(sum.data, n + 1);
                    true
                }
                Err(error) => {
                    let limit = error.details()["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok());
                    assert_eq!((error.code(), limit), (&ErrorCode::ExecutionError, B::TAKEN), "{error}");
                    false
                }
            }
        }
    });
    let done = join_all(calls).await.into_iter().filter(|is_done| *is_done).count();
    assert!(done >= B::TAKEN.unwrap_or(CALLS), "only {done} are done");
    set.settled().await;
}

/// Makes a test of every fault over one broker.
macro_rules! faults {
    ($name:ident, $broker:ty) => {
        mod $name {
            crate::broker_faults::faults!(@cases $broker; the_broker_is_killed_and_comes_back,
                a_worker_is_lost_without_a_word, the_caller_is_cut_off, the_network_stalls, a_caller_goes_away,
                a_client_floods);
        }
    };
    (@cases $broker:ty; $($case:ident),+) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            crate::broker_faults::run(crate::broker_faults::$case::<$broker>()).await;
        }
    )+};
}
pub(crate) use faults;

pub(crate) async fn run(case: impl Future<Output = ()>) {
    limited(case).await;
}

#[cfg(feature = "nats")]
faults!(nats, crate::nats::NatsHarness);
#[cfg(feature = "redis")]
faults!(redis, crate::redis::RedisHarness);
