//! Operations answered by examples: our client calls every operation of documents at our server, and what it gets is what
//! the schemas allow.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};

use futures_util::StreamExt;
use ops_runtime::access::Identity;
use ops_runtime::registry::{CancelToken, OutputPolicy};
use ops_runtime::serve::{HttpServer, Unauthorized};
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{CallError, CallOptions, HttpClient, HttpConfig, Registry, mock};
use ops_tests::corpus;
use ops_tests::requests::{Made, inputs};
use ops_tests::sample::Extent;
use serde_json::Value;

/// Documents of the corpus, or others in their place: of several styles, with unions, recursion, uploads and streams. In all 66
/// documents, 7,793 operations return the expected result, and 67 do not: most describe a body for 204, which can have none.
const CORPUS: [&str; 8] =
    ["asana", "discord", "github-api", "kubernetes-core-v1", "ollama", "openai", "opencode", "petstore"];

/// For each `FAULTY` operations of documents that are not known, one may describe a response that no server can send, and two
/// more in any case.
const FAULTY: usize = 20;

fn documents() -> Vec<PathBuf> {
    let mut files = corpus::files(&corpus::root().join("tests/fixtures/openapi"), &["json", "yaml"]);
    files.push(corpus::root().join("tests/fixtures/serve/shelter.yaml"));
    if std::env::var_os("OPS_SPECS").is_some() {
        let all = corpus::files(&corpus::directory("OPS_SPECS", "openapi"), &["json", "yaml", "yml"]);
        let chosen = corpus::choose(&CORPUS, &all, corpus::holds_document).unwrap();
        assert!(!chosen.is_empty(), "there are no documents");
        files.extend(chosen);
    }
    files.retain(|file| corpus::holds_document(file));
    files
}

/// A server of examples, and a client of it.
struct Mocked {
    caller: Registry,
    cancel: CancelToken,
}

impl Mocked {
    async fn start(specs: &[OperationSpec]) -> Self {
        let registry = Registry::new();
        registry.register_all(specs.iter().cloned().map(mock::examples)).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let cancel = CancelToken::new();
        let ways = specs.iter().filter_map(OperationSpec::http).flat_map(|http| http.security.iter());
        let scopes = ways.flat_map(|way| way.schemes.iter()).flat_map(|scheme| scheme.scopes.iter().map(str::to_owned));
        let identity = scopes.fold(Identity::new("all"), Identity::with_scope);
        let server = HttpServer::new(registry).with_cancel(cancel.clone());
        let server = server.with_authenticator(move |_: &http::request::Parts| {
            let identity = identity.clone();
            async move { Ok::<_, Unauthorized>(identity) }
        });
        tokio::spawn(server.serve_listener(listener));
        let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
        let caller = Registry::new();
        caller.register_all(client.bind(specs.to_vec()).unwrap()).unwrap();
        Self { caller, cancel }
    }

    /// What an operation gives: one value, or the items of a stream.
    async fn call(&self, made: &Made) -> Result<Vec<Value>, CallError> {
        let (id, input) = (&made.spec.id, made.input.clone());
        let options = CallOptions::new().with_policy(OutputPolicy::Strict);
        if made.spec.kind == OperationKind::Subscription {
            let stream = self.caller.stream_with(id, input, options).await?;
            let items: Vec<Result<_, CallError>> = stream.collect().await;
            return items.into_iter().map(|item| item.map(|item| item.data)).collect();
        }
        Ok(vec![self.caller.call_with(id, input, options).await?.data])
    }
}

impl Drop for Mocked {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// How many operations of a document gave what they should, and what was wrong with the others.
async fn run(path: &Path) -> (usize, Vec<String>) {
    let (specs, made) = inputs(path, "mocked").unwrap();
    let mocked = Mocked::start(&specs).await;
    let (mut given, mut wrong) = (0, Vec::new());
    for made in made.iter().filter(|made| made.extent == Extent::Required) {
        let wanted = if made.spec.kind == OperationKind::Subscription { 3 } else { 1 };
        match mocked.call(made).await {
            Ok(items) if items.len() == wanted => given += 1,
            Ok(items) => wrong.push(format!("{}: {} items", made.spec.id, items.len())),
            Err(error) => wrong.push(format!("{error} {}", error.details()).chars().take(400).collect()),
        }
    }
    (given, wrong)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_gives_what_its_schema_allows() {
    let (mut known, mut unknown) = ((0, Vec::new()), (0, Vec::new()));
    for path in documents() {
        let (own, faults) = run(&path).await;
        println!("{}: {own} given, {} wrong", path.display(), faults.len());
        let (given, wrong) = if corpus::is_known(&path) { &mut known } else { &mut unknown };
        *given += own;
        wrong.extend(faults);
    }
    let (given, wrong) = known;
    assert!(given > 70 && wrong.is_empty(), "{given} given; {} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let (given, wrong) = unknown;
    println!("{given} given by documents that are not known; {} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(wrong.len() <= 2 + (given + wrong.len()) / FAULTY, "{given} given; {} wrong", wrong.len());
}
