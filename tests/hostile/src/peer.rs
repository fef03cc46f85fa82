//! Peers that do what they should not, on ports of this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// A request, as far as a peer has read it.
pub(crate) struct Asked {
    /// The number of the connection, from 0.
    pub(crate) connection: usize,
    /// Such as `POST /mcp HTTP/1.1`.
    pub(crate) line: String,
    pub(crate) body: Vec<u8>,
}

/// Serves HTTP by a function that writes each answer, head and all; it is given the URL of the server, too. A connection
/// ends when the function has answered with an error, or with `connection: close`.
pub(crate) fn serve(
    answer: impl Fn(&Asked, &str, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
) -> std::io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let (answer, at) = (Arc::new(answer), url.clone());
    thread::spawn(move || {
        for (connection, stream) in listener.incoming().enumerate() {
            let (answer, at) = (answer.clone(), at.clone());
            thread::spawn(move || {
                let Ok(stream) = stream else { return };
                let _ = talk(connection, &at, stream, &*answer);
            });
        }
    });
    Ok(url)
}

fn talk(
    connection: usize,
    url: &str,
    stream: TcpStream,
    answer: &(dyn Fn(&Asked, &str, &mut TcpStream) -> std::io::Result<()> + Send + Sync),
) -> std::io::Result<()> {
    let mut write = stream.try_clone()?;
    let mut read = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if read.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut length = 0;
        loop {
            let mut header = String::new();
            if read.read_line(&mut header)? == 0 {
                return Ok(());
            }
            let header = header.to_ascii_lowercase();
            if header.trim().is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        read.read_exact(&mut body)?;
        let asked = Asked { connection, line: line.trim().to_owned(), body };
        answer(&asked, url, &mut write)?;
        write.flush()?;
    }
}

/// A whole answer of a status, with headers that end with line breaks.
pub(crate) fn respond(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len())?;
    stream.write_all(body)
}

/// The head of a stream of events, which ends with the connection.
pub(crate) fn events(stream: &mut TcpStream, headers: &str) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{headers}connection: close\r\n\r\n")
}

/// Ends a connection.
pub(crate) fn close<T>() -> std::io::Result<T> {
    Err(std::io::ErrorKind::ConnectionAborted.into())
}
