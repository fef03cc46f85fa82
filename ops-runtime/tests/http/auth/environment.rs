//! Credentials from environment variables, alone and beside those that are set. The variables are those that cargo sets for
//! every test.

use ops_runtime::ErrorCode;
use ops_runtime::spec::OperationSpec;

use super::*;

#[tokio::test]
async fn credentials_from_the_environment() {
    use ParameterLocation::{Header, Query};
    // Variables that cargo sets for every test.
    let (name, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    let server = Server::start().await;
    let config = || HttpConfig::new().with_base_url(server.url()).with_credentials_from_env("CARGO");
    let binding = || any_of("/echo/x", vec![all_of(vec![bearer("pkgName"), key("pkg-version", Query, "v")])]);
    let found = seen(config(), binding()).await.unwrap();
    assert_eq!(found["headers"]["authorization"], format!("Bearer {name}"));
    assert_eq!(found["uri"], format!("/echo/x?v={version}"));

    // What the program sets wins, and where a scheme has no variable, the next requirement counts.
    let found = seen(config().with_credentials("pkgName", Auth::bearer("own")), binding()).await.unwrap();
    assert_eq!(found["headers"]["authorization"], "Bearer own");
    let second =
        any_of("/echo/x", vec![all_of(vec![bearer("nothing")]), all_of(vec![key("pkg_name", Header, "X-Key")])]);
    let found = seen(config(), second).await.unwrap();
    assert_eq!((&found["headers"]["x-key"], found["headers"].get("authorization")), (&json!(name), None));
    // What asks for nothing gets nothing.
    assert!(seen(config(), any_of("/echo/x", vec![])).await.unwrap()["headers"].get("authorization").is_none());
    let debug = format!("{:?}", config());
    assert!(debug.contains("PKG_NAME") && !debug.contains(&format!("\"{name}\"")), "{debug}");
}

#[tokio::test]
async fn what_is_set_comes_before_the_environment() {
    let name = env!("CARGO_PKG_NAME");
    let server = Server::start().await;
    let config = || HttpConfig::new().with_base_url(server.url()).with_credentials_from_env("CARGO");
    let known = || key("pkg_name", ParameterLocation::Header, "X-Key");
    let sent = async |config: HttpConfig, ways: Vec<SecurityRequirement>| {
        let headers = seen(config, any_of("/echo/x", ways)).await.unwrap()["headers"].clone();
        ["x-key", "authorization"].map(|header| headers[header].as_str().unwrap_or("-").to_owned())
    };
    // In whichever order the document lists the ways.
    let either = || vec![all_of(vec![known()]), all_of(vec![bearer("b")])];
    assert_eq!(sent(config(), either()).await, [name, "-"]);
    assert_eq!(sent(config().with_auth(Auth::bearer("d")), either()).await, ["-", "Bearer d"]);
    assert_eq!(sent(config().with_credentials("b", Auth::bearer("n")), either()).await, ["-", "Bearer n"]);
    // A way that uses some of it comes before one that uses nothing of it.
    let partly = || vec![all_of(vec![known()]), all_of(vec![bearer("b"), known()])];
    assert_eq!(sent(config().with_auth(Auth::bearer("d")), partly()).await, [name, "Bearer d"]);
    // It fits nothing here.
    let other = || vec![all_of(vec![known()])];
    assert_eq!(sent(config().with_auth(Auth::bearer("d")), other()).await, [name, "-"]);

    // In place of the token of the caller, who has none here, nothing is sent.
    for ways in [either(), other(), partly()] {
        let error = seen(config().with_auth(Auth::pass_on()), any_of("/echo/x", ways)).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::AccessDenied, "{error}");
    }
    let optional = vec![all_of(vec![known()]), all_of(vec![])];
    assert_eq!(sent(config().with_auth(Auth::pass_on()), optional).await, ["-", "-"]);
}

#[test]
fn what_is_missing_is_told() {
    let basic = || SecurityScheme::new("login", SecurityKind::Basic);
    let known = || key("pkg_name", ParameterLocation::Header, "X-Key");
    let unknown = || SecurityScheme::new("misspelt", SecurityKind::Other("unknown".into()));
    let set = "1 operation needs credentials, `b`, and they are not set: set `CARGO_B` or `CARGO_TOKEN`";
    let login = "1 operation needs credentials, `login`, and they are not set: set `CARGO_LOGIN` or `CARGO_USER` with \
                 `CARGO_PASSWORD`";
    let other = "1 operation needs credentials, `k`, and those that are set are of another kind";
    let unread = key("k", ParameterLocation::Header, "X-Key");
    for (auth, schemes, expected) in [
        // Of two that are needed, the environment has the first.
        (None, vec![known(), bearer("b")], Some(set.to_owned())),
        (None, vec![basic()], Some(login.to_owned())),
        (None, vec![known()], None),
        // The document does not say what it is.
        (None, vec![unknown()], None),
        (None, vec![bearer("b"), unknown()], None),
        (Some(Auth::bearer("t")), vec![unread.clone()], Some(format!("{other}: set `CARGO_K` or `CARGO_API_KEY`"))),
        // In place of the token of the caller, none of these is sent. Beside it, one is.
        (Some(Auth::pass_on()), vec![unread.clone()], Some(other.to_owned())),
        (Some(Auth::pass_on()), vec![bearer("b"), unread], Some(format!("{other}: set `CARGO_K` or `CARGO_API_KEY`"))),
    ] {
        let config = HttpConfig::new().with_base_url("http://x.test").with_credentials_from_env("CARGO");
        let config = auth.into_iter().fold(config, HttpConfig::with_auth);
        let spec = OperationSpec::query("t.x").with_http(any_of("/x", vec![all_of(schemes)]));
        assert_eq!(HttpClient::new(config).unwrap().without_credentials([&spec]), expected);
    }
}
