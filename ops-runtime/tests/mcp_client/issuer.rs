//! The authorization server that a program names: no other gets the code and the client's secret.

use std::sync::{Arc, Mutex};

use ops_runtime::CallError;
use ops_runtime::http::Secret;
use ops_runtime::mcp::{McpClient, McpOAuth, McpServerConfig};
use serde_json::{Value, json};

use crate::oauth::{Drawer, Server};
use crate::peers::connect;

/// A program with a secret, whose user agrees, and the pages that the user was sent to.
fn program(store: &Drawer) -> (McpOAuth, Arc<Mutex<Vec<String>>>) {
    let pages: Arc<Mutex<Vec<String>>> = Arc::default();
    let visited = pages.clone();
    let oauth = McpOAuth::new("http://127.0.0.1:1/callback")
        .with_client("us", Some(Secret::from("cl1ent-s3cret")))
        .with_store(store.clone())
        .with_prompt(move |url| {
            let mut url = url::Url::parse(&url).unwrap();
            let state = url.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
            url.set_query(None);
            visited.lock().unwrap().push(url.into());
            async move { Ok(format!("http://127.0.0.1:1/callback?code=c0de&state={state}")) }
        });
    (oauth, pages)
}

fn config(server: &Server, oauth: McpOAuth) -> McpServerConfig {
    McpServerConfig::http(format!("{}/mcp", server.url)).with_namespace("safe").with_oauth(oauth)
}

async fn open(client: &McpClient) -> Result<Value, CallError> {
    client.call("safe.open", json!({})).await.map(|envelope| envelope.data[0]["text"].clone())
}

/// A server that says that it is another.
async fn impostor(issuer: &str) -> Server {
    let server = Server::start().await;
    server.oddities.lock().unwrap().poses_as = Some(issuer.to_owned());
    // It takes the first token of the other.
    *server.good.lock().unwrap() = 1;
    server
}

#[tokio::test]
async fn the_named_issuer_is_asked() {
    let (server, (oauth, pages)) = (Server::start().await, program(&Drawer::default()));
    let client = connect(config(&server, oauth.with_issuer(&server.url))).await;
    assert_eq!((open(&client).await.unwrap(), server.count("/token")), (json!("open"), 1));
    assert_eq!(*pages.lock().unwrap(), [format!("{}/authorize", server.url)]);
    client.close().await;
}

#[tokio::test]
async fn an_issuer_below_a_path_may_publish_at_the_root() {
    let (server, (oauth, pages)) = (Server::start().await, program(&Drawer::default()));
    server.oddities.lock().unwrap().below = "/api";
    let client = connect(config(&server, oauth.with_issuer(format!("{}/api", server.url)))).await;
    assert_eq!((open(&client).await.unwrap(), server.count("/token")), (json!("open"), 1));
    assert_eq!(*pages.lock().unwrap(), [format!("{}/authorize", server.url)]);
    client.close().await;
}

#[tokio::test]
async fn another_issuer_is_refused() {
    let (server, named, (oauth, pages)) = (Server::start().await, Server::start().await, program(&Drawer::default()));
    let error = McpClient::connect(config(&server, oauth.with_issuer(&named.url))).await.unwrap_err();
    let wanted = format!("names the authorization server `{}`, and `with_issuer` another", server.url);
    assert!(error.message().contains(&wanted), "{error}");
    assert_eq!((server.count("/token"), named.count("/token"), pages.lock().unwrap().len()), (0, 0, 0));
}

#[tokio::test]
async fn who_poses_as_the_issuer_gets_neither_code_nor_secret() {
    let named = Server::start().await;
    let (server, (oauth, pages)) = (impostor(&named.url).await, program(&Drawer::default()));
    let client = connect(config(&server, oauth.with_issuer(&named.url))).await;
    assert_eq!(open(&client).await.unwrap(), "open");
    assert_eq!((server.count("/token"), named.count("/token")), (0, 1));
    assert_eq!(*pages.lock().unwrap(), [format!("{}/authorize", named.url)]);
    client.close().await;

    // An issuer that publishes nothing is none, though its host is another's, too.
    let tenant = format!("{}/tenant", named.url);
    let (server, (oauth, pages)) = (impostor(&tenant).await, program(&Drawer::default()));
    let error = McpClient::connect(config(&server, oauth.with_issuer(&tenant))).await.unwrap_err();
    assert!(
        error.message().contains(&format!("`{tenant}`, which `with_issuer` names, publishes no metadata")),
        "{error}"
    );
    for place in [
        "/.well-known/oauth-authorization-server/tenant",
        "/.well-known/openid-configuration/tenant",
        "/tenant/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server",
    ] {
        assert!(named.count(place) > 0, "{place}");
    }
    assert_eq!((server.count("/token"), named.count("/token"), pages.lock().unwrap().len()), (0, 1, 0));
}

#[tokio::test]
async fn tokens_of_who_posed_as_the_issuer_are_renewed_nowhere() {
    let named = Server::start().await;
    let (server, store) = (impostor(&named.url).await, Drawer::default());
    // A program that names nobody believes it.
    *server.good.lock().unwrap() = 0;
    let (oauth, _) = program(&store);
    connect(config(&server, oauth)).await.close().await;
    assert_eq!((server.count("/token"), named.count("/token")), (1, 0));
    for tokens in store.0.lock().unwrap().values_mut() {
        let mut kept: Value = serde_json::from_str(tokens).unwrap();
        kept["credentials"]["token_received_at"] = json!(0);
        *tokens = kept.to_string();
    }
    let (oauth, _) = program(&store);
    let client = connect(config(&server, oauth.with_issuer(&named.url))).await;
    assert_eq!(open(&client).await.unwrap(), "open");
    assert_eq!((server.count("renewed"), named.count("renewed")), (0, 0));
    client.close().await;
}
