//! Serving a listener, with limits on the number of connections and on slow clients.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Request;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep, sleep};

use super::http::McpService;
use crate::run::pace::{Cost, Pace, in_turns};

/// How large the head of a request may be, in bytes.
const MAX_HEAD: usize = 64 * 1024;

impl McpService {
    /// Serves a listener over HTTP/1.1, for as long as the future is polled, or until
    /// [`with_cancel`](Self::with_cancel) says otherwise.
    ///
    /// Use it for a server that serves nothing else; others mount the service beside the rest. The server's options
    /// limit how many connections there are, how long the head of a request may take (an idle connection is closed
    /// after that, too), and how long a client may read nothing.
    ///
    /// ```no_run
    /// # async fn run() -> std::io::Result<()> {
    /// use ops_runtime::Registry;
    /// use ops_runtime::mcp::McpServer;
    ///
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    /// McpServer::new(Registry::new()).into_service().serve(listener).await
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the listener cannot accept connections any more.
    pub async fn serve(self, listener: TcpListener) -> io::Result<()> {
        let options = self.options();
        let (head, stall) = (options.head_timeout, options.stall_timeout);
        let room = Arc::new(Semaphore::new(options.max_connections.clamp(1, Semaphore::MAX_PERMITS)));
        let (cancel, pace) = (self.cancel(), Pace::new());
        let serve = async {
            loop {
                let Ok(permit) = room.clone().acquire_owned().await else { return Ok(()) };
                let stream = match listener.accept().await {
                    Ok((stream, _)) => stream,
                    Err(error) if may_pass(&error) => {
                        tracing::warn!(%error, "a connection cannot be accepted");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                let _ = stream.set_nodelay(true);
                let (service, cost) = (self.clone(), Cost::new(&pace));
                tokio::spawn(async move {
                    let of_requests = cost.clone();
                    let answer = service_fn(move |mut request: Request<_>| {
                        let (service, in_work) = (service.clone(), of_requests.request());
                        // What runs the request's call takes turns, too.
                        request.extensions_mut().insert(of_requests.clone());
                        async move {
                            let answer = service.answer(request).await;
                            drop(in_work);
                            Ok::<_, Infallible>(answer)
                        }
                    });
                    let stream = TokioIo::new(Patient { stream, stall, timer: None });
                    let connection = http1::Builder::new()
                        .timer(TokioTimer::new())
                        .header_read_timeout(head)
                        .max_buf_size(MAX_HEAD)
                        .serve_connection(stream, answer);
                    if let Err(error) = in_turns(connection, cost).await {
                        tracing::debug!(%error, "a connection ended");
                    }
                    drop(permit);
                });
            }
        };
        cancel.run_until_cancelled(serve).await.unwrap_or(Ok(()))
    }
}

/// True if later connections may be accepted: this one broke before it was, or too many files are open.
fn may_pass(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, OutOfMemory};
    // Too many open files, of the process or of the system, have no kind of their own.
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted | OutOfMemory)
        || matches!(error.raw_os_error(), Some(23 | 24))
}

/// A connection that ends when its client reads nothing for too long.
struct Patient {
    stream: TcpStream,
    stall: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn waited<T>(&mut self, written: Poll<io::Result<T>>, task: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.timer = None;
            return written;
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
