//! References to documents at other places.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ops_runtime::HttpConfig;
use ops_runtime::openapi::from_openapi_url;

use super::{document, joined};
use crate::{Outcome, block_on};

/// A server that answers each path, and how many requests it got.
fn serve(answer: impl Fn(&str) -> String + Send + 'static) -> Result<(SocketAddr, Arc<AtomicUsize>), String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap_or_default();
            let head = String::from_utf8_lossy(head.get(..length).unwrap_or_default()).into_owned();
            counted.fetch_add(1, Ordering::Relaxed);
            let _ = stream.write_all(answer(head.split(' ').nth(1).unwrap_or_default()).as_bytes());
        }
    });
    Ok((address, count))
}

fn found(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn refers(count: usize, to: impl Fn(usize) -> String) -> String {
    document("", &format!(r#""schemas":{{{}}}"#, joined(count, |at| format!(r#""S{at}":{{"$ref":"{}"}}"#, to(at)))))
}

/// References that lead, by redirects, into the network of who reads the document.
pub(super) fn other_hosts(_: usize) -> Outcome {
    let (inner, asked) = serve(|_| found(r#"{"type":"string"}"#))?;
    let root = refers(2, |at| format!("part{at}.json"));
    let (outer, _) = serve(move |path| match path {
        "/root.json" => found(&root),
        _ => format!(
            "HTTP/1.1 302 Found\r\nlocation: http://{inner}/secret\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        ),
    })?;
    let imported = block_on(from_openapi_url(&format!("http://{outer}/root.json"), HttpConfig::new()));
    let imported = imported.map_err(|error| error.to_string())?;
    match asked.load(Ordering::Relaxed) {
        0 => Ok(imported.diagnostics.first().map(ToString::to_string).unwrap_or_default()),
        asked => Err(format!("another host was asked {asked} times")),
    }
}

/// References to so many documents that do not exist.
pub(super) fn nowhere(count: usize) -> Outcome {
    let root = refers(count, |at| format!("{at}.json"));
    let (address, asked) = serve(move |path| match path {
        "/root.json" => found(&root),
        _ => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
    })?;
    let imported = block_on(from_openapi_url(&format!("http://{address}/root.json"), HttpConfig::new()));
    let told = imported.map_err(|error| error.to_string())?.diagnostics.len();
    match asked.load(Ordering::Relaxed) {
        asked if asked <= 2_100 => Ok(format!("{asked} requests, {told} diagnostics")),
        asked => Err(format!("{asked} requests")),
    }
}

/// References to so many documents of 8 MB each.
pub(super) fn large(count: usize) -> Outcome {
    let root = refers(count, |at| format!("{at}.json"));
    let part = format!(r#"{{"type":"string","description":"{}"}}"#, "d".repeat(8 << 20));
    let (address, asked) = serve(move |path| found(if path == "/root.json" { &root } else { &part }))?;
    let imported = block_on(from_openapi_url(&format!("http://{address}/root.json"), HttpConfig::new()));
    let told = imported.map_err(|error| error.to_string())?.diagnostics.len();
    Ok(format!("{} requests, {told} diagnostics", asked.load(Ordering::Relaxed)))
}
