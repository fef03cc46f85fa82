//! TLS of all clients: one provider of cryptography, one verifier of what the system trusts, or authorities of one's own.

#[cfg(any(feature = "http", feature = "redis", feature = "websocket"))]
mod system;

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, ConfigBuilder, WantsVerifier};

#[cfg(any(feature = "http", feature = "redis", feature = "websocket"))]
pub(crate) use self::system::config;

/// The settings of a client that trusts the authorities of a PEM text alone.
#[cfg(feature = "tls")]
pub(crate) fn of_authorities(pem: &[u8]) -> Result<ClientConfig, crate::CallError> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    let unreadable = |why: &dyn std::fmt::Display| {
        crate::CallError::execution(format!(
            "the text given to `with_root_certificates` cannot be used ({why}): give certificates as PEM, each between \
             `-----BEGIN CERTIFICATE-----` and `-----END CERTIFICATE-----`"
        ))
    };
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        roots.add(certificate).map_err(|error| unreadable(&error))?;
    }
    if roots.is_empty() {
        return Err(unreadable(&"there is no certificate in it"));
    }
    let builder = builder().map_err(|error| unusable(&error))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The error of settings that cannot be made.
#[cfg(feature = "tls")]
pub(crate) fn unusable(error: &rustls::Error) -> crate::CallError {
    crate::CallError::execution(format!("TLS cannot be set up: {error}"))
}

/// Settings in which only whom to trust is missing.
fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    ClientConfig::builder_with_provider(provider()).with_protocol_versions(rustls::ALL_VERSIONS)
}

/// TLS needs a cryptography provider, and the program may have installed one. `ring` builds in a fraction of the time that
/// the default of rustls takes.
fn provider() -> Arc<CryptoProvider> {
    if CryptoProvider::get_default().is_none() {
        // It does no harm if another thread installs one first.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    match CryptoProvider::get_default() {
        Some(provider) => provider.clone(),
        None => Arc::new(rustls::crypto::ring::default_provider()),
    }
}
