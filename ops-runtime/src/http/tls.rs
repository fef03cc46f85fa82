//! TLS, set up as reqwest does by itself, but once for all clients.

/// Sets up TLS with what the clients that there are share.
pub(super) fn shared(builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    match crate::tls::config() {
        Ok(mut config) => {
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            builder.tls_backend_preconfigured(config)
        }
        // Then reqwest says what is wrong.
        Err(_) => builder,
    }
}
