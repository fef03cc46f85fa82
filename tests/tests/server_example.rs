//! The example of a server: its functions, its subscription and the other API behind one port, over HTTP and MCP.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use ops_tests::program::built;

/// The program, until it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn one_port_has_all_of_it() {
    let mut running = Running(Command::new(built("server")).arg("127.0.0.1:0").stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let send = |method: &str, path: &str, headers: &str, body: &str| {
        let mut socket = TcpStream::connect(address).unwrap();
        let about = match body.len() {
            0 => String::new(),
            length => format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"),
        };
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
        let text = format!("{head}{about}{headers}\r\n{body}");
        socket.write_all(text.as_bytes()).unwrap();
        let mut response = String::new();
        socket.read_to_string(&mut response).unwrap();
        response
    };
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
    let own = "/operations/post";
    for (method, path, headers, body, status, part) in [
        ("POST", &*format!("{own}/postage"), "", r#"{"kilograms":1}"#, 200, "5.3"),
        ("POST", &format!("{own}/postage_in"), "", r#"{"kilograms":1,"currency":"USD"}"#, 200, "6.2"),
        // The other API, behind a function and by its own path, where its document is heeded.
        ("POST", &format!("{own}/postage_in"), "", r#"{"kilograms":1,"currency":"ABC"}"#, 404, "no rate for ABC"),
        ("GET", "/rates/CHF", "", "", 200, r#"{"currency":"CHF","rate":0.94}"#),
        ("GET", "/rates/ABC", "", "", 404, r#"{"title":"no rate for ABC"}"#),
        ("GET", "/rates/A", "", "", 422, "violations"),
        ("POST", &format!("{own}/track"), "", r#"{"parcel":7}"#, 200, "parcel 7 is delivered"),
        ("GET", "/nothing", "", "", 404, "problem+json"),
        ("GET", "/openapi.json", "", "", 200, r#""title":"Post""#),
        ("GET", "/docs", "", "", 200, "<html"),
        ("POST", "/mcp", "Accept: application/json, text/event-stream\r\n", initialize, 200, "serverInfo"),
    ] {
        let response = send(method, path, headers, body);
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {path}: {response}");
        assert!(response.contains(part), "{method} {path}: {response}");
    }
}
