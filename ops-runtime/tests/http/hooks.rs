//! Functions that see each request and its response, and what retries leave behind.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ops_runtime::binding::{HttpBinding, HttpBody};
use ops_runtime::http::{Auth, HttpClient, HttpConfig, Retry};
use ops_runtime::spec::OperationKind;
use ops_runtime::{CallError, ResponseEnvelope};
use serde_json::{Value, json};

use crate::script::{Script, ok, unavailable};
use crate::server::{Server, closed_port, get_of, spec};

type Seen = Arc<Mutex<Vec<String>>>;

fn note(seen: &Seen) -> impl Fn(String) + Send + Sync + 'static {
    let seen = seen.clone();
    move |text| seen.lock().unwrap().push(text)
}

/// A configuration that notes what its hooks see.
fn noting(url: &str, seen: &Seen) -> HttpConfig {
    let (before, after) = (note(seen), note(seen));
    HttpConfig::new()
        .with_base_url(url)
        .with_auth(Auth::bearer("t"))
        .with_retries(Retry::new().with_first_delay(Duration::from_millis(1)).with_max_retries(2))
        .with_before(move |request| {
            let has = |name| request.headers.contains_key(name);
            before(format!(
                "> {} {} {} {} {}",
                request.operation,
                request.attempt,
                request.method,
                request.uri.path(),
                has("authorization")
            ));
            request.headers.insert("x-attempt", request.attempt.into());
            Ok(())
        })
        .with_after(move |response| {
            let result = match response.result {
                Ok((status, headers)) => format!("{} {}", status.as_u16(), headers.contains_key("date")),
                Err(error) => error.code().as_str().to_owned(),
            };
            after(format!("< {} {} {}", response.attempt, response.uri.path(), result));
        })
}

async fn call(config: HttpConfig, binding: HttpBinding, input: Value) -> Result<ResponseEnvelope<Value>, CallError> {
    let client = HttpClient::new(config)?;
    client.add([spec(OperationKind::Mutation, "x", binding)]).unwrap();
    client.call("t.x", input).await
}

#[tokio::test]
async fn hooks_see_every_try() {
    let seen = Seen::default();
    let (script, url) = Script::start(&[unavailable, ok]).await;
    let envelope = call(noting(&url, &seen), get_of("/x"), json!({})).await.unwrap();
    assert_eq!(envelope.meta.as_http().unwrap().retries, Some(1));
    assert_eq!(
        *seen.lock().unwrap(),
        ["> t.x 1 GET /x true", "< 1 /x 503 true", "> t.x 2 GET /x true", "< 2 /x 200 true"]
    );
    let attempts: Vec<_> = (0..2).map(|at| script.header(at, "x-attempt").unwrap()).collect();
    assert_eq!(attempts, ["1", "2"]);
    // What was not sent again says nothing about it.
    let envelope = call(noting(&url, &seen), get_of("/x"), json!({})).await.unwrap();
    assert_eq!(envelope.meta.as_http().unwrap().retries, None);
}

#[tokio::test]
async fn debug_of_what_hooks_see_shows_no_secrets() {
    let seen = Seen::default();
    let (before, after) = (note(&seen), note(&seen));
    let (_script, url) = Script::start(&[ok]).await;
    let config = HttpConfig::new()
        .with_base_url(url)
        .with_auth(Auth::bearer("hush"))
        .with_before(move |request| {
            before(format!("{request:?}"));
            Ok(())
        })
        .with_after(move |response| after(format!("{response:?}").replace(&format!("{:?}", response.elapsed), "E")));
    call(config, get_of("/x?key=hush"), json!({})).await.unwrap();
    assert_eq!(
        *seen.lock().unwrap(),
        [
            r#"RequestInfo { operation: "t.x", attempt: 1, method: GET, .. }"#,
            r#"ResponseInfo { operation: "t.x", attempt: 1, method: GET, elapsed: E, status: Some(200), .. }"#,
        ]
    );
}

#[tokio::test]
async fn hooks_see_redirects_as_part_of_a_try() {
    let (server, other, seen) = (Server::start().await, Server::start().await, Seen::default());
    let binding = get_of(format!("/to?302,{}/echo/y", other.url()));
    let found = call(noting(&server.url(), &seen), binding, json!({})).await.unwrap().data;
    assert_eq!(
        *seen.lock().unwrap(),
        ["> t.x 1 GET /to true", "< 1 /to 302 true", "> t.x 1 GET /echo/y false", "< 1 /echo/y 200 true"]
    );
    assert_eq!((&found["headers"]["x-attempt"], found["headers"].get("authorization")), (&json!("1"), None));
}

#[tokio::test]
async fn a_body_can_be_signed_and_a_request_refused() {
    let server = Server::start().await;
    let mut binding = HttpBinding::new("POST", "/echo/x");
    binding.bodies = vec![HttpBody::new("application/json")].into();
    let base = || HttpConfig::new().with_base_url(server.url());
    let signing = base().with_before(|request| {
        let body = request.body().ok_or("a stream cannot be signed")?;
        let length = u64::try_from(body.len()).unwrap_or_default();
        request.headers.insert("x-signature", length.into());
        Ok(())
    });
    let input = || json!({ "body": { "a": 1 } });
    let found = call(signing.clone(), binding.clone(), input()).await.unwrap().data;
    assert_eq!((&found["headers"]["x-signature"], &found["body"]), (&json!("7"), &json!("{\"a\":1}")));
    // The second hook refuses; the third does not run, and nothing is sent.
    let ran = Seen::default();
    let (third, after) = (note(&ran), note(&ran));
    let refusing = signing
        .with_before(|_| Err(CallError::new("BUDGET", "no requests left")))
        .with_before(move |_| {
            third("third".to_owned());
            Ok(())
        })
        .with_after(move |_| after("after".to_owned()));
    let error = call(refusing, binding, input()).await.unwrap_err();
    assert_eq!((error.code().as_str(), error.message()), ("BUDGET", "no requests left"));
    assert!(ran.lock().unwrap().is_empty());
}

#[tokio::test]
async fn errors_say_how_often_a_request_was_sent_again() {
    let seen = Seen::default();
    let (_script, url) = Script::start(&[unavailable]).await;
    let error = call(noting(&url, &seen), get_of("/x"), json!({})).await.unwrap_err();
    assert_eq!((&error.details()["statusCode"], &error.details()["retries"]), (&json!(503), &json!(2)));

    let (_closed, address) = closed_port();
    let url = format!("http://{address}");
    seen.lock().unwrap().clear();
    let error = call(noting(&url, &seen), get_of("/x"), json!({})).await.unwrap_err();
    assert_eq!(error.details(), &json!({ "retries": 2 }), "{error}");
    let failed: Vec<_> = seen.lock().unwrap().iter().filter(|text| text.starts_with('<')).cloned().collect();
    assert_eq!(failed, ["< 1 /x EXECUTION_ERROR", "< 2 /x EXECUTION_ERROR", "< 3 /x EXECUTION_ERROR"]);
}
