//! Servers that are child processes.

use std::time::{Duration, Instant};

use ops_runtime::CallError;
use ops_runtime::mcp::{McpClient, McpServerConfig};
use serde_json::json;

use crate::{Outcome, block_on};

/// What each of these servers begins with: it knows `initialize`, and answers each list of tools by `tools`.
const SERVER: &str = r#"
import json, sys, time
size = int(sys.argv[1])
out = sys.stdout
def say(**message):
    out.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n"); out.flush()
def raw(text):
    out.write(text); out.flush()
def read():
    line = sys.stdin.readline()
    if not line: sys.exit(0)
    return json.loads(line)
def begin(request):
    if request["method"] == "initialize":
        say(id=request["id"], result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "t", "version": "1"}})
    elif "id" in request:
        say(id=request["id"], error={"code": -32601, "message": "no"})
TOOL = {"name": "x", "inputSchema": {"type": "object"}}
def until(method):
    while True:
        request = read()
        if request.get("method") == method: return request
        if request.get("method") == "tools/list":
            say(id=request["id"], result={"tools": [TOOL]})
        elif "method" in request: begin(request)
"#;

fn config(script: &str, size: usize) -> McpServerConfig {
    let script = format!("{SERVER}{script}");
    McpServerConfig::stdio("python3", ["-c".to_owned(), script, size.to_string()])
        .with_namespace("t")
        .with_connect_timeout(Duration::from_secs(30))
}

async fn connect(script: &str, size: usize) -> Result<McpClient, CallError> {
    McpClient::connect(config(script, size)).await
}

/// The error of a server that cannot be connected to.
fn refused(script: &str, size: usize, what: &str) -> Outcome {
    match block_on(connect(script, size)) {
        Err(error) if error.message().contains(what) => Ok(error.message().to_owned()),
        Err(error) => Err(error.message().to_owned()),
        Ok(client) => Err(format!("connected, {} tools", client.tools().len())),
    }
}

/// The error of the one call of a server that was connected to.
fn called(script: &str, size: usize) -> Result<Result<String, CallError>, String> {
    called_with(config(script, size))
}

fn called_with(config: McpServerConfig) -> Result<Result<String, CallError>, String> {
    block_on(async {
        let client = McpClient::connect(config).await.map_err(|error| error.to_string())?;
        let came = client.call("t.x", json!({})).await.map(|answer| answer.data.to_string());
        Ok(came)
    })
}

const FLOOD: &str = r#"
until("tools/call")
block = "".join('{"jsonrpc":"2.0","id":"%d","method":"ping"}\n' % n for n in range(1000))
sent = 0
while sent < size:
    raw(block.replace('"id":"', '"id":"%d-' % sent)); sent += len(block)
time.sleep(1000)
"#;

/// Pings without end, and not one answer is read: 3.8 GB waited for the server.
pub(super) fn flood(size: usize) -> Outcome {
    // A quarter of what may wait by default, for each ping that is answered takes its time in a build without optimisation.
    match called_with(config(FLOOD, size).with_max_waiting(4 << 20))? {
        Err(error) if error.message().contains("with_max_waiting") => Ok(error.message().to_owned()),
        came => Err(format!("{came:?}")),
    }
}

const FEW: &str = r#"
call = until("tools/call")
block = "".join('{"jsonrpc":"2.0","id":"%d","method":"ping"}\n' % n for n in range(1000))
sent = 0
while sent < size:
    raw(block.replace('"id":"', '"id":"%d-' % sent)); sent += len(block)
say(id=call["id"], result={"content": []})
time.sleep(1000)
"#;

/// As many pings as find room: the call is answered all the same.
pub(super) fn small_flood(size: usize) -> Outcome {
    called(FEW, size)?.map_err(|error| error.message().to_owned())
}

const ENDLESS: &str = r#"
page, sent = json.dumps([{**TOOL, "name": "x%d", "description": "d" * 1000} for _ in range(50)] if size >= 50000 else [TOOL]), 0
while True:
    request = read()
    if request.get("method") != "tools/list":
        begin(request); continue
    sent += len(page)
    more = '"nextCursor":"%d",' % sent if sent < size else ""
    raw('{"jsonrpc":"2.0","id":%d,"result":{%s"tools":%s}}\n' % (request["id"], more, page.replace("x%d", "x%d" % sent)))
"#;

/// Pages, and always another.
pub(super) fn endless_list(size: usize) -> Outcome {
    if size < 16 << 20 {
        let client = block_on(connect(ENDLESS, size)).map_err(|error| error.to_string())?;
        return Ok(format!("{} tools", client.tools().len()));
    }
    refused(ENDLESS, size, "with_max_list")
}

const LARGE: &str = r#"
request = until("initialize") if False else None
while True:
    request = read()
    if request.get("method") == "tools/list":
        raw('{"jsonrpc":"2.0","id":%d,"result":{"tools":[%s]}}\n' % (request["id"], ",".join(["0"] * max(1, size // 2))))
    else: begin(request)
"#;

/// One page of nothing but numbers.
pub(super) fn large_page(size: usize) -> Outcome {
    if size < 2 << 20 {
        return match block_on(connect(LARGE, size)) {
            Ok(client) => Ok(format!("{} tools", client.tools().len())),
            Err(error) => Ok(error.message().to_owned()),
        };
    }
    refused(LARGE, size, "with_max_list")
}

const SAME: &str = r#"
while True:
    request = read()
    if request.get("method") == "tools/list":
        raw('{"jsonrpc":"2.0","id":%d,"result":{"tools":[],"nextCursor":"%s"}}\n' % (request["id"], "c" * size))
    else: begin(request)
"#;

pub(super) fn same_cursor(size: usize) -> Outcome {
    refused(SAME, size, if size < 8 << 20 { "a cursor twice" } else { "" })
}

const BATCH: &str = r#"
until("tools/call")
raw("[" + ",".join(["0"] * max(1, size // 2)) + "]\n")
time.sleep(1000)
"#;

/// A batch of millions of messages.
pub(super) fn batch(size: usize) -> Outcome {
    if size < 4000 {
        return Ok("too few to be refused".to_owned());
    }
    match called(BATCH, size)? {
        Err(error) if error.message().contains("a batch of more than") => Ok(error.message().to_owned()),
        came => Err(format!("{came:?}")),
    }
}

const ERRORS: &str = r#"
call = until("tools/call")
for n in range(size // 65536):
    sys.stderr.write("e" * 65536 if n % 2 else "e\n" * 32768)
say(id=call["id"], result={"content": []})
time.sleep(1000)
"#;

pub(super) fn standard_error(size: usize) -> Outcome {
    called(ERRORS, size)?.map_err(|error| error.message().to_owned())
}

const CHANGES: &str = r#"
lists, start = 0, time.time()
while True:
    request = read()
    if request.get("method") == "tools/list":
        lists += 1
        say(id=request["id"], result={"tools": [TOOL]})
        for _ in range(100): say(method="notifications/tools/list_changed")
    elif request.get("method") == "tools/call":
        say(id=request["id"], result={"content": [{"type": "text", "text": str(lists)}]})
    else: begin(request)
"#;

/// A server that says after each list that it has changed.
pub(super) fn changes(seconds: usize) -> Outcome {
    let begun = Instant::now();
    let lists = block_on(async {
        let client = connect(CHANGES, 0).await?;
        tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
        client.call("t.x", json!({})).await
    });
    let lists = lists.map_err(|error| error.to_string())?.data.to_string();
    let count: usize = lists.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(usize::MAX);
    // One a second, of the time that it took, which is longer on a busy machine.
    let most = begun.elapsed().as_secs() + 3;
    if count as u64 <= most { Ok(format!("{count} lists")) } else { Err(format!("{count} lists")) }
}

const PROGRESS: &str = r#"
call = until("tools/call")
token = call["params"].get("_meta", {}).get("progressToken")
one = json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}) + "\n"
block, sent = one * 1000, 0
while sent < size:
    raw(block); sent += len(block)
say(id=call["id"], result={"content": []})
time.sleep(1000)
"#;

pub(super) fn progress(size: usize) -> Outcome {
    called(PROGRESS, size)?.map_err(|error| error.message().to_owned())
}

const LARGE_ERROR: &str = r#"
call = until("tools/call")
raw('{"jsonrpc":"2.0","id":%d,"error":{"code":1,"message":"m","data":[%s]}}\n' % (call["id"], ",".join(["0"] * max(1, size // 2))))
time.sleep(1000)
"#;

/// An error whose data is millions of numbers.
pub(super) fn large_error(size: usize) -> Outcome {
    match called(LARGE_ERROR, size)? {
        Err(error) if error.message().contains("too large to keep") => Ok(error.message().to_owned()),
        came => Err(format!("{:.300}", format!("{came:?}"))),
    }
}
