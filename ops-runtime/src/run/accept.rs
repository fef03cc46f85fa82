//! Accepting connections.

use std::io;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

/// The delay after a connection that could not be accepted. The limit of open files may be reached; connections that end
/// make room.
const PAUSE: Duration = Duration::from_millis(100);

/// The next connection. Errors that concern one connection, or that pass, are logged.
///
/// # Errors
/// If the listener cannot accept connections any more.
pub(crate) async fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Writes are complete messages, so waiting for more gains nothing.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) if may_pass(&error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// The errors that mean that the listener itself is broken: `EBADF`, `EFAULT`, `EINVAL` and `ENOTSOCK`, with the
/// numbers of Linux, BSD and Windows.
const OF_LISTENER: [i32; 9] = [9, 14, 22, 38, 88, 10_009, 10_014, 10_022, 10_038];

/// True if later connections may be accepted: all other errors concern one connection, such as one that a firewall
/// refuses, or a shortage of resources, such as files and buffers.
fn may_pass(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| !OF_LISTENER.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_of_the_listener_end_it() {
        // EPERM, EINTR, ENOMEM, ENFILE, EMFILE, EPROTO, ECONNABORTED, ENOBUFS, EHOSTUNREACH, ENETDOWN.
        for code in [1, 4, 12, 23, 24, 71, 103, 105, 113, 100] {
            let error = io::Error::from_raw_os_error(code);
            assert!(may_pass(&error), "{error}");
        }
        for code in [9, 14, 22, 88] {
            let error = io::Error::from_raw_os_error(code);
            assert!(!may_pass(&error), "{error}");
        }
        // Not of the system: the runtime is at its end.
        assert!(!may_pass(&io::Error::other("no runtime")));
    }
}
