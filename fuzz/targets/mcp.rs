//! The wire of MCP: whatever a server says to a client, and a client to a server, it ends, and nothing of it stays.
#![no_main]

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use ops_runtime::mcp::McpServer;
use ops_runtime::Registry;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::registry::{Progress, ProgressSink};
use ops_runtime::spec::OperationSpec;
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, GetExtensions, RequestId};
use serde_json::{Value, json};

// The modules themselves: what the client hears is none of the crate's public interface.
#[allow(dead_code)]
#[path = "../../ops-runtime/src/model/text.rs"]
mod text;
#[allow(dead_code)]
#[path = "../../ops-runtime/src/model/lock.rs"]
mod lock;
#[allow(dead_code)]
#[path = "../../ops-runtime/src/model/separators.rs"]
mod separators;
mod model {
    pub(crate) use super::{lock, separators, text};
}
#[allow(dead_code)]
#[path = "../../ops-runtime/src/mcp/client/interceptor.rs"]
mod interceptor;

use interceptor::{Interceptor, Slot, Verdict, decode};

/// How many calls wait for answers, with the ids from 1.
const CALLS: i64 = 4;

/// What a client says before anything else.
const BEGIN: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"f","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

fuzz_target!(|data: &[u8]| {
    client(data);
    server(data);
});

/// The lines are what a server says.
fn client(data: &[u8]) {
    let interceptor = Interceptor::new("s");
    let mut slots = Vec::new();
    for id in 1..=CALLS {
        let slot = if id % 2 == 0 { Slot::shared(64) } else { Slot::new(Some(Progress::channel().0)) };
        let mut request = ClientRequest::CallToolRequest(CallToolRequest::new(CallToolRequestParams::new("x")));
        request.extensions_mut().insert::<Arc<Slot>>(slot.clone());
        interceptor.outbound(&mut ClientJsonRpcMessage::request(request, RequestId::Number(id)));
        slots.push(slot);
    }
    let mut before = interceptor.pending();
    for line in String::from_utf8_lossy(data).lines() {
        let Ok(verdict) = interceptor.inbound(line) else { continue };
        if let Verdict::Answered(id) | Verdict::Failed(id, _) = &verdict {
            assert!((1..=CALLS).contains(id), "an answer to nothing");
        }
        assert!(interceptor.pending() <= before, "an answer does not ask");
        before = interceptor.pending();
        let _ = decode(verdict, line);
    }
    let answered = slots.iter().filter(|slot| slot.take().is_some()).count();
    assert_eq!(answered + interceptor.pending(), slots.len(), "a call waits, or has its answer");
}

/// The lines are what a client says.
fn server(data: &[u8]) {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    }
    let registry = Registry::new();
    let echo = Handler::dynamic(|input: Value, _| async move { Ok(json!({ "got": input })) });
    registry.register(Registration::new(OperationSpec::query("t.echo"), echo)).expect("a new id");
    let said = Cursor::new([BEGIN.as_bytes(), data].concat());
    RUNTIME.with(|runtime| {
        runtime.block_on(async {
            let served = McpServer::new(registry).serve(said, tokio::io::sink());
            let ended = tokio::time::timeout(Duration::from_secs(5), served).await;
            assert!(ended.is_ok(), "the client has gone, and the server goes on");
        });
    });
}
