//! A spoke: a connection to a hub, with reconnecting.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::http::{HeaderValue, Uri, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::select;
use percent_encoding::percent_decode_str;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::UrlError;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::{Error, protocol};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};
use tokio_util::sync::CancellationToken;

use super::WebSocketConfig;
use super::config::{MAX_MESSAGE, bearer};
use super::connection::{Connection, Parts, Stage};
use super::driver;
use super::io::Gauge;
use super::outbox::{Outbox, ToPeer};
use crate::call::budget::{Budget, Limits};
use crate::call::directory::{gone, stopped};
use crate::call::slot::Slot;
use crate::call::tls::{self, Settings};
use crate::call::trouble::Trouble;
use crate::call::{Directory, Link, PeerAuth, PendingRequests, Remote, Route, Transport, TransportId, TransportInfo};
use crate::model::lock::lock;
use crate::model::random::jitter;
use crate::{BoxFuture, CallError, ErrorCode, SpecRef, Text};

/// How long a connection has to last so that the next attempt after its loss is soon.
const HELD: Duration = Duration::from_secs(1);

type Stream = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A connection to a hub, with reconnecting.
///
/// A clone is the same client. The connection lasts as long as a clone, or a [`Remote`] of it.
#[derive(Clone)]
pub struct WebSocketClient(Arc<Handle>);

struct Handle {
    inner: Arc<Inner>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Inner {
    id: TransportId,
    url: String,
    tls: Option<Settings>,
    config: WebSocketConfig,
    outbox: Arc<Outbox>,
    pending: PendingRequests,
    directory: Directory,
    connection: Mutex<Option<Arc<Connection>>>,
    /// True if there is a connection, and the operations of the hub are known.
    up: watch::Sender<bool>,
    /// Why `up` is false.
    trouble: Trouble,
    stop: CancellationToken,
}

impl WebSocketClient {
    /// Connects to a hub, at `ws://HOST:PORT/PATH` or `wss://HOST:PORT/PATH`.
    ///
    /// Use `wss://` (feature `tls`) for a hub on another machine: over `ws://`, the token and all calls are sent in the
    /// clear. The credentials of `wss://NAME:PASSWORD@HOST` are sent as `Basic`, unless the configuration has a token or
    /// a header `authorization`.
    ///
    /// # Errors
    /// If the configuration is invalid, if TLS is required and cannot be set up, if the connection is not established
    /// [in time](WebSocketConfig::with_connect_timeout), or if the hub refuses: `ACCESS_DENIED` for its status 401 or 403.
    pub fn connect(url: &str, config: WebSocketConfig) -> BoxFuture<'_, Result<Self, CallError>> {
        Box::pin(async move {
            if let Some(mistake) = &config.mistake {
                return Err(mistake.clone());
            }
            let inner = Arc::new(Inner::new(url, config)?);
            let stream = inner.connect().await?;
            let mut up = inner.up.subscribe();
            let task = tokio::spawn(supervise(inner.clone(), stream));
            let client = Self(Arc::new(Handle { inner: inner.clone(), task: Mutex::new(Some(task)) }));
            match tokio::time::timeout(inner.config.connect_timeout, up.wait_for(|up| *up)).await {
                Ok(Ok(_)) => {}
                _ => return Err(CallError::execution("the hub did not say what it serves")),
            }
            Ok(client)
        })
    }

    /// A caller for the operations of the hub.
    pub fn remote(&self) -> Remote {
        Remote::new(self.clone())
    }

    /// Announces operations that were added to the registry or removed since.
    pub fn announce(&self) {
        if let Some(connection) = &*self.0.inner.connection() {
            connection.announce();
        }
    }

    /// Number of running requests of the hub.
    pub fn running(&self) -> usize {
        self.0.inner.connection().as_ref().map_or(0, |connection| connection.running())
    }

    /// True if the connection is up.
    pub fn is_connected(&self) -> bool {
        *self.0.inner.up.borrow()
    }

    /// Accepts no more requests, finishes the running ones, and closes the connection. Requests of this side fail with
    /// `ABORTED`.
    pub async fn stop(self) {
        let inner = &self.0.inner;
        let connection = inner.connection().clone();
        if let Some(connection) = connection {
            connection.drain(inner.config.connect_timeout).await;
        }
        inner.stop.cancel();
        let task = lock(&self.0.task).take();
        if let Some(task) = task {
            let _ = task.await;
        }
        inner.pending.close(&stopped("the client was stopped"));
    }
}

impl fmt::Debug for WebSocketClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketClient").field("connected", &self.is_connected()).finish_non_exhaustive()
    }
}

impl Transport for WebSocketClient {
    fn route(&self, operation: &str) -> Result<Route, CallError> {
        let inner = &self.0.inner;
        if inner.stop.is_cancelled() {
            return Err(stopped("the client was stopped"));
        }
        let mut up = inner.up.subscribe();
        if *up.borrow_and_update() {
            match inner.directory.route(operation) {
                // The operations of a connection that ends are gone with it. The next one may have them again.
                Err(_) if inner.is_left() || up.has_changed().unwrap_or(true) => {}
                routed => return routed.map(Route::To),
            }
        }
        let inner = inner.clone();
        Ok(Route::Wait(Box::pin(async move {
            match tokio::time::timeout(inner.config.connect_timeout, up.wait_for(|up| *up)).await {
                Ok(Ok(_)) => Ok(()),
                _ => Err(inner.trouble.error("there is no connection to the hub")),
            }
        })))
    }

    fn spec(&self, operation: &str) -> Option<SpecRef> {
        self.0.inner.directory.spec(operation)
    }

    fn list(&self) -> Vec<SpecRef> {
        self.0.inner.directory.list()
    }

    fn in_flight(&self) -> usize {
        self.0.inner.pending.in_flight()
    }

    fn info(&self) -> TransportInfo {
        TransportInfo::new("websocket").with_max_message(self.0.inner.outbox.limit())
    }

    fn id(&self) -> Option<TransportId> {
        Some(self.0.inner.id)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let task = lock(&self.task).take();
        if let Some(task) = task {
            task.abort();
        }
        let connection = self.inner.connection().take();
        if let Some(connection) = connection {
            connection.close();
        }
        self.inner.pending.close(&stopped("the client is gone"));
    }
}

impl Inner {
    fn new(url: &str, mut config: WebSocketConfig) -> Result<Self, CallError> {
        let (id, outbox) = (TransportId::next(), Outbox::new(MAX_MESSAGE));
        // Done once, not for each connection, because the handler keeps the specs that it announces.
        config.handler = config.handler.map(|handler| handler.over(id));
        let link: Arc<dyn Link> = Arc::new(ToPeer::lasting(outbox.clone()));
        let pending =
            if config.resubscribes { PendingRequests::resubscribing(link) } else { PendingRequests::new(link) };
        Ok(Self {
            id,
            tls: config.trust.settings(url)?,
            url: url.to_owned(),
            outbox,
            pending,
            directory: Directory::new(),
            connection: Mutex::default(),
            up: watch::Sender::new(false),
            trouble: Trouble::default(),
            stop: CancellationToken::new(),
            config,
        })
    }

    fn connection(&self) -> MutexGuard<'_, Option<Arc<Connection>>> {
        lock(&self.connection)
    }

    async fn connect(&self) -> Result<Stream, CallError> {
        let mut request = self.url.as_str().into_client_request().map_err(|error| refused(&self.url, &error))?;
        if let Some(login) = login(&self.url) {
            request.headers_mut().insert(header::AUTHORIZATION, login);
        }
        request.headers_mut().extend(self.config.headers.clone());
        let settings = protocol::WebSocketConfig::default()
            .read_buffer_size(32 << 10)
            .max_message_size(Some(self.config.max_message))
            .max_frame_size(Some(self.config.max_message));
        let opening = async {
            if let Some(source) = &self.config.token_source {
                request.headers_mut().insert(header::AUTHORIZATION, bearer(&source().await?)?);
            }
            open(request, settings, self.tls.clone()).await.map_err(|error| refused(&self.url, &error))
        };
        match tokio::time::timeout(self.config.connect_timeout, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(gone(format!("the hub{} does not answer", place(&self.url)))),
        }
    }

    /// Begins a connection that was made.
    fn begin(&self) -> Arc<Connection> {
        let share = match &self.config.handler {
            Some(handler) => handler.budget().own_share(),
            None => Budget::new(Limits::default()).own_share(),
        };
        let auth = if self.config.trusts_hub { PeerAuth::trusted() } else { PeerAuth::anonymous() };
        let connection = Arc::new(Connection::new(Parts {
            outbox: self.outbox.clone(),
            pending: self.pending.clone(),
            handler: self.config.handler.clone(),
            directory: self.directory.clone(),
            // It is the hub that this client was configured to use.
            auth: auth.serving(true),
            max_message: self.config.max_message,
            gauge: Gauge::new(share.clone()),
            share,
            max_announced: self.config.max_announced,
            company: Arc::default(),
        }));
        *self.connection() = Some(connection.clone());
        connection.open();
        connection
    }

    /// True if the hub has asked for no more requests. Then there is no connection for calls, also if the task of the
    /// connection has not noted it yet.
    fn is_left(&self) -> bool {
        let connection = self.connection();
        let leaves = connection.as_ref().is_some_and(|connection| connection.is_leaving());
        if leaves {
            // Under the lock: it is not about the next connection.
            self.up.send_if_modified(std::mem::take);
        }
        leaves
    }

    /// Runs a connection until it ends; true if the connection was usable.
    async fn run(&self, mut stream: Stream) -> bool {
        let connection = self.begin();
        let mut stage = connection.stage();
        let mut was_open = false;
        let (why, code) = {
            let watching = std::pin::pin!(async {
                let opens = stage.wait_for(|stage| *stage >= Stage::Open);
                let opened = tokio::time::timeout(self.config.connect_timeout, opens).await.map(|open| open.is_ok());
                let reached = match opened {
                    Ok(reached) => reached,
                    Err(_) => {
                        self.note_silence();
                        stage.wait_for(|stage| *stage >= Stage::Open).await.is_ok()
                    }
                };
                if reached {
                    was_open = true;
                    let interrupted = self.pending.reopen();
                    self.trouble.clear();
                    if !connection.is_leaving() {
                        self.up.send_replace(true);
                    }
                    select(std::pin::pin!(self.repeat(interrupted)), std::pin::pin!(connection.leaves())).await;
                }
                connection.leaves().await;
                self.up.send_replace(false);
                connection.quiesce().await;
                std::future::pending::<()>().await;
            });
            let stop = self.stop.cancelled();
            let driving = std::pin::pin!(driver::drive(&mut stream, &connection, self.config.heartbeat, stop));
            match select(driving, watching).await {
                futures_util::future::Either::Left((end, _)) => (end.why, end.code),
                futures_util::future::Either::Right(_) => ("it was closed".to_owned(), 1000),
            }
        };
        self.up.send_replace(false);
        tracing::debug!(why, "the connection to the hub has ended");
        connection.close();
        self.connection().take();
        self.pending.interrupt(&gone(format!("the connection was lost: {why}")));
        driver::close(&mut stream, code).await;
        if !was_open && !self.stop.is_cancelled() {
            self.note_silence();
        }
        was_open
    }

    /// Notes that the hub has accepted a connection, so that it is not said any longer why it refused an earlier one.
    fn note_silence(&self) {
        self.trouble.note("there is no connection to the hub", gone("the hub did not say what it serves"));
    }

    /// Repeats the requests of interrupted subscriptions, each when the hub has announced its operation.
    ///
    /// A hub that was restarted, and that forwards calls, learns what its spokes serve only when they have connected again.
    /// An operation that is not announced in time is requested anyhow, and the error of that ends the subscription.
    async fn repeat(&self, mut interrupted: Vec<(Text, Arc<Slot>)>) {
        let mut changes = self.directory.changes();
        let announced = async {
            loop {
                interrupted.retain(|(operation, slot)| {
                    let waits = self.directory.spec(operation).is_none();
                    if !waits {
                        slot.resume();
                    }
                    waits
                });
                if interrupted.is_empty() || changes.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(self.config.connect_timeout, announced).await;
        interrupted.iter().for_each(|(_, slot)| slot.resume());
    }
}

/// Keeps a connection until the client is stopped.
async fn supervise(inner: Arc<Inner>, first: Stream) {
    let (least, most) = inner.config.backoff;
    let (mut delay, mut stream) = (least, Some(first));
    while !inner.stop.is_cancelled() {
        let connected = match stream.take() {
            Some(stream) => Some(stream),
            None => match inner.stop.run_until_cancelled(inner.connect()).await {
                Some(Ok(stream)) => Some(stream),
                Some(Err(error)) => {
                    inner.trouble.note("there is no connection to the hub", error);
                    None
                }
                None => return,
            },
        };
        if let Some(stream) = connected {
            let began = Instant::now();
            // A connection that was lost at once does not reset the delay.
            if inner.run(stream).await && began.elapsed() >= HELD.max(delay * 2) {
                delay = least;
            }
        }
        inner.stop.run_until_cancelled(tokio::time::sleep(jitter(delay))).await;
        delay = delay.saturating_mul(2).min(most);
    }
}

#[cfg(feature = "tls")]
async fn open(request: Request, settings: protocol::WebSocketConfig, tls: Option<Settings>) -> Result<Stream, Error> {
    use tokio_tungstenite::{Connector, connect_async_tls_with_config};

    let connector = tls.map_or(Connector::Plain, Connector::Rustls);
    let (stream, _) = connect_async_tls_with_config(request, Some(settings), true, Some(connector)).await?;
    Ok(stream)
}

#[cfg(not(feature = "tls"))]
async fn open(request: Request, settings: protocol::WebSocketConfig, _: Option<Settings>) -> Result<Stream, Error> {
    let (stream, _) = tokio_tungstenite::connect_async_with_config(request, Some(settings), true).await?;
    Ok(stream)
}

/// The header of the credentials in a URL, if it has some.
fn login(url: &str) -> Option<HeaderValue> {
    let url = url.parse::<Uri>().ok()?;
    let (login, _) = url.authority()?.as_str().rsplit_once('@')?;
    let (name, password) = login.split_once(':').unwrap_or((login, ""));
    let text: Vec<u8> = percent_decode_str(name).chain([b':']).chain(percent_decode_str(password)).collect();
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(text))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Where a hub is, without the credentials and the query of its URL.
fn place(url: &str) -> String {
    let url = url.parse::<Uri>().unwrap_or_default();
    match (url.host(), url.port_u16()) {
        (Some(host), Some(port)) => format!(" at {host}:{port}"),
        (Some(host), None) => format!(" at {host}"),
        (None, _) => String::new(),
    }
}

/// Why the hub cannot be reached; the error contains nothing of the request but the host and the port.
fn refused(url: &str, error: &Error) -> CallError {
    let unreached =
        |why: &dyn fmt::Display| CallError::execution(format!("the hub{} can't be reached: {why}", place(url)));
    match error {
        Error::Http(response) => {
            // One line of text is the hub's reason; a proxy may have sent anything.
            let is_line =
                |said: &&str| said.len() <= 300 && said.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
            let said = response.body().as_deref().and_then(|body| std::str::from_utf8(body).ok()).filter(is_line);
            let said = said.filter(|said| !said.is_empty()).map_or_else(String::new, |said| format!(": {said}"));
            let code = match response.status().as_u16() {
                401 | 403 => ErrorCode::AccessDenied,
                _ => ErrorCode::ExecutionError,
            };
            CallError::new(code, format!("the hub refuses: HTTP {}{said}", response.status()))
        }
        Error::Io(error) => unreached(&format_args!("{error}{}", tls::advice(error))),
        Error::Url(UrlError::UnsupportedUrlScheme) => unreached(&"its URL begins with neither `ws://` nor `wss://`"),
        error => unreached(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_urls_are_a_header() {
        let told = |url: &str| login(url).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(told("wss://ann:s%40c:ret@hub.example.com/ops?key=a@b").as_deref(), Some("Basic YW5uOnNAYzpyZXQ="));
        assert_eq!(told("ws://ann@127.0.0.1:1").as_deref(), Some("Basic YW5uOg=="));
        assert_eq!((told("ws://127.0.0.1:1/a@b"), told("")), (None, None));
        assert_eq!(format!("{:?}", login("ws://ann:hush@hub").unwrap()), "Sensitive");
    }

    /// The task of the connection notes it a little later.
    #[tokio::test]
    async fn a_call_waits_as_soon_as_the_hub_leaves() {
        let inner = Arc::new(Inner::new("ws://127.0.0.1:1/", WebSocketConfig::new()).unwrap());
        let client = WebSocketClient(Arc::new(Handle { inner: inner.clone(), task: Mutex::default() }));
        let spec = serde_json::to_string(&crate::OperationSpec::query("a.b")).unwrap();
        for _ in 0..2 {
            let connection = inner.begin();
            connection.receive(&format!(r#"{{"type":"link.announce","payload":{{"add":[{spec}]}}}}"#));
            inner.up.send_replace(true);
            assert!(matches!(client.route("a.b"), Ok(Route::To(_))));
            assert_eq!(*client.route("a.c").unwrap_err().code(), ErrorCode::OperationNotFound);
            connection.receive(r#"{"type":"link.drain","payload":{}}"#);
            let Ok(Route::Wait(wait)) = client.route("a.b") else { panic!("it is not waited for") };
            assert!(!client.is_connected());
            tokio::time::timeout(Duration::from_millis(50), wait).await.unwrap_err();
            connection.close();
        }
    }

    #[tokio::test]
    async fn errors_name_the_hub_without_its_credentials() {
        for (url, told) in [
            ("ws://ann:hush@127.0.0.1:1/ops?key=hush", "the hub at 127.0.0.1:1 can't be reached: Connection refused"),
            (
                "http://ann:hush@127.0.0.1/ops?key=hush",
                "the hub at 127.0.0.1 can't be reached: its URL begins with neither `ws://` nor `wss://`",
            ),
        ] {
            let error = WebSocketClient::connect(url, WebSocketConfig::new()).await.map(drop).unwrap_err();
            assert!(error.message().starts_with(told) && !error.message().contains("hush"), "{url}: {error}");
        }
    }
}
