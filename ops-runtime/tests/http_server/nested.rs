//! Calls of functions and routes that are refused or end too early: clients see the code, and the log has the text.

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use ops_runtime::access::{AccessControl, Identity};
use ops_runtime::adapter::{BoxFuture, Endpoint, Handler, Payload, Registration};
use ops_runtime::call::{CallHandler, InProcess};
use ops_runtime::serve::{BearerTokens, HttpServer};
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{CallError, CallOptions, Caller, Context, Operation, Registry, ResponseEnvelope, operation};
use serde_json::{Value, json};

use crate::fixture::{Answer, serve};

/// A function that calls for its caller, with an identity of its own, or with that of its caller, here or in another registry.
#[operation(namespace = "ward", http = "GET /bills/{how}/{call}")]
async fn bill(context: &Context, how: String, call: String) -> Result<String, CallError> {
    let till = Identity::new("till");
    let other = Registry::new();
    other.register_all(ledger())?;
    let identity = match how.as_str() {
        "own" | "through" | "deep" => Some(till.clone()),
        "given" => context.identity().cloned(),
        _ => None,
    };
    let options = identity.into_iter().fold(CallOptions::new(), CallOptions::with_identity);
    let called = match how.as_str() {
        "through" => context.through(&other).call_with(&call, Value::Null, options).await,
        // The function that is called goes on with the identity that it gets.
        "deep" => context.env().call_with("ward.bill", json!({ "how": "given", "call": call }), options).await,
        "scoped" => context.through(&other.scoped(till)).call(&call, Value::Null).await,
        "scoped_to_caller" => {
            let caller = context.identity().cloned().unwrap_or_default();
            context.through(&other.scoped(caller)).call(&call, Value::Null).await
        }
        _ => context.env().call_with(&call, Value::Null, options).await,
    };
    Ok(called?.data.to_string())
}

fn gone(message: &'static str) -> CallError {
    CallError::new("ABORTED", message).with_details(json!({ "retryable": true }))
}

/// An operation of another server that fails, with words for the operator.
struct Failing(CallError);

impl Endpoint for Failing {
    fn call(
        &self,
        _: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let error = self.0.clone();
        Box::pin(async move { Err(error) })
    }
}

/// An operation that not everybody may call, and operations that fail.
fn ledger() -> Vec<Registration> {
    let spec = |name| OperationSpec::new(OperationKind::Mutation, "ledger", name).unwrap();
    let failing = |name, error: CallError| {
        let fail = move |_: Value, _| std::future::ready(Err::<Value, _>(error.clone()));
        Registration::new(spec(name), Handler::dynamic(fail))
    };
    let mut post = spec("post");
    post.access = AccessControl::NONE.with_scopes(&["secret:write"]);
    let late = || CallError::new("TIMEOUT", "secret.example did not answer within 30s");
    vec![
        Registration::new(post, Handler::dynamic(|_: Value, _| async { Ok(json!(1)) })),
        failing("mine", CallError::new("ACCESS_DENIED", "you may not read the secret")),
        failing("slow", late()),
        failing("gone", gone("no way to secret.example")),
        failing("shard", gone("shard 3 restarts at 12:00")),
        Registration::new(spec("far_slow"), Handler::endpoint(Failing(late().with_details(json!({ "timeout": 30 }))))),
        Registration::new(spec("far_gone"), Handler::endpoint(Failing(gone("no way to secret.example")))),
    ]
}

fn registry() -> Registry {
    let registry = Registry::new();
    registry.register(Bill).unwrap();
    registry.register_all(ledger()).unwrap();
    registry
}

/// A failure with this status, code and details, whose text says only this.
fn expect(answer: &Answer, path: &str, (status, code, what, details): (u16, &str, &str, &Value)) {
    assert_eq!(answer.status, status, "{path}: {answer:?}");
    let problem = answer.problem();
    assert_eq!((&problem["code"], &problem["details"]), (&json!(code), details), "{path}");
    let request = problem["request"].as_str().unwrap();
    let told = format!("the operation {what}; the server's log says more of request {request}");
    assert_eq!(problem["detail"], told, "{path}");
}

const FAILED: (u16, &str, &str, &Value) = (500, "EXECUTION_ERROR", "failed", &Value::Null);
const DENIED: (u16, &str, &str, &Value) = (403, "ACCESS_DENIED", "is not allowed", &Value::Null);
const LATE: (u16, &str, &str, &Value) = (504, "TIMEOUT", "did not end in time", &Value::Null);

#[tokio::test]
async fn why_a_call_of_a_function_fails_is_only_logged() {
    let front = Registry::new();
    let transport = InProcess::new();
    let _worker = transport.serve(CallHandler::new(registry()));
    front.register_all(transport.remote().bind([Bill::SPEC]).unwrap()).unwrap();
    let retryable = json!({ "retryable": true });
    let interrupted = (503, "ABORTED", "was interrupted, or is not available now", &retryable);
    // The function is in the registry that is served, or in another one of the process.
    for registry in [registry(), front] {
        let tokens = BearerTokens::new().with_token("t", Identity::new("bob"));
        let server = serve(HttpServer::new(registry).with_authenticator(tokens)).await;
        for (path, told) in [
            // Not the caller is refused.
            ("/bills/own/ledger.post", FAILED),
            ("/bills/through/ledger.post", FAILED),
            ("/bills/scoped/ledger.post", FAILED),
            ("/bills/deep/ledger.post", FAILED),
            ("/bills/given/ledger.post", DENIED),
            ("/bills/scoped_to_caller/ledger.post", DENIED),
            // The function that was called has refused the caller.
            ("/bills/none/ledger.mine", DENIED),
            // It may know more of the identity than access rules do.
            ("/bills/own/ledger.mine", DENIED),
            ("/bills/none/ledger.slow", LATE),
            ("/bills/none/ledger.gone", interrupted),
            ("/bills/none/ledger.far_slow", LATE),
        ] {
            let answer = server.send(&format!("GET {path}"), &["authorization: Bearer t"], "").await;
            expect(&answer, path, told);
        }
    }
}

/// What a function says of its own end is for its callers. Of an operation of another server, it is the words of others.
#[tokio::test]
async fn where_an_operation_was_interrupted_is_only_logged() {
    let server = serve(HttpServer::new(registry())).await;
    let retryable = json!({ "retryable": true });
    let interrupted = (503, "ABORTED", "was interrupted, or is not available now", &retryable);
    for (path, told) in [("/operations/ledger/far_slow", LATE), ("/operations/ledger/far_gone", interrupted)] {
        expect(&server.post(path, "{}").await, path, told);
    }
    let own = server.post("/operations/ledger/shard", "{}").await;
    let problem = own.problem();
    let told = (own.status, &problem["code"], &problem["detail"], &problem["details"]);
    assert_eq!(told, (503, &json!("ABORTED"), &json!("shard 3 restarts at 12:00"), &retryable));
}

#[tokio::test]
async fn a_route_is_refused_as_its_client_is() {
    async fn route(State(own): State<Registry>, Path(id): Path<String>) -> Result<String, CallError> {
        let input = match id.as_str() {
            "ward.bill" => json!({ "how": "own", "call": "ledger.post" }),
            _ => Value::Null,
        };
        Ok(own.scoped(Identity::new("bob")).call(&id, input).await?.data.to_string())
    }
    let routes = Router::new().route("/routes/{id}", get(route)).with_state(registry());
    let server = serve(HttpServer::new(Registry::new()).with_routes(routes)).await;
    for (path, told) in [
        // The route has called it for its client.
        ("/routes/ledger.post", DENIED),
        // And the function with an identity of its own.
        ("/routes/ward.bill", FAILED),
    ] {
        expect(&server.get(path).await, path, told);
    }
}
