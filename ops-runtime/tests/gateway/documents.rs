//! Documents from the network: what they may say about themselves.

use axum::routing::get;
use axum::{Json, Router};
use ops_runtime::Registry;
use ops_runtime::gateway::{Gateway, GatewayBuilder, Tools};
use ops_runtime::http::{Auth, HttpConfig};
use ops_runtime::mcp::{McpConfig, McpServerConfig};
use ops_runtime::spec::OperationSpec;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The URL of a document with that title, whose operation is on that server.
async fn document(title: &str, server: Option<&str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = format!("http://{}", listener.local_addr().unwrap());
    let answers = json!({ "200": { "description": "A pet.", "content": { "application/json": { "schema": {} } } } });
    let document: Value = json!({
        "openapi": "3.1.0",
        "info": { "title": title, "version": "1" },
        "servers": [{ "url": server.unwrap_or(&own) }],
        "paths": { "/pet": { "get": { "operationId": "showPet", "responses": answers } } },
    });
    let app = Router::new().route("/openapi.json", get(move || async move { Json(document) }));
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("{own}/openapi.json")
}

/// What is served, and what is told of the documents that are not.
async fn built(builder: GatewayBuilder) -> (Vec<String>, Vec<String>) {
    let gateway = builder.with_tools(Tools::Search).build().await.unwrap();
    let served = gateway.registry().list().iter().map(|spec| spec.id.to_string()).collect();
    (served, gateway.failures().iter().map(|(_, error)| error.message().to_owned()).collect())
}

#[tokio::test]
async fn a_document_takes_the_namespace_of_no_other() {
    let (first, second) = (document("Git Hub", None).await, document("Git Hub", None).await);
    let named = HttpConfig::new().with_namespace("git_hub");
    let builder = Gateway::builder().with_document(&first, named).with_document(&second, HttpConfig::new());
    let (served, told) = built(builder).await;
    assert_eq!(served, ["git_hub.showPet"]);
    assert_eq!(told, ["it calls itself `git_hub`, and so does another document or server: give it a namespace"]);
    // A namespace has no dots, whatever a configuration says.
    let dotted = HttpConfig::new().with_namespace("Git.Hub");
    let builder = Gateway::builder().with_document(&first, dotted).with_document(&second, HttpConfig::new());
    let (served, told) = built(builder).await;
    assert_eq!((served, told.len()), (vec!["Git_Hub.showPet".to_owned()], 1), "{told:?}");
    let gone = McpServerConfig::stdio("/no/such/server", ["x"]);
    for (name, server) in [("git.hub", gone.clone()), ("other", gone.with_namespace("git.hub"))] {
        let builder = Gateway::builder().with_mcp_servers(McpConfig::new().with_server(name, server));
        let (served, told) = built(builder.with_document(&second, HttpConfig::new())).await;
        assert!(
            served.is_empty() && told.iter().any(|told| told.starts_with("it calls itself")),
            "{served:?} {told:?}"
        );
    }
    // Neither says what it is called: the first that does has the name.
    let builder = Gateway::builder().with_document(&first, HttpConfig::new()).with_document(&second, HttpConfig::new());
    let (served, told) = built(builder).await;
    assert_eq!((served.len(), told.len()), (1, 1), "{told:?}");
    let other = HttpConfig::new().with_namespace("other");
    let builder = Gateway::builder().with_document(&first, HttpConfig::new()).with_document(&second, other);
    assert_eq!(built(builder).await, (vec!["git_hub.showPet".to_owned(), "other.showPet".to_owned()], vec![]));
}

#[tokio::test]
async fn a_document_takes_no_namespace_of_the_program() {
    let registry = Registry::new();
    registry.register_spec(OperationSpec::query("billing.total")).unwrap();
    let document = document("Billing", None).await;
    let (served, told) =
        built(Gateway::builder().with_registry(registry).with_document(&document, HttpConfig::new())).await;
    assert_eq!((served, told.len()), (vec!["billing.total".to_owned()], 1));
}

#[tokio::test]
async fn a_document_does_not_say_where_credentials_go() {
    let abroad = document("Shop", Some("https://elsewhere.test/v1")).await;
    let with = |config: HttpConfig| built(Gateway::builder().with_document(&abroad, config));
    for config in [
        HttpConfig::new().with_auth(Auth::bearer("t")),
        HttpConfig::new().with_credentials("key", Auth::secret("k")),
        HttpConfig::new().with_header("X-Key", "k"),
    ] {
        let (served, told) = with(config.clone()).await;
        assert_eq!((served.len(), told.len()), (0, 1), "{served:?}");
        assert!(told[0].contains("to `https://elsewhere.test/v1`, which is another host than its own"), "{told:?}");
        assert_eq!(with(config.with_base_url("https://elsewhere.test")).await.1, Vec::<String>::new());
    }
    assert_eq!(with(HttpConfig::new()).await, (vec!["shop.showPet".to_owned()], vec![]));
    // What looks like the document's own host before its variables are filled in.
    let listener = document("Shop", None).await;
    let own = listener.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/openapi.json")).unwrap();
    for server in [format!("http://{{x}}@{own}/"), format!("http://user@{own}/"), "http://{host}/".to_owned()] {
        let disguised = document("Shop", Some(&server)).await;
        let config = HttpConfig::new().with_auth(Auth::bearer("t"));
        let (served, told) = built(Gateway::builder().with_document(&disguised, config)).await;
        assert_eq!((served.len(), told.len()), (0, 1), "{server}: {served:?}");
    }
    let home = document("Shop", None).await;
    let own = Gateway::builder().with_document(&home, HttpConfig::new().with_auth(Auth::bearer("t")));
    assert_eq!(built(own).await, (vec!["shop.showPet".to_owned()], vec![]));
}

#[tokio::test]
async fn the_tools_of_a_mock_server_are_listed_and_not_called() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/mcp/faulty.py");
    let servers = McpConfig::new()
        .with_server("faulty", McpServerConfig::stdio("python3", ["-S", script]))
        .with_server("gone", McpServerConfig::stdio("/no/such/server", ["x"]));
    let gateway = Gateway::builder().with_mock_mcp_servers(servers).with_tools(Tools::Search).build().await.unwrap();
    assert_eq!(gateway.failures().iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["gone"]);
    // The server would exit.
    gateway.registry().call("faulty.exit", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_server_has_the_namespace_of_no_other() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/mcp/faulty.py");
    let server = || McpServerConfig::stdio("python3", ["-S", script]);
    let shop = document("Shop", None).await;
    let servers = McpConfig::new()
        .with_server("my.shop", server())
        .with_server("tools.a", server())
        .with_server("tools_a", server())
        .with_server("other", server().with_namespace("TOOLS_A"));
    let gateway = Gateway::builder()
        .with_document(&shop, HttpConfig::new().with_namespace("my_shop"))
        .with_mcp_servers(servers)
        .with_tools(Tools::Search);
    let gateway = gateway.build().await.unwrap();
    let told = |namespace: &str, owner: &str| {
        format!(
            "its namespace `{namespace}` is also that of {owner}, and rules for one would hold for both: give one another name"
        )
    };
    let failures: Vec<_> =
        gateway.failures().iter().map(|(name, error)| (name.as_str(), error.message().to_owned())).collect();
    assert_eq!(
        failures,
        [
            ("my.shop", told("my_shop", &format!("the document `{shop}`"))),
            ("tools.a", told("tools_a", "the server `other`")),
            ("tools_a", told("tools_a", "the server `other`")),
        ]
    );
    let specs = gateway.registry().list();
    assert_eq!(specs.iter().filter(|spec| spec.namespace() == "my_shop").count(), 1);
    assert!(specs.iter().all(|spec| ["my_shop", "TOOLS_A"].contains(&spec.namespace())));
}

#[tokio::test]
async fn a_call_of_a_tool_in_a_snapshot_says_what_to_configure() {
    let snapshot = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/mcp/tools/warehouse.json");
    let gateway = Gateway::builder().with_document(snapshot, HttpConfig::new()).with_tools(Tools::Search);
    let gateway = gateway.build().await.unwrap();
    let error = gateway.registry().call("warehouse.count", json!({})).await.unwrap_err();
    assert_eq!(error.code().as_str(), "NOT_CONNECTED");
    assert!(error.message().starts_with("`warehouse.count` can't be called: only a snapshot"), "{error}");
    assert!(error.message().contains("Configure the server itself"), "{error}");
}
