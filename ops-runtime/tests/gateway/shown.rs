//! What a model sees of a failed call: the same by every kind of tools.

use std::time::Duration;

use ops_runtime::adapter::{BoxFuture, Endpoint, Handler, Payload, Registration};
use ops_runtime::gateway::{Gateway, Tools};
use ops_runtime::http::error_of;
use ops_runtime::mcp::McpServerOptions;
use ops_runtime::spec::{ErrorDefinition, OperationSpec};
use ops_runtime::{CallError, Context, ResponseEnvelope};
use serde_json::{Value, json};

use crate::client::{Client, REVISIONS};
use crate::fixture::{Shop, owner, text};

static COUNT: OperationSpec = OperationSpec::query("shop.count");
static BILL: OperationSpec = OperationSpec::query("shop.bill").with_errors(
    const {
        &[
            ErrorDefinition::new("SOLD"),
            ErrorDefinition::new("HTTP_403"),
            ErrorDefinition::new("HTTP_4XX"),
            ErrorDefinition::new("HTTP_ERROR"),
        ]
    },
);
static LEND: OperationSpec =
    OperationSpec::query("shop.lend").with_errors(const { &[ErrorDefinition::new("HTTP_403")] });

/// A shop whose operations fail as their input says.
fn shop() -> Shop {
    let shop = Shop::new();
    let fail = |input: Value, _: Context| async move {
        Err::<Value, _>(match input["status"].as_u64() {
            Some(status) => error_of(u16::try_from(status).unwrap(), json!({ "message": "not yours" }))
                .with_header("X-Internal-Host", "db01"),
            None if input["sold"] == true => CallError::new("SOLD", "it is sold"),
            None => CallError::execution("the password is hunter22"),
        })
    };
    let all = [&COUNT, &BILL, &LEND].map(|spec| Registration::new(spec, Handler::dynamic(fail)));
    shop.registry.register_all(all).unwrap();
    shop
}

/// All kinds of tools.
const KINDS: &[Tools] = &[
    Tools::All,
    Tools::Search,
    #[cfg(feature = "program")]
    Tools::Code,
];

/// The result of a call that fails, for the owner.
async fn failed(gateway: &Gateway, tools: Tools, id: &str, input: &Value) -> Value {
    let (tool, arguments) = match tools {
        Tools::All => (id.replace('.', "_"), input.clone()),
        Tools::Search => ("call".to_owned(), json!({ "id": id, "input": input })),
        _ => ("execute".to_owned(), json!({ "code": format!("return await ops.{id}({input})") })),
    };
    let result = owner(gateway).await.call(&tool, arguments).await;
    assert_eq!(result["isError"], true, "{tools:?} {id} {input}: {result}");
    result
}

#[tokio::test]
async fn a_failure_without_a_code_is_shown_by_no_tools_unless_it_is_asked_for() {
    for &tools in KINDS {
        for is_exposed in [false, true] {
            let options = McpServerOptions::default();
            let options = if is_exposed { options.with_exposed_errors() } else { options };
            let gateway = shop().gateway().with_tools(tools).with_options(options).build().await.unwrap();
            let told = failed(&gateway, tools, "shop.count", &json!({})).await.to_string();
            assert_eq!(told.contains("hunter22"), is_exposed, "{tools:?}: {told}");
            assert_eq!(told.contains("the server's log says more of request "), !is_exposed, "{tools:?}: {told}");
        }
    }
}

#[tokio::test]
async fn of_an_error_response_only_what_is_declared_is_shown() {
    for &tools in KINDS {
        let gateway = shop().gateway().with_tools(tools).build().await.unwrap();
        for (id, status, is_declared) in [
            ("shop.count", 403, false),
            ("shop.lend", 403, true),
            ("shop.lend", 409, false),
            ("shop.bill", 403, true),
            // By its class, and as any error.
            ("shop.bill", 409, true),
            ("shop.bill", 503, true),
        ] {
            let told = failed(&gateway, tools, id, &json!({ "status": status })).await.to_string();
            assert!(told.contains(&format!("HTTP {status}: ")), "{tools:?} {id} {status}: {told}");
            assert_eq!(told.contains("not yours"), is_declared, "{tools:?} {id} {status}: {told}");
            assert!(!told.contains("db01"), "{tools:?} {id} {status}: {told}");
        }
    }
}

/// A program can still act on them.
#[cfg(feature = "program")]
#[tokio::test]
async fn a_program_catches_declared_errors_with_their_details() {
    let gateway = shop().gateway().with_tools(Tools::Code).build().await.unwrap();
    let mut client = owner(&gateway).await;
    for (id, input, expected) in [
        ("shop.bill", json!({ "sold": true }), json!(["SOLD", "it is sold", null])),
        (
            "shop.bill",
            json!({ "status": 403 }),
            json!([
                "EXECUTION_ERROR",
                "HTTP 403: Forbidden: not yours",
                { "statusCode": 403, "body": { "message": "not yours" } },
            ]),
        ),
        (
            "shop.count",
            json!({ "status": 404 }),
            json!(["EXECUTION_ERROR", "HTTP 404: Not Found", { "statusCode": 404 }]),
        ),
    ] {
        let code =
            format!("try {{ await ops.{id}({input}) }} catch (e) {{ return [e.code, e.message, e.details ?? null] }}");
        let done = client.call("execute", json!({ "code": code })).await;
        let caught: Value = serde_json::from_str(done["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(caught, expected, "{done}");
    }
}

#[tokio::test]
async fn a_failed_call_has_its_code_for_programs_by_both_kinds_of_tools() {
    for tools in [Tools::All, Tools::Search] {
        let gateway = shop().gateway().with_tools(tools).build().await.unwrap();
        for (id, input, code) in [
            ("shop.bill", json!({ "sold": true }), "SOLD"),
            ("shop.count", json!({ "status": 404 }), "EXECUTION_ERROR"),
            ("shop.showPet", json!({ "petId": "x" }), "VALIDATION_ERROR"),
        ] {
            let result = failed(&gateway, tools, id, &input).await;
            assert_eq!(result["_meta"]["ops/error"]["code"], code, "{tools:?} {id}: {result}");
        }
    }
    let gateway = shop().gateway().with_approval_by_client_only().build().await.unwrap();
    for (id, code) in [("shop.none", "OPERATION_NOT_FOUND"), ("shop.renamePet", "APPROVAL_NEEDED")] {
        let result = failed(&gateway, Tools::Search, id, &json!({ "petId": 7, "name": "Max" })).await;
        assert_eq!(result["_meta"]["ops/error"]["code"], code, "{result}");
    }
}

/// A server that never answers.
struct Silent;

impl Endpoint for Silent {
    fn call(
        &self,
        _: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        Box::pin(std::future::pending())
    }
}

/// The words of this process are no secret of another server, and a call that was not made must not look like one that was.
#[tokio::test]
async fn why_this_process_ends_a_call_of_another_server_is_shown() {
    static SELL: OperationSpec = OperationSpec::mutation("far.sell");
    static FIND: OperationSpec = OperationSpec::query("far.find").with_timeout(Duration::from_millis(20));
    let shop = Shop::new();
    shop.registry.register_all([&SELL, &FIND].map(|spec| Registration::new(spec, Handler::endpoint(Silent)))).unwrap();
    let options = McpServerOptions::default().with_ask_timeout(Duration::from_millis(50));
    let gateway = shop.gateway().with_tools(Tools::All).with_options(options).build().await.unwrap();
    let form = json!({ "elicitation": {} });
    let mut client = Client::connect_with(gateway.owned_mcp_server(), REVISIONS[0], form).await;
    for (tool, told) in [
        ("far_sell", "TIMEOUT: the client did not answer within 50ms (`ask_timeout`)"),
        ("far_find", "TIMEOUT: the deadline passed before the operation was done"),
    ] {
        let result = client.call(tool, json!({})).await;
        assert_eq!((text(&result), &result["isError"]), (told, &json!(true)), "{result}");
    }
}
