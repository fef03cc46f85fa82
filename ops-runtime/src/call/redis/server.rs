//! The address of the server, and how connections to it are made.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, ErrorKind, IntoConnectionInfo, RedisError, RedisResult};
use tokio_util::task::AbortOnDropHandle;

use crate::call::tls::Settings;

/// A server. A clone is the same.
#[derive(Clone)]
pub(super) struct Server {
    client: Client,
    tls: Option<Settings>,
}

/// An open connection. A clone is the same; it is closed when the last clone is dropped, even if the server still runs
/// commands of it.
#[derive(Clone)]
pub(super) struct Made {
    pub(super) connection: MultiplexedConnection,
    /// The task that drives an encrypted one; the client drives others itself.
    _driver: Option<Arc<AbortOnDropHandle<()>>>,
}

impl Server {
    /// The server at an address, with settings if that asks for encryption.
    pub(super) fn new(url: &str, tls: Option<Settings>) -> RedisResult<Self> {
        // The client gets the address without encryption, since we encrypt: the client would read all certificates of
        // the system for each connection, and fail if one of them is invalid.
        let plain = match url.split_once("://") {
            Some((scheme, rest)) if tls.is_some() => {
                format!("{}://{rest}", scheme.strip_suffix(['s', 'S']).unwrap_or(scheme))
            }
            _ => url.to_owned(),
        };
        // Writes are complete messages, so waiting for more gains nothing.
        let settings = TcpSettings::default().set_nodelay(true);
        let to = plain.into_connection_info()?.set_tcp_settings(settings);
        Ok(Self { client: Client::open(to)?, tls })
    }

    /// Connects within a time; the connection is closed when a response takes longer than `answer`.
    pub(super) async fn connect(&self, within: Duration, answer: Duration) -> RedisResult<Made> {
        self.make(within, answer).await.map_err(|error| self.placed(error))
    }

    /// The error of a connection that could not be made, with the host and the port of the server.
    fn placed(&self, error: RedisError) -> RedisError {
        if !error.is_io_error() {
            return error;
        }
        let why = error.detail().map_or_else(|| format!("{}: {error}", error.category()), str::to_owned);
        let address = self.client.get_connection_info().addr();
        RedisError::from((ErrorKind::Io, "I/O error", format!("{address}: {why}")))
    }

    async fn make(&self, within: Duration, answer: Duration) -> RedisResult<Made> {
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(Some(within)).set_response_timeout(Some(answer));
        match &self.tls {
            None => {
                let connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
                Ok(Made { connection, _driver: None })
            }
            #[cfg(feature = "tls")]
            Some(tls) => {
                let connecting = encrypted(self.client.get_connection_info(), tls, config);
                tokio::time::timeout(within, connecting).await.map_err(std::io::Error::from)?
            }
            #[cfg(not(feature = "tls"))]
            Some(none) => match *none {},
        }
    }
}

#[cfg(feature = "tls")]
async fn encrypted(info: &redis::ConnectionInfo, tls: &Settings, config: AsyncConnectionConfig) -> RedisResult<Made> {
    use redis::ConnectionAddr;
    use rustls::pki_types::ServerName;

    let ConnectionAddr::Tcp(host, port) = info.addr() else {
        return Err(RedisError::from((ErrorKind::InvalidClientConfig, "only TCP connections can be encrypted")));
    };
    let name = ServerName::try_from(host.clone()).map_err(std::io::Error::other)?;
    let stream = tokio::net::TcpStream::connect((host.as_str(), *port)).await?;
    stream.set_nodelay(true)?;
    let stream = tokio_rustls::TlsConnector::from(tls.clone()).connect(name, stream).await.map_err(|error| {
        let why = format!("{error}{}", crate::call::tls::advice(&error));
        RedisError::from((ErrorKind::Io, "TLS", why))
    })?;
    let (connection, driver) = MultiplexedConnection::new_with_config(info.redis_settings(), stream, config).await?;
    Ok(Made { connection, _driver: Some(Arc::new(AbortOnDropHandle::new(tokio::spawn(driver)))) })
}
