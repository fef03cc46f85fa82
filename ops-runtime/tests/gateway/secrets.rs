//! No secret gets out: one of every kind is planted, everything upstream fails, and all that comes out is searched.
//!
//! Twice: with servers that keep to themselves what they were sent, and with servers that repeat it in every header and body of
//! theirs. Nothing may show it, whoever reads it: callers of the gateway over MCP and HTTP, the audit log, `Debug`, and also the
//! log, the failures and the errors that whoever runs the gateway sees.

mod http;
mod log;
mod upstream;

use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use ops_runtime::CallError;
use ops_runtime::access::{CallPolicy, Identity};
use ops_runtime::gateway::{AuditInputs, AuditLog, AuditOptions, CallerLimits, Gateway, Rate, Tools};
use ops_runtime::http::{Auth, ClientCredentials, HttpConfig, RequestInfo, Retry, TokenExchange};
use ops_runtime::mcp::{McpConfig, McpServerConfig};
use serde_json::json;

use self::log::Log;
use self::upstream::{TOOLS, WAYS, child, document, upstream};
use crate::client::{Client, REVISIONS};

/// The secrets, each by what it is for.
const SECRETS: [&str; 21] = [
    "bearer",
    "password",
    "header-key",
    "query-key",
    "client",
    "minted",
    "refused",
    "exchange",
    "caller",
    "own-header",
    "userinfo",
    "mcp-env",
    "mcp-header",
    "mcp-bearer",
    "mcp-file",
    "mcp-query",
    "environment",
    "hook",
    "document",
    "jwks",
    "parameter",
];

/// What every secret begins with, and nothing else has in it.
const MARK: &str = "hush-";

/// The variable from which a client reads its token.
const VARIABLE: &str = "ENVIRONMENT_TOKEN";

fn secret(what: &str) -> String {
    assert!(SECRETS.contains(&what));
    match what {
        // Whoever repeats these has to write them otherwise.
        "query-key" | "password" | "mcp-env" => format!("{MARK}{what}/5+e\"1 f&\u{e9}"),
        _ => format!("{MARK}{what}-5e1f"),
    }
}

#[tokio::test]
async fn no_secret_gets_out() {
    // A process cannot safely set variables of its own, so this one starts itself with one that holds a secret.
    if std::env::var_os(VARIABLE).is_none() {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "secrets::no_secret_gets_out", "--nocapture"]).env(VARIABLE, secret("environment"));
        let run = tokio::task::spawn_blocking(move || again.output().unwrap()).await.unwrap();
        let said = [run.stdout, run.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(run.status.success() && said[0].contains("1 passed"), "{}", said.join("\n"));
        return;
    }
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).expect("no other test of this process sets one");
    for repeats in [false, true] {
        let mut out = sweep(repeats).await;
        let logged = log.take();
        for event in ["a served operation failed", "the keys for tokens cannot be fetched", "the request is sent again"]
        {
            assert!(logged.contains(event), "{event}: {logged}");
        }
        // They said something, and it can be read on.
        assert_eq!(logged.contains("***"), repeats, "{logged}");
        out.push(("the log".into(), logged));
        let mut leaks = Vec::new();
        for (place, text) in &out {
            for mark in marks("") {
                if let Some(at) = text.find(&mark) {
                    let before = text[..at].chars().rev().take(300).collect::<Vec<_>>().into_iter().rev();
                    let around: String = before.chain(text[at..].chars().take(200)).collect();
                    leaks.push(format!("{place}: ..{around}"));
                }
            }
        }
        let bytes: usize = out.iter().map(|(_, text)| text.len()).sum();
        println!("repeats: {repeats}, {} outputs, {bytes} bytes", out.len());
        assert!(leaks.is_empty(), "repeats: {repeats}, {} leaks:\n{}", leaks.len(), leaks.join("\n\n"));
    }
}

/// What shows that a secret is there: its beginning as it is, as others write it, and as it is sent with the name of a user.
fn marks(what: &str) -> Vec<String> {
    let mark = format!("{MARK}{what}");
    let encoded = |text: &str| {
        let all = base64::engine::general_purpose::STANDARD_NO_PAD.encode(text);
        // What follows changes the last letters.
        all[..text.len() / 3 * 4].to_owned()
    };
    let percent: String = mark.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let pairs = ["ann", "us"].map(|user| encoded(&format!("{user}:{mark}")));
    [mark, percent].into_iter().chain(pairs).collect()
}

/// All that comes out of a gateway: where, and what.
async fn sweep(repeats: bool) -> Vec<(String, String)> {
    let (address, seen) = upstream(repeats).await;
    let base = format!("http://{address}");
    let config = || HttpConfig::new().with_base_url(base.clone());
    let exchange = TokenExchange::new(format!("{base}/exchange")).with_client("us", secret("exchange"));
    let credentials =
        |path: &str, what: &str| ClientCredentials::new("us", secret(what)).with_token_url(format!("{base}/{path}"));
    let bearer = json!({ "type": "http", "scheme": "bearer" });
    let apis = [
        ("bearer", bearer.clone(), config().with_auth(Auth::bearer(secret("bearer")))),
        (
            "basic",
            json!({ "type": "http", "scheme": "basic" }),
            config().with_auth(Auth::basic("ann", secret("password"))),
        ),
        (
            "header",
            json!({ "type": "apiKey", "in": "header", "name": "X-Key" }),
            config().with_credentials("own", Auth::api_key(secret("header-key"))),
        ),
        (
            "query",
            json!({ "type": "apiKey", "in": "query", "name": "key" }),
            config().with_credentials("own", Auth::api_key(secret("query-key"))),
        ),
        // Two faults at once: nobody is there, and the key is in the address.
        (
            "gone",
            json!({ "type": "apiKey", "in": "query", "name": "key" }),
            HttpConfig::new()
                .with_base_url(format!("http://ann:{}@127.0.0.1:1", secret("userinfo")))
                .with_credentials("own", Auth::api_key(secret("query-key"))),
        ),
        ("minted", bearer.clone(), config().with_auth(credentials("token", "client"))),
        (
            "asserted",
            bearer.clone(),
            config().with_auth(credentials("fails", "client").with_parameter("actor_token", secret("parameter"))),
        ),
        ("environment", bearer.clone(), config().with_credentials_from_env("ENVIRONMENT")),
        (
            "hooked",
            bearer.clone(),
            config().with_before(sign).with_retries(Retry::new().with_first_delay(Duration::from_millis(1))),
        ),
        ("refused", bearer.clone(), config().with_auth(credentials("refuses", "refused"))),
        ("exchanged", bearer.clone(), config().with_auth(Auth::Exchange(exchange))),
        ("passed", bearer, config().with_auth(Auth::PassOn)),
        ("own", json!({ "type": "http", "scheme": "basic" }), config().with_header("X-Own", secret("own-header"))),
    ];
    let mut out: Vec<(String, String)> = Vec::new();
    let mut told = |place: String, text: String| out.push((place, text));
    let folder = std::env::temp_dir().join(format!("ops-secrets-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let audit = folder.join("audit.jsonl");
    let log_of_calls = AuditLog::to_file(AuditOptions::new().with_inputs(AuditInputs::new()), &audit).unwrap();
    let mut builder = Gateway::builder().with_tools(Tools::Search).with_audit(log_of_calls.clone());
    builder = builder.with_identity(Identity::new("ann").with_token(secret("caller")));
    builder = builder.with_limits(CallerLimits::new().with_rate(Rate::new(100_000, Duration::from_secs(1))));
    let mut names = Vec::new();
    for (name, scheme, config) in apis {
        let path = folder.join(format!("{name}.json"));
        std::fs::write(&path, document(&scheme)).unwrap();
        told(format!("Debug of the configuration of {name}"), format!("{config:?} {config:#?}"));
        builder = builder.with_document(path.to_str().unwrap(), config.with_namespace(name));
        names.push(name);
    }
    // Documents that cannot be had, or that are none.
    for way in WAYS {
        let config = config().with_auth(Auth::bearer(secret("document")));
        builder = builder.with_document(format!("{base}/{way}"), config.with_namespace(format!("no_{way}")));
    }
    let remote =
        |path: &str| McpServerConfig::http(format!("{base}/{path}")).with_header("X-Key", secret("mcp-header"));
    let servers = McpConfig::new()
        .with_server("dies", child(true, repeats))
        .with_server("child", child(false, repeats))
        .with_server("broken", remote("fails"))
        .with_server("denies", remote("denied").with_bearer(secret("mcp-bearer")))
        .with_server("unlike", remote("unlike").with_bearer(secret("mcp-bearer")));
    // As the file names variables, and the environment has them.
    let look_up = |name: &str| (name == "A_TOKEN").then(|| secret("mcp-file"));
    let query = format!("{base}/denied?key={}", secret("mcp-query"));
    let file = json!({ "mcpServers": {
        "filed": { "url": format!("{base}/fails"), "headers": { "X-A": "A ${A_TOKEN}" } },
        "asked": { "url": query },
    } });
    let read = McpConfig::from_json_with(&file.to_string(), look_up).unwrap();
    let servers =
        ["filed", "asked"].iter().fold(servers, |all, name| all.with_server(*name, read.server(name).unwrap().clone()));
    told("Debug of the servers".into(), format!("{servers:?} {servers:#?}"));
    builder = builder.with_mcp_servers(servers).with_policy(CallPolicy::new().with_allow("*"));
    let gateway = builder.build().await.unwrap();
    assert!(gateway.failures().len() >= 14, "{:?}", gateway.failures());
    for (_, error) in gateway.failures() {
        let text = format!("{error} {error:?} {}", serde_json::to_string(error).unwrap());
        told("a failure".into(), text);
    }
    told("Debug of the gateway".into(), format!("{gateway:?} {:?} {log_of_calls:?}", gateway.registry()));
    told("diagnostics".into(), format!("{:?}", gateway.diagnostics()));

    let mut ids: Vec<String> =
        names.iter().flat_map(|name| WAYS.iter().map(move |way| format!("{name}.{way}"))).collect();
    ids.extend(TOOLS.map(|tool| format!("child.{tool}")));
    for revision in REVISIONS {
        let mut client = Client::connect(gateway.owned_mcp_server(), revision).await;
        for id in &ids {
            let called = client.call("call", json!({ "id": id, "input": {} })).await;
            assert!(called["isError"] == true || id.ends_with("unlike") || id.ends_with("names"), "{id}: {called}");
            told(format!("call of {id}"), called.to_string());
            // A wrong input beside a wrong credential.
            let called = client.call("call", json!({ "id": id, "input": { "extra": [1] } })).await;
            told(format!("wrong call of {id}"), called.to_string());
            told(format!("describe of {id}"), client.call("describe", json!({ "id": id })).await.to_string());
        }
        told("search".into(), client.call("search", json!({ "query": "fails moves key token" })).await.to_string());
        told("tools".into(), client.request("tools/list", json!({})).await.to_string());
        told("notifications".into(), format!("{:?}", client.notifications));
    }
    for (request, answer) in http::answers(&gateway, &ids).await {
        told(request, answer);
    }
    told("without keys".into(), http::without_keys(&gateway, &base).await);
    // In the program itself, errors hold what servers said.
    for id in &ids {
        if let Err(error) = gateway.registry().call(id, json!({})).await {
            let json = serde_json::to_string(&error).unwrap();
            told(format!("error of {id}"), format!("{error} {error:?} {error:#?} {json}"));
        }
    }
    log_of_calls.flush().await;
    told("the audit log".into(), std::fs::read_to_string(&audit).unwrap());
    std::fs::remove_dir_all(&folder).unwrap();

    // They were used, all of them: there was something to leak.
    let seen = seen.lock().unwrap().clone();
    for what in SECRETS {
        let was_sent = marks(what).iter().any(|mark| seen.contains(mark));
        assert!(was_sent || ["userinfo", "mcp-env"].contains(&what), "{what} was never used");
    }
    out
}

/// Adds a header to a request, as functions of a program do that sign it.
fn sign(request: &mut RequestInfo<'_>) -> Result<(), CallError> {
    request.headers.insert("x-signature", secret("hook").parse().unwrap());
    Ok(())
}
