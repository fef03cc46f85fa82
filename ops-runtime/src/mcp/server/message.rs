//! What a message over HTTP is, by its text, before the SDK reads it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::HeaderMap;
use serde_json::value::RawValue;

/// The method by which a client of 2026-07-28 listens for the server's own messages.
const LISTEN: &str = "subscriptions/listen";

type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// True if a message may end work: an answer to what the server asks, or a notification, such as that a call is cancelled.
pub(super) fn ends_work(message: &[u8]) -> bool {
    let Ok(members) = serde_json::from_slice::<Members<'_>>(message) else { return false };
    match members.contains_key("method") {
        true => !members.contains_key("id"),
        false => members.contains_key("result") || members.contains_key("error"),
    }
}

/// True if a message asks for a stream of the server's own messages. A header says so as well, so that other messages need not
/// be read here.
pub(super) fn listens(headers: &HeaderMap, message: &[u8]) -> bool {
    headers.get("mcp-method").is_some_and(|method| method == LISTEN) && has_method(message, LISTEN)
}

/// True if a message begins a session.
pub(super) fn begins_session(message: &[u8]) -> bool {
    has_method(message, "initialize")
}

fn has_method(message: &[u8], method: &str) -> bool {
    let Ok(members) = serde_json::from_slice::<Members<'_>>(message) else { return false };
    let own = members.get("method").and_then(|own| serde_json::from_str::<Cow<'_, str>>(own.get()).ok());
    own.is_some_and(|own| own == method)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn what_may_end_work() {
        for (message, ends) in [
            (r#"{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}"#, true),
            (r#"{"jsonrpc":"2.0","id":0,"error":{"code":-1,"message":"no"}}"#, true),
            (r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#, true),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#, false),
            (r#"{"jsonrpc":"2.0","id":1,"method":"notifications/cancelled"}"#, false),
            (r#"{"jsonrpc":"2.0","id":1}"#, false),
            (r#"{"id":1,"result":"#, false),
            ("[]", false),
            ("", false),
        ] {
            assert_eq!(ends_work(message.as_bytes()), ends, "{message}");
        }
    }

    #[test]
    fn what_begins_a_session() {
        for (message, begins) in [
            (r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#, true),
            (r#"{"jsonrpc":"2.0","id":0,"method":"initi\u0061lize","params":{}}"#, true),
            (r#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"initialize"}}"#, false),
            ("initialize", false),
        ] {
            assert_eq!(begins_session(message.as_bytes()), begins, "{message}");
        }
    }

    #[test]
    fn who_listens() {
        let body = |method: &str| format!(r#"{{"id":1,"method":"{method}","params":{{}}}}"#);
        for (header, method, listens) in [
            (Some(LISTEN), LISTEN, true),
            (Some(LISTEN), r"subscriptions\/listen", true),
            (Some(LISTEN), "tools/call", false),
            (Some("tools/call"), LISTEN, false),
            (None, LISTEN, false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert("mcp-method", HeaderValue::from_static(header));
            }
            assert_eq!(super::listens(&headers, body(method).as_bytes()), listens, "{header:?} {method}");
        }
    }
}
