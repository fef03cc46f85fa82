//! The suite within the process.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, stream};
use ops_runtime::access::Identity;
use ops_runtime::adapter::{BoxFuture, Endpoint, Handler, Payload, Registration};
use ops_runtime::binding::HttpBinding;
use ops_runtime::call::{
    CallEvent, CallHandler, CallRequest, Frame, InProcess, InProcessWorker, Link, PeerAuth, Remote, Unsent,
};
use ops_runtime::envelope::HttpMeta;
#[cfg(feature = "gateway")]
use ops_runtime::gateway::Gateway;
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{Call, CallError, CallOptions, Context, ErrorCode, Operation, Registry, ResponseEnvelope, operation};
use serde_json::{Value, json};

use crate::harness::{Harness, Working, eventually};
use crate::log::Log;
use crate::operations::{
    ADD_IS_NOT_SERVED, Add, AddInput, Count, Echo, EchoInput, Probe, Twice, TwiceInput, add_twice, registry,
};

pub(crate) struct InProcessHarness(InProcess);

impl Harness for InProcessHarness {
    const NAME: &'static str = "in-process";

    type Worker = InProcessWorker;

    async fn start() -> Self {
        Self(InProcess::new())
    }

    async fn worker(&self, handler: CallHandler) -> InProcessWorker {
        self.0.serve(handler)
    }

    async fn caller(&self) -> Remote {
        self.0.remote()
    }

    fn identity_of(claimed: Option<Identity>) -> Option<Identity> {
        claimed
    }
}

impl Working for InProcessWorker {
    fn running(&self) -> usize {
        Self::running(self)
    }

    async fn announce(&self) {
        Self::announce(self);
    }

    async fn stop(self) {
        Self::stop(self).await;
    }

    async fn kill(self) {
        drop(self);
    }
}

/// Two versions of an API in one namespace, and the first as an older build has it.
macro_rules! get_pet {
    ($name:ident, $path:literal, $input:literal) => {
        struct $name;
        impl Operation for $name {
            type Input = Value;
            type Output = Value;
            const SPEC: &'static OperationSpec = &OperationSpec::query("pets.get")
                .with_input(Schema::text($input))
                .with_http(HttpBinding::new("GET", $path));
        }
        impl Call for $name {}
    };
}

get_pet!(First, "/v1/pets", r#"{"type":"object"}"#);
get_pet!(Older, "/v1/pets", r#"{"type":"object","description":"A pet.","properties":{"id":{}}}"#);
get_pet!(Second, "/v2/pets", r#"{"type":"object"}"#);

struct Path;

impl Endpoint for Path {
    fn call(
        &self,
        spec: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let path = json!(spec.http().map(|http| http.path.clone()));
        Box::pin(async { Ok(ResponseEnvelope::local(Payload::Value(path), "")) })
    }
}

#[tokio::test]
async fn a_type_of_another_version_is_not_run_by_the_spec_of_a_worker() {
    let registry = Registry::new();
    registry.register(Registration::new(First::SPEC, Handler::endpoint(Path))).unwrap();
    let transport = InProcess::new();
    let worker = transport.serve(CallHandler::new(registry));
    let remote = transport.remote();
    assert_eq!(remote.execute::<First>(json!({})).await.unwrap().data, "/v1/pets");
    for _ in 0..2 {
        let error = remote.execute::<Second>(json!({})).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::OperationNotFound);
        assert!(error.message().contains("`GET /v1/pets`") && error.message().contains("`GET /v2/pets`"), "{error}");
        // A worker of another build is called none the less, and by id as ever.
        assert_eq!(remote.execute::<Older>(json!({ "id": 1 })).await.unwrap().data, "/v1/pets");
        assert_eq!(remote.call("pets.get", json!({})).await.unwrap().data, "/v1/pets");
    }
    worker.stop().await;
}

/// A link that keeps nothing of what it is given.
struct Nowhere;

impl Link for Nowhere {
    fn send(&self, _: Frame) -> Result<(), Unsent> {
        Ok(())
    }
}

/// The end of a request that was given up is not that of another which has its id since.
#[tokio::test]
async fn an_id_that_is_used_again_after_its_abort() {
    let probe = Arc::new(Probe::default());
    let session = CallHandler::new(registry(&probe)).session(PeerAuth::anonymous(), Arc::new(Nowhere));
    let mut request = CallRequest::new("test.wait", json!({ "key": "k", "milliseconds": 600_000 }));
    request.request_id = "X".into();
    let requested = || Frame::from(CallEvent::Requested(Box::new(request.clone())));
    for frame in [requested(), CallEvent::Aborted { request_id: "X".into() }.into(), requested()] {
        session.receive(frame).unwrap();
    }
    eventually("the second runs", || probe.alive() == 1).await;
    assert_eq!(session.running(), 1);
    session.close();
    eventually("it is given up", || probe.alive() == 0).await;
}

/// An operation that nobody serves, and those that may be meant.
#[tokio::test]
async fn misspelt_operations() {
    let transport = InProcess::new();
    let worker = transport.serve(CallHandler::new(registry(&Arc::default())));
    let remote = transport.remote();
    let plain = "nobody serves the operation: `test.sekret`";
    let ann = || CallOptions::new().with_identity(Identity::new("ann").with_scope("vault:open"));
    let stranger = || CallOptions::new().with_identity(Identity::new("stranger"));
    for (options, message) in [
        (CallOptions::new(), format!("{plain}: did you mean `test.secret` or `test.sealed`?")),
        (ann(), format!("{plain}: did you mean `test.secret`?")),
        // What somebody may not call is not named to them.
        (stranger(), plain.to_owned()),
    ] {
        let error = remote.call_with("test.sekret", json!({}), options).await.unwrap_err();
        assert_eq!((error.code(), error.message()), (&ErrorCode::OperationNotFound, &*message));
        assert_eq!(error.details()["operationId"], "test.sekret");
    }
    let error = remote.stream("test.cuont", json!({})).await.err().unwrap();
    assert!(error.message().contains(": did you mean `test.count`"), "{error}");
    // By a type that was built for another worker.
    struct Misspelt;
    impl Operation for Misspelt {
        type Input = Value;
        type Output = Value;
        const SPEC: &'static OperationSpec = &OperationSpec::query("test.ad");
    }
    impl Call for Misspelt {}
    let error = remote.execute::<Misspelt>(json!({})).await.unwrap_err();
    assert!(error.message().contains(": did you mean `test.add`"), "{error}");
    // Nor is a caller elsewhere told what this process knows.
    let far = InProcess::new();
    let forwarding = far.serve(CallHandler::new(Registry::new()).with_forwarding(remote));
    let error = far.remote().call("test.ad", json!({})).await.unwrap_err();
    assert!(!error.message().contains("test.count"), "{error}");
    forwarding.stop().await;
    worker.stop().await;
}

/// An operation that the caller knows is not taken for a misspelt one while no worker serves it.
#[tokio::test]
async fn known_operations_that_no_worker_serves_now() {
    let transport = InProcess::new();
    let remote = transport.remote();
    let bound = Registry::new();
    bound.register_all(remote.bind([Add::SPEC, Count::SPEC]).unwrap()).unwrap();
    let worker = transport.serve(CallHandler::new(registry(&Arc::default())));
    let input = || json!({ "a": 1, "b": 2 });
    assert_eq!(remote.call("test.add", input()).await.unwrap().data, 3);
    worker.stop().await;
    for error in [
        remote.call("test.add", input()).await.unwrap_err(),
        remote.execute::<Add>(AddInput { a: 1, b: 2 }).await.unwrap_err(),
        bound.call("test.add", input()).await.unwrap_err(),
    ] {
        assert_eq!(error.message(), "no worker serves the operation now: `test.add`");
        assert_eq!(error.details(), &json!({ "operationId": "test.add", "retryable": true }));
        assert_eq!((error.code(), error.is_retryable()), (&ErrorCode::OperationNotFound, true));
    }
    let error = bound.stream("test.count", json!({ "to": 1 })).await.err().unwrap();
    assert_eq!(error.message(), "no worker serves the operation now: `test.count`");
    let error = remote.call("test.lost", json!({})).await.unwrap_err();
    assert_eq!((error.message(), error.is_retryable()), ("nobody serves the operation: `test.lost`", false));
}

/// The log of a panic says whose handler it was.
#[tokio::test]
async fn the_log_of_a_panic_names_the_operation() {
    let (log, _guard) = Log::start();
    let transport = InProcess::new();
    let worker = transport.serve(CallHandler::new(registry(&Arc::default())));
    let error = transport.remote().call("test.panics", json!({})).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::UnknownError);
    let lines = log.with("a handler panicked");
    assert!(lines.len() == 1 && lines[0].contains("operation=test.panics"), "{lines:?}");
    worker.stop().await;
}

/// A worker that ignores in whose name its callers call says so, and does not fill its log.
#[tokio::test]
async fn an_ignored_identity_is_logged_once() {
    let (log, _guard) = Log::start();
    let session = CallHandler::new(registry(&Arc::default())).session(PeerAuth::anonymous(), Arc::new(Nowhere));
    for id in ["X", "Y"] {
        let mut request = CallRequest::new("test.about", json!({}));
        (request.request_id, request.identity) = (id.into(), Some(Identity::new("ann")));
        session.receive(CallEvent::Requested(Box::new(request)).into()).unwrap();
    }
    session.drain().await;
    assert_eq!(log.with("in whose name it calls").len(), 1);
}

/// A session that drains does not wait for requests that came later.
#[tokio::test]
async fn a_session_that_drains_takes_no_more() {
    let probe = Arc::new(Probe::default());
    let session = CallHandler::new(registry(&probe)).session(PeerAuth::anonymous(), Arc::new(Nowhere));
    let request = || {
        let request = CallRequest::new("test.wait", json!({ "key": "k", "milliseconds": 600_000 }));
        (request.request_id.clone(), Frame::from(CallEvent::Requested(Box::new(request))))
    };
    let (request_id, first) = request();
    session.receive(first).unwrap();
    let draining = session.clone();
    let mut drained = std::pin::pin!(draining.drain());
    assert!(drained.as_mut().now_or_never().is_none());
    session.receive(request().1).unwrap_err();
    session.receive(CallEvent::Aborted { request_id }.into()).unwrap();
    drained.await;
    assert_eq!(session.running(), 0);
}

#[tokio::test]
async fn a_timeout_counts_from_the_first_poll() {
    let spec = OperationSpec::mutation("pets.feed").with_timeout(Duration::from_millis(300));
    let registry = Registry::new();
    registry.register(Registration::new(spec, Handler::dynamic(|input, _| async move { Ok(input) }))).unwrap();
    let transport = InProcess::new();
    let worker = transport.serve(CallHandler::new(registry));
    let remote = transport.remote();
    let call = remote.call("pets.feed", json!({ "pet": 7 }));
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(call.await.unwrap().data, json!({ "pet": 7 }));
    worker.stop().await;
}

/// Otherwise, its calls would come back to it, without end.
#[tokio::test]
async fn a_worker_does_not_serve_what_it_calls_over_its_transport() {
    let transport = InProcess::new();
    let remote = transport.remote();
    let calling = Registry::new();
    add_twice(&calling, &remote);
    let handler = CallHandler::new(calling).with_forwarding(remote.clone());
    let worker = transport.serve(handler.clone());
    assert_eq!(ids(&remote), ["test.twice"]);
    let error = remote.execute::<Twice>(TwiceInput { n: 4 }).await.unwrap_err();
    assert_eq!(error.message(), ADD_IS_NOT_SERVED);
    let adding = transport.serve(CallHandler::new(registry(&Arc::default())));
    assert_eq!(remote.execute::<Twice>(TwiceInput { n: 4 }).await.unwrap().data, 8);
    // Over another transport, it passes calls on.
    let near = InProcess::new();
    let passing = near.serve(handler);
    assert_eq!(near.remote().execute::<Add>(AddInput { a: 1, b: 2 }).await.unwrap().data, 3);
    passing.stop().await;
    adding.stop().await;
    worker.announce();
    assert_eq!(ids(&remote), ["test.twice"]);
    worker.stop().await;
}

/// Nor if the handlers of a gateway check the calls before they pass them on.
#[cfg(feature = "gateway")]
#[tokio::test]
async fn a_worker_of_a_gateway_does_not_serve_what_it_calls_over_its_transport() {
    let transport = InProcess::new();
    let remote = transport.remote();
    let mut calling = Registry::new();
    add_twice(&calling, &remote);
    // One gateway, and one behind another.
    for _ in 0..2 {
        let gateway = Gateway::builder().with_registry(calling).build().await.unwrap();
        calling = gateway.registry().clone();
        let worker = transport.serve(CallHandler::new(calling.clone()));
        assert_eq!(ids(&remote), ["test.twice"]);
        let adding = transport.serve(CallHandler::new(registry(&Arc::default())));
        assert_eq!(remote.execute::<Twice>(TwiceInput { n: 4 }).await.unwrap().data, 8);
        adding.stop().await;
        worker.stop().await;
    }
}

fn ids(remote: &Remote) -> Vec<String> {
    remote.list().iter().map(|spec| spec.id.to_string()).collect()
}

/// A registry with one operation.
fn with(spec: OperationSpec, handler: Handler) -> Registry {
    let registry = Registry::new();
    registry.register(Registration::new(spec, handler)).unwrap();
    registry
}

#[tokio::test]
async fn calls_are_forwarded_to_the_first_remote_that_serves_them() {
    let answering = |name: &'static str, answer: &'static str| {
        let handler = Handler::dynamic(move |_, _| async move { Ok(json!(answer)) });
        let transport = InProcess::new();
        let worker = transport.serve(CallHandler::new(with(OperationSpec::query(name), handler)));
        (transport.remote(), worker)
    };
    let workers = [answering("a.both", "first"), answering("a.both", "second"), answering("a.last", "third")];
    let all = workers
        .iter()
        .fold(CallHandler::new(Registry::new()), |handler, (remote, _)| handler.with_forwarding(remote.clone()));
    let transport = InProcess::new();
    let forwarding = transport.serve(all);
    let remote = transport.remote();
    assert_eq!(ids(&remote), ["a.both", "a.last"]);
    for (id, answer) in [("a.both", "first"), ("a.last", "third")] {
        assert_eq!(remote.call(id, json!({})).await.unwrap().data, answer);
    }
    forwarding.stop().await;
}

/// Two versions of a worker run, and the older one has announced its operation last.
#[tokio::test]
async fn the_first_item_of_a_subscription_is_not_the_result_of_a_call() {
    let transport = InProcess::new();
    let items = Handler::dynamic_stream(|_, _| async { Ok(stream::iter([Ok(json!("first item"))])) });
    let newer = transport.serve(CallHandler::new(with(OperationSpec::subscription("a.list"), items)));
    let all = Handler::dynamic(|_, _| async { Ok(json!("all")) });
    let older = transport.serve(CallHandler::new(with(OperationSpec::query("a.list"), all)));
    let remote = transport.remote();
    let mut answers = Vec::new();
    for _ in 0..4 {
        let answer = remote.call("a.list", json!({})).await;
        answers.push(answer.map_or_else(|error| error.message().to_owned(), |answer| answer.data.to_string()));
    }
    answers.sort();
    let refused = "`a.list` is a subscription: use `subscribe` or `stream`";
    assert_eq!(answers, ["\"all\"", "\"all\"", refused, refused]);
    newer.stop().await;
    older.stop().await;
}

#[tokio::test]
async fn the_error_that_ends_a_subscription_is_logged_once() {
    let (log, _guard) = Log::start();
    let handler = Handler::dynamic_stream(|_, _| async {
        let error = CallError::execution("HTTP 404: Not Found").with_details(json!({ "statusCode": 404 }));
        Ok(stream::iter([Err(error)]))
    });
    let handler = CallHandler::new(with(OperationSpec::subscription("a.items"), handler));
    let session = handler.session(PeerAuth::anonymous(), Arc::new(Nowhere));
    session.receive(CallEvent::Requested(Box::new(CallRequest::new("a.items", json!({})))).into()).unwrap();
    session.drain().await;
    assert_eq!(log.with("an operation was answered by an error").len(), 1);
}

/// The limit is for peers in other processes: within this one, the caller holds the memory anyway.
#[tokio::test]
async fn a_large_input_of_a_typed_call() {
    let transport = InProcess::new();
    let worker = transport.serve(CallHandler::new(registry(&Arc::default())).with_max_bytes(1_000, 1_000));
    let value = json!("x".repeat(10_000));
    let echoed = transport.remote().execute::<Echo>(EchoInput { value: value.clone() }).await.unwrap();
    assert_eq!(echoed.data, value);
    worker.stop().await;
}

/// A page, and not the JSON that is described.
#[operation(namespace = "test", http = "GET /page")]
async fn page() -> ResponseEnvelope<String> {
    ResponseEnvelope::http("<b>hi</b>".to_owned(), HttpMeta::new(200, "text/html"))
}

#[tokio::test]
async fn a_function_with_a_content_type_of_its_own() {
    let registry = Registry::new();
    registry.register(Page).unwrap();
    let transport = InProcess::new();
    let worker = transport.serve(CallHandler::new(registry));
    let remote = transport.remote();
    assert_eq!(remote.call("test.page", json!({})).await.unwrap().data, "<b>hi</b>");
    assert_eq!(remote.execute::<Page>(PageInput {}).await.unwrap().data, "<b>hi</b>");
    worker.stop().await;
}
