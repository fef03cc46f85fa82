//! The same server over HTTP.

use super::*;

#[test]
fn only_callers_call() {
    let folder = folder("callers");
    std::fs::write(folder.join("things.json"), document(4)).unwrap();
    let config = format!(
        "hosts = ['tools.example.com', '127.0.0.1']\norigins = ['https://app.example.com']\n[apis.shop]\nspec = 'things.json'\nbase-url = 'http://{}'\n\
         [callers.ann]\ntoken = {{ env = 'ANN_TOKEN' }}\n",
        echo()
    );
    std::fs::write(folder.join("gateway.toml"), config).unwrap();
    let server = Listener::start(&["--config", "gateway.toml", "--mcp", "http"], &folder);
    let token = "Authorization: Bearer anns-own-token\r\n";
    // The document asks for nothing; the gateway's own credentials are used all the same.
    for (line, headers, status) in [
        ("GET /things/1", String::new(), 401),
        ("POST /operations/shop/removeThing1", String::new(), 401),
        ("DELETE /things/1", "Authorization: Bearer other\r\n".to_owned(), 401),
        ("GET /things/1", token.to_owned(), 200),
        ("GET /openapi.json", String::new(), 200),
        ("GET /healthz", String::new(), 200),
        // By the names that the configuration has, and no others.
        ("GET /things/1", format!("{token}Host: evil.example\r\n"), 400),
    ] {
        let answer = server.ask(line, &headers);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{line} {headers}: {answer}");
    }
    // Pages of the origin ask before they send anything.
    for path in ["/things/1", "/mcp"] {
        for (origin, is_let_in) in [("https://app.example.com", true), ("https://evil.example", false)] {
            let headers = format!("Origin: {origin}\r\nAccess-Control-Request-Method: POST\r\n");
            let answer = server.ask(&format!("OPTIONS {path}"), &headers);
            let allowed = answer.contains(&format!("access-control-allow-origin: {origin}\r\n"));
            assert_eq!(allowed, is_let_in, "{path}: {answer}");
            // What they send then is taken as well.
            let answer = server.ask(&format!("POST {path}"), &format!("{token}Origin: {origin}\r\n"));
            assert_eq!(!answer.starts_with("HTTP/1.1 403 "), is_let_in, "{path}: {answer}");
        }
    }
    for path in ["/things/1", "/mcp"] {
        for (host, is_known) in [("tools.example.com", true), ("tools.example.com:8443", true), ("evil.example", false)]
        {
            let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
            write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{token}\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert_eq!(!answer.starts_with("HTTP/1.1 403 "), is_known, "{path} {host}: {answer}");
        }
    }
}

/// Documents may have schemes of one name that are of other kinds.
#[test]
fn a_mock_asks_for_credentials_of_any_value() {
    let folder = folder("any-value");
    let login = json!({ "type": "oauth2", "flows": {
        "clientCredentials": { "tokenUrl": "https://login.example.com/token", "scopes": { "read": "Read" } } } });
    let key = json!({ "type": "apiKey", "in": "header", "name": "X-Key" });
    for (file, path, scheme, scopes) in
        [("shop.json", "/pets", login, json!(["read"])), ("till.json", "/sales", key, json!([]))]
    {
        let responses = json!({ "204": { "description": "x" } });
        let show = json!({ "operationId": "show", "security": [{ "own": scopes }], "responses": responses });
        let set = json!({ "operationId": "set", "responses": responses });
        let document = json!({
            "openapi": "3.1.0", "info": { "title": "x", "version": "1" },
            "components": { "securitySchemes": { "own": scheme } },
            "paths": { path: { "get": show, "put": set } },
        });
        std::fs::write(folder.join(file), document.to_string()).unwrap();
    }
    let arguments = ["shop.json", "till.json", "--mock", "--tools", "search", "--deny", "till.set"];
    let server = Listener::start(&arguments, &folder);
    assert_eq!(server.told, ["4 operations, answered with examples; 0 diagnostics"]);
    let (token, key) = ("Authorization: Bearer any\r\n", "X-Key: any\r\n");
    for (line, headers, status) in [
        ("GET /pets", "", 401),
        ("GET /pets", token, 204),
        ("GET /pets", key, 403),
        ("GET /sales", "", 401),
        ("GET /sales", key, 204),
        ("GET /sales", token, 403),
        ("PUT /pets", "", 204),
        // The rules of the gateway hold.
        ("PUT /sales", "", 403),
    ] {
        let answer = server.ask(line, headers);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{line} {headers}: {answer}");
    }
}

#[cfg(unix)]
#[test]
fn a_server_that_is_asked_to_end_answers_first() {
    let folder = folder("ends");
    std::fs::write(folder.join("things.json"), document(4)).unwrap();
    // A service that answers after the server was asked to end.
    let service = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = service.local_addr().unwrap();
    let base = format!("http://{address}");
    let arguments = ["things.json", "--base-url", &base, "--audit", "calls.jsonl", "--mcp", "http"];
    let mut server = Listener::start(&arguments, &folder);
    let request = {
        let address = server.address.clone();
        std::thread::spawn(move || {
            let mut stream = std::net::TcpStream::connect(&address).unwrap();
            write!(stream, "DELETE /things/1 HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        })
    };
    let (mut stream, _) = service.accept().unwrap();
    let mut head = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
    assert!(head.next().unwrap().starts_with("DELETE /things/1 "));
    server.end();
    std::thread::sleep(std::time::Duration::from_millis(500));
    stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").unwrap();
    drop(stream);
    assert!(request.join().unwrap().starts_with("HTTP/1.1 204 "));
    assert!(server.child.wait().unwrap().success());
    let log = std::fs::read_to_string(folder.join("calls.jsonl")).unwrap();
    let line: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!((&line["operation"], &line["outcome"]), (&json!("things.removeThing1"), &json!("ok")), "{log}");
}
