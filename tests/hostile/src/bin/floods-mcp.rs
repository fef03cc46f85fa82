//! A served registry under attack: 200 hostile connections beside 50 honest ones, each side in a process of its own.
//!
//! `floods-mcp [SECONDS [KIND]]` starts the server and the attackers, and prints what the honest calls took before, during and
//! after, and what the server's process held. Exits with 1 if the honest ones' p99 is more than 5 times that without the
//! attack, if the server held 500 MB, or if it does not give it back. With a KIND (0 to 6), all attack in this way. `serve` and
//! `attack` are its other processes.
//!
//! What is given back is told by the server's heap. Its resident memory has what the allocator keeps for later, too.

use std::alloc::System;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use cap::Cap;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::mcp::{McpClient, McpServer, McpServerConfig};
use ops_runtime::spec::OperationSpec;
use ops_runtime::{CallError, Registry};
use ops_tests_hostile::block_on;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

const HONEST: usize = 50;
const HOSTILE: usize = 200;
const KINDS: usize = 7;
/// How many MB more than before the attack the heap may have after it: sessions that were used end five minutes later.
const KEPT: f64 = 8.0;

/// Counts what is allocated and not freed.
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, or: u64| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(or);
    let done = match arguments.first().map(String::as_str) {
        Some("serve") => block_on(serve()),
        Some("attack") => {
            let kind = arguments.get(3).and_then(|text| text.parse().ok());
            block_on(attack(u16::try_from(number(1, 0)).unwrap_or_default(), number(2, 10), kind));
            Ok(true)
        }
        _ => measure(number(0, 15), arguments.get(1).map(String::as_str)),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The server: what the program that it stands for would be, with the defaults.
async fn serve() -> Result<bool> {
    let registry = Registry::new();
    let echo = Handler::dynamic(|input: Value, _| async move { Ok(input) });
    let large = Handler::dynamic(|_: Value, _| async { Ok(json!("x".repeat(256 << 10))) });
    registry.register(Registration::new(OperationSpec::query("t.echo"), echo))?;
    registry.register(Registration::new(OperationSpec::query("t.large"), large))?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    std::io::stdout().flush()?;
    // Says the size of its heap as often as it is asked.
    std::thread::spawn(|| {
        for _ in std::io::stdin().lines() {
            println!("{}", HEAP.allocated());
        }
    });
    McpServer::new(registry).into_service().serve_listener(listener).await?;
    Ok(true)
}

/// A process of this program that ends with it.
struct Process(Child);

impl Process {
    fn start(arguments: &[&str], nice: &str) -> Result<Self> {
        let mut command = Command::new("nice");
        command.args(["-n", nice]).arg(std::env::current_exe()?).args(arguments).envs([
            // Left to itself, glibc keeps much of what was freed: then its memory does not tell what the server holds.
            ("MALLOC_ARENA_MAX", "1"),
            ("MALLOC_MMAP_THRESHOLD_", "65536"),
            ("MALLOC_TRIM_THRESHOLD_", "131072"),
        ]);
        Ok(Self(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?))
    }

    /// The size of its heap, in MB, as it says itself.
    fn heap(&mut self, said: &mut BufReader<ChildStdout>) -> Result<f64> {
        writeln!(self.0.stdin.as_mut().ok_or("no input")?)?;
        let mut line = String::new();
        said.read_line(&mut line)?;
        Ok(line.trim().parse::<f64>()? / f64::from(1 << 20))
    }

    /// What the kernel says of its memory, in MB: `VmRSS` now, `VmHWM` at most.
    fn megabytes(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() / 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measure(seconds: u64, kind: Option<&str>) -> Result<bool> {
    let mut server = Process::start(&["serve"], "0")?;
    let mut port = String::new();
    let mut said = BufReader::new(server.0.stdout.take().ok_or("no output")?);
    said.read_line(&mut port)?;
    let port = port.trim().to_owned();
    let url = format!("http://127.0.0.1:{port}/");
    let time = Duration::from_secs(seconds);
    block_on(async {
        let clients = honest(&url).await?;
        calls(&clients, Duration::from_secs(1)).await;
        let (held, heap) = (server.megabytes("VmRSS"), server.heap(&mut said)?);
        let before = calls(&clients, time).await;
        // What an attacker computes is computed elsewhere.
        let attackers = Process::start(&["attack", &port, &(seconds + 2).to_string(), kind.unwrap_or("")], "19")?;
        sleep(Duration::from_secs(2)).await;
        let during = calls(&clients, time).await;
        // Whoever comes in the middle of it is served, too.
        drop(attackers);
        let most = server.megabytes("VmHWM");
        let newcomer = McpClient::connect(McpServerConfig::http(&url)).await.is_ok();
        let started = Instant::now();
        while server.heap(&mut said)? > heap + KEPT && started.elapsed() < Duration::from_secs(90) {
            sleep(Duration::from_secs(1)).await;
        }
        let after = calls(&clients, time.min(Duration::from_secs(5))).await;
        let (now, left) = (server.megabytes("VmRSS"), server.heap(&mut said)?);
        println!("| honest calls | calls | failed | p50 ms | p99 ms |\n|---|--:|--:|--:|--:|");
        for (name, times) in [("without", &before), ("beside the attack", &during), ("after it", &after)] {
            println!("| {name} | {} | {} | {:.2} | {:.2} |", times.count, times.failed, times.p50, times.p99);
        }
        println!("the server held {held} MB before, {most} MB at most, {now} MB {:?} after", started.elapsed());
        println!("of which its heap had {heap:.1} MB before, and has {left:.1} MB now");
        let ratio = during.p99 / before.p99;
        println!("p99 beside the attack: {ratio:.1} times that without");
        let held_all =
            ratio <= 5.0 && most < 500 && left <= heap + KEPT && newcomer && during.failed == 0 && after.failed == 0;
        Ok(held_all)
    })
}

async fn honest(url: &str) -> Result<Vec<McpClient>> {
    let connect = |_| McpClient::connect(McpServerConfig::http(url).with_namespace("t"));
    let clients: std::result::Result<Vec<_>, CallError> =
        futures_util::future::join_all((0..HONEST).map(connect)).await.into_iter().collect();
    Ok(clients?)
}

struct Times {
    count: usize,
    failed: usize,
    p50: f64,
    p99: f64,
}

/// Honest calls: each client calls, looks at the answer, and calls again after a while.
async fn calls(clients: &[McpClient], time: Duration) -> Times {
    let until = Instant::now() + time;
    let work = clients.iter().enumerate().map(|(at, client)| async move {
        let (mut times, mut failed) = (Vec::new(), 0);
        sleep(Duration::from_millis(at as u64)).await;
        while Instant::now() < until {
            let started = Instant::now();
            let came = client.call("t.t_echo", json!({ "input": { "n": at } })).await;
            times.push(started.elapsed().as_secs_f64() * 1000.0);
            failed += usize::from(came.is_err());
            sleep(Duration::from_millis(50)).await;
        }
        (times, failed)
    });
    let (mut all, mut failed) = (Vec::new(), 0);
    for (times, more) in futures_util::future::join_all(work).await {
        all.extend(times);
        failed += more;
    }
    all.sort_by(f64::total_cmp);
    let part =
        |of: usize| all.get((all.len() * of / 100).min(all.len().saturating_sub(1))).copied().unwrap_or(f64::NAN);
    Times { count: all.len(), failed, p50: part(50), p99: part(99) }
}

/// Attacks from 200 connections at once, each of its kind, as fast as they are let.
async fn attack(port: u16, seconds: u64, kind: Option<usize>) {
    let until = Instant::now() + Duration::from_secs(seconds);
    let attackers = (0..HOSTILE).map(|number| async move {
        while Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            let _ = tokio::time::timeout(left, one(port, kind.unwrap_or(number % KINDS))).await;
            sleep(Duration::from_millis(10)).await;
        }
    });
    futures_util::future::join_all(attackers).await;
}

fn initialize() -> String {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } })
    .to_string()
}

async fn send(port: u16, headers: &str, body: &[u8]) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    post(&mut stream, headers, body).await?;
    Ok(stream)
}

/// Writes one request.
async fn post(stream: &mut TcpStream, headers: &str, body: &[u8]) -> std::io::Result<()> {
    let head = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\n\
         content-type: application/json\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await
}

/// The first bytes of an answer.
async fn answer(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut buffer = [0; 2048];
    let read = stream.read(&mut buffer).await?;
    Ok(String::from_utf8_lossy(buffer.get(..read).unwrap_or_default()).into_owned())
}

/// One connection of a kind.
async fn one(port: u16, kind: usize) -> std::io::Result<()> {
    match kind {
        // Half of a head, and silence.
        0 => {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
            stream.write_all(b"POST / HTTP/1.1\r\nhost: local").await?;
            sleep(Duration::from_secs(600)).await;
        }
        // Large results that are not read.
        1 => {
            let mut first = send(port, "", initialize().as_bytes()).await?;
            let said = answer(&mut first).await?;
            let Some(id) = said.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")) else { return Ok(()) };
            let headers = format!("mcp-session-id: {}\r\n", id.trim());
            post(&mut first, &headers, br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await?;
            for id in 1..=20 {
                let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                    "params": { "name": "t_large", "arguments": {} } });
                post(&mut first, &headers, call.to_string().as_bytes()).await?;
            }
            sleep(Duration::from_secs(600)).await;
        }
        // Bodies of 4 MB, of text and of values.
        2 => {
            let values = "0,".repeat(200_000);
            let text = "x".repeat(3 << 20);
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t_echo","arguments":{{"input":["{text}",{values}0]}}}}}}"#
            );
            answer(&mut send(port, "", body.as_bytes()).await?).await?;
        }
        // Batches.
        3 => {
            let body = format!("[{}{}]", format!("{},", initialize()).repeat(5000), initialize());
            answer(&mut send(port, "", body.as_bytes()).await?).await?;
        }
        // Sessions, as many as there can be.
        4 => {
            answer(&mut send(port, "", initialize().as_bytes()).await?).await?;
        }
        // A byte of a body now and then.
        5 => {
            let mut stream = send(port, "x: y\r\n", b"").await?;
            answer(&mut stream).await?;
            let head = "POST / HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\n\
                        content-type: application/json\r\ncontent-length: 100000\r\n\r\n{";
            stream.write_all(head.as_bytes()).await?;
            loop {
                sleep(Duration::from_millis(500)).await;
                stream.write_all(b" ").await?;
            }
        }
        // What is no JSON.
        _ => {
            let body = format!("{{\"jsonrpc\":\"2.0\",\"a\":{}", "[".repeat(100_000));
            answer(&mut send(port, "", body.as_bytes()).await?).await?;
        }
    }
    Ok(())
}
