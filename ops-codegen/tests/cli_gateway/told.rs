//! Warnings about a configuration, and configurations that are refused.

use super::*;

/// Starts the command, ends its input, and gives what it told.
fn told(arguments: &[&str], folder: &Path) -> String {
    told_with(arguments, folder, ("UNUSED", ""))
}

/// The same, with a variable in its environment.
fn told_with(arguments: &[&str], folder: &Path, (name, value): (&str, &str)) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    command.arg("serve").args(arguments).current_dir(folder).env(name, value);
    let output = command.stdin(Stdio::null()).output().unwrap();
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn credentials_that_are_missing_are_told() {
    let folder = folder("unset");
    let mut shop: Value = serde_json::from_str(&document(4)).unwrap();
    shop["components"] = json!({ "securitySchemes": {
        "shopToken": { "type": "http", "scheme": "bearer" }, "card": { "type": "mutualTLS" } } });
    shop["security"] = json!([{ "shopToken": [] }]);
    // For everybody, and for who has a certificate, which the document's reader cannot know.
    shop["paths"]["/things/0"]["get"]["security"] = json!([]);
    shop["paths"]["/things/1"]["get"]["security"] = json!([{ "card": [] }]);
    std::fs::write(folder.join("shop.json"), shop.to_string()).unwrap();
    let lacking = "warning: shop.json: 2 operations need credentials, such as `shopToken`, and they are not set: set \
                   `SHOP_SHOP_TOKEN` or `SHOP_TOKEN`\n4 operations; 0 diagnostics\n";
    // A blank variable is no token, and that of another document is not either.
    for (variable, expected) in [
        (("SHOP_TOKEN", "  "), lacking),
        (("STORE_TOKEN", SECRET), lacking),
        (("SHOP_TOKEN", SECRET), "4 operations; 0 diagnostics\n"),
        (("SHOP_SHOP_TOKEN", SECRET), "4 operations; 0 diagnostics\n"),
    ] {
        assert_eq!(
            told_with(&["shop.json", "--base-url", "http://x.test"], &folder, variable),
            expected,
            "{variable:?}"
        );
    }
    // Two faults at once: what is set has a misspelt name, and the environment has nothing.
    let config =
        "[apis.shop]\nspec = 'shop.json'\nbase-url = 'http://x.test'\ncredentials = { shopTokn = { env = 'OWN' } }\n";
    std::fs::write(folder.join("gateway.toml"), config).unwrap();
    let said = told_with(&["--config", "gateway.toml", "--mcp", "stdio"], &folder, ("OWN", SECRET));
    assert!(said.contains("some for `shopTokn`, which no operation names: did you mean `shopToken`?"), "{said}");
    assert!(!said.contains(SECRET), "{said}");
    // A token is no key.
    shop["components"]["securitySchemes"]["shopToken"] = json!({ "type": "apiKey", "in": "query", "name": "k" });
    std::fs::write(folder.join("keyed.json"), shop.to_string()).unwrap();
    let config = "[apis.keyed]\nspec = 'keyed.json'\nbase-url = 'http://x.test'\ntoken = { env = 'OWN' }\n";
    std::fs::write(folder.join("gateway.toml"), config).unwrap();
    let said = told_with(&["--config", "gateway.toml", "--mcp", "stdio"], &folder, ("OWN", SECRET));
    let kind = "and those that are set are of another kind: set `KEYED_SHOP_TOKEN` or `KEYED_API_KEY`\n";
    assert!(said.contains(kind), "{said}");
    // Nothing is sent by a mock, and a header may hold what the document does not know.
    for more in ["--mock", "--header=X-Key: k"] {
        assert!(
            !told(&["shop.json", "--base-url", "http://x.test", "--mcp", "stdio", more], &folder)
                .contains("credentials"),
            "{more}"
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_command_that_its_own_servers_start_ends() {
    let folder = folder("itself");
    std::fs::write(folder.join("shop.json"), document(4)).unwrap();
    let own = json!({ "command": env!("CARGO_BIN_EXE_ops"), "args": ["serve", "--config", folder.join("gateway.toml"), "--mcp", "stdio"] });
    std::fs::write(folder.join(".mcp.json"), json!({ "mcpServers": { "ops": own } }).to_string()).unwrap();
    let config = "[apis.shop]\nspec = 'shop.json'\nbase-url = 'http://x.test'\n[mcp]\nconfig = '.mcp.json'\n";
    std::fs::write(folder.join("gateway.toml"), config).unwrap();
    let said = told(&["--config", "gateway.toml", "--mcp", "stdio"], &folder);
    assert!(said.contains("`.mcp.json` names a server that is this very command"), "{said}");
    // The rest is served all the same.
    assert!(said.contains("\n4 operations;"), "{said}");
    // A folder's hidden files are not meant.
    assert_eq!(told(&[".", "--base-url", "http://x.test"], &folder), "4 operations; 0 diagnostics\n");
}

#[test]
fn what_has_no_effect_is_told() {
    let folder = folder("idle");
    std::fs::write(folder.join("shop.json"), document(4)).unwrap();
    std::fs::write(folder.join("none.json"), "[]").unwrap();
    let config = "[apis.shop]\nspec = 'shop.json'\n[policy]\ndeny = ['shop.remveThing0']\n";
    std::fs::write(folder.join("gateway.toml"), config).unwrap();
    // A rule that protects nothing is none to start with; a filter that is idle does no harm.
    let said = told(&["--config", "gateway.toml", "--exclude", "tag:admin", "--mcp", "stdio", "--mock"], &folder);
    let rule = "`[policy] deny` has `shop.remveThing0`, which matches no operation: did you mean `shop.removeThing0`";
    assert!(said.starts_with("error: ") && said.contains(rule) && said.contains("`tag:admin`"), "{said}");
    let said = told(&["shop.json", "--exclude", "tag:admin", "--mock", "--mcp", "stdio"], &folder);
    for expected in ["warning: `--exclude` has `tag:admin`, which matches no operation\n", "4 operations, answered"] {
        assert!(said.contains(expected), "{said}");
    }
    // A server that is not asked may have what the pattern means.
    std::fs::write(folder.join("servers.json"), r#"{ "mcpServers": { "x": { "command": "true" } } }"#).unwrap();
    std::fs::write(folder.join("gateway.toml"), format!("{config}[mcp]\nconfig = 'servers.json'\n")).unwrap();
    let said = told(&["--config", "gateway.toml", "--print-config"], &folder);
    assert!(said.starts_with(&format!("warning: {rule}")) && said.contains("not asked here)"), "{said}");
    // A document may have any method.
    let watch = json!({ "operationId": "watch", "responses": { "204": { "description": "" } } });
    let paths = json!({ "/pets": { "additionalOperations": { "WATCH": watch } } });
    let document = json!({ "openapi": "3.2.0", "info": { "title": "x", "version": "1" }, "paths": paths });
    std::fs::write(folder.join("watch.json"), document.to_string()).unwrap();
    let arguments = ["watch.json", "--base-url", "http://x.test", "--deny", "WATCH *"];
    assert_eq!(told(&arguments, &folder), "1 operation; 0 diagnostics\n");
    let said = told(&["shop.json", "none.json"], &folder);
    assert!(said.contains("none.json: it describes no operations") && said.contains("4 operations;"), "{said}");
}

/// A host starts the command with few variables: those of callers over HTTP are not among them.
#[test]
fn over_a_pipe_no_token_of_a_caller_is_needed() {
    let folder = folder("pipe");
    std::fs::write(folder.join("shop.json"), document(4)).unwrap();
    let config = "[apis.shop]\nspec = 'shop.json'\n[callers.ann]\ntoken = { env = 'OPS_NO_SUCH' }\n";
    std::fs::write(folder.join("gateway.toml"), config).unwrap();
    let said = told(&["--config", "gateway.toml"], &folder);
    assert!(said.contains("4 operations; ") && !said.contains("OPS_NO_SUCH"), "{said}");
    let said = told(&["--config", "gateway.toml", "--http", "127.0.0.1:0"], &folder);
    assert!(said.contains("`callers.ann.token`: the environment variable `OPS_NO_SUCH` is not set"), "{said}");
}

#[test]
fn what_cannot_be_served_says_why() {
    let folder = folder("wrong");
    std::fs::write(folder.join("empty.json"), r#"{"mcpServers":{}}"#).unwrap();
    std::fs::write(folder.join("typo.json"), r#"{"mcpServers":{"x":{"comand":"x"}}}"#).unwrap();
    std::fs::write(folder.join("a.json"), document(4)).unwrap();
    std::fs::write(folder.join("b.json"), document(4)).unwrap();
    let file = |text: &str| std::fs::write(folder.join("gateway.toml"), text).unwrap();
    for (config, arguments, status, said) in [
        ("", &["a.json", "b.json", "--base-url", "http://x"][..], 2, "for one document, and there are several"),
        ("", &["none.json"], 3, "none.json"),
        (
            "",
            &["a.json", "none.json", "no.json", "--print-config"],
            2,
            "`none.json` does not exist; `no.json` does not",
        ),
        ("", &["ab.json", "--print-config"], 2, "`ab.json` does not exist: did you mean `a.json`"),
        (
            "",
            &["a.json", "gateway.toml", "--print-config"],
            2,
            "`gateway.toml` is no document: pass the file of a gateway by `--config`",
        ),
        ("tool = 'all'", &["a.json", "--config", "gateway.toml", "--print-config"], 2, "unknown field `tool`"),
        (
            "",
            &["a.json", "--deny", "a.nothing", "--print-config"],
            2,
            "`--deny` has `a.nothing`, which matches no operation",
        ),
        (
            "",
            &["a.json", "--deny", "DELTE *"],
            2,
            "`--deny` has `DELTE *`: `DELTE` is no method: did you mean `DELETE`?",
        ),
        // Whatever is in the file that is not there, or at the URL.
        (
            "",
            &["a.json", "none.json", "--deny", "delte *"],
            2,
            "`--deny` has `delte *`: `delte` is no method: did you mean `DELETE`?",
        ),
        ("", &["a.json", "none.json", "--exclude=- /pets"], 2, "`--exclude` has `- /pets`: `-` is no method"),
        (
            "",
            &["a.json", "http://x.test/b.json", "--exclude= ", "--print-config"],
            2,
            "`--exclude` has ` `: the pattern is empty",
        ),
        (
            "",
            &["a.json", "--include", "nothing"],
            2,
            "no operations to serve: `--include` has `nothing`, which matches",
        ),
        ("", &["a.json", "empty.json"], 2, "`empty.json` names no server"),
        ("", &["a.json", "typo.json"], 2, "`typo.json`: "),
        ("", &["a.json", "--bearer-file", "gateway.toml"], 2, "`gateway.toml` is empty"),
        ("", &["a.json", "--mock", "--print-config"], 2, "`--tools search`"),
        ("", &["a.json", "--mcp", "http", "--print-config"], 2, "it would serve HTTP"),
        ("tool = 'all'", &["--config", "gateway.toml"], 2, "unknown field `tool`"),
        // Two faults at once: the secret is asked for first.
        (
            "[apis.a]\nspec = 'none.json'\ntoken = { env = 'OPS_NO_SUCH' }",
            &["--config", "gateway.toml"],
            2,
            "`gateway.toml`, `apis.a.token`: the environment variable `OPS_NO_SUCH` is not set",
        ),
        ("", &["a.json", "--http", "0.0.0.0:0"], 2, "name who may"),
        (
            "[apis.a]\nspec = 'a.json'\ntoken = { file = 'a.json' }\ncaller-token = 'pass-on'",
            &["--config", "gateway.toml"],
            2,
            "`a` has `token` and `caller-token`",
        ),
        (
            "[apis.a]\nspec = 'a.json'\ncaller-token = { exchange = { token-url = 'https://x', client-secret = { file = 'a.json' } } }",
            &["--config", "gateway.toml"],
            2,
            "has `client-secret`, but no `client-id`",
        ),
        (
            "[jwt]\nissuer = 'https://x'\naudience = 'y'\n[callers.ann]\ntoken = { file = 'a.json' }",
            &["a.json", "--config", "gateway.toml"],
            2,
            "`[jwt]` and `[callers]`",
        ),
        (
            "[jwt]\nissuer = 'https://x'\naudience = 'y'\n[callers.ann]\ntoken = { env = 'OPS_NO_SUCH' }",
            &["a.json", "--config", "gateway.toml", "--print-config"],
            2,
            "`[jwt]` and `[callers]`",
        ),
        ("[jwt]\nissuer = 'http://x.test'\naudience = 'y'", &["a.json", "--config", "gateway.toml"], 2, "`[jwt]`: "),
        ("", &["a.json", "--http", "x"], 1, "`x` cannot be listened at: it has no port: write HOST:PORT"),
        // Before the documents are read.
        ("", &["none.json", "--http", "x"], 1, "`x` cannot be listened at: it has no port: write HOST:PORT"),
    ] {
        file(config);
        let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
        let output = command.arg("serve").args(arguments).current_dir(&folder).stdin(Stdio::null()).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains(said), "{arguments:?}: {told}");
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {told}");
    }
}

#[test]
fn documents_of_one_name_or_one_path_are_told() {
    let folder = folder("alike");
    std::fs::write(folder.join("a.json"), document(4)).unwrap();
    std::fs::write(folder.join("a.yaml"), document(2)).unwrap();
    std::fs::write(folder.join("bad.json"), "{").unwrap();
    let mut server = Listener::start(&[".", "--mock", "--mcp", "http"], &folder);
    let begun = server.told.join("\n");
    for expected in ["namespace is longer", "a_yaml", "a_json", "bad.json"] {
        assert!(begun.contains(expected), "{expected}: {begun}");
    }
    // Two have this path.
    assert!(
        server.ask("DELETE /things/0", "").contains("/operations/a_json/removeThing0, /operations/a_yaml/removeThing0")
    );
    assert!(server.ask("DELETE /things/1", "").starts_with("HTTP/1.1 204 "));
    // A rule for the short name would protect nothing; that `bad.json` may have it is told, and the rest is served.
    let said = told(&["a.json", "a.yaml", "--deny", "a.removeThing0", "--mock", "--mcp", "stdio"], &folder);
    assert!(
        said.contains("`--deny` has `a.removeThing0`, which matches no operation") && !said.contains("operations,"),
        "{said}"
    );
    #[cfg(unix)]
    {
        server.end();
        assert_eq!(server.child.wait().unwrap().code(), Some(3));
    }
}

#[test]
fn the_log_has_what_callers_do_not_see() {
    let folder = folder("log");
    std::fs::write(folder.join("shop.json"), document(4)).unwrap();
    // Nobody listens there.
    let server = Listener::start(&["shop.json", "--base-url", "http://127.0.0.1:1"], &folder);
    for line in ["GET /things/0", "GET /things/1"] {
        let answer = server.ask(line, "");
        assert!(answer.starts_with("HTTP/1.1 500 "), "{line}: {answer}");
        let (_, request) =
            answer.split_once("the server's log says more of request ").unwrap_or_else(|| panic!("{answer}"));
        let request = request.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap();
        let logged = server.logged(request);
        assert!(logged.contains("ERROR") && logged.contains("a served operation failed"), "{logged}");
    }
    let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
    write!(stream, "GET /things/0 HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    server.logged("a request for another host is refused");
}
