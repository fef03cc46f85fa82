//! Three workers behind a broker, each a process of its own: `cargo run -p workers -- --transport nats` (or `redis`).
//!
//! The first process calls; it starts the workers, and a broker unless `--url` says where one is. Midway it kills a worker.

use std::collections::BTreeMap;
use std::error::Error;
use std::process::Stdio;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{Stream, StreamExt, stream};
use ops_runtime::adapter::Registration;
use ops_runtime::call::nats::{Nats, NatsConfig};
use ops_runtime::call::redis::{Redis, RedisConfig};
use ops_runtime::call::{CallHandler, Remote};
use ops_runtime::{ErrorCode, Registry, operation};
use tokio::process::{Child, Command};

/// Resizes a picture, which takes a while; says which process did it.
#[operation(namespace = "pictures")]
async fn resize(picture: u32, width: u32) -> u32 {
    tokio::time::sleep(Duration::from_millis(u64::from(width + picture % 7))).await;
    std::process::id()
}

/// Tells how far the work is.
#[operation(namespace = "pictures")]
async fn progress(steps: u32) -> impl Stream<Item = String> {
    stream::iter(1..=steps).map(move |step| format!("{} %", step * 100 / steps))
}

/// The transport and where its broker is; nothing below depends on which it is.
#[derive(Clone)]
struct Broker {
    transport: String,
    url: String,
}

impl Broker {
    async fn remote(&self) -> Result<Remote, Box<dyn Error>> {
        Ok(match &*self.transport {
            "redis" => Redis::new(&self.url, RedisConfig::new())?.remote().await?,
            _ => Nats::connect(&self.url, NatsConfig::new()).await?.remote().await?,
        })
    }

    /// Serves until the process is killed.
    async fn serve(&self) -> Result<(), Box<dyn Error>> {
        let registry = Registry::new();
        registry.register_all([Registration::from(Resize), Progress.into()])?;
        let handler = CallHandler::new(registry);
        if self.transport == "redis" {
            let _worker = Redis::new(&self.url, RedisConfig::new())?.serve(handler).await?;
            return std::future::pending().await;
        }
        let _worker = Nats::connect(&self.url, NatsConfig::new()).await?.serve(handler).await?;
        std::future::pending().await
    }

    /// Starts a broker of its own, which ends with this process.
    async fn start(transport: &str) -> Result<(Self, Child), Box<dyn Error>> {
        // Another process may take the port before the broker does: then it ends, and another port is tried.
        for _ in 0..5 {
            if let Some(started) = Self::start_once(transport).await? {
                return Ok(started);
            }
        }
        Err("the broker ends at once: start it yourself, and give --url".into())
    }

    /// Starts a broker at a free port; `None` if it ends.
    async fn start_once(transport: &str) -> Result<Option<(Self, Child)>, Box<dyn Error>> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
        let mut command = match transport {
            "redis" => Command::new("redis-server"),
            // As `tests/peers/install` has it, or wherever it is.
            _ => Command::new(
                ["tests/peers/.venv/bin/nats-server", "nats-server"]
                    .into_iter()
                    .find(|path| std::path::Path::new(path).exists())
                    .unwrap_or("nats-server"),
            ),
        };
        match transport {
            "redis" => command.args(["--bind", "127.0.0.1", "--save", "", "--port", &port]),
            _ => command.args(["--addr", "127.0.0.1", "--port", &port]),
        };
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child =
            quiet.spawn().map_err(|error| format!("no broker ({error}): run tests/peers/install, or give --url"))?;
        loop {
            let is_open = tokio::net::TcpStream::connect(format!("127.0.0.1:{port}")).await.is_ok();
            // If another process has opened the port, the broker ends soon.
            tokio::time::sleep(Duration::from_millis(100)).await;
            if child.try_wait()?.is_some() {
                return Ok(None);
            }
            if is_open {
                let url = format!("{transport}://127.0.0.1:{port}");
                return Ok(Some((Self { transport: transport.to_owned(), url }, child)));
            }
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--transport", transport @ ("nats" | "redis")] => {
            let (broker, _server) = Broker::start(transport).await?;
            call(broker).await
        }
        ["--transport", transport @ ("nats" | "redis"), "--url", url] => {
            call(Broker { transport: transport.to_owned(), url: url.to_owned() }).await
        }
        ["worker", transport, url] => Broker { transport: transport.to_owned(), url: url.to_owned() }.serve().await,
        _ => Err("usage: workers --transport nats|redis [--url URL]".into()),
    }
}

async fn call(broker: Broker) -> Result<(), Box<dyn Error>> {
    let start = || {
        let program = std::env::current_exe()?;
        Command::new(program).args(["worker", &broker.transport, &broker.url]).kill_on_drop(true).spawn()
    };
    let mut workers = [start()?, start()?, start()?];
    let remote = broker.remote().await?;
    let announced = async {
        while remote.list().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), announced).await;
    waited.map_err(|_| "no worker has announced its operations within 60 s")?;
    tokio::time::sleep(Duration::from_millis(500)).await;

    let resize = |width| {
        join_all((0..300).map({
            let remote = &remote;
            move |picture| remote.execute::<Resize>((picture, width))
        }))
    };
    let mut shares = BTreeMap::<u32, u32>::new();
    for done in resize(5).await {
        *shares.entry(done?.data).or_default() += 1;
    }
    println!("300 pictures by {} processes: {:?}", shares.len(), shares.values().collect::<Vec<_>>());

    let mut steps = remote.subscribe::<Progress>(4).await?;
    while let Some(step) = steps.next().await {
        println!("progress: {}", step?.data);
    }

    // A worker dies with calls in flight: what it had started fails, the others go on.
    let (first, ..) = workers.split_first_mut().ok_or("no worker")?;
    let (all, _) = tokio::join!(resize(2_000), async {
        tokio::time::sleep(Duration::from_millis(1_000)).await;
        first.kill().await
    });
    let failed = all.iter().filter(|one| one.as_ref().is_err_and(|error| *error.code() == ErrorCode::Aborted)).count();
    let done = all.iter().filter(|one| one.is_ok()).count();
    println!("a worker was killed: {done} done, {failed} aborted, {} pending", remote.in_flight());
    if done + failed == 300 { Ok(()) } else { Err("a call failed otherwise".into()) }
}
