//! Clients of a registry that is served over HTTP.

use std::future::Future;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use ops_runtime::Registry;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::mcp::{McpServer, McpServerOptions};
use ops_runtime::spec::OperationSpec;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::{Outcome, block_on};

/// The length of a large result: more than the system's buffers of a connection take from a server.
const LARGE: usize = 8 << 20;

/// How long an answer may take. A debug build may still be busy with what it was attacked with.
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves `t.echo`, which gives nothing, `t.sleep`, and `t.large`, which gives a text of that length; then attacks.
fn attacked<F: Future<Output = Outcome>>(options: McpServerOptions, attack: impl FnOnce(u16) -> F) -> Outcome {
    block_on(async {
        let registry = Registry::new();
        let add = |id: &'static str, handler: Handler| {
            registry.register(Registration::new(OperationSpec::query(id), handler)).map_err(|error| error.to_string())
        };
        add("t.echo", Handler::dynamic(|_: Value, _| async { Ok(json!(null)) }))?;
        add(
            "t.sleep",
            Handler::dynamic(|_: Value, _| async {
                tokio::time::sleep(Duration::from_secs(30)).await;
                Ok(json!(null))
            }),
        )?;
        add("t.large", Handler::dynamic(|_: Value, _| async { Ok(json!("x".repeat(LARGE))) }))?;
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        let service = McpServer::new(registry).with_options(options).into_service();
        tokio::spawn(service.serve_listener(listener));
        let said = attack(port).await?;
        // Whoever is honest is served all the same.
        match post(port, "", &initialize()).await {
            Ok(answer) if answer.contains("serverInfo") => Ok(said),
            Ok(answer) => Err(format!("{said}; an honest client gets {answer:.200}")),
            Err(error) => Err(format!("{said}; an honest client gets {error}")),
        }
    })
}

fn initialize() -> String {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } })
    .to_string()
}

fn call(id: usize, tool: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": {} } })
        .to_string()
}

fn head(headers: &str, length: usize) -> String {
    format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
         {headers}connection: close\r\ncontent-length: {length}\r\n\r\n"
    )
}

/// Sends the head and the body of a request.
async fn send(port: u16, headers: &str, body: &str) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(head(headers, body.len()).as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    Ok(stream)
}

/// The answer to a request, or what has come of it after 30 seconds. Of a stream of events, which may not end, it is what comes
/// until the first message.
///
/// It may come before the request was sent as a whole: a server that refuses a body does not read the rest of it.
async fn post(port: u16, headers: &str, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let (mut read, mut write) = stream.split();
    let sending = async {
        let _ = write.write_all(head(headers, body.len()).as_bytes()).await;
        let _ = write.write_all(body.as_bytes()).await;
        std::future::pending::<()>().await;
    };
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    let until = tokio::time::Instant::now() + PATIENCE;
    let receiving = async {
        while !is_whole(&answer)
            && let Ok(read) = tokio::time::timeout_at(until, read.read(&mut buffer)).await
        {
            match read {
                Ok(0) => break,
                Ok(read) => answer.extend_from_slice(buffer.get(..read).unwrap_or_default()),
                // What it did not read ends the connection with an error, behind its answer.
                Err(_) if !answer.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    tokio::select! {
        () = sending => Ok(String::new()),
        answer = receiving => answer,
    }
}

/// True if an answer has its whole body, or a whole message if its body is a stream of events.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
    match length {
        Some(length) => answer.len() >= head.len() + 4 + length,
        None => body.split_once("\"jsonrpc\"").is_some_and(|(_, message)| message.contains("\n\n")),
    }
}

/// The status of an answer that refuses a request.
fn refused(answer: std::io::Result<String>) -> Outcome {
    let answer = answer.map_err(|error| error.to_string())?;
    let is_refused = status(&answer).contains(" 4") || answer.is_empty();
    if is_refused { Ok(status(&answer).to_owned()) } else { Err(answer) }
}

fn status(answer: &str) -> &str {
    answer.split("\r\n").next().unwrap_or_default()
}

/// The head of an answer, or what has come of it when nothing has come for 30 seconds.
async fn head_of(stream: &mut TcpStream) -> std::io::Result<String> {
    let (mut head, mut buffer) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await {
            Ok(Ok(read)) if read > 0 => head.extend_from_slice(buffer.get(..read).unwrap_or_default()),
            Ok(Err(error)) => return Err(error),
            _ => break,
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// The header that names the session which an answer begins.
fn id(answer: &str) -> Option<String> {
    let id = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: "))?;
    Some(format!("mcp-session-id: {}\r\n", id.trim()))
}

/// A session, by the header that names it.
async fn session(port: u16) -> Result<String, String> {
    let answer = post(port, "", &initialize()).await.map_err(|error| error.to_string())?;
    let headers = id(&answer).ok_or(answer)?;
    let begun = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    post(port, &headers, begun).await.map_err(|error| error.to_string())?;
    Ok(headers)
}

/// A call whose arguments are numbers, each of which takes more memory than its text.
fn of_numbers(size: usize) -> String {
    let numbers = "0,".repeat(size.saturating_sub(200) / 2);
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t_echo","arguments":{{"input":[{numbers}0]}}}}}}"#
    )
}

pub(super) fn numbers(size: usize) -> Outcome {
    attacked(McpServerOptions::default(), |port| async move { refused(post(port, "", &of_numbers(size)).await) })
}

/// Many such bodies at once.
pub(super) fn bodies(count: usize) -> Outcome {
    attacked(McpServerOptions::default(), |port| async move {
        let headers = session(port).await?;
        let body = of_numbers(4 << 20);
        let bodies = (0..count).map(|_| async {
            post(port, &headers, &body)
                .await
                .map_or_else(|error| error.to_string(), |answer| status(&answer).to_owned())
        });
        let mut came = futures_util::future::join_all(bodies).await;
        came.sort_unstable();
        came.dedup();
        Ok(came.join(", "))
    })
}

pub(super) fn batch(size: usize) -> Outcome {
    attacked(McpServerOptions::default(), |port| async move {
        let one = r#"{"jsonrpc":"2.0","method":"x"}"#;
        let batch = format!("[{}{one}]", format!("{one},").repeat(size.saturating_sub(100) / 32));
        refused(post(port, "", &batch).await)
    })
}

pub(super) fn bad_json(size: usize) -> Outcome {
    attacked(McpServerOptions::default(), |port| async move {
        let deep = format!("{{\"a\":{}", "[".repeat(size.saturating_sub(200)));
        refused(post(port, "", &deep).await)
    })
}

/// Sessions that only begin: the oldest make room for new ones.
pub(super) fn sessions(count: usize) -> Outcome {
    const MOST: usize = 100;
    attacked(McpServerOptions::default().with_max_sessions(MOST), |port| async move {
        let mut begun = Vec::new();
        for _ in 0..count {
            let mut stream = send(port, "", &initialize()).await.map_err(|error| error.to_string())?;
            let id = id(&head_of(&mut stream).await.map_err(|error| error.to_string())?);
            begun.extend(id);
        }
        // Those that began at the same moment end in any order.
        let [before, last] =
            [begun.len().saturating_sub(2 * MOST), begun.len().saturating_sub(1)].map(|at| begun.get(at));
        let (mut statuses, list) = (Vec::new(), r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        for headers in [before, last].into_iter().flatten() {
            let answer = post(port, headers, list).await.map_err(|error| error.to_string())?;
            statuses.push(status(&answer).to_owned());
        }
        let said = format!("{} sessions of {count}; one of before: {statuses:?}", begun.len());
        let is_bounded =
            matches!(statuses.as_slice(), [before, last] if before.contains(" 404") && last.contains(" 200"));
        if begun.len() == count && is_bounded { Ok(said) } else { Err(said) }
    })
}

/// One id for many requests, of which each would keep its place in the session.
pub(super) fn same_id(count: usize) -> Outcome {
    attacked(McpServerOptions::default(), |port| async move {
        let headers = session(port).await?;
        let mut streams = Vec::new();
        for _ in 0..count {
            streams.push(send(port, &headers, &call(7, "t_sleep")).await.map_err(|error| error.to_string())?);
        }
        let is_refused = |head: &str| head.starts_with("HTTP/1.1 400") || head.starts_with("HTTP/1.1 429");
        let answers =
            streams.iter_mut().map(|stream| async move { head_of(stream).await.is_ok_and(|head| is_refused(&head)) });
        let mut answers: FuturesUnordered<_> = answers.collect();
        let mut ended = 0;
        // Below the 30 seconds after which the one that is served ends, and makes room for another.
        let until = tokio::time::Instant::now() + Duration::from_secs(20);
        while ended + 1 < count
            && let Ok(Some(refused)) = tokio::time::timeout_at(until, answers.next()).await
        {
            ended += usize::from(refused);
        }
        // The one that is served is not refused: its head comes, or nothing.
        let last = tokio::time::timeout(Duration::from_millis(200), answers.next()).await;
        ended += usize::from(last == Ok(Some(true)));
        if ended + 1 == count { Ok(format!("{ended} refused")) } else { Err(format!("{ended} of {count} refused")) }
    })
}

/// Connections that send half a head.
pub(super) fn half_open(count: usize) -> Outcome {
    let options = McpServerOptions::default().with_max_connections(200).with_head_timeout(Duration::from_secs(1));
    attacked(options, |port| async move {
        let mut streams = Vec::new();
        for _ in 0..count {
            let Ok(Ok(mut stream)) =
                tokio::time::timeout(Duration::from_secs(1), TcpStream::connect(("127.0.0.1", port))).await
            else {
                break;
            };
            let _ = stream.write_all(b"POST / HTTP/1.1\r\nhost: local").await;
            streams.push(stream);
        }
        let started = Instant::now();
        let answer = post(port, "", &initialize()).await.map_err(|error| error.to_string())?;
        Ok(format!("{} half open; {} after {:?}", streams.len(), status(&answer), started.elapsed()))
    })
}

/// A body that comes a byte at a time.
pub(super) fn slow_body(_: usize) -> Outcome {
    let options = McpServerOptions::default().with_read_timeout(Duration::from_secs(1));
    attacked(options, |port| async move {
        let mut stream = send(port, "expect: nothing\r\nx: y\r\n", "").await.map_err(|error| error.to_string())?;
        let _ = stream.shutdown().await;
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.map_err(|error| error.to_string())?;
        let head = "POST / HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\n\
                    content-type: application/json\r\ncontent-length: 1000\r\n\r\n{";
        stream.write_all(head.as_bytes()).await.map_err(|error| error.to_string())?;
        let mut answer = [0; 1024];
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut answer)).await;
        let read = read.map_err(|_| "no answer")?.map_err(|error| error.to_string())?;
        let answer = String::from_utf8_lossy(answer.get(..read).unwrap_or_default()).into_owned();
        if answer.contains(" 408 ") { Ok(status(&answer).to_owned()) } else { Err(answer) }
    })
}

/// Large results, for clients that read none: as soon as one waits, no more are made.
pub(super) fn unread(count: usize) -> Outcome {
    let options = McpServerOptions::default().with_stall_timeout(Duration::from_secs(3)).with_max_unread_bytes(LARGE);
    attacked(options, |port| async move {
        let headers = session(port).await?;
        let refused = |answer: &str| answer.starts_with("HTTP/1.1 503");
        let first = send(port, &headers, &call(1, "t_large")).await.map_err(|error| error.to_string())?;
        // It takes a moment to be made.
        let list = r#"{"jsonrpc":"2.0","id":0,"method":"tools/list"}"#;
        let until = Instant::now() + PATIENCE;
        while !refused(&post(port, &headers, list).await.map_err(|error| error.to_string())?) {
            if Instant::now() > until {
                return Err("nothing is refused though a large result waits".to_owned());
            }
        }
        let mut streams = Vec::new();
        for number in 2..=count {
            streams.push(send(port, &headers, &call(number, "t_large")).await.map_err(|error| error.to_string())?);
        }
        let mut all = 0;
        for stream in &mut streams {
            all += usize::from(head_of(stream).await.is_ok_and(|head| refused(&head)));
        }
        // A connection whose client reads nothing ends, and with it the result that waits.
        tokio::time::sleep(Duration::from_secs(4)).await;
        drop(first);
        let said = format!("{all} of {} refused", streams.len());
        if all > count / 2 { Ok(said) } else { Err(said) }
    })
}
