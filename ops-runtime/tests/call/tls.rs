//! Encrypted connections: to a hub behind what takes the encryption off, and to NATS and Redis servers that have it themselves.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ops_runtime::call::CallHandler;
#[cfg(feature = "nats")]
use ops_runtime::call::nats::{Nats, NatsConfig};
use ops_runtime::call::redis::Redis;
use ops_runtime::call::websocket::{Hub, WebSocketClient, WebSocketConfig};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::harness::{eventually, limited};
use crate::operations::{Probe, registry};
use crate::proxy::Proxy;
use crate::redis::config as redis_config;
use crate::servers::Server;

/// What certificates are made by: of an authority, and of a server.
const EXTENSIONS: &str = "[req]\ndistinguished_name = name\n[name]\n[authority]\nbasicConstraints = critical, CA:TRUE\n\
                          keyUsage = critical, keyCertSign\n[server]\nbasicConstraints = critical, CA:FALSE\n\
                          subjectAltName = DNS:localhost\n";

/// An authority of a test's own, and a certificate of `localhost` that it has signed.
struct Certificates(PathBuf);

impl Certificates {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("ops-certificates-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("extensions"), EXTENSIONS).unwrap();
        let certificates = Self(folder);
        certificates.make("authority", &[]);
        certificates.make("server", &["-CA", "authority.pem", "-CAkey", "authority.key"]);
        certificates
    }

    fn make(&self, name: &str, signer: &[&str]) {
        let (key, certificate, subject) = (format!("{name}.key"), format!("{name}.pem"), format!("/CN={name}"));
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-config", "extensions", "-extensions", name, "-days", "2", "-nodes"]);
        command.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-subj", &subject]);
        command.args(["-keyout", &key, "-out", &certificate]).args(signer).current_dir(&self.0);
        let output = command.output().expect("openssl can't be started: run tests/peers/install");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn authority(&self) -> String {
        std::fs::read_to_string(self.0.join("authority.pem")).unwrap()
    }

    fn server(&self) -> (PathBuf, PathBuf) {
        (self.0.join("server.pem"), self.0.join("server.key"))
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Takes the encryption off before a server, as a proxy of a web server does.
struct Gate {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Gate {
    async fn start(target: SocketAddr, certificates: &Certificates) -> Self {
        let (certificate, key) = certificates.server();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_file(certificate).unwrap()],
                PrivateKeyDer::from_pem_file(key).unwrap(),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client that does not trust the certificate goes away.
                    let Ok(mut near) = acceptor.accept(near).await else { return };
                    let mut far = TcpStream::connect(target).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        Self { address, task }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hubs_are_reached_over_tls() {
    limited(async {
        let hub = Hub::new(CallHandler::new(registry(&Arc::new(Probe::default()))));
        let server = hub.listen("127.0.0.1:0").await.unwrap();
        let (certificates, others) = (Certificates::new(), Certificates::new());
        let gate = Gate::start(server.address(), &certificates).await;
        let network = Proxy::start(gate.address).await;
        let port = network.address().port();
        let trusting = WebSocketConfig::new().with_root_certificates(certificates.authority());
        let client = WebSocketClient::connect(&format!("wss://localhost:{port}/"), trusting.clone()).await.unwrap();
        assert_eq!(client.remote().call("test.add", json!({ "a": 1, "b": 2 })).await.unwrap().data, 3);
        // It connects again, encrypted.
        network.cut();
        eventually("the loss is noticed", || !client.is_connected()).await;
        assert_eq!(client.remote().call("test.add", json!({ "a": 2, "b": 2 })).await.unwrap().data, 4);
        client.stop().await;
        // Neither the system nor another authority of that name has signed the certificate, and it is of one host only.
        let mistaken = WebSocketConfig::new().with_root_certificates(others.authority());
        for (url, config, why, advised) in [
            ("wss://localhost", WebSocketConfig::new(), "UnknownIssuer", true),
            ("wss://localhost", mistaken, "BadSignature", true),
            ("wss://127.0.0.1", trusting, "not valid for name", false),
            ("ws://localhost", WebSocketConfig::new(), "", false),
        ] {
            let told = WebSocketClient::connect(&format!("{url}:{port}/"), config).await.unwrap_err().to_string();
            assert!(told.contains(why) && told.contains("with_root_certificates") == advised, "{url}: {told}");
        }
        eventually("the hub has no spoke", || hub.peers().is_empty()).await;
    })
    .await;
}

#[cfg(feature = "nats")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nats_servers_are_reached_over_tls() {
    limited(async {
        let (certificates, others) = (Certificates::new(), Certificates::new());
        let (certificate, key) = certificates.server();
        let server = Server::nats_of(format!("tls {{ cert_file: {certificate:?}, key_file: {key:?} }}")).await;
        let plain = Server::nats(&[]).await;
        let (port, open) = (server.address().port(), plain.address().port());
        let trusting = || NatsConfig::new().with_root_certificates(certificates.authority());
        let nats = Nats::connect(&format!("nats://localhost:{port}"), trusting()).await.unwrap();
        let worker = nats.serve(CallHandler::new(registry(&Arc::new(Probe::default())))).await.unwrap();
        let remote = nats.remote().await.unwrap();
        assert_eq!(remote.call("test.add", json!({ "a": 1, "b": 2 })).await.unwrap().data, 3);
        for (host, port, config) in [
            ("localhost", port, NatsConfig::new()),
            ("localhost", port, NatsConfig::new().with_root_certificates(others.authority())),
            // The certificate is of one host only.
            ("127.0.0.1", port, trusting()),
            // Nothing is sent in the clear.
            ("localhost", open, trusting()),
            ("localhost", port, NatsConfig::new().with_root_certificates("none")),
        ] {
            let told = Nats::connect(&format!("nats://{host}:{port}"), config).await.map(drop).unwrap_err().to_string();
            assert!(told.contains("can't be used") || told.contains("with_root_certificates"), "{host}:{port}: {told}");
        }
        worker.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_servers_are_reached_over_tls() {
    limited(async {
        let (certificates, others) = (Certificates::new(), Certificates::new());
        let (certificate, key) = certificates.server();
        let mut server = Server::encrypted_redis(certificate, key, "hush").await;
        let port = server.address().port();
        let config = || redis_config(Duration::from_secs(3));
        let trusting = || config().with_root_certificates(certificates.authority());
        let redis = Redis::new(&format!("rediss://:hush@localhost:{port}"), trusting()).unwrap();
        let handler = CallHandler::new(registry(&Arc::new(Probe::default())));
        let worker = redis.serve(handler).await.unwrap();
        let remote = redis.remote().await.unwrap();
        assert_eq!(remote.call("test.add", json!({ "a": 1, "b": 2 })).await.unwrap().data, 3);
        for (url, config, why, advised) in [
            ("rediss://:hush@localhost", config(), "UnknownIssuer", true),
            ("rediss://:hush@localhost", config().with_root_certificates(others.authority()), "BadSignature", true),
            ("rediss://:hush@127.0.0.1", trusting(), "not valid for name", false),
            ("rediss://:wrong@localhost", trusting(), "authentication failed", false),
            ("redis://:hush@localhost", config(), "I/O error", false),
        ] {
            let redis = Redis::new(&format!("{url}:{port}"), config).unwrap();
            let told = redis.remote().await.map(drop).unwrap_err().to_string();
            assert!(told.contains(why) && told.contains("with_root_certificates") == advised, "{url}: {told}");
            assert!(!told.contains("hush"), "{url}: {told}");
        }
        // Both connect again, encrypted.
        server.kill();
        server.restart().await;
        for _ in 0..500 {
            match remote.call("test.add", json!({ "a": 2, "b": 2 })).await {
                Ok(sum) => {
                    assert_eq!(sum.data, 4);
                    worker.stop().await;
                    return;
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        panic!("there is no connection again");
    })
    .await;
}
