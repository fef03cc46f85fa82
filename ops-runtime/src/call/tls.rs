//! TLS to a hub or to a Redis server, if its address requires it.

use std::sync::Arc;

use crate::CallError;

/// The settings of encrypted connections.
#[cfg(feature = "tls")]
pub(super) type Settings = Arc<rustls::ClientConfig>;

/// Without the feature there are none.
#[cfg(not(feature = "tls"))]
#[derive(Clone)]
pub(super) enum Settings {}

/// The authorities that a client trusts to sign the certificate of its server: those of the system, unless a PEM text
/// names others.
#[derive(Clone, Default)]
pub(super) struct Trust(Option<Arc<[u8]>>);

impl Trust {
    /// Trusts the authorities of a PEM text alone.
    #[cfg(feature = "tls")]
    pub(super) fn only(pem: &[u8]) -> Self {
        Self(Some(pem.into()))
    }

    /// The settings for an address: `None` if it does not ask for encryption.
    ///
    /// # Errors
    /// If the feature is missing, if the authorities cannot be read, or if some are named for an address without
    /// encryption, since the connection that they should protect would not be encrypted.
    pub(super) fn settings(&self, url: &str) -> Result<Option<Settings>, CallError> {
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
        if !matches!(&*scheme, "wss" | "rediss" | "valkeys") {
            if self.0.is_some() {
                return Err(CallError::execution(format!(
                    "`with_root_certificates` is set, but `{scheme}://` is not encrypted: use an address with `wss://` or \
                     `rediss://`"
                )));
            }
            return Ok(None);
        }
        #[cfg(feature = "tls")]
        return self.encrypted().map(Some);
        #[cfg(not(feature = "tls"))]
        Err(CallError::execution(format!("`{scheme}://` needs TLS: enable the feature `tls` of `ops-runtime`")))
    }

    #[cfg(feature = "tls")]
    fn encrypted(&self) -> Result<Settings, CallError> {
        match &self.0 {
            Some(pem) => crate::tls::of_authorities(pem).map(Arc::new),
            None => crate::tls::config().map(Arc::new).map_err(|error| crate::tls::unusable(&error)),
        }
    }
}

/// Advice for a connection that failed because no trusted authority signed the certificate of the server. If a trusted
/// authority has the name of the signer, rustls reports a bad signature.
#[cfg(feature = "tls")]
pub(super) fn advice(error: &std::io::Error) -> &'static str {
    use rustls::{CertificateError, Error};

    match error.get_ref().and_then(|error| error.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature)) => {
            "; if the certificate is signed by an authority of your own, name it by `with_root_certificates`"
        }
        _ => "",
    }
}

#[cfg(all(feature = "websocket", not(feature = "tls")))]
pub(super) fn advice(_: &std::io::Error) -> &'static str {
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_say_if_they_are_encrypted() {
        let trust = Trust::default();
        for url in ["ws://hub:1/", "redis://server", "redis+unix:///rediss://", "none"] {
            assert!(trust.settings(url).unwrap().is_none(), "{url}");
        }
        for url in ["wss://hub/ops", "rediss://:hush@server", "valkeys://server", "REDISS://server"] {
            match trust.settings(url) {
                Ok(settings) => assert!(cfg!(feature = "tls") && settings.is_some(), "{url}"),
                Err(error) => {
                    let told = error.to_string();
                    assert!(!cfg!(feature = "tls") && told.contains("enable the feature `tls`"), "{url}: {told}");
                    assert!(!told.contains("hush"), "{told}");
                }
            }
        }
    }

    #[cfg(feature = "tls")]
    #[test]
    fn authorities_that_protect_nothing_are_refused() {
        let told = |pem: &str, url| Trust::only(pem.as_bytes()).settings(url).unwrap_err().to_string();
        let junk = "-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n";
        for pem in ["", "none", "-----BEGIN CERTIFICATE-----\nbm90", junk] {
            let told = told(pem, "wss://hub/");
            assert!(told.contains("with_root_certificates") && told.contains("PEM"), "{pem}: {told}");
        }
        let told = told(junk, "redis://server");
        assert!(told.contains("`redis://` is not encrypted") && told.contains("`rediss://`"), "{told}");
    }
}
