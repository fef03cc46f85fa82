//! Floods: many hostile connections at once to a server in a process of its own, beside honest ones whose calls are timed.
//!
//! A [`Target`] is a kind of server: how it serves, what an honest client does, and the attacks on it. Another kind takes
//! part by an implementation and a line in the program `floods`.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, join_all};

pub mod hub;

/// A kind of server that is flooded.
pub trait Target: 'static {
    /// Its name on the command line.
    const NAME: &'static str;

    /// A client that behaves.
    type Honest: Send + 'static;

    /// Serves on a free port until the process ends.
    fn serve() -> impl Future<Output = Result<SocketAddr, String>> + Send;

    /// Connects an honest client.
    fn connect(address: SocketAddr) -> impl Future<Output = Result<Self::Honest, String>> + Send;

    /// One call of an honest client.
    fn call(client: &Self::Honest) -> impl Future<Output = Result<(), String>> + Send;

    /// The attacks, in turn over the hostile connections.
    fn attacks() -> &'static [Attack];
}

/// What a hostile connection does. It is begun again when it ends.
pub struct Attack {
    /// Its name.
    pub name: &'static str,
    /// Attacks once.
    pub run: fn(SocketAddr) -> BoxFuture<'static, ()>,
}

/// How much of each there is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Hostile connections.
    pub hostile: usize,
    /// Honest clients.
    pub honest: usize,
    /// How long the calls are timed, without and with the attack each.
    pub time: Duration,
    /// What the names of the attacks have to hold; empty for all of them.
    pub only: &'static str,
}

/// What honest clients saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// How long calls took, in order.
    times: Vec<Duration>,
    /// Calls that failed, and why the last of them did.
    pub failed: usize,
    /// Why the last of them did.
    pub why: String,
}

impl Seen {
    /// The time within which so many of a hundred calls were answered.
    pub fn percentile(&self, of_hundred: usize) -> Duration {
        let at = (self.times.len() * of_hundred / 100).min(self.times.len().saturating_sub(1));
        self.times.get(at).copied().unwrap_or_default()
    }

    /// How many calls were answered.
    pub fn answered(&self) -> usize {
        self.times.len()
    }
}

/// What came of a flood.
#[derive(Debug)]
pub struct Report {
    /// Without the attack.
    pub before: Seen,
    /// Beside it.
    pub during: Seen,
    /// The memory of the server before and at most, in MB.
    pub megabytes: [f64; 2],
    /// Its heap before and after, in MB: what is resident is also what the allocator keeps for later.
    pub heap: [f64; 2],
}

impl Report {
    /// True if the server has given back what the attack took, but for what a few connections hold that are about to end.
    pub fn gave_back(&self) -> bool {
        self.heap[1] <= self.heap[0] + KEPT
    }
}

/// How long an honest call may take. It bounds calls that are never answered: how fast the others are, [`Seen`] says.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many MB more than before the attack the heap may have after it.
const KEPT: f64 = 8.0;

/// A process that is ended with its parent's interest in it.
struct Process(Child);

/// The server, which says the size of its heap as often as it is asked.
struct Server {
    process: Process,
    asked: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Server {
    /// A line that it says.
    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        self.said.read_line(&mut line).map_err(|error| error.to_string())?;
        Ok(line.trim().to_owned())
    }

    /// The size of its heap, in MB.
    fn heap(&mut self) -> Result<f64, String> {
        writeln!(self.asked).map_err(|error| error.to_string())?;
        let line = self.line()?;
        let bytes: f64 = line.parse().map_err(|_| format!("the server says `{line}`"))?;
        Ok(bytes / f64::from(1 << 20))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    /// The memory that it holds, in MB.
    fn megabytes(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.split_whitespace().next().and_then(|field| field.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
    }
}

/// Runs the server in a process, until its parent ends it; it says the size of its heap for each line that it gets.
///
/// # Errors
/// If it cannot serve.
pub async fn serve<T: Target>(heap: fn() -> usize) -> Result<(), String> {
    println!("{}", T::serve().await?);
    std::thread::spawn(move || std::io::stdin().lines().for_each(|_| println!("{}", heap())));
    std::future::pending::<()>().await;
    Ok(())
}

/// Attacks with so many connections, until the process is ended: in all ways, or in those whose name holds a text.
pub async fn attack<T: Target>(address: SocketAddr, connections: usize, only: &str) {
    let attacks: Vec<&Attack> = T::attacks().iter().filter(|attack| attack.name.contains(only)).collect();
    let each = (0..connections).zip(attacks.into_iter().cycle()).map(|(_, attack)| async move {
        loop {
            (attack.run)(address).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    join_all(each.map(tokio::spawn)).await;
}

/// Times honest calls, with a short pause between two of a client.
async fn calls<T: Target>(clients: Vec<T::Honest>, time: Duration) -> (Vec<T::Honest>, Seen) {
    let until = Instant::now() + time;
    let each = clients.into_iter().map(|client| async move {
        let mut seen = Seen::default();
        while Instant::now() < until {
            let began = Instant::now();
            let called = futures_util::FutureExt::boxed(T::call(&client));
            match tokio::time::timeout(PATIENCE, called).await {
                Ok(Ok(())) => seen.times.push(began.elapsed()),
                Ok(Err(why)) => (seen.failed, seen.why) = (seen.failed + 1, why),
                Err(_) => (seen.failed, seen.why) = (seen.failed + 1, format!("no answer within {PATIENCE:?}")),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        (client, seen)
    });
    let mut all = Seen::default();
    let mut clients = Vec::new();
    for (client, seen) in join_all(each).await {
        clients.push(client);
        all.times.extend(seen.times);
        all.failed += seen.failed;
        all.why = if seen.failed > 0 { seen.why } else { all.why };
    }
    all.times.sort_unstable();
    (clients, all)
}

/// Floods a server, both in processes of this program's own, and times honest calls beside it.
///
/// # Errors
/// If the processes cannot be run, or honest clients cannot connect.
pub async fn flood<T: Target>(program: &str, size: Size) -> Result<Report, String> {
    let mut process = Command::new(program)
        .args([T::NAME, "serve"])
        .env("MALLOC_ARENA_MAX", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{program}: {error}"))?;
    let (Some(asked), Some(said)) = (process.stdin.take(), process.stdout.take()) else {
        return Err("the server has no input and output".to_owned());
    };
    let mut server = Server { process: Process(process), asked, said: BufReader::new(said) };
    let line = server.line()?;
    let address: SocketAddr = line.parse().map_err(|_| format!("the server says `{line}`"))?;
    let mut clients = Vec::new();
    for _ in 0..size.honest {
        clients.push(T::connect(address).await?);
    }
    // The first calls make what later ones find.
    let (clients, _) = calls::<T>(clients, size.time / 5).await;
    let (megabytes, heap) = (server.process.megabytes(), server.heap()?);
    let (clients, before) = calls::<T>(clients, size.time).await;

    // Of less priority than the server, for it runs on other machines elsewhere.
    let attacker = Command::new("nice")
        .args(["-n", "19", program, T::NAME, "attack", &address.to_string(), &size.hostile.to_string(), size.only])
        .stderr(Stdio::null())
        .spawn()
        .map(Process)
        .map_err(|error| format!("nice: {error}"))?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let watching = async {
        let mut most: f64 = 0.0;
        while stopped.try_recv() == Err(tokio::sync::oneshot::error::TryRecvError::Empty) {
            most = most.max(server.process.megabytes());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        most
    };
    let calling = async {
        let seen = calls::<T>(clients, size.time).await;
        drop(stop);
        seen
    };
    let (most, (clients, during)) = futures_util::future::join(watching, calling).await;
    drop(attacker);

    let mut report = Report { before, during, megabytes: [megabytes, most], heap: [heap, f64::NAN] };
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        report.heap[1] = server.heap()?;
        if report.gave_back() {
            break;
        }
    }
    drop(clients);
    Ok(report)
}
