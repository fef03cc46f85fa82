//! When the user is asked for authorization, and what goes on meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ops_runtime::CallError;
use ops_runtime::mcp::{ElicitationAnswer, McpClient, McpOAuth, McpServerConfig};
use ops_runtime::registry::CancelToken;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::log::Log;
use crate::oauth::{Drawer, Server};
use crate::peers::{LONG, connect};

/// A user who agrees as often as there are permits, and refuses once the semaphore is closed.
#[derive(Clone)]
struct User {
    asked: Arc<AtomicUsize>,
    agrees: Arc<Semaphore>,
    /// The scopes that were asked for last.
    scopes: Arc<Mutex<String>>,
}

impl User {
    fn new(agrees: usize) -> Self {
        Self { asked: Arc::default(), agrees: Arc::new(Semaphore::new(agrees)), scopes: Arc::default() }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn oauth(&self, store: &Drawer) -> McpOAuth {
        let user = self.clone();
        McpOAuth::new("http://127.0.0.1:1/callback").with_client_name("the test").with_store(store.clone()).with_prompt(
            move |url| {
                let user = user.clone();
                async move {
                    *user.scopes.lock().unwrap() = found(&url, "scope").unwrap_or_default();
                    user.asked.fetch_add(1, Ordering::SeqCst);
                    let agreed = user.agrees.acquire().await;
                    agreed.map_err(|_| CallError::execution("the user refuses"))?.forget();
                    Ok(format!("http://127.0.0.1:1/callback?code=c0de&state={}", parameter(&url, "state")))
                }
            },
        )
    }
}

fn parameter(url: &str, name: &str) -> String {
    found(url, name).unwrap()
}

fn found(url: &str, name: &str) -> Option<String> {
    let url = url::Url::parse(url).unwrap();
    url.query_pairs().find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
}

fn config(server: &Server, oauth: McpOAuth) -> McpServerConfig {
    McpServerConfig::http(format!("{}/mcp", server.url)).with_namespace("safe").with_oauth(oauth)
}

async fn call(client: &McpClient, tool: &str) -> Result<Value, CallError> {
    let called = timeout(LONG, client.call(&format!("safe.{tool}"), json!({}))).await.expect("an end in time");
    called.map(|envelope| envelope.data[0]["text"].clone())
}

/// A store with a token that has expired, of a user who was asked once.
async fn expired(server: &Server, user: &User) -> Drawer {
    let store = Drawer::default();
    let client = connect(config(server, user.oauth(&store))).await;
    client.close().await;
    expire(&store);
    store
}

fn expire(store: &Drawer) {
    for tokens in store.0.lock().unwrap().values_mut() {
        let mut kept: Value = serde_json::from_str(tokens).unwrap();
        kept["credentials"]["token_received_at"] = json!(0);
        *tokens = kept.to_string();
    }
}

#[tokio::test]
async fn an_expired_token_that_is_not_renewed_leads_to_the_user() {
    for status in [400, 503] {
        let (server, user) = (Server::start().await, User::new(2));
        let store = expired(&server, &user).await;
        server.oddities.lock().unwrap().renews_nothing = Some(status);
        *server.good.lock().unwrap() += 1;
        let client = connect(config(&server, user.oauth(&store))).await;
        assert_eq!((call(&client, "open").await.unwrap(), user.asked()), (json!("open"), 2), "{status}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_token_that_is_not_renewed_is_sent_all_the_same() {
    let (server, user) = (Server::start().await, User::new(1));
    let store = expired(&server, &user).await;
    (server.oddities.lock().unwrap().renews_nothing, server.oddities.lock().unwrap().is_public) = (Some(503), true);
    let client = connect(config(&server, user.oauth(&store))).await;
    assert_eq!((call(&client, "open").await.unwrap(), user.asked()), (json!("open"), 1));
    assert_eq!(server.count("anonymous"), 0);
    client.close().await;
}

#[tokio::test]
async fn clients_of_one_store_use_no_refresh_token_twice() {
    let (server, user, store) = (Server::start().await, User::new(1), Drawer::default());
    server.oddities.lock().unwrap().rotates = true;
    let oauth = user.oauth(&store);
    let clients = [connect(config(&server, oauth.clone())).await, connect(config(&server, oauth)).await];
    expire(&store);
    let (one, two) = tokio::join!(call(&clients[0], "open"), call(&clients[1], "open"));
    assert_eq!((one.unwrap(), two.unwrap()), (json!("open"), json!("open")));
    assert_eq!((server.count("used twice"), user.asked()), (0, 1));
}

/// Waits until the server has seen something so many times.
async fn seen(server: &Server, what: &str, times: usize) {
    let seen = async {
        while server.count(what) < times {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LONG, seen).await.expect(what);
}

/// Calls a tool whose caller goes away once the server was asked for a token so many times, and calls it again before
/// the token is sent.
async fn call_twice(server: &Server, client: &McpClient, tool: &'static str, (what, times): (&str, usize)) -> Value {
    let held = CancelToken::new();
    server.oddities.lock().unwrap().holds_tokens = Some(held.clone());
    let first = client.clone();
    let called = tokio::spawn(async move { call(&first, tool).await });
    seen(server, what, times).await;
    called.abort();
    assert!(called.await.unwrap_err().is_cancelled(), "it waits for the token");
    let (answer, ()) = tokio::join!(call(client, tool), async {
        sleep(Duration::from_millis(300)).await;
        held.cancel();
    });
    answer.unwrap()
}

#[tokio::test]
async fn a_renewed_token_is_kept_though_its_caller_goes_away() {
    let (server, user, store) = (Server::start().await, User::new(1), Drawer::default());
    server.oddities.lock().unwrap().rotates = true;
    let client = connect(config(&server, user.oauth(&store))).await;
    expire(&store);
    assert_eq!(call_twice(&server, &client, "open", ("renewed", 1)).await, "open");
    assert_eq!((server.count("renewed"), server.count("used twice"), user.asked()), (1, 0, 1));
    client.close().await;
}

#[tokio::test]
async fn what_the_user_has_agreed_to_is_kept_though_the_caller_goes_away() {
    let (server, user) = (Server::start().await, User::new(2));
    server.oddities.lock().unwrap().demands = 2;
    let client = connect(config(&server, user.oauth(&Drawer::default()))).await;
    assert_eq!((call_twice(&server, &client, "deep", ("/token", 2)).await, user.asked()), (json!("open"), 2));
    assert_eq!(server.count("renewed"), 0, "the new token is not lost");
    client.close().await;
}

#[tokio::test]
async fn who_refuses_when_tools_have_changed_is_not_asked_again() {
    let (server, user) = (Server::start().await, User::new(1));
    server.oddities.lock().unwrap().changes = true;
    let client = connect(config(&server, user.oauth(&Drawer::default()))).await;
    server.oddities.lock().unwrap().renews_nothing = Some(400);
    user.agrees.close();
    assert_eq!(call(&client, "open").await.unwrap(), json!("open"));
    timeout(LONG, async {
        while user.asked() < 2 {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("the list asks the user");
    // Some more attempts would be made in that time.
    sleep(Duration::from_secs(4)).await;
    assert_eq!(user.asked(), 2);
    client.close().await;
}

#[tokio::test]
async fn the_user_is_not_asked_for_pongs() {
    let (server, user) = (Server::start().await, User::new(1));
    server.oddities.lock().unwrap().pings = true;
    let client = connect(config(&server, user.oauth(&Drawer::default()))).await;
    assert_eq!(call(&client, "open").await.unwrap(), json!("open"));
    seen(&server, "pong", 1).await;
    assert_eq!((server.count("pong"), user.asked()), (1, 1));
    client.close().await;
}

#[tokio::test]
async fn without_anybody_to_ask_it_is_told_why_a_token_is_not_renewed() {
    let (server, user) = (Server::start().await, User::new(1));
    let store = expired(&server, &user).await;
    server.oddities.lock().unwrap().is_down = u32::MAX;
    let oauth = McpOAuth::new("http://127.0.0.1:1/callback").with_store(store);
    let error = McpClient::connect(config(&server, oauth)).await.unwrap_err();
    assert!(error.message().contains("its answer has more than 1048576 bytes"), "{error}");
}

#[tokio::test]
async fn an_authorization_server_that_is_down_at_first_renews_later() {
    let (server, user) = (Server::start().await, User::new(1));
    let store = expired(&server, &user).await;
    server.oddities.lock().unwrap().is_down = 1;
    let client = connect(config(&server, user.oauth(&store))).await;
    assert_eq!((call(&client, "open").await.unwrap(), user.asked()), (json!("open"), 1));
    assert_eq!((server.count("renewed"), server.oddities.lock().unwrap().is_down), (1, 0));
    client.close().await;
}

#[tokio::test]
async fn the_secret_of_a_registered_client_is_kept() {
    let (server, user) = (Server::start().await, User::new(1));
    server.oddities.lock().unwrap().secret = Some("s3cret-of-registration");
    let store = expired(&server, &user).await;
    let client = connect(config(&server, user.oauth(&store))).await;
    assert_eq!((call(&client, "open").await.unwrap(), user.asked()), (json!("open"), 1));
    assert_eq!((server.count("renewed"), server.count("/register")), (1, 1));
    client.close().await;
    // The renewed tokens are kept with it, too.
    assert!(store.0.lock().unwrap().values().all(|kept| kept.contains("s3cret-of-registration")));
}

#[tokio::test]
async fn a_refusal_without_a_challenge_leads_to_the_user() {
    let (server, user) = (Server::start().await, User::new(1));
    server.oddities.lock().unwrap().has_no_challenge = true;
    let client = connect(config(&server, user.oauth(&Drawer::default()))).await;
    assert_eq!((call(&client, "open").await.unwrap(), user.asked()), (json!("open"), 1));
    client.close().await;
}

#[tokio::test]
async fn other_calls_go_on_while_the_user_thinks() {
    let (server, user) = (Server::start().await, User::new(1));
    server.oddities.lock().unwrap().demands = 2;
    let limit = Duration::from_secs(3);
    let client = connect(config(&server, user.oauth(&Drawer::default())).with_timeout(limit)).await;
    let deep = tokio::spawn({
        let client = client.clone();
        async move { call(&client, "deep").await }
    });
    while user.asked() < 2 {
        sleep(Duration::from_millis(10)).await;
    }
    let other = timeout(Duration::from_secs(10), call(&client, "open")).await.expect("it waits for nobody");
    assert_eq!(other.unwrap(), "open");
    // The call that asks has more time than its timeout.
    sleep(limit + Duration::from_millis(500)).await;
    assert!(!deep.is_finished());
    user.agrees.add_permits(1);
    assert_eq!(deep.await.unwrap().unwrap(), "open");
    client.close().await;
}

#[tokio::test]
async fn what_the_user_has_just_agreed_to_is_not_asked_again() {
    let (server, user) = (Server::start().await, User::new(9));
    server.oddities.lock().unwrap().demands = 9;
    let client = connect(config(&server, user.oauth(&Drawer::default()))).await;
    let error = call(&client, "deep").await.unwrap_err();
    assert_eq!((&error.details()["statusCode"], user.asked()), (&json!(403), 2), "{error:?}");
    assert_eq!(call(&client, "open").await.unwrap(), "open");
    client.close().await;
}

#[tokio::test]
async fn tokens_are_renewed_after_the_user_has_refused_more() {
    let (server, user, store) = (Server::start().await, User::new(1), Drawer::default());
    server.oddities.lock().unwrap().demands = 9;
    let client = connect(config(&server, user.oauth(&store))).await;
    user.agrees.close();
    let error = call(&client, "deep").await.unwrap_err();
    assert!(error.message().contains("the user refuses"), "{error}");
    expire(&store);
    assert_eq!(call(&client, "open").await.unwrap(), "open");
    assert_eq!((user.asked(), server.count("renewed")), (2, 1));
    client.close().await;
}

#[tokio::test]
async fn more_is_asked_for_beside_what_was_granted() {
    let (server, user, store) = (Server::start().await, User::new(1), Drawer::default());
    server.oddities.lock().unwrap().demands = 9;
    connect(config(&server, user.oauth(&store))).await.close().await;
    user.agrees.close();
    // The scopes are those of the tokens in the store, which are of an earlier client.
    let client = connect(config(&server, user.oauth(&store))).await;
    for asked in [2, 3] {
        call(&client, "deep").await.unwrap_err();
        assert_eq!((user.asked(), &**user.scopes.lock().unwrap()), (asked, "plain deep"));
    }
    client.close().await;
}

#[tokio::test]
async fn without_a_named_scope_those_of_the_metadata_are_asked_for_beside_what_was_granted() {
    let (server, user, store) = (Server::start().await, User::new(1), Drawer::default());
    {
        let mut oddities = server.oddities.lock().unwrap();
        (oddities.demands, oddities.names_no_scope) = (9, true);
    }
    let client = connect(config(&server, user.oauth(&store))).await;
    assert_eq!(&**user.scopes.lock().unwrap(), "plain");
    user.agrees.close();
    call(&client, "deep").await.unwrap_err();
    assert_eq!((user.asked(), &**user.scopes.lock().unwrap()), (2, "plain admin"));
    client.close().await;
}

#[tokio::test]
async fn no_more_is_asked_for_than_the_server_demands() {
    // What its challenge names, or else its metadata. What the authorization server has to give is no demand.
    for (scope, has_no_challenge, expected) in [
        (None, false, "plain"),
        (Some("other"), false, "other"),
        (None, true, "plain admin"),
        (Some(""), false, ""),
        (Some(""), true, ""),
    ] {
        let (server, user) = (Server::start().await, User::new(1));
        {
            let mut oddities = server.oddities.lock().unwrap();
            (oddities.scope, oddities.has_no_challenge) = (scope, has_no_challenge);
        }
        let client = connect(config(&server, user.oauth(&Drawer::default()))).await;
        assert_eq!((user.asked(), &**user.scopes.lock().unwrap()), (1, expected), "{scope:?} {has_no_challenge}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_challenge_is_used_as_it_came() {
    // What it names is in headers, too, and so is a secret in errors and logs.
    let (server, user) = (Server::start().await, User::new(1));
    server.oddities.lock().unwrap().scope = Some("payments-eu:read");
    let host = server.url.strip_prefix("http://").unwrap();
    let config = config(&server, user.oauth(&Drawer::default()));
    let client = connect(config.with_header("X-Team", "payments-eu").with_header("X-Host", host)).await;
    assert_eq!(call(&client, "open").await.unwrap(), "open");
    assert_eq!((user.asked(), &**user.scopes.lock().unwrap()), (1, "payments-eu:read"));
    client.close().await;
}

#[tokio::test]
async fn why_a_reply_is_not_accepted_is_logged_without_what_may_be_secret() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let (server, user) = (Server::start().await, User::new(1));
    {
        let mut oddities = server.oddities.lock().unwrap();
        (oddities.pings, oddities.place) = (true, Some("/payments-eu"));
    }
    let config = config(&server, user.oauth(&Drawer::default())).with_header("X-Team", "payments-eu");
    let client = connect(config.with_elicitation(|_| async { ElicitationAnswer::Decline })).await;
    assert_eq!(call(&client, "open").await.unwrap(), "open");
    let told = async {
        loop {
            let logged = log.take();
            if let Some(told) = logged.lines().find(|line| line.contains("a reply to the server was not accepted")) {
                return told.to_owned();
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    let told = timeout(LONG, told).await.expect("a warning");
    let place = format!("{}/***", server.url);
    assert!(told.contains("authorization failed") && told.contains(&place), "{told}");
    assert!(!told.contains("payments-eu"), "{told}");
    client.close().await;
}

#[tokio::test]
async fn one_refusal_is_that_of_all_calls_that_wait() {
    let (server, user) = (Server::start().await, User::new(1));
    server.oddities.lock().unwrap().demands = 9;
    let client = connect(config(&server, user.oauth(&Drawer::default()))).await;
    let calls = [(); 3].map(|()| {
        let client = client.clone();
        tokio::spawn(async move { call(&client, "deep").await })
    });
    while server.count("too deep") < 3 || user.asked() < 2 {
        sleep(Duration::from_millis(10)).await;
    }
    // The last refusal may still be on its way. In each pause, all that runs here has its turn.
    for _ in 0..100 {
        sleep(Duration::from_millis(10)).await;
    }
    user.agrees.close();
    for called in calls {
        let error = called.await.unwrap().unwrap_err();
        assert!(error.message().contains("the user refuses"), "{error}");
    }
    assert_eq!(user.asked(), 2);
    // A later call asks anew.
    call(&client, "deep").await.unwrap_err();
    assert_eq!(user.asked(), 3);
    client.close().await;
}

#[tokio::test]
async fn why_the_user_comes_back_without_a_code_is_told() {
    let server = Server::start().await;
    let oauth =
        McpOAuth::new("http://127.0.0.1:1/callback").with_client_name("the test").with_prompt(|url| async move {
            let told = "error=access_denied&error_description=not%0Atoday";
            Ok(format!("http://127.0.0.1:1/callback?{told}&state={}", parameter(&url, "state")))
        });
    let error = McpClient::connect(config(&server, oauth)).await.unwrap_err();
    assert!(error.message().contains("`access_denied`: not today"), "{error}");
}
