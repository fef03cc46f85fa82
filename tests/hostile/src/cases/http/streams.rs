//! Streams, headers and bodies that go on, or stand still.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use ops_runtime::ErrorCode;
use ops_runtime::binding::HttpBinding;
use ops_runtime::http::{HttpClient, HttpConfig, Reconnect};
use ops_runtime::spec::{OperationKind, OperationSpec};
use serde_json::{Value, json};

use crate::peer::{Asked, close, events, respond, serve};
use crate::{Outcome, block_on};

/// What came of a subscription: how many items, and the last error.
struct Came {
    items: usize,
    errors: usize,
    last: String,
    timed_out: bool,
}

fn client(config: HttpConfig, kind: OperationKind) -> Result<HttpClient, String> {
    let client = HttpClient::new(config).map_err(|error| error.to_string())?;
    let mut spec = match kind {
        OperationKind::Query => OperationSpec::query("t.x"),
        _ => OperationSpec::subscription("t.x"),
    };
    spec = spec.with_http(HttpBinding::new("GET", "/x"));
    client.add([spec]).map_err(|error| error.to_string())?;
    Ok(client)
}

fn subscribe(
    config: HttpConfig,
    answer: impl Fn(&Asked, &str, &mut std::net::TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
) -> Result<Came, String> {
    let url = serve(answer).map_err(|error| error.to_string())?;
    let client = client(config.with_base_url(url), OperationKind::Subscription)?;
    block_on(async {
        let mut came = Came { items: 0, errors: 0, last: String::new(), timed_out: false };
        let mut stream = client.stream("t.x", json!({})).await.map_err(|error| error.to_string())?;
        while let Some(item) = stream.next().await {
            match item {
                Ok(_) => came.items += 1,
                Err(error) => {
                    came.errors += 1;
                    came.timed_out = *error.code() == ErrorCode::Timeout;
                    came.last = error.message().to_owned();
                }
            }
        }
        Ok(came)
    })
}

/// Writes one piece again and again, until so many bytes are out.
fn repeat(stream: &mut std::net::TcpStream, piece: &[u8], size: usize) -> std::io::Result<()> {
    let block = piece.repeat((64 * 1024 / piece.len()).max(1));
    let mut left = size;
    while left > 0 {
        let now = left.min(block.len());
        stream.write_all(block.get(..now).unwrap_or_default())?;
        left -= now;
    }
    Ok(())
}

/// An id of 60 KB, which every small event after it has, too.
pub(super) fn long_id(size: usize) -> Outcome {
    let came = subscribe(HttpConfig::new(), move |_, _, stream| {
        events(stream, "")?;
        stream.write_all(b"id: ")?;
        repeat(stream, b"i", 1000)?;
        stream.write_all(b"\ndata: 0\n\nid: ")?;
        repeat(stream, b"i", (900 << 10).min(size))?;
        stream.write_all(b"\ndata: 0\n\n")?;
        repeat(stream, b"data: 1\n\n", size / 2)?;
        close()
    })?;
    Ok(format!("{} items", came.items))
}

pub(super) fn small_events(size: usize) -> Outcome {
    let came = subscribe(HttpConfig::new(), move |_, _, stream| {
        events(stream, "")?;
        repeat(stream, b"data:1\n\n", size)?;
        close()
    })?;
    if came.items >= size / 9 { Ok(format!("{} items", came.items)) } else { Err(format!("{} items only", came.items)) }
}

/// Comments, names, numbers and blank lines: nothing comes of them.
pub(super) fn no_data(size: usize) -> Outcome {
    let came = subscribe(HttpConfig::new(), move |_, _, stream| {
        events(stream, "")?;
        repeat(stream, b"event:x\nid:1\nretry:9\n:c\n\n", size)?;
        close()
    })?;
    if came.items == 0 { Ok(format!("no items, {}", came.last)) } else { Err(format!("{} items", came.items)) }
}

pub(super) fn empty_lines(size: usize) -> Outcome {
    let came = subscribe(HttpConfig::new(), move |_, _, stream| {
        events(stream, "")?;
        repeat(stream, b"data\n", size)?;
        close()
    })?;
    let told = came.last.contains("larger than") || size < 8 << 20;
    if came.items == 0 && told { Ok(came.last) } else { Err(format!("{} items, {}", came.items, came.last)) }
}

/// Headers of 90 KB, which every small event could have with it.
pub(super) fn beside_headers(size: usize) -> Outcome {
    let came = subscribe(HttpConfig::new(), move |_, _, stream| {
        let header = format!("x-long: {}\r\n", "h".repeat((90 << 10).min(size)));
        events(stream, &header)?;
        repeat(stream, b"data:1\n\n", size)?;
        close()
    })?;
    Ok(format!("{} items", came.items))
}

fn call(
    config: HttpConfig,
    answer: impl Fn(&Asked, &str, &mut std::net::TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
) -> Result<Result<Value, String>, String> {
    let url = serve(answer).map_err(|error| error.to_string())?;
    let client = client(config.with_base_url(url), OperationKind::Query)?;
    let answer = block_on(client.call("t.x", json!({})));
    Ok(answer.map(|envelope| envelope.data).map_err(|error| error.message().to_owned()))
}

pub(super) fn many_headers(size: usize) -> Outcome {
    let came = call(HttpConfig::new(), move |_, _, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
        for number in 0..size / 12 {
            write!(stream, "x-{number}: 1\r\n")?;
        }
        stream.write_all(b"content-length: 0\r\n\r\n")?;
        close()
    })?;
    match came {
        Err(said) => Ok(said),
        Ok(_) if size < 1200 => Ok("few enough".to_owned()),
        Ok(_) => Err("were read".to_owned()),
    }
}

pub(super) fn long_header(size: usize) -> Outcome {
    let came = call(HttpConfig::new(), move |_, _, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nx: ")?;
        repeat(stream, b"h", size)?;
        stream.write_all(b"\r\ncontent-length: 0\r\n\r\n")?;
        close()
    })?;
    match came {
        Err(said) => Ok(said),
        Ok(_) if size < 512 << 10 => Ok("short enough".to_owned()),
        Ok(_) => Err("was read".to_owned()),
    }
}

pub(super) fn small_lines(size: usize) -> Outcome {
    let came = subscribe(HttpConfig::new(), move |_, _, stream| {
        let header = format!("x-long: {}\r\n", "h".repeat((90 << 10).min(size)));
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: application/jsonl\r\n{header}connection: close\r\n\r\n")?;
        repeat(stream, b"1\n", size)?;
        close()
    })?;
    Ok(format!("{} items", came.items))
}

pub(super) fn endless_body(size: usize) -> Outcome {
    let came = call(HttpConfig::new(), move |_, _, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n")?;
        repeat(stream, b"b", size)?;
        close()
    })?;
    match came {
        Err(said) if said.contains("with_max_response") => Ok(said),
        came => Err(format!("{:.200}", format!("{came:?}"))),
    }
}

/// A server that ends each connection after an event, and says `retry: 0`.
pub(super) fn reconnects(seconds: usize) -> Outcome {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let url = serve(move |_, _, stream| {
        counted.fetch_add(1, Ordering::SeqCst);
        events(stream, "")?;
        stream.write_all(b"retry: 0\nid: 1\ndata: 1\n\n")?;
        close()
    });
    let config =
        HttpConfig::new().with_base_url(url.map_err(|error| error.to_string())?).with_reconnect(Reconnect::new());
    let client = client(config, OperationKind::Subscription)?;
    let begun = Instant::now();
    block_on(async {
        let until = begun + Duration::from_secs(seconds as u64);
        let stream = client.stream("t.x", json!({})).await.map_err(|error| error.to_string())?;
        let mut stream = std::pin::pin!(stream);
        while tokio::time::timeout_at(until.into(), stream.next()).await.is_ok_and(|item| item.is_some()) {}
        Ok::<_, String>(())
    })?;
    let count = count.load(Ordering::SeqCst);
    // Of the time that it took, which is longer on a busy machine.
    if count as u64 <= 2 * begun.elapsed().as_secs() + 2 {
        Ok(format!("{count} connections"))
    } else {
        Err(format!("{count} connections"))
    }
}

/// A stream that says nothing is not waited for without end.
pub(super) fn silent(_: usize) -> Outcome {
    // Long enough for a peer that is not scheduled for a while.
    let config = HttpConfig::new().with_idle_timeout(Duration::from_secs(3));
    let came = subscribe(config, |asked, _, stream| {
        if asked.connection > 0 {
            return respond(stream, "404 Not Found", "", b"");
        }
        // At once: the time between two writes would count as silence.
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all(format!("{head}data: 1\n\n").as_bytes())?;
        stream.flush()?;
        std::thread::sleep(Duration::from_secs(60));
        close()
    })?;
    let told = came.timed_out && came.last.contains("with_idle_timeout");
    if (came.items, came.errors, told) == (1, 1, true) { Ok(came.last) } else { Err(came.last) }
}
