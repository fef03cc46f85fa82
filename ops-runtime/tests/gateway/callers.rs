//! Who may find and call what, and how often.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use ops_runtime::access::Identity;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::gateway::{CallerLimits, Gateway, Rate, Tools};
use ops_runtime::mcp::McpService;
use ops_runtime::spec::OperationSpec;
use ops_runtime::{CallError, Context};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tower_service::Service;

use crate::approval::{asked, key, rename};
use crate::client::{Client, REVISIONS};
use crate::fixture::{Shop, owner, text, texts};

#[tokio::test]
async fn a_caller_finds_what_it_may_call() {
    let shop = Shop::new();
    for (identity, sees) in [(Identity::new("ann").with_scope("books:read"), true), (Identity::new("bob"), false)] {
        let gateway = shop.gateway().with_identity(identity).build().await.unwrap();
        let mut client = Client::connect(gateway.owned_mcp_server(), REVISIONS[0]).await;
        let found = client.call("search", json!({ "query": "add up what was sold" })).await;
        assert_eq!(text(&found).contains("books.total"), sees, "{found}");
        let described = client.call("describe", json!({ "id": "books.total" })).await;
        assert_eq!(described["isError"], json!(!sees), "{described}");
        let called = client.call("call", json!({ "id": "books.total" })).await;
        assert_eq!(text(&called) == "1200", sees, "{called}");
        assert!(!text(&called).contains("Adds up"), "{called}");
    }
}

#[tokio::test]
async fn a_caller_has_limits() {
    let limits = CallerLimits::new().with_rate(Rate::new(2, Duration::from_secs(60)));
    let gateway = Shop::new().gateway().with_limits(limits).build().await.unwrap();
    let mut client = owner(&gateway).await;
    let show = json!({ "id": "shop.showPet", "input": { "petId": 7 } });
    for told in ["{\"id\":7", "{\"id\":7", "TOO_MANY_REQUESTS"] {
        let result = client.call("call", show.clone()).await;
        assert!(texts(&result)[0].starts_with(told), "{told}: {result}");
    }
    // Looking counts, too: it is work over all operations.
    for (tool, arguments) in [("search", json!({ "query": "pet" })), ("describe", json!({ "id": "shop.showPet" }))] {
        let refused = client.call(tool, arguments).await;
        assert!(refused["isError"] == true && texts(&refused)[0].contains("TOO_MANY_REQUESTS"), "{tool}: {refused}");
    }
}

/// A kept result may be large, and each part of it is looked for from its start.
#[tokio::test]
async fn reading_on_has_limits() {
    let limits = CallerLimits::new().with_rate(Rate::new(2, Duration::from_secs(60)));
    for tools in [Tools::Search, Tools::Code] {
        let gateway = Shop::new().gateway().with_tools(tools).with_limits(limits.clone()).build().await.unwrap();
        let mut client = owner(&gateway).await;
        let (tool, arguments) = match tools {
            Tools::Code => ("execute", json!({ "read": { "cursor": "x" } })),
            _ => ("call", json!({ "id": "results.read", "input": { "cursor": "x" } })),
        };
        for told in ["VALIDATION_ERROR", "VALIDATION_ERROR", "TOO_MANY_REQUESTS"] {
            let result = client.call(tool, arguments.clone()).await;
            assert!(texts(&result)[0].contains(told), "{tool}: {told}: {result}");
        }
    }
}

/// What is said of an unknown id is a search over all operations. The help for a refused input is not, and it is there
/// whatever the caller has called before.
#[tokio::test]
async fn mistaken_calls_have_limits() {
    let limits = CallerLimits::new().with_rate(Rate::new(2, Duration::from_secs(60)));
    let gateway = Shop::new().gateway().with_limits(limits).build().await.unwrap();
    let mut client = owner(&gateway).await;
    let right = json!({ "id": "shop.showPet", "input": { "petId": 7 } });
    let wrong = json!({ "id": "shop.showPet", "input": { "petId": "seven" } });
    let unknown = json!({ "id": "shop.showPets" });
    for (arguments, told, is_error) in [
        (&wrong, "VALIDATION_ERROR: the input of `shop.showPet` is invalid\n- /petId: expected integer\n\n", true),
        (&wrong, "An input that fits: {", true),
        (&right, "Rex", false),
        (&unknown, "There is no operation `shop.showPets`", true),
        (&unknown, "TOO_MANY_REQUESTS", true),
        (&wrong, "An input that fits: {", true),
        (&right, "TOO_MANY_REQUESTS", true),
    ] {
        let result = client.call("call", arguments.clone()).await;
        assert!(texts(&result)[0].contains(told) && result["isError"] == is_error, "{told}: {result}");
    }
}

/// Calls a tool over HTTP without authentication, and gives the body of the response.
pub(crate) async fn without_authentication(service: &mut McpService, tool: &str, arguments: Value) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": REVISIONS[1],
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = Request::post("/mcp")
        .header("host", "localhost:8000")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", REVISIONS[1])
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool);
    let response = service.call(request.body(Body::from(message.to_string())).unwrap()).await.unwrap();
    let body = axum::body::to_bytes(Body::new(response.into_body()), 1 << 20).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn nobody_over_http_is_the_caller_over_a_pipe() {
    let ann = Identity::new("ann").with_scope("books:read");
    let gateway = Shop::new().gateway().with_identity(ann).build().await.unwrap();
    let mut service = gateway.mcp_service();
    let show = json!({ "id": "shop.showPet", "input": { "petId": 7 } });
    let shown = without_authentication(&mut service, "call", show).await;
    assert!(shown.contains("Rex"), "{shown}");
    let refused = without_authentication(&mut service, "call", json!({ "id": "books.total" })).await;
    assert!(refused.contains("There is no operation `books.total`") && !refused.contains("1200"), "{refused}");
    let mut client = Client::connect(gateway.owned_mcp_server(), REVISIONS[0]).await;
    assert_eq!(text(&client.call("call", json!({ "id": "books.total" })).await), "1200");
}

/// Makes a call, and agrees when the user is asked. Returns the id of the request whose response has the result.
async fn agreeing(client: &mut Client, revision: &str) -> u64 {
    if revision == REVISIONS[0] {
        let id = client.send("tools/call", json!({ "name": "call", "arguments": rename() })).await;
        let question = client.receive().await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        client.respond(&question["id"], json!({ "action": "accept" })).await;
        return id;
    }
    let question = client.request("tools/call", asked(rename(), json!({}))).await["result"].clone();
    assert_eq!(question["resultType"], "input_required", "{question}");
    let key = question["inputRequests"].as_object().unwrap().keys().next().unwrap();
    let answers = json!({ key: { "action": "accept" } });
    let more = json!({ "requestState": question["requestState"], "inputResponses": answers });
    client.send("tools/call", asked(rename(), more)).await
}

/// Makes a call, agrees, and returns the result.
async fn agreed(client: &mut Client, revision: &str) -> Value {
    let id = agreeing(client, revision).await;
    client.answer(id).await["result"].clone()
}

/// A gateway that lets one call run at a time, and a call that takes this one slot.
struct Busy {
    shop: Shop,
    gateway: Gateway,
    client: Client,
    id: u64,
    end: Arc<Semaphore>,
}

impl Busy {
    /// Other calls wait for the slot for `max_wait` at most.
    async fn new(max_wait: Duration) -> Self {
        static WAIT: OperationSpec = OperationSpec::query("shop.wait");
        let shop = Shop::new();
        let (begun, end) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (tells, awaits) = (begun.clone(), end.clone());
        let wait = move |_: Value, _: Context| {
            let (begun, end) = (tells.clone(), awaits.clone());
            async move {
                begun.add_permits(1);
                drop(end.acquire().await);
                Ok::<_, CallError>(json!("waited"))
            }
        };
        shop.registry.register(Registration::new(&WAIT, Handler::dynamic(wait))).unwrap();
        let limits = CallerLimits::new().with_max_in_flight(1).with_max_waiting(10, max_wait);
        let gateway = shop.gateway().with_limits(limits).build().await.unwrap();
        let mut client = owner(&gateway).await;
        let id = client.send("tools/call", json!({ "name": "call", "arguments": { "id": "shop.wait" } })).await;
        begun.acquire().await.unwrap().forget();
        Self { shop, gateway, client, id, end }
    }

    /// A client that can ask its user.
    async fn asking(&self, revision: &'static str) -> Client {
        let form = json!({ "elicitation": {} });
        Client::connect_with(self.gateway.owned_mcp_server(), revision, form).await
    }

    /// Ends the call, so that the slot is free.
    async fn end(&mut self) {
        self.end.add_permits(1);
        self.client.answer(self.id).await;
    }
}

#[tokio::test]
async fn a_yes_is_kept_if_no_other_call_ended_in_time() {
    for revision in REVISIONS {
        let mut busy = Busy::new(Duration::from_millis(50)).await;
        let mut client = busy.asking(revision).await;
        let full = agreed(&mut client, revision).await;
        assert!(texts(&full)[0].starts_with("TOO_MANY_REQUESTS: "), "{revision}: {full}");
        // Until the call is made, the user is not asked again.
        let full = client.call("call", rename()).await;
        assert!(texts(&full)[0].starts_with("TOO_MANY_REQUESTS: "), "{revision}: {full}");
        assert_eq!(busy.shop.renamed(), 0, "{revision}");
        busy.end().await;
        let done = client.call("call", rename()).await;
        assert_eq!((text(&done), busy.shop.renamed()), (r#"{"renamed":"Max"}"#, 1), "{revision}: {done}");
        // The yes counts for one call: now the user is asked again.
        let done = agreed(&mut client, revision).await;
        assert_eq!((text(&done), busy.shop.renamed()), (r#"{"renamed":"Max"}"#, 2), "{revision}: {done}");
    }
}

/// Cancels a call that waits for a slot.
async fn cancel(client: &mut Client, id: u64) {
    // After the response to the first request, the call waits. After the response to the second one, it is dropped.
    client.request("tools/list", json!({})).await;
    client.notify("notifications/cancelled", json!({ "requestId": id })).await;
    client.request("tools/list", json!({})).await;
}

#[tokio::test]
async fn a_yes_to_a_call_that_is_cancelled_is_withdrawn() {
    for revision in REVISIONS {
        let mut busy = Busy::new(Duration::from_secs(60)).await;
        let mut client = busy.asking(revision).await;
        let id = agreeing(&mut client, revision).await;
        cancel(&mut client, id).await;
        busy.end().await;
        assert_eq!(busy.shop.renamed(), 0, "{revision}");
        // The user is asked again.
        let done = agreed(&mut client, revision).await;
        assert_eq!((text(&done), busy.shop.renamed()), (r#"{"renamed":"Max"}"#, 1), "{revision}: {done}");
    }
    // The same holds if the model reports that the user agreed.
    let mut busy = Busy::new(Duration::from_secs(60)).await;
    let mut client = owner(&busy.gateway).await;
    let mut approved = rename();
    approved["approval"] = json!(key(&client.call("call", rename()).await));
    let id = client.send("tools/call", json!({ "name": "call", "arguments": approved })).await;
    cancel(&mut client, id).await;
    busy.end().await;
    let refused = client.call("call", approved).await;
    assert!(text(&refused).starts_with("The approval is not one of"), "{refused}");
    assert_eq!(busy.shop.renamed(), 0);
}
