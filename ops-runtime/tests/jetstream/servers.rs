//! NATS servers with `JetStream` of the tests' own: one, or a cluster, on free ports of the loopback device, with their
//! stores in a temporary folder. They end with the test.

// Each program uses its part.
#![allow(dead_code)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ops_runtime::durable::jetstream::{JetStream, JetStreamConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::NATS_SERVER as PROGRAM;

/// The folder, in that of a server, into which it writes its ports.
const PORTS: &str = "ports";

/// How many times servers are started, each time on other ports: another process may take a port that was free.
pub(crate) const TRIES: usize = 5;

/// What servers are started with beside the usual.
pub(crate) struct Settings {
    /// The ports for clients, other servers and the monitor of each.
    pub(crate) ports: Vec<[u16; 3]>,
    /// Their `sync_interval`.
    pub(crate) sync: String,
    /// What stands in the configuration of each about its cluster.
    pub(crate) clusters: Vec<String>,
    /// Where each keeps what it stores, unless in the folder of all.
    pub(crate) stores: Vec<PathBuf>,
    /// How many of the last are not started yet.
    pub(crate) late: usize,
    /// False for servers without `JetStream`.
    pub(crate) jetstream: bool,
    /// What keeps the ports from others until the servers start.
    pub(crate) held: Vec<TcpListener>,
}

impl Settings {
    /// Those of so many servers, which are a cluster if they are several.
    pub(crate) fn new(count: usize, sync: &str) -> Self {
        // All at a time, so that none is given twice.
        let sockets: Vec<_> = (0..count * 3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let port = |socket: &TcpListener| socket.local_addr().unwrap().port();
        let ports: Vec<_> = sockets.chunks(3).map(|three| [0, 1, 2].map(|place| port(&three[place]))).collect();
        let routes: Vec<_> = ports.iter().map(|[_, route, _]| format!("\"nats://127.0.0.1:{route}\"")).collect();
        let routes = routes.join(", ");
        let cluster = |[_, route, _]: &[u16; 3]| match count {
            1 => String::new(),
            _ => format!("cluster {{ name: c, listen: \"127.0.0.1:{route}\", routes: [{routes}] }}\n"),
        };
        let clusters = ports.iter().map(cluster).collect();
        Self { ports, sync: sync.to_owned(), clusters, stores: Vec::new(), late: 0, jetstream: true, held: sockets }
    }
}

/// Servers that run.
pub(crate) struct Servers {
    nodes: Vec<Node>,
    folder: PathBuf,
}

struct Node {
    port: u16,
    monitor: u16,
    configuration: PathBuf,
    child: Option<Child>,
}

impl Servers {
    /// One server, or several that are a cluster. `sync` is their `sync_interval`.
    pub(crate) async fn start(count: usize, sync: &str) -> Self {
        Self::with(|| Settings::new(count, sync)).await
    }

    /// Servers with settings that have ports of their own each time.
    pub(crate) async fn with(settings: impl Fn() -> Settings) -> Self {
        for _ in 0..TRIES {
            if let Some(servers) = Self::tried(settings()).await {
                return servers;
            }
        }
        panic!("{PROGRAM} does not start: run tests/peers/install");
    }

    /// Servers with these settings. `None` if one of them does not start, which it does not if another process has one of its ports.
    pub(crate) async fn tried(settings: Settings) -> Option<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("ops-jetstream-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        let Settings { ports, sync, clusters, stores, late, jetstream, held } = settings;
        let mut servers = Self { nodes: Vec::new(), folder };
        for (index, ([port, _, monitor], cluster)) in ports.into_iter().zip(clusters).enumerate() {
            let own = servers.folder.join(index.to_string());
            std::fs::create_dir_all(&own).unwrap();
            let mut text = format!("server_name: n{index}\nlisten: \"127.0.0.1:{port}\"\n{cluster}");
            writeln!(text, "http: \"127.0.0.1:{monitor}\"").unwrap();
            let (store, process) = (stores.get(index).cloned().unwrap_or(own.join("store")), own.join("server.pid"));
            writeln!(text, "pid_file: {process:?}\nports_file_dir: {:?}", own.join(PORTS)).unwrap();
            if jetstream {
                writeln!(text, "jetstream {{ store_dir: {store:?}, sync_interval: {sync} }}").unwrap();
            }
            let configuration = own.join("server.conf");
            std::fs::write(&configuration, text).unwrap();
            servers.nodes.push(Node { port, monitor, configuration, child: None });
        }
        drop(held);
        let first = servers.nodes.len() - late;
        for node in &mut servers.nodes[..first] {
            if !node.start().await {
                return None;
            }
        }
        Some(servers)
    }

    /// The addresses of all.
    pub(crate) fn url(&self) -> String {
        let urls: Vec<_> = self.nodes.iter().map(|node| format!("nats://127.0.0.1:{}", node.port)).collect();
        urls.join(",")
    }

    /// An engine on them, with a replica on each.
    pub(crate) async fn engine(&self, config: JetStreamConfig) -> JetStream {
        JetStream::connect(&self.url(), config.with_replicas(self.nodes.len())).await.unwrap()
    }

    /// The messages that all have received and sent so far.
    pub(crate) async fn messages(&self) -> u64 {
        let mut sum = 0;
        for node in &self.nodes {
            let variables = node.ask("/varz").await;
            sum += ["in_msgs", "out_msgs"].map(|name| variables[name].as_u64().unwrap()).iter().sum::<u64>();
        }
        sum
    }

    /// The ids of their processes.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let process = |node: &Node| std::fs::read_to_string(node.configuration.with_extension("pid")).unwrap();
        self.nodes.iter().map(|node| process(node).trim().parse().unwrap()).collect()
    }

    /// The processor time that all have used so far.
    pub(crate) fn cpu(&self) -> Duration {
        self.processes().into_iter().map(cpu_of).sum()
    }

    /// Ends one as a crash would.
    pub(crate) fn kill(&mut self, index: usize) {
        self.nodes[index].kill();
    }

    /// Starts one again, with what it has stored.
    pub(crate) async fn restart(&mut self, index: usize) {
        for _ in 0..50 {
            if self.nodes[index].start().await {
                return;
            }
            // Another process may have a port of it for a moment.
            sleep(Duration::from_millis(100)).await;
        }
        panic!("{PROGRAM} does not come back");
    }
}

impl Node {
    /// Starts the server, and waits until it listens. False if it has ended instead, or does not tell that it listens.
    async fn start(&mut self) -> bool {
        // It is killed by a line of ours, or by the end of this process: then its folder goes, too. The shell ends with it. No other
        // command may run between the two jobs and `wait -n`, which would miss a job that has ended by then.
        let script = "exec 3<&0; \"$0\" --config \"$1\" & server=$!; (read -r _ <&3) & wait -n; told=$?; \
                      if kill -9 $server; then wait; [ $told = 0 ] || rm -rf \"$2\"; else kill -9 $!; fi";
        let own = self.configuration.parent().unwrap();
        let ports = own.join(PORTS);
        // What a server that was killed has left would be taken for the word of the new one.
        let _ = std::fs::remove_dir_all(&ports);
        std::fs::create_dir(&ports).unwrap();
        let mut command = Command::new("bash");
        command.args(["-c", script, PROGRAM]).arg(&self.configuration).arg(own.parent().unwrap());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = self.child.insert(command.spawn().expect("a shell"));
        for _ in 0..3_000 {
            if is_told(&ports) {
                return true;
            }
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            sleep(Duration::from_millis(10)).await;
        }
        // It tells only if it could listen within some seconds, which it may not on a busy machine.
        self.kill();
        false
    }

    /// What its monitor says.
    async fn ask(&self, path: &str) -> serde_json::Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.monitor)).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        serde_json::from_str(response.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// Ends it at once, without a chance to write anything.
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.stdin.take().unwrap().write_all(b"\n");
            let _ = child.wait();
        }
    }
}

/// True if a server has written that it listens on all of its ports. That a port accepts connections tells nothing: it may be
/// another process that has it.
fn is_told(ports: &Path) -> bool {
    let mut files =
        std::fs::read_dir(ports).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap_or_default());
    // Until all of it is written, it is no JSON.
    files.any(|text| serde_json::from_slice::<serde_json::Value>(&text).is_ok())
}

/// The processor time that a process has used so far.
pub(crate) fn cpu_of(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // After the name, which may have spaces: the 14th and 15th field are ticks, of which a second has 100.
    let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.nodes.iter_mut().for_each(Node::kill);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
