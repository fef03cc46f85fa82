//! Bodies that are streams, in both directions: memory, limits, and what happens if either side goes away.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use ops_runtime::adapter::{Handler, Registration, Reply};
use ops_runtime::binding::{HttpBinding, HttpBody, HttpField, HttpResponse, ParameterStyle, StatusRange};
use ops_runtime::serve::{HttpServer, HttpServerOptions};
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{Body, Call, CallError, Context, HttpClient, HttpConfig, Operation, Registry, operation};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};

use crate::fixture::{Server, serve};

const PIECE: usize = 64 << 10;
static ZEROS: [u8; PIECE] = [0; PIECE];

/// What handlers tell the tests.
#[derive(Clone)]
struct Told {
    /// That `upload` has begun.
    begun: Arc<Notify>,
    ends: mpsc::UnboundedSender<Result<u64, String>>,
    made: Arc<AtomicU64>,
}

/// So many bytes, made when they are asked for.
fn zeros(length: u64, made: Option<Arc<AtomicU64>>) -> Body {
    let pieces = stream::unfold((length, made), |(left, made)| async move {
        let now = left.min(PIECE as u64);
        if let Some(made) = &made {
            made.fetch_add(now, Ordering::Relaxed);
        }
        (now > 0).then(|| (Ok(Bytes::from_static(&ZEROS[..now as usize])), (left - now, made)))
    });
    Body::stream(pieces)
}

async fn count(body: Body) -> Result<u64, String> {
    let (mut stream, mut length) = (body.into_stream(), 0);
    while let Some(piece) = stream.next().await {
        length += piece.map_err(|error| error.to_string())?.len() as u64;
    }
    Ok(length)
}

/// Counts the bytes of a body, and sends how reading ended through a channel.
#[operation(namespace = "files", http = "POST /files/{name}", state(Told))]
async fn upload(context: Context, name: String, file: Body) -> Result<Value, CallError> {
    let told = context.state::<Told>()?.clone();
    let (kind, length) = (file.content_type().map(str::to_owned), file.length().await.unwrap_or_default());
    told.begun.notify_one();
    let reading = tokio::spawn(async move {
        let counted = count(file).await;
        let _ = told.ends.send(counted.clone());
        counted
    });
    let counted = reading.await.map_err(|error| error.to_string())?.map_err(|error| CallError::new("BROKEN", error))?;
    Ok(json!([name, counted, kind, length]))
}

#[operation(namespace = "files", http = "GET /zeros/{length}", state(Told))]
async fn download(context: &Context, length: u64) -> Result<Body, CallError> {
    Ok(zeros(length, Some(context.state::<Told>()?.made.clone())).with_file_name("ü.bin"))
}

#[operation(namespace = "files", http = "PUT /echo")]
async fn echo(body: Body) -> Body {
    body
}

#[operation(namespace = "files", http = "GET /broken")]
async fn broken() -> Body {
    let pieces = stream::once(async { Ok(Bytes::from_static(b"first")) }).chain(stream::once(async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        Err(std::io::Error::other("the disk is gone"))
    }));
    Body::stream(pieces).with_content_type("text/csv")
}

/// Three bytes, of which another number may be stated. If it is right, the stream has no end.
#[operation(namespace = "files", http = "GET /stated/{length}")]
async fn stated(length: u64) -> Body {
    let bytes = stream::iter([Ok(Bytes::from_static(b"abc"))]);
    let body = if length == 3 { Body::stream(bytes.chain(stream::pending())) } else { Body::stream(bytes) };
    body.with_length(length)
}

static EXPORTS: AtomicU64 = AtomicU64::new(0);

#[operation(namespace = "files", http = "POST /exports")]
async fn export() -> Body {
    EXPORTS.fetch_add(1, Ordering::Relaxed);
    "done".into()
}

/// Reads a body, and then does nothing.
#[operation(namespace = "files", http = "POST /stuck")]
async fn stuck(body: Body) -> Result<(), CallError> {
    count(body).await?;
    std::future::pending().await
}

#[operation(namespace = "files", http = "GET /missing")]
async fn missing() -> Body {
    Body::file("/nowhere/at/all")
}

/// Bytes for a type that is no `Body`.
struct Text;

impl Operation for Text {
    type Input = std::collections::BTreeMap<String, String>;
    type Output = String;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("files.text")
        .with_input(Schema::text(r#"{"properties":{"body":{"type":"string","format":"binary"}}}"#))
        .with_http(
            HttpBinding::new("POST", "/text")
                .with_bodies(const { &[HttpBody::new("image/*")] })
                .with_responses(const { &[HttpResponse::new(StatusRange::Exact(200), "application/json")] }),
        );
}

impl Call for Text {}

/// Bytes of which there may be so many.
struct Bounded;

impl Operation for Bounded {
    type Input = std::collections::BTreeMap<String, Body>;
    type Output = Option<u64>;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("files.bounded")
        .with_input(Schema::text(
            r#"{"properties":{"body":{"type":"string","format":"binary","minLength":2,"maxLength":5,"pattern":"^a"}}}"#,
        ))
        .with_http(
            HttpBinding::new("POST", "/bounded")
                .with_bodies(const { &[HttpBody::new("image/*")] })
                .with_responses(const { &[HttpResponse::new(StatusRange::Exact(200), "application/json")] }),
        );
}

impl Call for Bounded {}

struct Setting {
    server: Server,
    client: HttpClient,
    begun: Arc<Notify>,
    ends: mpsc::UnboundedReceiver<Result<u64, String>>,
    made: Arc<AtomicU64>,
}

async fn setting(options: HttpServerOptions) -> Setting {
    let ((sender, ends), made) = (mpsc::unbounded_channel(), Arc::new(AtomicU64::new(0)));
    let begun = Arc::new(Notify::new());
    let told = Told { begun: begun.clone(), ends: sender, made: made.clone() };
    let registry = Registry::builder().with_state(told).build();
    registry.register(Upload).unwrap();
    registry.register(Download).unwrap();
    registry.register(Echo).unwrap();
    registry.register(Broken).unwrap();
    registry.register(Missing).unwrap();
    registry.register(Stated).unwrap();
    registry.register(Export).unwrap();
    registry.register(Stuck).unwrap();
    let text = |mut input: std::collections::BTreeMap<String, String>, _| async move {
        Ok(Reply::Value(input.remove("body").unwrap_or_default()))
    };
    registry.register(Registration::call::<Text, _, _>(text)).unwrap();
    let bounded = |mut input: std::collections::BTreeMap<String, Body>, _| async move {
        Ok(Reply::Value(input.remove("body").unwrap_or_default().length().await?))
    };
    registry.register(Registration::call::<Bounded, _, _>(bounded)).unwrap();
    let dynamic = Handler::dynamic(|input: Value, _| async move { Ok(input) });
    let mut spec = Text::SPEC.clone();
    spec.id = "files.dynamic".into();
    let mut http = HttpBinding::owned("POST", "/dynamic");
    http.bodies = vec![HttpBody::new("image/*")].into();
    spec.binding = ops_runtime::binding::Binding::Http(http);
    registry.register(Registration::new(spec, dynamic)).unwrap();
    let server = serve(HttpServer::new(registry).with_options(options)).await;
    let config = HttpConfig::new().with_base_url(format!("http://{}", server.address));
    Setting { client: HttpClient::new(config).unwrap(), server, begun, ends, made }
}

/// The memory of this process that is in use, in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

const BYTES: &str = "content-type: application/octet-stream";

/// What tells the process that it runs only the test that measures memory.
const ALONE: &str = "OPS_TEST_ALONE_WITH_ITS_MEMORY";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gigabyte_takes_no_memory() {
    // Other tests of this process may use much memory at the same time, so this one starts itself alone.
    if std::env::var_os(ALONE).is_none() {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "uploads::a_gigabyte_takes_no_memory", "--nocapture"]).env(ALONE, "1");
        let run = tokio::task::spawn_blocking(move || again.output().unwrap()).await.unwrap();
        let said = [run.stdout, run.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(run.status.success() && said[0].contains("1 passed"), "{}", said.join("\n"));
        return;
    }
    const GIGABYTE: u64 = 1 << 30;
    const MOST: u64 = 64 << 20;
    let setting = setting(HttpServerOptions::new()).await;
    let before = resident();
    let peak = Arc::new(AtomicU64::new(0));
    let watched = peak.clone();
    let watching = tokio::spawn(async move {
        loop {
            watched.fetch_max(resident(), Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let body = zeros(GIGABYTE, None).with_length(GIGABYTE);
    let up = setting.client.execute::<Upload>(UploadInput { name: "a".to_owned(), file: body }).await.unwrap();
    assert_eq!(up.into_data(), json!(["a", GIGABYTE, "application/octet-stream", GIGABYTE]));
    let down = setting.client.execute::<Download>(DownloadInput { length: GIGABYTE }).await.unwrap().into_data();
    assert_eq!(down.file_name(), Some("ü.bin"));
    assert_eq!(count(down).await, Ok(GIGABYTE));
    let echo = setting.client.execute::<Echo>(EchoInput { body: zeros(GIGABYTE / 4, None) }).await.unwrap();
    assert_eq!(count(echo.into_data()).await, Ok(GIGABYTE / 4));
    watching.abort();
    let grown = peak.load(Ordering::Relaxed).saturating_sub(before);
    assert!(grown < MOST, "{} MiB more", grown >> 20);
}

#[tokio::test]
async fn a_client_that_goes_away_ends_the_stream_with_an_error() {
    let mut setting = setting(HttpServerOptions::new()).await;
    for head in ["content-length: 1000000", "transfer-encoding: chunked"] {
        let mut stream = TcpStream::connect(setting.server.address).await.unwrap();
        let start = format!("POST /files/a HTTP/1.1\r\nhost: localhost\r\n{BYTES}\r\n{head}\r\n\r\n5\r\nhello\r\n");
        stream.write_all(start.as_bytes()).await.unwrap();
        tokio::time::timeout(Duration::from_secs(20), setting.begun.notified()).await.unwrap();
        drop(stream);
        let end = tokio::time::timeout(Duration::from_secs(10), setting.ends.recv()).await.unwrap().unwrap();
        assert!(end.as_ref().is_err_and(|error| error.contains("broke off")), "{head}: {end:?}");
    }
}

#[tokio::test]
async fn a_stream_that_fails_is_no_whole_response() {
    let setting = setting(HttpServerOptions::new()).await;
    let mut stream = TcpStream::connect(setting.server.address).await.unwrap();
    stream.write_all(b"GET /broken HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut text = String::new();
    let _ = tokio::time::timeout(Duration::from_secs(10), stream.read_to_string(&mut text)).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("text/csv"), "{text}");
    assert!(text.contains("first") && !text.contains("0\r\n\r\n"), "{text}");
    let body = setting.client.execute::<Broken>(BrokenInput {}).await.unwrap().into_data();
    assert!(count(body).await.is_err());
    let error = setting.server.get("/missing").await;
    assert_eq!(error.status, 500);
    assert!(!error.problem().to_string().contains("nowhere"));
}

#[tokio::test]
async fn a_stream_is_as_long_as_it_states() {
    let mut setting = setting(HttpServerOptions::new()).await;
    for (length, expected) in [(3, Some(3)), (2, None), (4, None), (0, None)] {
        // The head may come before it is known that the body is no whole one.
        let counted = async {
            let body = setting.client.execute::<Stated>(StatedInput { length }).await.ok()?.into_data();
            assert_eq!(body.length().await.unwrap(), Some(length));
            count(body).await.ok()
        };
        assert_eq!(tokio::time::timeout(Duration::from_secs(10), counted).await.unwrap(), expected, "{length}");
    }
    // A stream without bytes may say so.
    let upload = |pieces: &'static [&'static str]| UploadInput {
        name: "a".to_owned(),
        file: Body::stream(stream::iter(pieces).map(|piece| Ok(Bytes::from_static(piece.as_bytes())))).with_length(0),
    };
    let empty = setting.client.execute::<Upload>(upload(&[""])).await.unwrap().into_data();
    assert_eq!((&empty[1], setting.ends.recv().await), (&json!(0), Some(Ok(0))));
    let error = setting.client.execute::<Upload>(upload(&["", "a"])).await.unwrap_err();
    assert!(error.message().contains("gave more than the 0 bytes that it stated"), "{error}");
    assert!(setting.ends.try_recv().is_err());
    // It would be as wrong again.
    let file = Body::stream(stream::iter([Ok("abc".into())])).with_length(5);
    let error = setting.client.execute::<Upload>(UploadInput { name: "a".to_owned(), file }).await.unwrap_err();
    let told = format!(
        "http://{} failed: the stream of a body ended after 3 of the 5 bytes that it stated",
        setting.server.address
    );
    assert!(error.message().ends_with(&told) && !error.is_retryable(), "{error}");
}

#[tokio::test]
async fn a_slow_reader_slows_the_handler() {
    const LENGTH: u64 = 1 << 40;
    let setting = setting(HttpServerOptions::new()).await;
    let mut stream = TcpStream::connect(setting.server.address).await.unwrap();
    let request = format!("GET /zeros/{LENGTH} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut first = [0; 1024];
    stream.read_exact(&mut first).await.unwrap();
    // What the sockets hold fills up, and then nothing more is made.
    let mut before = 0;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let made = setting.made.load(Ordering::Relaxed);
        if made == before {
            break;
        }
        before = made;
    }
    assert!(before > 0 && before < 64 << 20, "{before} bytes were made");
    drop(stream);
}

#[tokio::test]
async fn uploads_have_limits() {
    let options = HttpServerOptions::new()
        .with_max_upload(Some(10))
        .with_max_body(5)
        .with_read_timeout(Duration::from_millis(300));
    let setting = setting(options).await;
    let image = "content-type: image/png";
    let chunked = "transfer-encoding: chunked";
    let table: [(&str, &[&str], &str, u16, Value); 8] = [
        ("POST /files/a", &[BYTES], "0123456789", 200, json!(["a", 10, "application/octet-stream", 10])),
        ("POST /files/a", &[BYTES], "0123456789a", 413, Value::Null),
        ("PUT /echo", &[BYTES], "", 200, Value::Null),
        // Handlers that take no stream get text, and what they get is held.
        ("POST /text", &[image], "01234", 200, json!("MDEyMzQ=")),
        ("POST /text", &[image], "012345", 413, Value::Null),
        ("POST /dynamic", &[image], "01234", 200, json!({ "body": "MDEyMzQ=" })),
        ("POST /dynamic", &[image], "012345", 413, Value::Null),
        ("POST /files/a", &["content-type: text/plain"], "0123", 415, Value::Null),
    ];
    for (line, headers, body, status, expected) in table {
        let answer = setting.server.send(line, headers, body).await;
        assert_eq!(answer.status, status, "{line} {body}: {answer:?}");
        if !expected.is_null() {
            assert_eq!(answer.json(), expected, "{line} {body}");
        }
    }
    let raw = async |head: &str, body: &str| {
        let text = format!(
            "POST /files/a HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{BYTES}\r\n{head}\r\n\r\n{body}"
        );
        setting.server.raw(text.as_bytes()).await
    };
    let long = raw(chunked, "6\r\n012345\r\n6\r\n012345\r\n0\r\n\r\n").await;
    assert_eq!(long.problem()["detail"], "the body is longer than 10 bytes");
    let late = raw(chunked, "6\r\n012345\r\n").await;
    assert_eq!(late.problem()["detail"], "the body did not come in time");
    // An input that is wrong beside its body is a problem as ever.
    let broken = raw("content-length: 3", "abc").await;
    assert_eq!(broken.status, 200);
}

#[tokio::test]
async fn an_upload_may_take_longer_than_its_call() {
    let options = HttpServerOptions::new().with_timeout(Some(Duration::from_secs(2)));
    let setting = setting(options).await;
    let pieces = stream::iter(0..8).then(|_| async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        Ok(Bytes::from_static(b"a"))
    });
    let file = Body::stream(pieces);
    let counted = setting.client.execute::<Upload>(UploadInput { name: "a".to_owned(), file }).await.unwrap();
    assert_eq!(counted.data[1], 8);
    // The handler itself has that much time, and no more.
    let slow = setting.server.send("POST /stuck", &[BYTES], "abc").await;
    assert_eq!((slow.status, &slow.problem()["code"]), (504, &json!("TIMEOUT")), "{slow:?}");
}

#[tokio::test]
async fn what_has_no_room_for_its_bytes_does_not_run() {
    let setting = setting(HttpServerOptions::new().with_max_streams(1)).await;
    let mut open = TcpStream::connect(setting.server.address).await.unwrap();
    open.write_all(b"GET /zeros/1099511627776 HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    open.read_exact(&mut [0; 1024]).await.unwrap();
    let refused = setting.server.send("POST /exports", &[], "").await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
    assert_eq!(EXPORTS.load(Ordering::Relaxed), 0);
    drop(open);
    let mut exported = setting.server.send("POST /exports", &[], "").await;
    // The server notices that nobody reads any more when it writes.
    for _ in 0..1_000 {
        if exported.status != 503 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        exported = setting.server.send("POST /exports", &[], "").await;
    }
    assert_eq!((exported.body.as_str(), EXPORTS.load(Ordering::Relaxed)), ("done", 1), "{exported:?}");
}

#[tokio::test]
async fn a_schema_bounds_the_bytes_of_an_upload() {
    let setting = setting(HttpServerOptions::new()).await;
    for (body, status, told) in
        [("01234", 200, "5"), ("012345", 422, "no more than 5 bytes"), ("0", 422, "no fewer than 2")]
    {
        let answer = setting.server.send("POST /bounded", &["content-type: image/png"], body).await;
        assert_eq!(answer.status, status, "{body}: {answer:?}");
        assert!(answer.body.contains(told), "{body}: {answer:?}");
    }
}

#[tokio::test]
async fn what_is_in_a_file_is_no_value() {
    const LINES: usize = 20_000;
    let input = json!({ "type": "object", "properties": { "body": { "type": "object", "properties": {
        "file": { "type": "string", "format": "binary" },
        "note": { "type": "string" },
        "list": { "type": "array", "items": { "type": "integer" } },
        "styled": { "type": "array", "items": { "type": "integer" } },
    } } } });
    let mut spec = OperationSpec::mutation("files.parts").with_input(Schema::from(input));
    let mut body = HttpBody::new("multipart/form-data");
    body.fields = vec![HttpField::new("styled").with_style(ParameterStyle::Form, false)].into();
    let mut http = HttpBinding::owned("POST", "/parts");
    http.bodies = vec![body].into();
    spec.binding = ops_runtime::binding::Binding::Http(http);
    let registry = Registry::new();
    let length = |input: Value, _| async move {
        let body = input["body"].as_object().unwrap();
        let lengths = body.values().map(|value| value.as_array().map_or(1, Vec::len));
        Ok(json!(lengths.sum::<usize>()))
    };
    registry.register(Registration::new(spec, Handler::dynamic(length))).unwrap();
    // Room for 4,096 values.
    let options = HttpServerOptions::new().with_max_bodies(1 << 20);
    let server = serve(HttpServer::new(registry).with_options(options)).await;
    let (table, list) = ("1,2,3\n".repeat(LINES), format!("[{}0]", "1,".repeat(LINES)));
    let csv = "\r\ncontent-type: text/csv";
    for (part, content, status) in [
        (format!("\"file\"; filename=\"a.csv\"{csv}"), &table, 200),
        (format!("\"file\"; filename=\"a.json\"{csv}"), &list, 200),
        ("\"file\"".to_owned(), &table, 200),
        ("\"note\"".to_owned(), &table, 200),
        ("\"list\"\r\ncontent-type: application/json".to_owned(), &list, 413),
        ("\"list\"; filename=\"a.json\"\r\ncontent-type: application/json".to_owned(), &list, 413),
        ("\"list\"".to_owned(), &list, 413),
        ("\"styled\"".to_owned(), &table, 413),
        ("\"other\"\r\ncontent-type: application/json".to_owned(), &list, 413),
    ] {
        let text = format!("--b\r\ncontent-disposition: form-data; name={part}\r\n\r\n{content}\r\n--b--\r\n");
        let answer = server.send("POST /parts", &["content-type: multipart/form-data; boundary=b"], &text).await;
        assert_eq!(answer.status, status, "{part}: {answer:?}");
    }
    let small = "--b\r\ncontent-disposition: form-data; name=\"other\"\r\ncontent-type: application/json\r\n\r\n[1,2]\r\n--b--\r\n";
    let answer = server.send("POST /parts", &["content-type: multipart/form-data; boundary=b"], small).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "2"), "{answer:?}");
}
