//! TLS, configured like reqwest's default, but once for all clients.

/// Configures TLS with the settings that all clients share.
pub(super) fn shared(builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    match crate::tls::config() {
        Ok(mut config) => {
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            builder.tls_backend_preconfigured(config)
        }
        // Then reqwest reports the error.
        Err(_) => builder,
    }
}
