//! Entries and keys of a Redis server that are not what they should be.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ops_runtime::Registry;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::call::CallHandler;
use ops_runtime::call::nats::{Nats, NatsConfig};
use ops_runtime::call::redis::{Redis, RedisConfig, RedisWorker};
use ops_runtime::spec::OperationSpec;
use serde_json::{Value, json};

use crate::{Case, Outcome, block_on, raw};

pub(super) const CASES: &[Case] = &[
    Case::new("redis-a-stream-of-another-operation", 0, other_stream),
    Case::new("redis-keys-that-are-not-ours", 0, foreign_keys),
    Case::new("redis-entries-that-are-junk", 1 << 20, junk),
    Case::new("redis-requests-that-never-end", 400 << 20, requests).with_limits(512, 60),
    Case::new("redis-answers-that-nobody-reads", 20 << 20, unread).with_limits(512, 40),
    Case::new("nats-requests-that-never-end", 400 << 20, nats).with_limits(512, 60),
];

/// A server of the case's own.
struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program of other people, which may take what the case itself may not.
fn unlimited(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("prlimit");
    command.args(["--data=unlimited:", "--cpu=unlimited:"]).arg(program);
    command
}

impl Server {
    async fn start() -> Result<Self, String> {
        let redis = |port: &str| {
            let mut command = unlimited("redis-server");
            command.args(["--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", "/tmp"]);
            command
        };
        Self::of(redis).await
    }

    async fn of(command: impl Fn(&str) -> Command) -> Result<Self, String> {
        // Another program may take the port before the server does, which then ends.
        for _ in 0..3 {
            if let Some(server) = Self::launch(&command).await? {
                return Ok(server);
            }
        }
        Err("the server ended as soon as it was started, three times: run tests/peers/install".to_owned())
    }

    /// Starts it at a port that is free; `None` if it ends at once.
    async fn launch(command: &impl Fn(&str) -> Command) -> Result<Option<Self>, String> {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = port.map_err(|error| error.to_string())?.port();
        let child = command(&port.to_string()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.map_err(|error| format!("the server can't be started ({error}): run tests/peers/install"))?;
        let mut server = Self { child, port };
        for _ in 0..3_000 {
            // First of all: a connection may lead to whoever has taken the port.
            if server.child.try_wait().map_err(|error| error.to_string())?.is_some() {
                return Ok(None);
            }
            if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return Ok(Some(server));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Err("the server does not listen after 30 s".to_owned())
    }

    fn redis(&self) -> Result<Redis, String> {
        self.redis_with(RedisConfig::new())
    }

    fn redis_with(&self, config: RedisConfig) -> Result<Redis, String> {
        Redis::new(&format!("redis://127.0.0.1:{}", self.port), config).map_err(|error| error.to_string())
    }

    /// Runs commands, one after the other.
    async fn run(&self, commands: &[&[&[u8]]]) -> Result<redis::Value, String> {
        let client =
            redis::Client::open(format!("redis://127.0.0.1:{}", self.port)).map_err(|error| error.to_string())?;
        let config = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(Some(Duration::from_secs(30)))
            .set_response_timeout(Some(Duration::from_secs(30)));
        let connection = client.get_multiplexed_async_connection_with_config(&config).await;
        let mut connection = connection.map_err(|error| error.to_string())?;
        let mut last = redis::Value::Nil;
        for words in commands {
            let mut words = words.iter();
            let mut command = redis::cmd(std::str::from_utf8(words.next().unwrap_or(&&b""[..])).unwrap_or_default());
            for word in words {
                command.arg(*word);
            }
            last = command.query_async(&mut connection).await.map_err(|error| error.to_string())?;
        }
        Ok(last)
    }
}

fn registry() -> Registry {
    static OPEN: OperationSpec = OperationSpec::query("door.open");
    static SECRET: OperationSpec = OperationSpec::query("door.secret");
    static SLOW: OperationSpec = OperationSpec::query("door.slow");
    let registry = Registry::new();
    let all = [
        Registration::new(&OPEN, Handler::dynamic(|_, _| async { Ok(json!("open")) })),
        Registration::new(&SECRET, Handler::dynamic(|_, _| async { Ok(json!("secret")) })),
        Registration::new(
            &SLOW,
            Handler::dynamic(|input: Value, _| async {
                tokio::time::sleep(Duration::from_secs(600)).await;
                Ok(input)
            }),
        ),
    ];
    let _ = registry.register_all(all);
    registry
}

async fn serve(server: &Server) -> Result<RedisWorker, String> {
    server.redis()?.serve(CallHandler::new(registry())).await.map_err(|error| error.to_string())
}

/// A call of an honest caller; an error if it takes more than 30 s.
async fn honest(server: &Server) -> Outcome {
    let call = async {
        let remote = server.redis()?.remote().await.map_err(|error| error.to_string())?;
        remote.call("door.open", json!({})).await.map_err(|error| error.to_string())
    };
    match tokio::time::timeout(Duration::from_secs(30), call).await {
        Ok(Ok(envelope)) if envelope.data == "open" => Ok("an honest call went on".to_owned()),
        Ok(Ok(envelope)) => Err(format!("an honest call gave {}", envelope.data)),
        Ok(Err(error)) => Err(format!("an honest call failed: {error}")),
        Err(_) => Err("an honest call waits for more than 30 s".to_owned()),
    }
}

/// Puts a request for one operation into the stream of another.
fn other_stream(_: usize) -> Outcome {
    block_on(async {
        let server = Server::start().await?;
        let _worker = serve(&server).await?;
        let frame = raw::request(7, "door.secret", "{}");
        server
            .run(&[
                &[b"XADD", b"ops:caller:mallory", b"*", b"from", b"mallory"],
                &[b"XADD", b"ops:call:door.open", b"*", b"frame", frame.as_bytes(), b"from", b"mallory"],
            ])
            .await?;
        for _ in 0..600 {
            let answers = server.run(&[&[b"XRANGE", b"ops:caller:mallory", b"-", b"+"]]).await?;
            let answers = format!("{answers:?}");
            if answers.contains("call.responded") {
                return Err("the request was run by the wrong stream".to_owned());
            }
            if answers.contains("call.error") {
                let answered = answers.contains("VALIDATION_ERROR");
                return if answered { honest(&server).await } else { Err(answers) };
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Err("the request was never answered".to_owned())
    })
}

/// Leaves keys of other types under our prefix, before and while we use them.
fn foreign_keys(_: usize) -> Outcome {
    block_on(async {
        let server = Server::start().await?;
        server
            .run(&[
                &[b"SET", b"ops:call:door.secret", b"not a stream"],
                &[b"SET", b"ops:serves:w1", b"not a hash"],
                &[b"HSET", b"ops:serves:w2", b"a.b", b"{", b"\xff.\xfe", b"\xff"],
                &[b"SADD", b"ops:workers", b"w1", b"w2", b"\xff\xfe", b"w 3", b""],
                &[b"XADD", b"ops:changes", b"*", b"from", b"\xff\xfe"],
                &[b"XADD", b"ops:changes", b"*", b"x", b"y"],
                &[b"XADD", b"ops:changes", b"*", b"from", b"w1"],
            ])
            .await?;
        let _worker = serve(&server).await?;
        let remote = server.redis()?.remote().await.map_err(|error| error.to_string())?;
        let first = honest(&server).await?;
        // While it is in use.
        server
            .run(&[
                &[b"DEL", b"ops:call:door.slow"],
                &[b"SET", b"ops:call:door.slow", b"not a stream"],
                &[b"XADD", b"ops:changes", b"*", b"from", b"w1"],
                &[b"XADD", b"ops:changes", b"*", b"from", b"\xff"],
            ])
            .await?;
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let call = remote.call("door.open", json!({}));
        let again = tokio::time::timeout(Duration::from_secs(30), call).await;
        again.map_err(|_| "a call waits for ever".to_owned())?.map_err(|error| error.to_string())?;
        let kept = server.run(&[&[b"GET", b"ops:call:door.secret"]]).await?;
        let left = server.run(&[&[b"PTTL", b"ops:call:door.secret"]]).await?;
        if format!("{kept:?}") == "nil" || !format!("{left:?}").contains("-1") {
            return Err(format!("somebody's key is {kept:?} and lasts {left:?} ms"));
        }
        Ok(format!("{first}, and so did those after"))
    })
}

/// Puts junk into the streams of requests, of the worker and of a caller.
fn junk(size: usize) -> Outcome {
    block_on(async {
        let server = Server::start().await?;
        let _worker = serve(&server).await?;
        let remote = server.redis()?.remote().await.map_err(|error| error.to_string())?;
        let long = vec![b'x'; size.max(1)];
        for key in [&b"ops:call:door.open"[..], b"ops:changes"] {
            server
                .run(&[
                    &[b"XADD", key, b"*", b"x", b"y"],
                    &[b"XADD", key, b"*", b"frame", b"\xff\xfe", b"from", b"\xff\xfe"],
                    &[b"XADD", key, b"*", b"frame", b"{", b"from", b"mallory"],
                    &[b"XADD", key, b"*", b"frame", &long, b"from", &long],
                    &[b"XADD", key, b"*", b"frame", br#"{"type":"link.drain","payload":{}}"#, b"from", b"m 1 1"],
                    &[b"XADD", key, b"*", b"from", b""],
                ])
                .await?;
        }
        remote.call("door.open", json!({})).await.map_err(|error| error.to_string())?;
        honest(&server).await
    })
}

/// Asks for what never ends, with inputs of 4 MB.
fn requests(size: usize) -> Outcome {
    block_on(async {
        let server = Server::start().await?;
        let _worker = serve(&server).await?;
        let (mut left, mut n) = (size, 0);
        while left > 0 {
            let some = left.min(3 << 20);
            let input = format!("[{}0]", "0,".repeat(some / 2));
            let frame = raw::request(n, "door.slow", &input);
            let from = format!("mallory{n}");
            server
                .run(&[&[b"XADD", b"ops:call:door.slow", b"*", b"frame", frame.as_bytes(), b"from", from.as_bytes()]])
                .await?;
            (left, n) = (left - some, n + 1);
        }
        honest(&server).await
    })
}

/// Asks for answers and reads none of them.
fn unread(size: usize) -> Outcome {
    static BIG: OperationSpec = OperationSpec::query("door.big");
    block_on(async {
        let server = Server::start().await?;
        let registry = registry();
        let big = Registration::new(&BIG, Handler::dynamic(|_, _| async { Ok(Value::String("x".repeat(200_000))) }));
        let _ = registry.register(big);
        let redis = server.redis_with(RedisConfig::new().with_max_unread(4 << 20))?;
        let _worker = redis.serve(CallHandler::new(registry)).await.map_err(|error| error.to_string())?;
        server.run(&[&[b"XADD", b"ops:caller:mallory", b"*", b"from", b"mallory"]]).await?;
        for n in 0..size / 200_000 {
            let frame = raw::request(n, "door.big", "{}");
            server
                .run(&[&[b"XADD", b"ops:call:door.big", b"*", b"frame", frame.as_bytes(), b"from", b"mallory"]])
                .await?;
        }
        for _ in 0..600 {
            if format!("{:?}", server.run(&[&[b"EXISTS", b"ops:caller:mallory"]]).await?) == "int(0)" {
                return honest(&server).await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let length = server.run(&[&[b"XLEN", b"ops:caller:mallory"]]).await?;
        Err(format!("{length:?} answers wait for a caller that does not read"))
    })
}

/// Asks for what never ends, over NATS, from callers without number.
fn nats(size: usize) -> Outcome {
    use tokio::io::AsyncWriteExt;
    block_on(async {
        let nats_server = |port: &str| {
            let mut command = unlimited(concat!(env!("CARGO_MANIFEST_DIR"), "/../peers/.venv/bin/nats-server"));
            command.args(["--addr", "127.0.0.1", "--port", port]);
            command
        };
        let server = Server::of(nats_server).await?;
        let url = format!("nats://127.0.0.1:{}", server.port);
        let nats = Nats::connect(&url, NatsConfig::new()).await.map_err(|error| error.to_string())?;
        let _worker = nats.serve(CallHandler::new(registry())).await.map_err(|error| error.to_string())?;
        let hostile = tokio::net::TcpStream::connect(("127.0.0.1", server.port)).await;
        let mut hostile = hostile.map_err(|error| error.to_string())?;
        hostile.write_all(b"CONNECT {\"verbose\":false}\r\n").await.map_err(|error| error.to_string())?;
        let (mut left, mut n) = (size, 0);
        while left > 0 {
            let some = left.min(900_000);
            let frame = raw::request(n, "door.slow", &format!("[{}0]", "0,".repeat(some / 2)));
            let head = format!("PUB ops.call.door.slow _INBOX.m{n}.ops.{n} {}\r\n", frame.len());
            for bytes in [head.as_bytes(), frame.as_bytes(), b"\r\n"] {
                hostile.write_all(bytes).await.map_err(|error| error.to_string())?;
            }
            (left, n) = (left - some, n + 1);
        }
        let call = async {
            let honest = Nats::connect(&url, NatsConfig::new()).await?.remote().await?;
            honest.call("door.open", json!({})).await
        };
        match tokio::time::timeout(Duration::from_secs(30), call).await {
            Ok(Ok(envelope)) if envelope.data == "open" => {
                Ok(format!("an honest call went on, {:.0} MB", super::serving::resident()))
            }
            Ok(other) => Err(format!("an honest call gave {other:?}")),
            Err(_) => Err("an honest call waits for more than 30 s".to_owned()),
        }
    })
}
