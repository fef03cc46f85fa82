//! Where the server is, and how connections to it are made.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo, RedisResult};
use tokio_util::task::AbortOnDropHandle;

use crate::call::tls::Settings;

/// A server. A clone is the same.
#[derive(Clone)]
pub(super) struct Server {
    client: Client,
    tls: Option<Settings>,
}

/// A connection that has been made. A clone is the same; it is closed when the last is dropped, also while the server has
/// commands of it.
#[derive(Clone)]
pub(super) struct Made {
    pub(super) connection: MultiplexedConnection,
    /// What moves an encrypted one; the client moves others itself.
    _driver: Option<Arc<AbortOnDropHandle<()>>>,
}

impl Server {
    /// The server at an address, with settings if that asks for encryption.
    pub(super) fn new(url: &str, tls: Option<Settings>) -> RedisResult<Self> {
        // The client is given the address without encryption, which is ours: its own would read all that the system trusts
        // for each connection, and refuse it if one certificate of these is bad.
        let plain = match url.split_once("://") {
            Some((scheme, rest)) if tls.is_some() => {
                format!("{}://{rest}", scheme.strip_suffix(['s', 'S']).unwrap_or(scheme))
            }
            _ => url.to_owned(),
        };
        // What is written is whole, so nothing is gained by waiting for more of it.
        let settings = TcpSettings::default().set_nodelay(true);
        let to = plain.into_connection_info()?.set_tcp_settings(settings);
        Ok(Self { client: Client::open(to)?, tls })
    }

    /// Makes a connection within a time; it is given up when an answer takes longer than another.
    pub(super) async fn connect(&self, within: Duration, answer: Duration) -> RedisResult<Made> {
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
    use redis::{ConnectionAddr, ErrorKind, RedisError};
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
