//! The suite within the process.

use ops_runtime::access::Identity;
use ops_runtime::adapter::{BoxFuture, Endpoint, Handler, Payload, Registration};
use ops_runtime::binding::HttpBinding;
use ops_runtime::call::{CallHandler, InProcess, Remote, Worker};
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{Call, CallError, Context, ErrorCode, Operation, Registry, ResponseEnvelope};
use serde_json::{Value, json};

use crate::harness::{Harness, Working};

pub(crate) struct InProcessHarness(InProcess);

impl Harness for InProcessHarness {
    const NAME: &'static str = "in-process";

    type Worker = Worker;

    async fn start() -> Self {
        Self(InProcess::new())
    }

    async fn worker(&self, handler: CallHandler) -> Worker {
        self.0.serve(handler)
    }

    async fn caller(&self) -> Remote {
        self.0.remote()
    }

    fn identity_of(claimed: Option<Identity>) -> Option<Identity> {
        claimed
    }
}

impl Working for Worker {
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
