//! A server that is a child process: lines of JSON over its standard input and output.

mod lines;
mod process;

use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::process::Stdio as Pipe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::{Either, FutureExt, select};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ClientResult, NumberOrString, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use self::lines::{LineError, Lines};
use self::process::{Process, Signal};
use super::batch;
use super::interceptor::{Interceptor, Verdict};
use super::secrets::Given;
use crate::mcp::config::Stdio as Config;

/// Timeout for the server's supported revisions; old servers may not respond at all. rmcp itself would wait for ten
/// seconds, and fail on a later response.
const DISCOVERY: Duration = Duration::from_secs(8);

/// How long to wait for the rest of a server's standard error after it has exited: a process that it started in another
/// group may hold it open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long a server that has stopped reading may go on writing.
const DEAF: Duration = Duration::from_secs(1);

/// How long a server may read nothing while too many of its pings have no response.
const STALLED: Duration = Duration::from_secs(10);

/// The environment variables that a child inherits: those that programs need to run.
const INHERITED: [&str; 20] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PROCESSOR_ARCHITECTURE",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
];

/// The transport of a child process.
pub(super) struct Stdio {
    interceptor: Arc<Interceptor>,
    given: Arc<Given>,
    child: Process,
    input: Option<Input>,
    output: Lines<BufReader<ChildStdout>>,
    /// Reads standard error.
    log: JoinHandle<()>,
    /// Messages of a batch that are not read yet.
    batch: VecDeque<String>,
    /// The deadline for the server's supported revisions, once it was asked.
    discovery: Option<Instant>,
    /// True if there is no such deadline.
    is_patient: bool,
    /// When to stop reading from a server that has stopped reading itself.
    deaf: Option<Instant>,
    /// Since when the server has read nothing, and how many bytes it had read then.
    stalled: Option<(Instant, u64)>,
}

impl Stdio {
    /// Starts the process. Its lines may have `max_line` bytes, and `max_waiting` bytes may wait to be read by it.
    pub(super) fn spawn(
        config: &Config,
        max_line: usize,
        max_waiting: usize,
        interceptor: Arc<Interceptor>,
        given: Arc<Given>,
    ) -> io::Result<Self> {
        let mut command = Command::new(&config.command);
        command.args(&config.args).stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped()).kill_on_drop(true);
        if !config.inherit_env {
            command.env_clear();
            command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        }
        command.envs(&config.env);
        if let Some(directory) = &config.cwd {
            command.current_dir(directory);
        }
        // A process group of its own, so that the processes that it starts end with it.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let missing = || io::Error::other("the child has no pipes");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let errors = child.stderr.take().ok_or_else(missing)?;
        let log = tokio::spawn(log(errors, interceptor.clone(), given.clone()));
        let (lines, receiver) = mpsc::unbounded_channel();
        let taken = Arc::new(AtomicU64::new(0));
        tokio::spawn(write(input, receiver, taken.clone(), interceptor.clone()));
        let max = max_waiting.clamp(1, Semaphore::MAX_PERMITS);
        let input = Input { lines, room: Arc::new(Semaphore::new(max)), max, taken };
        Ok(Self {
            interceptor,
            given,
            child: Process::of(child),
            input: Some(input),
            output: Lines { inner: BufReader::with_capacity(64 * 1024, output), line: Vec::new(), max: max_line },
            log,
            batch: VecDeque::new(),
            discovery: None,
            is_patient: false,
            deaf: None,
            stalled: None,
        })
    }

    /// Sets no timeout for the server's supported revisions.
    pub(super) fn patient(mut self) -> Self {
        self.is_patient = true;
        self
    }

    /// The next line; `None` if the timeout for the supported revisions has passed.
    async fn line(&mut self) -> Result<Option<String>, LineError> {
        if self.interceptor.is_behind() {
            self.drained().await?;
        }
        self.stalled = None;
        let lines = self.input.as_ref().map(|input| &input.lines);
        let line = heard(lines, &mut self.deaf, self.output.next());
        if self.is_patient || !self.interceptor.discovering() {
            return line.await.map(Some);
        }
        let until = *self.discovery.get_or_insert_with(|| Instant::now() + DISCOVERY);
        timeout_at(until, line).await.map_or(Ok(None), |line| line.map(Some))
    }

    /// Waits until the server has read all but a few of the responses to its pings; an error if it stops reading.
    /// Cancel safe.
    async fn drained(&mut self) -> Result<(), LineError> {
        let Some(input) = &self.input else { return Ok(()) };
        while self.interceptor.is_behind() && !input.lines.is_closed() {
            let taken = input.taken.load(Ordering::Acquire);
            let (since, _) = *self.stalled.insert(match self.stalled {
                Some((since, before)) if before == taken => (since, taken),
                _ => (Instant::now(), taken),
            });
            if since.elapsed() >= STALLED {
                return Err(LineError::Stalled);
            }
            let _ = timeout(STALLED / 10, self.interceptor.caught_up()).await;
        }
        Ok(())
    }

    /// Splits a batch, if the line is one.
    fn unpack(&mut self, text: &str) -> Result<bool, LineError> {
        let messages = batch::unpack(text).map_err(LineError::Batch)?;
        let is_batch = messages.is_some();
        self.batch.extend(messages.into_iter().flatten());
        Ok(is_batch)
    }

    /// Responds to a ping. A server may send any number, and rmcp would start a task for each.
    fn pong(&mut self, id: NumberOrString) {
        let mut sent = Box::pin(self.send(ClientJsonRpcMessage::response(ClientResult::empty(()), id)));
        if sent.as_mut().now_or_never().is_none() {
            // It waits for room.
            tokio::spawn(sent);
        }
    }

    /// Decides about a message.
    fn take(&mut self, text: &str) -> Option<ServerJsonRpcMessage> {
        let verdict = self.interceptor.inbound(text);
        if let Ok(Verdict::Ping(id)) = verdict {
            self.pong(id);
            return None;
        }
        match verdict.and_then(|verdict| self.given.decode(verdict, text)) {
            Ok(message) => message,
            Err(error) => {
                // The text is not logged: it is not a message, and may be anything.
                let error = self.given.words(&error);
                tracing::warn!(server = %self.interceptor.server, bytes = text.len(), error, "a line that is no message is skipped");
                None
            }
        }
    }

    /// Notes why reading has ended.
    async fn ended(&mut self, error: &LineError) {
        let server = &self.interceptor.server;
        let reason = match error {
            LineError::TooLong => {
                // It may still be writing, and not notice that its input has ended.
                self.child.signal(Signal::Terminate);
                format!(
                    "the MCP server `{server}` sent a line of more than {} bytes: raise `with_max_message`",
                    self.output.max
                )
            }
            LineError::Batch(too_many) => {
                self.child.signal(Signal::Terminate);
                format!("the MCP server `{server}` sent {too_many}")
            }
            LineError::Stalled => {
                self.child.signal(Signal::Terminate);
                let max = self.input.as_ref().map_or(0, |input| input.max);
                format!(
                    "the MCP server `{server}` has read nothing for {STALLED:?}, and {max} bytes wait for it: raise \
                     `with_max_waiting`"
                )
            }
            LineError::Io(error) => format!("the MCP server `{server}` cannot be read: {error}"),
            LineError::End | LineError::Deaf => match timeout(Duration::from_secs(1), self.child.wait()).await {
                Ok(Ok(status)) => {
                    // Its last output may explain it.
                    let _ = timeout(LAST_WORDS, &mut self.log).await;
                    format!("the MCP server `{server}` exited ({status})")
                }
                _ if matches!(error, LineError::Deaf) => format!("the MCP server `{server}` reads no more"),
                _ => format!("the MCP server `{server}` closed its output"),
            },
        };
        self.interceptor.end(reason);
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = io::Error;

    /// Queues the message at once, so that messages are written in order.
    fn send(&mut self, mut message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.interceptor.outbound(&mut message);
        self.interceptor.replies(&message);
        let sent = serde_json::to_vec(&message).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            let closed = || io::Error::new(io::ErrorKind::BrokenPipe, "the connection is closed");
            // If the server has stopped reading, `receive` finds out why.
            self.input.clone().map(|input| (input, line)).ok_or_else(closed)
        });
        // Queued at once if there is room. If the server has stopped reading, `receive` finds out why.
        let waits = sent.map(|(input, line)| input.put(line).map(|line| (input, line)));
        if let Ok(None) = &waits {
            self.interceptor.sent(&message);
        }
        let interceptor = self.interceptor.clone();
        async move {
            if let Some((input, line)) = waits?
                && let Some(permit) = input.wait(line.len()).await
                && interceptor.is_wanted(&message)
            {
                let _ = input.lines.send((line, permit));
                interceptor.sent(&message);
            }
            Ok(())
        }
    }

    /// Cancel safe: what was read stays in the buffers.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(text) = self.batch.pop_front() {
                if let Some(message) = self.take(&text) {
                    return Some(message);
                }
                continue;
            }
            match self.line().await {
                Ok(Some(line)) => match self.unpack(line.trim()) {
                    Ok(true) => {}
                    Ok(false) => {
                        if let Some(message) = self.take(line.trim()) {
                            return Some(message);
                        }
                    }
                    Err(error) => {
                        self.ended(&error).await;
                        return None;
                    }
                },
                Ok(None) => {
                    if let Some(message) = self.interceptor.give_up_discovery() {
                        return Some(message);
                    }
                }
                Err(error) => {
                    self.ended(&error).await;
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Its input ends, which tells a server to exit (MCP specification, "Shutdown").
        self.input = None;
        self.child.end().await;
        Ok(())
    }
}

/// A line that waits to be written, and its permit for the queue.
type Waiting = (Vec<u8>, OwnedSemaphorePermit);

/// The queue of lines for the server, bounded in bytes. Senders wait if there is no room.
#[derive(Clone)]
struct Input {
    lines: mpsc::UnboundedSender<Waiting>,
    room: Arc<Semaphore>,
    max: usize,
    /// Number of bytes that the server has read.
    taken: Arc<AtomicU64>,
}

impl Input {
    /// How much room a line takes; a long one takes all of it.
    fn share(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.min(self.max)).unwrap_or(u32::MAX)
    }

    /// Queues a line, and returns it if there is no room.
    fn put(&self, line: Vec<u8>) -> Option<Vec<u8>> {
        match self.room.clone().try_acquire_many_owned(self.share(line.len())) {
            Ok(permit) => {
                let _ = self.lines.send((line, permit));
                None
            }
            Err(_) => Some(line),
        }
    }

    /// Waits for room; `None` if writing has ended.
    async fn wait(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let room = pin!(self.room.clone().acquire_many_owned(self.share(bytes)));
        match select(room, pin!(self.lines.closed())).await {
            Either::Left((permit, _)) => permit.ok(),
            Either::Right(_) => None,
        }
    }
}

/// The next line. Gives up soon after the server has stopped reading, because it cannot answer any more.
async fn heard(
    input: Option<&mpsc::UnboundedSender<Waiting>>,
    until: &mut Option<Instant>,
    line: impl Future<Output = Result<String, LineError>>,
) -> Result<String, LineError> {
    let Some(input) = input else { return line.await };
    let deaf = async {
        input.closed().await;
        sleep_until(*until.get_or_insert_with(|| Instant::now() + DEAF)).await;
    };
    match select(pin!(line), pin!(deaf)).await {
        Either::Left((line, _)) => line,
        Either::Right(_) => Err(LineError::Deaf),
    }
}

/// Writes lines in order.
async fn write(
    mut input: ChildStdin,
    mut lines: mpsc::UnboundedReceiver<Waiting>,
    taken: Arc<AtomicU64>,
    interceptor: Arc<Interceptor>,
) {
    // The permit is released when the line is written.
    while let Some((line, _room)) = lines.recv().await {
        let written = async {
            let mut rest = line.as_slice();
            while !rest.is_empty() {
                let bytes = input.write(rest).await?;
                if bytes == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                taken.fetch_add(bytes as u64, Ordering::AcqRel);
                rest = rest.get(bytes..).unwrap_or_default();
            }
            input.flush().await
        };
        if let Err(error) = written.await {
            tracing::debug!(server = %interceptor.server, %error, "the server reads no more");
            return;
        }
    }
}

/// Logs what the server writes to standard error.
async fn log(errors: impl AsyncRead + Unpin, interceptor: Arc<Interceptor>, given: Arc<Given>) {
    let mut lines = Lines { inner: BufReader::new(errors), line: Vec::new(), max: 64 * 1024 };
    loop {
        // A server may write millions of lines, and each takes time. If they are not logged, only the last ones are
        // kept.
        if !tracing::enabled!(target: "ops_runtime::mcp::stderr", tracing::Level::INFO) {
            lines.skip_to_last(super::interceptor::LAST_WORDS);
        }
        match lines.next().await {
            Ok(line) => {
                let line = given.text(line.trim_end());
                tracing::info!(target: "ops_runtime::mcp::stderr", server = %interceptor.server, "{line}");
                interceptor.said(&line);
            }
            // A line that is too long is skipped, but the pipe must be read on, or else the server blocks.
            Err(LineError::TooLong) => lines.line.clear(),
            Err(_) => return,
        }
    }
}
