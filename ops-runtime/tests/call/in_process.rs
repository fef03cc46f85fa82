//! The suite within the process.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use ops_runtime::access::Identity;
use ops_runtime::adapter::{BoxFuture, Endpoint, Handler, Payload, Registration};
use ops_runtime::binding::HttpBinding;
use ops_runtime::call::{
    CallEvent, CallHandler, CallRequest, Frame, InProcess, InProcessWorker, Link, PeerAuth, Remote, Unsent,
};
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{Call, CallError, CallOptions, Context, ErrorCode, Operation, Registry, ResponseEnvelope};
use serde_json::{Value, json};

use crate::harness::{Harness, Working, eventually};
use crate::log::Log;
use crate::operations::{Add, AddInput, Count, Probe, registry};

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
