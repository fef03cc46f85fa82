//! A WebSocket client that does as it pleases: the frames that it is told to, and no answer to anything.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection to a hub, or one that is on its way to be.
pub struct Raw {
    /// The socket itself.
    pub stream: TcpStream,
}

impl Raw {
    /// Connects, and asks for an upgrade with more lines of the head, each ended by `\r\n`.
    ///
    /// # Errors
    /// If the hub does not upgrade; the message is the first line of its response.
    pub async fn connect(address: SocketAddr, headers: &str) -> io::Result<Self> {
        let mut raw = Self { stream: TcpStream::connect(address).await? };
        let host = if headers.lines().any(|line| line.starts_with("host:")) {
            String::new()
        } else {
            format!("host: {address}\r\n")
        };
        let head = format!(
            "GET / HTTP/1.1\r\n{host}{headers}connection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        );
        raw.stream.write_all(head.as_bytes()).await?;
        let mut response = Vec::new();
        while !response.ends_with(b"\r\n\r\n") && response.len() < 16_384 {
            let byte = raw.stream.read_u8().await?;
            response.push(byte);
        }
        let first = String::from_utf8_lossy(&response).lines().next().unwrap_or_default().to_owned();
        if first.contains(" 101 ") { Ok(raw) } else { Err(io::Error::other(first)) }
    }

    /// Begins a text frame of so many bytes, of which none is sent.
    ///
    /// # Errors
    /// If the connection is gone.
    pub async fn begin(&mut self, bytes: usize) -> io::Result<()> {
        let mut head = vec![0x81, 0xff];
        head.extend((bytes as u64).to_be_bytes());
        // The mask changes nothing.
        head.extend([0; 4]);
        self.stream.write_all(&head).await
    }

    /// Sends a message.
    ///
    /// # Errors
    /// If the connection is gone.
    pub async fn say(&mut self, text: &str) -> io::Result<()> {
        self.begin(text.len()).await?;
        self.stream.write_all(text.as_bytes()).await
    }

    /// Sends a request.
    ///
    /// # Errors
    /// If the connection is gone.
    pub async fn request(&mut self, id: usize, operation: &str, input: &str) -> io::Result<()> {
        self.say(&request(id, operation, input)).await
    }

    /// Reads the next message of text.
    ///
    /// # Errors
    /// If the connection is gone, or closed.
    pub async fn hear(&mut self) -> io::Result<String> {
        loop {
            let kind = self.stream.read_u8().await?;
            let length = match self.stream.read_u8().await? & 0x7f {
                126 => u64::from(self.stream.read_u16().await?),
                127 => self.stream.read_u64().await?,
                short => u64::from(short),
            };
            let mut payload = vec![0; usize::try_from(length).unwrap_or(0)];
            self.stream.read_exact(&mut payload).await?;
            match kind & 0xf {
                1 => return Ok(String::from_utf8_lossy(&payload).into_owned()),
                8 => return Err(io::Error::other("closed")),
                _ => {}
            }
        }
    }

    /// Reads messages until one is about a request, and returns that.
    ///
    /// # Errors
    /// If the connection is gone, or closed.
    pub async fn answer(&mut self, id: &str) -> io::Result<serde_json::Value> {
        loop {
            let message: serde_json::Value = serde_json::from_str(&self.hear().await?).unwrap_or_default();
            if message.get("id").is_some_and(|own| own == id) {
                return Ok(message);
            }
        }
    }
}

/// The text of a request.
pub fn request(id: usize, operation: &str, input: &str) -> String {
    format!(
        r#"{{"type":"call.requested","id":"{id}","payload":{{"requestId":"{id}","operationId":"{operation}","input":{input}}}}}"#
    )
}

/// The text of an announcement of one operation, whose description has so many bytes.
pub fn announcement(name: &str, bytes: usize) -> String {
    let description = "x".repeat(bytes);
    format!(
        r#"{{"type":"link.announce","payload":{{"add":[{{"name":"{name}","namespace":"raw","version":"1.0.0","type":"query","description":"{description}","inputSchema":{{}},"outputSchema":{{}},"accessControl":{{"requiredScopes":[]}}}}]}}}}"#
    )
}
