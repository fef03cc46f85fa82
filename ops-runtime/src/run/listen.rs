//! Serving a listener over HTTP/1.1, with limits on the number of connections and on slow clients.

mod head;

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::future::{Either, select};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs, lookup_host};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::CancellationToken;

use self::head::{Requests, Sending, Watch};
use crate::run::accept::accept;
use crate::run::fairness::{Cost, Pace, Turns};

/// How long dropping unfinished requests may take.
const DROPPED: Duration = Duration::from_secs(1);

/// The limits of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) max_connections: usize,
    /// Timeout for the head of a request; an idle connection is closed after that, too.
    pub(crate) head_timeout: Duration,
    /// Limit of the bytes of a request head.
    pub(crate) max_head: usize,
    /// How long a client may read nothing.
    pub(crate) stall_timeout: Duration,
    /// How long requests in flight may take after the token was cancelled; if it is zero, they are not waited for.
    pub(crate) shutdown_timeout: Duration,
}

/// Listens on an address.
///
/// # Errors
/// If it cannot be bound: an error of the same kind, with the address in its text.
pub(crate) async fn bind(address: impl ToSocketAddrs) -> io::Result<TcpListener> {
    // Looked up first, since the address itself has no text.
    let addresses: Vec<SocketAddr> = lookup_host(address).await?.collect();
    TcpListener::bind(addresses.as_slice()).await.map_err(|error| {
        let tried: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        io::Error::new(error.kind(), format!("cannot listen on {}: {error}", tried.join(", ")))
    })
}

/// Serves the requests of all connections until the token is cancelled. A request may have work in other tasks, which
/// take turns with the connection by the same cost.
///
/// When this ends, or is dropped, idle connections end at once, and the others after the response to the request in
/// flight.
///
/// # Errors
/// If the listener cannot accept connections any more, or if the system cannot start a thread.
pub(crate) async fn serve<F, Fut, B>(
    listener: TcpListener,
    limits: Limits,
    cancel: CancellationToken,
    answer: F,
) -> io::Result<()>
where
    F: Fn(Request<Incoming>, &Arc<Cost>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Response<B>> + Send + 'static,
    B: http_body::Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let most = limits.max_connections.clamp(1, u32::MAX as usize).min(Semaphore::MAX_PERMITS);
    let room = Arc::new(Semaphore::new(most));
    let pace = Pace::one_by_one();
    // Kept by each connection, since one may still wait for a head when this ends.
    let watch = Arc::new(Watch::new(limits.head_timeout)?);
    // Unfinished requests are dropped at the end of the shutdown, so that they are logged.
    let over = CancellationToken::new();
    let graceful = cancel.child_token();
    let _ended = graceful.clone().drop_guard();
    let ends = Ends { graceful, over };
    let accepting = async {
        loop {
            let Ok(permit) = room.clone().acquire_owned().await else { return Ok(()) };
            let stream = accept(&listener).await?;
            let (ends, cost, requests, answer) = (ends.clone(), Cost::new(&pace), watch.connection(), answer.clone());
            let watch = watch.clone();
            tokio::spawn(async move {
                connection(stream, limits, ends, cost, requests, answer).await;
                drop(watch);
                // After the connection itself, so that whoever waits for all permits waits for all connections.
                drop(permit);
            });
        }
    };
    let ended = cancel.run_until_cancelled(accepting).await.unwrap_or(Ok(()));
    drop(listener);
    if !limits.shutdown_timeout.is_zero() && ended.is_ok() {
        wait_for_all(&room, most, limits.shutdown_timeout, &ends.over).await;
    }
    ended
}

/// When the connections of a server end.
#[derive(Clone)]
struct Ends {
    /// From here on, requests in flight are answered, and no more are read.
    graceful: CancellationToken,
    /// From here on, unfinished requests are dropped.
    over: CancellationToken,
}

/// Serves the requests of one connection until it ends.
async fn connection<F, Fut, B>(
    stream: TcpStream,
    limits: Limits,
    ends: Ends,
    cost: Arc<Cost>,
    requests: Arc<Requests>,
    answer: F,
) where
    F: Fn(Request<Incoming>, &Arc<Cost>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Response<B>> + Send + 'static,
    B: http_body::Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (head, of_stream, of_requests) = (requests.clone(), requests.clone(), cost.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let (in_flight, in_work) = (requests.begin(), of_requests.request());
        let answer = answer(request, &of_requests);
        async move {
            let answer = answer.await;
            drop(in_work);
            Ok::<_, Infallible>(answer.map(|body| Sending::new(body, in_flight)))
        }
    });
    let stream = TokioIo::new(Patient { stream, stall: limits.stall_timeout, timer: None, requests: of_stream });
    let connection = http1::Builder::new()
        // The minimum that the library accepts.
        .max_buf_size(limits.max_head.max(8 << 10))
        .serve_connection(stream, service)
        // An upgraded connection, such as a WebSocket, ends by itself: it is not waited for.
        .with_upgrades();
    let connection = async {
        let mut connection = pin!(connection);
        let stop = pin!(ends.graceful.cancelled());
        match select(connection.as_mut(), stop).await {
            Either::Left((ended, _)) => return ended,
            Either::Right(_) => connection.as_mut().graceful_shutdown(),
        }
        connection.await
    };
    let (mut connection, mut turns) = (pin!(connection), Turns::default());
    let work = |task: &mut Context<'_>| match connection.as_mut().poll(task) {
        Poll::Pending => head.poll_late(task).map(|()| {
            tracing::debug!("a connection ended: the head of a request did not come in time");
            Ok(())
        }),
        ended => ended,
    };
    if let Some(Err(error)) = ends.over.run_until_cancelled(turns.run(&cost, work)).await {
        tracing::debug!(%error, "a connection ended");
    }
}

/// Waits until all connections have ended, each of which holds a permit until then. Those that are late are dropped.
async fn wait_for_all(room: &Semaphore, permits: usize, limit: Duration, over: &CancellationToken) {
    let all = u32::try_from(permits).unwrap_or(u32::MAX);
    if tokio::time::timeout(limit, room.acquire_many(all)).await.is_err() {
        tracing::warn!("requests in flight were not answered before the shutdown");
        over.cancel();
        let _ = tokio::time::timeout(DROPPED, room.acquire_many(all)).await;
    }
}

/// A connection that ends when its client reads nothing for too long.
struct Patient {
    stream: TcpStream,
    stall: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    /// Notified while there is something to write, even if no request is left.
    requests: Arc<Requests>,
}

impl Patient {
    fn waited<T>(&mut self, written: Poll<io::Result<T>>, task: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            if self.timer.take().is_some() {
                self.requests.writing(false);
            }
            return written;
        }
        if self.timer.is_none() {
            self.requests.writing(true);
        }
        let stall = self.stall;
        let timer = self.timer.get_or_insert_with(|| {
            let end = Instant::now().checked_add(stall);
            Box::pin(end.map_or_else(|| sleep(stall), tokio::time::sleep_until))
        });
        ready!(timer.as_mut().poll(task));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read (stall_timeout)")))
    }
}

impl AsyncRead for Patient {
    fn poll_read(mut self: Pin<&mut Self>, task: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(task, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(task, bytes);
        self.waited(written, task)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(task, bytes);
        self.waited(written, task)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(task)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::Notify;

    use super::*;

    /// Sends the head of a request, and reads a response with the body `answer`.
    async fn exchange(stream: &mut TcpStream) {
        stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut read = Vec::new();
        while !read.ends_with(b"\r\n\r\nanswer") {
            assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0, "the connection ends too early");
        }
    }

    /// How a server ends.
    #[derive(Clone, Copy)]
    enum End {
        Cancelled,
        Dropped,
    }

    /// No connection outlives a server that waits for none, except that a request in flight gets its response.
    #[tokio::test]
    async fn connections_end_with_the_server() {
        for end in [End::Cancelled, End::Dropped] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let second = Duration::from_secs(1);
            let limits = Limits {
                max_connections: 10,
                head_timeout: second,
                max_head: 8 << 10,
                stall_timeout: second * 60,
                shutdown_timeout: Duration::ZERO,
            };
            let (cancel, held, begun) =
                (CancellationToken::new(), Arc::new(Semaphore::new(1)), Arc::new(Notify::new()));
            let (of_answer, of_begin) = (held.clone(), begun.clone());
            let serving = tokio::spawn(serve(listener, limits, cancel.clone(), move |_, _| {
                let (held, begun) = (of_answer.clone(), of_begin.clone());
                async move {
                    begun.notify_one();
                    let _turn = held.acquire().await.unwrap();
                    Response::new(http_body_util::Full::new(bytes::Bytes::from_static(b"answer")))
                }
            }));
            let (mut idle, mut busy, mut slow) = (
                TcpStream::connect(address).await.unwrap(),
                TcpStream::connect(address).await.unwrap(),
                TcpStream::connect(address).await.unwrap(),
            );
            exchange(&mut idle).await;
            begun.notified().await;
            let turn = held.acquire().await.unwrap();
            let answered = tokio::spawn(async move {
                exchange(&mut busy).await;
                busy
            });
            begun.notified().await;
            // The beginning of a head.
            slow.write_all(b"GET / HT").await.unwrap();
            tokio::time::sleep(Duration::from_millis(200)).await;
            match end {
                End::Cancelled => cancel.cancel(),
                End::Dropped => serving.abort(),
            }
            assert_eq!(serving.await.is_ok(), matches!(end, End::Cancelled));
            let ends = async |stream: &mut TcpStream| {
                let read = tokio::time::timeout(second * 10, stream.read(&mut [0; 64])).await;
                read.expect("the connection stays open").unwrap_or(0)
            };
            assert_eq!(ends(&mut idle).await, 0);
            // The time for its head goes on.
            assert_eq!(ends(&mut slow).await, 0);
            drop(turn);
            assert_eq!(ends(&mut answered.await.unwrap()).await, 0);
        }
    }
}
