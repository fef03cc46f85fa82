//! TLS, set up as reqwest does by itself, but once for all clients.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use rustls_platform_verifier::Verifier;

/// Sets up TLS with what the clients that there are share.
pub(super) fn shared(builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    // TLS needs a cryptography provider, and the program may have installed one. `ring` builds in a fraction of the
    // time that the default of rustls takes. It does no harm if another thread installs one first.
    if CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    match CryptoProvider::get_default().map(config) {
        Some(Ok(config)) => builder.tls_backend_preconfigured(config),
        // Then reqwest says what is wrong.
        _ => builder,
    }
}

fn config(provider: &Arc<CryptoProvider>) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_protocol_versions(rustls::ALL_VERSIONS)?;
    // The system's own verifier is what is custom here.
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier(provider)?);
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// What verifies the certificates of servers, shared by the clients that there are: to read the certificates that the
/// system trusts takes milliseconds, and some hundred kilobytes keep them.
fn verifier(provider: &Arc<CryptoProvider>) -> Result<Arc<Verifier>, rustls::Error> {
    static SHARED: Mutex<Weak<Verifier>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(verifier) = shared.upgrade() {
        return Ok(verifier);
    }
    let verifier = Arc::new(Verifier::new(provider.clone())?);
    *shared = Arc::downgrade(&verifier);
    Ok(verifier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_share_a_verifier() {
        let client = shared(reqwest::Client::builder()).build().unwrap();
        let provider = CryptoProvider::get_default().unwrap();
        let (one, other) = (verifier(provider).unwrap(), verifier(provider).unwrap());
        assert!(Arc::ptr_eq(&one, &other));
        // The client has it, and a second one has the same.
        let alone = Arc::strong_count(&one);
        let second = shared(reqwest::Client::builder()).build().unwrap();
        assert!(Arc::strong_count(&one) > alone);
        drop((client, second));
    }
}
