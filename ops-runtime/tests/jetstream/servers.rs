//! NATS servers with `JetStream` of the tests' own: one, or a cluster, on free ports of the loopback device, with their
//! stores in a temporary folder. They end with the test.

// Each program uses its part.
#![allow(dead_code)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ops_runtime::durable::jetstream::{JetStream, JetStreamConfig};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::NATS_SERVER as PROGRAM;

/// Servers that run.
pub(crate) struct Servers {
    nodes: Vec<Node>,
    folder: PathBuf,
}

struct Node {
    port: u16,
    configuration: PathBuf,
    child: Option<Child>,
}

impl Servers {
    /// One server, or several that are a cluster. `sync` is their `sync_interval`.
    pub(crate) async fn start(count: usize, sync: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("ops-jetstream-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        // All at a time, so that none is given twice.
        let sockets: Vec<_> = (0..count * 2).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u16> = sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect();
        drop(sockets);
        let (ports, routes) = ports.split_at(count);
        let mut servers = Self { nodes: Vec::new(), folder };
        for (index, (port, route)) in ports.iter().zip(routes).enumerate() {
            let own = servers.folder.join(index.to_string());
            std::fs::create_dir_all(&own).unwrap();
            let mut text = format!("server_name: n{index}\nlisten: \"127.0.0.1:{port}\"\n");
            let store = own.join("store");
            writeln!(text, "jetstream {{ store_dir: {store:?}, sync_interval: {sync} }}").unwrap();
            if count > 1 {
                let all: Vec<_> = routes.iter().map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
                let all = all.join(", ");
                writeln!(text, "cluster {{ name: c, listen: \"127.0.0.1:{route}\", routes: [{all}] }}").unwrap();
            }
            let configuration = own.join("server.conf");
            std::fs::write(&configuration, text).unwrap();
            servers.nodes.push(Node { port: *port, configuration, child: None });
        }
        for node in &mut servers.nodes {
            node.start().await;
        }
        servers
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

    /// Ends one as a crash would.
    pub(crate) fn kill(&mut self, index: usize) {
        self.nodes[index].kill();
    }

    /// Starts one again, with what it has stored.
    pub(crate) async fn restart(&mut self, index: usize) {
        self.nodes[index].start().await;
    }
}

impl Node {
    async fn start(&mut self) {
        // It is killed by a line of ours, or by the end of this process: then its folder goes, too.
        let script = "\"$0\" --config \"$1\" & read -r _; told=$?; kill -9 $!; wait; [ $told = 0 ] || rm -rf \"$2\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, PROGRAM]).arg(&self.configuration);
        command.arg(self.configuration.ancestors().nth(2).unwrap());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().expect("a shell"));
        for _ in 0..3_000 {
            if TcpStream::connect(("127.0.0.1", self.port)).await.is_ok() {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("{PROGRAM} does not listen: run tests/peers/install");
    }

    /// Ends it at once, without a chance to write anything.
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.stdin.take().unwrap().write_all(b"\n");
            let _ = child.wait();
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.nodes.iter_mut().for_each(Node::kill);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
