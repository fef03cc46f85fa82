//! The process of a server, which ends with all processes that it starts.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

#[cfg(unix)]
use rustix::process::{Pid, kill_process_group};
use tokio::process::Child;
use tokio::time::timeout;

/// How long a server may take to exit after its input has ended, and after it was told to terminate.
const EXIT: Duration = Duration::from_secs(2);

/// A child process and the processes that it starts.
pub(super) struct Process {
    child: Child,
    /// The group of the processes, until they are killed.
    #[cfg(unix)]
    group: Option<Pid>,
}

impl Process {
    pub(super) fn of(child: Child) -> Self {
        Self {
            #[cfg(unix)]
            group: child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw),
            child,
        }
    }

    /// Waits for the child to exit, and kills the processes that it leaves behind.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        // At once: no other process gets the number of the group while it has members, and later any may have it.
        self.signal(Signal::Kill);
        status
    }

    /// Waits for the child to exit, and kills it if it does not.
    pub(super) async fn end(&mut self) {
        if timeout(EXIT, self.wait()).await.is_ok() {
            return;
        }
        self.signal(Signal::Terminate);
        if timeout(EXIT, self.wait()).await.is_err() {
            self.signal(Signal::Kill);
            let _ = self.child.kill().await;
        }
    }

    /// Signals the child and those that it started, until they are killed.
    #[cfg(unix)]
    pub(super) fn signal(&mut self, signal: Signal) {
        let (group, signal) = match signal {
            Signal::Terminate => (self.group, rustix::process::Signal::TERM),
            Signal::Kill => (self.group.take(), rustix::process::Signal::KILL),
        };
        if let Some(group) = group {
            let _ = kill_process_group(group, signal);
        }
    }

    #[cfg(not(unix))]
    pub(super) fn signal(&mut self, _: Signal) {}
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
