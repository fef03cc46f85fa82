//! Time that peers give each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ops_runtime::call::CallHandler;
use ops_runtime::call::websocket::{Hub, WebSocketClient, WebSocketConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::serving::{Served, registry};
use crate::raw::Raw;
use crate::{Case, Outcome, block_on};

pub(super) const CASES: &[Case] =
    &[Case::new("hub-clocks-that-differ", 0, clocks), Case::new("hub-that-drops-whoever-connects", 0, flapping)];

/// Calls with a deadline that has long passed by the hub's clock, and the time that is left.
fn clocks(_: usize) -> Outcome {
    block_on(async {
        let served = Served::of(Hub::new(CallHandler::new(registry()))).await?;
        let mut raw = Raw::connect(served.address(), "").await.map_err(|error| error.to_string())?;
        let request = |id: &str, limits: &str| {
            format!(
                r#"{{"type":"call.requested","id":"{id}","payload":{{"requestId":"{id}","operationId":"flood.add","input":{{"a":1,"b":1}},{limits}}}}}"#
            )
        };
        for (id, limits, expected) in [
            ("left", r#""deadline":1000,"timeLeft":60000"#, "call.responded"),
            ("old", r#""deadline":1000"#, "call.error"),
            ("none", r#""deadline":99999999999999,"timeLeft":0"#, "call.error"),
            ("endless", r#""timeLeft":18446744073709551615"#, "call.responded"),
        ] {
            raw.say(&request(id, limits)).await.map_err(|error| error.to_string())?;
            let answer = raw.answer(id).await.map_err(|error| error.to_string())?;
            if answer["type"] != expected {
                return Err(format!("{limits}: {answer}"));
            }
        }
        Ok("the time that is left counts, and an absolute deadline where there is none".to_owned())
    })
}

/// Accepts connections, says a word, and drops them.
fn flapping(_: usize) -> Outcome {
    block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => break,
                    }
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let key = head.lines().find_map(|line| {
                    line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"))
                });
                let key = key.map(|(_, key)| key.to_owned()).unwrap_or_default();
                let accept = tokio_tungstenite::tungstenite::handshake::derive_accept_key(key.as_bytes());
                let response = format!(
                    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {accept}\r\n\r\n"
                );
                let _ = stream.write_all(response.as_bytes()).await;
                let text = br#"{"type":"link.announce","payload":{}}"#;
                let _ = stream.write_all(&[0x81, u8::try_from(text.len()).unwrap_or(0)]).await;
                let _ = stream.write_all(text).await;
                let _ = stream.flush().await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let config = WebSocketConfig::new().with_backoff(Duration::ZERO, Duration::from_secs(10));
        let begun = Instant::now();
        let client = WebSocketClient::connect(&format!("ws://{address}/"), config).await.map_err(|e| e.to_string())?;
        tokio::time::sleep(Duration::from_secs(3)).await;
        // It connects again, be it later on a busy machine.
        while count.load(Ordering::Relaxed) < 2 && begun.elapsed() < Duration::from_secs(30) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        drop(client);
        let (count, seconds) = (count.load(Ordering::Relaxed) as u64, begun.elapsed().as_secs());
        let said = format!("{count} connections in {seconds} s");
        // Twenty at most in three seconds.
        if (2..=20 * seconds / 3).contains(&count) { Ok(said) } else { Err(said) }
    })
}
