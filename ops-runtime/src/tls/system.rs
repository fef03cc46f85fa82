//! What the system trusts.

use std::sync::{Arc, Mutex, Weak};

use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use rustls_platform_verifier::Verifier;

use super::builder;
use crate::model::lock::lock;

/// The settings of a client that trusts the authorities of the system.
pub(crate) fn config() -> Result<ClientConfig, rustls::Error> {
    let builder = builder()?;
    let verifier = verifier(builder.crypto_provider())?;
    // The system's own verifier is what is custom here.
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// What verifies the certificates of servers, shared by the clients that there are: to read the certificates that the
/// system trusts takes milliseconds, and some hundred kilobytes keep them.
fn verifier(provider: &Arc<CryptoProvider>) -> Result<Arc<Verifier>, rustls::Error> {
    static SHARED: Mutex<Weak<Verifier>> = Mutex::new(Weak::new());
    let mut shared = lock(&SHARED);
    if let Some(verifier) = shared.upgrade() {
        return Ok(verifier);
    }
    let verifier = Arc::new(Verifier::new(provider.clone())?);
    *shared = Arc::downgrade(&verifier);
    Ok(verifier)
}

#[cfg(test)]
mod tests {
    use super::super::provider;
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
