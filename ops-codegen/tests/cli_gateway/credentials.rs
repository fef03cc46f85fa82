//! Configurations: credentials of the APIs behind, those of callers, and those that hosts pass on.

use super::*;

#[test]
fn a_configuration_names_documents_credentials_and_rules() {
    let folder = folder("config");
    std::fs::write(folder.join("things.json"), document(60)).unwrap();
    let config = format!(
        "tools = \"search\"\nexclude = [\"*9\"]\n\n[apis.shop]\nspec = \"things.json\"\nbase-url = \"http://{}\"\n\
         token = {{ env = \"SHOP_SECRET\" }}\n\n[policy]\ndeny = [\"DELETE *\"]\n\n[audit]\nfile = \"calls.jsonl\"\n",
        echo()
    );
    std::fs::write(folder.join("gateway.toml"), config).unwrap();
    let mut host = Host::start(&["--config", "gateway.toml"], &folder);
    let answer = host.call("call", json!({ "id": "shop.showThing7" }));
    assert_eq!(answer, r#"{"number":1}"#);
    assert!(host.call("call", json!({ "id": "shop.showThing9" })).starts_with("There is no operation"));
    assert!(host.call("call", json!({ "id": "shop.removeThing7" })).starts_with("ACCESS_DENIED"));
    host.close();
    let log = std::fs::read_to_string(folder.join("calls.jsonl")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = lines.iter().map(|line| (line["operation"].clone(), line["outcome"].clone())).collect();
    assert_eq!(told, [(json!("shop.showThing7"), json!("ok")), (json!("shop.removeThing7"), json!("ACCESS_DENIED"))]);
    assert!(!log.contains(SECRET));
}

/// Answers `POST /token` with a token for the one that came, and all else with 1 if it has that token. Each request is kept.
fn exchanging(kept: Arc<Mutex<Vec<String>>>) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let start = head.len();
                if reader.read_line(&mut head).unwrap() <= 2 {
                    break;
                }
                let line = head[start..].to_lowercase();
                length = line.strip_prefix("content-length:").map_or(length, |length| length.trim().parse().unwrap());
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let answer = if head.starts_with("POST /token ") {
                json!({ "access_token": "for-the-shop", "token_type": "Bearer",
                    "issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "expires_in": 600 })
            } else {
                json!({ "number": usize::from(head.contains("authorization: Bearer for-the-shop\r\n")) })
            };
            kept.lock().unwrap().push(format!("{head}{}", String::from_utf8(body).unwrap()));
            let answer = answer.to_string();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}", answer.len()).unwrap();
        }
    });
    address
}

/// Calls an operation over HTTP, and gives the whole answer.
fn post(address: &str, operation: &str, token: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let path = operation.replace('.', "/");
    write!(stream, "POST /operations/{path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_callers_token_is_exchanged() {
    let folder = folder("exchange");
    std::fs::write(folder.join("things.json"), document(60)).unwrap();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let upstream = exchanging(kept.clone());
    let config = format!(
        "[apis.shop]\nspec = \"things.json\"\nbase-url = \"http://{upstream}\"\n\
         caller-token = {{ exchange = {{ token-url = \"http://{upstream}/token\", client-id = \"gateway\", \
         client-secret = {{ env = \"SHOP_SECRET\" }}, audience = \"https://shop.example.com\" }} }}\n\n\
         [callers.ann]\ntoken = {{ env = \"ANN_TOKEN\" }}\n"
    );
    std::fs::write(folder.join("gateway.toml"), config).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    command.args(["serve", "--config", "gateway.toml", "--http", "127.0.0.1:0"]).current_dir(&folder);
    command.env("SHOP_SECRET", SECRET).env("ANN_TOKEN", "anns-own-token").stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let told = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let address = told.map(|line| line.strip_prefix("http://").map(|rest| rest.replace("/docs", "")));
    let address = address.flatten().next().unwrap();

    let answer = post(&address, "shop.showThing7", "anns-own-token");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(r#"{"number":1}"#), "{answer}");
    // Once is enough for this caller; whoever is no caller reaches nothing.
    assert!(post(&address, "shop.showThing7", "anns-own-token").contains(r#"{"number":1}"#));
    let refused = post(&address, "shop.showThing7", "for-the-shop");
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let _ = child.kill();
    let _ = child.wait();

    let kept = kept.lock().unwrap();
    let lines: Vec<&str> = kept.iter().map(|request| request.lines().next().unwrap()).collect();
    assert_eq!(lines, ["POST /token HTTP/1.1", "GET /things/7 HTTP/1.1", "GET /things/7 HTTP/1.1"]);
    let form = kept[0].rsplit("\r\n").next().unwrap();
    assert!(form.contains("subject_token=anns-own-token&"), "{form}");
    assert!(form.contains("audience=https%3A%2F%2Fshop.example.com"), "{form}");
    assert!(!form.contains(SECRET) && kept[0].contains("authorization: Basic "), "{}", kept[0]);
    assert!(kept[1..].iter().all(|request| !request.contains("anns-own-token")));
}

#[test]
fn a_variable_is_for_one_document() {
    let folder = folder("variables");
    let kept = Arc::new(Mutex::new(Vec::new()));
    let upstream = exchanging(kept.clone());
    for (name, scheme) in [("my-shop", "key"), ("my_shop", "key"), ("my", "shopToken"), ("bank", "key")] {
        let document = json!({
            "openapi": "3.1.0", "info": { "title": name, "version": "1" },
            "servers": [{ "url": format!("http://{upstream}/{name}") }],
            "components": { "securitySchemes": { scheme: { "type": "http", "scheme": "bearer" } } },
            "security": [{ scheme: [] }],
            "paths": { "/it": { "get": { "operationId": "show", "responses": { "200": { "description": "It" } } } } },
        });
        std::fs::write(folder.join(format!("{name}.json")), document.to_string()).unwrap();
    }
    for (documents, tokens) in [
        // The name of the scheme does not choose the variable of another document.
        (["my-shop", "my", "bank"], [Some("of-the-shop"), None, Some("of-the-bank")]),
        // Both would read the same variable.
        (["my-shop", "my_shop", "bank"], [None, None, Some("of-the-bank")]),
    ] {
        let files = documents.map(|name| format!("{name}.json"));
        let mut arguments: Vec<&str> = files.iter().map(String::as_str).collect();
        arguments.extend(["--tools", "search"]);
        let variables = [("MY_SHOP_TOKEN", "of-the-shop"), ("BANK_TOKEN", "of-the-bank")];
        let mut host = Host::start_with(&arguments, &folder, &variables);
        for (name, token) in documents.into_iter().zip(tokens) {
            host.call("call", json!({ "id": format!("{name}.show") }));
            let request = kept.lock().unwrap().pop().unwrap();
            assert!(request.starts_with(&format!("GET /{name}/it ")), "{request}");
            let sent = request.lines().find_map(|line| line.strip_prefix("authorization: Bearer "));
            assert_eq!(sent, token, "{documents:?}: {name}");
        }
        host.close();
    }
}

#[test]
fn what_is_said_comes_before_the_environment() {
    let folder = folder("said");
    let kept = Arc::new(Mutex::new(Vec::new()));
    let upstream = exchanging(kept.clone());
    let get = |id: &str, ways: Value| json!({ "get": { "operationId": id, "security": ways, "responses": { "200": { "description": "It" } } } });
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "x", "version": "1" },
        "components": { "securitySchemes": {
            "key": { "type": "apiKey", "in": "header", "name": "x-key" }, "bear": { "type": "http", "scheme": "bearer" } } },
        "paths": {
            "/either": get("either", json!([{ "key": [] }, { "bear": [] }])),
            "/keyed": get("keyed", json!([{ "key": [] }])),
        },
    });
    std::fs::write(folder.join("sec.json"), document.to_string()).unwrap();
    for (own, either, keyed) in [
        ("token = { env = 'SAID' }", ["-", "Bearer said-token"], ["leftover", "-"]),
        // With the key, callers would have the rights of this server.
        ("caller-token = 'pass-on'", ["-", "Bearer anns-own-token"], ["-", "Bearer anns-own-token"]),
        ("", ["leftover", "-"], ["leftover", "-"]),
    ] {
        let config = format!(
            "[apis.sec]\nspec = 'sec.json'\nbase-url = 'http://{upstream}'\n{own}\n[callers.ann]\ntoken = {{ env = 'ANN_TOKEN' }}\n"
        );
        std::fs::write(folder.join("gateway.toml"), config).unwrap();
        let variables = [("SAID", "said-token"), ("SEC_API_KEY", "leftover")];
        let server = Listener::start_with(&["--config", "gateway.toml"], &folder, &variables);
        for (operation, expected) in [("sec.either", either), ("sec.keyed", keyed)] {
            let answer = post(&server.address, operation, "anns-own-token");
            assert!(answer.starts_with("HTTP/1.1 200"), "{own}: {operation}: {answer}");
            let request = kept.lock().unwrap().pop().unwrap();
            let header = |name: &str| {
                let value = request.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                value.unwrap_or("-").to_owned()
            };
            assert_eq!(["x-key", "authorization"].map(header), expected, "{own}: {operation}");
        }
        // What was said, and is not sent, is told.
        if own.starts_with("token") {
            let told = server.logged("are not sent to this one");
            assert!(
                told.contains("it asks for `key`, which the environment has") && told.contains("sec.keyed"),
                "{told}"
            );
        }
    }
}

#[test]
fn a_host_starts_what_its_configuration_says() {
    let folder = folder("host");
    std::fs::write(folder.join("shop.json"), document(60)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    // What is no path stays as it is, also if a folder has that name.
    std::fs::create_dir_all(folder.join("removeThing3")).unwrap();
    let arguments = [
        "serve",
        "shop.json",
        "--mock",
        "--tools",
        "search",
        "--allow=removeThing3",
        "--audit",
        "calls.jsonl",
        "--print-config",
    ];
    let output = command.args(arguments).current_dir(&folder).output().unwrap();
    let config: Value = serde_json::from_slice(&output.stdout).unwrap();
    let server = &config["mcpServers"]["ops"];
    assert_eq!(server["command"], env!("CARGO_BIN_EXE_ops"));
    let arguments: Vec<&str> = server["args"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    let audit = folder.canonicalize().unwrap().join("calls.jsonl");
    assert_eq!(
        arguments[2..],
        ["--mock", "--tools", "search", "--allow=removeThing3", "--audit", audit.to_str().unwrap()]
    );
    // From anywhere.
    let mut host = Host::start(&arguments[1..], Path::new("/"));
    assert_eq!(host.call("call", json!({ "id": "shop.showThing3" })), r#"{"number":3}"#);
}

/// An argument that no JSON can hold is told.
#[cfg(unix)]
#[test]
fn a_configuration_holds_text_only() {
    let folder = folder("bytes");
    std::fs::write(folder.join("shop.json"), document(3)).unwrap();
    let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"caf\xe9");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    command.args(["serve", "shop.json", "--print-config", "--audit"]).arg(name).current_dir(&folder);
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("`caf\u{fffd}` is not UTF-8"), "{stderr}");
}
