//! Peers of a hub that ask for more than they read, or say more than it can hold.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::serving::{Served, resident};
use crate::raw::{Raw, announcement};
use crate::{Case, Outcome, block_on};

pub(super) const CASES: &[Case] = &[
    Case::new("hub-answers-that-nobody-reads", 750 << 20, answers).with_family("requests"),
    Case::new("hub-ten-that-read-nothing", 10 * (250 << 20), ten).with_limits(512, 40),
    Case::new("hub-requests-that-never-end", 400 << 20, requests).with_limits(512, 60).with_family("requests"),
    Case::new("hub-announcements-of-a-megabyte", 200 << 20, announcements)
        .with_limits(512, 60)
        .with_family("announcements"),
    Case::new("hub-announcements-of-nothing", 8 << 20, small).with_limits(512, 60).with_family("announcements"),
    // What is only reserved counts for the limit, too, so the case looks itself at what is held.
    Case::new("hub-messages-that-never-end", 200 * (4 << 20), partial).with_limits(1_200, 20),
    Case::new("hub-half-of-a-handshake", 300, half_open),
    Case::new("hub-items-that-mind-no-window", 400 << 20, items).with_limits(512, 60).with_family("events"),
    Case::new("hub-messages-that-are-none", 4 << 20, junk),
];

/// Asks for answers of so many bytes together, each of up to 3 MB, over some connections that read nothing.
async fn ask(served: &Served, bytes: usize, connections: usize) -> std::io::Result<Vec<Raw>> {
    let mut peers = Vec::new();
    let each = bytes / connections;
    for _ in 0..connections {
        let mut raw = Raw::connect(served.address(), "").await?;
        let mut asked = 0;
        for n in 0.. {
            let size = (3 << 20).min(each - asked);
            raw.request(n, "flood.big", &format!(r#"{{"bytes":{size}}}"#)).await?;
            asked += size;
            if asked >= each {
                break;
            }
        }
        peers.push(raw);
    }
    Ok(peers)
}

fn unread(bytes: usize, connections: usize) -> Outcome {
    block_on(async {
        let served = Served::start().await?;
        let peers = ask(&served, bytes, connections).await.map_err(|error| error.to_string())?;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let honest = served.honest().await?;
        let held = resident();
        drop(peers);
        Ok(format!("{honest}; {held:.0} MB"))
    })
}

fn answers(size: usize) -> Outcome {
    unread(size, 1)
}

fn ten(size: usize) -> Outcome {
    unread(size, 10)
}

/// Sends requests of a megabyte, which are many values each, for an operation that does not end.
fn requests(size: usize) -> Outcome {
    block_on(async {
        let served = Served::start().await?;
        let mut raw = Raw::connect(served.address(), "").await.map_err(|error| error.to_string())?;
        let sending = async {
            let mut left = size;
            for n in 0.. {
                let some = left.min(1 << 20);
                let input = format!("[{}0]", "0,".repeat(some / 2));
                if left == 0 || raw.request(n, "flood.slow", &input).await.is_err() {
                    break;
                }
                left -= some;
            }
        };
        // A hub that stops to read is as good as one that refuses.
        let _ = tokio::time::timeout(Duration::from_secs(8), sending).await;
        let honest = served.honest().await?;
        // The first one is read after it was sent.
        for _ in 0..400 {
            if size == 0 || served.hub.running() > 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(format!("{honest}; {} run, {:.0} MB", served.hub.running(), resident()))
    })
}

/// Waits until the hub has read all that was sent to it: it reads the messages of a connection in turn.
async fn read_whole(raw: &mut Raw) {
    let answered = async {
        raw.request(usize::MAX, "flood.add", r#"{"a":40,"b":2}"#).await?;
        raw.answer(&usize::MAX.to_string()).await
    };
    let _ = tokio::time::timeout(Duration::from_secs(10), answered).await;
}

/// Announces operations of a megabyte each.
fn announcements(size: usize) -> Outcome {
    block_on(async {
        let served = Served::start().await?;
        let mut raw = Raw::connect(served.address(), "x-serves: 1\r\n").await.map_err(|error| error.to_string())?;
        let sending = async {
            let (mut left, mut n) = (size, 0);
            while left > 0 {
                let some = left.min(1 << 20);
                raw.say(&announcement(&format!("op{n}"), some)).await?;
                (left, n) = (left - some, n + 1);
            }
            std::io::Result::Ok(())
        };
        // It is read as slowly as it makes others wait.
        let all = tokio::time::timeout(Duration::from_secs(20), sending).await;
        let honest = served.honest().await?;
        if all.is_ok() {
            read_whole(&mut raw).await;
        }
        Ok(format!("{honest}; {} operations are known, {:.0} MB", served.hub.remote().list().len(), resident()))
    })
}

/// Announces small operations one by one.
fn small(size: usize) -> Outcome {
    block_on(async {
        let served = Served::start().await?;
        let mut raw = Raw::connect(served.address(), "x-serves: 1\r\n").await.map_err(|error| error.to_string())?;
        let sending = async {
            let (mut left, mut n) = (size, 0);
            while left > 0 {
                let text = announcement(&format!("op{n}"), 10);
                raw.say(&text).await?;
                (left, n) = (left.saturating_sub(text.len()), n + 1);
            }
            std::io::Result::Ok(())
        };
        let all = tokio::time::timeout(Duration::from_secs(10), sending).await;
        let honest = served.honest().await?;
        if all.is_ok() {
            read_whole(&mut raw).await;
        }
        Ok(format!("{honest}; {} operations are known, all sent: {}", served.hub.remote().list().len(), all.is_ok()))
    })
}

/// Sends all but the last byte of messages of 4 MiB.
fn partial(size: usize) -> Outcome {
    block_on(async {
        let served = Served::start().await?;
        let (mut peers, mut left) = (Vec::new(), size);
        let bytes: Arc<[u8]> = vec![b' '; (4 << 20) - 1].into();
        while left > 0 {
            let some = left.min(bytes.len() + 1);
            let mut raw = Raw::connect(served.address(), "").await.map_err(|error| error.to_string())?;
            left -= some;
            peers.push(tokio::spawn({
                let bytes = bytes.clone();
                async move {
                    let bytes = bytes.get(..some - 1).unwrap_or_default();
                    use tokio::io::AsyncWriteExt;
                    let _ = raw.begin(bytes.len() + 1).await;
                    let _ = raw.stream.write_all(bytes).await;
                    tokio::time::sleep(Duration::from_secs(60)).await;
                }
            }));
            if peers.len() % 20 == 0 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let honest = served.honest().await?;
        match resident() {
            held if held < 400.0 => Ok(format!("{honest}; {held:.0} MB")),
            held => Err(format!("{held:.0} MB are held")),
        }
    })
}

/// Connects so many times, and sends half of a request's head.
fn half_open(size: usize) -> Outcome {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    block_on(async {
        let served = Served::start().await?;
        let mut streams = Vec::new();
        for _ in 0..size {
            let mut stream =
                tokio::net::TcpStream::connect(served.address()).await.map_err(|error| error.to_string())?;
            stream.write_all(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n").await.map_err(|error| error.to_string())?;
            streams.push(stream);
        }
        let honest = served.honest().await?;
        for stream in &mut streams {
            let mut rest = Vec::new();
            let closed = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut rest)).await;
            closed.map_err(|_| "a connection without a request is kept".to_owned())?.ok();
        }
        Ok(format!("{honest}; {size} connections without a request were closed"))
    })
}

/// Serves a subscription, and sends items of 100 KB that nobody has asked for.
fn items(size: usize) -> Outcome {
    block_on(async {
        let served = Served::start().await?;
        let mut raw = Raw::connect(served.address(), "x-serves: 1\r\n").await.map_err(|error| error.to_string())?;
        let announced = announcement("ticks", 10).replace(r#""type":"query""#, r#""type":"subscription""#);
        raw.say(&announced).await.map_err(|error| error.to_string())?;
        let remote = served.hub.remote();
        while remote.list().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let stream = remote.stream("raw.ticks", serde_json::json!({})).await.map_err(|error| error.to_string())?;
        let id = loop {
            let said: serde_json::Value =
                serde_json::from_str(&raw.hear().await.map_err(|error| error.to_string())?).unwrap_or_default();
            if said["type"] == "call.requested" {
                break said["id"].as_str().unwrap_or_default().to_owned();
            }
        };
        let sending = async {
            let mut left = size;
            while left > 0 {
                let some = left.min(100_000);
                let data = "x".repeat(some);
                let item = format!(
                    r#"{{"type":"call.responded","id":"{id}","payload":{{"requestId":"{id}","output":{{"data":"{data}","meta":{{"source":"local","operationId":"raw.ticks","timestamp":1}}}}}}}}"#
                );
                raw.say(&item).await?;
                left -= some;
            }
            std::io::Result::Ok(())
        };
        // It ends when the hub does not listen any more.
        let _ = tokio::time::timeout(Duration::from_secs(60), sending).await;
        let is_much = size > (20 << 20);
        let until = Instant::now() + if is_much { Duration::from_secs(30) } else { Duration::from_millis(200) };
        while remote.in_flight() > 0 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let (pending, honest) = (remote.in_flight(), served.honest().await?);
        drop(stream);
        if pending > 0 && is_much {
            return Err("a worker that minds no window is still listened to".to_owned());
        }
        Ok(format!("{honest}; {pending} pending, {:.0} MB", resident()))
    })
}

/// Sends frames that are none.
fn junk(size: usize) -> Outcome {
    block_on(async {
        let served = Served::start().await?;
        let mut raw = Raw::connect(served.address(), "").await.map_err(|error| error.to_string())?;
        let text = r#"{"type":"call.requested","id":"1","payload":"#;
        let mut sent = 0;
        while sent < size && raw.say(text).await.is_ok() {
            sent += text.len();
        }
        for _ in 0..1_500 {
            if served.hub.peers().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Before the honest peer comes, which is one, too, until the hub has seen it go.
        let is_gone = served.hub.peers().is_empty();
        let honest = served.honest().await?;
        if is_gone || size < 100_000 {
            Ok(format!("{honest}; it was disconnected"))
        } else {
            Err("a peer that says nothing but junk is still connected".to_owned())
        }
    })
}
