//! Documents at URLs: each test has its folder, and runs the program.

mod folder;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use folder::{Folder, SHOP};
use serde_json::json;

/// A server that has one text everywhere.
fn serve(text: &Arc<Mutex<String>>) -> String {
    let (listener, text) = (TcpListener::bind("127.0.0.1:0").unwrap(), text.clone());
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            assert!(socket.read(&mut [0; 4096]).unwrap() > 0);
            let text = text.lock().unwrap().clone();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", text.len());
            socket.write_all((head + &text).as_bytes()).unwrap();
        }
    });
    url
}

#[test]
fn a_snapshot_is_read_from_a_url() {
    let folder = Folder::new("snapshot-url");
    let tools = json!({ "tools": [{ "name": "double", "inputSchema": { "type": "object" } }] });
    let text = Arc::new(Mutex::new(tools.to_string()));
    let url = format!("{}/maths.json", serve(&text));
    for (arguments, shown) in [
        (&["inspect", &url][..], "maths.double"),
        (&["generate", &url, "-o", "-"], "McpBinding::new(\"double\""),
        (&["diff", &url, &url], ""),
    ] {
        let (stdout, _) = folder.good(arguments);
        assert!(stdout.contains(shown), "{arguments:?}: {stdout}");
    }
    // A configuration of servers starts programs: it is read from files only.
    let server = json!({ "command": "sh", "args": ["-c", "echo started > started"] });
    *text.lock().unwrap() = json!({ "mcpServers": { "x": server } }).to_string();
    for arguments in [&["inspect", &url][..], &["call", &url, "x.double"]] {
        folder.fails(3, arguments, &["not an OpenAPI document"]);
    }
    assert!(!folder.0.join("started").exists());
}

#[test]
fn the_scheme_of_a_url_is_one_in_any_case() {
    let folder = Folder::new("scheme");
    let url = format!("{}/shop.yaml", serve(&Arc::new(Mutex::new(SHOP.to_owned()))));
    for url in [url.replace("http", "HTTP"), url] {
        let (_, told) = folder.good(&["serve", &url, "--mock", "--mcp", "stdio"]);
        assert_eq!(told, "3 operations, answered with examples; 0 diagnostics\n", "{url}");
    }
}

#[test]
fn a_query_that_is_kept_is_told() {
    let folder = Folder::new("query");
    let url = format!("{}/shop.yaml", serve(&Arc::new(Mutex::new(SHOP.to_owned()))));
    let (_, told) = folder.good(&["add", &url]);
    assert!(!told.contains("query"), "{told}");
    // It may be a secret, and the file is shared.
    let (_, told) = folder.good(&["add", &format!("{url}?token=t0k3n"), "--name", "other"]);
    let wanted = "warning: the query of the URL is kept in `ops.toml`: take it out there if it is a secret\n";
    assert!(told.contains(wanted) && !told.contains("t0k3n"), "{told}");
    assert!(folder.read("ops.toml").contains("token=t0k3n"));
}
