//! TLS of all clients: one provider of cryptography, one verifier of what the system trusts, or authorities of one's own.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, ConfigBuilder, WantsVerifier};
use rustls_platform_verifier::Verifier;

/// The settings of a client that trusts the authorities of the system.
pub(crate) fn config() -> Result<ClientConfig, rustls::Error> {
    let builder = builder()?;
    let verifier = verifier(builder.crypto_provider())?;
    // The system's own verifier is what is custom here.
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

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
        let client = config().unwrap();
        let (one, other) = (verifier(&provider()).unwrap(), verifier(&provider()).unwrap());
        assert!(Arc::ptr_eq(&one, &other));
        // The client has it, and a second one has the same.
        let alone = Arc::strong_count(&one);
        let second = config().unwrap();
        assert!(Arc::strong_count(&one) > alone);
        drop((client, second));
    }
}
