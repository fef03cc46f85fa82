//! A server that is a child process: lines of JSON over its standard input and output.

use std::collections::VecDeque;
use std::io;
use std::process::Stdio as Pipe;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::wire::{Wire, decode};
use crate::mcp::config::Stdio as Config;

/// How long a server may take to say which revisions it knows; old ones may not answer at all. rmcp itself would wait for
/// ten seconds, and stumble over an answer that comes later.
const DISCOVERY: Duration = Duration::from_secs(8);

/// How long a server may take to exit when its input ends, and when it is told to terminate.
const EXIT: Duration = Duration::from_secs(2);

/// What a child gets of the environment: what programs need to run.
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
    wire: Arc<Wire>,
    child: Process,
    input: Option<mpsc::UnboundedSender<Vec<u8>>>,
    output: Lines<BufReader<ChildStdout>>,
    /// Messages of a batch that nobody has taken yet.
    batch: VecDeque<String>,
    discovery: Option<Instant>,
}

impl Stdio {
    pub(super) fn spawn(config: &Config, max_line: usize, wire: Arc<Wire>) -> io::Result<Self> {
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
        // A group of its own, so that the processes that it starts end with it.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let missing = || io::Error::other("the child has no pipes");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let errors = child.stderr.take().ok_or_else(missing)?;
        tokio::spawn(log(errors, wire.clone()));
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(write(input, receiver, wire.clone()));
        Ok(Self {
            wire,
            child: Process(child),
            input: Some(sender),
            output: Lines { inner: BufReader::with_capacity(64 * 1024, output), line: Vec::new(), max: max_line },
            batch: VecDeque::new(),
            discovery: None,
        })
    }

    /// The next line, or nothing if the server has not said which revisions it knows in time.
    async fn line(&mut self) -> Result<Option<String>, LineError> {
        if !self.wire.discovering() {
            return self.output.next().await.map(Some);
        }
        let until = *self.discovery.get_or_insert_with(|| Instant::now() + DISCOVERY);
        timeout_at(until, self.output.next()).await.map_or(Ok(None), |line| line.map(Some))
    }

    /// What becomes of a message.
    fn take(&mut self, text: &str) -> Option<ServerJsonRpcMessage> {
        if text.starts_with('[')
            && let Ok(batch) = serde_json::from_str::<Vec<&RawValue>>(text)
        {
            self.batch.extend(batch.into_iter().map(|message| message.get().to_owned()));
            return None;
        }
        match self.wire.inbound(text).and_then(|verdict| decode(verdict, text)) {
            Ok(message) => message,
            Err(error) => {
                // What it says is left out: it is not meant for us, and may be anything.
                tracing::warn!(server = %self.wire.server, bytes = text.len(), %error, "a line that is no message is skipped");
                None
            }
        }
    }

    /// Says why there is nothing more to read.
    async fn ended(&mut self, error: &LineError) {
        let server = &self.wire.server;
        let reason = match error {
            LineError::TooLong => {
                // It may still be writing, and would not see that its input ends.
                self.child.signal(Signal::Terminate);
                format!(
                    "the MCP server `{server}` sent a line of more than {} bytes: raise `with_max_message`",
                    self.output.max
                )
            }
            LineError::Io(error) => format!("the MCP server `{server}` cannot be read: {error}"),
            LineError::End => match timeout(Duration::from_secs(1), self.child.0.wait()).await {
                Ok(Ok(status)) => format!("the MCP server `{server}` exited ({status})"),
                _ => format!("the MCP server `{server}` closed its output"),
            },
        };
        self.wire.end(reason);
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = io::Error;

    /// Puts the message into the queue at once, so that messages go out in the order of their sending.
    fn send(&mut self, mut message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.wire.outbound(&mut message);
        let sent = serde_json::to_vec(&message).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            let closed = || io::Error::new(io::ErrorKind::BrokenPipe, "the server reads no more");
            self.input.as_ref().and_then(|input| input.send(line).ok()).ok_or_else(closed)
        });
        std::future::ready(sent)
    }

    /// Can be dropped at any await: what was read stays in the buffers.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(text) = self.batch.pop_front() {
                if let Some(message) = self.take(&text) {
                    return Some(message);
                }
                continue;
            }
            match self.line().await {
                Ok(Some(line)) => {
                    if let Some(message) = self.take(line.trim()) {
                        return Some(message);
                    }
                }
                Ok(None) => {
                    if let Some(message) = self.wire.give_up_discovery() {
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
        // Its input ends, which is how a server is told to exit (MCP specification, "Shutdown").
        self.input = None;
        self.child.end().await;
        Ok(())
    }
}

/// A child process and those that it starts.
struct Process(Child);

impl Process {
    /// Waits for the child to exit, and makes it.
    async fn end(&mut self) {
        if timeout(EXIT, self.0.wait()).await.is_ok() {
            self.signal(Signal::Kill);
            return;
        }
        self.signal(Signal::Terminate);
        if timeout(EXIT, self.0.wait()).await.is_err() {
            self.signal(Signal::Kill);
            let _ = self.0.kill().await;
        }
    }

    #[cfg(unix)]
    fn signal(&self, signal: Signal) {
        use rustix::process::{Pid, kill_process_group};
        // The id is gone when the child has been waited for; its group may live on, but another may have the number.
        let Some(group) = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) else { return };
        let signal = match signal {
            Signal::Terminate => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        };
        let _ = kill_process_group(group, signal);
    }

    #[cfg(not(unix))]
    fn signal(&self, _: Signal) {}
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::Kill);
    }
}

#[derive(Clone, Copy)]
enum Signal {
    Terminate,
    Kill,
}

/// Writes lines in the order of their sending.
async fn write(mut input: ChildStdin, mut lines: mpsc::UnboundedReceiver<Vec<u8>>, wire: Arc<Wire>) {
    while let Some(line) = lines.recv().await {
        let written = async {
            input.write_all(&line).await?;
            input.flush().await
        };
        if let Err(error) = written.await {
            tracing::debug!(server = %wire.server, %error, "the server reads no more");
            return;
        }
    }
}

/// Hands on what the server writes to standard error.
async fn log(errors: impl AsyncRead + Unpin, wire: Arc<Wire>) {
    let mut lines = Lines { inner: BufReader::new(errors), line: Vec::new(), max: 64 * 1024 };
    loop {
        match lines.next().await {
            Ok(line) => {
                let line = line.trim_end();
                tracing::info!(target: "ops_runtime::mcp::stderr", server = %wire.server, "{line}");
                wire.said(line);
            }
            // What is too long for a line is left out; the pipe must be read on, or else the server stands still.
            Err(LineError::TooLong) => lines.line.clear(),
            Err(_) => return,
        }
    }
}

/// Lines of a stream, none of them longer than it may be.
struct Lines<R> {
    inner: R,
    /// The start of a line whose end has not come yet.
    line: Vec<u8>,
    max: usize,
}

enum LineError {
    TooLong,
    End,
    Io(io::Error),
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// The next line without its end; bytes that are not UTF-8 become U+FFFD.
    ///
    /// Can be dropped while it waits: what was read stays in `line`.
    async fn next(&mut self) -> Result<String, LineError> {
        loop {
            let chunk = self.inner.fill_buf().await.map_err(LineError::Io)?;
            if chunk.is_empty() && self.line.is_empty() {
                return Err(LineError::End);
            }
            let end = memchr::memchr(b'\n', chunk);
            let piece = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            if self.line.len() + piece.len() > self.max {
                self.line = Vec::new();
                let read = chunk.len();
                self.inner.consume(read);
                return Err(LineError::TooLong);
            }
            self.line.extend_from_slice(piece);
            let (at_end, read) = (chunk.is_empty(), end.map_or(chunk.len(), |end| end + 1));
            self.inner.consume(read);
            if at_end || end.is_some() {
                let line = std::mem::take(&mut self.line);
                return Ok(String::from_utf8(line)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8], max: usize) -> Vec<Option<String>> {
        let mut lines = Lines { inner: BufReader::with_capacity(3, bytes), line: Vec::new(), max };
        let mut read = Vec::new();
        loop {
            match lines.next().await {
                Ok(line) => read.push(Some(line)),
                Err(LineError::TooLong) => read.push(None),
                Err(_) => return read,
            }
        }
    }

    #[tokio::test]
    async fn lines_come_whole_and_no_longer_than_they_may_be() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(read(b"", 10).await, []);
        assert_eq!(
            read(b"one\n\nthree is long\r\nlast", 20).await,
            [text("one"), text(""), text("three is long\r"), text("last")]
        );
        assert_eq!(read(b"\xff\xfe\n", 10).await, [text("\u{fffd}\u{fffd}")]);
        assert_eq!(read(b"12345", 5).await, [text("12345")]);
        assert!(read(b"123456789\nok\n", 5).await.contains(&None));
    }
}
