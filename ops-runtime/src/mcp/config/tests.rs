use serde_json::json;

use super::*;

fn read(text: &str) -> McpConfig {
    let look_up = |name: &str| match name {
        "KEY" => Some("s3cret".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    McpConfig::from_json_with(text, look_up).unwrap()
}

fn stdio(server: &McpServerConfig) -> &Stdio {
    match &server.target {
        Target::Stdio(stdio) => stdio,
        Target::Http(_) => panic!("a URL"),
    }
}

fn http(server: &McpServerConfig) -> &Http {
    match &server.target {
        Target::Http(http) => http,
        Target::Stdio(_) => panic!("a command"),
    }
}

#[test]
fn a_command_has_arguments_and_variables() {
    let config = read(
        r#"{ "mcpServers": { "one": {
            "command": "npx", "args": ["-y", "server", "${KEY}", 7], "env": { "TOKEN": "${env:KEY}", "PORT": 80, "ON": true },
            "cwd": "/tmp/${KEY}", "timeout": 1500, "disabled": false, "type": "stdio", "description": "${UNSET}", "autoApprove": ["a"]
        } } }"#,
    );
    let server = config.server("one").unwrap();
    assert_eq!(stdio(server).command, "npx");
    assert_eq!(stdio(server).args, ["-y", "server", "s3cret", "7"]);
    assert_eq!(
        stdio(server).env.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>(),
        ["ON=true", "PORT=80", "TOKEN=s3cret"]
    );
    assert_eq!(stdio(server).cwd.as_deref(), Some(Path::new("/tmp/s3cret")));
    assert_eq!(server.timeout, Some(Duration::from_millis(1500)));
    assert_eq!(Value::Object(server.extra().clone()), json!({ "description": "${UNSET}", "autoApprove": ["a"] }));
}

#[test]
fn a_url_goes_by_several_names() {
    for (text, bearer, oauth) in [
        (r#"{ "url": "https://a.example/mcp" }"#, None, false),
        (r#"{ "serverUrl": "https://a.example/mcp", "transport": "sse", "auth": "oauth" }"#, None, true),
        (
            r#"{ "baseUrl": "https://a.example/mcp", "type": "streamable-http", "auth": "${KEY}" }"#,
            Some("s3cret"),
            false,
        ),
        (r#"{ "url": "https://a.example/mcp", "type": "http", "auth": "Bearer ${KEY}" }"#, Some("s3cret"), false),
        (r#"{ "url": "https://a.example/mcp", "auth": "bearer  ${KEY}" }"#, Some("s3cret"), false),
        (r#"{ "url": "https://a.example/mcp", "auth": "Bearer ${EMPTY}" }"#, Some(""), false),
    ] {
        let config = read(&format!(r#"{{ "servers": {{ "one": {text} }} }}"#));
        let server = http(config.server("one").unwrap());
        assert_eq!(server.url, "https://a.example/mcp");
        assert_eq!(server.bearer.as_deref(), bearer, "{text}");
        assert_eq!(server.oauth, oauth, "{text}");
    }
}

#[test]
fn what_is_wrong_with_a_server_is_said_with_its_name() {
    for (server, message) in [
        (r#"{ "command": "x", "url": "y" }"#, "both `command` and `url`"),
        ("{}", "neither `command` nor `url`"),
        ("7", "not an object"),
        (r#"{ "command": 7 }"#, "`command` is not a string"),
        (r#"{ "command": "x", "args": "y" }"#, "`args` is not a list"),
        (r#"{ "command": "x", "args": [{}] }"#, "`args` is not a list"),
        (r#"{ "command": "x", "env": { "A": [] } }"#, "`env` is not an object of strings"),
        (r#"{ "command": "x", "timeout": -1 }"#, "`timeout`"),
        (r#"{ "command": "x", "timeout": "1s" }"#, "`timeout`"),
        (r#"{ "command": "x", "disabled": "yes" }"#, "`disabled`"),
        (r#"{ "command": "x", "type": "http" }"#, "transport `http`"),
        (r#"{ "url": "x", "type": "websocket" }"#, "transport `websocket`"),
        (r#"{ "url": "x", "auth": "Basic ${KEY}" }"#, "`auth` has another scheme than `Bearer`: set it in `headers`"),
        (r#"{ "command": "x", "env": { "A": "${UNSET}" } }"#, "in `env`, the variable `UNSET` is not set"),
        (r#"{ "url": "x", "headers": { "A": "${UNSET}" } }"#, "in `headers`, the variable `UNSET` is not set"),
    ] {
        let config = read(&format!(r#"{{ "mcpServers": {{ "one": {server}, "two": {{ "command": "y" }} }} }}"#));
        let error = config.server("one").unwrap_err();
        assert!(error.message().starts_with("the MCP server `one`: ") && error.message().contains(message), "{error}");
        assert!(config.server("two").is_ok());
    }
    assert!(read(r#"{ "mcpServers": {} }"#).server("x").unwrap_err().message().contains("`x`"));
}

#[test]
fn a_server_that_is_not_used_need_not_be_complete() {
    let config = read(r#"{ "mcpServers": { "one": { "command": "x", "args": ["${UNSET}"], "disabled": true } } }"#);
    assert!(config.server("one").unwrap().is_disabled());
    assert!(config.is_disabled("one") && !config.is_disabled("two"));
    for server in [r#"{ "disabled": true }"#, r#"{ "disabled": true, "url": "x", "type": "carrier-pigeon" }"#] {
        let config = read(&format!(r#"{{ "mcpServers": {{ "one": {server}, "two": {{}} }} }}"#));
        assert!(config.server("one").is_err() && config.is_disabled("one"), "{server}");
        assert!(config.server("two").is_err() && !config.is_disabled("two"));
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_server_that_is_not_used_is_no_error_of_the_clients() {
    let config = read(r#"{ "mcpServers": { "one": { "disabled": true }, "two": {} } }"#);
    let clients = crate::mcp::McpClients::connect(&config).await;
    assert_eq!(clients.errors().keys().collect::<Vec<_>>(), ["two"]);
}

#[test]
fn what_is_no_configuration_is_an_error() {
    let deep = "[".repeat(100_000);
    for text in [
        "",
        "[]",
        "{}",
        "{",
        "// {}",
        "{ 'mcpServers': {} }",
        r#"{ "mcpServers": {}, "n": 1e999 }"#,
        r#"{ "mcpServers": [] }"#,
        &deep,
    ] {
        assert!(McpConfig::from_json(text).is_err(), "{text}");
    }
}

#[test]
fn comments_and_last_commas_are_no_matter() {
    let config = read(
        r#"
        // What an editor made.
        { "servers": { /* only one */ "one": {
            "url": "https://example.com//mcp", // its comment
            "headers": { "X-Number": 7, },
        }, }, }
        "#,
    );
    let server = config.server("one").unwrap();
    assert_eq!(http(server).url, "https://example.com//mcp");
    assert_eq!(http(server).headers["X-Number"], "7");
}

#[test]
fn what_may_be_secret_does_not_show() {
    let config = read(
        r#"{ "mcpServers": {
            "one": { "command": "x", "args": ["${KEY}"], "env": { "A": "${KEY}" }, "note": "${KEY}" },
            "two": { "url": "https://u:${KEY}@a.example:80/${KEY}?k=${KEY}", "headers": { "A": "${KEY}" }, "auth": "${KEY}" }
        } }"#,
    );
    let shown = format!("{config:?}");
    assert!(!shown.contains("s3cret"), "{shown}");
    assert!(shown.contains("a.example:80"), "{shown}");
}
