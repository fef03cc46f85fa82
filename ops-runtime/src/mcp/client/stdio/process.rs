//! The process of a server, which ends with all processes that it starts.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::Child;
use tokio::time::timeout;

/// How long a server may take to exit after its input has ended, and after it was told to terminate.
const EXIT: Duration = Duration::from_secs(2);

/// A child process and the processes that it starts.
pub(super) struct Process(Child);

impl Process {
    pub(super) fn of(child: Child) -> Self {
        Self(child)
    }

    /// Waits for the child to exit.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait().await
    }

    /// Waits for the child to exit, and kills it if it does not.
    pub(super) async fn end(&mut self) {
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

    /// Signals the child and those that it started, until the child has been waited for.
    #[cfg(unix)]
    pub(super) fn signal(&self, signal: Signal) {
        use rustix::process::{Pid, kill_process_group};
        // Once the child has been waited for, its id is gone: its group may live on, but the number may be reused.
        let Some(group) = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) else { return };
        let signal = match signal {
            Signal::Terminate => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        };
        let _ = kill_process_group(group, signal);
    }

    #[cfg(not(unix))]
    pub(super) fn signal(&self, _: Signal) {}
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::Kill);
    }
}

/// A signal for the processes of a server.
#[derive(Clone, Copy)]
pub(super) enum Signal {
    Terminate,
    Kill,
}
