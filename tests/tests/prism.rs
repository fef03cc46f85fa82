//! A mock server that validates our requests against the document accepts every one of them.
//!
//! The server is Prism, from npm at the version of `tests/peers`. Reads `petstore.yaml` and `museum.yaml` of the
//! directory in `OPS_SPECS`; unset, our own documents.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ops_runtime::{HttpConfig, OperationKind, Registry, from_openapi_file};
use ops_tests::{corpus, sample};
use serde_json::Value;

/// Prism's own errors, but for the one that says the document describes no answer.
const PRISM: &str = "https://stoplight.io/prism/errors#";
const NO_RESPONSE: &str = "https://stoplight.io/prism/errors#NO_RESPONSE_RESPONSE_DEFINED";

struct Prism {
    child: Child,
    url: String,
}

impl Prism {
    fn start(document: &Path) -> Self {
        let program = corpus::root().join("tests/peers/node_modules/.bin/prism");
        assert!(program.exists(), "{} is missing: run `tests/run`, which installs it", program.display());
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let child = Command::new(program)
            .args(["mock", "--dynamic", "--host", "127.0.0.1", "--port", &port.to_string()])
            .arg(document)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let prism = Self { child, url: format!("http://127.0.0.1:{port}") };
        let started = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(120), "Prism did not start for {}", document.display());
            std::thread::sleep(Duration::from_millis(100));
        }
        prism
    }
}

impl Drop for Prism {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A configuration with something for each way of authentication that the document knows.
fn config(document: &Value, url: &str) -> HttpConfig {
    let mut config = HttpConfig::new().with_namespace("api").with_base_url(url);
    let schemes = document["components"]["securitySchemes"].as_object();
    for scheme in schemes.into_iter().flat_map(|schemes| schemes.values()) {
        config = match (scheme["type"].as_str(), scheme["scheme"].as_str(), scheme["in"].as_str()) {
            (Some("http"), Some("basic"), _) => config.with_header("authorization", "Basic YW5uOnNlY3JldA=="),
            (Some("http" | "oauth2" | "openIdConnect"), _, _) => config.with_header("authorization", "Bearer token"),
            (Some("apiKey"), _, Some("header")) => {
                config.with_header(scheme["name"].as_str().unwrap_or_default(), "key")
            }
            _ => config,
        };
    }
    config
}

/// Sends a request of every operation; says how many there were, and what Prism did not like.
async fn exchange(path: &Path) -> (usize, Vec<String>) {
    let prism = Prism::start(path);
    let document = corpus::parse(path);
    let imported = from_openapi_file(path.to_str().unwrap(), config(&document, &prism.url)).unwrap();
    let registry = Registry::new();
    registry.register_all(imported).unwrap();
    let mut complaints = Vec::new();
    let specs = registry.list();
    for spec in &specs {
        assert_ne!(spec.kind, OperationKind::Subscription, "these documents have none");
        let schema = spec.input.self_contained(&spec.definitions).unwrap();
        let input = sample::value(&schema, &schema);
        let (headers, kind) = match registry.call(&spec.id, input.clone()).await {
            Ok(envelope) => (envelope.meta.as_http().map(|http| http.headers.clone()).unwrap_or_default(), Value::Null),
            Err(error) => {
                let details = error.details();
                if details["statusCode"].is_null() {
                    complaints.push(format!("{}: {error} for {input}", spec.id));
                }
                let headers = details["headers"].as_object().into_iter().flatten();
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                (headers.map(|(name, value)| (name.clone(), text(value))).collect(), details["body"]["type"].clone())
            }
        };
        if let Some(violations) = headers.get("sl-violations") {
            complaints.push(format!("{}: {violations} for {input}", spec.id));
        }
        if kind.as_str().is_some_and(|kind| kind.starts_with(PRISM) && kind != NO_RESPONSE) {
            complaints.push(format!("{}: {kind} for {input}", spec.id));
        }
    }
    (specs.len(), complaints)
}

#[tokio::test]
async fn prism_accepts_the_requests_of_every_operation() {
    let directory = corpus::directory("OPS_SPECS", "openapi");
    let named: Vec<PathBuf> = ["petstore.yaml", "museum.yaml"].iter().map(|name| directory.join(name)).collect();
    let documents = if named.iter().all(|path| path.exists()) { named } else { vec![directory.join("petshop.yaml")] };
    for path in documents {
        let (count, complaints) = exchange(&path).await;
        println!("{}: {count} operations, {} complaints", path.display(), complaints.len());
        assert!(count > 0, "{} has no operations", path.display());
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    }
}
