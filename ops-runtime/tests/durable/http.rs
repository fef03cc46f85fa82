//! The key of a job, and what an HTTP client makes of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::any;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{HttpBinding, HttpBody, HttpParameter};
use ops_runtime::durable::{AnyJob, JobStatus, Jobs, RetryPolicy, SubmitOptions, Worker};
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{CallError, Context, HttpClient, HttpConfig, Registry};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The idempotency keys of requests, in the order in which they came.
type Keys = Arc<Mutex<Vec<Option<String>>>>;

/// A server that refuses the first request of each path.
async fn server() -> (String, Keys) {
    async fn answer(State(keys): State<Keys>, request: Request) -> (StatusCode, &'static str) {
        let key = request.headers().get("idempotency-key").map(|key| key.to_str().unwrap().to_owned());
        let mut keys = keys.lock().unwrap();
        keys.push(key);
        if keys.len() == 1 { (StatusCode::BAD_GATEWAY, "") } else { (StatusCode::OK, "\"fine\"") }
    }
    let keys = Keys::default();
    let app = Router::new().fallback(any(answer)).with_state(keys.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, keys)
}

fn registry(url: &str) -> Registry {
    let operation = |name: &str, parameters: Vec<HttpParameter>| {
        let mut binding = HttpBinding::new("POST", "/x");
        binding.parameters = parameters.into();
        let mut spec = OperationSpec::new(OperationKind::Mutation, "shop", name).unwrap();
        spec.binding = ops_runtime::binding::Binding::Http(binding);
        spec
    };
    let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
    let keyed = operation("keyed", vec![HttpParameter::header("Idempotency-Key")]);
    let registry = Registry::new();
    registry.register_all(client.bind([keyed, operation("plain", Vec::new())]).unwrap()).unwrap();
    // A handler that calls on: what it calls has no key of the job.
    let nested = |_: Value, context: Context| async move {
        Ok::<_, CallError>(context.env().call("shop.keyed", json!({})).await?.data)
    };
    registry.register(Registration::new(OperationSpec::mutation("own.nested"), Handler::dynamic(nested))).unwrap();
    registry
}

async fn run(jobs: &Jobs, id: &str, input: Value) -> AnyJob {
    let policy = RetryPolicy::new(3).with_backoff(Duration::from_millis(10), Duration::from_millis(10));
    let job = jobs.submit_by_id(id, input, SubmitOptions::new().with_retry(policy)).await.unwrap();
    job.result().await.unwrap();
    job
}

pub(crate) async fn the_key_of_a_job_is_sent_with_each_attempt() {
    let (url, keys) = server().await;
    let jobs = Jobs::in_memory();
    let worker = Worker::new(jobs.clone(), registry(&url)).start();
    let job = run(&jobs, "shop.keyed", json!({})).await;
    let key = Some(job.id().token().to_owned());
    assert_eq!(*keys.lock().unwrap(), [key.clone(), key.clone()]);
    keys.lock().unwrap().truncate(1);
    // Another job has another.
    let other = run(&jobs, "shop.keyed", json!({})).await;
    assert_ne!(other.id(), job.id());
    // The input has precedence; where there is no header for it, and for calls within, nothing is sent.
    run(&jobs, "shop.keyed", json!({ "Idempotency-Key": "mine" })).await;
    run(&jobs, "shop.plain", json!({})).await;
    run(&jobs, "own.nested", json!({})).await;
    let expected = [key, Some(other.id().token().to_owned()), Some("mine".to_owned()), None, None];
    assert_eq!(*keys.lock().unwrap(), expected);
    worker.stop().await;
}

/// A request that had its effect is not sent again, though its response cannot be taken.
pub(crate) async fn a_response_that_is_too_large_is_not_repeated() {
    let (url, keys) = server().await;
    let mut spec = OperationSpec::new(OperationKind::Mutation, "shop", "large").unwrap();
    spec.binding = ops_runtime::binding::Binding::Http(HttpBinding::new("POST", "/x"));
    let client = HttpClient::new(HttpConfig::new().with_base_url(url).with_max_response(4)).unwrap();
    let registry = Registry::new();
    registry.register_all(client.bind([spec]).unwrap()).unwrap();
    let jobs = Jobs::in_memory();
    let worker = Worker::new(jobs.clone(), registry).start();
    let policy = RetryPolicy::new(5).with_backoff(Duration::from_millis(10), Duration::from_millis(10));
    let options = SubmitOptions::new().with_retry(policy);
    let job = jobs.submit_by_id("shop.large", json!({}), options).await.unwrap();
    let error = job.result().await.unwrap_err();
    assert_eq!(error.message(), "the response is larger than 4 bytes: raise `with_max_response`");
    assert_eq!(job.status().await.unwrap(), JobStatus::Failed(error));
    // The first was refused.
    assert_eq!(keys.lock().unwrap().len(), 2);
    worker.stop().await;
}

/// A server that fails the first request, and what it got byte by byte.
async fn raw_server() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let requests = seen.clone();
    tokio::spawn(async move {
        for status in ["502 Bad Gateway", "200 OK"] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            // The body is an object, and ends the request.
            while !request.ends_with(b"}") {
                assert!(stream.read_buf(&mut request).await.unwrap() > 0);
            }
            requests.lock().unwrap().push(String::from_utf8(request).unwrap());
            let length = "content-type: application/json\r\ncontent-length: 6\r\nconnection: close";
            let response = format!("HTTP/1.1 {status}\r\n{length}\r\n\r\n\"fine\"");
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    (url, seen)
}

pub(crate) async fn both_attempts_send_the_same_bytes() {
    let (url, seen) = raw_server().await;
    let mut binding = HttpBinding::new("POST", "/payments");
    binding.parameters = vec![HttpParameter::header("idempotency-key")].into();
    binding.bodies = vec![HttpBody::new("application/json").with_rest()].into();
    let mut spec = OperationSpec::new(OperationKind::Mutation, "shop", "pay").unwrap();
    spec.binding = ops_runtime::binding::Binding::Http(binding);
    let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
    let registry = Registry::new();
    registry.register_all(client.bind([spec]).unwrap()).unwrap();
    let jobs = Jobs::in_memory();
    let worker = Worker::new(jobs.clone(), registry).start();
    let job = run(&jobs, "shop.pay", json!({ "cents": 1200 })).await;
    let seen = seen.lock().unwrap().clone();
    let [first, second] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(first, second);
    let (head, body) = first.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, r#"{"cents":1200}"#);
    let keys: Vec<_> = head.lines().filter(|line| line.to_ascii_lowercase().starts_with("idempotency-key")).collect();
    assert_eq!(keys, [format!("idempotency-key: {}", job.id().token())]);
    worker.stop().await;
}
